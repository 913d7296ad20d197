//! Training under differential privacy: what it costs in accuracy, over ε.
//!
//! `tools/reference/private_data_sets.py` exports the data sets with their schemas and splits, and
//! writes down what others make of the same splits. Here the integer oracle is trained on them, in
//! which every bit is as in an engine with the same coins and noise. Every run is seeded.
//!
//! Arms: `typical` is the product's rule with means and deviations from the schema; `bounds` does
//! without them; `moments` buys them with a part of the budget; `lost` is `typical` with the same noise and one answer,
//! of a step drawn at random, that never arrives; `collusion` has the noise of three providers of whom one may tell its own, half as
//! much variance again; `published` publishes every column at the same total ε and trains on that;
//! `automatic` does so at the ε that the paper's Algorithm 1 reads from the rows, where it finds one.

use super::Options;
use super::clear::published;
use super::sheet::{Sheet, SheetLayout, load};
use heda::Error;
use heda_crypto::random::Randomness;
use heda_dp::budget::split_equally;
use heda_dp::epsilon::Epsilon;
use heda_dp::gaussian::{Variance, sample};
use heda_dp::gdp::Delta;
use heda_learn::data::Dataset;
use heda_mechanisms::auto::{Automatic, automatic_epsilon};
use heda_mechanisms::points::Points;

use heda_learn::clip_range::{ClipRange, score_within};
use heda_learn::gradient::GradientSource;
use heda_learn::loss::LossKind;
use heda_learn::metrics::{auc, log_loss};
use heda_learn::optimise::Optimiser;
use heda_learn::oracle::{TrainConfig, train};
use heda_learn::private::{
    Extent, MOMENT_ANSWERS, PrivateEncoding, PrivatePlan, PrivateSource, bought_centres,
    moment_sums, share_of, unstated,
};
use heda_learn::resident::{Position, RowCoins};
use heda_learn::schema::Schema;
use heda_learn::split::shuffle;
use heda_learn::table::TableReader;
use rand_core::{CryptoRng, Rng};
use rayon::prelude::*;
use std::num::NonZeroU32;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

pub(super) static LAYOUT: SheetLayout = SheetLayout {
    name: "private",
    columns: &[
        "dataset",
        "rows",
        "arm",
        "epsilon",
        "split",
        "gradients",
        "accuracy",
        "auc",
        "log_loss",
    ],
};

const DELTA: f64 = 1e-5;
const EPSILONS: [&str; 7] = ["0.1", "0.2", "0.5", "1", "2", "5", "10"];
const QUICK_SPLITS: usize = 2;

/// Options, and where the data sets are.
#[derive(Debug, Clone, clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    pub(super) options: Options,
    /// Folder that tools/reference/private_data_sets.py has filled
    #[arg(long, value_name = "DIR")]
    data: PathBuf,
}

fn bug(error: impl std::fmt::Display) -> Error {
    Error::bug(error.to_string())
}

/// How a model is trained.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Arm {
    Typical,
    Bounds,
    Moments,
    Lost,
    Collusion,
    Published,
    Automatic,
}

impl Arm {
    const ALL: [Self; 7] = [
        Self::Typical,
        Self::Bounds,
        Self::Moments,
        Self::Lost,
        Self::Collusion,
        Self::Published,
        Self::Automatic,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::Typical => "typical",
            Self::Bounds => "bounds",
            Self::Moments => "moments",
            Self::Lost => "lost",
            Self::Collusion => "collusion",
            Self::Published => "published",
            Self::Automatic => "automatic",
        }
    }

    /// Where it is measured: the product's rule and publishing everywhere, the others at 1; the automatic
    /// rule where it says, if it says anything.
    fn epsilons(self, data: &Dataset) -> Vec<String> {
        match self {
            Self::Typical | Self::Lost | Self::Published => EPSILONS.map(String::from).to_vec(),
            Self::Automatic => {
                let total = automatic(data).map(|found| found.composed());
                total.iter().map(Epsilon::to_string).collect()
            }
            _ => vec!["1".to_owned()],
        }
    }

    fn schema(self, text: &str, file: &str) -> Result<Schema, Error> {
        let states = ![Self::Bounds, Self::Moments].contains(&self);
        let kept = |line: &&str| states || !line.starts_with("typical");
        let text: Vec<&str> = text.lines().filter(kept).collect();
        Schema::parse(&text.join("\n"), file).map_err(Error::input)
    }
}

