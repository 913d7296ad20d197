//! The command line of Heda. Results go to stdout, everything else to stderr.

mod commands;
mod exit;
mod options;
mod output;
mod progress;
mod waiting;

use heda::Error;
use std::panic::AssertUnwindSafe;
use std::process::ExitCode;

fn main() -> ExitCode {
    heda::system::keep_freed_memory();
    let arguments = match commands::parse() {
        Ok(arguments) => arguments,
        Err(code) => return code,
    };
    // A panic has said where it was; its exit code is that of any other defect.
    let done = std::panic::catch_unwind(AssertUnwindSafe(|| commands::run(arguments)));
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
