//! Training runs for table 3b and figure 7: whole jobs under encryption with both engines, every
//! random draw from a seed, and the paper's mechanism IMA in a simulation in clear.
//!
//! One row of the file is one job on one random 80/20 split. Features that are not encrypted are
//! published with exact noise at the paper's automatic ε (`laplace`), or by IMA in the simulation;
//! the control `dropped` leaves them out. Test rows are never perturbed.
//!
//! Engine `resident` trains as a job does by default: L-BFGS on all rows. Engine `paper` descends on
//! mini-batches, as often as the paper's table 3b counts interactions (three an iteration).

use super::clear::oracle_accuracy;
use super::clock::processor_seconds;
use super::printed::TABLE_3B;
use super::sheet::{Sheet, SheetLayout};
use super::{Options, data_set};
use heda::Error;
use heda::local_job::{LocalJob, Rest};
use heda::summary::Summary;
use heda_crypto::random::Randomness;
use heda_dp::account::Mechanism;
use heda_job::proposal::{Engine, Spending};
use heda_learn::bundled::{Bundle, Coding};
use heda_learn::data::Dataset;
use heda_learn::optimise::Settings;
use heda_learn::score::{Scores, ScoringMethod};
use heda_mechanisms::auto::automatic_epsilon;
use heda_mechanisms::centroid::Reference;
use heda_mechanisms::cluster::default_size;
use heda_mechanisms::ima;
use heda_mechanisms::points::Points;
use heda_paper::engine::{KEY_BITS, paper, usual_settings};

pub(super) static RUNS: SheetLayout = SheetLayout {
    name: "training",
    columns: &[
        "engine",
        "dataset",
        "coding",
        "rows",
        "mechanism",
        "iota",
        "repeat",
        "features",
        "accuracy",
        "plain_accuracy",
        "dropped_accuracy",
        "epsilon_sum",
        "key_bits",
        "batch_rows",
        "iterations",
        "interactions",
        "seconds",
        "seconds_setup",
        "seconds_user",
        "seconds_providers",
        "seconds_processor",
        "megabytes",
    ],
};
/// Measured cells that a simulation in clear does not have.
const ONLY_ENCRYPTED: usize = 10;

pub(super) const PROVIDERS: usize = 3;
const QUICK_ROWS: usize = 600;
/// By how much a quick run shortens the training of engine `paper`.
const QUICK_SHARE: u32 = 20;

fn bug(error: impl std::fmt::Display) -> Error {
    Error::bug(error.to_string())
}

/// The engine that stands beside `paper`, as files call it.
pub(super) const DEFAULT_ENGINE: &str = "resident";

/// How often the paper iterates: it counts three interactions each time.
pub(super) fn printed_iterations(bundle: Bundle) -> u32 {
    let printed = TABLE_3B.iter().find(|printed| printed.bundle == bundle);
    printed.map_or(0, |printed| printed.interactions / 3)
}

/// How many random splits there are with everything encrypted: of few rows many, because they
/// differ more.
fn repeats(options: &Options, engine: Engine, bundle: Bundle) -> u64 {
    let full = match (engine == Engine::RESIDENT, bundle) {
        (true, Bundle::Bcwd | Bundle::Crx | Bundle::Car) => 100,
        (true, Bundle::Adult) | (false, _) => 10,
    };
    if options.quick { 1 } else { full }
}

/// How many of them are used on the way from one feature to all.
fn dial_repeats(engine: Engine, bundle: Bundle) -> u64 {
    match (engine == Engine::RESIDENT, bundle) {
        (true, Bundle::Bcwd | Bundle::Crx | Bundle::Car) => 10,
        (true, Bundle::Adult) | (false, _) => 1,
    }
}

/// Table 3b: everything encrypted. The paper's coding first; then one that respects what the
/// levels mean, where that is another one. The slow engine has it on Car alone: all columns there
/// are ordered levels, which the paper's alphabetical order mixes up.
pub(super) fn all_encrypted(options: &Options) -> Result<(), Error> {
    sweep(options, Coding::Paper, |_, _, features, _| vec![features])?;
    sweep(
        options,
        Coding::Natural,
        |engine, bundle, features, _| match (engine == Engine::RESIDENT, bundle) {
            (true, Bundle::Adult | Bundle::Crx | Bundle::Car) | (false, Bundle::Car) => {
                vec![features]
            }
            _ => vec![],
        },
    )
}

/// Figure 7: from one encrypted feature to all of them, the ends first. Engine `paper` is so slow
/// that its curve has three points, of one split.
pub(super) fn dial(options: &Options) -> Result<(), Error> {
    let few = |engine: Engine| options.quick || engine == paper();
    sweep(
        options,
        Coding::Paper,
        |engine, bundle, features, repeat| match repeat < dial_repeats(engine, bundle) {
            true => vec![1, features],
            false => vec![],
        },
    )?;
    sweep(
        options,
        Coding::Paper,
        |engine, bundle, features, repeat| match (
            repeat < dial_repeats(engine, bundle),
            few(engine),
        ) {
            (false, _) => vec![],
            (true, true) => vec![features.div_ceil(2)],
            (true, false) => (2..features).collect(),
        },
    )
}