/// A data set of the folder.
struct Case {
    name: String,
    schema_text: String,
    data: Dataset,
    held_out: Vec<Vec<usize>>,
}

impl Case {
    fn read(schema: &Path) -> Result<Self, Error> {
        let read = |path: &Path| {
            std::fs::read_to_string(path)
                .map_err(|e| Error::input(format!("{}: {e}", path.display())))
        };
        let schema_text = read(schema)?;
        let parsed = Arm::Typical.schema(&schema_text, &schema.display().to_string())?;
        let table = TableReader::new(&parsed);
        let rows = table.read_file(&schema.with_extension("csv"));
        let (data, _) = rows.map_err(Error::input)?;
        let splits = read(&schema.with_extension("json"))?;
        Ok(Self {
            name: schema
                .file_stem()
                .map_or(String::new(), |name| name.to_string_lossy().into_owned()),
            schema_text,
            held_out: held_out(&splits, data.rows())?,
            data,
        })
    }
}

/// The rows held out in each split.
fn held_out(text: &str, rows: usize) -> Result<Vec<Vec<usize>>, Error> {
    let bad = || Error::input("a file of splits is not as the script writes it");
    let value: serde_json::Value = serde_json::from_str(text).map_err(Error::input)?;
    let lists = value["held_out"].as_array().ok_or_else(bad)?;
    let row = |v: &serde_json::Value| v.as_u64().map(|v| v as usize).filter(|&v| v < rows);
    lists
        .iter()
        .map(|list| {
            let list = list.as_array().ok_or_else(bad)?;
            list.iter().map(|v| row(v).ok_or_else(bad)).collect()
        })
        .collect()
}

/// Measures what is missing.
pub(super) fn run(arguments: &Arguments) -> Result<(), Error> {
    let options = &arguments.options;
    let mut sheet = Sheet::open(&options.out, &LAYOUT)?;
    for path in schemas(&arguments.data)? {
        let case = Case::read(&path)?;
        for arm in Arm::ALL {
            for epsilon in arm.epsilons(&case.data) {
                let rows = case.data.rows().to_string();
                let key = [&case.name, &rows, arm.name(), &epsilon].map(String::from);
                if sheet.has(options.seed, &key) {
                    continue;
                }
                eprintln!("heda: {}: {}", LAYOUT.name, key.join(", "));
                let load = load();
                let measured = all_splits(&case, arm, &epsilon, options)?;
                let row = |(split, cells): (usize, Vec<String>)| {
                    [key.to_vec(), vec![split.to_string()], cells].concat()
                };
                let rows = measured.into_iter().enumerate().map(row).collect();
                sheet.add(options.seed, &load, rows)?;
            }
        }
    }
    Ok(())
}

/// The schemas of a folder, in order.
fn schemas(folder: &Path) -> Result<Vec<PathBuf>, Error> {
    let failed = |e| Error::input(format!("{}: {e}", folder.display()));
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path
            .extension()
            .is_some_and(|extension| extension == "toml")
        {
            found.push(path);
        }
    }
    found.sort();
    match found.is_empty() {
        true => Err(Error::input(format!(
            "{} has no schemas; fill it with tools/reference/private_data_sets.py",
            folder.display()
        ))),
        false => Ok(found),
    }
}

