//! The model file: bounded, and checked before anything in it is believed.

use super::{Classifier, Model, OriginalUnits, Provenance, targets};
use crate::clip_range::ClipRange;
use crate::loss::LossKind;
use crate::schema::Schema;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// The version of the format.
pub const FORMAT: u32 = 1;
/// Files beyond this size are not read.
pub const LARGEST_FILE: u64 = 64 << 20;
/// How far coefficients in original units may be from the scaled ones, relatively.
const TOLERANCE: f64 = 1e-9;

/// Why a file is no model.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ModelError {
    /// The file cannot be read.
    #[error("{file}: cannot be read: {reason}")]
    File {
        /// The file.
        file: String,
        /// What the system says.
        reason: String,
    },
    /// The file is too large.
    #[error("{0}: larger than 64 MiB, no model is; check that it is a model file")]
    TooLarge(String),
    /// It is not JSON, or not of this form.
    #[error("{file}: line {line}, column {column}: {reason}; check that it is a model file")]
    Json {
        /// The file.
        file: String,
        /// Line, from 1.
        line: usize,
        /// Column, from 1.
        column: usize,
        /// What is wrong there.
        reason: String,
    },
    /// A version that this program does not know.
    #[error("model format {0}: this program reads format 1; use the version that wrote it")]
    Format(u32),
    /// Another number of classifiers than the label needs.
    #[error("{found} classifiers where the label needs {expected}")]
    Classifiers {
        /// How many the schema's label needs.
        expected: usize,
        /// How many there are.
        found: usize,
    },
    /// A classifier for another class.
    #[error("a classifier for class {found:?} where the schema has {expected:?}")]
    Class {
        /// The schema's class.
        expected: String,
        /// The classifier's class.
        found: String,
    },
    /// Another number of coefficients than the schema has columns.
    #[error("{found} coefficients for a bias and {columns} columns of the schema")]
    Coefficients {
        /// Columns of an encoded row.
        columns: usize,
        /// Coefficients.
        found: usize,
    },
    /// Another number of ends than the schema has columns.
    #[error("a reach of {found} columns for {columns} columns of the schema")]
    ClipRange {
        /// Columns of an encoded row.
        columns: usize,
        /// Pairs of ends.
        found: usize,
    },
    /// A coefficient is NaN or infinite.
    #[error("coefficient {0} is not a finite number")]
    NotFinite(usize),
    /// The two sets of coefficients contradict each other.
    #[error(
        "class {0:?}: coefficients in original units do not belong to the scaled ones; the file \
         was changed by hand"
    )]
    Units(String),
    /// A column whose ends are not in order, or not in [0, 1].
    #[error("the reach of column {0} is not between 0 and 1, the lower end first")]
    ClipRangeEnds(usize),
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ModelFile {
    format: u32,
    loss: LossKind,
    classifiers: Vec<Classifier>,
    /// On values scaled to [0, 1], a pair for each column of the encoded row.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reach: Option<ClipRange>,
    provenance: Provenance,
    schema: Schema,
}

/// The format number alone, so that a newer file is called newer and not malformed.
#[derive(Deserialize)]
struct FormatOnly {
    format: u32,
}

pub(super) fn check_betas(
    schema: &Schema,
    expected: usize,
    betas: &[Vec<f64>],
) -> Result<(), ModelError> {
    if betas.len() != expected {
        let found = betas.len();
        return Err(ModelError::Classifiers { expected, found });
    }
    let columns = schema.width();
    for beta in betas {
        if beta.len() != columns + 1 {
            let found = beta.len();
            return Err(ModelError::Coefficients { columns, found });
        }
        if let Some(at) = beta.iter().position(|b| !b.is_finite()) {
            return Err(ModelError::NotFinite(at));
        }
    }
    Ok(())
}

pub(super) fn check_reach(schema: &Schema, reach: Option<&ClipRange>) -> Result<(), ModelError> {
    let columns = schema.width();
    match reach.map_or(columns, |reach| reach.ends().len()) {
        found if found != columns => Err(ModelError::ClipRange { columns, found }),
        _ => Ok(()),
    }
}

impl Model {
    /// The file's text.
    pub fn to_json(&self) -> String {
        let file = ModelFile {
            format: FORMAT,
            loss: self.loss,
            classifiers: self.classifiers.clone(),
            reach: self.reach.clone(),
            provenance: self.provenance.clone(),
            schema: self.schema.clone(),
        };
        serde_json::to_string_pretty(&file).expect("a model has no maps with keys but text")
    }

    /// Reads a model; `name` is named in errors.
    pub fn from_json(text: &str, name: &str) -> Result<Self, ModelError> {
        let wrong = |e: serde_json::Error| ModelError::Json {
            file: name.to_owned(),
            line: e.line(),
            column: e.column(),
            reason: e.to_string(),
        };
        let FormatOnly { format } = serde_json::from_str(text).map_err(wrong)?;
        if format != FORMAT {
            return Err(ModelError::Format(format));
        }
        let file: ModelFile = serde_json::from_str(text).map_err(wrong)?;
        Self::checked(file)
    }

    /// Reads a model file.
    pub fn read(path: &Path) -> Result<Self, ModelError> {
        let name = path.display().to_string();
        let failed = |e: std::io::Error| ModelError::File {
            file: name.clone(),
            reason: e.to_string(),
        };
        let mut text = String::new();
        let file = File::open(path).map_err(failed)?;
        let read = file.take(LARGEST_FILE + 1).read_to_string(&mut text);
        if read.map_err(failed)? as u64 > LARGEST_FILE {
            return Err(ModelError::TooLarge(name));
        }
        Self::from_json(&text, &name)
    }

    fn checked(file: ModelFile) -> Result<Self, ModelError> {
        let classes = targets(&file.schema);
        let betas: Vec<Vec<f64>> = file.classifiers.iter().map(|c| c.scaled.clone()).collect();
        check_betas(&file.schema, classes.len(), &betas)?;
        check_reach(&file.schema, file.reach.as_ref())?;
        for (classifier, class) in file.classifiers.iter().zip(classes) {
            if classifier.class != class {
                return Err(ModelError::Class {
                    expected: class,
                    found: classifier.class.clone(),
                });
            }
            let derived = OriginalUnits::of(&classifier.scaled, &file.schema);
            if !agree(&derived, &classifier.original) {
                return Err(ModelError::Units(class));
            }
        }
        Ok(Self {
            loss: file.loss,
            schema: file.schema,
            classifiers: file.classifiers,
            reach: file.reach,
            provenance: file.provenance,
        })
    }
}

fn agree(a: &OriginalUnits, b: &OriginalUnits) -> bool {
    let close = |a: f64, b: f64| (a - b).abs() <= TOLERANCE * (1.0 + a.abs());
    let pairs = || a.coefficients.iter().zip(&b.coefficients);
    a.coefficients.len() == b.coefficients.len()
        && close(a.intercept, b.intercept)
        && pairs().all(|(a, b)| a.column == b.column && close(a.value, b.value))
}
