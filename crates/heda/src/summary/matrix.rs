//! More than two classes: which class the highest score names. Held-out rows are counted for one
//! model at a time under encryption, so this is known only to who may read them in clear.

use super::interval;
use heda_learn::model::Evaluation;
use serde::Serialize;

/// Held-out rows by actual and predicted class, counted in clear.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Matrix {
    /// Share of rows whose class has the highest score.
    pub accuracy: f64,
    /// Its 95 % interval, by Wilson.
    pub interval: Option<[f64; 2]>,
    /// `counts[actual][predicted]`, in the order of the classes.
    pub counts: Vec<Vec<u64>>,
}

impl Matrix {
    /// Of a model on rows in clear; `None` without rows.
    pub fn of(evaluation: &Evaluation) -> Option<Self> {
        let classes = 0..evaluation.classes.len();
        let row = |actual| {
            let predicted = classes.clone();
            predicted.map(move |predicted| evaluation.confusion.count(actual, predicted))
        };
        let counts: Vec<Vec<u64>> = classes
            .clone()
            .map(|actual| row(actual).collect())
            .collect();
        let right = classes.map(|class| counts[class][class]).sum();
        Some(Self {
            accuracy: evaluation.accuracy?,
            interval: interval(right, evaluation.confusion.total()),
            counts,
        })
    }

    /// Head and rows of a table.
    pub(crate) fn table(&self, classes: &[String]) -> (Vec<String>, Vec<Vec<String>>) {
        let head = std::iter::once("actual \\ predicted".to_owned());
        let rows = classes.iter().zip(&self.counts).map(|(name, counts)| {
            let counts = counts.iter().map(u64::to_string);
            std::iter::once(name.clone()).chain(counts).collect()
        });
        (
            head.chain(classes.iter().cloned()).collect(),
            rows.collect(),
        )
    }

    /// The table as lines of text.
    pub(crate) fn lines(&self, classes: &[String]) -> Vec<String> {
        let (head, rows) = self.table(classes);
        let width = |cell: &String| cell.chars().count();
        let first = classes.iter().map(width).max().unwrap_or(0).max(18);
        let others = classes.iter().map(width).max().unwrap_or(0).max(6);
        let line = |cells: &Vec<String>| {
            let rest = cells[1..].iter().map(|cell| format!("  {cell:>others$}"));
            format!("{:<first$}{}", cells[0], rest.collect::<String>())
        };
        std::iter::once(&head).chain(&rows).map(line).collect()
    }
}