fn all_splits(
    case: &Case,
    arm: Arm,
    epsilon: &str,
    options: &Options,
) -> Result<Vec<Vec<String>>, Error> {
    let splits = match options.quick {
        true => &case.held_out[..QUICK_SPLITS.min(case.held_out.len())],
        false => &case.held_out[..],
    };
    let schema = arm.schema(&case.schema_text, &case.name)?;
    let epsilon: Epsilon = epsilon.parse().map_err(bug)?;
    splits
        .par_iter()
        .enumerate()
        .map(|(split, held)| {
            // The same noise, so that only the answer differs.
            let draws = if arm == Arm::Lost { Arm::Typical } else { arm };
            let purpose = format!("{} {} {epsilon}", case.name, draws.name());
            let randomness = Randomness::seeded(options.seed).party(&purpose);
            let kept: Vec<usize> = complement(held, case.data.rows());
            let (training, test) = (case.data.select_rows(&kept), case.data.select_rows(held));
            let fitted = match arm {
                Arm::Published => {
                    let parts = split_equally(epsilon, training.features().len()).map_err(bug)?;
                    on_published(&training, &parts, &randomness, split as u64)?
                }
                Arm::Automatic => {
                    let parts = automatic(&case.data).ok_or_else(|| bug("no automatic epsilon"))?;
                    on_published(&training, parts.columns(), &randomness, split as u64)?
                }
                _ => privately(&training, &schema, arm, epsilon, &randomness, split as u64)?,
            };
            Ok(fitted.measure(&test))
        })
        .collect()
}

fn complement(held: &[usize], rows: usize) -> Vec<usize> {
    let mut kept = vec![true; rows];
    held.iter().for_each(|&row| kept[row] = false);
    (0..rows).filter(|&row| kept[row]).collect()
}

/// Coefficients, and how their scores become probabilities.
struct Fitted {
    beta: Vec<f64>,
    reach: Option<ClipRange>,
    loss: LossKind,
    gradients: u32,
}

impl Fitted {
    fn measure(&self, test: &Dataset) -> Vec<String> {
        let scores: Vec<f64> = (0..test.rows())
            .map(|row| score_within(&self.beta, test.row(row), self.reach.as_ref()))
            .collect();
        let positive: Vec<bool> = test.labels().iter().map(|&label| label == 1).collect();
        let pairs = || scores.iter().zip(&positive);
        let right = pairs().filter(|&(&z, &p)| (z > 0.0) == p).count();
        let probability = |(&z, &p): (&f64, &bool)| {
            let of_positive = self.loss.loss().probability(z).unwrap_or(0.5);
            if p { of_positive } else { 1.0 - of_positive }
        };
        let loss = log_loss(pairs().map(probability)).unwrap_or(f64::NAN);
        vec![
            self.gradients.to_string(),
            format!("{:.6}", right as f64 / scores.len() as f64),
            format!("{:.6}", auc(&scores, &positive).unwrap_or(0.5)),
            format!("{loss:.6}"),
        ]
    }
}

/// The product's rule in the integer oracle.
fn privately(
    training: &Dataset,
    schema: &Schema,
    arm: Arm,
    epsilon: Epsilon,
    randomness: &Randomness,
    split: u64,
) -> Result<Fitted, Error> {
    let delta = Delta::new(DELTA).map_err(bug)?;
    let extent = Extent {
        rows: training.rows() as u64,
        width: schema.width() + 1,
        models: NonZeroU32::MIN,
        moments: match arm {
            Arm::Moments => unstated(schema).len() as u32,
            _ => 0,
        },
        persons: false,
    };
    let plan = PrivatePlan::of(extent, epsilon, delta).map_err(bug)?;
    let mut moment_noise = randomness.fork("moments", split).map_err(bug)?;
    let encoding = match plan.moments_variance() {
        Some(variance) => bought(schema, training, variance, &mut moment_noise)?,
        None => PrivateEncoding::new(schema),
    };
    // As a provider orders them: in files rows are often sorted, and batches would be.
    let mut order: Vec<usize> = (0..training.rows()).collect();
    shuffle(
        &mut order,
        &mut randomness.fork("order", split).map_err(bug)?,
    );
    let rows = [encoding
        .rows(&training.select_rows(&order), 1)
        .map_err(bug)?];
    let variance = match arm {
        Arm::Collusion => three_shares(plan.variance())?,
        _ => plan.variance(),
    };
    let mut noise = randomness.fork("noise", split).map_err(bug)?;
    let mut coins = randomness.fork("coins", split).map_err(bug)?;
    let draw = |_: u32, width: usize| (0..width).map(|_| sample(variance, &mut noise)).collect();
    let toss = |_: Position| RowCoins {
        mask: coins.next_u32(),
        coin: coins.next_u32(),
    };
    let mut source = PrivateSource::new(&plan, &rows, toss, draw);
    let mut optimiser = Optimiser::new(plan.settings(), encoding.width()).map_err(bug)?;
    if arm == Arm::Lost {
        let mut which = randomness.fork("lost", split).map_err(bug)?;
        run_until(
            which.next_u32() % plan.gradients(),
            &mut optimiser,
            &mut source,
        )?;
        optimiser.skip().map_err(bug)?;
        source.lose();
    }
    let finished = optimiser.run(&mut source, |_| ControlFlow::Continue(()));
    finished.map_err(bug)?;
    Ok(Fitted {
        beta: encoding.coefficients(optimiser.beta()),
        reach: Some(encoding.reach()),
        loss: plan.loss(),
        gradients: optimiser.iterations(),
    })
}

