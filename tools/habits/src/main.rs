//! `cargo run -p heda-habits`: checks that every crate of the workspace compiles with no feature,
//! with each of its features alone and with all of them.

use heda_habits::packages::{Package, packages};
use heda_habits::sources::root;
use std::process::{Command, ExitCode};

fn main() -> ExitCode {
    match check() {
        Ok(count) => {
            println!("{count} combinations of features compile");
            ExitCode::SUCCESS
        }
        Err(words) => {
            eprintln!("{words}");
            ExitCode::FAILURE
        }
    }
}

fn check() -> Result<usize, String> {
    let ours = packages(&host()?)?
        .into_iter()
        .filter(|package| package.source.is_none());
    let mut count = 0;
    for package in ours {
        for arguments in combinations(&package) {
            println!("{} {}", package.name, arguments.join(" "));
            compile(&package.name, &arguments)?;
            count += 1;
        }
    }
    Ok(count)
}

/// None, each alone, all. A crate without features has one way to be built, which the other
/// checks build anyway.
fn combinations(package: &Package) -> Vec<Vec<String>> {
    let named = package.features.keys().filter(|name| *name != "default");
    let alone: Vec<Vec<String>> = named
        .map(|name| {
            vec![
                "--no-default-features".into(),
                "--features".into(),
                name.clone(),
            ]
        })
        .collect();
    if alone.is_empty() {
        return alone;
    }
    let mut all = vec![vec!["--no-default-features".into()]];
    all.extend(alone);
    all.push(vec!["--all-features".into()]);
    all
}

fn compile(package: &str, arguments: &[String]) -> Result<(), String> {
    let status = Command::new(env!("CARGO"))
        .args(["check", "--quiet", "--locked", "--package", package])
        .args(arguments)
        .current_dir(root())
        .status()
        .map_err(|e| format!("cargo check: {e}"))?;
    match status.success() {
        true => Ok(()),
        false => Err(format!(
            "{package} does not compile with {}",
            arguments.join(" ")
        )),
    }
}

fn host() -> Result<String, String> {
    let told = Command::new("rustc")
        .arg("-vV")
        .output()
        .map_err(|e| format!("rustc: {e}"))?;
    let words = String::from_utf8_lossy(&told.stdout);
    let host = words.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned)
        .ok_or_else(|| "rustc does not name its host".to_owned())
}
