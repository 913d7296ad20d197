//! Whole gradients of the engines, all parties on this machine, on random rows; and where engine
//! `resident` spends its time.

use crate::Job;
use crate::Share;
use crate::error::Error;
use crate::forecast::cost::{Shape, measure as measure_job, measuring};
use crate::local_job::{LocalJob, Rest};
use heda_crypto::random::Randomness;
use heda_dp::epsilon::Epsilon;
use heda_job::description::Ranking;
use heda_job::engine::{StepCost, profile};
use heda_job::proposal::{Engine, JobId};
use heda_learn::bundled::{Bundle, Coding};
use heda_learn::gradient::Batch;
use heda_learn::resident::Resolution;
use heda_learn::score::ScoringMethod as Scoring;
use serde::Serialize;
use std::fmt;

const PROVIDERS: usize = 3;
/// Rows whose steps are measured one by one, on one core.
const STEP_ROWS: usize = 26_049 / PROVIDERS;
/// Columns of Adult in the paper's coding.
const STEP_COLUMNS: usize = 14;

/// What is measured: engine `resident` on rows like those of a data set.
#[derive(Clone, Copy)]
struct Setting {
    bundle: Bundle,
    coding: Coding,
    rows: usize,
    /// Of a job without noise if there is none.
    resolution: Option<Resolution>,
}

/// Engine `resident` on rows of one shape.
#[derive(Debug, Clone, Serialize)]
struct EngineLine {
    engine: Engine,
    /// Cut as jobs with noise are.
    as_private: bool,
    code_bits: u32,
    columns: usize,
    training_rows: usize,
    milliseconds_per_iteration: f64,
    microseconds_per_row_iteration: f64,
    bytes_per_row_iteration: f64,
}

/// The steps of one gradient.
#[derive(Debug, Serialize)]
struct EngineSteps {
    code_bits: u32,
    columns: usize,
    rows: usize,
    steps: Vec<StepCost>,
}

/// A whole job of engine `resident` on a bundled data set, all columns encrypted.
#[derive(Debug, Serialize)]
struct Whole {
    dataset: &'static str,
    columns: usize,
    training_rows: usize,
    /// ε, if it is private.
    #[serde(skip_serializing_if = "Option::is_none")]
    epsilon: Option<Epsilon>,
    iterations: u32,
    seconds: f64,
    seconds_data_user: f64,
    seconds_providers: f64,
    megabytes: f64,
}

/// Both engines.
#[derive(Debug, Serialize)]
pub struct EngineSection {
    lines: Vec<EngineLine>,
    steps: Vec<EngineSteps>,
    jobs: Vec<Whole>,
}

/// One-bit derivatives, as jobs with noise have them.
fn one_bit() -> Result<Resolution, Error> {
    Resolution::new(10, 2, 6, 1, 4).map_err(Error::bug)
}

/// Measures the engines.
///
/// # Errors
/// If something cannot be run, which is a defect.
pub fn measure() -> Result<EngineSection, Error> {
    let one_bit = one_bit()?;
    let mut lines = Vec::new();
    for (bundle, coding, rows) in [
        (Bundle::Bcwd, Coding::Paper, 699),
        (Bundle::Adult, Coding::Paper, 32_561),
        (Bundle::Adult, Coding::Natural, 32_561),
        (Bundle::Adult, Coding::Paper, 1_250_000),
    ] {
        for resolution in [Some(one_bit), None] {
            lines.push(line(Setting {
                bundle,
                coding,
                rows,
                resolution,
            })?);
        }
    }
    let exact = Resolution::for_columns(STEP_COLUMNS).of_count(STEP_ROWS * PROVIDERS);
    let steps = [one_bit, exact]
        .map(steps)
        .into_iter()
        .collect::<Result<_, _>>()?;
    let one = Epsilon::from_billionths(1_000_000_000);
    let one = one.map_err(Error::bug)?;
    let mut jobs = Vec::new();
    for private in [None, Some(one)] {
        for (bundle, coding) in [
            (Bundle::Bcwd, Coding::Paper),
            (Bundle::Adult, Coding::Paper),
            (Bundle::Adult, Coding::Natural),
        ] {
            jobs.push(whole(bundle, coding, private)?);
        }
    }
    Ok(EngineSection { lines, steps, jobs })
}

/// A job as `heda demo` runs it, but with everything random drawn from the operating system.
fn whole(bundle: Bundle, coding: Coding, private: Option<Epsilon>) -> Result<Whole, Error> {
    let job = LocalJob {
        bundle,
        coding,
        providers: PROVIDERS,
        iota: None,
        goal: None,
        engine: Engine::RESIDENT,
        method: Scoring::KruskalWallis,
        rest: Rest::Drop,
        settings: None,
        private,
        balanced: false,
        randomness: Randomness::from_os(),
    };
    let done = job.run(&mut crate::watch::quiet)?.summary;
    let features = bundle.schema(coding).features();
    Ok(Whole {
        dataset: bundle.name(),
        columns: features.iter().map(|f| f.columns.len()).sum(),
        training_rows: done.rows,
        epsilon: private,
        iterations: done.iterations,
        seconds: done.seconds.total,
        seconds_data_user: done.seconds.user,
        seconds_providers: done.parties.iter().filter_map(|party| party.seconds).sum(),
        megabytes: (done.bytes.user_to_provider + done.bytes.provider_to_user) as f64 / 1e6,
    })
}

