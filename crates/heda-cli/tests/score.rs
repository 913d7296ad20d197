//! `heda score` from the outside: its object, its table, and what it says about bad input.

#![allow(clippy::unwrap_used)]

use serde_json::Value;
use std::path::PathBuf;
use std::process::{Command, Output};

const SCHEMA: &str = r#"
format = 1
name = "clinic"
missing_markers = ["?"]

[label]
column = "class"
classes = ["ill", "well"]
positive = "ill"

[[column]]
name = "age"
kind = "numeric"
bounds = [0, 100]

[[column]]
name = "ward"
kind = "categorical"
levels = ["a", "b", "c"]
coding = "onehot"

[[column]]
name = "same"
kind = "numeric"
bounds = [0, 1]

[[column]]
name = "unknown"
kind = "numeric"
bounds = [0, 10]
missing = { value = 5 }
"#;

const ROWS: &str = "age,ward,same,unknown,class
70,a,1,?,ill
65,a,1,?,ill
80,b,1,?,ill
20,b,1,?,well
35,c,1,?,well
30,c,1,?,well
";

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn file(&self, name: &str, content: &str) -> PathBuf {
        let path = self.0.path().join(name);
        std::fs::write(&path, content).unwrap();
        path
    }
}

fn heda(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_heda"))
        .args(arguments)
        .output()
        .unwrap()
}

fn score(schema: &str, rows: &str, more: &[&str]) -> Output {
    let folder = Folder::new();
    let schema = folder.file("schema.toml", schema);
    let rows = folder.file("rows.csv", rows);
    let files = [
        "score",
        "--schema",
        schema.to_str().unwrap(),
        "--data",
        rows.to_str().unwrap(),
    ];
    heda(&[&files, more].concat())
}

fn object(output: &Output) -> Value {
    assert!(output.status.success(), "{}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn every_method_scores_a_bundled_data_set_and_prices_every_prefix() {
    for method in ["kw", "chi2", "pearson", "spearman", "forest", "mrmr"] {
        let result = object(&heda(&[
            "score",
            "--dataset",
            "car",
            "--method",
            method,
            "--json",
        ]));
        assert_eq!(result["rows"], 1728);
        assert_eq!(result["method"], method);
        let features = result["features"].as_array().unwrap();
        let prefixes = result["prefixes"].as_array().unwrap();
        assert_eq!((features.len(), prefixes.len()), (6, 6));
        let scores: Vec<f64> = features
            .iter()
            .map(|f| f["score"].as_f64().unwrap())
            .collect();
        assert!(scores.is_sorted_by(|a, b| a >= b), "{method}: {scores:?}");
        assert!(
            prefixes
                .iter()
                .all(|p| p["gradient_bytes"].as_u64().unwrap() > 0)
        );
        assert_eq!(prefixes[5]["iota"], 6);
    }
}

#[test]
fn prints_a_table_with_bars() {
    let output = heda(&["score", "--dataset", "bcwd"]);
    let printed = text(&output.stdout);
    assert!(output.status.success());
    assert!(printed.contains("Kruskal–Wallis") && printed.contains("█"));
    assert!(printed.contains("uniformity_of_cell_size"), "{printed}");
    assert!(text(&output.stderr).contains("16 of 699 values missing"));
}

#[test]
fn constant_and_wholly_missing_features_score_zero_and_come_last() {
    for method in ["kw", "chi2", "pearson", "spearman", "forest", "mrmr"] {
        let result = object(&score(SCHEMA, ROWS, &["--method", method, "--json"]));
        let last = &result["features"].as_array().unwrap()[2..];
        assert_eq!(last[0]["name"], "same", "{method}");
        assert_eq!(last[1]["name"], "unknown", "{method}");
        assert!(
            last.iter().all(|feature| feature["score"] == 0.0),
            "{method}"
        );
    }
}

/// Exit code 2 and these words on stderr.
fn refused(output: &Output, words: &str) {
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains(words), "{said}");
    assert!(output.stdout.is_empty());
}

#[test]
fn says_why_rows_cannot_be_scored() {
    let ill_only: String = ROWS
        .lines()
        .take(4)
        .map(|line| format!("{line}\n"))
        .collect();
    refused(
        &score(SCHEMA, &ill_only, &[]),
        "all rows are of class \"ill\"",
    );
    let header: String = ROWS
        .lines()
        .take(1)
        .map(|line| format!("{line}\n"))
        .collect();
    let empty = score(SCHEMA, &header, &[]);
    assert_eq!(empty.status.code(), Some(2), "{}", text(&empty.stderr));
    // A feature that is missing everywhere, and a rule that leaves such rows out.
    let dropping = SCHEMA.replace("missing = { value = 5 }", "missing = \"drop\"");
    let dropped = score(&dropping, ROWS, &[]);
    assert_eq!(dropped.status.code(), Some(2), "{}", text(&dropped.stderr));
    refused(&score(SCHEMA, ROWS, &["--method", "anova"]), "anova");
    let folder = Folder::new();
    let rows = folder.file("rows.csv", ROWS);
    refused(
        &heda(&["score", "--data", rows.to_str().unwrap()]),
        "--infer-schema",
    );
    refused(&heda(&["score"]), "--dataset");
}

#[test]
fn proposes_a_schema_that_scores_the_same_file() {
    let folder = Folder::new();
    let rows = folder.file("rows.csv", &ROWS.replace('?', "5"));
    let rows = rows.to_str().unwrap();
    let output = heda(&["score", "--infer-schema", "--data", rows]);
    let proposal = text(&output.stdout);
    assert!(
        output.status.success() && proposal.contains("[[column]]"),
        "{proposal}"
    );
    let named = heda(&["score", "--infer-schema", "--label", "ward", "--data", rows]);
    assert!(text(&named.stdout).contains("column = \"ward\""));
}
