//! Columns on public grids: what may be released, and how a value gets onto its grid.

use serde::{Deserialize, Serialize};
use std::num::NonZeroU32;

/// The most levels that a category may have: a randomised answer needs up to as many proposals.
pub const MOST_LEVELS: u32 = 1 << 16;

/// The public domain of one column. It comes from the schema, never from the data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ColumnSpec {
    /// A number or an ordered level: values 0..=steps, one row changes a value by `steps` at most.
    Grid {
        /// The largest value.
        steps: u32,
    },
    /// A category without order: values 0..count.
    Levels {
        /// How many levels there are.
        count: u32,
    },
}

/// Why a column cannot be released whatever its values are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SpecError {
    /// A grid of one point.
    #[error("the grid has no steps; a column with one possible value says nothing, drop it")]
    NoSteps,
    /// Fewer than two levels.
    #[error("{0} levels; a category needs at least two, drop the column")]
    TooFewLevels(u32),
    /// More levels than [`MOST_LEVELS`].
    #[error("{0} levels, at most {MOST_LEVELS} can be released; merge rare levels")]
    TooManyLevels(u32),
}

/// A column's domain after its check.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Domain {
    Grid(NonZeroU32),
    Levels(NonZeroU32),
}

impl ColumnSpec {
    pub(crate) fn check(self) -> Result<Domain, SpecError> {
        match self {
            Self::Grid { steps } => NonZeroU32::new(steps)
                .map(Domain::Grid)
                .ok_or(SpecError::NoSteps),
            Self::Levels { count } if count > MOST_LEVELS => Err(SpecError::TooManyLevels(count)),
            Self::Levels { count } => NonZeroU32::new(count)
                .filter(|count| count.get() > 1)
                .map(Domain::Levels)
                .ok_or(SpecError::TooFewLevels(count)),
        }
    }

    /// The largest value on the grid, or the last level.
    pub fn largest(self) -> u32 {
        match self {
            Self::Grid { steps } => steps,
            Self::Levels { count } => count.saturating_sub(1),
        }
    }
}

/// Public bounds of a number.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "(f64, f64)", into = "(f64, f64)")]
pub struct Bounds {
    low: f64,
    high: f64,
}

/// Why two numbers are no bounds.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum BoundsError {
    /// Infinite or not a number, or so far apart that their distance is.
    #[error("bounds {low} to {high} are not finite")]
    NotFinite {
        /// Lower bound given.
        low: f64,
        /// Upper bound given.
        high: f64,
    },
    /// The lower one is above the upper one.
    #[error("bounds {low} to {high} are reversed; give the smaller one first")]
    Reversed {
        /// Lower bound given.
        low: f64,
        /// Upper bound given.
        high: f64,
    },
    /// Both the same.
    #[error("both bounds are {0}; a column with one possible value says nothing, drop it")]
    Empty(f64),
}

/// A value outside its public bounds.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
#[error("the value lies outside the public bounds {low} to {high}")]
pub struct Outside {
    /// Lower bound.
    pub low: f64,
    /// Upper bound.
    pub high: f64,
}

impl Bounds {
    /// From 0 to 1.
    pub const UNIT: Self = Self {
        low: 0.0,
        high: 1.0,
    };

    /// Checks and keeps.
    pub fn new(low: f64, high: f64) -> Result<Self, BoundsError> {
        if !(high - low).is_finite() {
            return Err(BoundsError::NotFinite { low, high });
        }
        if low > high {
            return Err(BoundsError::Reversed { low, high });
        }
        if low == high {
            return Err(BoundsError::Empty(low));
        }
        Ok(Self { low, high })
    }

    /// The lower bound.
    pub fn low(&self) -> f64 {
        self.low
    }

    /// The upper bound.
    pub fn high(&self) -> f64 {
        self.high
    }

    /// Upper minus lower: how far one row can move a value.
    pub fn range(&self) -> f64 {
        self.high - self.low
    }

    /// Whether a value lies within.
    pub fn contains(&self, value: f64) -> bool {
        (self.low..=self.high).contains(&value)
    }

    /// The nearest point of a grid of `steps` steps.
    pub fn to_grid(&self, value: f64, steps: u32) -> Result<u32, Outside> {
        if !self.contains(value) {
            return Err(Outside {
                low: self.low,
                high: self.high,
            });
        }
        let scaled = (value - self.low) / self.range() * f64::from(steps);
        Ok((scaled.round() as u32).min(steps))
    }
}

impl TryFrom<(f64, f64)> for Bounds {
    type Error = BoundsError;

    fn try_from((low, high): (f64, f64)) -> Result<Self, BoundsError> {
        Self::new(low, high)
    }
}

impl From<Bounds> for (f64, f64) {
    fn from(bounds: Bounds) -> Self {
        (bounds.low, bounds.high)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bad_columns_and_bounds_have_their_own_errors() {
        assert_eq!(
            ColumnSpec::Grid { steps: 0 }.check().unwrap_err(),
            SpecError::NoSteps
        );
        let levels = |count| ColumnSpec::Levels { count }.check().unwrap_err();
        assert_eq!(levels(0), SpecError::TooFewLevels(0));
        assert_eq!(levels(1), SpecError::TooFewLevels(1));
        assert_eq!(
            levels(MOST_LEVELS + 1),
            SpecError::TooManyLevels(MOST_LEVELS + 1)
        );
        assert!(matches!(
            Bounds::new(1.0, 0.0),
            Err(BoundsError::Reversed { .. })
        ));
        assert!(matches!(
            Bounds::new(0.0, f64::NAN),
            Err(BoundsError::NotFinite { .. })
        ));
        assert!(matches!(
            Bounds::new(-f64::MAX, f64::MAX),
            Err(BoundsError::NotFinite { .. })
        ));
        assert_eq!(Bounds::new(2.0, 2.0), Err(BoundsError::Empty(2.0)));
        assert!(serde_json::from_str::<Bounds>("[1, 0]").is_err());
    }

    #[test]
    fn values_go_to_the_nearest_grid_point() {
        let bounds = Bounds::new(17.0, 90.0).unwrap();
        assert_eq!(bounds.to_grid(17.0, 128), Ok(0));
        assert_eq!(bounds.to_grid(90.0, 128), Ok(128));
        assert!(bounds.to_grid(16.9, 128).is_err() && bounds.to_grid(f64::NAN, 128).is_err());
        for point in 0..=128 {
            let value = 17.0 + 73.0 * f64::from(point) / 128.0;
            assert_eq!(bounds.to_grid(value, 128), Ok(point));
        }
    }
}