/// Every split of every data set at some ι. Splits come one after the other, so that a run that
/// is interrupted has something of everything.
fn sweep(
    options: &Options,
    coding: Coding,
    iotas: impl Fn(Engine, Bundle, usize, u64) -> Vec<usize>,
) -> Result<(), Error> {
    let mut sheet = Sheet::open(&options.out, &RUNS)?;
    for repeat in 0.. {
        let mut more = false;
        for engine in [Engine::RESIDENT, paper()] {
            for bundle in Bundle::ALL {
                let wanted = options.engine.is_none_or(|only| only == engine);
                if !wanted || repeat >= repeats(options, engine, bundle) {
                    continue;
                }
                more = true;
                let features = bundle.schema(coding).columns().len();
                for iota in iotas(engine, bundle, features, repeat) {
                    let setting = Setting {
                        engine,
                        bundle,
                        coding,
                        iota,
                        repeat,
                        quick: options.quick,
                    };
                    setting.encrypted(&mut sheet, options.seed)?;
                    if engine == Engine::RESIDENT && iota < features {
                        setting.simulated(&mut sheet, options.seed)?;
                    }
                }
            }
        }
        if !more {
            break;
        }
    }
    Ok(())
}

/// One job.
struct Setting {
    engine: Engine,
    bundle: Bundle,
    coding: Coding,
    iota: usize,
    repeat: u64,
    quick: bool,
}

impl Setting {
    fn data(&self, seed: u64) -> Result<Dataset, Error> {
        let most = self.quick.then_some(QUICK_ROWS);
        data_set(self.bundle, self.coding, most, seed)
    }

    fn key(&self, data: &Dataset, engine: &str, mechanism: &str) -> Vec<String> {
        vec![
            engine.to_owned(),
            self.bundle.name().to_owned(),
            self.coding.to_string(),
            data.rows().to_string(),
            mechanism.to_owned(),
            self.iota.to_string(),
            self.repeat.to_string(),
        ]
    }

    /// How engine `paper` descends; engine `resident` trains by default.
    fn settings(&self, data: &Dataset) -> Option<Settings> {
        let iterations = printed_iterations(self.bundle);
        (self.engine == paper()).then(|| Settings {
            max_iterations: if self.quick {
                iterations.div_ceil(QUICK_SHARE)
            } else {
                iterations
            },
            ..usual_settings(data.rows() * 4 / 5)
        })
    }

    fn job(&self, data: &Dataset, seed: u64) -> LocalJob {
        let split = format!("{} {}", self.bundle.name(), self.repeat);
        LocalJob {
            private: None,
            balanced: false,
            bundle: self.bundle,
            coding: self.coding,
            providers: PROVIDERS,
            iota: Some(self.iota),
            goal: None,
            engine: self.engine,
            method: ScoringMethod::KruskalWallis,
            rest: Rest::Publish(Spending::Automatic),
            settings: self.settings(data),
            // The same split whatever ι and engine: the curves are then about these alone.
            randomness: Randomness::seeded(seed).party(&split),
        }
    }

    /// The job under encryption.
    fn encrypted(&self, sheet: &mut Sheet, seed: u64) -> Result<(), Error> {
        let data = self.data(seed)?;
        let job = self.job(&data, seed);
        let batch_rows = job.settings.as_ref().map_or("all".to_owned(), |settings| {
            (data.rows() * 4 / 5 / settings.method.batches()).to_string()
        });
        let key = self.key(&data, &self.engine.to_string(), "laplace");
        sheet.complete(seed, &key, || {
            let before = processor_seconds();
            let done = job.run_on(&data, &mut heda::quiet)?.summary;
            let processor = processor_seconds()
                .zip(before)
                .map(|(after, before)| after - before);
            Ok(cells(&done, &batch_rows, processor))
        })
    }

    /// The same reading of mixed training with IMA, in clear.
    fn simulated(&self, sheet: &mut Sheet, seed: u64) -> Result<(), Error> {
        let data = self.data(seed)?;
        let key = self.key(&data, "clear", "ima");
        sheet.complete(seed, &key, || {
            let (training, test) = self.job(&data, seed).rows(&data)?;
            let order =
                Scores::compute(&training, ScoringMethod::KruskalWallis, seed).map_err(bug)?;
            let order = order.ranking().order().to_vec();
            let (kept, low) = order.split_at(self.iota);
            let (mixed, epsilon) = with_ima(&training, low, seed, &key)?;
            let all: Vec<usize> = (0..order.len()).collect();
            let share = |rows: &Dataset, features: &[usize]| -> Result<String, Error> {
                Ok(format!(
                    "{:.6}",
                    oracle_accuracy(rows, &test, features.iter().copied())?
                ))
            };
            let mut row = vec![
                order.len().to_string(),
                share(&mixed, &all)?,
                share(&training, &all)?,
                share(&training, kept)?,
                epsilon.map_or("-".into(), |e| format!("{e:.3}")),
            ];
            row.extend(std::iter::repeat_n("-".to_owned(), ONLY_ENCRYPTED));
            Ok(row)
        })
    }
}

