//! What happened to the rows on their way in.

use crate::schema::Schema;
use serde::Serialize;

/// Counts over all rows of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ReadReport {
    /// Rows in the file.
    pub rows_read: u64,
    /// Rows left out by a rule for missing values.
    pub rows_dropped: u64,
    /// Rows without a label.
    pub labels_missing: u64,
    /// Numeric labels moved to the nearer bound.
    #[serde(skip_serializing_if = "is_nought")]
    pub labels_clipped: u64,
    /// Counts for each column of the schema, in its order.
    pub columns: Vec<ColumnReport>,
}

/// Counts for one column.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ColumnReport {
    /// Name of the column.
    pub name: String,
    /// Missing values.
    pub missing: u64,
    /// Numbers moved to the nearer bound.
    pub clipped: u64,
}

impl ReadReport {
    pub(super) fn new(schema: &Schema) -> Self {
        let column = |name: &str| ColumnReport {
            name: name.to_owned(),
            missing: 0,
            clipped: 0,
        };
        Self {
            rows_read: 0,
            rows_dropped: 0,
            labels_missing: 0,
            labels_clipped: 0,
            columns: schema.columns().iter().map(|c| column(c.name())).collect(),
        }
    }

    /// What the owner of the table should know, a line each; empty if nothing happened.
    pub fn warnings(&self) -> Vec<String> {
        self.warnings_with("dropped")
    }

    /// The same for rows that are predicted.
    pub fn warnings_of_prediction(&self) -> Vec<String> {
        self.warnings_with("without a prediction, because a value is missing")
    }

    fn warnings_with(&self, dropped: &str) -> Vec<String> {
        let rows = self.rows_read;
        let mut warnings = Vec::new();
        if self.rows_dropped > 0 {
            warnings.push(format!("{} of {rows} rows {dropped}", self.rows_dropped));
        }
        if self.labels_missing > 0 {
            warnings.push(format!(
                "{} of {rows} rows have no label",
                self.labels_missing
            ));
        }
        if self.labels_clipped > 0 {
            warnings.push(format!(
                "{} of {rows} labels clipped to the bounds",
                self.labels_clipped
            ));
        }
        for ColumnReport {
            name,
            missing,
            clipped,
        } in &self.columns
        {
            if *missing > 0 {
                warnings.push(format!(
                    "column `{name}`: {missing} of {rows} values missing"
                ));
            }
            if *clipped > 0 {
                warnings.push(format!(
                    "column `{name}`: {clipped} of {rows} values clipped to the bounds"
                ));
            }
        }
        warnings
    }
}

fn is_nought(count: &u64) -> bool {
    *count == 0
}
