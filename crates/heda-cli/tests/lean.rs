//! What the program links: nothing of the paper, and no big integers. Of its few features each can be
//! left out.
#![allow(clippy::unwrap_used, reason = "a test that fails should say where")]

use std::collections::BTreeSet;
use std::process::Command;

/// Packages of the program at version 0.1.0, where all of the paper was in it:
/// `cargo tree -p heda -e normal --prefix none | sed 's/ (\*)//' | sort -u | wc -l`.
const AT_FIRST: usize = 226;
/// What the build without features may have of them, in percent.
const SHARE: usize = 60;

/// Names and versions of all packages that a program is made of.
fn packages(program: &str, features: &[&str]) -> BTreeSet<String> {
    let output = Command::new(env!("CARGO"))
        .args(["tree", "--offline", "--locked", "--package", program])
        .args(["--edges", "normal", "--prefix", "none"])
        .args(["--format", "{p}"])
        .args(features)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let text = String::from_utf8(output.stdout).unwrap();
    let package = |line: &str| {
        let mut words = line.split_whitespace();
        format!("{} {}", words.next().unwrap(), words.next().unwrap())
    };
    text.lines().map(package).collect()
}

fn names(packages: &BTreeSet<String>) -> BTreeSet<&str> {
    let names = packages
        .iter()
        .filter_map(|package| package.split(' ').next());
    names.collect()
}

const OF_THE_PAPER: [&str; 5] = [
    "heda-paper",
    "heda-experiments",
    "crypto-bigint",
    "crypto-primes",
    "plotters",
];

#[test]
fn the_program_has_nothing_of_the_paper() {
    let usual = packages("heda-cli", &[]);
    let has = names(&usual);
    for ours in [
        "heda",
        "heda-node",
        "heda-job",
        "rustls",
        "rusqlite",
        "parquet",
    ] {
        assert!(has.contains(ours), "{ours}");
    }
    for other in OF_THE_PAPER {
        assert!(!has.contains(other), "{other}");
    }
    let reproduction = packages("heda-repro", &[]);
    let has = names(&reproduction);
    for part in OF_THE_PAPER {
        assert!(has.contains(part), "{part}");
    }
    assert!(reproduction.is_superset(&usual));
}

#[test]
fn without_features_it_is_smaller() {
    let lean = packages("heda-cli", &["--no-default-features"]);
    let most = AT_FIRST * SHARE / 100;
    assert!(
        lean.len() <= most,
        "{} packages, at most {most}:\n{lean:#?}",
        lean.len()
    );
    let has = names(&lean);
    for other in ["parquet", "num-bigint", "anstream", "terminal_size"] {
        assert!(!has.contains(other), "{other}");
    }
}
