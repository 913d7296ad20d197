//! An order of the features, the one to protect best first.

/// Every feature of a schema once, from best to worst, by index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ranking {
    order: Vec<usize>,
}

/// Why features are not ranked: rows that cannot be scored, or an order that does not suit the schema.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RankingError {
    /// A name that is no feature.
    #[error("the ranking names {0:?}, which is no feature of the schema")]
    Unknown(String),
    /// A feature that comes twice.
    #[error("the ranking names {0:?} twice")]
    Twice(String),
    /// Features that are left out.
    #[error("the ranking leaves out {}", .0.join(", "))]
    LeftOut(Vec<String>),
    /// Indices that are no permutation.
    #[error("the ranking is no order of {0} features")]
    NotAnOrder(usize),
    /// No rows.
    #[error(
        "there are no rows to score features on; check the data and the rule for missing values"
    )]
    NoRows,
    /// No features.
    #[error("the schema has no features to score")]
    NoFeatures,
    /// The label is a number.
    #[error(
        "the label is a number, and features are scored by classes; encrypt all features, or give \
         their order in the job file"
    )]
    Numeric,
    /// All rows belong to one class.
    #[error(
        "all {rows} rows have the class {class:?}: without a second class no feature can be \
         scored; check the label, or take the ranking from another provider or the job file"
    )]
    OneClass {
        /// The class.
        class: String,
        /// How many rows there are.
        rows: usize,
    },
    /// An attribute with several columns that are not levels.
    #[error("row {row}: the columns of {feature:?} are not one-hot, so they have no common score")]
    NotOneHot {
        /// The attribute.
        feature: String,
        /// Row, from 0.
        row: usize,
    },
}

impl Ranking {
    /// Best score first; equal scores keep the order of the schema.
    pub fn by_score(scores: &[f64]) -> Self {
        let mut order: Vec<usize> = (0..scores.len()).collect();
        // The sort is stable, and that is the rule for ties.
        order.sort_by(|&a, &b| scores[b].total_cmp(&scores[a]));
        Self { order }
    }

    /// An order given by index.
    pub fn from_order(order: Vec<usize>) -> Result<Self, RankingError> {
        let mut seen = vec![false; order.len()];
        for &index in &order {
            match seen.get_mut(index) {
                Some(seen) if !*seen => *seen = true,
                _ => return Err(RankingError::NotAnOrder(order.len())),
            }
        }
        Ok(Self { order })
    }

    /// An order given by name, as in a job file.
    pub fn from_names(names: &[String], features: &[String]) -> Result<Self, RankingError> {
        let mut order = Vec::with_capacity(features.len());
        for name in names {
            let index = features
                .iter()
                .position(|feature| feature == name)
                .ok_or_else(|| RankingError::Unknown(name.clone()))?;
            if order.contains(&index) {
                return Err(RankingError::Twice(name.clone()));
            }
            order.push(index);
        }
        let left_out = |index: &usize| !order.contains(index);
        let missing: Vec<usize> = (0..features.len()).filter(left_out).collect();
        if !missing.is_empty() {
            let names = missing.iter().map(|&i| features[i].clone()).collect();
            return Err(RankingError::LeftOut(names));
        }
        Ok(Self { order })
    }

    /// Feature indices, best first.
    pub fn order(&self) -> &[usize] {
        &self.order
    }

    /// Number of features.
    pub fn len(&self) -> usize {
        self.order.len()
    }

    /// Whether there are no features.
    pub fn is_empty(&self) -> bool {
        self.order.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(words: &[&str]) -> Vec<String> {
        words.iter().map(|word| word.to_string()).collect()
    }

    #[test]
    fn equal_scores_keep_the_order_of_the_schema() {
        let ranking = Ranking::by_score(&[1.0, 3.0, 1.0, 3.0, 0.0, -0.0]);
        assert_eq!(ranking.order(), [1, 3, 0, 2, 4, 5]);
    }

    #[test]
    fn names_must_be_every_feature_once() {
        let features = names(&["a", "b", "c"]);
        let read = |words: &[&str]| Ranking::from_names(&names(words), &features);
        assert_eq!(read(&["c", "a", "b"]).unwrap().order(), [2, 0, 1]);
        assert_eq!(read(&["c", "x"]), Err(RankingError::Unknown("x".into())));
        assert_eq!(read(&["c", "c"]), Err(RankingError::Twice("c".into())));
        assert_eq!(read(&["b"]), Err(RankingError::LeftOut(names(&["a", "c"]))));
    }

    #[test]
    fn indices_must_be_a_permutation() {
        assert!(Ranking::from_order(vec![1, 0, 2]).is_ok());
        for bad in [vec![0, 0], vec![0, 2], vec![1]] {
            assert!(Ranking::from_order(bad).is_err());
        }
    }
}
