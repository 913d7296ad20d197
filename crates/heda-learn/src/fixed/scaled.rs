//! Step 2: real coefficients become integer weights whose scores fill the ring and never wrap.
//!
//! The range of scores is centred before it is stretched. With x between public bounds, scores
//! lie in an interval of half-width W = Σ|β_j|·(high_j − low_j)/2 around a centre that the data
//! user knows; the bias only moves the centre. A range symmetric about zero would need
//! |β_0| + Σ|β_j|·max|x_j|, at least twice as much, and the table steps would be as much coarser.
//! In a one-hot block at most one column is 1, so it widens the range by the spread of its
//! coefficients (and 0) only.
//!
//! **No wrap.** Let c_j = β_j·S/2^fx be the weight before rounding, for scale S. Rounding moves a
//! weight by at most ½, so the half-width of the integer scores is at most S·W plus a quarter of
//! every column's spread, plus ½ for rounding the constant. S is chosen so that this stays below
//! 2^47 − 2^(48−k), with room for rounding in f64. The integer range is then computed exactly and
//! checked, so no error of reasoning or of f64 can get through.

use super::{Precision, RING};
use crate::data::Feature;
use std::ops::Range;

/// The widest block of columns, and the largest value, that a domain may name.
const MOST_COLUMNS: usize = 1 << 20;
const LARGEST_VALUE: i32 = 1 << 20;
/// Half-widths below this are stretched as if they were this wide, so that the scale is finite.
const LEAST_HALF_WIDTH: f64 = 1e-6;

/// What the columns of one feature may hold, on the grid. Public.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Span {
    /// Every column between the bounds, independently. Noise takes published features beyond
    /// [0, 2^fx].
    Between {
        /// Least value.
        low: i32,
        /// Largest value.
        high: i32,
    },
    /// At most one column is 2^fx, the others are 0.
    OneHot,
}

/// What encoded rows may hold: a span for every block of columns, in order. Public.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Domain {
    blocks: Vec<(Range<usize>, Span)>,
    width: usize,
}

/// Spans that do not make a domain.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DomainError {
    /// Bounds reversed, equal, or far beyond any grid.
    #[error(
        "columns {columns:?}: the lower bound {low} must be below the upper bound {high}, and both within ±2^20"
    )]
    Bounds {
        /// Which columns.
        columns: Range<usize>,
        /// Lower bound.
        low: i32,
        /// Upper bound.
        high: i32,
    },
    /// Too many columns.
    #[error("{0} columns are too many")]
    Columns(usize),
}

impl Domain {
    /// Blocks of the given widths and spans, one after the other.
    pub fn new(blocks: impl IntoIterator<Item = (usize, Span)>) -> Result<Self, DomainError> {
        let mut width = 0usize;
        let mut placed = Vec::new();
        for (columns, span) in blocks {
            let end = width.saturating_add(columns);
            if end > MOST_COLUMNS {
                return Err(DomainError::Columns(end));
            }
            if let Span::Between { low, high } = span {
                let fits = low < high && low >= -LARGEST_VALUE && high <= LARGEST_VALUE;
                let columns = width..end;
                fits.then_some(())
                    .ok_or(DomainError::Bounds { columns, low, high })?;
            }
            placed.push((width..end, span));
            width = end;
        }
        Ok(Self {
            blocks: placed,
            width,
        })
    }

    /// The domain of features as a schema encodes them: [0, 1], and one-hot blocks.
    pub fn of_features(features: &[Feature], precision: Precision) -> Result<Self, DomainError> {
        let plain = Span::Between {
            low: 0,
            high: precision.one(),
        };
        Self::new(features.iter().map(|f| match f.columns.len() {
            1 => (1, plain.clone()),
            width => (width, Span::OneHot),
        }))
    }

    /// Number of columns.
    pub fn width(&self) -> usize {
        self.width
    }

    /// The largest |value| of any column, the bias column among them.
    pub fn largest(&self, precision: Precision) -> i32 {
        let largest = |span: &Span| match *span {
            Span::Between { low, high } => low.abs().max(high.abs()),
            Span::OneHot => precision.one(),
        };
        let spans = self.blocks.iter().map(|(_, span)| largest(span));
        spans.fold(precision.one(), i32::max)
    }

    /// Whether a row of the grid is within.
    pub fn contains(&self, row: &[i32], precision: Precision) -> bool {
        row.len() == self.width
            && self.blocks.iter().all(|(columns, span)| {
                let values = &row[columns.clone()];
                match *span {
                    Span::Between { low, high } => values.iter().all(|v| (low..=high).contains(v)),
                    Span::OneHot => {
                        let hot = values.iter().filter(|&&v| v == precision.one()).count();
                        let cold = values.iter().filter(|&&v| v == 0).count();
                        hot <= 1 && hot + cold == values.len()
                    }
                }
            })
    }

    /// Least and largest Σ weight_j·x_j over the domain, for any number type.
    fn range<T>(&self, weights: &[T], one: T, from: impl Fn(i32) -> T) -> (T, T)
    where
        T: Copy + PartialOrd + Default + std::ops::Add<Output = T> + std::ops::Mul<Output = T>,
    {
        let mut ends = (T::default(), T::default());
        let mut widen = |a: T, b: T| {
            let (least, most) = if a < b { (a, b) } else { (b, a) };
            ends = (ends.0 + least, ends.1 + most);
        };
        for (columns, span) in &self.blocks {
            let weights = &weights[columns.clone()];
            match *span {
                Span::Between { low, high } => {
                    let (low, high) = (from(low), from(high));
                    weights.iter().for_each(|&w| widen(w * low, w * high));
                }
                Span::OneHot => {
                    let zero = T::default();
                    let least = weights.iter().fold(zero, |m, &w| if w < m { w } else { m });
                    let most = weights.iter().fold(zero, |m, &w| if w > m { w } else { m });
                    widen(least * one, most * one);
                }
            }
        }
        ends
    }

