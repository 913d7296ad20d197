//! Step 1: rows in deviations from what is typical, cut to a length.
//!
//! Nothing here is read from rows: means and deviations are the schema's `typical`, or those of a
//! uniform distribution between its bounds or over its levels; a one-hot column loses 1/levels.
//! All is divided by 0.7·√attributes, so that most rows are about as long as they may be.

use super::moments::{are_sound, unstated};
use super::{ONE, PAYLOAD_LENGTH, SCORE_LENGTH};
use crate::clip_range::ClipRange;
use crate::data::{Dataset, RowsError};
use crate::scaling::Centre;
use crate::schema::{Column, Kind, LevelCoding, Schema};
use std::collections::HashMap;
use std::fmt;

/// Deviations beyond which a number counts as this many.
const MOST_DEVIATIONS: f64 = 3.0;
/// What a column is divided by, times the root of the number of attributes.
const SPREAD: f64 = 0.7;
/// The value of the bias column.
const BIAS: f64 = 0.4;

/// How one column of an encoded row, a value in [0, 1], becomes a value around nought.
#[derive(Debug, Clone, Copy, PartialEq)]
struct ColumnPlace {
    centre: f64,
    scale: f64,
    limit: f64,
}

/// How rows of a schema are written for private training. Public.
#[derive(Debug, Clone, PartialEq)]
pub struct PrivateEncoding {
    places: Vec<ColumnPlace>,
}

impl PrivateEncoding {
    /// The encoding of a schema.
    pub fn new(schema: &Schema) -> Self {
        let places = schema.columns().iter();
        let divisor = divisor(schema);
        Self {
            places: places
                .flat_map(|column| places_of(column, divisor))
                .collect(),
        }
    }

    /// The same where the moments of columns without anything typical were bought.
    ///
    /// # Errors
    /// If there is not one for each, or one that no column has.
    pub fn with_moments(schema: &Schema, centres: &[Centre]) -> Result<Self, RowsError> {
        let columns = unstated(schema);
        let (expected, found) = (columns.len(), centres.len());
        if expected != found || !are_sound(centres) {
            return Err(RowsError::Moments { expected, found });
        }
        let mut encoding = Self::new(schema);
        for (column, centre) in columns.into_iter().zip(centres) {
            encoding.places[column] = number_place(centre.mean, centre.deviation, divisor(schema));
        }
        Ok(encoding)
    }

    /// Columns of a row as it is trained on: the bias and those of the schema.
    pub fn width(&self) -> usize {
        self.places.len() + 1
    }

    /// Writes every row in both forms. `positive` is the class that is learned.
    pub fn rows(&self, data: &Dataset, positive: u32) -> Result<PrivateRows, RowsError> {
        if data.width() != self.places.len() {
            let (expected, found) = (self.places.len(), data.width());
            return Err(RowsError::Width { expected, found });
        }
        let mut rows = PrivateRows::empty(self.width());
        for row in 0..data.rows() {
            let whole = self.whole(data.row(row));
            rows.push(
                &cut(&whole, SCORE_LENGTH),
                &cut(&whole, PAYLOAD_LENGTH),
                data.labels()[row] == positive,
            )?;
        }
        Ok(rows)
    }

    /// The same where several rows may be of one person, named by a number for each row: all
    /// payloads of a person together are no longer than that of a single row, so the person counts as
    /// much as anybody, whatever is chosen. Scores do not change.
    pub fn rows_of_persons(
        &self,
        data: &Dataset,
        positive: u32,
        persons: &[u32],
    ) -> Result<PrivateRows, RowsError> {
        if persons.len() != data.rows() {
            let (rows, named) = (data.rows(), persons.len());
            return Err(RowsError::Persons { rows, named });
        }
        let mut of_each: HashMap<u32, i32> = HashMap::new();
        for person in persons {
            *of_each.entry(*person).or_default() += 1;
        }
        let mut rows = self.rows(data, positive)?;
        for (row, person) in persons.iter().enumerate() {
            let length = PAYLOAD_LENGTH / of_each.get(person).copied().unwrap_or(1).max(1);
            let payload = &mut rows.payloads[row * rows.width..][..rows.width];
            let short = cut(payload, length);
            payload.copy_from_slice(&short);
        }
        Ok(rows)
    }

    /// Between which values columns count: what is trained on is cut off there, so the model that comes
    /// of it has to see other rows in the same way.
    pub fn reach(&self) -> ClipRange {
        let places = self.places.iter();
        ClipRange::around(places.map(|place| (place.centre, place.limit / place.scale)))
    }

    /// One row on the grid, not yet cut.
    fn whole(&self, values: &[f64]) -> Vec<i32> {
        let value = |(place, x): (&ColumnPlace, &f64)| {
            let v = (x - place.centre) * place.scale;
            (v.clamp(-place.limit, place.limit) * f64::from(ONE)).round() as i32
        };
        let bias = (BIAS * f64::from(ONE)).round() as i32;
        std::iter::once(bias)
            .chain(self.places.iter().zip(values).map(value))
            .collect()
    }

