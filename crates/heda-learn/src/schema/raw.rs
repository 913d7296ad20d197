//! The schema as written in a file, before its parts are checked against each other.

use super::check::{self, Path};
use super::{Kind, LevelCoding, MAX_SCHEMA_BYTES, Missing, Outside, Replacement, Schema};
use super::{SCHEMA_KEYS, Typical};
use super::{SchemaError, SchemaFault};
use crate::date;
use serde::de::Visitor;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::io::Read;

/// The version of the format that this build reads and writes.
pub(super) const FORMAT: u32 = 1;

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawSchema {
    pub(super) format: u32,
    pub(super) name: String,
    #[serde(default = "empty_cell")]
    pub(super) missing_markers: Vec<String>,
    #[serde(default)]
    pub(super) ignore: Vec<String>,
    pub(super) label: RawLabel,
    #[serde(rename = "column", default)]
    pub(super) columns: Vec<RawColumn>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawLabel {
    pub(super) column: String,
    #[serde(default, skip_serializing_if = "RawLabelKind::is_classes")]
    pub(super) kind: RawLabelKind,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) classes: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) bounds: Option<Vec<f64>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) outside: Option<Outside>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) typical: Option<Typical>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) positive: Option<OneOrMany>,
    #[serde(default)]
    pub(super) missing: RawLabelMissing,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(untagged)]
pub(super) enum OneOrMany {
    One(String),
    Many(Vec<String>),
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
#[derive(Debug, Clone, PartialEq)]
pub(super) enum RawBound {
    Number(f64),
    Text(String),
}

impl Serialize for RawBound {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Number(number) => to.serialize_f64(*number),
            Self::Text(text) => to.serialize_str(text),
        }
    }
}

impl<'de> Deserialize<'de> for RawBound {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(BoundVisitor)
    }
}

struct BoundVisitor;

impl Visitor<'_> for BoundVisitor {
    type Value = RawBound;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number, or a date in quotes such as \"2024-12-31\"")
    }

    fn visit_f64<E>(self, number: f64) -> Result<RawBound, E> {
        Ok(RawBound::Number(number))
    }

    fn visit_i64<E>(self, number: i64) -> Result<RawBound, E> {
        Ok(RawBound::Number(number as f64))
    }

    fn visit_u64<E>(self, number: u64) -> Result<RawBound, E> {
        Ok(RawBound::Number(number as f64))
    }

    fn visit_str<E>(self, text: &str) -> Result<RawBound, E> {
        Ok(RawBound::Text(text.to_owned()))
    }
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawColumn {
    pub(super) name: String,
    pub(super) kind: RawKind,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) bounds: Option<Vec<RawBound>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) outside: Option<Outside>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) levels: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) coding: Option<LevelCoding>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) typical: Option<Typical>,
    #[serde(default)]
    pub(super) missing: Missing,
}

fn empty_cell() -> Vec<String> {
    vec![String::new()]
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
        let fault = SchemaFault::Syntax(SCHEMA_KEYS.line_and_words(text, &e).1);
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