    /// Least and largest Σ weight_j·x_int,j over the domain, exactly.
    pub(crate) fn integer_range(&self, weights: &[i128], precision: Precision) -> (i128, i128) {
        self.range(weights, i128::from(precision.one()), i128::from)
    }

    /// Σ (high_j − low_j): how much rounding of weights can widen the range, times four.
    fn total_spread(&self, precision: Precision) -> f64 {
        let spread = |(columns, span): &(Range<usize>, Span)| match *span {
            Span::Between { low, high } => {
                (f64::from(high) - f64::from(low)) * columns.len() as f64
            }
            Span::OneHot => 2.0 * f64::from(precision.one()),
        };
        self.blocks.iter().map(spread).sum()
    }
}

/// Coefficients on the integer scale. The data user's secret, like the coefficients.
#[derive(Clone, PartialEq)]
pub struct Scaled {
    /// What every score begins with.
    pub constant: i64,
    /// One weight a column.
    pub weights: Vec<i64>,
    /// The score, in real units, that a table index of 0 stands for.
    pub centre: f64,
    /// The distance of two table points, in real units.
    pub step: f64,
}

impl std::fmt::Debug for Scaled {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Scaled({} weights)", self.weights.len())
    }
}

/// Why coefficients cannot be scaled.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ScaleError {
    /// Not one coefficient a column and a bias.
    #[error("{found} coefficients for a bias and {width} columns")]
    Dimension {
        /// Columns of the domain.
        width: usize,
        /// Coefficients given.
        found: usize,
    },
    /// A coefficient is NaN, infinite, or so large that the range of scores is.
    #[error("the coefficients left the range of numbers: lower the learning rate")]
    NotFinite,
    /// The integer range of scores leaves the ring. Cannot happen; checked all the same.
    #[error("scores between {least} and {most} do not fit the ring (a defect of this program)")]
    Wraps {
        /// Least integer score.
        least: i128,
        /// Largest integer score.
        most: i128,
    },
}

impl Scaled {
    /// Scales `beta` (bias first) for rows of the domain.
    pub fn new(beta: &[f64], domain: &Domain, precision: Precision) -> Result<Self, ScaleError> {
        if beta.len() != domain.width() + 1 {
            let (width, found) = (domain.width(), beta.len());
            return Err(ScaleError::Dimension { width, found });
        }
        let slopes = &beta[1..];
        let one = f64::from(precision.one());
        let (low, high) = domain.range(slopes, one, f64::from);
        let half_width = (high - low) / 2.0;
        if !(half_width.is_finite() && beta[0].is_finite()) {
            return Err(ScaleError::NotFinite);
        }
        let stretch = Self::stretch(half_width / one, domain, precision) / one;
        let weights: Vec<i64> = slopes
            .iter()
            .map(|b| (b * stretch).round() as i64)
            .collect();
        let (low, high) = Self::integer_range(&weights, domain, precision);
        let constant = -(low + high).div_euclid(2);
        let scaled = Self {
            constant: constant as i64,
            weights,
            centre: beta[0] - constant as f64 / (stretch * one),
            step: (1i64 << precision.dropped_bits()) as f64 / (stretch * one),
        };
        Self::check_range(low + constant, high + constant, precision)?;
        Ok(scaled)
    }

    /// S, the integer distance that stands for a score of 1. The slack is the bound of the module
    /// text, and 2^-40 of the whole range for the rounding of f64.
    fn stretch(half_width: f64, domain: &Domain, precision: Precision) -> f64 {
        let limit = Self::limit(precision) as f64;
        let slack = domain.total_spread(precision) / 4.0 + 1.0 + limit * 2f64.powi(-40);
        (limit - slack) / half_width.max(LEAST_HALF_WIDTH)
    }

    /// The largest |z_int|: one table step below the end of the ring.
    fn limit(precision: Precision) -> i64 {
        (1 << (RING.bits() - 1)) - (1 << precision.dropped_bits())
    }

    fn integer_range(weights: &[i64], domain: &Domain, precision: Precision) -> (i128, i128) {
        let weights: Vec<i128> = weights.iter().map(|&w| i128::from(w)).collect();
        domain.integer_range(&weights, precision)
    }

    fn check_range(least: i128, most: i128, precision: Precision) -> Result<(), ScaleError> {
        let limit = i128::from(Self::limit(precision));
        match least >= -limit && most <= limit {
            true => Ok(()),
            false => Err(ScaleError::Wraps { least, most }),
        }
    }

    /// z_int of a row, in the ring. Only a row outside the domain wraps.
    pub fn score(&self, row: &[i32]) -> u64 {
        let terms = self.weights.iter().zip(row);
        let sum = terms.fold(self.constant, |sum, (&w, &x)| {
            sum.wrapping_add(w.wrapping_mul(i64::from(x)))
        });
        RING.from_signed(sum)
    }

    /// The real score that an unsigned table index of k bits stands for.
    pub fn point(&self, index: u32, precision: Precision) -> f64 {
        let t = precision.index_ring().signed(u64::from(index));
        self.centre + t as f64 * self.step
    }

    /// A bound of |score| over every table point.
    pub fn largest_score(&self, precision: Precision) -> f64 {
        self.centre.abs() + self.step * (precision.table_len() / 2) as f64
    }
}
