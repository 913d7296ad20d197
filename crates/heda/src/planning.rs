//! What a job will cost on this machine, before it runs.
//!
//! Nothing is modelled that can be measured: the job's own protocol runs on random rows of the
//! job's shape. A first short training warms the machine up; the second one is timed and counted:
//! what its training phase takes belongs to the iterations, the rest to setup and evaluation.

use crate::failure::{Failure, Kind};
use crate::simulation::job_failure;
use heda_blocks::channel::Traffic;
use heda_crypto::random::Randomness;
use heda_dp::epsilon::Epsilon;
use heda_learn::data::{Dataset, Feature};
use heda_learn::optimise::{Method, Settings};
use heda_learn::partition::{CostModel, Goal, Partition, PartitionError};
use heda_learn::schema::Schema;
use heda_train::estimate::{EstimateError, Estimator};
use heda_train::job::{Choice, IotaChooser, JobSpec, Known, NoIota, Quiet};
use heda_train::local::{self, LocalRun, Parts};
use heda_train::proposal::{Engine, Ranking, Spending};
use rand_core::Rng;
use std::sync::Arc;
use std::time::Instant;

/// Rows are scaled down to this many for a plan; cost grows linearly beyond one block.
pub const PLANNED_ROWS: usize = 65_536;
/// Iterations of the training that warms up and of the measured one, for each engine.
const RESIDENT_ITERATIONS: (u32, u32) = (2, 10);
const PAPER_ITERATIONS: (u32, u32) = (1, 3);

/// The phase that iterations belong to.
const TRAINING: &str = "train";

/// A job as it will be asked for.
#[derive(Debug)]
pub struct Shape<'a> {
    /// What was asked for.
    pub spec: &'a JobSpec,
    /// All features, the encrypted ones first.
    pub order: &'a [usize],
    /// How many of them are encrypted.
    pub iota: usize,
    /// Rows of each provider, held-out ones included.
    pub rows: &'a [usize],
    /// Measure with at most so many rows, and extrapolate.
    pub most_rows: usize,
}

/// What stays the same and what comes with every iteration.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cost {
    /// What a job costs before and after training.
    pub fixed: f64,
    /// What an iteration costs.
    pub each: f64,
}

impl Cost {
    /// A job with so many iterations.
    pub fn of(&self, iterations: u32) -> f64 {
        self.fixed + self.each * f64::from(iterations)
    }

    /// From a whole job and the training in it, which had so many iterations.
    fn measured(whole: f64, training: f64, iterations: u32) -> Self {
        Self {
            fixed: whole - training,
            each: training / f64::from(iterations),
        }
    }

    fn scaled(self, by: f64) -> Self {
        Self {
            fixed: self.fixed * by,
            each: self.each * by,
        }
    }
}

/// What a job costs.
#[derive(Debug, Clone, Copy)]
pub struct Costs {
    /// Time.
    pub seconds: Cost,
    /// Bytes to all providers.
    pub sent: Cost,
    /// Bytes from all providers.
    pub received: Cost,
    /// Round trips with all providers together.
    pub round_trips: Cost,
    /// Rows that it was measured with.
    pub measured_rows: usize,
}

/// Measures a job by two short runs.
///
/// # Errors
/// If the job cannot be run as asked.
pub fn measure(shape: &Shape<'_>) -> Result<Costs, Failure> {
    let total: usize = shape.rows.iter().sum();
    let scale = (total as f64 / shape.most_rows as f64).max(1.0);
    let rows: Vec<usize> = shape
        .rows
        .iter()
        .map(|rows| (*rows as f64 / scale) as usize)
        .collect();
    let plan = shape.spec.privacy.map(|privacy| {
        let width = shape.spec.schema.width() + 1;
        privacy.plan(width).map_err(Failure::input)
    });
    let (few, many) = match (shape.spec.engine, plan.transpose()?) {
        // A private job has as many gradients as its plan says.
        (_, Some(plan)) => (plan.gradients(), plan.gradients()),
        (Engine::Resident, None) => RESIDENT_ITERATIONS,
        (Engine::Paper, None) => PAPER_ITERATIONS,
    };
    run(shape, &rows, few)?;
    let (run, seconds) = run(shape, &rows, many)?;
    // Every model is trained for so many iterations.
    let iterations = many * shape.spec.positives.len() as u32;
    let phases = run.outcome.phases.iter();
    let training = phases.filter(|phase| phase.phase == TRAINING);
    let training = training.map(|phase| phase.took.as_secs_f64()).sum();
    let count = |value: fn(&Traffic) -> u64| {
        let providers = run.outcome.providers.iter();
        let traffic = providers.flat_map(|provider| &provider.traffic);
        let (mut whole, mut training) = (0, 0);
        for (phase, traffic) in traffic {
            whole += value(traffic);
            training += u64::from(*phase == TRAINING) * value(traffic);
        }
        Cost::measured(whole as f64, training as f64, iterations)
    };
    Ok(Costs {
        seconds: Cost::measured(seconds, training, iterations).scaled(scale),
        sent: count(|traffic| traffic.bytes_sent).scaled(scale),
        received: count(|traffic| traffic.bytes_received).scaled(scale),
        round_trips: count(|traffic| traffic.round_trips),
        measured_rows: rows.iter().sum(),
    })
}

