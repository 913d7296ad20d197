//! What `cargo metadata` says about the packages of the workspace and what they depend on.

use crate::sources::root;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

/// One package, ours or foreign.
#[derive(Debug, Clone, Deserialize)]
pub struct Package {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// Where it comes from; none for our own.
    pub source: Option<String>,
    /// Its features and what each of them switches on.
    pub features: BTreeMap<String, Vec<String>>,
}

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

/// Every package that takes part in a build for a target, with all features.
pub fn packages(target: &str) -> Result<Vec<Package>, String> {
    let written = cargo(&[
        "metadata",
        "--locked",
        "--format-version=1",
        "--all-features",
    ])?;
    let Metadata { packages } =
        serde_json::from_str(&written).map_err(|e| format!("cargo metadata: {e}"))?;
    let used = used(target)?;
    let takes_part =
        |package: &Package| used.contains(&(package.name.clone(), package.version.clone()));
    Ok(packages.into_iter().filter(takes_part).collect())
}

/// Names and versions of what is built. The metadata also have what only might be: an optional
/// dependency counts there as soon as a feature mentions it.
fn used(target: &str) -> Result<BTreeSet<(String, String)>, String> {
    let tree = [
        "tree",
        "--locked",
        "--workspace",
        "--all-features",
        "--prefix=none",
        "--target",
        target,
    ];
    let lines = cargo(&tree)?;
    let named = lines.lines().filter_map(|line| {
        let (name, rest) = line.split_once(" v")?;
        let version = rest.split_whitespace().next()?;
        Some((name.to_owned(), version.to_owned()))
    });
    Ok(named.collect())
}

fn cargo(arguments: &[&str]) -> Result<String, String> {
    let told = Command::new(env!("CARGO"))
        .args(arguments)
        .current_dir(root())
        .output()
        .map_err(|e| format!("cargo {}: {e}", arguments[0]))?;
    if !told.status.success() {
        let words = String::from_utf8_lossy(&told.stderr);
        return Err(format!("cargo {}: {words}", arguments[0]));
    }
    String::from_utf8(told.stdout).map_err(|e| format!("cargo {}: {e}", arguments[0]))
}
