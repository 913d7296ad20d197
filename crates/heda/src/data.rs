//! Rows: tables in CSV and Parquet, read by a schema, and the bundled data sets.

pub use heda_learn::bundled::{Bundle, Coding};
pub use heda_learn::data::Dataset;
pub use heda_learn::table::{
    Columns, CsvFormat, ReadReport, SeparatorMark, TableReader, TextEncoding, Values,
};

use crate::error::Error;
use crate::schema::Schema;
use std::path::Path;

/// Reads a CSV or Parquet file by a schema, and says what happened to its rows on the way.
///
/// # Errors
/// If the file does not fit the schema. The error names the place and the remedy.
pub fn read(
    path: &Path,
    schema: &Schema,
    format: CsvFormat,
) -> Result<(Dataset, ReadReport), Error> {
    let reader = TableReader::new(schema).with_format(format);
    reader.read_file(path).map_err(Error::input)
}
