//! Turns the cells of a row into numbers in [0, 1], by the rules of the schema.

use super::error::{ReadFault, shorten};
use super::report::ReadReport;
use super::source::Cell;
use crate::date;
use crate::schema::{Bounds, Column, Kind, LabelNumber, LevelCoding, Missing, Outside};
use crate::schema::{Replacement, Schema};
use crate::target;
use std::borrow::Cow;
use std::collections::HashMap;

/// Encodes rows of cells, one cell for each column of the schema.
pub(super) struct RowEncoder<'s> {
    columns: Vec<ColumnEncoder<'s>>,
    markers: &'s [String],
}

struct ColumnEncoder<'s> {
    values: CellValues<'s>,
    missing: WhenMissing,
}

enum CellValues<'s> {
    Number {
        bounds: Bounds,
        outside: Outside,
        dates: bool,
    },
    Level {
        codes: HashMap<&'s str, usize>,
        coding: LevelCoding,
    },
}

/// What stands for a value: a scaled number, or a position in the list of levels.
#[derive(Clone, Copy)]
enum Encoded {
    Scaled(f64),
    Code(usize),
}

enum WhenMissing {
    Refuse,
    Drop,
    Replace(Encoded),
}

impl<'s> RowEncoder<'s> {
    pub(super) fn new(schema: &'s Schema) -> Self {
        Self {
            columns: schema.columns().iter().map(ColumnEncoder::new).collect(),
            markers: schema.missing_markers(),
        }
    }

    /// The same, but a row with a missing value that the schema refuses is dropped.
    pub(super) fn lenient(mut self) -> Self {
        for column in &mut self.columns {
            if matches!(column.missing, WhenMissing::Refuse) {
                column.missing = WhenMissing::Drop;
            }
        }
        self
    }

    /// Appends the encoded row to `values` and says whether it is kept: a dropped row appends
    /// nothing. A fault comes with the column it lies in.
    pub(super) fn encode(
        &self,
        cells: &[Cell<'_>],
        values: &mut Vec<f64>,
        report: &mut ReadReport,
    ) -> Result<bool, (usize, ReadFault)> {
        let start = values.len();
        let mut kept = true;
        for (index, (column, cell)) in self.columns.iter().zip(cells).enumerate() {
            let counts = &mut report.columns[index];
            let encoded = if is_missing(cell, self.markers) {
                counts.missing += 1;
                column.replacement()
            } else {
                column.encode(cell, &mut counts.clipped).map(Some)
            };
            match encoded.map_err(|fault| (index, fault))? {
                Some(encoded) => column.push(encoded, values),
                None => kept = false,
            }
        }
        if !kept {
            values.truncate(start);
        }
        Ok(kept)
    }
}

/// Whether a cell has no value.
pub(super) fn is_missing(cell: &Cell<'_>, markers: &[String]) -> bool {
    if *cell == Cell::Null || markers.is_empty() {
        return *cell == Cell::Null;
    }
    // Numbers of a Parquet file may be marked too, say by -9 or NaN.
    let text = level_text(cell);
    markers.iter().any(|marker| *marker == text)
}

/// A cell as the name of a level.
pub(crate) fn level_text<'c>(cell: &Cell<'c>) -> Cow<'c, str> {
    match cell {
        Cell::Null => Cow::Borrowed(""),
        Cell::Text(text) => Cow::Borrowed(*text),
        #[cfg(feature = "parquet")]
        Cell::Integer(number) => Cow::Owned(number.to_string()),
        Cell::Number(number) => Cow::Owned(number.to_string()),
        #[cfg(feature = "parquet")]
        Cell::Days(days) => Cow::Owned(date::text(*days)),
    }
}

/// A cell as days since 1970-01-01.
pub(crate) fn days(cell: &Cell<'_>) -> Result<f64, ReadFault> {
    let days = match cell {
        #[cfg(feature = "parquet")]
        Cell::Days(days) => return Ok(*days),
        Cell::Text(text) => date::days(text),
        _ => None,
    };
    days.ok_or_else(|| ReadFault::NotADate(shorten(&level_text(cell))))
}

