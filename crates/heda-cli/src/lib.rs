//! The command line of Heda. Results go to stdout, everything else to stderr.
//!
//! The program `heda` is [`run`] with the usual commands and nothing else; another program may have
//! more commands and, if it registered them first, more engines.

mod commands;
mod exit;
mod options;
mod output;
mod progress;
mod waiting;

use heda::Error;
use std::panic::AssertUnwindSafe;
use std::process::ExitCode;

/// A program with this command line.
pub struct Program {
    /// What it is called.
    pub name: &'static str,
    /// Its commands beside the usual ones.
    pub extras: Vec<Extra>,
}

/// A command beside the usual ones.
pub struct Extra {
    /// Its name, arguments and help.
    pub command: clap::Command,
    /// Runs it; what comes back is printed.
    pub run: fn(&clap::ArgMatches) -> Result<String, Error>,
}

/// Runs the command that was typed.
pub fn run(program: Program) -> ExitCode {
    heda::system::keep_freed_memory();
    let typed = match commands::parse(&program) {
        Ok(typed) => typed,
        Err(code) => return code,
    };
    // A panic has said where it was; its exit code is that of any other defect.
    let done = std::panic::catch_unwind(AssertUnwindSafe(|| commands::run(&program, typed)));
    let done = done.unwrap_or_else(|_| Err(Error::bug("stopped by a defect")));
    heda::system::finish_log();
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            output::fail(&exit::words(&error));
            ExitCode::from(exit::code(&error))
        }
    }
}
