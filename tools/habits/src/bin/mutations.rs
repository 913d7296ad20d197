//! `cargo run -p heda-habits --bin mutations`: takes every defence of the list out, one by one, in a
//! copy of the tree, and demands that the named test fails. Writes the page of outcomes.
//!
//! With words as arguments, only mutations that contain one of them; lines of the others stay as they were.

use heda_habits::mutants::page::section_of;
use heda_habits::mutations::{CAUGHT, Mutation, PAGE, is_of, line, mutations, page};
use heda_habits::sources::root;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Output};

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match run(&words) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(words) => {
            eprintln!("{words}");
            ExitCode::FAILURE
        }
    }
}

fn run(words: &[String]) -> Result<bool, String> {
    let wanted = |mutation: &Mutation| {
        words.is_empty() || words.iter().any(|word| mutation.without.contains(word))
    };
    let all = mutations()?;
    let list: Vec<&Mutation> = all.iter().filter(|mutation| wanted(mutation)).collect();
    let target = root().join("target");
    let tree = target.join("mutations");
    copy(&tree)?;
    for mutation in &list {
        let found = outcome(&tree, &target, mutation)?;
        if found != Outcome::Passed {
            let test = &mutation.test;
            return Err(format!(
                "{test} does not pass before anything is changed: {found:?}"
            ));
        }
    }
    let path = root().join(PAGE);
    let before = std::fs::read_to_string(&path).map_err(|e| format!("{PAGE}: {e}"))?;
    let mut found = Vec::new();
    for mutation in &list {
        let words = match mutated(&tree, &target, mutation)? {
            Outcome::Failed => CAUGHT,
            Outcome::Passed => "**passes**",
            Outcome::NotBuilt => "**the changed program does not compile**",
        };
        let line = line(mutation, words);
        println!("{line}");
        found.push((mutation, words, line));
    }
    let mut lines = Vec::new();
    for mutation in &all {
        let now = found.iter().find(|(tried, ..)| **tried == mutation);
        let kept = || before.lines().find(|kept| is_of(kept, mutation));
        lines.extend(
            now.map(|(.., line)| line.as_str())
                .or_else(kept)
                .map(str::to_owned),
        );
    }
    // The other section is written by the program `mutants`.
    let both = page(&lines) + section_of(&before);
    std::fs::write(path, both).map_err(|e| format!("{PAGE}: {e}"))?;
    let all_caught = found.iter().all(|(_, words, _)| *words == CAUGHT);
    Ok(all_caught)
}

/// All files that belong to the repository.
fn copy(tree: &Path) -> Result<(), String> {
    let listed = Command::new("git")
        .args(["ls-files", "--cached", "--others", "--exclude-standard"])
        .current_dir(root())
        .output()
        .map_err(|e| format!("git: {e}"))?;
    let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
    for file in listed.lines() {
        let (from, to): (PathBuf, PathBuf) = (root().join(file), tree.join(file));
        let Ok(bytes) = std::fs::read(from) else {
            continue;
        };
        // What has not changed keeps its time, so that it is not compiled again.
        if std::fs::read(&to).is_ok_and(|there| there == bytes) {
            continue;
        }
        let folder = to.parent().ok_or("a file without a folder")?;
        let made = std::fs::create_dir_all(folder).and_then(|()| std::fs::write(&to, bytes));
        made.map_err(|e| format!("{}: {e}", to.display()))?;
    }
    Ok(())
}

#[derive(Debug, PartialEq, Eq)]
enum Outcome {
    Passed,
    Failed,
    NotBuilt,
}

/// The outcome with the edits made; they are taken back afterwards.
fn mutated(tree: &Path, target: &Path, mutation: &Mutation) -> Result<Outcome, String> {
    let mut before = Vec::new();
    for edit in &mutation.edits {
        before.push((tree.join(&edit.file), edit.apply(tree)?));
    }
    let found = outcome(tree, target, mutation);
    for (path, text) in before.into_iter().rev() {
        std::fs::write(&path, text).map_err(|e| format!("{}: {e}", path.display()))?;
    }
    found
}

fn outcome(tree: &Path, target: &Path, mutation: &Mutation) -> Result<Outcome, String> {
    let Mutation { package, test, .. } = mutation;
    let cargo = |more: &[&str]| -> Result<Output, String> {
        Command::new(env!("CARGO"))
            .args(["test", "--locked", "--package", package, "--lib"])
            .args(more)
            .current_dir(tree)
            .env("CARGO_TARGET_DIR", target)
            .output()
            .map_err(|e| format!("cargo test: {e}"))
    };
    if !cargo(&["--no-run"])?.status.success() {
        return Ok(Outcome::NotBuilt);
    }
    let done = cargo(&["--", "--exact", test])?;
    let told = String::from_utf8_lossy(&done.stdout);
    if !told.contains("running 1 test") {
        return Err(format!("{package} has no test {test}"));
    }
    Ok(match done.status.success() {
        true => Outcome::Passed,
        false => Outcome::Failed,
    })
}
