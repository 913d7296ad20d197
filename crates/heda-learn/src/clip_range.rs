//! Between which values a column counts: what lies beyond counts as the end.
//!
//! A private training cuts numbers off at three deviations. A model that does not do the same with the
//! rows that it is asked about predicts from values that it has never been trained on, and evaluation
//! on encrypted rows, which are cut off, would be about another model.

use crate::model::ModelError;
use crate::oracle::score;
use serde::{Deserialize, Serialize};

/// For every column of an encoded row the least and the greatest value that counts, in [0, 1].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Vec<[f64; 2]>", into = "Vec<[f64; 2]>")]
pub struct ClipRange(Vec<[f64; 2]>);

impl ClipRange {
    /// One pair a column.
    ///
    /// # Errors
    /// If one is out of order.
    pub fn new(ends: Vec<[f64; 2]>) -> Result<Self, ModelError> {
        let sound = |[from, to]: &[f64; 2]| 0.0 <= *from && from <= to && *to <= 1.0;
        match ends.iter().position(|ends| !sound(ends)) {
            Some(column) => Err(ModelError::ClipRangeEnds(column)),
            None => Ok(Self(ends)),
        }
    }

    /// So far to both sides of a centre for each column, as far as that lies in [0, 1].
    pub(crate) fn around(columns: impl Iterator<Item = (f64, f64)>) -> Self {
        let ends = |(centre, far): (f64, f64)| {
            let far = far.max(0.0);
            [centre - far, centre + far].map(|end| end.clamp(0.0, 1.0))
        };
        Self(columns.map(ends).collect())
    }

    /// Least and greatest value of every column.
    pub fn ends(&self) -> &[[f64; 2]] {
        &self.0
    }

    /// An encoded row as it counts.
    pub fn within(&self, row: &[f64]) -> Vec<f64> {
        let columns = row.iter().zip(&self.0);
        columns.map(|(x, [from, to])| x.clamp(*from, *to)).collect()
    }
}

/// The score of an encoded row as far as it counts: all of it without a reach.
pub fn score_within(beta: &[f64], row: &[f64], reach: Option<&ClipRange>) -> f64 {
    match reach {
        Some(reach) => score(beta, &reach.within(row)),
        None => score(beta, row),
    }
}

impl TryFrom<Vec<[f64; 2]>> for ClipRange {
    type Error = ModelError;

    fn try_from(ends: Vec<[f64; 2]>) -> Result<Self, ModelError> {
        Self::new(ends)
    }
}

impl From<ClipRange> for Vec<[f64; 2]> {
    fn from(reach: ClipRange) -> Self {
        reach.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_beyond_counts_as_the_end() {
        let reach = ClipRange::new(vec![[0.25, 0.5], [0.0, 1.0], [0.5, 0.5]]).unwrap();
        assert_eq!(reach.within(&[0.0, 0.1, 0.9]), [0.25, 0.1, 0.5]);
        assert_eq!(reach.within(&[1.0, 1.0, 0.0]), [0.5, 1.0, 0.5]);
        assert_eq!(reach.within(&[0.3, 0.0, 0.5]), [0.3, 0.0, 0.5]);
    }

    #[test]
    fn ends_out_of_order_are_refused() {
        for bad in [
            [0.5, 0.25],
            [-0.1, 1.0],
            [0.0, 1.1],
            [f64::NAN, 1.0],
            [0.0, f64::NAN],
        ] {
            let refused = ClipRange::new(vec![[0.0, 1.0], bad]);
            assert!(matches!(refused, Err(ModelError::ClipRangeEnds(1))));
        }
    }
}
