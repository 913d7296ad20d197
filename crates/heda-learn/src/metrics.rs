//! How good predictions are.

use serde::Serialize;

/// Probabilities are kept this far from 0 and 1, so that one sure mistake costs 34.5, not
/// infinity.
const LEAST_PROBABILITY: f64 = 1e-15;

/// Counts of rows by actual and predicted class.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Confusion {
    /// `counts[actual][predicted]`.
    counts: Vec<Vec<u64>>,
}

impl Confusion {
    /// Counts pairs of actual and predicted class.
    pub fn new(classes: usize, pairs: impl IntoIterator<Item = (u32, u32)>) -> Self {
        let mut counts = vec![vec![0; classes]; classes];
        for (actual, predicted) in pairs {
            counts[actual as usize][predicted as usize] += 1;
        }
        Self { counts }
    }

    /// Rows of class `actual` that were taken for `predicted`.
    pub fn count(&self, actual: usize, predicted: usize) -> u64 {
        self.counts[actual][predicted]
    }

    /// All rows.
    pub fn total(&self) -> u64 {
        self.counts.iter().flatten().sum()
    }

    /// The share of rows that are right; `None` without rows.
    pub fn accuracy(&self) -> Option<f64> {
        let right: u64 = (0..self.counts.len()).map(|c| self.counts[c][c]).sum();
        share(right, self.total())
    }

    /// The accuracy of always naming the most frequent class.
    pub fn majority_accuracy(&self) -> Option<f64> {
        let largest = self.counts.iter().map(|row| row.iter().sum()).max();
        share(largest.unwrap_or(0), self.total())
    }
}

fn share(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

/// Area under the ROC curve: the chance that a random positive row scores above a random negative
/// one, ties counting half (Mann and Whitney). Exact; `None` if a class is missing.
pub fn auc(scores: &[f64], positive: &[bool]) -> Option<f64> {
    let positives = positive.iter().filter(|&&p| p).count() as u128;
    let negatives = positive.len() as u128 - positives;
    if positives == 0 || negatives == 0 {
        return None;
    }
    let mut order: Vec<usize> = (0..scores.len()).collect();
    // Adding zero turns −0 into 0, which compares as equal but sorts before it.
    order.sort_by(|&a, &b| (scores[a] + 0.0).total_cmp(&(scores[b] + 0.0)));
    // Twice the number of (negative, positive) pairs in the right order, ties once.
    let (mut below, mut twice) = (0u128, 0u128);
    for tied in order.chunk_by(|&a, &b| scores[a] == scores[b]) {
        let up = tied.iter().filter(|&&row| positive[row]).count() as u128;
        let down = tied.len() as u128 - up;
        twice += up * (2 * below + down);
        below += down;
    }
    Some(twice as f64 / (2 * positives * negatives) as f64)
}

/// Mean −ln of the probability given to the class that was right; `None` without rows.
pub fn log_loss(probability_of_actual: impl IntoIterator<Item = f64>) -> Option<f64> {
    let mut rows = 0u64;
    let mut sum = 0.0;
    for p in probability_of_actual {
        sum -= p.clamp(LEAST_PROBABILITY, 1.0 - LEAST_PROBABILITY).ln();
        rows += 1;
    }
    (rows > 0).then(|| sum / rows as f64)
}

/// Mean and standard deviation of a sample (divided by n − 1).
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Summary {
    /// The mean.
    pub mean: f64,
    /// The standard deviation; 0 for a single value.
    pub deviation: f64,
}

impl Summary {
    /// Summarises values; `None` if there are none.
    pub fn new(values: &[f64]) -> Option<Self> {
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count;
        let squares: f64 = values.iter().map(|v| (v - mean).powi(2)).sum();
        (!values.is_empty()).then(|| Self {
            mean,
            deviation: (squares / (count - 1.0).max(1.0)).sqrt(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::unit;
    use chacha20::ChaCha8Rng;
    use rand_core::SeedableRng;

    #[test]
    fn counts_and_accuracy() {
        let confusion = Confusion::new(3, [(0, 0), (0, 1), (1, 1), (2, 0), (0, 0)]);
        assert_eq!((confusion.count(0, 0), confusion.count(2, 0)), (2, 1));
        assert_eq!(confusion.accuracy(), Some(0.6));
        assert_eq!(confusion.majority_accuracy(), Some(0.6));
        assert_eq!(Confusion::new(2, []).accuracy(), None);
    }

    #[test]
    fn auc_agrees_with_counting_every_pair() {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        for levels in [2.0, 10.0, 1e9] {
            let scores: Vec<f64> = (0..300)
                .map(|_| (unit(&mut rng) * levels).floor())
                .collect();
            let positive: Vec<bool> = scores
                .iter()
                .map(|s| unit(&mut rng) < 0.3 + 0.4 * s / levels)
                .collect();
            let (mut wins, mut pairs) = (0.0, 0.0);
            for (a, _) in positive.iter().enumerate().filter(|(_, p)| **p) {
                for (b, _) in positive.iter().enumerate().filter(|(_, p)| !**p) {
                    pairs += 1.0;
                    wins += match scores[a].total_cmp(&scores[b]) {
                        std::cmp::Ordering::Greater => 1.0,
                        std::cmp::Ordering::Equal => 0.5,
                        std::cmp::Ordering::Less => 0.0,
                    };
                }
            }
            assert!((auc(&scores, &positive).unwrap() - wins / pairs).abs() < 1e-12);
        }
        assert_eq!(auc(&[0.0, 1.0], &[false, true]), Some(1.0));
        assert_eq!(
            auc(&[0.0, -0.0], &[false, true]),
            Some(0.5),
            "two zeros tie"
        );
        assert_eq!(auc(&[0.0, 1.0], &[true, true]), None);
    }

    #[test]
    fn log_loss_is_finite_even_for_a_sure_mistake() {
        assert!((log_loss([0.5, 0.5]).unwrap() - 2f64.ln()).abs() < 1e-12);
        assert!((log_loss([0.0]).unwrap() - 34.538).abs() < 1e-2);
        assert_eq!(log_loss([]), None);
    }

    #[test]
    fn summaries() {
        let summary = Summary::new(&[1.0, 2.0, 3.0, 4.0]).unwrap();
        assert_eq!(summary.mean, 2.5);
        assert!((summary.deviation - (5.0f64 / 3.0).sqrt()).abs() < 1e-12);
        assert_eq!(Summary::new(&[7.0]).unwrap().deviation, 0.0);
        assert_eq!(Summary::new(&[]), None);
    }
}
