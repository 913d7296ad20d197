//! What is wrong with a schema, where, and what to do.

use super::{
    MAX_COLUMNS, MAX_ENCODED_COLUMNS, MAX_LEVELS, MAX_MARKERS, MAX_NAME_BYTES, MAX_SCHEMA_BYTES,
    Typical,
};
use std::fmt;

/// A fault and its place.
#[derive(Debug, Clone, PartialEq)]
pub struct SchemaError {
    file: Option<String>,
    line_and_column: Option<(usize, usize)>,
    fault: SchemaFault,
}

/// What is wrong with a schema. Every message ends with the remedy.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum SchemaFault {
    /// The file cannot be read.
    #[error("cannot be read ({0}); check the path and its permissions")]
    File(String),
    /// The file is larger than any sensible schema.
    #[error("larger than {MAX_SCHEMA_BYTES} bytes; is this the data instead of the schema?")]
    TooLarge,
    /// The file is not UTF-8.
    #[error("line {line} is not UTF-8; save the schema as UTF-8")]
    Utf8 {
        /// The first wrong line, from 1.
        line: usize,
    },
    /// Not TOML, or a field that does not exist, is missing or has the wrong type.
    #[error("{0}; docs/reference.md lists every key")]
    Syntax(String),
    /// A version of the format that this build does not know.
    #[error("format {0} is not known here; write `format = 1` or use a newer heda")]
    Format(u32),
    /// A name that cannot be used.
    #[error(
        "{what} {name:?} cannot be used; names have 1 to {MAX_NAME_BYTES} bytes, no control \
         characters, and no space at either end"
    )]
    Name {
        /// What is named.
        what: &'static str,
        /// The name, shortened.
        name: String,
    },
    /// There is nothing to learn from.
    #[error("no columns; describe each attribute in a [[column]]")]
    NoColumns,
    /// More columns than are supported.
    #[error("{0} columns; at most {MAX_COLUMNS} are supported")]
    TooManyColumns(usize),
    /// More missing markers than are supported.
    #[error("{0} missing markers; at most {MAX_MARKERS} are supported")]
    TooManyMarkers(usize),
    /// The encoded row would be too wide.
    #[error("{0} encoded columns; at most {MAX_ENCODED_COLUMNS}: group rare levels")]
    TooWide(usize),
    /// The same column twice.
    #[error("column `{0}` is described twice; remove one of them")]
    DuplicateColumn(String),
    /// The label is listed among the attributes.
    #[error("column `{0}` is the label and cannot be learned from; remove its [[column]]")]
    LabelAsFeature(String),
    /// A column is both used and ignored.
    #[error("column `{0}` is used and cannot be ignored; take it out of `ignore`")]
    IgnoredButUsed(String),
    /// A field that the kind of column requires.
    #[error("column `{column}`: a {kind} column needs `{field}`; add it")]
    FieldNeeded {
        /// The column.
        column: String,
        /// Its kind.
        kind: &'static str,
        /// The field.
        field: &'static str,
    },
    /// A field that has no meaning for the kind of column.
    #[error("column `{column}`: `{field}` means nothing for a {kind} column; remove it")]
    FieldUnused {
        /// The column.
        column: String,
        /// Its kind.
        kind: &'static str,
        /// The field.
        field: &'static str,
    },
    /// Not a pair.
    #[error("column `{column}`: `bounds` are two numbers; write [lower, upper]")]
    BoundsCount {
        /// The column.
        column: String,
    },
    /// Lower bound not below the upper bound.
    #[error(
        "column `{column}`: bounds [{lower}, {upper}] are reversed or empty; write [lower, upper] with lower < upper"
    )]
    BoundsReversed {
        /// The column.
        column: String,
        /// The first bound.
        lower: f64,
        /// The second bound.
        upper: f64,
    },
    /// A bound that is not a finite number.
    #[error("column `{column}`: bounds must be finite and not too far apart; state real limits")]
    BoundsNotFinite {
        /// The column.
        column: String,
    },
    /// Mean and deviation that no numbers within the bounds have.
    #[error(
        "column `{column}`: no numbers within its bounds have mean {} and deviation {}; write \
         typical = {{ mean = ..., deviation = ... }} in the units of the bounds, the deviation above 0",
        typical.mean, typical.deviation
    )]
    TypicalImpossible {
        /// The column.
        column: String,
        /// What it says.
        typical: Typical,
    },
    /// Something else where a date should be.
    #[error("column `{column}`: {text:?} is no date; write it as \"2024-12-31\", in quotes")]
    NotADate {
        /// The column.
        column: String,
        /// What stands there, shortened.
        text: String,
    },
    /// Fewer than two levels.
    #[error(
        "column `{column}`: {found} levels say nothing; list at least two or ignore the column"
    )]
    TooFewLevels {
        /// The column.
        column: String,
        /// How many there are.
        found: usize,
    },
    /// More levels than are supported.
    #[error("column `{column}`: {found} levels; at most {MAX_LEVELS}: group rare levels")]
    TooManyLevels {
        /// The column.
        column: String,
        /// How many there are.
        found: usize,
    },
    /// The same level twice.
    #[error("column `{column}`: level {level:?} is listed twice; remove one of them")]
    DuplicateLevel {
        /// The column.
        column: String,
        /// The level.
        level: String,
    },
    /// A level that is read as "missing", so that no row can ever have it.
    #[error(
        "column `{column}`: level {level:?} is a missing marker too; write \
         `missing = {{ level = {level:?} }}` or take it out of one of the lists"
    )]
    LevelIsMarker {
        /// The column.
        column: String,
        /// The level.
        level: String,
    },
    /// A rule for missing values that names no level of the column.
    #[error("column `{column}`: `missing` names {level:?}, which is not among the levels; add it")]
    MissingLevelUnknown {
        /// The column.
        column: String,
        /// The level.
        level: String,
    },
    /// A replacement outside the bounds.
    #[error("column `{column}`: `missing` gives {value}, which is outside the bounds; correct it")]
    MissingValueOutside {
        /// The column.
        column: String,
        /// The number.
        value: f64,
    },
    /// A rule for missing values that does not fit the kind of column.
    #[error(
        "column `{column}`: this `missing` does not fit; a numeric column takes \
         `{{ value = NUMBER }}`, the others `{{ level = \"...\" }}` or `{{ value = \"LEVEL\" }}`"
    )]
    MissingMisfit {
        /// The column.
        column: String,
    },
    /// Fewer than two classes.
    #[error(
        "the label has {0} classes; list at least two in `classes`, or write kind = \"numeric\""
    )]
    TooFewClasses(usize),
    /// More classes than are supported.
    #[error(
        "the label has {0} classes; at most {MAX_LEVELS}: of a number write kind = \"numeric\""
    )]
    TooManyClasses(usize),
    /// The same class twice.
    #[error("class {0:?} is listed twice; remove one of them")]
    DuplicateClass(String),
    /// A class that is read as "missing".
    #[error("class {0:?} is a missing marker too; take it out of one of the lists")]
    ClassIsMarker(String),
    /// Two classes, and none is positive.
    #[error("two classes need a `positive` one; name it in [label]")]
    NoPositive,
    /// A positive value that is no class.
    #[error("positive value {0:?} is not among `classes`; correct it or list it")]
    PositiveUnknown(String),
    /// No class is left on the negative side, or `positive` is an empty list.
    #[error("`positive` must name some of the classes and not all; correct the list")]
    PositiveNotAPart,
}

