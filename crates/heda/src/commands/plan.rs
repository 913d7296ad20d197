//! `heda plan`: what a job will cost, before it runs.
//!
//! Nothing is modelled that can be measured: the job's own protocol runs on random rows of the
//! job's shape. A first short training warms the machine up; the second one is timed, its training
//! phase by the iteration. Bytes and round trips are counted: what the longer training has more
//! than the shorter one belongs to its iterations.

use crate::failure::{Failure, Kind};
use crate::local_job::job_failure;
use crate::output;
use heda_crypto::random::Randomness;
use heda_learn::bundled::{Bundle, Coding};
use heda_learn::data::{Dataset, Feature};
use heda_learn::fixed::Precision;
use heda_learn::gradient::Batch;
use heda_learn::loss::LossKind;
use heda_learn::optimise::{Method, Settings};
use heda_learn::schema::Schema;
use heda_train::job::{Choice, JobSpec, Quiet};
use heda_train::local::{self, LocalRun, Parts};
use heda_train::proposal::{Engine, Ranking};
use rand_core::Rng;
use serde::Serialize;
use std::path::PathBuf;
use std::sync::Arc;

/// Rows are scaled down to this many for the measurement; cost grows linearly beyond one block.
const MEASURED_ROWS: usize = 65_536;
/// Iterations of the two measured trainings.
const SHORT: u32 = 2;
const LONG: u32 = 6;
const HOLDOUT_PERMILLE: u32 = 200;

/// Tell time, memory and traffic of a job before it runs
///
/// Runs the job's protocol on random rows of the same shape, with all parties on this machine,
/// for a few iterations, and extrapolates to the iterations asked for. Over a network, add
/// bytes divided by bandwidth and round trips times delay: both are printed.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  heda plan --dataset adult --coding paper --iota 14 --iterations 30
  heda plan --schema patients.toml --rows 200000 --providers 5 --iota 10 --iterations 40 --json")]
pub(crate) struct Arguments {
    /// A bundled data set: bcwd, adult, crx or car
    #[arg(long, value_name = "NAME", required_unless_present = "schema")]
    dataset: Option<Bundle>,
    /// How its categories become numbers: natural or paper
    #[arg(long, value_name = "CODING", default_value = "natural")]
    coding: Coding,
    /// The schema of a job
    #[arg(
        long,
        value_name = "FILE",
        requires = "rows",
        conflicts_with = "dataset"
    )]
    schema: Option<PathBuf>,
    /// Rows of all providers together
    #[arg(long, value_name = "N")]
    rows: Option<usize>,
    /// Number of providers
    #[arg(long, value_name = "N", default_value_t = 3)]
    providers: usize,
    /// How many features are encrypted; all if not given
    #[arg(long, value_name = "I")]
    iota: Option<usize>,
    /// Iterations
    #[arg(long, value_name = "N", default_value_t = 30)]
    iterations: u32,
    /// Batches that the rows are cut into
    #[arg(long, value_name = "N", default_value_t = 1)]
    batches: usize,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Serialize)]
struct Plan {
    rows: usize,
    providers: usize,
    features: usize,
    iota: usize,
    iterations: u32,
    measured_rows: usize,
    seconds: f64,
    seconds_setup_and_evaluation: f64,
    seconds_per_iteration: f64,
    bytes_user_to_providers: u64,
    bytes_providers_to_user: u64,
    round_trips_per_provider: u64,
    /// Peak of this process during the measurement, all parties together.
    peak_memory_bytes: Option<u64>,
    /// Numbers that gradients will reveal, and cells that stay unknown.
    gradient_numbers: u64,
    unknown_cells: u64,
}

/// What one short training cost.
struct Measured {
    seconds: f64,
    training: f64,
    sent: u64,
    received: u64,
    round_trips: u64,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let plan = plan(arguments)?;
    match arguments.json {
        true => output::print_json(&plan),
        false => output::print_text(&text(&plan)),
    }
}

fn plan(arguments: &Arguments) -> Result<Plan, Failure> {
    let (schema, rows) = subject(arguments)?;
    let features = schema.columns().len();
    let iota = arguments.iota.unwrap_or(features);
    if arguments.providers == 0 || rows / arguments.providers < 10 {
        return Err(Failure::input(format!(
            "{rows} rows for {} providers: each needs ten or more",
            arguments.providers
        )));
    }
    if arguments.iterations == 0 {
        return Err(Failure::input("a job needs at least one iteration"));
    }
    let measured_rows = rows.min(MEASURED_ROWS);
    let short = measure(arguments, &schema, measured_rows, iota, SHORT)?;
    let long = measure(arguments, &schema, measured_rows, iota, LONG)?;
    let scale = rows as f64 / measured_rows as f64;
    let per = |a: f64, b: f64| ((b - a) / f64::from(LONG - SHORT)).max(0.0);
    let whole = |a: f64, b: f64| {
        let each = per(a, b);
        (a - f64::from(SHORT) * each).max(0.0) + each * f64::from(arguments.iterations)
    };
    let seconds_each = scale * long.training / f64::from(LONG);
    let seconds_fixed = scale * (long.seconds - long.training);
    let seconds = seconds_fixed + seconds_each * f64::from(arguments.iterations);
    let bytes = |a: u64, b: u64| (scale * whole(a as f64, b as f64)) as u64;
    let training = rows as u64 - rows as u64 * u64::from(HOLDOUT_PERMILLE) / 1000;
    let encrypted: usize = schema
        .features()
        .iter()
        .take(iota)
        .map(|f| f.columns.len())
        .sum();
    Ok(Plan {
        rows,
        providers: arguments.providers,
        features,
        iota,
        iterations: arguments.iterations,
        measured_rows,
        seconds,
        seconds_setup_and_evaluation: seconds_fixed,
        seconds_per_iteration: seconds_each,
        bytes_user_to_providers: bytes(short.sent, long.sent),
        bytes_providers_to_user: bytes(short.received, long.received),
        round_trips_per_provider: whole(short.round_trips as f64, long.round_trips as f64) as u64
            / arguments.providers as u64,
        peak_memory_bytes: peak_memory(),
        gradient_numbers: u64::from(arguments.iterations) * (schema.width() as u64 + 1),
        unknown_cells: training * (encrypted as u64 + 1),
    })
}

