//! `heda demo`: a whole job on this machine with a bundled data set.

use crate::output;
use crate::progress::Progress;
use heda::failure::Failure;
use heda::local_job::{LocalJob, Rest};
use heda::report;
use heda_crypto::random::Randomness;
use heda_dp::epsilon::Epsilon;
use heda_learn::bundled::{Bundle, Coding};
use heda_learn::partition::{Goal, Iota};
use heda_learn::score::Method;
use heda_train::proposal::{Engine, Spending};
use std::path::PathBuf;

/// Train and evaluate a classifier under encryption, on a bundled data set
///
/// Providers run as threads of this process, with real keys and messages: the rows are divided
/// among them, features are encrypted, a logistic regression is trained and evaluated on held-out
/// rows that stay encrypted. Controls in clear stand beside the result. --iota is the paper's dial:
/// the best features are encrypted and the others published with noise, or left out with --drop.
/// The data sets are public, so epsilon may then be chosen by the paper's automatic rule; a real job
/// has no default.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  heda demo
  heda demo --dataset adult --out adult-demo
  heda demo --iota 5
  heda demo --dataset crx --iota auto --accuracy-loss 1
  heda demo --engine paper --iota 9
  heda demo --dataset car --coding paper --iota 1 --epsilon 4 --json")]
pub(crate) struct Arguments {
    /// The data set: bcwd, adult, crx or car
    #[arg(long, value_name = "NAME", default_value = "bcwd")]
    dataset: Bundle,
    /// How categories become numbers: natural, or paper (integers in alphabetical order)
    #[arg(long, value_name = "CODING", default_value = "natural")]
    coding: Coding,
    /// Among how many providers the rows are divided
    #[arg(long, value_name = "N", default_value_t = 3)]
    providers: usize,
    /// How many features are encrypted, or auto; all of them if not given
    #[arg(long, value_name = "I")]
    iota: Option<Iota>,
    /// With --iota auto: encrypt as much as fits into so many seconds
    #[arg(long, value_name = "S", conflicts_with = "accuracy_loss")]
    within_seconds: Option<f64>,
    /// With --iota auto: encrypt as little as loses at most so many points of accuracy
    #[arg(long, value_name = "POINTS")]
    accuracy_loss: Option<f64>,
    /// How gradients are computed: resident, or paper (leaks; for comparison only)
    #[arg(long, value_name = "ENGINE", default_value = "resident")]
    engine: Engine,
    /// Key size of engine paper
    #[arg(long, value_name = "BITS", default_value_t = 2048)]
    key_bits: u32,
    /// How features are ranked: kw, chi2, pearson, spearman, forest or mrmr
    #[arg(long, value_name = "METHOD", default_value = "kw")]
    method: Method,
    /// Epsilon in sum over the published features; the paper's automatic rule if not given
    #[arg(long, value_name = "E", conflicts_with = "drop")]
    epsilon: Option<Epsilon>,
    /// Leave the features that are not encrypted out instead of publishing them
    #[arg(long)]
    drop: bool,
    /// Train privately: epsilon for everything that is revealed, with all features encrypted
    #[arg(long, value_name = "E", conflicts_with_all = ["iota", "epsilon", "drop"])]
    private: Option<Epsilon>,
    /// Let every class count as much as the others together
    #[arg(long, conflicts_with = "private")]
    balanced: bool,
    /// Draw everything from this seed: reproducible, and without protection
    #[arg(long, value_name = "S")]
    seed: Option<u64>,
    /// Write model.json and report.html into this folder
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

impl Arguments {
    fn iota(&self) -> Option<usize> {
        match self.iota {
            Some(Iota::Exactly(iota)) => Some(iota),
            Some(Iota::Auto) | None => None,
        }
    }

    fn goal(&self) -> Result<Option<Goal>, Failure> {
        let auto = self.iota == Some(Iota::Auto);
        match (auto, self.within_seconds, self.accuracy_loss) {
            (false, None, None) => Ok(None),
            (true, Some(seconds), None) => Ok(Some(Goal::WithinSeconds(seconds))),
            (true, None, Some(points)) => Ok(Some(Goal::AccuracyLoss(points / 100.0))),
            (true, ..) => Err(Failure::input(
                "--iota auto needs a goal: --within-seconds or --accuracy-loss",
            )),
            (false, ..) => Err(Failure::input(
                "--within-seconds and --accuracy-loss go with --iota auto",
            )),
        }
    }
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let spending = arguments
        .epsilon
        .map_or(Spending::Automatic, Spending::Total);
    let job = LocalJob {
        bundle: arguments.dataset,
        coding: arguments.coding,
        providers: arguments.providers,
        iota: arguments.iota(),
        goal: arguments.goal()?,
        engine: arguments.engine,
        key_bits: arguments.key_bits,
        method: arguments.method,
        rest: if arguments.drop {
            Rest::Drop
        } else {
            Rest::Publish(spending)
        },
        settings: None,
        private: arguments.private,
        balanced: arguments.balanced,
        randomness: arguments
            .seed
            .map_or_else(Randomness::from_os, Randomness::seeded),
    };
    output::warn_of_leaks(arguments.engine);
    let mut finished = job.run(&mut Progress::new())?;
    if let Some(folder) = &arguments.out {
        finished.write(folder, &report::command_line())?;
    }
    match arguments.json {
        true => output::print_json(&finished.summary),
        false => output::print_text(&finished.summary.text()),
    }
}
