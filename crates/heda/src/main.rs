//! The command line of Heda. Results go to stdout, everything else to stderr.

mod commands;
mod failure;
mod local_job;
mod output;
mod planning;
mod plot;
mod progress;
mod report;
mod summary;

use clap::Parser;
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments = commands::Arguments::parse();
    match commands::run(arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("heda: {failure}");
            ExitCode::from(failure.exit_code())
        }
    }
}
