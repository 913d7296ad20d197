//! Feature scores: how much one attribute tells about the class, larger is more.
//!
//! Six methods stand behind one trait, one file each. The rules that hold for all of them:
//!
//! - Scores are computed on the encoded values in [0, 1] and on class indices. Only classes that
//!   occur count. A single class, or no row at all, is an error: nothing can be scored.
//! - A feature that is the same in every row scores exactly 0. That includes a feature that is
//!   missing everywhere, because the schema's rule fills it with one value.
//! - A one-hot attribute gets one score for all of its columns; each file states its rule.
//! - Equal scores keep the order of the schema.

mod chi2;
mod contingency;
mod forest;
mod kruskal_wallis;
mod mrmr;
mod pearson;
mod ranking;
mod ranks;
mod scorable;
mod spearman;
#[cfg(test)]
mod testing;

pub use chi2::Chi2;
pub use forest::Forest;
pub use kruskal_wallis::KruskalWallis;
pub use mrmr::Mrmr;
pub use pearson::Pearson;
pub use ranking::{Ranking, RankingError};
pub use scorable::{Attribute, Scorable};
pub use spearman::Spearman;

use crate::data::Dataset;
use crate::spelling::UnknownWord;
use rayon::prelude::*;
use std::fmt;
use std::str::FromStr;

/// Scores the features of rows that were found fit for it.
pub trait Scorer {
    /// One finite, non-negative score for each feature, in schema order.
    fn scores(&self, rows: &Scorable) -> Vec<f64>;
}

/// The methods of the paper.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, Default, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum ScoringMethod {
    /// Kruskal–Wallis H with tie correction, the paper's choice and the default.
    #[default]
    #[serde(rename = "kw")]
    KruskalWallis,
    /// Chi-square of values taken as frequencies.
    Chi2,
    /// Absolute Pearson correlation with the class.
    Pearson,
    /// Absolute Spearman correlation with the class.
    Spearman,
    /// Impurity importance in a random forest.
    Forest,
    /// Minimal redundancy, maximal relevance.
    Mrmr,
}

impl ScoringMethod {
    /// All methods, the default first.
    pub const ALL: [Self; 6] = [
        Self::KruskalWallis,
        Self::Chi2,
        Self::Pearson,
        Self::Spearman,
        Self::Forest,
        Self::Mrmr,
    ];

    /// The word for it in commands and job files.
    pub fn name(self) -> &'static str {
        match self {
            Self::KruskalWallis => "kw",
            Self::Chi2 => "chi2",
            Self::Pearson => "pearson",
            Self::Spearman => "spearman",
            Self::Forest => "forest",
            Self::Mrmr => "mrmr",
        }
    }

    /// The name that a reader of a report expects.
    pub fn title(self) -> &'static str {
        match self {
            Self::KruskalWallis => "Kruskal–Wallis H",
            Self::Chi2 => "chi-square",
            Self::Pearson => "Pearson |r|",
            Self::Spearman => "Spearman |ρ|",
            Self::Forest => "random forest",
            Self::Mrmr => "mRMR",
        }
    }

    /// The scorer; `seed` matters to the forest only.
    pub fn scorer(self, seed: u64) -> Box<dyn Scorer> {
        match self {
            Self::KruskalWallis => Box::new(KruskalWallis),
            Self::Chi2 => Box::new(Chi2),
            Self::Pearson => Box::new(Pearson),
            Self::Spearman => Box::new(Spearman),
            Self::Forest => Box::new(Forest::with_seed(seed)),
            Self::Mrmr => Box::new(Mrmr),
        }
    }
}

impl fmt::Display for ScoringMethod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for ScoringMethod {
    type Err = UnknownWord;

    fn from_str(word: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|method| method.name() == word)
            .ok_or_else(|| UnknownWord::ScoringMethod(word.into()))
    }
}

/// The scores of a data set's features by one method.
#[derive(Debug, Clone, PartialEq)]
pub struct Scores {
    method: ScoringMethod,
    values: Vec<f64>,
}