    /// Coefficients of the trained columns as those of the schema's encoded columns, bias first.
    pub fn coefficients(&self, beta: &[f64]) -> Vec<f64> {
        let slopes = || self.places.iter().zip(&beta[1..]).map(|(p, b)| b * p.scale);
        let centres = self.places.iter().zip(slopes());
        let offset: f64 = centres.map(|(place, slope)| place.centre * slope).sum();
        std::iter::once(BIAS * beta[0] - offset)
            .chain(slopes())
            .collect()
    }
}

/// What every column is divided by.
fn divisor(schema: &Schema) -> f64 {
    SPREAD * (schema.columns().len() as f64).sqrt()
}

fn number_place(centre: f64, deviation: f64, divisor: f64) -> ColumnPlace {
    ColumnPlace {
        centre,
        scale: 1.0 / (deviation * divisor),
        limit: MOST_DEVIATIONS / divisor,
    }
}

fn places_of(column: &Column, divisor: f64) -> Vec<ColumnPlace> {
    let number = |centre: f64, deviation: f64| vec![number_place(centre, deviation, divisor)];
    // In [0, 1], where a column has `steps` steps; a number has very many.
    let uniform = |steps: f64| number(0.5, ((1.0 + 2.0 / steps) / 12.0).sqrt());
    let (range, lower, plain) = match column.kind() {
        Kind::Numeric { bounds, .. } => (bounds.range(), bounds.lower(), uniform(f64::INFINITY)),
        Kind::Levels { levels, coding, .. } => {
            let steps = (levels.len() - 1) as f64;
            if *coding == LevelCoding::Onehot {
                return vec![level_place(levels.len(), divisor); levels.len()];
            }
            (steps, 0.0, uniform(steps))
        }
    };
    match column.typical() {
        Some(typical) => number((typical.mean - lower) / range, typical.deviation / range),
        None => plain,
    }
}

fn level_place(levels: usize, divisor: f64) -> ColumnPlace {
    ColumnPlace {
        centre: 1.0 / levels as f64,
        scale: 1.0 / divisor,
        limit: 1.0 / divisor,
    }
}

/// The row, or the longest row in its direction that is no longer than `length`. Values are cut
/// towards nought, so the result is never too long.
fn cut(row: &[i32], length: i32) -> Vec<i32> {
    let squared = length_squared(row);
    let limit = i64::from(length);
    if squared <= limit * limit {
        return row.to_vec();
    }
    let factor = f64::from(length) / (squared as f64).sqrt();
    row.iter()
        .map(|&v| (f64::from(v) * factor) as i32)
        .collect()
}

fn length_squared(row: &[i32]) -> i64 {
    row.iter().map(|&v| i64::from(v) * i64::from(v)).sum()
}

/// Rows in both forms, with their labels. No row is longer than the noise allows for.
#[derive(Clone, PartialEq)]
pub struct PrivateRows {
    width: usize,
    scores: Vec<i32>,
    payloads: Vec<i32>,
    positive: Vec<bool>,
}

impl fmt::Debug for PrivateRows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PrivateRows({} rows)", self.positive.len())
    }
}

impl PrivateRows {
    /// No rows yet, of `width` columns, the bias among them.
    pub fn empty(width: usize) -> Self {
        Self {
            width,
            scores: Vec::new(),
            payloads: Vec::new(),
            positive: Vec::new(),
        }
    }

    /// Adds a row if neither form is too long.
    pub fn push(
        &mut self,
        score: &[i32],
        payload: &[i32],
        positive: bool,
    ) -> Result<(), RowsError> {
        let expected = self.width;
        for found in [score.len(), payload.len()] {
            if found != expected {
                return Err(RowsError::Width { expected, found });
            }
        }
        let fits = |row: &[i32], length: i32| {
            let limit = i64::from(length);
            row.iter().all(|v| v.abs() <= length) && length_squared(row) <= limit * limit
        };
        if !fits(score, SCORE_LENGTH) || !fits(payload, PAYLOAD_LENGTH) {
            let row = self.positive.len();
            return Err(RowsError::TooLong { row });
        }
        self.scores.extend(score);
        self.payloads.extend(payload);
        self.positive.push(positive);
        Ok(())
    }

    /// How many rows.
    pub fn rows(&self) -> usize {
        self.positive.len()
    }

    /// Columns, the bias among them.
    pub fn width(&self) -> usize {
        self.width
    }

    /// The form of a row that its score is computed from.
    pub fn score(&self, row: usize) -> &[i32] {
        &self.scores[row * self.width..][..self.width]
    }

    /// The form of a row that is added up.
    pub fn payload(&self, row: usize) -> &[i32] {
        &self.payloads[row * self.width..][..self.width]
    }

    /// Whether a row belongs to the class that is learned.
    pub fn is_positive(&self, row: usize) -> bool {
        self.positive[row]
    }
}
