//! `heda plan`: what a job will cost, before it runs.

use crate::output;
use heda::failure::{Failure, Kind};
use heda::local_job::HOLDOUT_PERMILLE;
use heda::planning::{Costs, Shape, Took, measure, planned_rows, run_whole};
use heda::{Job, RemoteJob};
use heda_crypto::random::Randomness;
use heda_learn::bundled::{Bundle, Coding};
use heda_learn::gradient::Batch;
use heda_learn::optimise::{Method, Settings};
use heda_learn::schema::Schema;
use heda_train::job::{Choice, JobSpec};
use heda_train::proposal::{Engine, JobId, Privacy, Ranking};
use serde::Serialize;
use std::path::{Path, PathBuf};

/// Tell time, memory and traffic of a job before it runs
///
/// Runs the job's protocol on random rows of the same shape, with all parties on this machine,
/// for a few iterations, and extrapolates to the rows and iterations asked for. Time and memory are
/// given as ranges. Over a network, add bytes divided by bandwidth and round trips times delay: both
/// are printed.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  heda plan job.toml --rows 30000
  heda plan --dataset adult --coding paper --iota 14 --iterations 30 --check
  heda plan --schema patients.toml --rows 200000 --providers 5 --iota 10 --iterations 40 --json
  heda plan --dataset adult --coding paper --rows 1000000 --iterations 10 --check")]
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
    /// Then run the whole job on random rows, in a process of its own, and tell how far off the plan was
    #[arg(long)]
    check: bool,
    /// Only run it, as --check does
    #[arg(long, hide = true, conflicts_with = "check")]
    run: bool,
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
    /// Between these it should be.
    seconds_range: [f64; 2],
    seconds_setup_and_evaluation: f64,
    seconds_per_iteration: f64,
    bytes_user_to_providers: u64,
    bytes_providers_to_user: u64,
    round_trips_per_provider: u64,
    /// All parties and their rows together.
    peak_memory_bytes: Option<u64>,
    peak_memory_bytes_range: Option<[u64; 2]>,
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
    peak_memory_bytes: Option<u64>,
    /// How much more than planned the time was, in percent; less if negative.
    time_off_percent: f64,
    /// The same of the memory.
    memory_off_percent: Option<f64>,
}

/// A measurement of a few iterations says no more than this about many, as a share.
const LEAST_SPREAD: f64 = 0.15;
/// How often each engine is measured; keys of engine `paper` take long.
const REPEATS: (u32, u32) = (3, 1);

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
    subject.check()?;
    let shares = subject.shares();
    let shape = subject.shape(&shares);
    if arguments.run {
        return output::print_json(&run_whole(&shape)?);
    }
    let mut plan = of_costs(&subject, &measure(&shape)?);
    if arguments.check {
        plan.check = Some(check(&plan)?);
    }
    match arguments.json {
        true => output::print_json(&plan),
        false => output::print_text(&text(&plan)),
    }
}

impl Subject {
    fn check(&self) -> Result<(), Failure> {
        let Self {
            iota,
            rows,
            providers,
            ..
        } = self;
        if *providers == 0 || rows / providers < 10 {
            return Err(Failure::input(format!(
                "{rows} rows for {providers} providers: each needs ten or more"
            )));
        }
        let features = self.order.len();
        match *iota > features {
            true => Err(Failure::input(format!(
                "iota is {iota}, but there are {features} features; choose 0 to {features}"
            ))),
            false => Ok(()),
        }
    }

    /// Rows of each provider.
    fn shares(&self) -> Vec<usize> {
        let parts = 0..self.providers;
        parts
            .map(|part| Batch::new(part, self.providers).share(self.rows).len())
            .collect()
    }

