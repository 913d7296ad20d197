//! Why a table cannot be read, where, and what to do.

use crate::data::RowsError;
use std::fmt;

/// Where in a file something lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TablePlace {
    /// A line of a CSV file, from 1 (the header is line 1).
    Line(u64),
    /// A row of a Parquet file, from 1.
    Row(u64),
}

impl fmt::Display for TablePlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line(line) => write!(f, "line {line}"),
            Self::Row(row) => write!(f, "row {row}"),
        }
    }
}

/// A fault and its place.
#[derive(Debug, Clone, PartialEq)]
pub struct ReadError {
    file: String,
    place: Option<TablePlace>,
    column: Option<String>,
    /// The columns that the file has, the nearest name first, where one is missing.
    instead: Option<Box<str>>,
    // Boxed: errors travel through every function that reads.
    fault: Box<ReadFault>,
}

/// What is wrong with a table. Every message ends with the remedy.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ReadFault {
    /// The file cannot be read.
    #[error("cannot be read ({0}); check the path and its permissions")]
    File(String),
    /// Nothing at all, or a header without rows.
    #[error("no rows; give a file with a header line and at least one row")]
    Empty,
    /// Every row was left out by a rule of the schema.
    #[error("all {0} rows were dropped for missing values; choose another `missing` rule")]
    AllDropped(u64),
    /// Two columns of the same name.
    #[error("the header has this column twice; rename or remove one of them")]
    DuplicateColumn,
    /// A column of the schema that the file lacks.
    #[error("the file has no such column; add it or correct its name in the schema")]
    MissingColumn,
    /// The column that says whose row it is, which the file lacks.
    #[error("the file has no such column; correct `person` or add the column")]
    NoPersonColumn,
    /// A row that nobody is named for.
    #[error("no person is named for this row; fill it in, a person's rows must be known")]
    NoPerson,
    /// A column of the file that the schema does not know.
    #[error("the schema does not mention this column; describe it or list it under `ignore`")]
    UnknownColumn,
    /// A row of another length than the header.
    #[error("{found} fields where the header has {expected}; check separators and quotes")]
    FieldCount {
        /// Fields in the header.
        expected: usize,
        /// Fields in the row.
        found: usize,
    },
    /// A column in memory that is shorter than another one.
    #[error("this column ends here and others go on; give all columns the same length")]
    ColumnLength,
    /// A row longer than the limit.
    #[error("a row of more than {0} bytes; look for an unclosed quote or a missing line break")]
    RecordTooLong(usize),
    /// Bytes that are no text.
    #[error("not UTF-8; convert the file to UTF-8, or say that it is in another encoding")]
    Utf8,
    /// Text in an encoding that is not read.
    #[error("the file is in {0}; save it as UTF-8 (in Excel: \"CSV UTF-8\")")]
    OtherEncoding(&'static str),
    /// A zip archive, such as an Excel workbook.
    #[error("a zip archive, perhaps an Excel workbook; save the table as CSV or Parquet")]
    Archive,
    /// Bytes that no text has.
    #[error("no text, and no Parquet, gzip or zstd either; give a table as CSV or Parquet")]
    Binary,
    /// Something else where a number should be.
    #[error("{0:?} is not a number; correct it or list it under `missing_markers`")]
    NotANumber(String),
    /// Something else where a date should be.
    #[error(
        "{0:?} is no date such as 2024-12-31 or 31.12.2024; correct it or list it under \
         `missing_markers`"
    )]
    NotADate(String),
    /// NaN or infinity.
    #[error("{0} is not a finite number; correct it or list it under `missing_markers`")]
    NotFinite(String),
    /// A number outside the bounds, where the schema refuses it.
    #[error(
        "{value} is outside the bounds [{lower}, {upper}]; correct it, widen the bounds or \
         choose `outside = \"clip\"`"
    )]
    OutsideBounds {
        /// The number, or the date.
        value: String,
        /// The lower bound.
        lower: String,
        /// The upper bound.
        upper: String,
    },
    /// A value that is none of the column's levels.
    #[error("{0:?} is none of the levels; correct it or add it to `levels`")]
    UnknownLevel(String),
    /// A label that is no class.
    #[error("{0:?} is none of the classes; correct it or add it to `classes`")]
    UnknownClass(String),
    /// A missing value, where the schema refuses it.
    #[error("missing value; fill it in or give the column a `missing` rule")]
    Missing,
    /// All rows have the same class.
    #[error("all rows are of class {0:?}; a classifier needs rows of at least two classes")]
    OneClass(String),
    /// All rows have the same number as their label.
    #[error("all rows have the same label; there is nothing to learn from it")]
    OneNumber,
    /// The table would take too much memory.
    #[error("more than {0} encoded values; split the file or encode with fewer columns")]
    TooLarge(usize),
    /// Not a Parquet file, or a damaged one.
    #[error("not a sound Parquet file ({0}); write it again")]
    Parquet(String),
    /// A Parquet file, and a program that was built without them.
    #[error("a Parquet file, and this program was built without feature `parquet`; give CSV")]
    NoParquet,
    /// A Parquet type that has no meaning here.
    #[error(
        "columns of type {0} are not supported; store numbers, dates, strings or booleans, or \
         list the column under `ignore`"
    )]
    UnsupportedType(String),
    /// A Parquet column that is packed in a way that is not read.
    #[error("packed by {0}, which is not read here; write the file with snappy, gzip, lz4 or zstd")]
    UnsupportedCodec(String),
    /// A zstd file, and a program that was built without it.
    #[error("a zstd file, and this program was built without feature `parquet`; give gzip or CSV")]
    NoZstd,
    /// The label that was named, or the last column, has too many values to be a class.
    #[error(
        "more than {0} different values cannot be classes, and they are no numbers; name the label column"
    )]
    TooManyClasses(usize),
    /// No schema fits the file.
    #[error("no schema can be proposed: {0}; write one by hand")]
    NoProposal(String),
    /// Encoded rows that contradict the schema: a defect of this library.
    #[error(transparent)]
    Dataset(#[from] RowsError),
}

