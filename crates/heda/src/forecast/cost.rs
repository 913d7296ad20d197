//! What a job will cost on this machine, before it runs.
//!
//! Nothing is modelled that can be measured: the job's own protocol runs on random rows of the
//! job's shape. A first short training warms the machine up; the next ones are timed and counted:
//! what their training phase takes belongs to the iterations, the rest to setup and evaluation.
//!
//! A job with more rows than are measured is a longer row of the same blocks. It is measured with two
//! numbers of rows; bytes, round trips and memory then follow a straight line through both, and
//! time, most of which is work on rows, is in proportion.

use crate::error::Error;
use crate::simulation::job_failure;
use heda_blocks::channel::Traffic;
use heda_crypto::random::Randomness;
use heda_dp::epsilon::Epsilon;
use heda_job::description::{Protected, Ranking, Share};
use heda_job::job::{JobSpec, Quiet};
use heda_job::local::{self, LocalRun, Parts};
use heda_job::proposal::{Engine, Spending};
use heda_learn::data::{Dataset, Feature};
use heda_learn::optimise::{Method, PenaltyPath, Settings};
use heda_learn::schema::Schema;
use heda_learn::target;
use rand_core::Rng;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::time::Instant;

/// Rows that a choice of ι is measured with: it compares, and need not be exact.
pub(super) const COMPARED_ROWS: usize = 65_536;
/// Training rows of each provider that a plan is measured with: four blocks of engine `resident`, so
/// that two of them are on their way while others wait, as in a job of any length.
const PLANNED_PROVIDER_ROWS: usize = 4 << 15;
/// Iterations of the training that warms up and of the measured one, for engine `resident` and for others,
/// which may be slow.
const RESIDENT_ITERATIONS: (u32, u32) = (2, 10);
const OTHER_ITERATIONS: (u32, u32) = (1, 3);
/// With so many rows an iteration is long enough to need few of them.
const MANY_ROWS: usize = 200_000;
const ITERATIONS_OF_MANY: (u32, u32) = (1, 4);

/// The phases that iterations and evaluations belong to.
const TRAINING: &str = "train";
const EVALUATION: &str = "evaluate";

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
    /// How often to measure.
    pub repeats: u32,
}

impl Shape<'_> {
    /// Training rows of a batch, about.
    fn batch_rows(&self) -> usize {
        let trained = 1000 - self.spec.job.held_out().permille() as usize;
        let privacy = self.spec.job.privacy();
        let plan = privacy.and_then(|privacy| privacy.plan(self.spec.schema.width() + 1).ok());
        let batches = match plan {
            Some(plan) => plan.passes().batches() as usize,
            None => self.spec.job.batches() as usize,
        };
        self.rows.iter().sum::<usize>() * trained / 1000 / batches
    }
}

/// Rows that a plan is measured with at most.
pub fn planned_rows(providers: usize, held_out: Share) -> usize {
    let trained = 1000 - held_out.permille() as usize;
    providers * PLANNED_PROVIDER_ROWS * 1000 / trained
}

/// What stays the same, and what comes with every iteration and evaluation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cost {
    /// What a job costs before training.
    pub fixed: f64,
    /// What it costs to evaluate all models on all held-out rows.
    pub evaluation: f64,
    /// What an iteration costs.
    pub each: f64,
}

impl Cost {
    /// A job with so many iterations, whose models are evaluated once.
    pub fn of(&self, iterations: u32) -> f64 {
        self.with_evaluations(iterations, 1.0)
    }

    /// A job with so many iterations, whose models are evaluated so often.
    pub fn with_evaluations(&self, iterations: u32, evaluations: f64) -> f64 {
        self.fixed + self.evaluation * evaluations + self.each * f64::from(iterations)
    }

    /// From a whole job, and training and evaluation in it, with so many iterations.
    fn measured(whole: f64, training: f64, evaluation: f64, iterations: u32) -> Self {
        Self {
            fixed: whole - training - evaluation,
            evaluation,
            each: training / f64::from(iterations),
        }
    }

