//! `heda bench`: how fast this machine does what jobs are made of.
//!
//! What is measured, and how it is printed, has the library.

use crate::output;
use clap::{Args, ValueEnum};
use heda::{Error, measure};
use serde::Serialize;

/// Measure cryptography and engines on this machine
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  heda bench
  heda bench --only transfer --json")]
pub(crate) struct BenchArguments {
    /// Measure this section only
    #[arg(long, value_enum, value_name = "SECTION")]
    only: Option<Measured>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// A section of the report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Measured {
    Transfer,
    Engines,
    Noise,
}

#[derive(Serialize)]
struct BenchReport {
    version: &'static str,
    cores: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    oblivious_transfer: Option<measure::TransferSection>,
    #[serde(skip_serializing_if = "Option::is_none")]
    engines: Option<measure::EngineSection>,
    #[serde(skip_serializing_if = "Option::is_none")]
    noise: Option<measure::NoiseSection>,
}

/// Runs the command.
pub(crate) fn run(arguments: &BenchArguments) -> Result<(), Error> {
    let wanted = |part| arguments.only.is_none_or(|only| only == part);
    let report = BenchReport {
        version: env!("CARGO_PKG_VERSION"),
        cores: rayon::current_num_threads(),
        oblivious_transfer: when(wanted(Measured::Transfer), measure::transfer)?,
        engines: when(wanted(Measured::Engines), measure::engines)?,
        noise: when(wanted(Measured::Noise), measure::noise)?,
    };
    match arguments.json {
        true => output::print_json(&report),
        false => output::print_text(&text(&report)),
    }
}

fn when<T>(wanted: bool, measure: impl FnOnce() -> Result<T, Error>) -> Result<Option<T>, Error> {
    wanted.then(measure).transpose()
}

fn text(report: &BenchReport) -> String {
    let transfer = report.oblivious_transfer.iter().map(ToString::to_string);
    let engines = report.engines.iter().map(ToString::to_string);
    let noise = report.noise.iter().map(ToString::to_string);
    let sections: Vec<String> = transfer.chain(engines).chain(noise).collect();
    let head = format!("heda {} on {} cores", report.version, report.cores);
    format!("{head}\n\n{}", sections.join("\n\n"))
}
