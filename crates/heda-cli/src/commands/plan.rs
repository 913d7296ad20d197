//! `heda plan`: what a job will cost, before it runs.

use crate::output;
use crate::progress::Progress;
use heda::failure::{Failure, Kind};
use heda::local_job::{HOLDOUT_PERMILLE, LocalJob, Rest};
use heda::planning::{Costs, PLANNED_ROWS, Shape, measure};
use heda::{Job, RemoteJob};
use heda_crypto::random::Randomness;
use heda_learn::bundled::{Bundle, Coding};
use heda_learn::gradient::Batch;
use heda_learn::optimise::{Method, Settings};
use heda_learn::schema::Schema;
use heda_learn::score;
use heda_train::job::{Choice, JobSpec};
use heda_train::proposal::{Engine, JobId, Privacy, Ranking};
use serde::Serialize;
use std::path::{Path, PathBuf};

/// Tell time, memory and traffic of a job before it runs
///
/// Runs the job's protocol on random rows of the same shape, with all parties on this machine,
/// for a few iterations, and extrapolates to the iterations asked for. Over a network, add
/// bytes divided by bandwidth and round trips times delay: both are printed.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  heda plan job.toml --rows 30000
  heda plan --dataset adult --coding paper --iota 14 --iterations 30 --check
  heda plan --schema patients.toml --rows 200000 --providers 5 --iota 10 --iterations 40 --json")]
pub(crate) struct Arguments {
    /// The job file of `heda train`; what is planned is then all in it but the rows
    #[arg(
        value_name = "JOB.toml",
        requires = "rows",
        conflicts_with_all = ["dataset", "schema", "coding", "providers", "iota", "iterations", "batches"]
    )]
    job: Option<PathBuf>,
    /// A bundled data set: bcwd, adult, crx or car
    #[arg(long, value_name = "NAME", required_unless_present_any = ["schema", "job"])]
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
    /// Rows of all providers together, held-out ones included
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
    /// Then run it on the bundled data set, and tell how far off the plan was
    #[arg(long, requires = "dataset", conflicts_with = "rows")]
    check: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Serialize)]
struct Plan {
    engine: Engine,
    rows: usize,
    providers: usize,
    features: usize,
    iota: usize,
    /// At most, over all models.
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
    /// What a private job promises, and the noise that it takes.
    #[serde(skip_serializing_if = "Option::is_none")]
    private: Option<Private>,
    /// What the job then took, if that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    check: Option<Check>,
}

/// The promise of a private job.
#[derive(Debug, Serialize)]
struct Private {
    epsilon: f64,
    delta: f64,
    /// Others on whose noise each provider counts.
    trusted: u32,
    /// Deviation of the noise in every number of a gradient, where a row adds 1 at most.
    noise_in_rows: f64,
    /// The same for every number of others that could be counted on, from none.
    noise_by_trusted: Vec<f64>,
    /// What a gradient costs a row, as mu squared.
    squared_per_gradient: f64,
}

impl Private {
    fn of(spec: &JobSpec, providers: usize) -> Option<Self> {
        let privacy = spec.privacy?;
        let plan = privacy.plan(spec.schema.width() + 1).ok()?;
        let noise = |trusted| {
            let trusted = Some(trusted);
            Privacy { trusted, ..privacy }.noise_in_rows(&plan, providers)
        };
        Some(Self {
            epsilon: privacy.epsilon.to_f64(),
            delta: privacy.delta.get(),
            trusted: privacy.counts_on(providers),
            noise_in_rows: privacy.noise_in_rows(&plan, providers),
            noise_by_trusted: (0..providers as u32).map(noise).collect(),
            squared_per_gradient: plan.cost_of_gradient().squared(),
        })
    }

    fn text(&self) -> String {
        let choices = self.noise_by_trusted.iter().enumerate();
        let choices = choices.map(|(trusted, noise)| format!("{trusted}: {noise:.1}"));
        format!(
            "private   epsilon {} at delta {:e}; noise in every number of a gradient like {:.1} rows; by \
             how many others' noise is counted on: {}",
            self.epsilon,
            self.delta,
            self.noise_in_rows,
            choices.collect::<Vec<_>>().join(", ")
        )
    }
}

