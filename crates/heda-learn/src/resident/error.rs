//! What does not fit the grid.

use std::ops::Range;

/// What does not fit the grid: the public numbers of a job, coefficients or rows.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GridError {
    /// A number outside what the engine is built for.
    #[error("{what} is {got}; choose {allowed}")]
    Resolution {
        /// Which number.
        what: &'static str,
        /// What was asked for.
        got: u32,
        /// What is possible.
        allowed: &'static str,
    },
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
    /// A payload without columns, or with columns of no size.
    #[error("the payload must have columns, each with a largest value from 1 to 2^20")]
    Payload,
    /// Not one coefficient a column and a bias.
    #[error("{found} coefficients for a bias and {width} columns")]
    Coefficients {
        /// Columns of the encoding.
        width: usize,
        /// Coefficients given.
        found: usize,
    },
    /// Numbers that do not fill the rows.
    #[error(
        "{values} values and {payload} numbers of payload do not fill {rows} rows of {width} columns"
    )]
    Shape {
        /// How many values there are.
        values: usize,
        /// How many numbers the payload has.
        payload: usize,
        /// How many labels there are.
        rows: usize,
        /// Columns of a row.
        width: usize,
    },
    /// A row holds what the encoding excludes.
    #[error("provider {provider}, row {row}: a value outside the agreed encoding")]
    Row {
        /// The provider, from 0.
        provider: usize,
        /// The row, from 0.
        row: usize,
    },
}
