//! A whole job in this process: rows that one person may read, divided among providers that are
//! threads with real keys and messages. What `demo`, `simulate` and the experiments run.
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use heda::{Bundle, Coding, Job, Progress, Simulation};
//! use std::ops::ControlFlow;
//!
//! let (rows, _) = Bundle::Bcwd.table(Coding::Natural)?;
//! let job = Job::builder("tumours", Bundle::Bcwd.schema(Coding::Natural)).build()?;
//! let mut iterations = 0;
//! let mut watch = |progress| {
//!     iterations += u32::from(matches!(progress, Progress::Iteration { .. }));
//!     ControlFlow::Continue(()) // `Break` stops the job after this iteration
//! };
//! let trained = Simulation::new(job).providers(2).run(&rows, &mut watch)?;
//! assert_eq!(trained.summary.providers, 2);
//! assert_eq!(trained.summary.iterations, iterations);
//! # Ok(())
//! # }
//! ```

mod number;

use crate::error::{Error, ErrorKind};
use crate::job::Job;
use crate::summary::{About, Controls, CpuSeconds, Matrix};
use crate::trained::Trained;
use crate::watch::{Watch, Watcher, quiet};
use heda_crypto::random::Randomness;
use heda_dp::epsilon::Epsilon;
use heda_job::description::Share;
use heda_job::error::JobError;
use heda_job::guard::SMALLEST_BATCH;
use heda_job::local::{self, LocalRun, Parts};
use heda_job::proposal::ClassWeight;
use heda_learn::clip_range::score_within;
use heda_learn::data::Dataset;
use heda_learn::gradient::Batch;
use heda_learn::metrics::Confusion;
use heda_learn::oracle::{TrainConfig, score, train_weighed};
use heda_learn::split::shuffle;
use std::time::Instant;

/// Fewest rows that each of several providers of a simulation may have.
const FEWEST_ROWS: usize = 10;

/// A job, and among how many its rows are divided.
#[derive(Debug, Clone)]
pub struct Simulation {
    job: Job,
    title: String,
    providers: usize,
    aside: Share,
    randomness: Randomness,
}

/// A job that ran, and the rows that it ran on, part by part.
#[derive(Debug)]
pub struct Ran {
    /// Outcome, reports and recordings.
    pub run: LocalRun,
    /// The rows that were trained on.
    pub training: Vec<Dataset>,
    held_out: Vec<Dataset>,
    total_seconds: f64,
}

/// Whose turn it is after a job's failure.
pub(crate) fn job_failure(error: JobError) -> Error {
    let kind = match &error {
        JobError::Provider { .. } | JobError::Counts { .. } => ErrorKind::Peer,
        JobError::Input(_) | JobError::Diverged(_) => ErrorKind::Input,
        JobError::Interrupted | JobError::Observer(_) => ErrorKind::Resumable,
        _ => ErrorKind::Bug,
    };
    Error::new(kind, error)
}

impl Simulation {
    /// Three providers, with the randomness of the operating system.
    pub fn new(job: Job) -> Self {
        Self {
            title: job.data_set().to_owned(),
            job,
            providers: 3,
            aside: Share::USUAL,
            randomness: Randomness::from_os(),
        }
    }