/// Asks for so many gradients.
fn run_until<S: GradientSource<Error: std::error::Error>>(
    gradients: u32,
    optimiser: &mut Optimiser,
    source: &mut S,
) -> Result<(), Error> {
    while optimiser.iterations() < gradients {
        let stop = |_: &Optimiser| ControlFlow::Break(());
        optimiser.run(source, stop).map_err(bug)?;
    }
    Ok(())
}

/// The encoding by moments that were bought.
fn bought(
    schema: &Schema,
    training: &Dataset,
    variance: Variance,
    rng: &mut impl CryptoRng,
) -> Result<PrivateEncoding, Error> {
    let exact = moment_sums(schema, training, None).map_err(bug)?;
    let answers = f64::from(MOMENT_ANSWERS);
    let mut noisy = |sum: &i64| {
        let noise: i64 = (0..MOMENT_ANSWERS).map(|_| sample(variance, rng)).sum();
        *sum as f64 + noise as f64 / answers
    };
    let sums: Vec<f64> = exact.iter().map(&mut noisy).collect();
    let noise = variance.get() as f64 / answers;
    let centres = bought_centres(&sums, training.rows() as f64, noise);
    PrivateEncoding::with_moments(schema, &centres).map_err(bug)
}

/// The noise of three providers, each of which counts on its own and one other's.
fn three_shares(variance: Variance) -> Result<Variance, Error> {
    let share = share_of(variance, NonZeroU32::MIN.saturating_add(2), 1);
    Variance::sum([share; 3]).map_err(bug)
}

/// The ε of every feature by Algorithm 1, a level counting by its place; nothing if the rule refuses a
/// feature, for example because all its values differ.
fn automatic(data: &Dataset) -> Option<Automatic> {
    let place = |cells: &[f64]| match cells {
        [value] => *value,
        levels => {
            let level = levels.iter().position(|&v| v > 0.5).unwrap_or(0);
            level as f64 / (levels.len() - 1) as f64
        }
    };
    let features = data.features();
    let cells = (0..data.rows()).flat_map(|row| {
        let row = data.row(row);
        features.iter().map(move |f| place(&row[f.columns.clone()]))
    });
    let points = Points::new(features.len(), cells.collect()).ok()?;
    automatic_epsilon(&points).ok()
}

/// The clear oracle on rows of which every column was published at its ε.
fn on_published(
    training: &Dataset,
    parts: &[Epsilon],
    randomness: &Randomness,
    split: u64,
) -> Result<Fitted, Error> {
    let mut rng = randomness.fork("release", split).map_err(bug)?;
    let noisy = published(training, parts, &mut rng)?;
    let fit = train(&noisy, 1, &TrainConfig::logistic()).map_err(bug)?;
    Ok(Fitted {
        beta: fit.beta,
        reach: None,
        loss: LossKind::Logistic,
        gradients: 0,
    })
}