    fn shape<'a>(&'a self, shares: &'a [usize]) -> Shape<'a> {
        Shape {
            spec: &self.spec,
            order: &self.order,
            iota: self.iota,
            rows: shares,
            most_rows: planned_rows(self.providers, self.spec.holdout_permille),
            repeats: match self.spec.engine {
                Engine::Resident => REPEATS.0,
                Engine::Paper => REPEATS.1,
            },
        }
    }
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
    let seconds = costs.seconds.of(iterations);
    let spread = costs.spread.max(LEAST_SPREAD);
    let around = |value: f64, spread: f64| [value / (1.0 + spread), value * (1.0 + spread)];
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
        seconds,
        seconds_range: around(seconds, spread),
        seconds_setup_and_evaluation: costs.seconds.fixed,
        seconds_per_iteration: costs.seconds.each,
        bytes_user_to_providers: costs.sent.of(iterations) as u64,
        bytes_providers_to_user: costs.received.of(iterations) as u64,
        round_trips_per_provider: costs.round_trips.of(iterations) as u64
            / subject.providers as u64,
        peak_memory_bytes: costs.peak_memory,
        peak_memory_bytes_range: costs.peak_memory.map(|bytes| {
            let [low, high] = around(bytes as f64, LEAST_SPREAD);
            [low as u64, high as u64]
        }),
        gradient_numbers: u64::from(iterations) * (taking_part + 1),
        unknown_cells: training * (encrypted + 1),
        private: Private::of(spec, subject.providers),
        check: None,
    }
}

/// Runs what was planned in a process of its own, whose memory is the job's.
fn check(plan: &Plan) -> Result<Check, Failure> {
    let program = std::env::current_exe().map_err(Failure::input)?;
    let arguments = std::env::args_os().skip(1);
    let arguments = arguments.filter(|argument| argument != "--check" && argument != "--json");
    let ran = std::process::Command::new(program)
        .args(arguments)
        .arg("--run")
        .stderr(std::process::Stdio::inherit())
        .output()
        .map_err(Failure::input)?;
    if !ran.status.success() {
        return Err(Failure::input("the job that was planned could not be run"));
    }
    let took: Took = serde_json::from_slice(&ran.stdout).map_err(|e| Failure::new(Kind::Bug, e))?;
    let off = |found: f64, planned: f64| 100.0 * (found / planned - 1.0);
    let memory = took.peak_memory.zip(plan.peak_memory_bytes);
    Ok(Check {
        seconds: took.seconds,
        bytes_user_to_providers: took.sent,
        bytes_providers_to_user: took.received,
        round_trips_per_provider: took.round_trips / plan.providers as u64,
        peak_memory_bytes: took.peak_memory,
        time_off_percent: off(took.seconds, plan.seconds),
        memory_off_percent: memory.map(|(found, planned)| off(found as f64, planned as f64)),
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
            c: None,
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

fn text(plan: &Plan) -> String {
    let megabytes = |bytes: u64| bytes as f64 / 1e6;
    let mut lines = vec![
        format!(
            "{} rows of {} providers, {} of {} features encrypted, at most {} iterations, engine {}",
            plan.rows, plan.providers, plan.iota, plan.features, plan.iterations, plan.engine
        ),
        format!(
            "time      {:.1} to {:.1} s on this machine: about {:.1} s for setup and evaluation, \
             {:.3} s an iteration",
            plan.seconds_range[0],
            plan.seconds_range[1],
            plan.seconds_setup_and_evaluation,
            plan.seconds_per_iteration
        ),
        format!(
            "traffic   {:.1} MB to providers, {:.1} MB back, {} round trips with each provider",
            megabytes(plan.bytes_user_to_providers),
            megabytes(plan.bytes_providers_to_user),
            plan.round_trips_per_provider
        ),
    ];
    if let Some([low, high]) = plan.peak_memory_bytes_range {
        lines.push(format!(
            "memory    {:.0} to {:.0} MB for all parties and their rows together",
            megabytes(low),
            megabytes(high),
        ));
    }
    if plan.measured_rows < plan.rows {
        lines.push(format!("measured  with {} rows", plan.measured_rows));
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
        if let Some((memory, off)) = check.peak_memory_bytes.zip(check.memory_off_percent) {
            lines.push(format!(
                "memory    {:.0} MB ({off:+.0} %)",
                megabytes(memory)
            ));
        }
    }
    lines.join("\n")
}
