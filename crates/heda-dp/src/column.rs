//! Columns on public grids: what may be released.

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bad_columns_have_their_own_errors() {
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
    }
}
