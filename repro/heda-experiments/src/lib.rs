//! `heda-repro experiment`: the paper's tables and figures again, one file each.

mod attacks;
mod audit;
mod blocks;
mod charts;
mod clear;
mod clock;
mod defaults;
mod document;
mod features;
mod growth;
mod intervals;
mod plot;
mod printed;
mod private;
mod private_attacks;
mod private_audit;
mod private_guesses;
mod rate;
mod release;
mod sheet;
mod training;

use clap::Subcommand;
use heda::Error;
use heda_job::proposal::Engine;
use heda_learn::bundled::{Bundle, Coding};
use heda_learn::data::Dataset;
use heda_learn::split::Split;
use release::Measure;
use std::path::PathBuf;

/// Reproduce the paper's tables and figures
///
/// Every run is seeded, and therefore without protection; the data sets are public. Measurements
/// are written as soon as they are known: the same command goes on where it was interrupted.
#[derive(Debug, Subcommand)]
pub enum Experiment {
    /// Figure 4: information lost by publishing, over the cluster size
    Sse(Options),
    /// Figure 5: rows found again in what was published, over the cluster size
    Linkage(Options),
    /// Figure 6: accuracy while the lowest-scored feature is removed step by step
    Features(Options),
    /// Figure 7: accuracy and time from one encrypted feature to all
    Tradeoff(Options),
    /// Table 3: time of the building blocks; accuracy and time with everything encrypted
    Table3(Options),
    /// How time grows with encrypted features and with rows
    Growth(Options),
    /// Learning rates for engine paper, compared in clear
    Rate(Options),
    /// Attacks on what the parties saw: they succeed against engine paper, not against resident
    Attacks(Options),
    /// Claimed epsilons against what an audit can refute
    Audit(Options),
    /// Accuracy of training under differential privacy, over epsilon
    Private(private::Arguments),
    /// Intervals of private evaluations: how often they hold the truth, and how wide they are
    Intervals(intervals::Arguments),
    /// Accuracy of the defaults beside scikit-learn's, on data sets that are not bundled
    Defaults(defaults::Arguments),
    /// Everything
    All(Options),
    /// Draw all pictures and write the page of results, from the files alone
    Document(document::Arguments),
}

/// Options of every experiment.
#[derive(Debug, Clone, clap::Args)]
pub struct Options {
    /// Folder for measurements (CSV) and pictures (SVG)
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Fewer rows and repeats: a look, not a result
    #[arg(long)]
    quick: bool,
    /// Train with this engine only: resident or paper
    #[arg(long, value_name = "ENGINE")]
    engine: Option<Engine>,
    /// Fixes every random draw
    #[arg(long, value_name = "S", default_value_t = 1)]
    seed: u64,
}

/// Runs an experiment. Returns what to tell the user.
///
/// # Errors
/// If the input is bad, a file cannot be written, or a job fails.
pub fn run(experiment: &Experiment) -> Result<String, Error> {
    let options = match experiment {
        Experiment::Document(arguments) => return document::run(arguments),
        Experiment::Private(arguments) => &arguments.options,
        Experiment::Defaults(arguments) => return defaults::run(arguments),
        Experiment::Intervals(arguments) => return intervals::run(arguments),
        Experiment::Sse(options)
        | Experiment::Linkage(options)
        | Experiment::Features(options)
        | Experiment::Tradeoff(options)
        | Experiment::Table3(options)
        | Experiment::Growth(options)
        | Experiment::Rate(options)
        | Experiment::Attacks(options)
        | Experiment::Audit(options)
        | Experiment::All(options) => options,
    };
    match experiment {
        Experiment::Sse(_) => release::run(options, Measure::SquaredErrors)?,
        Experiment::Linkage(_) => release::run(options, Measure::Linkage)?,
        Experiment::Features(_) => features::run(options)?,
        Experiment::Tradeoff(_) => tradeoff(options)?,
        Experiment::Table3(_) => table3(options)?,
        Experiment::Growth(_) => growth::run(options)?,
        Experiment::Rate(_) => rate::run(options)?,
        Experiment::Attacks(_) => attacks::run(options)?,
        Experiment::Audit(_) => audit::run(options)?,
        Experiment::Private(arguments) => private::run(arguments)?,
        _ => all(options)?,
    }
    Ok(format!("written: {}", options.out.display()))
}

fn table3(options: &Options) -> Result<(), Error> {
    blocks::run(options)?;
    training::all_encrypted(options)
}

fn tradeoff(options: &Options) -> Result<(), Error> {
    training::dial(options)?;
    charts::draw(&options.out)
}

fn all(options: &Options) -> Result<(), Error> {
    audit::run(options)?;
    attacks::run(options)?;
    release::run(options, Measure::SquaredErrors)?;
    release::run(options, Measure::Linkage)?;
    features::run(options)?;
    rate::run(options)?;
    growth::run(options)?;
    table3(options)?;
    tradeoff(options)
}

/// A bundled data set, or a random part of it.
fn data_set(
    bundle: Bundle,
    coding: Coding,
    most: Option<usize>,
    seed: u64,
) -> Result<Dataset, Error> {
    let (data, _) = bundle.table(coding).map_err(Error::bug)?;
    Ok(match most {
        Some(most) if data.rows() > most => {
            let share = most as f64 / data.rows() as f64;
            let part = Split::seeded(data.rows(), share, seed, u64::MAX);
            data.select_rows(&part.test)
        }
        _ => data,
    })
}