/// What a job took that was planned.
#[derive(Debug, Serialize)]
struct Check {
    seconds: f64,
    bytes_user_to_providers: u64,
    bytes_providers_to_user: u64,
    round_trips_per_provider: u64,
    /// How much more than planned the time was, in percent; less if negative.
    time_off_percent: f64,
}

/// What is to be planned.
struct Subject {
    spec: JobSpec,
    /// All features, the encrypted ones first.
    order: Vec<usize>,
    iota: usize,
    rows: usize,
    providers: usize,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let subject = match &arguments.job {
        Some(path) => of_job(path, arguments.rows.unwrap_or_default())?,
        None => of_arguments(arguments)?,
    };
    let mut plan = plan(&subject)?;
    if let (true, Some(bundle)) = (arguments.check, arguments.dataset) {
        plan.check = Some(check(arguments, bundle, &subject, plan.seconds)?);
    }
    match arguments.json {
        true => output::print_json(&plan),
        false => output::print_text(&text(&plan)),
    }
}

fn plan(subject: &Subject) -> Result<Plan, Failure> {
    let Subject {
        spec,
        order,
        iota,
        rows,
        providers,
    } = subject;
    if *providers == 0 || rows / providers < 10 {
        return Err(Failure::input(format!(
            "{rows} rows for {providers} providers: each needs ten or more"
        )));
    }
    if *iota > order.len() {
        return Err(Failure::input(format!(
            "iota is {iota}, but there are {} features; choose 0 to {}",
            order.len(),
            order.len()
        )));
    }
    let shares = |part| Batch::new(part, *providers).share(*rows).len();
    let shares: Vec<usize> = (0..*providers).map(shares).collect();
    let costs = measure(&Shape {
        spec,
        order,
        iota: *iota,
        rows: &shares,
        most_rows: PLANNED_ROWS,
    })?;
    Ok(of_costs(subject, &costs))
}

fn of_costs(subject: &Subject, costs: &Costs) -> Plan {
    let spec = &subject.spec;
    let models = spec.positives.len() as u32;
    let plan = spec
        .privacy
        .and_then(|p| p.plan(spec.schema.width() + 1).ok());
    let each = plan.map_or(spec.settings.max_iterations, |plan| plan.gradients());
    let iterations = each.saturating_mul(models);
    let features = spec.schema.features();
    let width = |chosen: &[usize]| {
        chosen
            .iter()
            .map(|&f| features[f].columns.len() as u64)
            .sum()
    };
    let encrypted: u64 = width(&subject.order[..subject.iota]);
    let taking_part: u64 = match spec.spending {
        Some(_) => width(&subject.order),
        None => encrypted,
    };
    let held_out = subject.rows as u64 * u64::from(spec.holdout_permille) / 1000;
    let training = subject.rows as u64 - held_out;
    Plan {
        engine: spec.engine,
        rows: subject.rows,
        providers: subject.providers,
        features: features.len(),
        iota: subject.iota,
        iterations,
        measured_rows: costs.measured_rows,
        seconds: costs.seconds.of(iterations),
        seconds_setup_and_evaluation: costs.seconds.fixed,
        seconds_per_iteration: costs.seconds.each,
        bytes_user_to_providers: costs.sent.of(iterations) as u64,
        bytes_providers_to_user: costs.received.of(iterations) as u64,
        round_trips_per_provider: costs.round_trips.of(iterations) as u64
            / subject.providers as u64,
        peak_memory_bytes: peak_memory(),
        gradient_numbers: u64::from(iterations) * (taking_part + 1),
        unknown_cells: training * (encrypted + 1),
        private: Private::of(spec, subject.providers),
        check: None,
    }
}

