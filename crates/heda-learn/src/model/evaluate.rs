//! A model on rows whose class, or number, is known.

use super::{Model, Prediction};
use crate::data::Dataset;
use crate::metrics::{Confusion, auc, log_loss};
use crate::target;
use rayon::prelude::*;
use serde::Serialize;

/// How good a model is on labelled rows.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Evaluation {
    /// How many rows.
    pub rows: usize,
    /// Share of rows that are right.
    pub accuracy: Option<f64>,
    /// Share of the most frequent class.
    pub majority_accuracy: Option<f64>,
    /// Area under the ROC curve, for two classes.
    pub auc: Option<f64>,
    /// Mean −ln of the probability of the right class, for losses that model one.
    pub log_loss: Option<f64>,
    /// Names of the classes.
    pub classes: Vec<String>,
    /// Rows by actual (first index) and predicted class.
    pub confusion: Confusion,
}

/// How far a model's predictions are from the numbers of labelled rows, in their units.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Errors {
    /// How many rows.
    pub rows: u64,
    /// Root of the mean squared error.
    pub rmse: f64,
    /// Mean absolute error.
    pub mae: f64,
    /// Share of the numbers' variance that the model explains: 1 − Σ(error²)/Σ((y − mean)²), below
    /// nought if it is worse than the mean. `None` if the numbers do not vary.
    pub r2: Option<f64>,
}

impl Errors {
    /// From sums over rows: of squared and absolute errors, and of squared distances from the
    /// numbers' mean. `None` without rows.
    pub fn of_sums(rows: u64, squares: f64, absolutes: f64, variation: f64) -> Option<Self> {
        let count = rows as f64;
        (rows > 0).then(|| Self {
            rows,
            rmse: (squares / count).max(0.0).sqrt(),
            mae: absolutes / count,
            r2: (variation > 0.0).then(|| 1.0 - squares / variation),
        })
    }

    /// Of pairs of predicted and actual numbers.
    pub fn of(pairs: &[(f64, f64)]) -> Option<Self> {
        let mean = pairs.iter().map(|(_, y)| y).sum::<f64>() / pairs.len().max(1) as f64;
        let sum = |of: &dyn Fn(f64, f64) -> f64| pairs.iter().map(|&(z, y)| of(z, y)).sum();
        Self::of_sums(
            pairs.len() as u64,
            sum(&|z, y| (z - y).powi(2)),
            sum(&|z, y| (z - y).abs()),
            sum(&|_, y| (y - mean).powi(2)),
        )
    }
}

impl Model {
    /// Predicts numbers and compares with the labels of rows, which must be encoded by the model's
    /// schema. `None` without rows, or if the model predicts a class.
    pub fn errors(&self, data: &Dataset) -> Option<Errors> {
        let bounds = self.schema.label().number()?.bounds;
        let actual = |label: u32| bounds.lower() + bounds.range() * target::place(label);
        let labels = data.labels().iter().enumerate();
        let pairs = labels.map(|(row, label)| {
            let predicted = self.predict(data.row(row)).scores[0];
            (predicted, actual(*label))
        });
        Errors::of(&pairs.collect::<Vec<_>>())
    }

    /// Predicts rows and compares with their labels. The rows must be encoded by the model's
    /// schema.
    pub fn evaluate(&self, data: &Dataset) -> Evaluation {
        let predictions: Vec<Prediction> = (0..data.rows())
            .into_par_iter()
            .map(|row| self.predict(data.row(row)))
            .collect();
        let labels = data.labels();
        let predicted = predictions.iter().map(|p| p.class);
        let pairs = labels.iter().copied().zip(predicted);
        // Numbers are no classes: nothing of them can be counted.
        let pairs = pairs.filter(|_| !data.is_numeric() && !self.is_numeric());
        let confusion = Confusion::new(data.classes().len(), pairs);
        Evaluation {
            rows: data.rows(),
            accuracy: confusion.accuracy(),
            majority_accuracy: confusion.majority_accuracy(),
            auc: self.two_class_auc(&predictions, labels),
            log_loss: probability_of_actual(&predictions, labels).and_then(log_loss),
            classes: self.classes(),
            confusion,
        }
    }

    fn two_class_auc(&self, predictions: &[Prediction], labels: &[u32]) -> Option<f64> {
        if self.classifiers.len() != 1 || self.is_numeric() {
            return None;
        }
        let scores: Vec<f64> = predictions.iter().map(|p| p.scores[0]).collect();
        let positive: Vec<bool> = labels.iter().map(|&l| l == 1).collect();
        auc(&scores, &positive)
    }
}

fn probability_of_actual(predictions: &[Prediction], labels: &[u32]) -> Option<Vec<f64>> {
    let of_actual = |(p, &label): (&Prediction, &u32)| {
        let all = p.probabilities.as_ref()?;
        all.get(label as usize).copied()
    };
    predictions.iter().zip(labels).map(of_actual).collect()
}
