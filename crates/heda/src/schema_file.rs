//! Schema files whose marks are gone.

use crate::failure::Failure;
use heda_learn::infer;
use heda_learn::schema::Schema;
use std::path::Path;

/// Reads a schema and refuses one that still holds what was read from rows, unless that is wanted.
///
/// # Errors
/// If the schema cannot be used, or is still marked. The error says what to do.
pub fn confirmed_schema(path: &Path, unconfirmed: bool) -> Result<(String, Schema), Failure> {
    let (text, schema) = Schema::read_with_text(path).map_err(Failure::input)?;
    match infer::unconfirmed(&text) {
        marks @ 1.. if !unconfirmed => Err(Failure::input(format!(
            "{}: {marks} lines are still marked {}: what was read from rows is private. Replace it \
             by what is publicly known and delete the marks, or say --unconfirmed",
            path.display(),
            infer::MARK
        ))),
        _ => Ok((text, schema)),
    }
}
