//! The schema as written in a file, before its parts are checked against each other.

use super::check::{self, Path};
use super::{Kind, LevelCoding, MAX_SCHEMA_BYTES, Missing, Outside, Replacement, Schema, Typical};
use super::{SchemaError, SchemaFault};
use crate::date;
use crate::reference::{FileValue, Form, Key};
use serde::{Deserialize, Serialize};
use std::io::Read;

/// The version of the format that this build reads and writes.
pub(super) const FORMAT: u32 = 1;

crate::described! {
    /// What the columns of a table mean: public, and the same for all parties. [The schema
    /// file](schema.md) explains it.
    #[derive(Debug, Clone, Serialize)]
    pub(super) struct RawSchema {
        /// Version of the format.
        #[key("1")]
        pub(super) format: u32,
        /// Name of the schema.
        #[key("\"ward\"")]
        pub(super) name: String,
        /// Cells that mean "no value".
        #[key("[\"\", \"?\", \"NA\"]")]
        pub(super) missing_markers: Vec<String> = vec![String::new()],
        /// Columns of a file that are not used; the file need not have them.
        #[key("[\"patient\"]")]
        pub(super) ignore: Vec<String> = Vec::new(),
        /// The column that the model predicts.
        pub(super) label: RawLabel,
        /// The columns that the model learns from, each with its own entry.
        #[name = "column"]
        #[serde(rename = "column")]
        pub(super) columns: Vec<RawColumn> = Vec::new(),
    }
}

crate::described! {
    /// The column that the model predicts.
    #[derive(Debug, Clone, Serialize)]
    pub(super) struct RawLabel {
        /// Name of the column that the model predicts.
        #[key("\"outcome\"")]
        pub(super) column: String,
        /// Whether the model predicts a class or a number.
        #[key("\"numeric\"")]
        #[serde(skip_serializing_if = "RawLabelKind::is_classes")]
        pub(super) kind: RawLabelKind = RawLabelKind::default(),
        /// All values that the label may have; required for classes.
        #[key("[\"well\", \"ill\"]")]
        #[serde(skip_serializing_if = "Vec::is_empty")]
        pub(super) classes: Vec<String> = Vec::new(),
        /// Smallest and largest value, which are public; required for a number.
        #[key("[0, 400]")]
        #[form(bounds(f64::form()))]
        #[serde(skip_serializing_if = "Option::is_none")]
        pub(super) bounds: Option<Vec<f64>>,
        /// What happens to a number outside the bounds: `refuse`, the default, refuses the table;
        /// `clip` sets it to the nearest bound and counts it.
        #[key("\"clip\"")]
        #[serde(skip_serializing_if = "Option::is_none")]
        pub(super) outside: Option<Outside>,
        /// Publicly known mean and standard deviation of a number; if all columns have them, too, no
        /// rows are asked for means.
        #[key("{ mean = 150, deviation = 80 }")]
        #[serde(skip_serializing_if = "Option::is_none")]
        pub(super) typical: Option<Typical>,
        /// The values of the positive class; all others together are the negative class. Required
        /// for two classes; without it every value is a class of its own.
        #[key("\"ill\"")]
        #[serde(skip_serializing_if = "Option::is_none")]
        pub(super) positive: Option<OneOrMany>,
        /// What happens to a row without a label: `refuse` refuses the table, `drop` drops the row.
        #[key("\"drop\"")]
        pub(super) missing: RawLabelMissing = RawLabelMissing::default(),
    }
}

crate::words!(RawLabelKind, RawLabelMissing, RawKind);

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(untagged)]
pub(super) enum OneOrMany {
    One(String),
    Many(Vec<String>),
}

