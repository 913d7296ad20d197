//! What CSV and Parquet files have in common: a header, and rows of cells one after the other.

use super::error::{ReadError, ReadFault, TablePlace};
use crate::spelling::nearest_first;
use std::collections::HashMap;

/// One value as the file has it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Cell<'a> {
    /// A Parquet null. (CSV has markers for missing values instead.)
    Null,
    Text(&'a str),
    #[cfg(feature = "parquet")]
    Integer(i128),
    Number(f64),
    /// A date, or a date with a time, in days since 1970-01-01.
    #[cfg(feature = "parquet")]
    Days(f64),
}

/// What is called for each row: its place, and the wanted cells in the wanted order.
pub(crate) type Visit<'v> = dyn FnMut(TablePlace, &[Cell<'_>]) -> Result<(), ReadError> + 'v;

/// A file that is read once, row by row.
pub(crate) trait RowSource {
    /// Names the file in errors.
    fn file(&self) -> &str;

    /// Names of the columns.
    fn header(&self) -> &[String];

    /// Which columns have values that can be read.
    fn readable(&self) -> Vec<bool> {
        vec![true; self.header().len()]
    }

    /// How many rows there are, where that is known before they are read.
    fn rows(&self) -> Option<usize> {
        None
    }

    /// Where the header stands.
    fn header_place(&self) -> Option<TablePlace>;

    /// Shows the wanted columns (positions in the header) of all rows.
    fn visit(self, wanted: &[usize], visit: &mut Visit<'_>) -> Result<(), ReadError>;
}

/// A fault of the header. A column that is missing may be misspelt: then it says which there are.
pub(crate) fn header_error(source: &impl RowSource, column: &str, fault: ReadFault) -> ReadError {
    let missing = matches!(fault, ReadFault::MissingColumn | ReadFault::NoPersonColumn);
    let mut error = ReadError::new(source.file(), fault).column(column);
    if missing && !source.header().is_empty() {
        let names = source.header().iter().map(String::as_str);
        error = error.instead(nearest_first(column, names));
    }
    match source.header_place() {
        Some(place) => error.at(place),
        None => error,
    }
}

/// Finds each column of the header by its name; no name may come twice.
pub(crate) fn positions(source: &impl RowSource) -> Result<HashMap<String, usize>, ReadError> {
    let mut positions = HashMap::new();
    for (index, name) in source.header().iter().enumerate() {
        if positions.insert(name.clone(), index).is_some() {
            return Err(header_error(source, name, ReadFault::DuplicateColumn));
        }
    }
    Ok(positions)
}
