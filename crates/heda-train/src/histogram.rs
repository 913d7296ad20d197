//! Scores of held-out rows by true class: what the evaluation yields, and what follows from it.

use serde::{Deserialize, Serialize};

/// Edges between the ranges of scores. Zero must be among them: it is the decision.
pub(crate) const EDGES: [f64; 13] = [
    -7.0, -4.0, -2.5, -1.5, -1.0, -0.5, 0.0, 0.5, 1.0, 1.5, 2.5, 4.0, 7.0,
];

/// Numbers in a histogram: a range has one for each class.
pub const NUMBERS: usize = 2 * (EDGES.len() + 1);

/// Counts of rows by range of their score, ranges in ascending order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Histogram {
    /// The first range whose rows are predicted positive.
    pub decision: usize,
    /// Rows of the negative class.
    pub negatives: Vec<u64>,
    /// Rows of the positive class.
    pub positives: Vec<u64>,
}

/// Counts of right and wrong predictions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Confusion {
    /// Positive, predicted so.
    pub true_positives: u64,
    /// Negative, predicted positive.
    pub false_positives: u64,
    /// Negative, predicted so.
    pub true_negatives: u64,
    /// Positive, predicted negative.
    pub false_negatives: u64,
}

impl Confusion {
    /// All rows.
    pub fn rows(&self) -> u64 {
        self.true_positives + self.false_positives + self.true_negatives + self.false_negatives
    }

    /// Share of right predictions; `None` without rows.
    pub fn accuracy(&self) -> Option<f64> {
        let right = self.true_positives + self.true_negatives;
        (self.rows() > 0).then(|| right as f64 / self.rows() as f64)
    }
}

impl Histogram {
    /// Right and wrong predictions.
    pub fn confusion(&self) -> Confusion {
        let split = |counts: &[u64]| {
            let (below, above) = counts.split_at(self.decision.min(counts.len()));
            (below.iter().sum::<u64>(), above.iter().sum::<u64>())
        };
        let (true_negatives, false_positives) = split(&self.negatives);
        let (false_negatives, true_positives) = split(&self.positives);
        Confusion {
            true_positives,
            false_positives,
            true_negatives,
            false_negatives,
        }
    }

    /// Bounds of the area under the curve: pairs within one range may be ordered either way.
    /// `None` if a class has no rows.
    pub fn auc_bounds(&self) -> Option<(f64, f64)> {
        let mut below = 0u128;
        let (mut ordered, mut tied) = (0u128, 0u128);
        for (&negative, &positive) in self.negatives.iter().zip(&self.positives) {
            let (negative, positive) = (u128::from(negative), u128::from(positive));
            ordered += positive * below;
            tied += positive * negative;
            below += negative;
        }
        let positives: u128 = self.positives.iter().map(|&p| u128::from(p)).sum();
        let pairs = positives * below;
        (pairs > 0).then(|| {
            (
                ordered as f64 / pairs as f64,
                (ordered + tied) as f64 / pairs as f64,
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_and_bounds_follow_from_the_ranges() {
        let histogram = Histogram {
            decision: 1,
            negatives: vec![3, 1],
            positives: vec![1, 5],
        };
        let confusion = histogram.confusion();
        assert_eq!(
            (confusion.true_positives, confusion.false_positives),
            (5, 1)
        );
        assert_eq!(
            (confusion.true_negatives, confusion.false_negatives),
            (3, 1)
        );
        assert_eq!(confusion.accuracy(), Some(0.8));
        // 24 pairs; 15 surely ordered, 3 + 5 within a range.
        assert_eq!(histogram.auc_bounds(), Some((15.0 / 24.0, 23.0 / 24.0)));
        let empty = Histogram {
            decision: 1,
            negatives: vec![0, 0],
            positives: vec![0, 1],
        };
        assert_eq!(empty.auc_bounds(), None);
    }
}
