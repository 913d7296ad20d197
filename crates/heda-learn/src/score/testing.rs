//! Small tables for the tests of scores.

use crate::data::{Dataset, Feature};

/// Rows of one feature that has so many columns, of three classes.
pub(super) fn one_feature(values: Vec<f64>, labels: Vec<u32>, columns: usize) -> Dataset {
    let feature = Feature {
        name: "f".into(),
        columns: 0..columns,
        levels: None,
    };
    let classes = ["a", "b", "c"].map(String::from).to_vec();
    Dataset::new(vec![feature], values, labels, classes).unwrap()
}

/// Features of these names, of one column each.
pub(super) fn features(names: &[&str]) -> Vec<Feature> {
    let named = names.iter().enumerate();
    named
        .map(|(column, name)| Feature {
            name: (*name).to_owned(),
            columns: column..column + 1,
            levels: None,
        })
        .collect()
}
