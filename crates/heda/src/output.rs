//! Files and results: nothing half written, and one JSON object when asked.

use crate::failure::{Failure, Kind};
use heda_train::paper::leaks;
use heda_train::proposal::Engine;
use std::io::Write;
use std::path::Path;

/// Writes a file so that it is either whole or not there: a temporary neighbour, then a rename.
pub(crate) fn write_whole(path: &Path, content: &[u8]) -> Result<(), Failure> {
    let fail = |e: std::io::Error| Failure::input(format!("cannot write {}: {e}", path.display()));
    let folder = path
        .parent()
        .filter(|p| !p.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder).map_err(fail)?;
    let name = path
        .file_name()
        .ok_or_else(|| Failure::input(format!("{} does not name a file", path.display())))?;
    let mut temporary = name.to_os_string();
    temporary.push(format!(".{}.partial", std::process::id()));
    let temporary = folder.join(temporary);
    let written = std::fs::File::create(&temporary)
        .and_then(|mut file| file.write_all(content).and_then(|()| file.sync_all()))
        .and_then(|()| std::fs::rename(&temporary, path));
    written.map_err(|e| {
        let _ = std::fs::remove_file(&temporary);
        fail(e)
    })
}

/// Prints one JSON object on stdout.
pub(crate) fn print_json(value: &impl serde::Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(value).map_err(|e| Failure::new(Kind::Bug, e))?;
    print_text(&text)
}

/// Prints a result on stdout; a reader that went away is no failure of ours.
pub(crate) fn print_text(text: &str) -> Result<(), Failure> {
    match writeln!(std::io::stdout().lock(), "{text}") {
        Err(e) if e.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(Failure::input(format!("cannot write to stdout: {e}")))
        }
        _ => Ok(()),
    }
}

/// Tells the user on stderr what happened to their rows.
pub(crate) fn warn(lines: impl IntoIterator<Item = String>) {
    for line in lines {
        eprintln!("heda: note: {line}");
    }
}

/// Says what an engine gives away, before it does.
pub(crate) fn warn_of_leaks(engine: Engine) {
    if engine == Engine::Paper {
        eprintln!("heda: engine paper protects little and is here for comparison:");
        leaks().iter().for_each(|leak| eprintln!("  - {leak}"));
    }
}
