//! Rows without labels: what a model predicts on.

use super::collect::{Collected, Purpose};
use super::csv::CsvSource;
use super::error::ReadError;
use super::memory::Columns;
use super::report::ReadReport;
use super::source::RowSource;
use super::{AnySource, TableReader, open};
use crate::data::Feature;
use std::io::Read;
use std::path::Path;

/// Encoded rows without labels.
#[derive(Debug, Clone, PartialEq)]
pub struct Rows {
    features: Vec<Feature>,
    width: usize,
    values: Vec<f64>,
    numbers: Vec<u64>,
    ids: Vec<String>,
    left_out: Vec<(u64, Option<String>)>,
}

impl TableReader<'_> {
    /// Reads a file for prediction. Columns that the schema does not know, and a label, are passed
    /// over; `id` names one that names the rows. Rows with a missing value that the schema drops
    /// or refuses are left out and listed.
    pub fn read_rows_file(
        &self,
        path: &Path,
        id: Option<&str>,
    ) -> Result<(Rows, ReadReport), ReadError> {
        match open(path, self.limits, self.format)? {
            AnySource::Csv(source) => self.read_rows(source, id),
            #[cfg(feature = "parquet")]
            AnySource::Parquet(source) => self.read_rows(source, id),
        }
    }

    /// Reads CSV for prediction, as [`TableReader::read_rows_file`] does.
    pub fn read_rows_csv(
        &self,
        input: impl Read,
        file: &str,
        id: Option<&str>,
    ) -> Result<(Rows, ReadReport), ReadError> {
        let bytes = self.limits.record_bytes;
        self.read_rows(CsvSource::open(input, file, bytes, self.format)?, id)
    }

    /// Reads columns in memory for prediction, as [`TableReader::read_rows_file`] does.
    pub fn read_rows_columns(
        &self,
        columns: &Columns,
        name: &str,
    ) -> Result<(Rows, ReadReport), ReadError> {
        self.read_rows(columns.source(name), None)
    }

    fn read_rows(
        &self,
        source: impl RowSource,
        id: Option<&str>,
    ) -> Result<(Rows, ReadReport), ReadError> {
        let mut table = Collected::new(self.schema, self.limits, Purpose::Prediction { id });
        table.collect(source)?;
        let rows = Rows {
            features: self.schema.features(),
            width: self.schema.width(),
            values: table.values,
            numbers: table.numbers,
            ids: table.ids,
            left_out: table.left_out,
        };
        Ok((rows, table.report))
    }
}

impl Rows {
    /// The attributes, in column order.
    pub fn features(&self) -> &[Feature] {
        &self.features
    }

    /// Number of encoded columns.
    pub fn width(&self) -> usize {
        self.width
    }

    /// The encoded rows, in the order of the file.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[f64]> {
        self.values.chunks_exact(self.width)
    }

    /// All values, row by row.
    pub fn values(&self) -> &[f64] {
        &self.values
    }

    /// For each row its number in the file, from 1 and without the header: rows may have been
    /// left out between them.
    pub fn numbers(&self) -> &[u64] {
        &self.numbers
    }

    /// For each row its name; empty if no column was to name them.
    pub fn ids(&self) -> &[String] {
        &self.ids
    }

    /// Numbers, and names where asked for, of the rows that were left out.
    pub fn left_out(&self) -> &[(u64, Option<String>)] {
        &self.left_out
    }
}
