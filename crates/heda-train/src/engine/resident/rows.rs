//! A provider's rows as the engine uses them.

use super::shape::{ColumnKind, Shape};
use std::ops::Range;
use zeroize::Zeroizing;

/// Rows of one provider: numbers on the grid, indicators as 0 or 1.
pub(super) struct Rows {
    width: usize,
    values: Zeroizing<Vec<u32>>,
    labels: Zeroizing<Vec<u32>>,
}

impl Rows {
    /// From values on the grid, row by row, where an indicator's 1 is 2^f_x.
    pub(super) fn new(shape: &Shape, mut grid: Vec<u32>, labels: Vec<u32>) -> Self {
        let width = shape.kinds.len();
        let fraction = shape.resolution.value_bits();
        for row in grid.chunks_exact_mut(width.max(1)) {
            for (value, kind) in row.iter_mut().zip(&shape.kinds) {
                if *kind == ColumnKind::Indicator {
                    *value >>= fraction;
                }
            }
        }
        Self {
            width,
            values: Zeroizing::new(grid),
            labels: Zeroizing::new(labels),
        }
    }

    /// How many rows there are.
    pub(super) fn count(&self) -> usize {
        self.labels.len()
    }

    /// Some of the rows, with the class that counts as positive.
    pub(super) fn batch(&self, range: Range<usize>, positive: u32) -> Batch<'_> {
        Batch {
            width: self.width,
            values: &self.values[range.start * self.width..range.end * self.width],
            labels: &self.labels[range],
            positive,
        }
    }
}

/// The rows of one gradient.
#[derive(Clone, Copy)]
pub(super) struct Batch<'a> {
    width: usize,
    values: &'a [u32],
    labels: &'a [u32],
    positive: u32,
}

impl<'a> Batch<'a> {
    /// How many rows there are.
    pub(super) fn count(&self) -> usize {
        self.labels.len()
    }

    /// One row's values.
    pub(super) fn row(&self, row: usize) -> &'a [u32] {
        &self.values[row * self.width..][..self.width]
    }

    /// Whether a row is positive.
    pub(super) fn is_positive(&self, row: usize) -> bool {
        self.labels[row] == self.positive
    }

    /// One column, a value a row.
    pub(super) fn column(&self, column: usize) -> Zeroizing<Vec<u32>> {
        let values = self.values.iter().skip(column).step_by(self.width.max(1));
        Zeroizing::new(values.copied().collect())
    }
}