/// Runs the protocol for so many iterations on random rows.
fn run(shape: &Shape<'_>, rows: &[usize], iterations: u32) -> Result<(LocalRun, f64), Failure> {
    let bug = |e: &dyn std::fmt::Display| Failure::new(Kind::Bug, e);
    let randomness = Randomness::from_os();
    let schema = &shape.spec.schema;
    let data = rows
        .iter()
        .enumerate()
        .map(|(part, &rows)| random_rows(schema, rows, &randomness, part))
        .collect::<Result<Vec<_>, _>>()?;
    let parts = Parts::new(data, &randomness).map_err(|e| bug(&e))?;
    let epsilon = Epsilon::from_billionths(1_000_000_000).map_err(|e| bug(&e))?;
    let houses = parts.houses(schema, epsilon);
    let names = shape.order.iter().map(|&f| schema.columns()[f].name());
    let spec = JobSpec {
        job: local::fresh_job_id(&randomness).map_err(|e| bug(&e))?,
        settings: Settings {
            method: Method::Descent {
                rate: 1e-3,
                minimum_rate: 0.0,
                decay: 0.0,
                batches: shape.spec.settings.method.batches(),
            },
            l2: 0.0,
            tolerance: 0.0,
            max_iterations: iterations,
        },
        ranking: Ranking::Given {
            features: names.map(str::to_owned).collect(),
        },
        choice: Choice::Best(shape.iota),
        spending: shape
            .spec
            .spending
            .as_ref()
            .map(|_| Spending::Total(epsilon)),
        ..shape.spec.clone()
    };
    let began = Instant::now();
    let run = local::run(&spec, &houses, &randomness, &mut Quiet, None, false)
        .map_err(|e| job_failure(&e))?;
    Ok((run, began.elapsed().as_secs_f64()))
}

/// Random rows of a schema, all classes among them.
fn random_rows(
    schema: &Schema,
    rows: usize,
    randomness: &Randomness,
    part: usize,
) -> Result<Dataset, Failure> {
    let bug = |e: &dyn std::fmt::Display| Failure::new(Kind::Bug, e);
    let mut rng = randomness
        .fork("plan rows", part as u64)
        .map_err(|e| bug(&e))?;
    let features: Vec<Feature> = schema.features();
    let mut values = Vec::with_capacity(rows * schema.width());
    for _ in 0..rows {
        for feature in &features {
            match feature.columns.len() {
                1 => values.push(f64::from(rng.next_u32()) / f64::from(u32::MAX)),
                levels => {
                    let hot = rng.next_u32() as usize % levels;
                    values.extend((0..levels).map(|level| f64::from(u8::from(level == hot))));
                }
            }
        }
    }
    let classes = schema.label().classes();
    let labels = (0..rows).map(|row| (row % classes.len()) as u32).collect();
    Dataset::new(features, values, labels, classes).map_err(|e| bug(&e))
}

/// Chooses how many features are encrypted, for a goal: time measured as above with all parties on
/// this machine, accuracy estimated in clear on rows that may be read.
#[derive(Debug)]
pub struct AutoIota {
    goal: Goal,
    spec: JobSpec,
    estimator: Option<Estimator>,
}

impl AutoIota {
    /// Puts the choice into a job. Accuracy is estimated on `sample`.
    pub fn put_into(
        spec: JobSpec,
        goal: Goal,
        sample: Option<&Dataset>,
        randomness: &Randomness,
    ) -> JobSpec {
        let bits = spec.resolution.value_bits();
        let estimator = sample
            .map(|rows| Estimator::new(rows, spec.spending.clone(), bits, randomness.clone()));
        let chooser = Self {
            goal,
            spec: spec.clone(),
            estimator,
        };
        JobSpec {
            choice: Choice::Auto(Arc::new(chooser)),
            ..spec
        }
    }

    /// The line through the times with the best feature encrypted and with all of them.
    fn cost_model(&self, known: &Known<'_>) -> Result<CostModel, NoChoice> {
        let order = known.ranking.order();
        let iterations = self.spec.settings.max_iterations;
        let iterations = iterations.saturating_mul(self.spec.positives.len() as u32);
        let mut times = Vec::new();
        for iota in [1, order.len()] {
            let shape = Shape {
                spec: &self.spec,
                order,
                iota,
                rows: known.rows,
                most_rows: PLANNED_ROWS,
            };
            let costs = measure(&shape)?;
            let chosen = order[..iota].iter();
            let columns = chosen.map(|&f| known.features[f].columns.len()).sum();
            times.push((columns, costs.seconds.of(iterations)));
        }
        match times[..] {
            [(columns, seconds), (same, _)] if columns == same => Ok(CostModel {
                per_column_seconds: 0.0,
                fixed_seconds: seconds,
            }),
            _ => Ok(CostModel::fit(&times)?),
        }
    }
}

/// Why no ι was chosen.
#[derive(Debug, thiserror::Error)]
enum NoChoice {
    #[error(transparent)]
    Partition(#[from] PartitionError),
    #[error(transparent)]
    Measure(#[from] Failure),
    #[error(transparent)]
    Estimate(#[from] EstimateError),
    #[error("an accepted loss of accuracy needs rows to estimate it with; name a sample")]
    NoSample,
}

impl IotaChooser for AutoIota {
    fn choose(&self, known: Known<'_>) -> Result<Partition, NoIota> {
        let cost = self.cost_model(&known).map_err(NoIota::because)?;
        let order = known.ranking.order().to_vec();
        let accuracy = |iota: usize| {
            let estimator = self.estimator.as_ref().ok_or(NoChoice::NoSample)?;
            Ok(estimator.accuracy(&order[..iota])?)
        };
        Partition::auto(known.ranking, known.features, self.goal, &cost, accuracy)
            .map_err(|e: NoChoice| NoIota::because(e))
    }
}
