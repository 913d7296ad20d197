//! A provider's rows as the engine uses them.

use crate::engine::label_encoding::LabelEncoding;
use heda_learn::private::PrivateRows;
use heda_learn::resident::{ColumnKind, Encoding, plain_payload};
use heda_learn::target::RowLabel;
use std::ops::Range;
use zeroize::Zeroizing;

/// Rows of one provider: values for the scores, numbers on the grid and indicators as 0 or 1; and a
/// payload for the sums.
pub(super) struct Rows {
    width: usize,
    payload_width: usize,
    values: Zeroizing<Vec<i32>>,
    payload: Zeroizing<Vec<i32>>,
    labels: Zeroizing<Vec<u32>>,
    labels_as: LabelEncoding,
}

impl Rows {
    /// From values on the grid, row by row, where an indicator's 1 is 2^f_x; the payload is 1 and
    /// the values.
    pub(super) fn plain(encoding: &Encoding, grid: Vec<i32>, labels: Vec<u32>) -> Self {
        let payload = plain_payload(encoding, &grid);
        Self::new(encoding, grid, payload, labels)
    }

    /// Rows as a private job uses them: the bias is a column like the others.
    pub(super) fn of_private(encoding: &Encoding, rows: &PrivateRows, labels: Vec<u32>) -> Self {
        let all = 0..rows.rows();
        let values = all.clone().flat_map(|row| rows.score(row).iter().copied());
        let payload = all.flat_map(|row| rows.payload(row).iter().copied());
        Self::new(encoding, values.collect(), payload.collect(), labels)
    }

    /// From values on the grid and a payload, row by row.
    pub(super) fn new(
        encoding: &Encoding,
        mut grid: Vec<i32>,
        payload: Vec<i32>,
        labels: Vec<u32>,
    ) -> Self {
        let width = encoding.width();
        let fraction = encoding.value_bits();
        let kinds = encoding.kinds();
        for row in grid.chunks_exact_mut(width.max(1)) {
            for (value, kind) in row.iter_mut().zip(&kinds) {
                if *kind == ColumnKind::Indicator {
                    *value >>= fraction;
                }
            }
        }
        Self {
            width,
            payload_width: encoding.payload().len(),
            values: Zeroizing::new(grid),
            payload: Zeroizing::new(payload),
            labels: Zeroizing::new(labels),
            labels_as: LabelEncoding::default(),
        }
    }

    /// The same rows, with labels that are read so.
    pub(super) fn read_as(self, labels_as: &LabelEncoding) -> Self {
        let labels_as = labels_as.clone();
        Self { labels_as, ..self }
    }

    /// How many rows there are.
    pub(super) fn count(&self) -> usize {
        self.labels.len()
    }

    /// Some of the rows, with the class that counts as positive.
    pub(super) fn batch(&self, range: Range<usize>, positive: u32) -> Batch<'_> {
        let payload = range.start * self.payload_width..range.end * self.payload_width;
        Batch {
            width: self.width,
            payload_width: self.payload_width,
            values: &self.values[range.start * self.width..range.end * self.width],
            payload: &self.payload[payload],
            labels: &self.labels[range],
            labels_as: &self.labels_as,
            positive,
        }
    }
}

/// The rows of one gradient.
#[derive(Clone, Copy)]
pub(super) struct Batch<'a> {
    width: usize,
    payload_width: usize,
    values: &'a [i32],
    payload: &'a [i32],
    labels: &'a [u32],
    labels_as: &'a LabelEncoding,
    positive: u32,
}

impl<'a> Batch<'a> {
    /// How many rows there are.
    pub(super) fn count(&self) -> usize {
        self.labels.len()
    }

    /// One row's values.
    pub(super) fn row(&self, row: usize) -> &'a [i32] {
        &self.values[row * self.width..][..self.width]
    }

    /// One row's payload.
    pub(super) fn payload(&self, row: usize) -> &'a [i32] {
        &self.payload[row * self.payload_width..][..self.payload_width]
    }

    /// A row's label.
    pub(super) fn label(&self, row: usize) -> RowLabel {
        self.labels_as.label(self.labels[row], self.positive)
    }

    /// One column, a value a row, modulo 2^32.
    pub(super) fn column(&self, column: usize) -> Zeroizing<Vec<u32>> {
        let values = self.values.iter().skip(column).step_by(self.width.max(1));
        Zeroizing::new(values.map(|value| *value as u32).collect())
    }
}