/// Runs what was planned, on the bundled rows.
fn check(
    arguments: &Arguments,
    bundle: Bundle,
    subject: &Subject,
    planned_seconds: f64,
) -> Result<Check, Failure> {
    let job = LocalJob {
        private: None,
        bundle,
        coding: arguments.coding,
        providers: subject.providers,
        iota: Some(subject.iota),
        goal: None,
        engine: subject.spec.engine,
        key_bits: subject.spec.key_bits,
        method: score::Method::default(),
        rest: Rest::Drop,
        settings: Some(subject.spec.settings.clone()),
        randomness: Randomness::from_os(),
    };
    let summary = job.run(&mut Progress::new())?.summary;
    let seconds = summary.seconds.total;
    Ok(Check {
        seconds,
        bytes_user_to_providers: summary.bytes.user_to_provider,
        bytes_providers_to_user: summary.bytes.provider_to_user,
        round_trips_per_provider: summary.round_trips / subject.providers as u64,
        time_off_percent: 100.0 * (seconds / planned_seconds - 1.0),
    })
}

/// A job file. Where ι is chosen later, all features are planned as encrypted: that takes longest.
fn of_job(path: &Path, rows: usize) -> Result<Subject, Failure> {
    let remote = RemoteJob::load(path)?;
    let schema = remote.job().schema();
    let spec = remote.job().spec(JobId([0; 16]), &Randomness::from_os());
    let all = schema.columns().len();
    let (encrypted, iota): (Vec<usize>, usize) = match &spec.choice {
        Choice::Best(iota) => (Vec::new(), *iota),
        Choice::Auto(_) => (Vec::new(), all),
        Choice::Named(names) => {
            let place = |name: &String| {
                let columns = schema.columns();
                let found = columns.iter().position(|column| column.name() == name);
                found.ok_or_else(|| Failure::input(format!("the schema has no feature \"{name}\"")))
            };
            let places: Vec<usize> = names.iter().map(place).collect::<Result<_, _>>()?;
            let iota = places.len();
            (places, iota)
        }
    };
    let rest = (0..all).filter(|feature| !encrypted.contains(feature));
    let order = encrypted.iter().copied().chain(rest).collect();
    Ok(Subject {
        order,
        iota,
        rows,
        providers: remote.providers(),
        spec,
    })
}

fn of_arguments(arguments: &Arguments) -> Result<Subject, Failure> {
    let (schema, rows) = match (&arguments.schema, arguments.dataset) {
        (Some(path), _) => {
            let schema = Schema::read(path).map_err(Failure::input)?;
            (schema, arguments.rows.unwrap_or_default())
        }
        (None, Some(bundle)) => {
            let (data, _) = bundle
                .table(arguments.coding)
                .map_err(|e| Failure::new(Kind::Bug, e))?;
            let rows = arguments.rows.unwrap_or(data.rows());
            (bundle.schema(arguments.coding), rows)
        }
        (None, None) => return Err(Failure::input("name a job, a bundled data set or a schema")),
    };
    let features = schema.columns().len();
    let names = schema.columns().iter();
    let order = names.map(|column| column.name().to_owned()).collect();
    let job = Job::builder("plan", schema)
        .settings(Settings {
            method: Method::Descent {
                rate: 1.0,
                minimum_rate: 0.0,
                decay: 0.0,
                batches: arguments.batches,
            },
            l2: 0.0,
            tolerance: 0.0,
            max_iterations: arguments.iterations,
        })
        .hold_out(HOLDOUT_PERMILLE)
        .ranking(Ranking::Given { features: order });
    let job = job.build().map_err(Failure::input)?;
    let spec = job.spec(JobId([0; 16]), &Randomness::from_os());
    Ok(Subject {
        spec,
        order: (0..features).collect(),
        iota: arguments.iota.unwrap_or(features),
        rows,
        providers: arguments.providers,
    })
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
            "{} rows of {} providers, {} of {} features encrypted, at most {} iterations, engine {}",
            plan.rows, plan.providers, plan.iota, plan.features, plan.iterations, plan.engine
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
    lines.extend(plan.private.as_ref().map(Private::text));
    if let Some(check) = &plan.check {
        lines.push(format!(
            "it took   {:.1} s ({:+.0} %), {:.1} MB to providers, {:.1} MB back, {} round trips",
            check.seconds,
            check.time_off_percent,
            megabytes(check.bytes_user_to_providers),
            megabytes(check.bytes_providers_to_user),
            check.round_trips_per_provider
        ));
    }
    lines.join("\n")
}
