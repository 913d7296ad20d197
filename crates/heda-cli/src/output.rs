//! Results on stdout, one JSON object when asked; notes on stderr.

use heda::failure::{Failure, Kind};
use heda_train::proposal::Engine;
use std::io::Write;

/// A line for people on stderr. If nobody can read it, that is no failure of ours.
macro_rules! note {
    ($($words:tt)*) => { heda_node::system::logging::note(format_args!($($words)*)) };
}
pub(crate) use note;

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
        note!("heda: note: {line}");
    }
}

/// Says what an engine gives away, before it does.
pub(crate) fn warn_of_leaks(engine: Engine) {
    let leaks = engine.leaks();
    if !leaks.is_empty() {
        note!("heda: engine {engine} protects little and is here for comparison:");
        leaks.iter().for_each(|leak| note!("  - {leak}"));
    }
}
