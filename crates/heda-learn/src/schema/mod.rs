//! The schema: what the columns of a table mean, public and agreed by all parties.
//!
//! A schema is written in TOML (`docs/schema.md` is the reference). Its bounds and levels are
//! public knowledge, never read from private rows: scaling by them reveals nothing.

mod check;
mod error;
mod fingerprint;
mod label;
mod raw;
mod typical;

pub(crate) use check::is_usable_name;
pub use error::{SchemaError, SchemaFault};
pub use fingerprint::SchemaFingerprint;
pub use label::{Label, LabelNumber};
pub use typical::Typical;

use crate::data::Feature;
use crate::reference::FileKeys;
use std::path::Path;

/// Largest schema file that is read, in bytes.
pub const MAX_SCHEMA_BYTES: usize = 4 << 20;
/// Most columns of a schema.
pub const MAX_COLUMNS: usize = 10_000;
/// Most levels of a column, and most classes of a label.
pub const MAX_LEVELS: usize = 4096;
/// Most columns of an encoded row.
pub const MAX_ENCODED_COLUMNS: usize = 1 << 16;
/// Most missing markers.
pub const MAX_MARKERS: usize = 64;
/// Longest name of a column, level or class, in bytes.
pub const MAX_NAME_BYTES: usize = 256;

/// Every key of a schema file.
pub fn keys() -> FileKeys {
    FileKeys::of::<raw::RawSchema>("schema.toml")
}

/// A checked schema.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(try_from = "raw::RawSchema", into = "raw::RawSchema")]
pub struct Schema {
    name: String,
    missing_markers: Vec<String>,
    ignore: Vec<String>,
    label: Label,
    columns: Vec<Column>,
}

/// One attribute: a column that is learned from.
#[derive(Debug, Clone, PartialEq)]
pub struct Column {
    name: String,
    kind: Kind,
    typical: Option<Typical>,
    missing: Missing,
}

/// What the values of a column are.
#[derive(Debug, Clone, PartialEq)]
pub enum Kind {
    /// A number within public bounds.
    Numeric {
        /// The bounds that become 0 and 1.
        bounds: Bounds,
        /// What happens to a number outside them.
        outside: Outside,
        /// Whether the numbers are days since 1970-01-01, which files write as dates.
        dates: bool,
    },
    /// One of a list of levels.
    Levels {
        /// Whether the order of the levels means something (`ordinal` against `categorical`).
        ordered: bool,
        /// The levels; a code is a position in this list.
        levels: Vec<String>,
        /// How a level becomes numbers.
        coding: LevelCoding,
    },
}

/// Finite bounds, the lower one strictly below the upper one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bounds {
    lower: f64,
    upper: f64,
}

/// What happens to a number outside the bounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Outside {
    /// The table is refused.
    #[default]
    Refuse,
    /// It moves to the nearer bound and is counted.
    Clip,
}

/// How a level becomes numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LevelCoding {
    /// One column: position / (levels − 1).
    Ordinal,
    /// One column a level: 1 at the level's own column, 0 elsewhere.
    Onehot,
}

/// What happens to a missing value.
#[derive(Debug, Clone, PartialEq, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Missing {
    /// The table is refused.
    #[default]
    Refuse,
    /// The row is left out and counted.
    Drop,
    /// It counts as a level of its own.
    Level(String),
    /// It is replaced, by the median or the mode that the schema states.
    Value(Replacement),
}

/// What stands in for a missing value.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(untagged)]
pub enum Replacement {
    /// A number, for a numeric column.
    Number(f64),
    /// A level, for the others.
    Level(String),
}

/// Where a column of the encoded row comes from, and the way back to original units:
/// `original = offset + scale · encoded`.
#[derive(Debug, Clone, PartialEq)]
pub struct EncodedColumn {
    /// Which column of the schema, from 0.
    pub feature: usize,
    /// `age`, or `workclass=Private` for one level of a one-hot column.
    pub name: String,
    /// The original value that became 0. For a level in ordinal coding, original values are
    /// positions in the list of levels.
    pub offset: f64,
    /// How much the original value grows from 0 to 1.
    pub scale: f64,
    /// The level that this column indicates, if it is one of a one-hot group.
    pub level: Option<String>,
}

impl Schema {
    /// Reads and checks a schema. `file` is named in errors.
    pub fn parse(text: &str, file: &str) -> Result<Self, SchemaError> {
        raw::parse(text).map_err(|error| error.in_file(file))
    }

    /// Reads and checks a schema file.
    pub fn read(path: &Path) -> Result<Self, SchemaError> {
        Self::read_with_text(path).map(|(_, schema)| schema)
    }

    /// The same with its text, comments included.
    pub fn read_with_text(path: &Path) -> Result<(String, Self), SchemaError> {
        let read = raw::read(path).and_then(|text| {
            let schema = raw::parse(&text)?;
            Ok((text, schema))
        });
        read.map_err(|error| error.in_file(&path.display().to_string()))
    }

