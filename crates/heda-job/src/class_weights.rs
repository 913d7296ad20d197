//! How much the rows of each class count.
//!
//! The convention is scikit-learn's: with `balanced` a row of class c counts n/(k·n_c), n rows of k
//! classes, n_c of class c; one class against the rest is a problem of two classes. The counts are
//! training rows over all providers; they reach the data user as sums under masks, with those of
//! the columns ([`crate::moments`]). The weights reach the providers, rounded to one part in 64,
//! because from exact ones each could tell how many rows of a class the others have.

use crate::description::JobFault;
use heda_learn::loss::LossKind;
use heda_learn::resident::{CodeTable, Resolution};
use heda_learn::target::RowLabel;
use serde::{Deserialize, Serialize};

/// Bits of a balanced weight after the first.
const MANTISSA_BITS: i32 = 5;
/// The largest weight and, inverted, the least.
const MOST: f64 = 1e6;

/// How much the rows of each class count.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum ClassWeight {
    /// Every class as much as the others together.
    Balanced,
    /// So much, in the order of the schema's classes.
    Given(Vec<f64>),
}

impl ClassWeight {
    /// Whether it suits so many classes.
    ///
    /// # Errors
    /// If it does not.
    pub fn check(&self, classes: usize) -> Result<(), JobFault> {
        let Self::Given(weights) = self else {
            return Ok(());
        };
        if weights.len() != classes {
            let found = weights.len();
            return Err(JobFault::WeightCount { classes, found });
        }
        check_values(weights)
    }
}

fn check_values(weights: &[f64]) -> Result<(), JobFault> {
    let odd = |weight: &&f64| !(1.0 / MOST..=MOST).contains(*weight);
    weights
        .iter()
        .find(odd)
        .map_or(Ok(()), |w| Err(JobFault::WeightValue(*w)))
}

/// The weights of a job, as both sides use them.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) enum ClassWeights {
    /// All rows count alike.
    #[default]
    Alike,
    /// For each model what rows of the rest and of its own class count.
    Pairs(Vec<[f64; 2]>),
    /// What rows of each class count.
    ByClass(Vec<f64>),
}

impl ClassWeights {
    /// Balanced by how many rows each class has, for models of these classes.
    pub(crate) fn balanced(counts: &[u64], positives: &[u32]) -> Result<Self, JobFault> {
        let rows: u64 = counts.iter().sum();
        let pair = |positive: &u32| {
            let own = counts.get(*positive as usize).copied().unwrap_or(0);
            match (own, rows.saturating_sub(own)) {
                (0, _) | (_, 0) => Err(JobFault::NothingToBalance),
                (own, rest) => {
                    Ok([rest, own].map(|part| rounded(rows as f64 / (2.0 * part as f64))))
                }
            }
        };
        positives
            .iter()
            .map(pair)
            .collect::<Result<_, _>>()
            .map(Self::Pairs)
    }

    /// Weights that a peer sent, one pair a model.
    pub(crate) fn of_pairs(pairs: Vec<[f64; 2]>, models: usize) -> Result<Self, JobFault> {
        if pairs.len() != models {
            let (classes, found) = (models, pairs.len());
            return Err(JobFault::WeightCount { classes, found });
        }
        check_values(pairs.as_flattened())?;
        Ok(Self::Pairs(pairs))
    }

    /// The pairs, for those who must be told.
    pub(crate) fn pairs(&self) -> Vec<[f64; 2]> {
        match self {
            Self::Pairs(pairs) => pairs.clone(),
            Self::Alike | Self::ByClass(_) => Vec::new(),
        }
    }

