//! Rows of one provider as whole numbers.

use super::GridError;
use super::encoding::{ColumnKind, Encoding};
use crate::target::RowLabel;

/// Rows of one provider: values for the scores, a payload for the sums, and labels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GridRows {
    width: usize,
    payload_width: usize,
    values: Vec<i32>,
    payload: Vec<i32>,
    labels: Vec<RowLabel>,
}

impl GridRows {
    /// Rows with as many values and numbers of payload as the encoding has columns.
    pub fn new<L: Into<RowLabel>>(
        encoding: &Encoding,
        values: Vec<i32>,
        payload: Vec<i32>,
        labels: Vec<L>,
    ) -> Result<Self, GridError> {
        let rows = labels.len();
        let (width, payload_width) = (encoding.width(), encoding.payload().len());
        if values.len() != width * rows || payload.len() != payload_width * rows {
            return Err(GridError::Shape {
                values: values.len(),
                payload: payload.len(),
                rows,
                width,
            });
        }
        Ok(Self {
            width,
            payload_width,
            values,
            payload,
            labels: labels.into_iter().map(Into::into).collect(),
        })
    }

    /// Rows whose payload is 1 and their values.
    pub fn plain<L: Into<RowLabel>>(
        encoding: &Encoding,
        values: Vec<i32>,
        labels: Vec<L>,
    ) -> Result<Self, GridError> {
        let payload = plain_payload(encoding, &values);
        Self::new(encoding, values, payload, labels)
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.labels.len()
    }

    /// One row's values.
    pub fn values(&self, row: usize) -> &[i32] {
        &self.values[row * self.width..][..self.width]
    }

    /// One row's payload.
    pub fn payload(&self, row: usize) -> &[i32] {
        &self.payload[row * self.payload_width..][..self.payload_width]
    }

    /// A row's label.
    pub fn label(&self, row: usize) -> RowLabel {
        self.labels[row]
    }
}

/// The payload of rows that have none of their own: 1, numbers as they are, 0 or 1 for a level.
pub fn plain_payload(encoding: &Encoding, values: &[i32]) -> Vec<i32> {
    let width = encoding.width();
    let kinds = encoding.kinds();
    let fraction = encoding.value_bits();
    let rows = values.len().checked_div(width).unwrap_or(0);
    let mut payload = Vec::with_capacity(rows * (width + 1));
    for row in values.chunks_exact(width.max(1)) {
        payload.push(1);
        payload.extend(row.iter().zip(&kinds).map(|(value, kind)| match kind {
            ColumnKind::Number => *value,
            ColumnKind::Indicator => value >> fraction,
        }));
    }
    payload
}
