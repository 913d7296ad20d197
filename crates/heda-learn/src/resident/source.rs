//! The five steps put together: gradients as engine `resident` computes them, in the clear.

use super::{CodeTable, Resolution, WeightError, Weights};
use crate::fixed::{Domain, FixedRows, Position};
use crate::gradient::{Batch, Gradient, GradientSource};
use crate::loss::LossKind;

/// What is drawn for one row of one gradient.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowCoins {
    /// Step 3: the provider's share of the score is −r; r is uniform modulo 2^w.
    pub mask: u32,
    /// Step 4.
    pub coin: u32,
}

/// Where coins come from: a generator, or an engine's own coins in a test.
pub trait Coins {
    /// The coins of one row.
    fn coins(&mut self, at: Position) -> RowCoins;
}

impl<F: FnMut(Position) -> RowCoins> Coins for F {
    fn coins(&mut self, at: Position) -> RowCoins {
        self(at)
    }
}

/// What can go wrong on the grid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ResidentError {
    /// A row holds what the domain excludes.
    #[error("provider {provider}, row {row}: a value outside the agreed domain")]
    Domain {
        /// The provider, from 0.
        provider: usize,
        /// The row, from 0.
        row: usize,
    },
    /// The coefficients do not belong to these columns.
    #[error(transparent)]
    Weights(#[from] WeightError),
}

/// Gradients on integers, from rows of several providers in the clear.
#[derive(Debug)]
pub struct ResidentSource<C> {
    resolution: Resolution,
    domain: Domain,
    table: CodeTable,
    providers: Vec<FixedRows>,
    coins: C,
    iteration: u32,
}

impl<C: Coins> ResidentSource<C> {
    /// Checks every row against the domain.
    pub fn new(
        resolution: Resolution,
        domain: Domain,
        loss: LossKind,
        providers: Vec<FixedRows>,
        coins: C,
    ) -> Result<Self, ResidentError> {
        for (provider, rows) in providers.iter().enumerate() {
            let outside = |&row: &usize| !domain.contains(rows.row(row), resolution.grid());
            if let Some(row) = (0..rows.rows()).find(outside) {
                return Err(ResidentError::Domain { provider, row });
            }
        }
        Ok(Self {
            resolution,
            table: CodeTable::new(loss, resolution),
            domain,
            providers,
            coins,
            iteration: 0,
        })
    }

    /// Step 5: the sums as whole numbers, bias first.
    pub fn whole_sums(&mut self, beta: &[f64], batch: Batch) -> Result<Vec<i64>, ResidentError> {
        let weights = Weights::new(beta, &self.domain, self.resolution)?;
        let mut sums = vec![0i64; beta.len()];
        for provider in 0..self.providers.len() {
            for row in batch.share(self.providers[provider].rows()) {
                self.add_row(provider, row, &weights, &mut sums);
            }
        }
        self.iteration += 1;
        Ok(sums)
    }

    fn add_row(&mut self, provider: usize, row: usize, weights: &Weights, sums: &mut [i64]) {
        let iteration = self.iteration;
        let RowCoins { mask, coin } = self.coins.coins(Position {
            provider,
            iteration,
            row,
        });
        let rows = &self.providers[provider];
        let (values, positive) = (rows.row(row), rows.is_positive(row));
        // Steps 2 and 3
        let share = weights.score(values, self.resolution).wrapping_add(mask);
        let (top, mask_top) = (
            self.resolution.top_bits(share),
            self.resolution.top_bits(mask),
        );
        let node = top.wrapping_sub(mask_top) & ((1 << self.resolution.index_bits()) - 1);
        // Steps 4 and 5
        let code = i64::from(self.table.code(node, positive, coin));
        let weight = code - i64::from(self.table.zero(positive));
        sums[0] += weight << self.resolution.value_bits();
        for (sum, &value) in sums[1..].iter_mut().zip(values) {
            *sum += weight * i64::from(value);
        }
    }

    /// What whole sums stand for.
    pub fn real(&self, sums: &[i64]) -> Vec<f64> {
        let unit = self.table.unit() / 2f64.powi(self.resolution.value_bits() as i32);
        sums.iter().map(|&sum| sum as f64 * unit).collect()
    }
}

impl<C: Coins> GradientSource for ResidentSource<C> {
    type Error = ResidentError;

    fn dimension(&self) -> usize {
        self.domain.width() + 1
    }

    fn gradient(&mut self, beta: &[f64], batch: Batch) -> Result<Gradient, ResidentError> {
        let sums = self.whole_sums(beta, batch)?;
        let rows = self
            .providers
            .iter()
            .map(|provider| batch.share(provider.rows()).len())
            .sum();
        Ok(Gradient {
            sum: self.real(&sums),
            rows,
        })
    }
}