impl FileValue for OneOrMany {
    fn form() -> Form {
        Form::Any(vec![String::form(), Vec::<String>::form()])
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum RawLabelKind {
    #[default]
    Classes,
    Numeric,
}

impl RawLabelKind {
    /// Not written out: schemas of classes had their fingerprints before there were numbers.
    fn is_classes(&self) -> bool {
        *self == Self::Classes
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum RawLabelMissing {
    #[default]
    Refuse,
    Drop,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum RawKind {
    Numeric,
    Date,
    Ordinal,
    Categorical,
}

/// A bound: a number, or a date in quotes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub(super) enum RawBound {
    Number(f64),
    Text(String),
}

/// Two of these.
fn bounds(of: Form) -> Form {
    Form::List(Box::new(of), Some(2))
}

impl FileValue for RawBound {
    fn form() -> Form {
        Form::Any(vec![f64::form(), Form::text("a date in quotes")])
    }
}

impl FileValue for Missing {
    fn form() -> Form {
        let words = ["refuse", "drop"].map(str::to_owned).to_vec();
        let key = |name, form, example, text| Key {
            name,
            form,
            required: false,
            default: None,
            example: Some(example),
            text,
        };
        let value = Form::Any(vec![f64::form(), String::form()]);
        let level = key("level", String::form(), "\"unknown\"", "Name of the level.");
        let value = key("value", value, "50", "The value instead.");
        Form::Any(vec![Form::OneOf(words), Form::Table(vec![level, value])])
    }
}

crate::described! {
    /// A column that the model learns from.
    #[derive(Debug, Clone, Serialize)]
    pub(super) struct RawColumn {
        /// Name of the column.
        #[key("\"age\"")]
        pub(super) name: String,
        /// What its values are; the levels of an `ordinal` column have a meaningful order.
        #[key("\"numeric\"")]
        pub(super) kind: RawKind,
        /// Smallest and largest value, which become 0 and 1; required for numbers and dates.
        #[key("[0, 120]")]
        #[form(bounds(RawBound::form()))]
        #[serde(skip_serializing_if = "Option::is_none")]
        pub(super) bounds: Option<Vec<RawBound>>,
        /// What happens to a number outside the bounds: `refuse`, the default, refuses the table;
        /// `clip` sets it to the nearest bound and counts it.
        #[key("\"clip\"")]
        #[serde(skip_serializing_if = "Option::is_none")]
        pub(super) outside: Option<Outside>,
        /// All levels; required for ordinal and categorical columns.
        #[key("[\"none\", \"mild\", \"strong\"]")]
        #[serde(skip_serializing_if = "Option::is_none")]
        pub(super) levels: Option<Vec<String>>,
        /// How a level becomes numbers: `ordinal` makes one column with its position, `onehot` one
        /// column for each level; by default an ordinal column has the former, a categorical one
        /// the latter.
        #[key("\"onehot\"")]
        #[serde(skip_serializing_if = "Option::is_none")]
        pub(super) coding: Option<LevelCoding>,
        /// Publicly known mean and standard deviation, in the units of the bounds; no rows are asked
        /// for what is stated here.
        #[key("{ mean = 50, deviation = 20 }")]
        #[serde(skip_serializing_if = "Option::is_none")]
        pub(super) typical: Option<Typical>,
        /// What happens to a missing value: `refuse` refuses the table, `drop` drops the row,
        /// `{ level = "unknown" }` makes it a level of its own, `{ value = 50 }` replaces it.
        #[key("{ value = 50 }")]
        pub(super) missing: Missing = Missing::default(),
    }
}

/// Reads the text of a schema file without ever holding more than the largest one allowed.
pub(super) fn read(path: &std::path::Path) -> Result<String, SchemaError> {
    let mut bytes = Vec::new();
    let limit = MAX_SCHEMA_BYTES as u64 + 1;
    std::fs::File::open(path)
        .and_then(|file| file.take(limit).read_to_end(&mut bytes))
        .map_err(|e| SchemaError::new(SchemaFault::File(e.to_string())))?;
    String::from_utf8(bytes).map_err(|e| {
        let line = e.as_bytes()[..e.utf8_error().valid_up_to()]
            .iter()
            .filter(|&&b| b == b'\n')
            .count();
        SchemaError::new(SchemaFault::Utf8 { line: line + 1 })
    })
}

/// Reads and checks a schema.
pub(super) fn parse(text: &str) -> Result<Schema, SchemaError> {
    if text.len() > MAX_SCHEMA_BYTES {
        return Err(SchemaError::new(SchemaFault::TooLarge));
    }
    let raw: RawSchema = toml::from_str(text).map_err(|e| {
        let fault = SchemaFault::Syntax(super::keys().line_and_words(text, &e).1);
        SchemaError::new(fault).at_offset(text, e.span().map(|span| span.start))
    })?;
    check::check(raw)
        .map_err(|(fault, path)| SchemaError::new(fault).at_offset(text, offset_of(text, &path)))
}

/// Where in the text the part at `path` begins, as far down the path as the text goes.
fn offset_of(text: &str, path: &Path) -> Option<usize> {
    let root = toml::de::DeTable::parse(text).ok()?;
    let mut found = None;
    let mut here: Option<&toml::de::DeValue<'_>> = None;
    for part in path {
        let next = match (part, here) {
            (check::Part::Key(key), None) => root.get_ref().get(*key),
            (check::Part::Key(key), Some(value)) => value.get(*key),
            (check::Part::Index(index), Some(value)) => value.get(*index),
            (check::Part::Index(_), None) => None,
        };
        let Some(next) = next else { break };
        found = Some(next.span().start);
        here = Some(next.get_ref());
    }
    found
}

/// Writes a schema as TOML.
pub(super) fn to_toml(schema: &Schema) -> String {
    toml::to_string(&RawSchema::from(schema.clone()))
        .expect("a checked schema has only strings, finite numbers and lists of them")
}

impl TryFrom<RawSchema> for Schema {
    type Error = SchemaError;

    fn try_from(raw: RawSchema) -> Result<Self, SchemaError> {
        check::check(raw).map_err(|(fault, _)| SchemaError::new(fault))
    }
}

impl From<Schema> for RawSchema {
    fn from(schema: Schema) -> Self {
        let label = schema.label;
        let number = label.number;
        let positive = match label.positive.len() {
            0 => None,
            1 => label.positive.into_iter().next().map(OneOrMany::One),
            _ => Some(OneOrMany::Many(label.positive)),
        };
        let missing = if label.drop_missing {
            RawLabelMissing::Drop
        } else {
            RawLabelMissing::Refuse
        };
        Self {
            format: FORMAT,
            name: schema.name,
            missing_markers: schema.missing_markers,
            ignore: schema.ignore,
            label: RawLabel {
                column: label.column,
                kind: match label.number {
                    Some(_) => RawLabelKind::Numeric,
                    None => RawLabelKind::Classes,
                },
                classes: label.classes,
                bounds: number.map(|n| vec![n.bounds.lower(), n.bounds.upper()]),
                outside: number.map(|n| n.outside),
                typical: number.and_then(|n| n.typical),
                positive,
                missing,
            },
            columns: schema.columns.into_iter().map(RawColumn::from).collect(),
        }
    }
}

impl From<super::Column> for RawColumn {
    fn from(column: super::Column) -> Self {
        let mut raw = Self {
            name: column.name,
            kind: RawKind::Numeric,
            bounds: None,
            outside: None,
            levels: None,
            coding: None,
            typical: column.typical,
            missing: column.missing,
        };
        match column.kind {
            Kind::Numeric {
                bounds,
                outside,
                dates,
            } => {
                let bound = |days| match dates {
                    true => RawBound::Text(date::text(days)),
                    false => RawBound::Number(days),
                };
                raw.bounds = Some([bounds.lower(), bounds.upper()].map(bound).to_vec());
                raw.outside = Some(outside);
                if dates {
                    raw.kind = RawKind::Date;
                    raw.missing = date_as_text(raw.missing);
                }
            }
            Kind::Levels {
                ordered,
                levels,
                coding,
            } => {
                raw.kind = if ordered {
                    RawKind::Ordinal
                } else {
                    RawKind::Categorical
                };
                raw.levels = Some(levels);
                raw.coding = Some(coding);
            }
        }
        raw
    }
}

/// What replaces a missing date, as the file writes it.
fn date_as_text(missing: Missing) -> Missing {
    match missing {
        Missing::Value(Replacement::Number(days)) => {
            Missing::Value(Replacement::Level(date::text(days)))
        }
        other => other,
    }
}