    /// What the summary calls the rows.
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.title = title.into();
        self
    }

    /// Among how many the rows are divided.
    pub fn providers(mut self, providers: usize) -> Self {
        self.providers = providers;
        self
    }

    /// Share of the rows that a private job, which holds none out, is counted on in clear; a fifth if
    /// this is not called.
    pub fn set_aside(mut self, share: Share) -> Self {
        self.aside = share;
        self
    }

    /// A run that can be repeated, and therefore protects nothing: for tests and public data.
    pub fn danger_seeded(self, seed: u64) -> Self {
        self.randomness(Randomness::seeded(seed))
    }

    /// Where everything random comes from.
    pub fn randomness(mut self, randomness: Randomness) -> Self {
        self.randomness = randomness;
        self
    }

    /// Runs the job on these rows, which its schema has encoded, and trains controls in clear to
    /// compare it with.
    ///
    /// # Errors
    /// If the job cannot be run as asked, fails, or is stopped by the observer.
    pub fn run(&self, data: &Dataset, hear: Watcher<'_>) -> Result<Trained, Error> {
        let (data, aside) = self.divide_aside(data)?;
        let Ran {
            run,
            training,
            mut held_out,
            total_seconds,
        } = self.run_alone(&data, hear, false)?;
        held_out.extend(aside);
        let about = About {
            dataset: self.title.clone(),
            schema: self.job.schema(),
            engine: self.job.engine(),
            privacy: self.job.privacy(),
            seeded: self.randomness.is_seeded(),
            automatic_epsilon: self.job.reads_epsilon(),
            total_seconds,
            busy: run.reports.iter().map(|report| report.busy).collect(),
            cpu_seconds: CpuSeconds::default(),
            controls: Controls {
                private: self.private_accuracy(&run, &held_out),
                ..self.controls(&training, &held_out, &run.outcome.split.encrypted)
            },
        };
        let mut trained = Trained::new(about, self.job.loss(), &run.outcome, Vec::new())?;
        if self.job.schema().label().models() > 1 {
            let held_out = joined(&held_out).filter(|rows| rows.rows() > 0);
            let evaluation = held_out.map(|rows| trained.model.evaluate(&rows));
            trained.summary.matrix = evaluation.as_ref().and_then(Matrix::of);
        }
        Ok(trained)
    }

    /// If a private job holds out no rows, some to count its model on in clear: nobody but who may
    /// read all rows can do that.
    fn divide_aside(&self, data: &Dataset) -> Result<(Dataset, Option<Dataset>), Error> {
        let count = self.aside.of(data.rows() as u64) as usize;
        let held_out = self.job.held_out().is_some();
        if self.job.privacy().is_none() || held_out || count == 0 {
            return Ok((data.clone(), None));
        }
        let mut order: Vec<usize> = (0..data.rows()).collect();
        let mut rng = self
            .randomness
            .fork("rows set aside", 0)
            .map_err(Error::bug)?;
        shuffle(&mut order, &mut rng);
        let (aside, rest) = order.split_at(count);
        Ok((data.select_rows(rest), Some(data.select_rows(aside))))
    }

    /// How often a private model is right on the rows that were set aside.
    fn private_accuracy(&self, run: &LocalRun, held_out: &[Dataset]) -> Option<f64> {
        self.job.privacy()?;
        // Of several models no single one names the class.
        let [fit] = &run.outcome.fits[..] else {
            return None;
        };
        let reach = run.outcome.reach.as_ref();
        let held_out = joined(held_out)?;
        let labels = held_out.labels().iter().enumerate();
        let positive = |row| score_within(&fit.beta, held_out.row(row), reach) > 0.0;
        let pairs = labels.map(|(row, &label)| (label, u32::from(positive(row))));
        Confusion::new(2, pairs).accuracy()
    }

    /// The rows that the job trains on and those that it holds out, of all providers together.
    ///
    /// # Errors
    /// If the rows cannot be divided among so many.
    pub fn rows(&self, data: &Dataset) -> Result<(Dataset, Dataset), Error> {
        let parts = Parts::new(self.parts(data)?, &self.randomness).map_err(Error::bug)?;
        let (training, held_out) = parts.rows(self.job.held_out());
        let both = joined(&training).zip(joined(&held_out));
        both.ok_or_else(|| Error::bug("parts that do not fit together"))
    }

    /// Runs the job without controls and keeps what every party received.
    ///
    /// # Errors
    /// As [`Simulation::run`].
    pub fn recorded(&self, data: &Dataset) -> Result<Ran, Error> {
        self.run_alone(data, &mut quiet, true)
    }

    fn run_alone(&self, data: &Dataset, hear: Watcher<'_>, record: bool) -> Result<Ran, Error> {
        let job = &self.job;
        let parts = Parts::new(self.parts(data)?, &self.randomness).map_err(Error::bug)?;
        let name = local::fresh_job_id(&self.randomness).map_err(Error::bug)?;
        let spec = job.spec(name, &self.randomness.party("estimate"));
        let limit = heda_dp::epsilon::LARGEST * 1_000_000_000;
        let limit = Epsilon::from_billionths(limit).map_err(Error::bug)?;
        let (training, mut held_out) = parts.rows(job.held_out());
        if job.penalty_path().is_some() {
            // The others chose the penalty.
            held_out = held_out.iter().map(local::reported).collect();
        }
        let guards = parts.guards(job.schema(), limit);
        let began = Instant::now();
        let mut watch = Watch::new(hear);
        let run = local::run(&spec, &guards, &self.randomness, &mut watch, None, record)
            .map_err(job_failure)?;
        Ok(Ran {
            run,
            training,
            held_out,
            total_seconds: began.elapsed().as_secs_f64(),
        })
    }

    fn parts(&self, data: &Dataset) -> Result<Vec<Dataset>, Error> {
        let most = (data.rows() / FEWEST_ROWS).max(1);
        let most = (1..=most)
            .rev()
            .find(|parts| self.is_enough(data.rows() / parts));
        let most = most.unwrap_or(0);
        if self.providers == 0 || self.providers > most {
            return Err(Error::input(match most {
                0 => format!("{} rows are too few to divide; give more", data.rows()),
                _ => format!(
                    "{} providers for {} rows; choose 1 to {most}",
                    self.providers,
                    data.rows(),
                ),
            }));
        }
        let mut rows: Vec<usize> = (0..data.rows()).collect();
        let mut rng = self.randomness.fork("parts", 0).map_err(Error::bug)?;
        shuffle(&mut rows, &mut rng);
        let part = |index| {
            let share = Batch::new(index, self.providers).share(rows.len());
            data.select_rows(&rows[share])
        };
        Ok((0..self.providers).map(part).collect())
    }
}

