//! `heda bench`: how fast this machine does what jobs are made of.
//!
//! Each section is a file under `bench/` with a `measure` function and a way to print itself.

mod lattice;
mod paillier;
mod timing;
mod transfer;

use crate::failure::Failure;
use crate::output;
use clap::Args;
use serde::Serialize;

/// Measure the cryptography on this machine.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Report {
    version: &'static str,
    cores: usize,
    lattice: Vec<lattice::Section>,
    oblivious_transfer: transfer::Section,
    paillier: Vec<paillier::Section>,
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let report = Report {
        version: env!("CARGO_PKG_VERSION"),
        cores: rayon::current_num_threads(),
        lattice: lattice::measure()?,
        oblivious_transfer: transfer::measure()?,
        paillier: paillier::measure()?,
    };
    match arguments.json {
        true => output::print_json(&report),
        false => output::print_text(&text(&report)),
    }
}

fn text(report: &Report) -> String {
    let mut sections: Vec<String> = report.lattice.iter().map(ToString::to_string).collect();
    sections.push(report.oblivious_transfer.to_string());
    sections.extend(report.paillier.iter().map(ToString::to_string));
    let head = format!("heda {} on {} cores", report.version, report.cores);
    format!("{head}\n\n{}", sections.join("\n\n"))
}