/// A cell as a number.
pub(crate) fn number(cell: &Cell<'_>) -> Result<f64, ReadFault> {
    let number = match cell {
        Cell::Null => return Err(ReadFault::Missing),
        Cell::Text(text) => {
            let parsed = text.parse::<f64>();
            parsed.map_err(|_| ReadFault::NotANumber(shorten(text)))?
        }
        #[cfg(feature = "parquet")]
        Cell::Integer(number) => *number as f64,
        Cell::Number(number) => *number,
        #[cfg(feature = "parquet")]
        Cell::Days(_) => return Err(ReadFault::NotANumber(level_text(cell).into_owned())),
    };
    let finite = number.is_finite().then_some(number);
    finite.ok_or_else(|| ReadFault::NotFinite(shorten(&level_text(cell))))
}

impl<'s> ColumnEncoder<'s> {
    fn new(column: &'s Column) -> Self {
        let values = match column.kind() {
            Kind::Numeric {
                bounds,
                outside,
                dates,
            } => CellValues::Number {
                bounds: *bounds,
                outside: *outside,
                dates: *dates,
            },
            Kind::Levels { levels, coding, .. } => CellValues::Level {
                codes: levels.iter().map(String::as_str).zip(0..).collect(),
                coding: *coding,
            },
        };
        let missing = WhenMissing::new(column.missing(), &values);
        Self { values, missing }
    }

    fn replacement(&self) -> Result<Option<Encoded>, ReadFault> {
        match self.missing {
            WhenMissing::Refuse => Err(ReadFault::Missing),
            WhenMissing::Drop => Ok(None),
            WhenMissing::Replace(encoded) => Ok(Some(encoded)),
        }
    }

    fn encode(&self, cell: &Cell<'_>, clipped: &mut u64) -> Result<Encoded, ReadFault> {
        match &self.values {
            CellValues::Number {
                bounds,
                outside,
                dates,
            } => {
                let value = if *dates { days(cell)? } else { number(cell)? };
                if !bounds.contains(value) {
                    refuse_outside(value, *bounds, *outside, *dates)?;
                    *clipped += 1;
                }
                Ok(Encoded::Scaled(bounds.scale(value)))
            }
            CellValues::Level { codes, .. } => {
                let level = level_text(cell);
                let code = codes.get(&*level).copied().map(Encoded::Code);
                code.ok_or_else(|| ReadFault::UnknownLevel(shorten(&level)))
            }
        }
    }

    fn push(&self, encoded: Encoded, row: &mut Vec<f64>) {
        match (encoded, &self.values) {
            (Encoded::Scaled(value), _) => row.push(value),
            (Encoded::Code(code), CellValues::Level { codes, coding }) => match coding {
                LevelCoding::Ordinal => row.push(code as f64 / (codes.len() - 1) as f64),
                LevelCoding::Onehot => {
                    row.extend((0..codes.len()).map(|level| f64::from(u8::from(level == code))));
                }
            },
            (Encoded::Code(code), CellValues::Number { .. }) => {
                unreachable!("code {code} made for a numeric column")
            }
        }
    }
}

/// A numeric label as it is stored.
pub(super) fn number_label(
    cell: &Cell<'_>,
    label: &LabelNumber,
    clipped: &mut u64,
) -> Result<u32, ReadFault> {
    let value = number(cell)?;
    if !label.bounds.contains(value) {
        refuse_outside(value, label.bounds, label.outside, false)?;
        *clipped += 1;
    }
    Ok(target::steps(label.bounds.scale(value)))
}

fn refuse_outside(
    value: f64,
    bounds: Bounds,
    outside: Outside,
    dates: bool,
) -> Result<(), ReadFault> {
    let shown = |value: f64| match dates {
        true => date::text(value),
        false => value.to_string(),
    };
    match outside {
        Outside::Clip => Ok(()),
        Outside::Refuse => Err(ReadFault::OutsideBounds {
            value: shown(value),
            lower: shown(bounds.lower()),
            upper: shown(bounds.upper()),
        }),
    }
}

impl WhenMissing {
    fn new(rule: &Missing, values: &CellValues<'_>) -> Self {
        match (rule, values) {
            (Missing::Drop, _) => Self::Drop,
            (Missing::Value(Replacement::Number(value)), CellValues::Number { bounds, .. }) => {
                Self::Replace(Encoded::Scaled(bounds.scale(*value)))
            }
            (
                Missing::Level(level) | Missing::Value(Replacement::Level(level)),
                CellValues::Level { codes, .. },
            ) => match codes.get(level.as_str()) {
                Some(&code) => Self::Replace(Encoded::Code(code)),
                None => Self::Refuse,
            },
            // A checked schema has no other rule; refusing is the safe reading of one.
            _ => Self::Refuse,
        }
    }
}