    fn scaled(self, by: f64) -> Self {
        Self {
            fixed: self.fixed * by,
            evaluation: self.evaluation * by,
            each: self.each * by,
        }
    }

    /// All numbers by a rule for one.
    fn combined(self, other: Self, rule: impl Fn(f64, f64) -> f64) -> Self {
        Self {
            fixed: rule(self.fixed, other.fixed),
            evaluation: rule(self.evaluation, other.evaluation),
            each: rule(self.each, other.each),
        }
    }
}

/// What a job costs.
#[derive(Debug, Clone, Copy)]
pub struct Costs {
    /// Time, in the mean of all measurements.
    pub seconds: Cost,
    /// How far the measurements were from their mean, as a share of it.
    pub spread: f64,
    /// Bytes to all providers.
    pub sent: Cost,
    /// Bytes from all providers.
    pub received: Cost,
    /// Round trips with all providers together.
    pub round_trips: Cost,
    /// Most memory of this process, all parties and their rows together, where the system tells.
    pub peak_memory: Option<u64>,
    /// Rows that it was measured with.
    pub measured_rows: usize,
}

/// One run that was watched.
struct Observed {
    rows: usize,
    seconds: Cost,
    sent: Cost,
    received: Cost,
    round_trips: Cost,
    memory: Option<u64>,
}

/// Measures a job by short runs.
///
/// # Errors
/// If the job cannot be run as asked.
pub fn measure(shape: &Shape<'_>) -> Result<Costs, Error> {
    let total: usize = shape.rows.iter().sum();
    let share = (shape.most_rows as f64 / total as f64).min(1.0);
    let plan = shape.spec.job.privacy().map(|privacy| {
        let width = shape.spec.schema.width() + 1;
        privacy.plan(width).map_err(Error::input)
    });
    let resident = shape.spec.job.engine() == Engine::RESIDENT;
    let (few, many) = match (resident, plan.transpose()?) {
        // A private job has as many gradients as its plan says.
        (_, Some(plan)) => (plan.gradients(), plan.gradients()),
        (true, None) if total > MANY_ROWS => ITERATIONS_OF_MANY,
        (true, None) => RESIDENT_ITERATIONS,
        (false, None) => OTHER_ITERATIONS,
    };
    // The peak of a process never falls: what needs less comes first.
    let smaller = match share < 1.0 {
        true => observe(shape, share / 2.0, many)?,
        false => observe(shape, 1.0, few)?,
    };
    let mut runs = vec![observe(shape, share, many)?];
    for _ in 1..shape.repeats {
        runs.push(observe(shape, share, many)?);
    }
    let count = runs.len() as f64;
    let seconds = runs.iter().map(|run| run.seconds);
    let seconds = seconds.reduce(|a, b| a.combined(b, |a, b| a + b));
    let seconds = seconds.unwrap_or(smaller.seconds).scaled(1.0 / count);
    let apart = runs.iter().map(|run| {
        let (found, mean) = (run.seconds.of(many), seconds.of(many));
        (found / mean - 1.0).abs()
    });
    let larger = &runs[runs.len() - 1];
    let beyond = (total - larger.rows) as f64 / (larger.rows - smaller.rows).max(1) as f64;
    let on_a_line = |from: f64, to: f64| to + (to - from) * beyond;
    let line = |value: fn(&Observed) -> Cost| value(&smaller).combined(value(larger), on_a_line);
    let memory = smaller.memory.zip(larger.memory);
    Ok(Costs {
        seconds: seconds.scaled(total as f64 / larger.rows as f64),
        spread: apart.fold(0.0, f64::max),
        sent: line(|run| run.sent),
        received: line(|run| run.received),
        round_trips: line(|run| run.round_trips),
        peak_memory: memory.map(|(from, to)| on_a_line(from as f64, to as f64) as u64),
        measured_rows: larger.rows,
    })
}

