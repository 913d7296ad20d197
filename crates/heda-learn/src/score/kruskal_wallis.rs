//! Kruskal–Wallis H, the default.
//!
//! Computes H = 12/(N(N+1)) · Σ_k n_k (R̄_k − (N+1)/2)², where R̄_k is the mean rank of the feature
//! in class k, divided by the tie correction 1 − Σ(t³ − t)/(N³ − N) (Kruskal and Wallis 1952).
//! It sees any shift of the feature between classes and does not depend on its scale.
//!
//! One-hot attributes have no order, so no ranks. They get the statistic that takes the place of H
//! for nominal values in the Cochran–Mantel–Haenszel family, of which H is the member for ranks
//! (Landis, Heyman and Koch 1978): (N−1)/N times Pearson's chi-square of levels and classes. For
//! an attribute of two levels both are the same number.

use super::contingency::Contingency;
use super::ranks::rank;
use super::{Attribute, Scorable, Scorer, for_each_attribute};

/// Kruskal–Wallis scores.
#[derive(Debug, Clone, Copy, Default)]
pub struct KruskalWallis;

impl Scorer for KruskalWallis {
    fn scores(&self, rows: &Scorable) -> Vec<f64> {
        for_each_attribute(rows, |attribute| match attribute {
            Attribute::Constant => 0.0,
            Attribute::Values { values, .. } => h_of_ranks(rows, values),
            Attribute::Levels { codes, count } => general_association(rows, codes, *count),
        })
    }
}

fn h_of_ranks(rows: &Scorable, values: &[f64]) -> f64 {
    let n = rows.rows() as f64;
    let ranked = rank(values);
    let between: f64 = rows
        .sum_by_class(&ranked.ranks)
        .iter()
        .zip(rows.class_sizes())
        .map(|(sum, &size)| size as f64 * (sum / size as f64 - (n + 1.0) / 2.0).powi(2))
        .sum();
    let correction = 1.0 - ranked.tie_sum / (n * n * n - n);
    12.0 / (n * (n + 1.0)) * between / correction
}

fn general_association(rows: &Scorable, codes: &[u32], levels: usize) -> f64 {
    let n = rows.rows() as f64;
    let table = Contingency::count(codes, levels, rows.labels(), rows.class_sizes().len());
    (n - 1.0) / n * table.chi_square()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::score::testing::one_feature;

    fn score(values: Vec<f64>, labels: Vec<u32>, columns: usize) -> f64 {
        let data = one_feature(values, labels, columns);
        KruskalWallis.scores(&Scorable::new(&data).unwrap())[0]
    }

    #[test]
    fn equals_scipy_on_a_small_example_with_and_without_ties() {
        // scipy.stats.kruskal([.1,.3,.5], [.2,.4,.6]) and ([1,1,1],[2,2,2],[2,2]) over 10.
        let spread = score(
            vec![0.1, 0.3, 0.5, 0.2, 0.4, 0.6],
            vec![0, 0, 0, 1, 1, 1],
            1,
        );
        assert!((spread - 0.428_571_428_571_427_9).abs() < 1e-12);
        let tied = score(
            vec![0.1, 0.1, 0.1, 0.2, 0.2, 0.2, 0.2, 0.2],
            vec![0, 0, 0, 1, 1, 1, 2, 2],
            1,
        );
        assert!((tied - 7.0).abs() < 1e-12);
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
