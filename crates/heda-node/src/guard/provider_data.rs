//! The provider's rows, read once by the schema that everyone agreed on.

use crate::config::ProviderConfig;
use crate::guard::policy::DataFacts;
use crate::system::hex;
use heda_job::description::Share;
use heda_learn::data::Dataset;
use heda_learn::schema::{Schema, SchemaError};
use heda_learn::table::{ReadError, TableReader};
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;
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
    persons: Option<Arc<[u32]>>,
    warnings: Vec<String>,
}

impl ProviderData {
    /// Reads what a configuration names.
    pub fn load(config: &ProviderConfig) -> Result<Self, DataError> {
        let schema = Schema::read(&config.schema)?;
        let reader = TableReader::new(&schema).with_format(config.csv);
        let (rows, persons, report) = match &config.person {
            Some(person) => {
                let (rows, persons, report) = reader.read_persons(&config.data, person)?;
                (rows, Some(Arc::from(persons)), report)
            }
            None => {
                let (rows, report) = reader.read_file(&config.data)?;
                (rows, None, report)
            }
        };
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
            digest: digest(&rows, persons.as_deref()),
            persons,
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

    /// Whose row each one is, by number, if that is known.
    pub fn persons(&self) -> Option<&Arc<[u32]>> {
        self.persons.as_ref()
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

    /// Digest of the encoded rows and labels. It stays with the provider.
    pub fn digest(&self) -> &str {
        &self.digest
    }

    /// What the operator should know about the file.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// What a policy may know, when this share of rows is held out.
    pub fn facts(&self, share: Share) -> DataFacts {
        let persons = self.persons.as_deref().map(|persons| {
            let all: BTreeSet<&u32> = persons.iter().collect();
            share.of(all.len() as u64)
        });
        DataFacts {
            persons_held_out: persons.filter(|_| share.is_some()),
            ..DataFacts::of_schema(&self.schema, self.rows.rows() as u64, share)
        }
    }
}

fn digest(rows: &Dataset, persons: Option<&[u32]>) -> String {
    let mut hash = Sha256::new();
    for value in rows.values() {
        hash.update(value.to_le_bytes());
    }
    for label in rows.labels() {
        hash.update(label.to_le_bytes());
    }
    for person in persons.into_iter().flatten() {
        hash.update(person.to_le_bytes());
    }
    hex(&hash.finalize())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn config(folder: &Path, person: &str) -> ProviderConfig {
        let text = include_str!("../../tests/files/provider.toml");
        let text = text.replacen("data_set", &format!("person = \"{person}\"\ndata_set"), 1);
        std::fs::write(folder.join("provider.toml"), text).unwrap();
        let schema = "format = 1\nname = \"w\"\nignore = [\"patient_id\", \"bed\"]\n[label]\n\
            column = \"ill\"\nclasses = [\"no\", \"yes\"]\npositive = \"yes\"\n[[column]]\nname = \"age\"\n\
            kind = \"numeric\"\nbounds = [0, 120]\n";
        let mut config = ProviderConfig::load(&folder.join("provider.toml")).unwrap();
        config.schema = folder.join("schema.toml");
        config.data = folder.join("rows.csv");
        config.allowed.clear();
        std::fs::write(&config.schema, schema).unwrap();
        let rows = "patient_id,bed,age,ill\nP7,1,30,no\nP9,,40,yes\nP7,2,50,no\n";
        std::fs::write(&config.data, rows).unwrap();
        config
    }

    #[test]
    fn persons_are_known_or_the_data_are_not_read() {
        let folder = tempfile::tempdir().unwrap();
        let by_person = ProviderData::load(&config(folder.path(), "patient_id")).unwrap();
        assert_eq!(by_person.persons().unwrap()[..], [0, 1, 0]);
        // Two persons with three rows.
        let half = Share::new(0.5).unwrap();
        assert_eq!(by_person.facts(half).persons_held_out, Some(1));
        assert_eq!(by_person.facts(Share::NONE).persons_held_out, None);
        let by_row = ProviderData::load(&ProviderConfig {
            person: None,
            ..config(folder.path(), "patient_id")
        });
        let by_row = by_row.unwrap();
        assert!(by_row.persons().is_none());
        assert_eq!(by_row.facts(half).persons_held_out, None);
        // A job cannot go on when whose row it is has become another question.
        assert_ne!(by_person.digest(), by_row.digest());
        for (person, words) in [("nobody", "no such column"), ("bed", "no person is named")] {
            let error = ProviderData::load(&config(folder.path(), person)).unwrap_err();
            assert!(error.to_string().contains(words), "{error}");
        }
    }
}
