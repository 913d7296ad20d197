//! What columns mean: schema files, and a first proposal from the rows themselves.

use crate::data::{Columns, CsvFormat};
use crate::error::{Error, Remedy};
use heda_learn::infer;
use std::path::Path;

pub use heda_learn::infer::{SchemaProposal as Proposal, unconfirmed as marks};
pub use heda_learn::schema::{Kind as ColumnKind, Schema};

/// Reads a schema and refuses one that still holds what was read from rows, unless that is wanted.
///
/// # Errors
/// If the schema cannot be used, or is still marked. The error says what to do.
pub fn confirmed_schema(path: &Path, unconfirmed: bool) -> Result<(String, Schema), Error> {
    let (text, schema) = read(path)?;
    match marks(&text) {
        marks @ 1.. if !unconfirmed => Err(Error::input(format!(
            "{}: {marks} lines are still marked {}: what was read from rows is private",
            path.display(),
            infer::MARK
        ))
        .with_remedy(Remedy::ConfirmSchema)),
        _ => Ok((text, schema)),
    }
}

/// Reads a schema and the text of its file.
///
/// # Errors
/// If the schema cannot be used.
pub fn read(path: &Path) -> Result<(String, Schema), Error> {
    Schema::read_with_text(path).map_err(Error::input)
}

/// Looks at a table and proposes a schema for it: bounds and levels are read from the rows, and marked.
/// The label is the last column, or one with a usual name, if none is named.
///
/// # Errors
/// If the table cannot be read, or has no column that can be learned.
pub fn propose(path: &Path, label: Option<&str>, format: CsvFormat) -> Result<Proposal, Error> {
    infer::propose(path, label, format).map_err(Error::input)
}

/// The same for columns in memory; `name` is what the schema will be called.
///
/// # Errors
/// As [`propose`].
pub fn propose_columns(
    columns: &Columns,
    name: &str,
    label: Option<&str>,
) -> Result<Proposal, Error> {
    infer::propose_columns(columns, name, label).map_err(Error::input)
}