impl SchemaError {
    pub(super) fn new(fault: SchemaFault) -> Self {
        Self {
            file: None,
            line_and_column: None,
            fault,
        }
    }

    pub(super) fn in_file(self, file: &str) -> Self {
        Self {
            file: Some(file.to_owned()),
            ..self
        }
    }

    pub(super) fn at_offset(self, text: &str, offset: Option<usize>) -> Self {
        let before = offset.and_then(|offset| text.get(..offset));
        let line_and_column = before.map(|before| {
            let line_start = before.rfind('\n').map_or(0, |at| at + 1);
            let line = before.matches('\n').count() + 1;
            (line, before[line_start..].chars().count() + 1)
        });
        Self {
            line_and_column,
            ..self
        }
    }

    /// What is wrong.
    pub fn fault(&self) -> &SchemaFault {
        &self.fault
    }

    /// Line and column in the file, from 1, where known.
    pub fn line_and_column(&self) -> Option<(usize, usize)> {
        self.line_and_column
    }
}

impl fmt::Display for SchemaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(file) = &self.file {
            write!(f, "{file}: ")?;
        }
        if let Some((line, column)) = self.line_and_column {
            write!(f, "line {line}, column {column}: ")?;
        }
        write!(f, "{}", self.fault)
    }
}

impl std::error::Error for SchemaError {}
