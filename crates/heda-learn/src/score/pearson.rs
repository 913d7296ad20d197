//! Absolute Pearson correlation with the class.
//!
//! Computes |r| between the feature and the indicator of a class. With two classes the choice of
//! class does not matter; with more the score is the largest |r| of any class against the rest,
//! because a feature that tells one class apart is worth protecting.
//!
//! One-hot attributes: the correlation ratio η of levels and class, which is the multiple
//! correlation of the indicator with all columns of the attribute. For an attribute of two levels
//! it is |r|.

use super::contingency::Contingency;
use super::{Attribute, Scorable, Scorer, for_each_attribute};

/// Pearson scores.
#[derive(Debug, Clone, Copy, Default)]
pub struct Pearson;

impl Scorer for Pearson {
    fn scores(&self, rows: &Scorable) -> Vec<f64> {
        for_each_attribute(rows, |attribute| match attribute {
            Attribute::Constant => 0.0,
            Attribute::Values { values, .. } => with_class(rows, values),
            Attribute::Levels { codes, count } => correlation_ratio(rows, codes, *count),
        })
    }
}

/// The largest |r| of the values with a class against the rest.
pub(super) fn with_class(rows: &Scorable, values: &[f64]) -> f64 {
    let n = rows.rows() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let centred: Vec<f64> = values.iter().map(|value| value - mean).collect();
    let variation: f64 = centred.iter().map(|c| c * c).sum();
    rows.sum_by_class(&centred)
        .iter()
        .zip(rows.class_sizes())
        .map(|(covariation, &size)| {
            let share = size as f64 / n;
            covariation.abs() / (variation * n * share * (1.0 - share)).sqrt()
        })
        .fold(0.0, f64::max)
        .min(1.0)
}

/// The largest η of the levels with a class against the rest.
pub(super) fn correlation_ratio(rows: &Scorable, codes: &[u32], levels: usize) -> f64 {
    let classes = rows.class_sizes().len();
    Contingency::count(codes, levels, rows.labels(), classes)
        .correlation_ratios()
        .fold(0.0, f64::max)
        .sqrt()
        .min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::score::testing::one_feature;

    fn score(values: Vec<f64>, labels: Vec<u32>, columns: usize) -> f64 {
        let data = one_feature(values, labels, columns);
        Pearson.scores(&Scorable::new(&data).unwrap())[0]
    }

    #[test]
    fn a_feature_that_is_the_class_scores_one_in_either_direction() {
        assert!((score(vec![0.0, 1.0, 1.0], vec![0, 1, 1], 1) - 1.0).abs() < 1e-12);
        assert!((score(vec![0.9, 0.1, 0.1], vec![0, 1, 1], 1) - 1.0).abs() < 1e-12);
    }

    #[test]
    fn takes_the_class_that_is_told_apart_best() {
        // The feature marks class c and says nothing of a against b.
        let values = vec![0.2, 0.2, 0.2, 0.2, 0.8, 0.8];
        assert!((score(values, vec![0, 1, 0, 1, 2, 2], 1) - 1.0).abs() < 1e-12);
    }

    #[test]
    fn two_levels_score_the_same_in_either_coding() {
        let bits = [0.0, 1.0, 1.0, 0.0, 1.0, 0.0, 0.0];
        let labels = vec![0, 1, 1, 0, 2, 2, 1];
        let onehot = bits.iter().flat_map(|&bit| [1.0 - bit, bit]).collect();
        let one = score(bits.to_vec(), labels.clone(), 1);
        let two = score(onehot, labels, 2);
        assert!((one - two).abs() < 1e-12, "{one} {two}");
    }
}
