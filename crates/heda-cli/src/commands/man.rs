//! `heda man`: manual pages, for those who package the program.

use crate::{Program, output};
use heda::Error;
use std::path::PathBuf;

/// Write manual pages, one for each command
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  heda man man1 && man -l man1/heda-demo.1")]
pub(crate) struct ManArguments {
    /// Folder for the pages; it is made if it is not there
    #[arg(value_name = "DIR")]
    out: PathBuf,
}

pub(crate) fn run(arguments: &ManArguments, program: &Program) -> Result<(), Error> {
    let out = &arguments.out;
    let told = |e: std::io::Error| Error::input(format!("{}: {e}", out.display()));
    std::fs::create_dir_all(out).map_err(told)?;
    clap_mangen::generate_to(program.command(), out).map_err(told)?;
    output::print_text(&format!("manual pages are in {}", out.display()))
}