/// What is worth keeping of a job, in the order of the columns.
fn cells(done: &Summary, batch_rows: &str, processor: Option<f64>) -> Vec<String> {
    let share = |share: Option<f64>| share.map_or("-".into(), |s| format!("{s:.6}"));
    let parties = done.parties.iter().filter_map(|party| party.seconds);
    let training = done.phases.iter().filter(|phase| phase.name == "train");
    let trips: u64 = training.map(|phase| phase.round_trips).sum();
    let bytes = done.bytes.user_to_provider + done.bytes.provider_to_user;
    vec![
        done.features.to_string(),
        share(done.accuracy),
        share(done.plain_accuracy),
        share(done.dropped_accuracy),
        done.epsilon_total.map_or("-".into(), |e| format!("{e:.3}")),
        match done.engine == paper() {
            true => KEY_BITS.to_string(),
            false => "-".into(),
        },
        batch_rows.to_owned(),
        done.iterations.to_string(),
        (trips / done.providers.max(1) as u64).to_string(),
        format!("{:.3}", done.seconds.total),
        format!("{:.3}", done.seconds.setup),
        format!("{:.3}", done.seconds.user),
        format!("{:.3}", parties.sum::<f64>()),
        processor.map_or("-".into(), |seconds| format!("{seconds:.2}")),
        format!("{:.3}", bytes as f64 / 1e6),
    ]
}

/// The rows with the low features replaced by their release, and what it cost in sum.
fn with_ima(
    rows: &Dataset,
    low: &[usize],
    seed: u64,
    key: &[String],
) -> Result<(Dataset, Option<f64>), Error> {
    if low.is_empty() {
        return Ok((rows.clone(), None));
    }
    let part = rows.select_features(low);
    let points = Points::new(part.width(), part.values().to_vec()).map_err(bug)?;
    let epsilons = automatic_epsilon(&points).map_err(bug)?;
    let size = default_size(points.rows());
    let prepared = ima::prepare(&points, size, Reference::Data).map_err(bug)?;
    let receipt = super::release::pay(Mechanism::Ima, epsilons.columns())?;
    let noise = Randomness::seeded(seed).fork(&key.join(" "), 0);
    let released = prepared
        .release(receipt, &mut noise.map_err(bug)?)
        .map_err(bug)?;
    let mut values = rows.values().to_vec();
    // In the paper's coding every feature is one column.
    for (row, noisy) in released.points().iter().enumerate() {
        for (&feature, &value) in low.iter().zip(noisy) {
            let column = rows.features()[feature].columns.start;
            values[row * rows.width() + column] = value.clamp(0.0, 1.0);
        }
    }
    let mixed = Dataset::new(
        rows.features().to_vec(),
        values,
        rows.labels().to_vec(),
        rows.classes().to_vec(),
    );
    Ok((mixed.map_err(bug)?, Some(epsilons.composed().to_f64())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_papers_interactions_are_three_an_iteration() {
        let iterations = Bundle::ALL.map(printed_iterations);
        assert_eq!(iterations, [63, 500, 391, 374]);
    }

    #[test]
    fn a_job_and_its_simulation_fill_a_row_each() {
        heda_mechanisms::register();
        let folder = tempfile::tempdir().unwrap();
        let mut sheet = Sheet::open(folder.path(), &RUNS).unwrap();
        let setting = Setting {
            engine: Engine::RESIDENT,
            bundle: Bundle::Car,
            coding: Coding::Paper,
            iota: 3,
            repeat: 0,
            quick: true,
        };
        setting.encrypted(&mut sheet, 1).unwrap();
        setting.simulated(&mut sheet, 1).unwrap();
        let rows = sheet.rows();
        assert_eq!(rows.distinct("mechanism"), ["laplace", "ima"]);
        for column in [
            "accuracy",
            "plain_accuracy",
            "dropped_accuracy",
            "epsilon_sum",
        ] {
            assert_eq!(rows.numbers(column).len(), 2, "{column}");
        }
        for column in ["seconds", "interactions", "megabytes"] {
            assert_eq!(rows.numbers(column).len(), 1, "{column}");
        }
        let iterations = rows.numbers("iterations")[0];
        // One more before the first gradient.
        assert_eq!(rows.numbers("interactions"), [2.0 * iterations + 1.0]);
        let accuracies = rows.numbers("accuracy");
        assert!(accuracies.iter().all(|a| (0.4..=1.0).contains(a)));
    }
}
