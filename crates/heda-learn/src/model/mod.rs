//! A trained model and its file.
//!
//! The file is JSON. It holds the schema, so that new rows are read as the training rows were, the
//! coefficients twice (on values scaled to [0, 1], which predict, and in original units, for
//! people), between which values columns count if not all do, and where the model comes from.

mod evaluate;
mod file;
mod predictions;
mod provenance;
#[cfg(test)]
mod tests;

pub use evaluate::{Errors, Evaluation};
pub use file::{FORMAT, LARGEST_FILE, ModelError};
pub use predictions::Predictions;
pub use provenance::{FeatureUse, Guarantee, Protection, Provenance, SpentOn, Unit};

use crate::clip_range::{ClipRange, score_within};
use crate::loss::LossKind;
use crate::schema::Schema;
use serde::{Deserialize, Serialize};

/// Coefficients of one class against the rest.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Classifier {
    /// The class that high scores stand for, or the column of a number.
    pub class: String,
    /// On values scaled to [0, 1]: bias first, then one a column of the encoded row.
    pub scaled: Vec<f64>,
    /// In the units of the file that was read.
    pub original: OriginalUnits,
}

/// Coefficients in original units: numbers as they are, ordinal levels by their position from 0,
/// one-hot levels as 0 or 1.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OriginalUnits {
    /// The score of a row of zeros.
    pub intercept: f64,
    /// What one unit of each column adds to the score.
    pub coefficients: Vec<NamedCoefficient>,
}

/// A column and its coefficient.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NamedCoefficient {
    /// `age`, or `workclass=Private`.
    pub column: String,
    /// What one unit adds to the score.
    pub value: f64,
}

impl OriginalUnits {
    /// z = β₀ + Σ β_j·(x_j − offset_j)/scale_j, sorted by x_j.
    fn of(scaled: &[f64], schema: &Schema) -> Self {
        let mut intercept = scaled[0];
        let columns = schema.encoded_columns();
        let coefficients = columns.into_iter().zip(&scaled[1..]).map(|(column, beta)| {
            let value = beta / column.scale;
            intercept -= value * column.offset;
            NamedCoefficient {
                column: column.name,
                value,
            }
        });
        let coefficients = coefficients.collect();
        Self {
            intercept,
            coefficients,
        }
    }
}

/// A trained model.
#[derive(Debug, Clone, PartialEq)]
pub struct Model {
    loss: LossKind,
    schema: Schema,
    classifiers: Vec<Classifier>,
    reach: Option<ClipRange>,
    provenance: Provenance,
}

/// What a model says about one row.
#[derive(Debug, Clone, PartialEq)]
pub struct Prediction {
    /// The class, an index into [`Model::classes`]; nought if a number is predicted.
    pub class: u32,
    /// The score of each classifier, or the number.
    pub scores: Vec<f64>,
    /// The probability of each class, for losses that model one. With more than two classes the
    /// probabilities of the classifiers, divided by their sum.
    pub probabilities: Option<Vec<f64>>,
}

impl Model {
    /// Puts a model together. `betas` are on values in [0, 1]: one for two classes (the second
    /// class against the first), one for a number, in its own units, otherwise one for every
    /// class.
    pub fn new(
        loss: LossKind,
        schema: Schema,
        betas: &[Vec<f64>],
        provenance: Provenance,
    ) -> Result<Self, ModelError> {
        let classes = targets(&schema);
        file::check_betas(&schema, classes.len(), betas)?;
        let classifiers = classes
            .into_iter()
            .zip(betas)
            .map(|(class, beta)| Classifier {
                class,
                scaled: beta.clone(),
                original: OriginalUnits::of(beta, &schema),
            });
        Ok(Self {
            loss,
            classifiers: classifiers.collect(),
            reach: None,
            schema,
            provenance,
        })
    }

    /// The same model, trained on values within this reach and therefore looking at no others.
    ///
    /// # Errors
    /// If it is not that of the schema's columns.
    pub fn with_reach(self, reach: ClipRange) -> Result<Self, ModelError> {
        file::check_reach(&self.schema, Some(&reach))?;
        Ok(Self {
            reach: Some(reach),
            ..self
        })
    }

    /// The loss that it minimises.
    pub fn loss(&self) -> LossKind {
        self.loss
    }

    /// The schema that rows must follow.
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// Between which values columns count, if not all do.
    pub fn reach(&self) -> Option<&ClipRange> {
        self.reach.as_ref()
    }

    /// One classifier for two classes, otherwise one a class.
    pub fn classifiers(&self) -> &[Classifier] {
        &self.classifiers
    }

    /// Where it comes from.
    pub fn provenance(&self) -> &Provenance {
        &self.provenance
    }

    /// Takes the guarantee away from a model that has none, and keeps the reason.
    pub fn withdraw_guarantee(&mut self, because: &str) {
        if self.provenance.privacy.take().is_some() {
            let notes = &mut self.provenance.notes;
            notes.insert("no_guarantee".to_owned(), because.to_owned());
        }
    }

    /// Whether it predicts a number.
    pub fn is_numeric(&self) -> bool {
        self.schema.label().number().is_some()
    }

    /// Names of the classes; none if it predicts a number.
    pub fn classes(&self) -> Vec<String> {
        self.schema.label().classes()
    }

    /// Predicts one encoded row.
    pub fn predict(&self, row: &[f64]) -> Prediction {
        let scores: Vec<f64> = self
            .classifiers
            .iter()
            .map(|c| score_within(&c.scaled, row, self.reach()))
            .collect();
        if self.is_numeric() {
            return Prediction {
                class: 0,
                scores,
                probabilities: None,
            };
        }
        let loss = self.loss.loss();
        let single: Option<Vec<f64>> = scores.iter().map(|&z| loss.probability(z)).collect();
        let (class, probabilities) = match scores[..] {
            [z] => (
                u32::from(z > loss.threshold()),
                single.map(|p| vec![1.0 - p[0], p[0]]),
            ),
            _ => (largest(&scores), single.map(normalised)),
        };
        Prediction {
            class,
            scores,
            probabilities,
        }
    }
}

/// The classes that have a classifier of their own, or the column of a number.
fn targets(schema: &Schema) -> Vec<String> {
    if schema.label().number().is_some() {
        return vec![schema.label().column().to_owned()];
    }
    let mut classes = schema.label().classes();
    if classes.len() == 2 {
        classes.remove(0);
    }
    classes
}

/// Index of the largest score, the first one if several are.
fn largest(scores: &[f64]) -> u32 {
    let mut best = 0;
    for (index, &z) in scores.iter().enumerate() {
        if z > scores[best] {
            best = index;
        }
    }
    best as u32
}

fn normalised(probabilities: Vec<f64>) -> Vec<f64> {
    let sum: f64 = probabilities.iter().sum();
    // All of them can underflow to zero; then nothing is known.
    match sum > 0.0 {
        true => probabilities.into_iter().map(|p| p / sum).collect(),
        false => vec![1.0 / probabilities.len() as f64; probabilities.len()],
    }
}
