//! Rows of real numbers: what the paper's mechanisms work on.

/// Rows of equally many finite numbers, in original or scaled units.
#[derive(Debug, Clone, PartialEq)]
pub struct Points {
    width: usize,
    values: Vec<f64>,
}

/// Why numbers do not make rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PointsError {
    /// Rows without columns.
    #[error("rows need at least one column")]
    NoColumns,
    /// The last row is not full.
    #[error("{values} values do not fill rows of {width} columns")]
    Shape {
        /// How many values.
        values: usize,
        /// How many columns.
        width: usize,
    },
    /// Infinite or not a number.
    #[error("row {row}, column {column}: not a finite number")]
    NotFinite {
        /// Row, from 0.
        row: usize,
        /// Column, from 0.
        column: usize,
    },
}

impl Points {
    /// Checks values given row by row.
    pub fn new(width: usize, values: Vec<f64>) -> Result<Self, PointsError> {
        if width == 0 {
            return Err(PointsError::NoColumns);
        }
        if !values.len().is_multiple_of(width) {
            let values = values.len();
            return Err(PointsError::Shape { values, width });
        }
        if let Some(at) = values.iter().position(|v| !v.is_finite()) {
            let (row, column) = (at / width, at % width);
            return Err(PointsError::NotFinite { row, column });
        }
        Ok(Self { width, values })
    }

    /// Values that are known to be finite and to fill their rows.
    pub(crate) fn from_checked(width: usize, values: Vec<f64>) -> Self {
        Self { width, values }
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.values.len() / self.width
    }

    /// Number of columns.
    pub fn width(&self) -> usize {
        self.width
    }

    /// One row.
    pub fn row(&self, row: usize) -> &[f64] {
        &self.values[row * self.width..][..self.width]
    }

    /// All rows.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[f64]> {
        self.values.chunks_exact(self.width)
    }

    /// One column.
    pub fn column(&self, column: usize) -> impl Iterator<Item = f64> + '_ {
        assert!(column < self.width, "column {column} of {}", self.width);
        self.values.iter().skip(column).step_by(self.width).copied()
    }

    /// All values, row by row.
    pub fn values(&self) -> &[f64] {
        &self.values
    }

    /// Smallest and largest value of a column; `None` without rows.
    pub fn extremes(&self, column: usize) -> Option<(f64, f64)> {
        self.column(column)
            .map(|x| (x, x))
            .reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_and_columns_are_found_again() {
        let points = Points::new(2, vec![1.0, 2.0, 3.0, -4.0]).unwrap();
        assert_eq!((points.rows(), points.row(1)), (2, &[3.0, -4.0][..]));
        assert_eq!(points.column(1).collect::<Vec<_>>(), [2.0, -4.0]);
        assert_eq!(points.extremes(1), Some((-4.0, 2.0)));
    }

    #[test]
    fn bad_input_has_its_own_errors() {
        assert_eq!(Points::new(0, vec![]), Err(PointsError::NoColumns));
        assert_eq!(
            Points::new(2, vec![0.0]),
            Err(PointsError::Shape {
                values: 1,
                width: 2
            })
        );
        let nan = Points::new(2, vec![0.0, 1.0, f64::NAN, 0.0]);
        assert_eq!(nan, Err(PointsError::NotFinite { row: 1, column: 0 }));
    }
}