/// Watches a run with a share of the rows.
fn observe(shape: &Shape<'_>, share: f64, iterations: u32) -> Result<Observed, Error> {
    let rows = shape.rows.iter();
    let rows: Vec<usize> = rows.map(|rows| (*rows as f64 * share) as usize).collect();
    let (run, seconds) = run(shape, &rows, shape.measuring(iterations), None)?;
    // Every model is trained for so many iterations.
    let iterations = iterations * shape.spec.job.positives().len() as u32;
    let took = |name: &str| {
        let phases = run
            .outcome
            .phases
            .iter()
            .filter(|phase| phase.phase == name);
        phases.map(|phase| phase.took.as_secs_f64()).sum()
    };
    let count = |value: fn(&Traffic) -> u64| {
        let providers = run.outcome.providers.iter();
        let traffic = providers.flat_map(|provider| &provider.traffic);
        let [mut whole, mut training, mut evaluation] = [0.0; 3];
        for (phase, traffic) in traffic {
            let count = value(traffic) as f64;
            whole += count;
            training += if *phase == TRAINING { count } else { 0.0 };
            evaluation += if *phase == EVALUATION { count } else { 0.0 };
        }
        Cost::measured(whole, training, evaluation, iterations)
    };
    Ok(Observed {
        rows: rows.iter().sum(),
        seconds: Cost::measured(seconds, took(TRAINING), took(EVALUATION), iterations),
        sent: count(|traffic| traffic.bytes_sent),
        received: count(|traffic| traffic.bytes_received),
        round_trips: count(|traffic| traffic.round_trips),
        memory: peak_memory(),
    })
}

/// What a whole job took.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Took {
    /// Time.
    pub seconds: f64,
    /// Bytes to all providers.
    pub sent: u64,
    /// Bytes from all providers.
    pub received: u64,
    /// Round trips with all providers together.
    pub round_trips: u64,
    /// Most memory of this process so far, where the system tells.
    pub peak_memory: Option<u64>,
}

/// Runs the whole job on random rows, all iterations of it: what a plan is compared with.
///
/// # Errors
/// If the job cannot be run as asked.
pub fn run_whole(shape: &Shape<'_>) -> Result<Took, Error> {
    let (settings, path) = match shape.spec.job.training() {
        // Only L-BFGS goes along a path.
        Some(training) if training.path.is_some() => {
            (training.settings.clone(), training.path.clone())
        }
        Some(training) => (shape.measuring(training.settings.max_iterations), None),
        // Its plan decides.
        None => (shape.measuring(1), None),
    };
    let (run, seconds) = run(shape, shape.rows, settings, path)?;
    let providers = run.outcome.providers.iter();
    let traffic = providers.flat_map(|provider| &provider.traffic);
    let mut took = Took {
        seconds,
        sent: 0,
        received: 0,
        round_trips: 0,
        peak_memory: peak_memory(),
    };
    for (_, traffic) in traffic {
        took.sent += traffic.bytes_sent;
        took.received += traffic.bytes_received;
        took.round_trips += traffic.round_trips;
    }
    Ok(took)
}

/// Most memory that this process has had, where the system tells.
fn peak_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    let kib: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kib * 1024)
}

/// As many gradients as said, where the result does not matter: plain descent, or, because nothing
/// else learns a number, L-BFGS.
pub fn measuring(schema: &Schema, iterations: u32, batches: usize) -> Settings {
    let method = match schema.label().number() {
        Some(_) => Settings::lbfgs().method,
        None => Method::Descent {
            rate: 1e-3,
            minimum_rate: 0.0,
            decay: 0.0,
            batches,
        },
    };
    Settings {
        method,
        c: None,
        tolerance: 0.0,
        max_iterations: iterations,
    }
}

impl Shape<'_> {
    fn measuring(&self, iterations: u32) -> Settings {
        let batches = self.spec.job.batches() as usize;
        measuring(&self.spec.schema, iterations, batches)
    }
}

