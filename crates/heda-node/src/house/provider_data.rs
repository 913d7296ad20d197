//! The provider's rows, read once by the schema that everyone agreed on.

use crate::config::ProviderConfig;
use crate::house::policy::DataFacts;
use crate::system::hex;
use heda_learn::data::Dataset;
use heda_learn::schema::{Schema, SchemaError};
use heda_learn::table::{ReadError, TableReader};
use sha2::{Digest, Sha256};
use std::sync::Arc;

/// Why there are no rows.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DataError {
    /// The schema cannot be used.
    #[error(transparent)]
    Schema(#[from] SchemaError),
    /// The rows cannot be read, or do not fit the schema.
    #[error(transparent)]
    Rows(#[from] ReadError),
    /// A data user is held to columns that do not exist.
    #[error(
        "the [[allow]] entry of {peer} names the column {column:?}, which the schema does not \
         have; correct its `columns`"
    )]
    Columns {
        /// Whose entry.
        peer: String,
        /// Which column.
        column: String,
    },
}

impl DataError {
    /// In words that hold no value of a row.
    pub fn for_logs(&self) -> String {
        match self {
            Self::Rows(error) => error.without_value(),
            other => other.to_string(),
        }
    }
}

/// Rows and what is public about them.
#[derive(Debug, Clone)]
pub struct ProviderData {
    rows: Arc<Dataset>,
    schema: Arc<Schema>,
    fingerprint: String,
    digest: String,
    warnings: Vec<String>,
}

impl ProviderData {
    /// Reads what a configuration names.
    pub fn load(config: &ProviderConfig) -> Result<Self, DataError> {
        let schema = Schema::read(&config.schema)?;
        let reader = TableReader::new(&schema).with_format(config.csv);
        let (rows, report) = reader.read_file(&config.data)?;
        for peer in &config.allowed {
            let known = |name: &str| schema.columns().iter().any(|c| c.name() == name);
            let mut columns = peer.columns.iter().flatten();
            if let Some(column) = columns.find(|column| !known(column)) {
                return Err(DataError::Columns {
                    peer: peer.name.to_string(),
                    column: column.clone(),
                });
            }
        }
        Ok(Self {
            digest: digest(&rows),
            rows: Arc::new(rows),
            fingerprint: schema.fingerprint().to_string(),
            schema: Arc::new(schema),
            warnings: report.warnings(),
        })
    }

    /// The rows.
    pub fn dataset(&self) -> &Arc<Dataset> {
        &self.rows
    }

    /// How many rows there are.
    pub fn rows(&self) -> usize {
        self.rows.rows()
    }

    /// The schema that encoded the rows.
    pub fn schema(&self) -> &Arc<Schema> {
        &self.schema
    }

    /// Fingerprint of the schema, hexadecimal.
    pub fn fingerprint(&self) -> &str {
        &self.fingerprint
    }

    /// Digest of the encoded rows and labels. It stays in the house.
    pub fn digest(&self) -> &str {
        &self.digest
    }

    /// What the operator should know about the file.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// What a policy may know, when this share of rows is held out.
    pub fn facts(&self, holdout_permille: u32) -> DataFacts {
        let rows = self.rows.rows() as u64;
        let held_out = rows * u64::from(holdout_permille.min(1000)) / 1000;
        let features = self.rows.features();
        DataFacts {
            schema: self.fingerprint.clone(),
            features: features.iter().map(|f| f.name.clone()).collect(),
            widths: features.iter().map(|f| f.columns.len()).collect(),
            training_rows: rows - held_out,
            held_out: (holdout_permille > 0).then_some(held_out),
        }
    }
}

fn digest(rows: &Dataset) -> String {
    let mut hash = Sha256::new();
    for value in rows.values() {
        hash.update(value.to_le_bytes());
    }
    for label in rows.labels() {
        hash.update(label.to_le_bytes());
    }
    hex(&hash.finalize())
}
