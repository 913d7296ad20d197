//! `heda publish` from the outside: what it prints, writes and refuses.

#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn bundled(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../datasets")
        .join(file)
}

fn publish(set: &str, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_heda"));
    command
        .arg("publish")
        .arg("--data")
        .arg(bundled(&format!("{set}.csv")));
    command
        .arg("--schema")
        .arg(bundled(&format!("{set}.natural.toml")));
    command.args(arguments).output().unwrap()
}

fn json(output: &Output) -> serde_json::Value {
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn a_preview_shows_cost_and_worth_and_writes_nothing() {
    let arguments = [
        "--features",
        "mitoses,clump_thickness",
        "--epsilon",
        "0.5",
        "--preview",
    ];
    let report = json(&publish("bcwd", &[&arguments[..], &["--json"]].concat()));
    assert_eq!(report["mechanism"], "laplace");
    assert_eq!(report["epsilon_total"], 0.5);
    assert_eq!(report["columns"][0]["epsilon"], 0.25);
    assert_eq!(report["columns"][1]["name"], "clump_thickness");
    // A feature of ten values on a scale of nine steps, at a quarter of epsilon.
    let noise = report["columns"][0]["noise"]["scale"].as_f64().unwrap();
    assert!((noise - 4.0).abs() < 0.01, "{noise}");
    let accuracy = |name: &str| report["accuracy"][name].as_f64().unwrap();
    assert!(accuracy("all") > 0.93 && accuracy("dropped") > 0.9 && accuracy("published") > 0.85);
    assert!(accuracy("majority") < 0.75);
    assert!(report["out"].is_null());
    let words = String::from_utf8(publish("bcwd", &arguments).stdout).unwrap();
    for part in [
        "Would publish",
        "in sum",
        "Advice: ",
        "Nothing was published",
    ] {
        assert!(words.contains(part), "{part:?} is missing in\n{words}");
    }
}

#[test]
fn a_release_has_the_rows_the_levels_and_the_bounds_of_the_schema() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("noisy.csv");
    let arguments = [
        "--features",
        "A1,A2",
        "--epsilon",
        "1",
        "--weights",
        "1,3",
        "--json",
        "--out",
    ];
    let report = json(&publish(
        "crx",
        &[&arguments[..], &[out.to_str().unwrap()]].concat(),
    ));
    assert_eq!(report["columns"][1]["epsilon"], 0.75);
    assert!(report["accuracy"].is_null());
    let text = std::fs::read_to_string(&out).unwrap();
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("A1,A2"));
    let rows: Vec<(&str, f64)> = lines
        .map(|line| line.split_once(',').unwrap())
        .map(|(level, number)| (level, number.parse().unwrap()))
        .collect();
    assert_eq!(rows.len() as u64, report["rows"].as_u64().unwrap());
    let levels: std::collections::BTreeSet<&str> = rows.iter().map(|row| row.0).collect();
    assert!(levels.contains("a") && levels.contains("b"));
    assert!(rows.iter().all(|row| (0.0..=120.0).contains(&row.1)));
}

#[test]
fn bad_input_is_refused_in_words_and_nothing_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("noisy.csv");
    let out_text = out.to_str().unwrap();
    let cases: Vec<(Vec<&str>, &str)> = vec![
        (
            vec!["--features", "doors", "--epsilon", "0"],
            "epsilon is zero",
        ),
        (
            vec!["--features", "doors", "--epsilon", "-1"],
            "epsilon is negative",
        ),
        (
            vec!["--features", "doors", "--epsilon", "NaN"],
            "not a number",
        ),
        (
            vec!["--features", "doors", "--epsilon", "1001"],
            "above 1000",
        ),
        (vec!["--features", "doors"], "--epsilon"),
        (
            vec!["--features", "nose", "--epsilon", "1"],
            "no column \"nose\"",
        ),
        (
            vec!["--features", "doors,doors", "--epsilon", "1"],
            "named twice",
        ),
        (
            vec!["--features", "doors", "--epsilon", "1", "--weights", "1,2"],
            "2 weights for 1",
        ),
        (
            vec!["--features", "doors", "--epsilon", "1", "--weights", "0"],
            "weight zero",
        ),
        (
            vec!["--features", "doors", "--epsilon", "1", "--bits", "0"],
            "a grid of 0 bits",
        ),
    ];
    for (arguments, words) in cases {
        let output = publish("car", &[&arguments[..], &["--out", out_text]].concat());
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {message}");
        assert!(message.contains(words), "{arguments:?}: {message}");
        assert!(output.stdout.is_empty() && !out.exists(), "{arguments:?}");
    }
}