impl ReadError {
    pub(crate) fn new(file: &str, fault: ReadFault) -> Self {
        Self {
            file: file.to_owned(),
            place: None,
            column: None,
            instead: None,
            fault: Box::new(fault),
        }
    }

    pub(crate) fn at(mut self, place: TablePlace) -> Self {
        self.place = Some(place);
        self
    }

    pub(crate) fn column(mut self, column: &str) -> Self {
        self.column = Some(shorten(column));
        self
    }

    pub(crate) fn instead(mut self, columns: String) -> Self {
        self.instead = Some(columns.into());
        self
    }

    /// What is wrong.
    pub fn fault(&self) -> &ReadFault {
        &self.fault
    }

    /// File, place, column and kind of fault, without the value that is at fault and without the names of
    /// other columns: for logs.
    pub fn without_value(&self) -> String {
        let kind = match &*self.fault {
            ReadFault::NotANumber(_) | ReadFault::NotFinite(_) => "the value is not a number",
            ReadFault::NotADate(_) => "the value is no date",
            ReadFault::OutsideBounds { .. } => "the value is outside the bounds",
            ReadFault::UnknownLevel(_) => "the value is none of the levels",
            ReadFault::UnknownClass(_) => "the value is none of the classes",
            fault => return format!("{}{fault}", self.whereabouts()),
        };
        format!(
            "{}{kind}; `heda provider check` shows it",
            self.whereabouts()
        )
    }

    fn whereabouts(&self) -> String {
        let file = &self.file;
        match (self.place, &self.column) {
            (Some(place), Some(column)) => format!("{file}: {place}, column `{column}`: "),
            (Some(place), None) => format!("{file}: {place}: "),
            (None, Some(column)) => format!("{file}: column `{column}`: "),
            (None, None) => format!("{file}: "),
        }
    }

    /// The line or row.
    pub fn place(&self) -> Option<TablePlace> {
        self.place
    }

    /// Name of the column.
    pub fn column_name(&self) -> Option<&str> {
        self.column.as_deref()
    }
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.whereabouts(), self.fault)?;
        match &self.instead {
            Some(columns) => write!(f, "; the file has {columns}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for ReadError {}

/// Enough of a text to recognise it, whatever its length.
pub(crate) fn shorten(text: &str) -> String {
    const KEPT: usize = 60;
    match text.char_indices().nth(KEPT) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logs_get_the_place_and_not_the_value() {
        let faults = [
            ReadFault::NotANumber("4711".into()),
            ReadFault::NotFinite("4711".into()),
            ReadFault::UnknownLevel("4711".into()),
            ReadFault::UnknownClass("4711".into()),
            ReadFault::OutsideBounds {
                value: "4711".into(),
                lower: "0".into(),
                upper: "1".into(),
            },
        ];
        for fault in faults {
            let error = ReadError::new("ward.csv", fault)
                .at(TablePlace::Line(17))
                .column("age");
            assert!(error.to_string().contains("4711"));
            let logged = error.without_value();
            assert!(logged.starts_with("ward.csv: line 17, column `age`: the value is"));
            assert!(!logged.contains("4711"), "{logged}");
        }
        let missing = ReadError::new("ward.csv", ReadFault::Missing);
        assert_eq!(missing.without_value(), missing.to_string());
    }
}
