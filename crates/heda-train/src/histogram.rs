//! Scores of held-out rows by true class: what the evaluation yields, and what follows from it.

use serde::{Deserialize, Serialize};

/// Edges between the ranges of scores. Zero must be among them: it is the decision.
pub(crate) const EDGES: [f64; 13] = [
    -7.0, -4.0, -2.5, -1.5, -1.0, -0.5, 0.0, 0.5, 1.0, 1.5, 2.5, 4.0, 7.0,
];

/// The same for counts with noise: few ranges, because every count carries all of it.
pub(crate) const PRIVATE_EDGES: [f64; 3] = [-1.0, 0.0, 1.0];

/// Deviations by which a sum of noisy counts may be off: beyond it something else is wrong.
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
    /// Deviation of the noise that each count carried before it was made to fit the number of rows;
    /// none if they are exact.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub noise: Option<f64>,
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
    /// From counts, those of the negative class first. With noise they become the nearest whole
    /// counts that no row contradicts: none below nought, and `rows` in all. That looks at nothing
    /// but the noisy counts.
    pub(crate) fn of_counts(counts: &[i64], rows: u64, noise: Option<f64>) -> Self {
        let total: i64 = counts.iter().sum();
        let off = (total - rows as i64).unsigned_abs() as f64;
        let plain = || counts.iter().map(|count| (*count).max(0) as u64).collect();
        let whole: Vec<u64> = match noise {
            // Counts that are too far off stay as they are, and are found to be when the
            // conversation is over.
            Some(one) if off <= MOST_DEVIATIONS * one * (counts.len() as f64).sqrt() => {
                nearest(counts, rows)
            }
            _ => plain(),
        };
        let lanes = whole.len() / 2;
        let (negatives, positives) = whole.split_at(lanes);
        Self {
            decision: lanes / 2,
            negatives: negatives.to_vec(),
            positives: positives.to_vec(),
            noise,
        }
    }

    /// Deviation that the noise leaves in the number of right predictions: half of all counts are
    /// of right ones, and the number of rows is known.
    pub fn noise_in_right(&self) -> Option<f64> {
        let counts = (self.negatives.len() + self.positives.len()) as f64;
        self.noise.map(|noise| noise * counts.sqrt() / 2.0)
    }

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

/// The whole numbers of this sum, none below nought, that are nearest to noisy ones: as much is
/// taken off (or put on) everywhere as it takes, and what would fall below nought stays there.
fn nearest(counts: &[i64], rows: u64) -> Vec<u64> {
    let mut sorted: Vec<f64> = counts.iter().map(|count| *count as f64).collect();
    sorted.sort_by(|a, b| b.total_cmp(a));
    let (mut sum, mut shift) = (0.0, 0.0);
    for (place, count) in sorted.iter().enumerate() {
        sum += count;
        let candidate = (sum - rows as f64) / (place + 1) as f64;
        if count - candidate > 0.0 {
            shift = candidate;
        }
    }
    let exact = counts.iter().map(|count| (*count as f64 - shift).max(0.0));
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
            (&[3i64, 1, 1, 5][..], 10, &[3u64, 1, 1, 5][..]),
            (&[4, 2, 2, 6], 10, &[3, 1, 1, 5]),
            (&[-7, 2, 0, 11], 10, &[0, 1, 0, 9]),
            (&[-5, -5, -5, -5], 4, &[1, 1, 1, 1]),
            (&[0, 0, 0, 0], 0, &[0, 0, 0, 0]),
            (&[10, 10, 10, 10], 3, &[1, 1, 1, 0]),
        ] {
            assert_eq!(nearest(counts, rows), expected, "{counts:?}");
            let histogram = Histogram::of_counts(counts, rows, Some(10.0));
            assert_eq!(histogram.confusion().rows(), rows);
        }
        // Masks that did not cancel are no noise.
        let wild = Histogram::of_counts(&[1 << 30, -9, 4, 4], 10, Some(1.0));
        assert_ne!(wild.confusion().rows(), 10);
        let exact = Histogram::of_counts(&[3, 1, 1, 5], 11, None);
        assert_eq!(exact.confusion().rows(), 10);
    }

    /// Drawn many times, the number of right predictions is off by what is said, where no count is
    /// near nought.
    #[test]
    fn the_noise_in_right_predictions_is_what_is_said() {
        use heda_dp::gaussian::{Variance, sample};
        use rand_core::SeedableRng;
        let mut rng = chacha20::ChaCha20Rng::from_seed([5; 32]);
        let variance = Variance::new(400).unwrap();
        let truth = [500i64, 300, 200, 150, 100, 250, 300, 400];
        let (mut squares, runs) = (0.0, 4000);
        for _ in 0..runs {
            let noisy = truth.map(|count| count + sample(variance, &mut rng));
            let histogram = Histogram::of_counts(&noisy, 2200, Some(20.0));
            let confusion = histogram.confusion();
            let right = (confusion.true_positives + confusion.true_negatives) as f64;
            squares += (right - 1500.0).powi(2);
            assert_eq!(histogram.noise_in_right(), Some(20.0 * 8f64.sqrt() / 2.0));
        }
        let found = (squares / f64::from(runs)).sqrt();
        assert!((found / 28.28 - 1.0).abs() < 0.05, "{found}");
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
