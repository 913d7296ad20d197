//! `heda demo`: a whole job on this machine with a bundled data set.

use crate::output;
use crate::progress::{Phases, ProgressLine};
use heda::Error;
use heda::local_job::{LocalJob, Rest};
use heda::report;
use heda::{Bundle, Coding, Engine, Epsilon, Goal, Iota, Randomness, Score, Spending};
use std::path::PathBuf;
use std::str::FromStr;

/// Train and evaluate a classifier under encryption, on a bundled data set
///
/// Three providers run as threads of this process, with real keys and messages. The rows of Adult
/// (Census Income) are divided among them; a logistic regression learns who earns more than 50,000
/// dollars and is evaluated on held-out rows, which stay encrypted. Training in clear stands beside
/// the result. With --private 1 everything that the job reveals is differentially private.
///
/// With --iota only the best features are encrypted; the others are left out, or published with noise
/// for --epsilon.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  heda demo
  heda demo --private 1 --out demo
  heda demo --dataset bcwd --iota 5 --epsilon 2
  heda demo --dataset crx --iota auto --accuracy-loss 1
  heda demo --dataset car --coding paper --iota 1 --epsilon 4 --json")]
pub(crate) struct DemoArguments {
    /// The data set: adult, bcwd, crx or car
    #[arg(long, value_name = "NAME", default_value = "adult")]
    dataset: Bundle,
    /// How categories become numbers: natural, or paper (integers in alphabetical order)
    #[arg(long, value_name = "CODING", default_value = "natural")]
    coding: Coding,
    /// Number of providers that the rows are divided among
    #[arg(long, value_name = "N", default_value_t = 3)]
    providers: usize,
    /// How many features are encrypted, or auto; all of them if not given
    #[arg(long, value_name = "N")]
    iota: Option<Iota>,
    /// With --iota auto: encrypt as much as fits into this time
    #[arg(long, value_name = "SECONDS", conflicts_with = "accuracy_loss")]
    within_seconds: Option<f64>,
    /// With --iota auto: encrypt as little as possible and lose at most this much accuracy
    #[arg(long, value_name = "POINTS")]
    accuracy_loss: Option<f64>,
    /// How gradients are computed: an engine of this program
    #[arg(long, value_name = "ENGINE", default_value = "resident")]
    engine: Engine,
    /// How features are ranked: kw, chi2, pearson, spearman, forest or mrmr
    #[arg(long, value_name = "METHOD", default_value = "kw")]
    method: Score,
    /// Publish the other features with noise, for this epsilon in sum; they are left out if not given
    #[arg(long, value_name = "EPSILON", value_parser = spending)]
    epsilon: Option<Spending>,
    /// Make everything that the job reveals differentially private, with this epsilon
    #[arg(long, value_name = "EPSILON", conflicts_with_all = ["iota", "epsilon"])]
    private: Option<Epsilon>,
    /// Weight classes equally
    #[arg(long, conflicts_with = "private")]
    balanced: bool,
    /// Draw everything from this seed: reproducible, and without protection
    #[arg(long, value_name = "SEED")]
    seed: Option<u64>,
    /// Write model.json and report.html into this folder
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

impl DemoArguments {
    fn iota(&self) -> Option<usize> {
        match self.iota {
            Some(Iota::Exactly(iota)) => Some(iota),
            Some(Iota::Auto) | None => None,
        }
    }

    fn phases(&self) -> Phases {
        Phases {
            scores: self.private.is_none(),
            publishes: self.iota.is_some() && self.epsilon.is_some(),
            evaluates: true,
        }
    }

    fn goal(&self) -> Result<Option<Goal>, Error> {
        let auto = self.iota == Some(Iota::Auto);
        match (auto, self.within_seconds, self.accuracy_loss) {
            (false, None, None) => Ok(None),
            (true, Some(seconds), None) => Ok(Some(Goal::WithinSeconds(seconds))),
            (true, None, Some(points)) => Ok(Some(Goal::AccuracyLoss(points / 100.0))),
            (true, ..) => Err(Error::input(
                "--iota auto needs a goal: --within-seconds or --accuracy-loss",
            )),
            (false, ..) => Err(Error::input(
                "--within-seconds and --accuracy-loss go with --iota auto",
            )),
        }
    }
}

/// A number, or `auto` where the program has a rule for that.
fn spending(text: &str) -> Result<Spending, <Epsilon as FromStr>::Err> {
    match text {
        "auto" => Ok(Spending::Automatic),
        number => number.parse().map(Spending::Total),
    }
}

pub(crate) fn run(arguments: &DemoArguments) -> Result<(), Error> {
    let job = LocalJob {
        bundle: arguments.dataset,
        coding: arguments.coding,
        providers: arguments.providers,
        iota: arguments.iota(),
        goal: arguments.goal()?,
        engine: arguments.engine,
        method: arguments.method,
        rest: arguments.epsilon.clone().map_or(Rest::Drop, Rest::Publish),
        settings: None,
        private: arguments.private,
        balanced: arguments.balanced,
        randomness: arguments
            .seed
            .map_or_else(Randomness::from_os, Randomness::seeded),
    };
    output::warn_of_leaks(arguments.engine);
    let mut line = ProgressLine::new(arguments.phases());
    let mut finished = job.run(&mut |progress| line.show(progress))?;
    drop(line);
    if let Some(folder) = &arguments.out {
        finished.write(folder, &report::command_line())?;
    }
    match arguments.json {
        true => output::print_json(&finished.summary),
        false => output::print_text(&finished.summary.text()),
    }
}
