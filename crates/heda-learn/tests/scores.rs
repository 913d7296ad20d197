//! Scores of the bundled data sets against scipy and scikit-learn. The reference values and the
//! script that made them: `tests/reference/scores.json`, `tools/reference/scores.py`.
#![allow(clippy::unwrap_used)]

use heda_learn::bundled::{Bundle, Coding};
use heda_learn::data::Dataset;
use heda_learn::schema::Schema;
use heda_learn::score::{Scorable, Scores, ScoringMethod};
use heda_learn::table::TableReader;
use serde::Deserialize;
use std::collections::BTreeMap;

#[derive(Deserialize)]
struct Reference {
    rows: usize,
    features: Vec<String>,
    chi2: Vec<f64>,
    kw: Vec<f64>,
    pearson: Vec<f64>,
    spearman: Vec<f64>,
    forest_top_half: Vec<usize>,
    mrmr_top_half: Vec<usize>,
}

fn references() -> BTreeMap<String, Reference> {
    serde_json::from_str(include_str!("reference/scores.json")).unwrap()
}

/// A case is a data set, a coding and, if `.classes` follows, all classes instead of two.
fn data_of(case: &str) -> Dataset {
    let mut parts = case.split('.');
    let bundle: Bundle = parts.next().unwrap().parse().unwrap();
    let coding: Coding = parts.next().unwrap().parse().unwrap();
    if parts.next().is_none() {
        return bundle.table(coding).unwrap().0;
    }
    let text: String = bundle
        .schema_text(coding)
        .lines()
        .filter(|line| !line.starts_with("positive"))
        .map(|line| format!("{line}\n"))
        .collect();
    let schema = Schema::parse(&text, case).unwrap();
    TableReader::new(&schema)
        .read_csv(bundle.csv(), case)
        .unwrap()
        .0
}

fn top_half(scores: &Scores) -> Vec<usize> {
    let ranking = scores.ranking();
    let mut half = ranking.order()[..ranking.len().div_ceil(2)].to_vec();
    half.sort_unstable();
    half
}

#[test]
fn statistics_equal_scipy_and_scikit_learn_everywhere() {
    let references = references();
    let mut compared = 0;
    for (case, reference) in &references {
        let data = data_of(case);
        let names: Vec<&String> = data.features().iter().map(|f| &f.name).collect();
        assert_eq!(names, reference.features.iter().collect::<Vec<_>>());
        assert_eq!(data.rows(), reference.rows);
        let rows = Scorable::new(&data).unwrap();
        for (method, expected) in [
            (ScoringMethod::Chi2, &reference.chi2),
            (ScoringMethod::KruskalWallis, &reference.kw),
            (ScoringMethod::Pearson, &reference.pearson),
            (ScoringMethod::Spearman, &reference.spearman),
        ] {
            let scores = Scores::of(&rows, method, 0);
            assert_eq!(scores.values().len(), expected.len());
            for (at, (ours, theirs)) in scores.values().iter().zip(expected).enumerate() {
                let close = (ours - theirs).abs() <= 1e-9 * theirs.abs().max(1.0);
                assert!(close, "{case} {method} {}: {ours} {theirs}", names[at]);
                compared += 1;
            }
        }
    }
    assert_eq!(references.len(), 10);
    assert_eq!(compared, 4 * (2 * (9 + 14 + 15 + 6) + 2 * 6));
}

/// Prints what differs; returns for how many of the four data sets the halves are the same.
fn same_halves(coding: &str, method: ScoringMethod) -> usize {
    let references = references();
    let same = |name: &str| {
        let case = format!("{name}.{coding}");
        let reference = &references[&case];
        let expected = match method {
            ScoringMethod::Forest => &reference.forest_top_half,
            _ => &reference.mrmr_top_half,
        };
        let ours = top_half(&Scores::compute(&data_of(&case), method, 7).unwrap());
        println!("{case} {method}: {ours:?}, reference {expected:?}");
        ours == *expected
    };
    ["bcwd", "adult", "crx", "car"]
        .into_iter()
        .filter(|name| same(name))
        .count()
}

#[test]
fn the_forest_finds_the_same_half_as_scikit_learn() {
    for coding in ["paper", "natural"] {
        assert!(same_halves(coding, ScoringMethod::Forest) >= 3, "{coding}");
    }
}

#[test]
fn mrmr_finds_the_same_half_as_the_reference() {
    for coding in ["paper", "natural"] {
        assert!(same_halves(coding, ScoringMethod::Mrmr) >= 3, "{coding}");
    }
}
