//! A whole job on this machine with a bundled data set: what `demo` and the experiments run.

use crate::failure::{Failure, Kind};
use crate::job::Job;
use crate::summary::{About, Controls};
use crate::trained::Trained;
use heda_crypto::random::Randomness;
use heda_dp::epsilon::Epsilon;
use heda_learn::bundled::{Bundle, Coding};
use heda_learn::data::Dataset;
use heda_learn::gradient::Batch;
use heda_learn::metrics::Confusion;
use heda_learn::optimise::{Method as Optimise, Settings};
use heda_learn::oracle::{TrainConfig, score, train};
use heda_learn::partition::Goal;
use heda_learn::score::Method;
use heda_learn::split::shuffle;
use heda_train::error::JobError;
use heda_train::job::{Observer, Quiet};
use heda_train::local::{self, LocalRun, Parts};
use heda_train::proposal::{Engine, Ranking, Spending};
use std::sync::Arc;
use std::time::Instant;

/// Held-out share of every provider's rows, in thousandths.
pub const HOLDOUT_PERMILLE: u32 = 200;
/// Gradients carry the noise of rounding; below this mean gradient there is nothing to gain.
const TOLERANCE: f64 = 2e-4;
const MAX_ITERATIONS: u32 = 80;
/// Engine `paper` trains as the paper did on its first data set: 63 steps on about 32 rows each.
const PAPER_ITERATIONS: u32 = 63;
/// Rows of a batch of engine `paper`.
pub const PAPER_BATCH_ROWS: usize = 32;
/// The rate falls as α/(1 + decay·t). Chosen by `heda experiment rate`, which a test compares with.
pub const PAPER_RATE: f64 = 10.0;
/// How fast it falls.
pub const PAPER_DECAY: f64 = 0.03;

/// What to run.
#[derive(Debug, Clone)]
pub struct LocalJob {
    /// The data set.
    pub bundle: Bundle,
    /// How its categories become numbers.
    pub coding: Coding,
    /// Among how many the rows are divided.
    pub providers: usize,
    /// None: half of the features, rounded up.
    pub iota: Option<usize>,
    /// What ι is chosen for, instead.
    pub goal: Option<Goal>,
    /// How gradients are computed.
    pub engine: Engine,
    /// Key size of engine `paper`.
    pub key_bits: u32,
    /// How features are ranked.
    pub method: Method,
    /// What is done with the features that are not encrypted.
    pub rest: Rest,
    /// How to train; what suits engine and rows if absent.
    pub settings: Option<Settings>,
    /// Where everything random comes from.
    pub randomness: Randomness,
}

/// What is done with features that are not encrypted.
#[derive(Debug, Clone)]
pub enum Rest {
    /// Published under so much ε in sum, or by the paper's automatic rule.
    Publish(Spending),
    /// Left out.
    Drop,
}

/// The paper's way to train so many rows: plain descent on small batches.
pub fn paper_settings(training_rows: usize) -> Settings {
    Settings {
        method: Optimise::Descent {
            rate: PAPER_RATE,
            minimum_rate: 0.0,
            decay: PAPER_DECAY,
            batches: (training_rows / PAPER_BATCH_ROWS).max(1),
        },
        l2: 0.0,
        tolerance: 0.0,
        max_iterations: PAPER_ITERATIONS,
    }
}

/// A job that ran, and the rows that it ran on, part by part.
#[derive(Debug)]
pub struct Ran {
    /// Outcome, reports and recordings.
    pub run: LocalRun,
    job: Job,
    /// The rows that were trained on.
    pub training: Vec<Dataset>,
    held_out: Vec<Dataset>,
    total_seconds: f64,
}

/// Exit codes of a job's failure.
pub fn job_failure(error: &JobError) -> Failure {
    let kind = match error {
        JobError::Provider { .. } | JobError::Providers(_) => Kind::Peer,
        JobError::Input(_) | JobError::Diverged(_) => Kind::Input,
        JobError::Interrupted | JobError::Observer(_) => Kind::Resumable,
        _ => Kind::Bug,
    };
    Failure::new(kind, error)
}

impl LocalJob {
    /// Runs the job and its controls.
    ///
    /// # Errors
    /// If the job cannot be run as asked, or fails.
    pub fn run(&self, observer: &mut dyn Observer) -> Result<Trained, Failure> {
        let table = self.bundle.table(self.coding);
        let (data, _) = table.map_err(|e| Failure::new(Kind::Bug, e))?;
        self.run_on(&data, observer)
    }

    /// Runs the job and its controls on these rows of the data set.
    ///
    /// # Errors
    /// As [`LocalJob::run`].
    pub fn run_on(&self, data: &Dataset, observer: &mut dyn Observer) -> Result<Trained, Failure> {
        let Ran {
            run,
            job,
            training,
            held_out,
            total_seconds,
        } = self.run_alone(data, observer, false)?;
        let about = About {
            dataset: self.bundle.title().to_owned(),
            schema: job.schema(),
            engine: self.engine,
            seeded: self.randomness.is_seeded(),
            automatic_epsilon: job.reads_epsilon(),
            total_seconds,
            busy: run.reports.iter().map(|report| report.busy).collect(),
            controls: self.controls(&training, &held_out, &run.outcome.split.encrypted),
        };
        Trained::new(about, job.loss(), &run.outcome, Vec::new())
    }

    /// The rows that the job trains on and those that it holds out, of all providers together.
    ///
    /// # Errors
    /// If the rows cannot be divided among so many.
    pub fn rows(&self, data: &Dataset) -> Result<(Dataset, Dataset), Failure> {
        let bug = |e: &dyn std::fmt::Display| Failure::new(Kind::Bug, e);
        let parts = Parts::new(self.parts(data)?, &self.randomness).map_err(|e| bug(&e))?;
        let (training, held_out) = parts.rows(HOLDOUT_PERMILLE);
        let both = joined(&training).zip(joined(&held_out));
        both.ok_or_else(|| bug(&"parts that do not fit together"))
    }

