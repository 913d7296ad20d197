//! A provider's rows on their grids, and what both parties know about them.

use super::capacity::Limits;
use heda_learn::gradient::Batch;
use heda_learn::grid::Grid;

/// Steps of the grid of encrypted columns: two decimals.
pub(super) const STEPS: u32 = 100;
/// Fraction bits of published columns are at most these.
const MOST_FRACTION_BITS: u32 = 16;

/// How one column takes part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Column {
    /// Encrypted, on a grid of two decimals.
    Encrypted,
    /// Published, on a grid with so many fraction bits.
    Published {
        /// Fraction bits.
        fraction_bits: u32,
    },
}

impl Column {
    /// What one step of the grid is worth.
    pub(super) fn unit(self) -> f64 {
        1.0 / f64::from(self.grid().steps())
    }

    pub(super) fn grid(self) -> Grid {
        match self {
            Self::Encrypted => Grid::of_steps(STEPS),
            Self::Published { fraction_bits } => {
                Grid::of_bits(fraction_bits.min(MOST_FRACTION_BITS))
            }
        }
    }
}

/// What data user and provider both know of the provider's part of a job.
#[derive(Debug, Clone, PartialEq)]
pub struct Shape {
    /// Columns in the order of the model.
    pub columns: Vec<Column>,
    /// Rows of the provider.
    pub rows: usize,
    /// Batches an epoch.
    pub batches: usize,
    /// Classes to be told from the rest, one model each.
    pub positives: Vec<u32>,
    /// Bits of all keys.
    pub key_bits: usize,
    /// What the coefficients may reach.
    pub limits: Limits,
    /// Whether keys may be too short to protect anything. For tests only.
    #[doc(hidden)]
    pub insecure_test_keys: bool,
}

impl Shape {
    /// Indices of encrypted columns.
    pub(super) fn hidden(&self) -> impl Iterator<Item = usize> + '_ {
        self.indices(|column| column == Column::Encrypted)
    }

    /// Indices of published columns.
    pub(super) fn open(&self) -> impl Iterator<Item = usize> + '_ {
        self.indices(|column| column != Column::Encrypted)
    }

    fn indices(&self, wanted: impl Fn(Column) -> bool) -> impl Iterator<Item = usize> {
        let columns = self.columns.iter().enumerate();
        columns
            .filter(move |(_, column)| wanted(**column))
            .map(|(index, _)| index)
    }

    /// The batch with this index.
    pub(super) fn batch(&self, index: usize) -> Batch {
        Batch::new(index, self.batches)
    }

    fn batch_sizes(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.batches).map(|index| self.batch(index).share(self.rows).len())
    }

    pub(super) fn smallest_batch(&self) -> usize {
        self.batch_sizes().min().unwrap_or(0)
    }

    pub(super) fn largest_batch(&self) -> usize {
        self.batch_sizes().max().unwrap_or(0).max(1)
    }

    /// Bits of the largest cell.
    pub(super) fn largest_cell_bits(&self) -> usize {
        let steps = self.columns.iter().map(|column| column.grid().steps());
        steps.max().unwrap_or(1).ilog2() as usize + 1
    }

    /// What one step of each slot is worth, bias first.
    pub(super) fn units(&self) -> Vec<f64> {
        let columns = self.columns.iter().map(|column| column.unit());
        std::iter::once(1.0).chain(columns).collect()
    }
}

/// Why rows were not taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RowsError {
    /// Values, rows and columns do not multiply.
    #[error("{values} values do not fill {rows} rows of {columns} columns")]
    Shape {
        /// How many values there are.
        values: usize,
        /// How many labels there are.
        rows: usize,
        /// How many columns there are.
        columns: usize,
    },
    /// A value outside [0, 1], or not a number.
    #[error("row {row}, column {column}: a value outside [0, 1]")]
    Value {
        /// Row, from 0.
        row: usize,
        /// Column, from 0.
        column: usize,
    },
}

/// A provider's rows on their grids, with their classes. Not printed.
#[derive(Clone, PartialEq, Eq)]
pub struct PaperRows {
    columns: Vec<Column>,
    cells: Vec<u32>,
    labels: Vec<u32>,
}

impl PaperRows {
    /// Rounds values, row by row, to the grids of their columns.
    pub fn new(columns: Vec<Column>, values: &[f64], labels: Vec<u32>) -> Result<Self, RowsError> {
        let width = columns.len();
        if width.checked_mul(labels.len()) != Some(values.len()) {
            return Err(RowsError::Shape {
                values: values.len(),
                rows: labels.len(),
                columns: width,
            });
        }
        if let Some(at) = values.iter().position(|v| !(0.0..=1.0).contains(v)) {
            let (row, column) = (at / width, at % width);
            return Err(RowsError::Value { row, column });
        }
        let cell = |(at, value): (usize, &f64)| columns[at % width].grid().point(*value);
        let cells = values.iter().enumerate().map(cell).collect();
        Ok(Self {
            columns,
            cells,
            labels,
        })
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.labels.len()
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.labels.is_empty()
    }

    /// The columns.
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// The classes.
    pub fn labels(&self) -> &[u32] {
        &self.labels
    }

    /// One row, in steps of the grids.
    pub fn row(&self, row: usize) -> &[u32] {
        &self.cells[row * self.columns.len()..][..self.columns.len()]
    }

    /// One row, in the units of the model.
    pub fn values(&self, row: usize) -> impl Iterator<Item = f64> + '_ {
        let cells = self.columns.iter().zip(self.row(row));
        cells.map(|(column, &cell)| column.grid().value(cell))
    }

    /// The published part of all rows, row by row: what a release makes known.
    pub fn published(&self) -> Vec<f64> {
        let open = |row| {
            let kinds = self.columns.iter();
            let cells = kinds.zip(self.values(row));
            cells
                .filter(|(column, _)| **column != Column::Encrypted)
                .map(|(_, value)| value)
        };
        (0..self.len()).flat_map(open).collect()
    }
}

impl std::fmt::Debug for PaperRows {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "PaperRows({} rows of {} columns)",
            self.len(),
            self.columns.len()
        )
    }
}