/// The steps of one gradient over one provider's share of Adult in the paper's coding.
fn steps(resolution: Resolution) -> Result<EngineSteps, Error> {
    let bug = |e: &dyn fmt::Display| Error::bug(e.to_string());
    let features = Bundle::Adult.schema(Coding::Paper).features();
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build();
    let pool = pool.map_err(|e| bug(&e))?;
    let made = || profile(&features, STEP_ROWS, resolution, &Randomness::from_os());
    // The first run warms up.
    pool.install(made).map_err(|e| bug(&e))?;
    Ok(EngineSteps {
        code_bits: resolution.code_bits(),
        columns: features.len(),
        rows: STEP_ROWS,
        steps: pool.install(made).map_err(|e| bug(&e))?,
    })
}

/// The engine on so many rows like those of a data set, all encrypted.
fn line(setting: Setting) -> Result<EngineLine, Error> {
    let rows = setting.rows;
    let schema = setting.bundle.schema(setting.coding);
    let columns = schema.features().iter().map(|f| f.columns.len()).sum();
    let training_rows = rows - Share::USUAL.of(rows as u64) as usize;
    let features = schema.columns().len();
    let names = schema.columns().iter();
    let order = names.map(|column| column.name().to_owned()).collect();
    let settings = measuring(&schema, 1, 1);
    let resolution = setting.resolution;
    let resolution = resolution.unwrap_or(Resolution::for_columns(columns));
    let job = Job::builder("bench", schema)
        .resolution(resolution.of_count(training_rows))
        .settings(settings)
        .ranking(Ranking::Given { features: order });
    let job = job.build()?;
    let spec = job.spec(JobId([0; 16]), &Randomness::from_os());
    let shares: Vec<usize> = (0..PROVIDERS)
        .map(|part| Batch::new(part, PROVIDERS).share(rows).len())
        .collect();
    let order: Vec<usize> = (0..features).collect();
    let costs = measure_job(&Shape {
        spec: &spec,
        order: &order,
        iota: features,
        rows: &shares,
        most_rows: usize::MAX,
        repeats: 1,
    })?;
    let bytes = costs.sent.each + costs.received.each;
    Ok(EngineLine {
        engine: Engine::RESIDENT,
        as_private: setting.resolution.is_some(),
        code_bits: spec.job.resolution().code_bits(),
        columns,
        training_rows,
        milliseconds_per_iteration: 1e3 * costs.seconds.each,
        microseconds_per_row_iteration: 1e6 * costs.seconds.each / training_rows as f64,
        bytes_per_row_iteration: bytes / training_rows as f64,
    })
}

impl fmt::Display for EngineSection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "engines, {PROVIDERS} providers and the data user on this machine, all columns encrypted"
        )?;
        writeln!(
            f,
            "  {:<8} {:>5} {:>4} {:>7} {:>9} {:>13} {:>9} {:>11}",
            "engine", "noise", "bits", "columns", "rows", "ms/iteration", "µs/row", "bytes/row"
        )?;
        for line in &self.lines {
            writeln!(
                f,
                "  {:<8} {:>5} {:>4} {:>7} {:>9} {:>13.2} {:>9.2} {:>11.0}",
                line.engine.to_string(),
                if line.as_private { "yes" } else { "no" },
                line.code_bits,
                line.columns,
                line.training_rows,
                line.milliseconds_per_iteration,
                line.microseconds_per_row_iteration,
                line.bytes_per_row_iteration
            )?;
        }
        for steps in &self.steps {
            write!(f, "{steps}")?;
        }
        writeln!(
            f,
            "\nwhole jobs of engine resident; time of the parties is that in which they did not wait\n  \
             {:<8} {:>7} {:>9} {:>7} {:>10} {:>8} {:>11} {:>11} {:>8}",
            "data set",
            "columns",
            "rows",
            "epsilon",
            "iterations",
            "s",
            "data user s",
            "providers s",
            "MB"
        )?;
        for job in &self.jobs {
            writeln!(
                f,
                "  {:<8} {:>7} {:>9} {:>7} {:>10} {:>8.2} {:>11.2} {:>11.2} {:>8.1}",
                job.dataset,
                job.columns,
                job.training_rows,
                job.epsilon
                    .map_or("–".into(), |epsilon| epsilon.to_string()),
                job.iterations,
                job.seconds,
                job.seconds_data_user,
                job.seconds_providers,
                job.megabytes
            )?;
        }
        Ok(())
    }
}

impl fmt::Display for EngineSteps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "\nsteps of a gradient, {} rows of {} columns, {} bits, each on one core\n  {:<13} {:<28} {:>9} {:>11}",
            self.rows, self.columns, self.code_bits, "party", "step", "µs/row", "bytes/row"
        )?;
        for step in &self.steps {
            write!(
                f,
                "\n  {:<13} {:<28} {:>9.3} {:>11.1}",
                if step.data_user {
                    "data user"
                } else {
                    "provider"
                },
                step.step,
                1e6 * step.took.as_secs_f64() / self.rows as f64,
                step.bytes as f64 / self.rows as f64
            )?;
        }
        for (party, data_user) in [("data user", true), ("provider", false)] {
            let own = || self.steps.iter().filter(|step| step.data_user == data_user);
            let took: f64 = own().map(|step| step.took.as_secs_f64()).sum();
            let bytes: usize = own().map(|step| step.bytes).sum();
            write!(
                f,
                "\n  {party:<13} {:<28} {:>9.3} {:>11.1}",
                "all",
                1e6 * took / self.rows as f64,
                bytes as f64 / self.rows as f64
            )?;
        }
        writeln!(f)
    }
}
