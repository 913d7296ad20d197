//! Predictions of many rows, as a CSV file.

use super::{Model, Prediction};
use crate::table::Rows;
use rayon::prelude::*;

/// The predictions of all rows of a file.
#[derive(Debug, Clone, PartialEq)]
pub struct Predictions {
    /// Each row's number in the file, from 1.
    pub numbers: Vec<u64>,
    /// Each row's name, if a column names rows; else empty.
    pub ids: Vec<String>,
    /// What the model says, in the same order.
    pub predictions: Vec<Prediction>,
    /// Numbers and names of rows that the model can say nothing of: a value is missing.
    pub left_out: Vec<(u64, Option<String>)>,
}

impl Model {
    /// Predicts rows that were read by the model's schema.
    pub fn predict_rows(&self, rows: &Rows) -> Predictions {
        let encoded: Vec<&[f64]> = rows.iter().collect();
        Predictions {
            numbers: rows.numbers().to_vec(),
            ids: rows.ids().to_vec(),
            left_out: rows.left_out().to_vec(),
            predictions: encoded.into_par_iter().map(|r| self.predict(r)).collect(),
        }
    }

    /// A CSV file, a line for each row of the file that was read: row number or, under its own
    /// title, name; the number, under the title of the label; or class, and for each classifier its score and, for losses that model one, the
    /// probability of its class. Of rows that were left out the other cells are empty.
    pub fn predictions_csv(
        &self,
        all: &Predictions,
        id: Option<&str>,
    ) -> Result<Vec<u8>, csv::Error> {
        if self.is_numeric() {
            return self.numbers_csv(all, id);
        }
        let classes = self.classes();
        let mut out = csv::Writer::from_writer(Vec::new());
        let targets = || self.classifiers.iter().map(|c| c.class.as_str());
        let scores = targets().map(|class| format!("score:{class}"));
        let has_probability = self.loss.loss().probability(0.0).is_some();
        let named = targets().filter(|_| has_probability);
        let probabilities = named.map(|class| format!("probability:{class}"));
        let header = [id.unwrap_or("row").to_owned(), "class".to_owned()];
        let header = header.into_iter().chain(scores).chain(probabilities);
        let header: Vec<String> = header.collect();
        out.write_record(&header)?;
        let mut left_out = all.left_out.iter().peekable();
        let empty = |out: &mut csv::Writer<_>, (number, name): &(u64, Option<String>)| {
            let first = name.clone().unwrap_or_else(|| number.to_string());
            let rest = vec![String::new(); header.len() - 1];
            out.write_record(std::iter::once(first).chain(rest))
        };
        for (index, (number, p)) in all.numbers.iter().zip(&all.predictions).enumerate() {
            while let Some(row) = left_out.next_if(|row| row.0 < *number) {
                empty(&mut out, row)?;
            }
            let name = all.ids.get(index).cloned();
            let first = name.unwrap_or_else(|| number.to_string());
            let first = [first, classes[p.class as usize].clone()];
            let scores = p.scores.iter().map(f64::to_string);
            // With two classes there is one classifier, for the second class.
            let skip = classes.len() - self.classifiers.len();
            let probabilities = p.probabilities.iter().flatten().skip(skip);
            let numbers = scores.chain(probabilities.map(f64::to_string));
            out.write_record(first.into_iter().chain(numbers))?;
        }
        for row in left_out {
            empty(&mut out, row)?;
        }
        out.into_inner().map_err(|e| e.into_error().into())
    }

    fn numbers_csv(&self, all: &Predictions, id: Option<&str>) -> Result<Vec<u8>, csv::Error> {
        let mut out = csv::Writer::from_writer(Vec::new());
        out.write_record([id.unwrap_or("row"), self.schema.label().column()])?;
        let left_out = all.left_out.iter();
        let left_out = left_out.map(|(number, name)| (*number, name.clone(), String::new()));
        let told = all.numbers.iter().zip(&all.predictions).enumerate();
        let told = told.map(|(index, (number, prediction))| {
            let name = all.ids.get(index).cloned();
            (*number, name, prediction.scores[0].to_string())
        });
        let mut lines: Vec<(u64, Option<String>, String)> = told.chain(left_out).collect();
        lines.sort_by_key(|line| line.0);
        for (number, name, cell) in lines {
            out.write_record([name.unwrap_or_else(|| number.to_string()), cell])?;
        }
        out.into_inner().map_err(|e| e.into_error().into())
    }
}
