//! A model on rows whose class is known.

use super::{Model, Prediction};
use crate::data::Dataset;
use crate::metrics::{Confusion, auc, log_loss};
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

impl Model {
    /// Predicts rows and compares with their labels. The rows must be encoded by the model's
    /// schema.
    pub fn evaluate(&self, data: &Dataset) -> Evaluation {
        let predictions: Vec<Prediction> = (0..data.rows())
            .into_par_iter()
            .map(|row| self.predict(data.row(row)))
            .collect();
        let labels = data.labels();
        let predicted = predictions.iter().map(|p| p.class);
        let confusion = Confusion::new(data.classes().len(), labels.iter().copied().zip(predicted));
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
        if self.classifiers.len() != 1 {
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
