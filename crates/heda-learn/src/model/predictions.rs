//! Predictions of many rows, as a CSV file.

use super::{Model, Prediction};
use crate::table::Rows;
use rayon::prelude::*;

/// The predictions of all rows of a file.
#[derive(Debug, Clone, PartialEq)]
pub struct Predictions {
    /// Each row's number in the file, from 1.
    pub numbers: Vec<u64>,
    /// What the model says, in the same order.
    pub predictions: Vec<Prediction>,
}

impl Model {
    /// Predicts rows that were read by the model's schema.
    pub fn predict_rows(&self, rows: &Rows) -> Predictions {
        let encoded: Vec<&[f64]> = rows.iter().collect();
        Predictions {
            numbers: rows.numbers().to_vec(),
            predictions: encoded.into_par_iter().map(|r| self.predict(r)).collect(),
        }
    }

    /// A CSV file: row number, class, and for each classifier its score and, for losses that model
    /// one, the probability of its class.
    pub fn predictions_csv(&self, all: &Predictions) -> Result<Vec<u8>, csv::Error> {
        let classes = self.classes();
        let mut out = csv::Writer::from_writer(Vec::new());
        let targets = || self.classifiers.iter().map(|c| c.class.as_str());
        let scores = targets().map(|class| format!("score:{class}"));
        let has_probability = self.loss.loss().probability(0.0).is_some();
        let named = targets().filter(|_| has_probability);
        let probabilities = named.map(|class| format!("probability:{class}"));
        let header = ["row".to_owned(), "class".to_owned()];
        out.write_record(header.into_iter().chain(scores).chain(probabilities))?;
        for (number, p) in all.numbers.iter().zip(&all.predictions) {
            let first = [number.to_string(), classes[p.class as usize].clone()];
            let scores = p.scores.iter().map(f64::to_string);
            // With two classes there is one classifier, for the second class.
            let skip = classes.len() - self.classifiers.len();
            let probabilities = p.probabilities.iter().flatten().skip(skip);
            let numbers = scores.chain(probabilities.map(f64::to_string));
            out.write_record(first.into_iter().chain(numbers))?;
        }
        out.into_inner().map_err(|e| e.into_error().into())
    }
}
