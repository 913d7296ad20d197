//! Scores of held-out rows by true class: what the evaluation yields, and what follows from it.

use heda_learn::private::evaluation::{NoisyTable, ROW_UNITS, RightRows};
use serde::{Deserialize, Serialize};

/// Edges between the ranges of scores. Zero must be among them: it is the decision.
pub(crate) const EDGES: [f64; 13] = [
    -7.0, -4.0, -2.5, -1.5, -1.0, -0.5, 0.0, 0.5, 1.0, 1.5, 2.5, 4.0, 7.0,
];

/// The same for counts with noise: few ranges, because every count carries all of it.
pub(crate) const PRIVATE_EDGES: [f64; 3] = [-1.0, 0.0, 1.0];

/// The same where held-out rows are so few that only the decision is counted.
pub(crate) const DECISION_EDGE: [f64; 1] = [0.0];

/// Deviations by which noisy counts may be off: beyond it something else is wrong.
const MOST_DEVIATIONS: f64 = 16.0;

/// Numbers in a histogram: a range has one for each class.
pub const NUMBERS: usize = 2 * (EDGES.len() + 1);

/// Counts of rows by range of their score, ranges in ascending order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Histogram {
    /// The first range whose rows are predicted positive.
    pub decision: usize,
    /// Rows of the negative class.
    pub negatives: Vec<u64>,
    /// Rows of the positive class.
    pub positives: Vec<u64>,
    /// Deviation of the noise that each count carried before they were made to fit the number of rows
    /// and of right predictions; none if they are exact.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub noise: Option<f64>,
}

/// Counts of right and wrong predictions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct BinaryConfusion {
    /// Positive, predicted so.
    pub true_positives: u64,
    /// Negative, predicted positive.
    pub false_positives: u64,
    /// Negative, predicted so.
    pub true_negatives: u64,
    /// Positive, predicted negative.
    pub false_negatives: u64,
}

impl BinaryConfusion {
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
    /// From counts, those of the negative class first.
    pub(crate) fn of_counts(counts: &[u64]) -> Self {
        let lanes = counts.len() / 2;
        let (negatives, positives) = counts.split_at(lanes);
        Self {
            decision: lanes / 2,
            negatives: negatives.to_vec(),
            positives: positives.to_vec(),
            noise: None,
        }
    }

    /// What a table with noise looks like in whole rows, for people: the nearest counts that no row
    /// contradicts, with as many right predictions as are estimated. The estimate itself is not made
    /// from these.
    pub(crate) fn of_noisy(table: &NoisyTable, right: &RightRows) -> Self {
        let all = right.rows;
        let right = right.estimate.round().clamp(0.0, all as f64) as u64;
        let mut whole = vec![0; table.counts.len()];
        for (is_right, rows) in [(true, right), (false, all - right)] {
            let places: Vec<usize> = (0..whole.len())
                .filter(|place| table.is_right(*place) == is_right)
                .collect();
            let counts: Vec<f64> = places.iter().map(|place| table.counts[*place]).collect();
            for (place, count) in places.into_iter().zip(nearest(&counts, rows)) {
                whole[place] = count;
            }
        }
        Self {
            noise: Some(table.deviation),
            ..Self::of_counts(&whole)
        }
    }

