//! Puts the commit, if there is a repository, and the features into `heda --version`.

use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let commit = commit().map_or(String::new(), |commit| format!("commit {commit}, "));
    let features = match features() {
        features if features.is_empty() => "no features".to_owned(),
        features => format!("features {}", features.join(" ")),
    };
    let version = env!("CARGO_PKG_VERSION");
    println!("cargo:rustc-env=HEDA_VERSION={version} ({commit}{features})");
}

/// The features of this build, in alphabetical order.
fn features() -> Vec<String> {
    let set = std::env::vars().filter_map(|(name, _)| {
        let feature = name.strip_prefix("CARGO_FEATURE_")?;
        (feature != "DEFAULT").then(|| feature.to_lowercase().replace('_', "-"))
    });
    let mut set: Vec<String> = set.collect();
    set.sort();
    set
}

/// The commit of this repository. A package inside somebody else's repository has none.
fn commit() -> Option<String> {
    let package = std::env::var_os("CARGO_MANIFEST_DIR")?;
    let own = std::fs::canonicalize(Path::new(&package).join("../..")).ok()?;
    if own != Path::new(&git(&["rev-parse", "--show-toplevel"])?) {
        return None;
    }
    // The log of a branch grows with every commit.
    let log = PathBuf::from(git(&["rev-parse", "--git-path", "logs/HEAD"])?);
    if log.exists() {
        println!("cargo:rerun-if-changed={}", log.display());
    }
    git(&["rev-parse", "--short=9", "HEAD"])
}

/// The only line that git prints; nothing if there is no git, or no repository.
fn git(arguments: &[&str]) -> Option<String> {
    let told = Command::new("git").args(arguments).output().ok()?;
    let line = String::from_utf8(told.stdout).ok()?;
    let line = line.trim();
    (told.status.success() && !line.is_empty()).then(|| line.to_owned())
}