    /// Writes the schema as TOML that [`Schema::parse`] reads back.
    pub fn to_toml(&self) -> String {
        raw::to_toml(self)
    }

    /// A hash of the meaning of the schema: equal for two files that differ in layout, comments
    /// and spelled-out defaults only. Parties compare it before they begin.
    pub fn fingerprint(&self) -> SchemaFingerprint {
        SchemaFingerprint::of(self)
    }

    /// The schema's own name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Cells that mean "missing".
    pub fn missing_markers(&self) -> &[String] {
        &self.missing_markers
    }

    /// Columns of a file that are passed over.
    pub fn ignore(&self) -> &[String] {
        &self.ignore
    }

    /// The label.
    pub fn label(&self) -> &Label {
        &self.label
    }

    /// The attributes, in the order of the encoded row.
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// The attributes with their places in the encoded row.
    pub fn features(&self) -> Vec<Feature> {
        let mut start = 0;
        let mut features = Vec::with_capacity(self.columns.len());
        for column in &self.columns {
            let end = start + column.width();
            features.push(Feature {
                name: column.name.clone(),
                columns: start..end,
                levels: column.levels().map(<[String]>::len),
            });
            start = end;
        }
        features
    }

    /// Number of columns of an encoded row.
    pub fn width(&self) -> usize {
        self.columns.iter().map(Column::width).sum()
    }

    /// Every column of the encoded row with its way back.
    pub fn encoded_columns(&self) -> Vec<EncodedColumn> {
        let columns = self.columns.iter().enumerate();
        columns
            .flat_map(|(feature, column)| column.encoded(feature))
            .collect()
    }
}

impl Column {
    /// Name of the column.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What its values are.
    pub fn kind(&self) -> &Kind {
        &self.kind
    }

    /// Public mean and deviation, if the schema states them: of a number in its own units, of a
    /// level in ordinal coding as a position in the list of levels, from 0.
    pub fn typical(&self) -> Option<Typical> {
        self.typical
    }

    /// What happens to missing values.
    pub fn missing(&self) -> &Missing {
        &self.missing
    }

    /// The levels, unless it is a number.
    pub fn levels(&self) -> Option<&[String]> {
        match &self.kind {
            Kind::Numeric { .. } => None,
            Kind::Levels { levels, .. } => Some(levels),
        }
    }

    /// Whether it is one number: not one-hot.
    pub fn is_number(&self) -> bool {
        let coding = match &self.kind {
            Kind::Numeric { .. } => return true,
            Kind::Levels { coding, .. } => coding,
        };
        *coding != LevelCoding::Onehot
    }

    /// How many columns of the encoded row it takes.
    pub fn width(&self) -> usize {
        match &self.kind {
            Kind::Levels {
                levels,
                coding: LevelCoding::Onehot,
                ..
            } => levels.len(),
            _ => 1,
        }
    }

    fn encoded(&self, feature: usize) -> Vec<EncodedColumn> {
        let column = |name: String, offset, scale, level| EncodedColumn {
            feature,
            name,
            offset,
            scale,
            level,
        };
        let single = |offset, scale| vec![column(self.name.clone(), offset, scale, None)];
        match &self.kind {
            Kind::Numeric { bounds, .. } => single(bounds.lower, bounds.range()),
            Kind::Levels { levels, coding, .. } => match coding {
                LevelCoding::Ordinal => single(0.0, (levels.len() - 1) as f64),
                LevelCoding::Onehot => levels
                    .iter()
                    .map(|level| (format!("{}={level}", self.name), level.clone()))
                    .map(|(name, level)| column(name, 0.0, 1.0, Some(level)))
                    .collect(),
            },
        }
    }
}

impl Bounds {
    /// Bounds; `None` unless both and their distance are finite and `lower < upper`.
    pub fn new(lower: f64, upper: f64) -> Option<Self> {
        let range = upper - lower;
        // Adding zero turns a negative zero into a plain one: the two compare as equal.
        let bounds = Self {
            lower: lower + 0.0,
            upper: upper + 0.0,
        };
        (range.is_finite() && range > 0.0).then_some(bounds)
    }

    /// The lower bound.
    pub fn lower(self) -> f64 {
        self.lower
    }

    /// The upper bound.
    pub fn upper(self) -> f64 {
        self.upper
    }

    /// Their distance.
    pub fn range(self) -> f64 {
        self.upper - self.lower
    }

    /// Whether a number lies within, bounds included.
    pub fn contains(self, value: f64) -> bool {
        (self.lower..=self.upper).contains(&value)
    }

    /// The place of a number of these bounds in [0, 1].
    pub fn scale(self, value: f64) -> f64 {
        ((value - self.lower) / self.range()).clamp(0.0, 1.0)
    }
}

#[cfg(test)]
mod tests;
