//! Chi-square of values taken as frequencies.
//!
//! Computes, for one column x, Σ_k (O_k − E_k)²/E_k over the classes k, where O_k is the sum of x
//! over the class and E_k is what the class would have if x were spread evenly: what
//! scikit-learn's `chi2` computes. It depends on the scale of x. Here x is the encoded value in
//! [0, 1] by the schema's public bounds, so all providers use the same scale; a test it is not.
//!
//! One-hot attributes: the sum over the columns, which is Pearson's chi-square statistic of the
//! table of levels and classes.

use super::contingency::Contingency;
use super::{Attribute, Scorable, Scorer, for_each_attribute};

/// Chi-square scores.
#[derive(Debug, Clone, Copy, Default)]
pub struct Chi2;

impl Scorer for Chi2 {
    fn scores(&self, rows: &Scorable) -> Vec<f64> {
        let classes = rows.class_sizes().len();
        for_each_attribute(rows, |attribute| match attribute {
            Attribute::Constant => 0.0,
            Attribute::Values { values, .. } => of_frequencies(rows, values),
            Attribute::Levels { codes, count } => {
                Contingency::count(codes, *count, rows.labels(), classes).chi_square()
            }
        })
    }
}

fn of_frequencies(rows: &Scorable, values: &[f64]) -> f64 {
    let observed = rows.sum_by_class(values);
    let total: f64 = observed.iter().sum();
    observed
        .iter()
        .zip(rows.class_sizes())
        .map(|(observed, &size)| {
            let expected = total * size as f64 / rows.rows() as f64;
            (observed - expected).powi(2) / expected
        })
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Dataset, Feature};

    #[test]
    fn equals_the_statistic_by_hand() {
        let feature = Feature {
            name: "f".into(),
            columns: 0..1,
            levels: None,
        };
        let values = vec![0.0, 0.5, 1.0, 0.5];
        let classes = vec!["a".into(), "b".into()];
        let data = Dataset::new(vec![feature], values, vec![0, 0, 0, 1], classes).unwrap();
        // O = (1.5, 0.5), E = (1.5, 0.5).
        assert_eq!(Chi2.scores(&Scorable::new(&data).unwrap()), [0.0]);
        let data = Dataset::new(
            data.features().to_vec(),
            vec![0.0, 0.0, 0.0, 1.0],
            vec![0, 0, 0, 1],
            data.classes().to_vec(),
        )
        .unwrap();
        // O = (0, 1), E = (0.75, 0.25).
        assert_eq!(Chi2.scores(&Scorable::new(&data).unwrap()), [3.0]);
    }

    #[test]
    fn a_one_hot_attribute_scores_the_sum_of_its_columns() {
        let number = |column: usize| Feature {
            name: format!("c{column}"),
            columns: column..column + 1,
            levels: None,
        };
        let onehot = Feature {
            name: "levels".into(),
            columns: 0..3,
            levels: Some(3),
        };
        let levels = [0, 1, 2, 2, 1, 0, 0, 1];
        let values: Vec<f64> = levels
            .iter()
            .flat_map(|&level| (0..3).map(move |c| f64::from(u8::from(c == level))))
            .collect();
        let labels = vec![0, 1, 1, 2, 0, 0, 2, 1];
        let classes: Vec<String> = ["a", "b", "c"].map(String::from).to_vec();
        let score = |features: Vec<Feature>| {
            let data =
                Dataset::new(features, values.clone(), labels.clone(), classes.clone()).unwrap();
            Chi2.scores(&Scorable::new(&data).unwrap())
        };
        let columns: f64 = score((0..3).map(number).collect()).iter().sum();
        assert!((score(vec![onehot])[0] - columns).abs() < 1e-12);
    }
}
