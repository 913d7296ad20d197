//! The program `heda`.

use heda_cli::Program;
use std::process::ExitCode;

fn main() -> ExitCode {
    heda_cli::run(Program {
        name: "heda",
        extras: Vec::new(),
    })
}
