//! `heda-fuzz` names the targets; `heda-fuzz TARGET FOLDER` writes what a fuzzer starts from.

use heda_fuzz::targets::{TARGETS, find};
use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let outcome = match &words[..] {
        [] => {
            TARGETS.iter().for_each(|(name, _)| println!("{name}"));
            Ok(())
        }
        [target, folder] => write_inputs(target, Path::new(folder)),
        _ => Err("usage: heda-fuzz [TARGET FOLDER]".into()),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(words) => {
            eprintln!("{words}");
            ExitCode::FAILURE
        }
    }
}

fn write_inputs(target: &str, folder: &Path) -> Result<(), String> {
    let found = find(target).ok_or_else(|| format!("no target {target}"))?;
    let write = |(number, input): (usize, &[u8])| {
        std::fs::write(folder.join(format!("seed-{number}")), input)
    };
    std::fs::create_dir_all(folder)
        .and_then(|()| found.inputs().enumerate().try_for_each(write))
        .map_err(|e| format!("{}: {e}", folder.display()))
}