/// Runs the protocol on random rows.
fn run(
    shape: &Shape<'_>,
    rows: &[usize],
    settings: Settings,
    path: Option<PenaltyPath>,
) -> Result<(LocalRun, f64), Error> {
    let randomness = Randomness::from_os();
    let schema = &shape.spec.schema;
    let data = rows
        .iter()
        .enumerate()
        .map(|(part, &rows)| random_rows(schema, rows, &randomness, part))
        .collect::<Result<Vec<_>, _>>()?;
    let parts = Parts::new(data, &randomness).map_err(Error::bug)?;
    let epsilon = Epsilon::from_billionths(1_000_000_000).map_err(Error::bug)?;
    let guards = parts.guards(schema, epsilon);
    let names = shape.order.iter().map(|&f| schema.columns()[f].name());
    let names = names.map(str::to_owned).collect();
    let private = shape.spec.job.privacy().is_some();
    let job = shape.spec.job.with(|raw| {
        // The plan of a private job decides all of this.
        if private {
            return;
        }
        raw.training.settings = settings;
        raw.training.path = path;
        raw.ranking = Some(Ranking::Given { features: names });
        raw.protected = Protected::Best(shape.iota);
        // Cut as the whole job will be, also where fewer rows are measured.
        raw.training.resolution = raw.training.resolution.of_count(shape.batch_rows());
        raw.spending = raw.spending.take().map(|_| Spending::Total(epsilon));
    });
    let id = local::fresh_job_id(&randomness).map_err(Error::bug)?;
    let spec = JobSpec::new(id, job.map_err(Error::input)?, Arc::clone(schema));
    let began = Instant::now();
    let run =
        local::run(&spec, &guards, &randomness, &mut Quiet, None, false).map_err(job_failure)?;
    Ok((run, began.elapsed().as_secs_f64()))
}

/// Random rows of a schema, all classes among them.
fn random_rows(
    schema: &Schema,
    rows: usize,
    randomness: &Randomness,
    part: usize,
) -> Result<Dataset, Error> {
    let mut rng = randomness
        .fork("plan rows", part as u64)
        .map_err(Error::bug)?;
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
    let label = |row: usize| match classes.len() {
        // A number: any that vary.
        0 => (row * 7919) as u32 % target::STEPS,
        classes => (row % classes) as u32,
    };
    let labels = (0..rows).map(label).collect();
    Dataset::new(features, values, labels, classes).map_err(Error::bug)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Job;
    use heda_job::proposal::JobId;
    use heda_learn::bundled::{Bundle, Coding};

    fn spec(iterations: u32) -> JobSpec {
        let schema = Bundle::Bcwd.schema(Coding::Paper);
        let names = schema.columns().iter();
        let features = names.map(|column| column.name().to_owned()).collect();
        let job = Job::builder("plan", schema)
            .settings(Settings {
                max_iterations: iterations,
                ..Settings::lbfgs()
            })
            .ranking(Ranking::Given { features });
        let job = job.build().unwrap();
        job.spec(JobId([0; 16]), &Randomness::from_os())
    }

    /// A plan from fewer rows than the job has, against the job itself. Times are not compared here.
    #[test]
    fn bytes_and_round_trips_beyond_the_measured_rows_are_those_of_the_job() {
        let (spec, order) = (spec(3), (0..9).collect::<Vec<_>>());
        let shape = Shape {
            spec: &spec,
            order: &order,
            iota: 9,
            rows: &[4000, 4000],
            most_rows: 2000,
            repeats: 2,
        };
        let costs = measure(&shape).unwrap();
        assert_eq!(costs.measured_rows, 2000);
        let took = run_whole(&shape).unwrap();
        let off = |planned: f64, found: u64| (planned / found as f64 - 1.0).abs();
        assert!(
            off(costs.sent.of(3), took.sent) < 0.02,
            "{costs:?} {took:?}"
        );
        // Words of the sums grow with the number of rows.
        let received = off(costs.received.of(3), took.received);
        assert!(received < 0.03, "{costs:?} {took:?}");
        let trips = off(costs.round_trips.of(3), took.round_trips);
        assert!(trips < 0.1, "{costs:?} {took:?}");
    }
}
