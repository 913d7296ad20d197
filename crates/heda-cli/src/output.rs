//! Results on stdout, one JSON object when asked; notes and failures on stderr.

use clap::{ColorChoice, ValueEnum};
use heda::Engine;
use heda::Error;
use std::ffi::OsString;
use std::fmt::{Arguments, Display};
use std::io::{IsTerminal, Write};
use std::sync::atomic::{AtomicBool, AtomicI8, Ordering::Relaxed};

/// How much is said on stderr, besides failures, and whether in colours.
#[derive(Debug, Clone, Copy, clap::Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct OutputOptions {
    /// Say nothing on stderr but failures; `heda provider serve` logs warnings only
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    quiet: bool,
    /// Say more on stderr; twice for everything. HEDA_LOG chooses by module
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    verbose: u8,
    /// Colours in help and failures; auto means on a terminal, unless NO_COLOR is set
    #[arg(
        long,
        global = true,
        value_name = "WHEN",
        value_enum,
        default_value = "auto"
    )]
    color: ColorChoice,
}

/// -1 if quiet, then one more for each `--verbose`.
static VERBOSITY: AtomicI8 = AtomicI8::new(0);
static COLOURED: AtomicBool = AtomicBool::new(false);

impl OutputOptions {
    /// Puts the options into force.
    pub(crate) fn apply(self) {
        let more = i8::try_from(self.verbose).unwrap_or(i8::MAX);
        VERBOSITY.store(if self.quiet { -1 } else { more }, Relaxed);
        COLOURED.store(is_coloured(self.color), Relaxed);
    }
}

/// What `--color` says, before the command line is understood: its own errors may have colours.
pub(crate) fn wanted_colour(typed: &[OsString]) -> ColorChoice {
    let words = typed.iter().skip(1).map(|word| word.to_str().unwrap_or(""));
    let mut words = words.take_while(|word| *word != "--");
    while let Some(word) = words.next() {
        let value = match word.strip_prefix("--color") {
            Some("") => words.next(),
            Some(rest) => rest.strip_prefix('='),
            None => None,
        };
        let choice = value.map(|value| ColorChoice::from_str(value, false));
        if let Some(Ok(choice)) = choice {
            return choice;
        }
    }
    ColorChoice::Auto
}

/// Whether stderr gets colours.
pub(crate) fn is_coloured(choice: ColorChoice) -> bool {
    match choice {
        ColorChoice::Always => true,
        ColorChoice::Never => false,
        ColorChoice::Auto => {
            let unwanted = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
            !unwanted && std::io::stderr().is_terminal()
        }
    }
}

/// How much was asked for: below 0 for less, above 0 for more.
pub(crate) fn verbosity() -> i8 {
    VERBOSITY.load(Relaxed)
}

/// A line for people on stderr, unless they want quiet. If nobody can read it, that is no failure
/// of ours.
macro_rules! note {
    ($($words:tt)*) => { crate::output::tell(format_args!($($words)*)) };
}
pub(crate) use note;

/// What [`note`] does.
pub(crate) fn tell(words: Arguments<'_>) {
    if verbosity() >= 0 {
        heda::note(words);
    }
}

/// Says why the command failed.
pub(crate) fn fail(failure: &dyn Display) {
    match COLOURED.load(Relaxed) {
        true => heda::note(format_args!("\x1b[1;31mheda:\x1b[0m {failure}")),
        false => heda::note(format_args!("heda: {failure}")),
    }
}

/// Prints one JSON object on stdout.
pub(crate) fn print_json(value: &impl serde::Serialize) -> Result<(), Error> {
    let text = serde_json::to_string_pretty(value).map_err(Error::bug)?;
    print_text(&text)
}

/// Prints a result on stdout; a reader that went away is no failure of ours.
pub(crate) fn print_text(text: &str) -> Result<(), Error> {
    match writeln!(std::io::stdout().lock(), "{text}") {
        Err(e) if e.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(Error::input(format!("cannot write to stdout: {e}")))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wish_for_colours_is_read_before_anything_else() {
        let wanted = |words: &[&str]| {
            let typed: Vec<OsString> = words.iter().map(OsString::from).collect();
            wanted_colour(&typed)
        };
        assert_eq!(wanted(&["heda", "demo"]), ColorChoice::Auto);
        assert_eq!(wanted(&["heda", "--color", "always"]), ColorChoice::Always);
        assert_eq!(wanted(&["heda", "x", "--color=never"]), ColorChoice::Never);
        assert_eq!(wanted(&["heda", "--", "--color=never"]), ColorChoice::Auto);
        assert_eq!(wanted(&["heda", "--color"]), ColorChoice::Auto);
    }
}