impl Scores {
    /// Scores every feature; `seed` matters to the forest only.
    pub fn compute(data: &Dataset, method: ScoringMethod, seed: u64) -> Result<Self, RankingError> {
        Ok(Self::of(&Scorable::new(data)?, method, seed))
    }

    /// Scores rows that were prepared once, for one of several methods.
    pub fn of(rows: &Scorable, method: ScoringMethod, seed: u64) -> Self {
        let values = method.scorer(seed).scores(rows);
        Self { method, values }
    }

    /// How they were made.
    pub fn method(&self) -> ScoringMethod {
        self.method
    }

    /// One score for each feature, in schema order.
    pub fn values(&self) -> &[f64] {
        &self.values
    }

    /// The features from best to worst; equal scores keep the order of the schema.
    pub fn ranking(&self) -> Ranking {
        Ranking::by_score(&self.values)
    }
}

/// Applies a score of single attributes to all that vary; the constant ones score 0.
fn for_each_attribute(rows: &Scorable, score: impl Fn(&Attribute) -> f64 + Sync) -> Vec<f64> {
    rows.attributes()
        .par_iter()
        .map(|attribute| match attribute {
            Attribute::Constant => 0.0,
            varying => score(varying),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Feature;

    fn number(name: &str, column: usize) -> Feature {
        Feature {
            name: name.into(),
            columns: column..column + 1,
            levels: None,
        }
    }

    /// A feature that decides the class, one that is constant, one that says little, and a
    /// one-hot attribute with some meaning.
    fn sample() -> Dataset {
        let features = vec![
            number("decides", 0),
            number("constant", 1),
            number("noise", 2),
            Feature {
                name: "colour".into(),
                columns: 3..6,
                levels: Some(3),
            },
        ];
        let mut values = Vec::new();
        let mut labels = Vec::new();
        for row in 0..300u32 {
            let label = u32::from(row % 3 == 0);
            let noise = f64::from(row * 7919 % 101) / 101.0;
            let colour = if row % 5 < 3 { label } else { 2 };
            values.extend([f64::from(label), 0.5, noise]);
            values.extend((0..3).map(|level| f64::from(u8::from(level == colour))));
            labels.push(label);
        }
        Dataset::new(features, values, labels, vec!["no".into(), "yes".into()]).unwrap()
    }

    #[test]
    fn every_method_puts_the_deciding_feature_first_and_the_constant_one_last() {
        for method in ScoringMethod::ALL {
            let scores = Scores::compute(&sample(), method, 1).unwrap();
            assert!(scores.values().iter().all(|s| s.is_finite() && *s >= 0.0));
            assert_eq!(scores.ranking().order()[0], 0, "{method}: {scores:?}");
            assert_eq!(scores.values()[1], 0.0, "{method}");
            assert_eq!(scores.ranking().order()[3], 1, "{method}");
        }
    }

    #[test]
    fn scores_do_not_depend_on_the_order_of_rows() {
        let data = sample();
        let backwards: Vec<usize> = (0..data.rows()).rev().collect();
        for method in ScoringMethod::ALL
            .into_iter()
            .filter(|&m| m != ScoringMethod::Forest)
        {
            let one = Scores::compute(&data, method, 1).unwrap();
            let two = Scores::compute(&data.select_rows(&backwards), method, 1).unwrap();
            for (a, b) in one.values().iter().zip(two.values()) {
                assert!(
                    (a - b).abs() <= 1e-9 * a.abs().max(1.0),
                    "{method}: {a} {b}"
                );
            }
        }
    }

    #[test]
    fn methods_are_found_by_name() {
        for method in ScoringMethod::ALL {
            assert_eq!(method.name().parse(), Ok(method));
            let text = serde_json::to_string(&method).unwrap();
            assert_eq!(text, format!("{:?}", method.name()));
        }
        assert!("anova".parse::<ScoringMethod>().is_err());
    }
}