    /// Runs the job without controls and keeps what every party received.
    ///
    /// # Errors
    /// As [`LocalJob::run`].
    pub fn recorded(&self, data: &Dataset) -> Result<Ran, Failure> {
        self.run_alone(data, &mut Quiet, true)
    }

    fn run_alone(
        &self,
        data: &Dataset,
        observer: &mut dyn Observer,
        record: bool,
    ) -> Result<Ran, Failure> {
        let bug = |e: &dyn std::fmt::Display| Failure::new(Kind::Bug, e);
        let parts = self.parts(data)?;
        let parts = Parts::new(parts, &self.randomness).map_err(|e| bug(&e))?;
        let job = self.job(data)?;
        let name = local::fresh_job_id(&self.randomness).map_err(|e| bug(&e))?;
        let spec = job.spec(name, &self.randomness.party("estimate"));
        let limit = Epsilon::from_billionths(heda_dp::epsilon::LARGEST * 1_000_000_000)
            .map_err(|e| bug(&e))?;
        let (training, held_out) = parts.rows(HOLDOUT_PERMILLE);
        let houses = parts.houses(job.schema(), limit);
        let began = Instant::now();
        let run = local::run(&spec, &houses, &self.randomness, observer, None, record)
            .map_err(|e| job_failure(&e))?;
        Ok(Ran {
            run,
            job,
            training,
            held_out,
            total_seconds: began.elapsed().as_secs_f64(),
        })
    }

    fn parts(&self, data: &Dataset) -> Result<Vec<Dataset>, Failure> {
        if self.providers == 0 || self.providers > data.rows() / 10 {
            return Err(Failure::input(format!(
                "{} providers for {} rows; choose 1 to {}",
                self.providers,
                data.rows(),
                data.rows() / 10
            )));
        }
        let mut rows: Vec<usize> = (0..data.rows()).collect();
        let mut rng = self
            .randomness
            .fork("parts", 0)
            .map_err(|e| Failure::new(Kind::Bug, e))?;
        shuffle(&mut rows, &mut rng);
        let part = |index| {
            let share = Batch::new(index, self.providers).share(rows.len());
            data.select_rows(&rows[share])
        };
        Ok((0..self.providers).map(part).collect())
    }

    fn job(&self, data: &Dataset) -> Result<Job, Failure> {
        let schema = self.bundle.schema(self.coding);
        let features = schema.columns().len();
        let iota = self.iota.unwrap_or(features.div_ceil(2));
        let training = data.rows() - data.rows() * HOLDOUT_PERMILLE as usize / 1000;
        let settings = match self.engine {
            Engine::Lookup | Engine::Resident => Settings {
                tolerance: TOLERANCE,
                max_iterations: MAX_ITERATIONS,
                ..Settings::lbfgs(1.0 / training as f64)
            },
            Engine::Paper => paper_settings(training),
        };
        let builder = Job::builder(self.bundle.name(), schema)
            .engine(self.engine)
            .key_bits(self.key_bits)
            .settings(self.settings.clone().unwrap_or(settings))
            .hold_out(HOLDOUT_PERMILLE)
            .ranking(Ranking::Agreed {
                method: self.method,
            })
            .spend(match &self.rest {
                Rest::Publish(spending) if iota < features || self.goal.is_some() => {
                    Some(spending.clone())
                }
                _ => None,
            });
        let builder = match self.goal {
            Some(goal) => builder.encrypt_for(goal, Some(Arc::new(data.clone()))),
            None => builder.encrypt_best(iota),
        };
        builder.build().map_err(Failure::input)
    }

    fn controls(
        &self,
        training: &[Dataset],
        held_out: &[Dataset],
        encrypted: &[usize],
    ) -> Controls {
        let rows = training.iter().map(Dataset::rows).sum();
        let config = TrainConfig::logistic(rows);
        let accuracy = |features: &[usize]| {
            let chosen = |parts: &[Dataset]| joined(parts).map(|d| d.select_features(features));
            let (train_rows, test_rows) = (chosen(training)?, chosen(held_out)?);
            let fit = train(&train_rows, 1, &config).ok()?;
            let labels = test_rows.labels().iter().enumerate();
            let pairs = labels.map(|(row, &label)| {
                (label, u32::from(score(&fit.beta, test_rows.row(row)) > 0.0))
            });
            Confusion::new(2, pairs).accuracy()
        };
        let all: Vec<usize> = (0..training[0].features().len()).collect();
        let mut kept = encrypted.to_vec();
        kept.sort_unstable();
        let counts = joined(held_out)
            .map(|rows| Confusion::new(2, rows.labels().iter().map(|&label| (label, 0))));
        Controls {
            plain: accuracy(&all),
            dropped: if kept.is_empty() {
                None
            } else {
                accuracy(&kept)
            },
            majority: counts.and_then(|counts| counts.majority_accuracy()),
        }
    }
}

/// All parts under one roof: a control may do what nobody in the job can.
fn joined(parts: &[Dataset]) -> Option<Dataset> {
    let first = parts.first()?;
    let values = parts
        .iter()
        .flat_map(|part| part.values().iter().copied())
        .collect();
    let labels = parts
        .iter()
        .flat_map(|part| part.labels().iter().copied())
        .collect();
    Dataset::new(
        first.features().to_vec(),
        values,
        labels,
        first.classes().to_vec(),
    )
    .ok()
}
