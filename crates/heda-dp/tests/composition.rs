//! Our composition against Google's `dp-accounting`: `tools/reference/composition.py` wrote the table.

#![allow(clippy::unwrap_used)]

#[allow(dead_code)]
mod common;

use common::repository_file;
use heda_dp::compose::Composition;
use heda_dp::epsilon::Epsilon;
use heda_dp::gdp::{Cost, Delta};

/// One line: μ, pure parts, δ, and ε from below and from above.
struct Known {
    composition: Composition,
    delta: Delta,
    low: f64,
    high: f64,
}

fn read(line: &str) -> Known {
    let cells: Vec<&str> = line.split(',').collect();
    let number = |cell: usize| cells[cell].parse::<f64>().unwrap();
    let cost = Cost::from_parts((number(0).powi(2) * 1e15).ceil() as u64);
    let pure: Vec<Epsilon> = cells[1]
        .split_whitespace()
        .map(|part| part.parse().unwrap())
        .collect();
    Known {
        composition: Composition::new(cost, &pure),
        delta: Delta::new(number(2)).unwrap(),
        low: number(3),
        high: number(4),
    }
}

#[test]
fn epsilon_is_never_below_the_truth_and_at_most_one_per_cent_above() {
    let path = repository_file("crates/heda-dp/tests/reference/composition.csv");
    let text = std::fs::read_to_string(path).unwrap();
    let mut lines = 0;
    for line in text.lines().skip(1) {
        let known = read(line);
        let found = known.composition.epsilon(known.delta).unwrap().to_f64();
        // The table has six decimals.
        assert!(found >= known.low - 1e-6, "{found} is too little: {line}");
        assert!(found <= known.high * 1.01, "{found} is too much: {line}");
        lines += 1;
    }
    assert!(lines >= 40, "only {lines} cases");
}
