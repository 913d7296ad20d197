//! What the lean build links: `cargo build -p heda-cli --no-default-features` serves and trains,
//! and has neither the paper's textbook cryptography nor what draws, reads Parquet or colours help.
#![allow(clippy::unwrap_used, reason = "a test that fails should say where")]

use std::collections::BTreeSet;
use std::process::Command;

/// Packages of the program at version 0.1.0, where all of it was in every build:
/// `cargo tree -p heda -e normal --prefix none | sed 's/ (\*)//' | sort -u | wc -l`.
const AT_FIRST: usize = 226;
/// What the lean build may have of them, in percent.
const SHARE: usize = 60;

/// Names and versions of all packages that the program is made of.
fn packages(features: &[&str]) -> BTreeSet<String> {
    let output = Command::new(env!("CARGO"))
        .args(["tree", "--offline", "--locked", "--package", "heda-cli"])
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

#[test]
fn the_lean_build_is_lean() {
    let lean = packages(&["--no-default-features"]);
    let most = AT_FIRST * SHARE / 100;
    assert!(
        lean.len() <= most,
        "{} packages, at most {most}:\n{lean:#?}",
        lean.len()
    );
    let has = names(&lean);
    for ours in ["heda", "heda-node", "heda-job", "rustls", "rusqlite"] {
        assert!(has.contains(ours), "{ours}");
    }
    let without = [
        "heda-paper",
        "heda-experiments",
        "crypto-bigint",
        "crypto-primes",
        "num-bigint",
        "rsa",
        "parquet",
        "plotters",
        "anstream",
        "terminal_size",
    ];
    for other in without {
        assert!(!has.contains(other), "{other}");
    }
}

#[test]
fn the_usual_build_has_everything() {
    let usual = packages(&[]);
    let has = names(&usual);
    for part in ["heda-paper", "heda-experiments", "parquet", "plotters"] {
        assert!(has.contains(part), "{part}");
    }
    assert!(usual.is_superset(&packages(&["--no-default-features"])));
}