    /// What rows of the rest and of the class of a model count. Classes of the rest that count
    /// differently count their mean: counts of the rest do not tell them apart.
    pub(crate) fn of_model(&self, model: usize, positive: u32) -> [f64; 2] {
        match self {
            Self::Alike => [1.0; 2],
            Self::Pairs(pairs) => pairs.get(model).copied().unwrap_or([1.0; 2]),
            Self::ByClass(weights) => {
                let own = weights.get(positive as usize).copied().unwrap_or(1.0);
                let others = weights.len().saturating_sub(1).max(1) as f64;
                [(weights.iter().sum::<f64>() - own) / others, own]
            }
        }
    }

    /// The table of a model, an index into the proposal's classes.
    pub(crate) fn table(&self, model: usize, loss: LossKind, resolution: Resolution) -> CodeTable {
        match self {
            Self::Alike => CodeTable::new(loss, resolution),
            Self::Pairs(pairs) => {
                let pair = pairs.get(model).copied().unwrap_or([1.0; 2]);
                CodeTable::weighted(loss, resolution, &pair)
            }
            Self::ByClass(weights) => CodeTable::weighted(loss, resolution, weights),
        }
    }

    /// A row of a class, when `positive` is told from the rest.
    pub(crate) fn label(&self, class: u32, positive: u32) -> RowLabel {
        let is_positive = class == positive;
        RowLabel::Class {
            positive: is_positive,
            weight: match self {
                Self::Alike => 0,
                Self::Pairs(_) => u16::from(is_positive),
                Self::ByClass(_) => class as u16,
            },
        }
    }

    /// The largest weight: rounding grows with it.
    pub(crate) fn largest(&self) -> f64 {
        let weights: &[f64] = match self {
            Self::Alike => &[1.0],
            Self::Pairs(pairs) => pairs.as_flattened(),
            Self::ByClass(weights) => weights,
        };
        weights.iter().copied().fold(0.0, f64::max)
    }
}

/// A weight with few bits.
fn rounded(weight: f64) -> f64 {
    let unit = 2f64.powi(weight.log2().floor() as i32 - MANTISSA_BITS);
    (weight / unit).round() * unit
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn balanced_weights_are_those_of_scikit_learn_roughly() {
        let ClassWeights::Pairs(pairs) = ClassWeights::balanced(&[30, 60, 210], &[0, 2]).unwrap()
        else {
            panic!("pairs");
        };
        // 300/(2·270), 300/(2·30); 300/(2·90), 300/(2·210)
        for (found, exact) in pairs
            .as_flattened()
            .iter()
            .zip([0.5556, 5.0, 1.6667, 0.7143])
        {
            assert!((found / exact - 1.0).abs() < 1.0 / 64.0, "{found} {exact}");
        }
        assert_eq!(
            ClassWeights::balanced(&[0, 7], &[1]),
            Err(JobFault::NothingToBalance),
            "no rest"
        );
    }

    #[test]
    fn weights_are_one_a_class_and_sensible() {
        let given = |weights: &[f64]| ClassWeight::Given(weights.to_vec());
        assert_eq!(given(&[1.0, 2.0]).check(2), Ok(()));
        assert_eq!(ClassWeight::Balanced.check(7), Ok(()));
        assert!(given(&[1.0]).check(2).is_err());
        for odd in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e7] {
            assert!(given(&[1.0, odd]).check(2).is_err(), "{odd}");
            assert!(
                ClassWeights::of_pairs(vec![[1.0, odd]], 1).is_err(),
                "{odd}"
            );
        }
        assert!(ClassWeights::of_pairs(Vec::new(), 1).is_err());
    }

    #[test]
    fn a_row_counts_by_its_own_class() {
        let by_class = ClassWeights::ByClass(vec![1.0, 2.0, 4.0]);
        let label = by_class.label(2, 1);
        assert_eq!((label.is_positive(), label.weight()), (false, 2));
        let pairs = ClassWeights::Pairs(vec![[0.5, 3.0]]);
        assert_eq!(pairs.label(1, 1).weight(), 1);
        assert_eq!(pairs.label(0, 1).weight(), 0);
        assert_eq!((by_class.largest(), pairs.largest()), (4.0, 3.0));
    }
}
