//! Absolute Spearman correlation with the class.
//!
//! Computes |ρ|, the Pearson correlation of ranks, equals sharing their mean rank. The ranks of a
//! class indicator are the indicator itself on another scale, so only the feature is ranked.
//! Several classes as for Pearson: the largest |ρ| of a class against the rest.
//!
//! One-hot attributes: the correlation ratio, as for Pearson. A column of zeros and ones has the
//! same correlation before and after ranking.

use super::pearson::{correlation_ratio, with_class};
use super::ranks::rank;
use super::{Attribute, Scorable, Scorer, for_each_attribute};

/// Spearman scores.
#[derive(Debug, Clone, Copy, Default)]
pub struct Spearman;

impl Scorer for Spearman {
    fn scores(&self, rows: &Scorable) -> Vec<f64> {
        for_each_attribute(rows, |attribute| match attribute {
            Attribute::Constant => 0.0,
            Attribute::Values { values, .. } => with_class(rows, &rank(values).ranks),
            Attribute::Levels { codes, count } => correlation_ratio(rows, codes, *count),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Dataset, Feature};
    use crate::score::Pearson;

    #[test]
    fn sees_through_a_monotone_change_of_scale_that_pearson_does_not() {
        let feature = |column: usize| Feature {
            name: format!("f{column}"),
            columns: column..column + 1,
            levels: None,
        };
        let numbers = [0.1, 0.2, 0.4, 0.5, 0.7, 0.9];
        let values = numbers.iter().flat_map(|&v: &f64| [v, v.powi(9)]).collect();
        let classes = vec!["a".into(), "b".into()];
        let labels = vec![0, 0, 1, 0, 1, 1];
        let data = Dataset::new(vec![feature(0), feature(1)], values, labels, classes).unwrap();
        let rows = Scorable::new(&data).unwrap();
        let ranked = Spearman.scores(&rows);
        assert_eq!(ranked[0], ranked[1]);
        // scipy.stats.spearmanr([.1,.2,.4,.5,.7,.9], [0,0,1,0,1,1]).
        assert!(
            (ranked[0] - 0.683_130_051_063_973_3).abs() < 1e-12,
            "{ranked:?}"
        );
        let plain = Pearson.scores(&rows);
        assert!((plain[0] - plain[1]).abs() > 0.01);
    }
}
