//! Checks the parts of a schema against each other.

use super::label::check_label;
use super::raw::{FORMAT, RawBound, RawColumn, RawKind, RawSchema};
use super::{Bounds, Column, Kind, LevelCoding, Missing, Replacement, Schema};
use super::{MAX_COLUMNS, MAX_ENCODED_COLUMNS, MAX_LEVELS, MAX_MARKERS, MAX_NAME_BYTES};
use super::{SchemaFault, Typical};
use crate::date;
use crate::table::shorten;
use std::collections::HashSet;

/// A step down the document.
#[derive(Debug, Clone, Copy)]
pub(super) enum Part {
    Key(&'static str),
    Index(usize),
}

/// Where in the document a fault lies.
pub(super) type Path = Vec<Part>;

pub(super) type Checked<T> = Result<T, (SchemaFault, Path)>;

pub(super) fn at<const N: usize>(fault: SchemaFault, path: [Part; N]) -> (SchemaFault, Path) {
    (fault, path.to_vec())
}

/// The schema, if it is sound.
pub(super) fn check(raw: RawSchema) -> Checked<Schema> {
    if raw.format != FORMAT {
        return Err(at(SchemaFault::Format(raw.format), [Part::Key("format")]));
    }
    check_name("schema name", &raw.name).map_err(|f| at(f, [Part::Key("name")]))?;
    check_count(&raw.columns)?;
    check_markers(&raw.missing_markers).map_err(|f| at(f, [Part::Key("missing_markers")]))?;
    let label = check_label(raw.label, &raw.missing_markers)?;
    let mut names = HashSet::new();
    let mut columns = Vec::with_capacity(raw.columns.len());
    for (index, column) in raw.columns.into_iter().enumerate() {
        let here = |fault, field| {
            at(
                fault,
                [Part::Key("column"), Part::Index(index), Part::Key(field)],
            )
        };
        check_name("column name", &column.name).map_err(|f| here(f, "name"))?;
        if column.name == label.column {
            return Err(here(SchemaFault::LabelAsFeature(column.name), "name"));
        }
        if !names.insert(column.name.clone()) {
            return Err(here(SchemaFault::DuplicateColumn(column.name), "name"));
        }
        let checked = check_column(column, &raw.missing_markers);
        columns.push(checked.map_err(|(fault, field)| here(fault, field))?);
    }
    check_ignored(&raw.ignore, &names, &label.column)?;
    let schema = Schema {
        name: raw.name,
        missing_markers: raw.missing_markers,
        ignore: raw.ignore,
        label,
        columns,
    };
    match schema.width() {
        0..=MAX_ENCODED_COLUMNS => Ok(schema),
        width => Err((SchemaFault::TooWide(width), vec![Part::Key("column")])),
    }
}

fn check_count(columns: &[RawColumn]) -> Checked<()> {
    match columns.len() {
        0 => Err((SchemaFault::NoColumns, Vec::new())),
        1..=MAX_COLUMNS => Ok(()),
        many => Err(at(SchemaFault::TooManyColumns(many), [Part::Key("column")])),
    }
}

/// Markers are few: every cell and every level is compared with each of them.
fn check_markers(markers: &[String]) -> Result<(), SchemaFault> {
    if markers.len() > MAX_MARKERS {
        return Err(SchemaFault::TooManyMarkers(markers.len()));
    }
    let filled = markers.iter().filter(|marker| !marker.is_empty());
    filled
        .into_iter()
        .try_for_each(|marker| check_name("missing marker", marker))
}

fn check_ignored(ignore: &[String], columns: &HashSet<String>, label: &str) -> Checked<()> {
    if ignore.len() > MAX_COLUMNS {
        return Err(at(
            SchemaFault::TooManyColumns(ignore.len()),
            [Part::Key("ignore")],
        ));
    }
    let used = |name: &&String| columns.contains(*name) || *name == label;
    match ignore.iter().find(used) {
        Some(name) => Err(at(
            SchemaFault::IgnoredButUsed(name.clone()),
            [Part::Key("ignore")],
        )),
        None => Ok(()),
    }
}

pub(super) fn check_name(what: &'static str, name: &str) -> Result<(), SchemaFault> {
    let shortened = || name.chars().take(40).collect();
    is_usable_name(name)
        .then_some(())
        .ok_or_else(|| SchemaFault::Name {
            what,
            name: shortened(),
        })
}

/// Whether a schema can name a column, level or class so.
pub(crate) fn is_usable_name(name: &str) -> bool {
    !name.is_empty()
        && name.len() <= MAX_NAME_BYTES
        && name.trim() == name
        && !name.chars().any(char::is_control)
}

/// A fault of a column, with the field that it lies in.
type InColumn<T> = Result<T, (SchemaFault, &'static str)>;

fn check_column(raw: RawColumn, markers: &[String]) -> InColumn<Column> {
    let kind = match raw.kind {
        RawKind::Numeric => check_numeric(&raw, "numeric")?,
        RawKind::Date => check_numeric(&raw, "date")?,
        RawKind::Ordinal => check_levels(&raw, "ordinal", markers)?,
        RawKind::Categorical => check_levels(&raw, "categorical", markers)?,
    };
    let missing = match raw.missing {
        // As for bounds: no negative zero.
        Missing::Value(Replacement::Number(value)) => {
            Missing::Value(Replacement::Number(value + 0.0))
        }
        Missing::Value(Replacement::Level(text)) if raw.kind == RawKind::Date => {
            let days = date::days(&text).ok_or_else(|| not_a_date(&raw.name, &text, "missing"))?;
            Missing::Value(Replacement::Number(days))
        }
        other => other,
    };
    check_missing(&raw.name, &kind, &missing).map_err(|fault| (fault, "missing"))?;
    let typical = match raw.typical {
        Some(typical) => Some(check_typical(&raw.name, &kind, typical)?),
        None => None,
    };
    Ok(Column {
        name: raw.name,
        kind,
        typical,
        missing,
    })
}

fn unused(raw: &RawColumn, kind: &'static str, field: &'static str) -> (SchemaFault, &'static str) {
    let column = raw.name.clone();
    let fault = SchemaFault::FieldUnused {
        column,
        kind,
        field,
    };
    (fault, field)
}

fn needed(raw: &RawColumn, kind: &'static str, field: &'static str) -> (SchemaFault, &'static str) {
    let column = raw.name.clone();
    let fault = SchemaFault::FieldNeeded {
        column,
        kind,
        field,
    };
    (fault, "name")
}

fn not_a_date(column: &str, text: &str, field: &'static str) -> (SchemaFault, &'static str) {
    let (column, text) = (column.to_owned(), shorten(text));
    (SchemaFault::NotADate { column, text }, field)
}

/// A bound as a number: of dates, in days.
fn bound(raw: &RawColumn, bound: &RawBound) -> InColumn<f64> {
    match (raw.kind, bound) {
        (RawKind::Date, RawBound::Text(text)) => {
            date::days(text).ok_or_else(|| not_a_date(&raw.name, text, "bounds"))
        }
        (RawKind::Date, RawBound::Number(number)) => {
            Err(not_a_date(&raw.name, &number.to_string(), "bounds"))
        }
        (_, RawBound::Number(number)) => Ok(*number),
        (_, RawBound::Text(_)) => {
            let column = raw.name.clone();
            Err((SchemaFault::BoundsCount { column }, "bounds"))
        }
    }
}

fn check_numeric(raw: &RawColumn, kind: &'static str) -> InColumn<Kind> {
    if raw.levels.is_some() {
        return Err(unused(raw, kind, "levels"));
    }
    if raw.coding.is_some() {
        return Err(unused(raw, kind, "coding"));
    }
    let bounds = raw.bounds.as_deref();
    let bounds = bounds.ok_or_else(|| needed(raw, kind, "bounds"))?;
    let column = raw.name.clone();
    let [lower, upper] = bounds else {
        return Err((SchemaFault::BoundsCount { column }, "bounds"));
    };
    let (lower, upper) = (bound(raw, lower)?, bound(raw, upper)?);
    let bounds = Bounds::new(lower, upper).ok_or_else(|| {
        let fault = if lower >= upper {
            SchemaFault::BoundsReversed {
                column,
                lower,
                upper,
            }
        } else {
            SchemaFault::BoundsNotFinite { column }
        };
        (fault, "bounds")
    })?;
    let outside = raw.outside.unwrap_or_default();
    Ok(Kind::Numeric {
        bounds,
        outside,
        dates: raw.kind == RawKind::Date,
    })
}

fn check_typical(column: &str, kind: &Kind, typical: Typical) -> InColumn<Typical> {
    let column = column.to_owned();
    let bounds = match kind {
        Kind::Numeric { bounds, .. } => Some(*bounds),
        Kind::Levels { levels, coding, .. } => match coding {
            LevelCoding::Ordinal => Bounds::new(0.0, (levels.len() - 1) as f64),
            LevelCoding::Onehot => None,
        },
    };
    let fault = match bounds {
        // As for bounds: no negative zero.
        Some(bounds) if typical.is_possible(bounds) => {
            let mean = typical.mean + 0.0;
            return Ok(Typical { mean, ..typical });
        }
        Some(_) => SchemaFault::TypicalImpossible { column, typical },
        None => SchemaFault::FieldUnused {
            column,
            kind: "one-hot coded",
            field: "typical",
        },
    };
    Err((fault, "typical"))
}

fn check_levels(raw: &RawColumn, kind: &'static str, markers: &[String]) -> InColumn<Kind> {
    if raw.bounds.is_some() {
        return Err(unused(raw, kind, "bounds"));
    }
    if raw.outside.is_some() {
        return Err(unused(raw, kind, "outside"));
    }
    let levels = raw
        .levels
        .clone()
        .ok_or_else(|| needed(raw, kind, "levels"))?;
    check_level_list(raw, &levels, markers).map_err(|fault| (fault, "levels"))?;
    let ordered = raw.kind == RawKind::Ordinal;
    let usual = if ordered {
        LevelCoding::Ordinal
    } else {
        LevelCoding::Onehot
    };
    Ok(Kind::Levels {
        ordered,
        levels,
        coding: raw.coding.unwrap_or(usual),
    })
}

fn check_level_list(
    raw: &RawColumn,
    levels: &[String],
    markers: &[String],
) -> Result<(), SchemaFault> {
    let (column, found) = (raw.name.clone(), levels.len());
    if found < 2 {
        return Err(SchemaFault::TooFewLevels { column, found });
    }
    if found > MAX_LEVELS {
        return Err(SchemaFault::TooManyLevels { column, found });
    }
    let mut seen = HashSet::new();
    for level in levels {
        check_name("level", level)?;
        let level = level.clone();
        if markers.contains(&level) && raw.missing != Missing::Level(level.clone()) {
            return Err(SchemaFault::LevelIsMarker { column, level });
        }
        if !seen.insert(level.clone()) {
            return Err(SchemaFault::DuplicateLevel { column, level });
        }
    }
    Ok(())
}

fn check_missing(column: &str, kind: &Kind, missing: &Missing) -> Result<(), SchemaFault> {
    let column = column.to_owned();
    match (kind, missing) {
        (_, Missing::Refuse | Missing::Drop) => Ok(()),
        (Kind::Numeric { bounds, .. }, &Missing::Value(Replacement::Number(value))) => {
            let inside = bounds.contains(value).then_some(());
            inside.ok_or(SchemaFault::MissingValueOutside { column, value })
        }
        (
            Kind::Levels { levels, .. },
            Missing::Level(level) | Missing::Value(Replacement::Level(level)),
        ) => {
            let level = level.clone();
            let known = levels.contains(&level).then_some(());
            known.ok_or(SchemaFault::MissingLevelUnknown { column, level })
        }
        _ => Err(SchemaFault::MissingMisfit { column }),
    }
}
