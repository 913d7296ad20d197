//! `heda experiment`: the paper's tables and figures again, one file each.

mod features;

use crate::failure::Failure;
use clap::Subcommand;

/// Reproduce the paper's tables and figures.
#[derive(Debug, Subcommand)]
pub(crate) enum Experiment {
    /// Figure 6: accuracy while the lowest-scored feature is removed step by step.
    Features(features::Arguments),
}

pub(crate) fn run(experiment: &Experiment) -> Result<(), Failure> {
    match experiment {
        Experiment::Features(arguments) => features::run(arguments),
    }
}