    /// Right and wrong predictions.
    pub fn confusion(&self) -> BinaryConfusion {
        let split = |counts: &[u64]| {
            let (below, above) = counts.split_at(self.decision.min(counts.len()));
            (below.iter().sum::<u64>(), above.iter().sum::<u64>())
        };
        let (true_negatives, false_positives) = split(&self.negatives);
        let (false_negatives, true_positives) = split(&self.positives);
        BinaryConfusion {
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

/// One answer about the held-out rows of a private job, in rows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NoisyCounts {
    /// One of right predictions, or a table: those of the negative class first.
    pub counts: Vec<f64>,
    /// Deviation of the noise in each.
    pub deviation: f64,
}

impl NoisyCounts {
    /// From what was counted, in units.
    pub(crate) fn of_units(counts: &[i64], deviation: f64) -> Self {
        let unit = f64::from(ROW_UNITS);
        Self {
            counts: counts.iter().map(|count| *count as f64 / unit).collect(),
            deviation: deviation / unit,
        }
    }

    /// As the number of right predictions.
    pub(crate) fn right(&self, rows: u64) -> Option<RightRows> {
        let &[estimate] = &self.counts[..] else {
            return None;
        };
        Some(RightRows {
            estimate,
            deviation: self.deviation,
            rows,
        })
    }

    /// As a table.
    pub(crate) fn table(&self) -> NoisyTable {
        NoisyTable {
            counts: self.counts.clone(),
            deviation: self.deviation,
        }
    }

    /// Whether so many rows and noise can have given this. Masks that do not cancel give anything.
    pub(crate) fn is_possible(&self, rows: u64) -> bool {
        let sum: f64 = self.counts.iter().sum();
        let noise = MOST_DEVIATIONS * self.deviation * (self.counts.len() as f64).sqrt();
        let least = if self.counts.len() == 1 {
            0.0
        } else {
            rows as f64
        };
        sum >= least - noise && sum <= rows as f64 + noise
    }
}

/// The whole numbers of this sum, none below zero, that are nearest to noisy ones: as much is
/// taken off (or put on) everywhere as it takes, and what would fall below zero stays there.
fn nearest(counts: &[f64], rows: u64) -> Vec<u64> {
    let mut sorted = counts.to_vec();
    sorted.sort_by(|a, b| b.total_cmp(a));
    let (mut sum, mut shift) = (0.0, 0.0);
    for (place, count) in sorted.iter().enumerate() {
        sum += count;
        let candidate = (sum - rows as f64) / (place + 1) as f64;
        if count - candidate >= 0.0 {
            shift = candidate;
        }
    }
    let exact = counts.iter().map(|count| (count - shift).max(0.0));
    let exact: Vec<f64> = exact.collect();
    let mut whole: Vec<u64> = exact.iter().map(|count| count.floor() as u64).collect();
    // What rounding down left goes where most was cut off.
    let left = rows.saturating_sub(whole.iter().sum());
    let mut order: Vec<usize> = (0..counts.len()).collect();
    order.sort_by(|&a, &b| (exact[b] - exact[b].floor()).total_cmp(&(exact[a] - exact[a].floor())));
    for &place in order.iter().cycle().take(left as usize) {
        whole[place] += 1;
    }
    whole
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn noisy_counts_become_counts_of_so_many_rows() {
        for (counts, rows, expected) in [
            (&[3.0, 1.0, 1.0, 5.0][..], 10, &[3u64, 1, 1, 5][..]),
            (&[4.0, 2.0, 2.0, 6.0], 10, &[3, 1, 1, 5]),
            (&[-7.0, 2.0, 0.0, 11.0], 10, &[0, 1, 0, 9]),
            (&[-5.0, -5.0, -5.0, -5.0], 4, &[1, 1, 1, 1]),
            (&[0.0, 0.0, 0.0, 0.0], 0, &[0, 0, 0, 0]),
            (&[10.0, 10.0, 10.0, 10.0], 3, &[1, 1, 1, 0]),
        ] {
            assert_eq!(nearest(counts, rows), expected, "{counts:?}");
        }
    }

    /// What is shown has as many rows and right predictions as are told beside it.
    #[test]
    fn a_noisy_table_is_shown_with_the_right_predictions_that_are_told() {
        let table = NoisyTable {
            counts: vec![50.2, -7.1, 3.9, 53.0],
            deviation: 9.0,
        };
        let right = |estimate| RightRows {
            estimate,
            deviation: 4.0,
            rows: 100,
        };
        let shown = Histogram::of_noisy(&table, &right(95.6));
        let confusion = shown.confusion();
        assert_eq!(confusion.rows(), 100);
        assert_eq!(confusion.true_positives + confusion.true_negatives, 96);
        assert_eq!(
            (confusion.false_positives, confusion.false_negatives),
            (0, 4)
        );
        assert_eq!(shown.noise, Some(9.0));
        let all = Histogram::of_noisy(&table, &right(104.0)).confusion();
        assert_eq!((all.rows(), all.accuracy()), (100, Some(1.0)));
    }

    /// Masks that do not cancel are no noise.
    #[test]
    fn answers_that_no_rows_give_are_known() {
        let of = |counts: &[f64]| NoisyCounts {
            counts: counts.to_vec(),
            deviation: 2.0,
        };
        assert!(of(&[130.0]).is_possible(100));
        assert!(of(&[-30.0]).is_possible(100));
        assert!(!of(&[133.0]).is_possible(100));
        assert!(!of(&[-1e9]).is_possible(100));
        assert!(of(&[90.0, 40.0, 10.0, 20.0]).is_possible(100));
        assert!(!of(&[9.0, 4.0, 1.0, 2.0]).is_possible(100));
        assert!(!of(&[1e9, 4.0, 1.0, 2.0]).is_possible(100));
        let units = NoisyCounts::of_units(&[128, 512], 256.0);
        assert_eq!((units.counts, units.deviation), (vec![0.5, 2.0], 1.0));
    }

    #[test]
    fn counts_and_bounds_follow_from_the_ranges() {
        let histogram = Histogram {
            decision: 1,
            negatives: vec![3, 1],
            positives: vec![1, 5],
            noise: None,
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
            noise: None,
        };
        assert_eq!(empty.auc_bounds(), None);
    }
}
