//! The oracle of engine `paper`: the same grids, in clear.

use super::rows::{Column, PaperRows};
use crate::blocks::power::Exponents;
use heda_learn::gradient::{Batch, Gradient, GradientSource};
use heda_learn::loss::sigmoid;
use std::convert::Infallible;

/// Gradients at the precision of engine `paper`, computed in clear: rows on their grids, and
/// coefficients of encrypted columns rounded to 1/128 while the score is computed.
#[derive(Debug)]
pub struct ClearPaper<'a> {
    parts: &'a [PaperRows],
    positive: u32,
}

impl<'a> ClearPaper<'a> {
    /// Over the rows of all providers.
    pub fn new(parts: &'a [PaperRows], positive: u32) -> Self {
        Self { parts, positive }
    }

    fn columns(&self) -> &[Column] {
        self.parts.first().map_or(&[], PaperRows::columns)
    }

    /// Coefficients as the engine computes with them.
    pub fn rounded(&self, beta: &[f64]) -> Vec<f64> {
        let weights = self
            .columns()
            .iter()
            .zip(&beta[1..])
            .map(|(column, &b)| match column {
                Column::Encrypted => Exponents::rounded(b),
                Column::Published { .. } => b,
            });
        std::iter::once(beta[0]).chain(weights).collect()
    }
}

impl GradientSource for ClearPaper<'_> {
    type Error = Infallible;

    fn dimension(&self) -> usize {
        self.columns().len() + 1
    }

    fn gradient(&mut self, beta: &[f64], batch: Batch) -> Result<Gradient, Infallible> {
        let beta = self.rounded(beta);
        let mut gradient = Gradient {
            sum: vec![0.0; beta.len()],
            rows: 0,
        };
        for part in self.parts {
            for row in batch.share(part.len()) {
                let x: Vec<f64> = std::iter::once(1.0).chain(part.values(row)).collect();
                let z: f64 = beta.iter().zip(&x).map(|(b, x)| b * x).sum();
                let y = f64::from(u8::from(part.labels()[row] == self.positive));
                let residual = sigmoid(z) - y;
                gradient
                    .sum
                    .iter_mut()
                    .zip(&x)
                    .for_each(|(sum, x)| *sum += residual * x);
                gradient.rows += 1;
            }
        }
        Ok(gradient)
    }
}
