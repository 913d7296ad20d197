//! Minimal redundancy, maximal relevance.
//!
//! Computes the order of Peng, Long and Ding (2005), by mutual information and difference: first
//! the feature f with the largest I(f; class), then again and again the one with the largest
//! I(f; class) − mean of I(f; s) over the features s already taken.
//!
//! The method yields an order, not sizes: its criterion may rise from one step to the next. So
//! the score is the place, (d − place)/d from 1 for the first of d features. Features that do not
//! vary come last and score 0.
//!
//! Information is measured between groups of values. Levels and codes are groups as they are. A
//! column with more than 32 different numbers (256 if they are codes) is cut into 10 groups of
//! equal size, equal numbers staying together. One-hot attributes are their level.

use super::contingency::Contingency;
use super::ranks::rank;
use super::{Attribute, Scorable, Scorer};
use rayon::prelude::*;

/// Up to so many different numbers, each is a group of its own.
const NUMBERS_KEPT: usize = 32;
/// Up to so many different codes, each is a group of its own.
const CODES_KEPT: usize = 256;
/// Otherwise so many groups of equal size.
const EQUAL_GROUPS: usize = 10;
/// Information that differs by less, in nats, is equal.
const ROUNDING: f64 = 1e-12;

/// mRMR scores.
#[derive(Debug, Clone, Copy, Default)]
pub struct Mrmr;

impl Scorer for Mrmr {
    fn scores(&self, rows: &Scorable) -> Vec<f64> {
        let groups: Vec<Option<Groups>> = rows.attributes().par_iter().map(Groups::of).collect();
        let total = groups.len();
        let mut scores = vec![0.0; total];
        for (place, feature) in order(rows, &groups).into_iter().enumerate() {
            scores[feature] = (total - place) as f64 / total as f64;
        }
        scores
    }
}

/// The features that vary, in the order in which they are taken.
fn order(rows: &Scorable, groups: &[Option<Groups>]) -> Vec<usize> {
    let class = Groups {
        codes: rows.labels().to_vec(),
        count: rows.class_sizes().len(),
    };
    let mut left: Vec<Candidate<'_>> = groups
        .par_iter()
        .enumerate()
        .filter_map(|(feature, groups)| {
            let groups = groups.as_ref()?;
            Some(Candidate {
                feature,
                groups,
                relevance: groups.information(&class),
                redundancy: 0.0,
            })
        })
        .collect();
    let mut taken = Vec::with_capacity(left.len());
    while let Some(best) = best_candidate(&left, taken.len()) {
        let best = left.remove(best);
        left.par_iter_mut()
            .for_each(|other| other.redundancy += other.groups.information(best.groups));
        taken.push(best.feature);
    }
    taken
}

struct Candidate<'a> {
    feature: usize,
    groups: &'a Groups,
    relevance: f64,
    /// Summed over the features already taken.
    redundancy: f64,
}

/// The first of the best, so that ties keep the order of the schema. Attributes that say the same
/// in other words differ by rounding only, and that is a tie too.
fn best_candidate(left: &[Candidate<'_>], taken: usize) -> Option<usize> {
    let criterion = |c: &Candidate<'_>| c.relevance - c.redundancy / taken.max(1) as f64;
    (0..left.len()).reduce(|best, next| {
        let better = criterion(&left[next]) > criterion(&left[best]) + ROUNDING;
        if better { next } else { best }
    })
}

/// A column cut into groups.
struct Groups {
    codes: Vec<u32>,
    count: usize,
}

impl Groups {
    fn of(attribute: &Attribute) -> Option<Self> {
        match attribute {
            Attribute::Constant => None,
            Attribute::Values { values, coded } => {
                let kept = if *coded { CODES_KEPT } else { NUMBERS_KEPT };
                Some(Self::of_values(values, kept))
            }
            Attribute::Levels { codes, count } => Some(Self {
                codes: codes.clone(),
                count: *count,
            }),
        }
    }

    fn of_values(values: &[f64], kept: usize) -> Self {
        let ranked = rank(values);
        if ranked.distinct > kept {
            let share = EQUAL_GROUPS as f64 / values.len() as f64;
            let cut = |rank: &f64| ((rank - 0.5) * share) as u32;
            return Self {
                codes: ranked.ranks.iter().map(cut).collect(),
                count: EQUAL_GROUPS,
            };
        }
        let mut different = values.to_vec();
        different.sort_unstable_by(f64::total_cmp);
        different.dedup();
        let place = |value: &f64| different.partition_point(|other| other < value) as u32;
        Self {
            codes: values.iter().map(place).collect(),
            count: different.len(),
        }
    }

    fn information(&self, other: &Self) -> f64 {
        Contingency::count(&self.codes, self.count, &other.codes, other.count).mutual_information()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Dataset;
    use crate::score::testing::features;

    #[test]
    fn a_copy_of_a_taken_feature_comes_after_a_weaker_but_new_one() {
        let mut values = Vec::new();
        let mut labels = Vec::new();
        for row in 0..400u32 {
            let label = row % 2;
            let strong = if row % 10 < 8 { label } else { 1 - label };
            let weak = if row / 10 % 10 < 7 { label } else { 1 - label };
            values.extend([strong, strong, weak].map(f64::from));
            labels.push(label);
        }
        let features = features(&["strong", "copy", "weak"]);
        let classes = vec!["a".into(), "b".into()];
        let data = Dataset::new(features, values, labels, classes).unwrap();
        let scores = Mrmr.scores(&Scorable::new(&data).unwrap());
        assert_eq!(scores, [1.0, 1.0 / 3.0, 2.0 / 3.0]);
    }

    #[test]
    fn many_numbers_are_cut_into_groups_of_equal_size() {
        let values: Vec<f64> = (0..1000)
            .map(|i| f64::from(i * 7 % 1000) / 1000.0)
            .collect();
        let groups = Groups::of_values(&values, NUMBERS_KEPT);
        let mut sizes = [0; EQUAL_GROUPS];
        groups.codes.iter().for_each(|&c| sizes[c as usize] += 1);
        assert_eq!(sizes, [100; EQUAL_GROUPS]);
        let few = Groups::of_values(&[0.5, 0.1, 0.5, -0.0, 0.0], NUMBERS_KEPT);
        assert_eq!((few.codes, few.count), (vec![2, 1, 2, 0, 0], 3));
    }
}