impl Simulation {
    /// Whether a provider with so many rows would take part: enough to train on and to hold out.
    fn is_enough(&self, rows: usize) -> bool {
        let share = self.job.held_out();
        let held_out = share.of(rows as u64) as usize;
        let parts = if self.job.penalty_path().is_some() {
            2
        } else {
            1
        };
        let enough = held_out / parts >= SMALLEST_BATCH;
        rows - held_out >= SMALLEST_BATCH && (!share.is_some() || enough)
    }

    /// What somebody with all rows under one roof would get.
    fn controls(
        &self,
        training: &[Dataset],
        held_out: &[Dataset],
        encrypted: &[usize],
    ) -> Controls {
        match self.job.schema().label().number() {
            Some(number) => number::controls(number, &self.job, training, held_out, encrypted),
            None => controls(self.job.class_weight(), training, held_out, encrypted),
        }
    }
}

fn controls(
    weight: Option<&ClassWeight>,
    training: &[Dataset],
    held_out: &[Dataset],
    encrypted: &[usize],
) -> Controls {
    let (Some(training), Some(held_out)) = (joined(training), joined(held_out)) else {
        return Controls::default();
    };
    if held_out.rows() == 0 {
        return Controls::default();
    }
    let all: Vec<usize> = (0..training.features().len()).collect();
    let mut kept = encrypted.to_vec();
    kept.sort_unstable();
    let clear = |features: &[usize]| clear_accuracy(weight, &training, &held_out, features);
    let plain = clear(&all);
    let classes = held_out.classes().len();
    let counts = Confusion::new(classes, held_out.labels().iter().map(|&label| (label, 0)));
    Controls {
        plain,
        dropped: match kept.len() {
            0 => None,
            _ if kept == all => plain,
            _ => clear(&kept),
        },
        private: None,
        number: None,
        majority: counts.majority_accuracy(),
    }
}

/// Accuracy of training in clear on some features: of two classes one model, of more one a class,
/// and the class with the highest score wins.
fn clear_accuracy(
    weight: Option<&ClassWeight>,
    training: &Dataset,
    held_out: &Dataset,
    features: &[usize],
) -> Option<f64> {
    let training = training.select_features(features);
    let held_out = held_out.select_features(features);
    let config = TrainConfig::logistic();
    let classes = training.classes().len();
    let positives = if classes == 2 {
        1..2
    } else {
        0..classes as u32
    };
    let fit = |class| {
        let weights = weights(weight, &training, class)?;
        let fit = train_weighed(&training, class, &config, weights);
        fit.ok().map(|fit| fit.beta)
    };
    let fits: Vec<Vec<f64>> = positives.map(fit).collect::<Option<_>>()?;
    let predicted = |row: &[f64]| match &fits[..] {
        [only] => u32::from(score(only, row) > 0.0),
        many => {
            let scores = many.iter().map(|beta| score(beta, row)).zip(0..);
            scores
                .max_by(|a, b| a.0.total_cmp(&b.0))
                .map_or(0, |best| best.1)
        }
    };
    let labels = held_out.labels().iter().enumerate();
    let pairs = labels.map(|(row, &label)| (label, predicted(held_out.row(row))));
    Confusion::new(classes, pairs).accuracy()
}

/// What rows of the rest and of a class count; `None` if that differs within the rest.
fn weights(weight: Option<&ClassWeight>, data: &Dataset, class: u32) -> Option<[f64; 2]> {
    match weight {
        None => Some([1.0; 2]),
        Some(ClassWeight::Given(weights)) => <[f64; 2]>::try_from(&weights[..]).ok(),
        Some(ClassWeight::Balanced) => {
            let labels = data.labels().iter();
            let own = labels.filter(|label| **label == class).count();
            let rows = data.rows() as f64;
            Some([data.rows() - own, own].map(|part| rows / (2.0 * part.max(1) as f64)))
        }
    }
}

/// All parts under one roof: a control may do what nobody in the job can.
fn joined(parts: &[Dataset]) -> Option<Dataset> {
    let first = parts.first()?;
    let values = parts.iter().flat_map(|part| part.values().iter().copied());
    let labels = parts.iter().flat_map(|part| part.labels().iter().copied());
    Dataset::new(
        first.features().to_vec(),
        values.collect(),
        labels.collect(),
        first.classes().to_vec(),
    )
    .ok()
}