fn subject(arguments: &Arguments) -> Result<(Arc<Schema>, usize), Failure> {
    match (&arguments.schema, arguments.dataset) {
        (Some(path), _) => {
            let schema = Schema::read(path).map_err(Failure::input)?;
            Ok((Arc::new(schema), arguments.rows.unwrap_or_default()))
        }
        (None, Some(bundle)) => {
            let (data, _) = bundle
                .table(arguments.coding)
                .map_err(|e| Failure::new(Kind::Bug, e))?;
            let rows = arguments.rows.unwrap_or(data.rows());
            Ok((Arc::new(bundle.schema(arguments.coding)), rows))
        }
        (None, None) => Err(Failure::input("name a bundled data set or a schema")),
    }
}

/// Runs the protocol for so many iterations on random rows.
fn measure(
    arguments: &Arguments,
    schema: &Arc<Schema>,
    rows: usize,
    iota: usize,
    iterations: u32,
) -> Result<Measured, Failure> {
    let bug = |e: &dyn std::fmt::Display| Failure::new(Kind::Bug, e);
    let randomness = Randomness::from_os();
    let data = (0..arguments.providers)
        .map(|part| {
            let share = Batch::new(part, arguments.providers).share(rows);
            random_rows(schema, share.len(), &randomness, part)
        })
        .collect::<Result<Vec<_>, _>>()?;
    let parts = Parts::new(data, &randomness).map_err(|e| bug(&e))?;
    let limit = "1"
        .parse()
        .map_err(|e: heda_dp::epsilon::EpsilonError| bug(&e))?;
    let houses = parts.houses(schema, limit);
    let names: Vec<String> = schema
        .columns()
        .iter()
        .map(|c| c.name().to_owned())
        .collect();
    let method = Method::Descent {
        rate: 1e-3,
        minimum_rate: 0.0,
        decay: 0.0,
        batches: arguments.batches,
    };
    let spec = JobSpec {
        job: local::fresh_job_id(&randomness).map_err(|e| bug(&e))?,
        dataset: "plan".into(),
        schema: Arc::clone(schema),
        positives: vec![1],
        engine: Engine::Lookup,
        loss: LossKind::Logistic,
        precision: Precision::default(),
        settings: Settings {
            method,
            l2: 0.0,
            tolerance: 0.0,
            max_iterations: iterations,
        },
        holdout_permille: HOLDOUT_PERMILLE,
        ranking: Ranking::Given { features: names },
        choice: Choice::Best(iota),
        spending: None,
        key_bits: 2048,
    };
    let began = std::time::Instant::now();
    let run = local::run(&spec, &houses, &randomness, &mut Quiet, None, false)
        .map_err(|e| job_failure(&e))?;
    Ok(measured(&run, began.elapsed().as_secs_f64()))
}

fn measured(run: &LocalRun, seconds: f64) -> Measured {
    let traffic = || {
        run.outcome
            .providers
            .iter()
            .flat_map(|p| p.traffic.values())
    };
    let training = run
        .outcome
        .phases
        .iter()
        .filter(|phase| phase.phase == "train");
    Measured {
        seconds,
        training: training.map(|phase| phase.took.as_secs_f64()).sum(),
        sent: traffic().map(|t| t.bytes_sent).sum(),
        received: traffic().map(|t| t.bytes_received).sum(),
        round_trips: traffic().map(|t| t.round_trips).sum(),
    }
}

/// Random rows of a schema, both classes among them.
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
    let labels = (0..rows).map(|row| row as u32 % 2).collect();
    Dataset::new(features, values, labels, schema.label().classes()).map_err(|e| bug(&e))
}

/// Peak resident memory of this process, where the system tells.
fn peak_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    let kib: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kib * 1024)
}

fn text(plan: &Plan) -> String {
    let megabytes = |bytes: u64| bytes as f64 / 1e6;
    let mut lines = vec![
        format!(
            "{} rows of {} providers, {} of {} features encrypted, {} iterations",
            plan.rows, plan.providers, plan.iota, plan.features, plan.iterations
        ),
        format!(
            "time      {:.1} s on this machine: {:.1} s setup and evaluation, {:.3} s an iteration",
            plan.seconds, plan.seconds_setup_and_evaluation, plan.seconds_per_iteration
        ),
        format!(
            "traffic   {:.1} MB to providers, {:.1} MB back, {} round trips with each provider",
            megabytes(plan.bytes_user_to_providers),
            megabytes(plan.bytes_providers_to_user),
            plan.round_trips_per_provider
        ),
    ];
    if let Some(memory) = plan.peak_memory_bytes {
        lines.push(format!(
            "memory    {:.0} MB for all parties together, measured with {} rows",
            megabytes(memory),
            plan.measured_rows
        ));
    }
    lines.push(format!(
        "reveals   {} numbers of gradients about {} unknown cells",
        plan.gradient_numbers, plan.unknown_cells
    ));
    lines.join("\n")
}
