//! `heda plan`: what a job will cost, before it runs.

use crate::output;
use heda::Error;
use heda::forecast::{Subject, Took};
use heda::layout::fitted;
use heda::{Bundle, Coding, Delta, Epsilon, JobFile, schema};
use std::path::PathBuf;

/// Estimate time, memory and traffic of a job before it runs
///
/// Runs the job's protocol on random rows of the same shape, with all parties on this machine,
/// for a few iterations, and extrapolates to the rows and iterations asked for. Time and memory are
/// given as ranges. Over a network, add bytes divided by bandwidth and round trips times delay: both
/// are printed.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  heda plan job.toml --rows 30000
  heda plan job.toml --answers answers
  heda plan --dataset adult --private 1
  heda plan --dataset adult --coding paper --iota 14 --iterations 30 --check
  heda plan --schema patients.toml --rows 200000 --providers 5 --iota 10 --iterations 40 --json
  heda plan --dataset adult --coding paper --rows 1000000 --iterations 10 --check")]
pub(crate) struct PlanArguments {
    /// The job file of `heda train`, also as `heda invite` wrote it, before anybody answered
    #[arg(
        value_name = "JOB.toml",
        conflicts_with_all = ["dataset", "schema", "coding", "iota", "iterations", "batches", "private"]
    )]
    job: Option<PathBuf>,
    /// Folder with answers to the invitation; `answers` beside the job file if not given
    #[arg(long, value_name = "DIR", requires = "job")]
    answers: Option<PathBuf>,
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
    /// Rows of all providers together, held-out ones included; a private job file states them
    #[arg(long, value_name = "N")]
    rows: Option<usize>,
    /// Number of providers, where nobody has answered yet
    #[arg(long, value_name = "N", default_value_t = 3)]
    providers: usize,
    /// A private job: epsilon for everything that it reveals of a row
    #[arg(long, value_name = "EPSILON", conflicts_with_all = ["iota", "iterations", "batches"])]
    private: Option<Epsilon>,
    /// Delta of a private job; by the number of rows if not given
    #[arg(long, value_name = "DELTA", requires = "private")]
    delta: Option<Delta>,
    /// How many features are encrypted; all if not given
    #[arg(long, value_name = "N")]
    iota: Option<usize>,
    /// Number of iterations
    #[arg(long, value_name = "N", default_value_t = 30)]
    iterations: u32,
    /// Number of batches that the rows are cut into
    #[arg(long, value_name = "N", default_value_t = 1)]
    batches: usize,
    /// Then run the whole job on random rows, in a process of its own, and show how far off the plan was
    #[arg(long)]
    check: bool,
    /// Only run it, as --check does
    #[arg(long, hide = true, conflicts_with = "check")]
    run: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(arguments: &PlanArguments) -> Result<(), Error> {
    let subject = match &arguments.job {
        Some(path) => {
            let job = JobFile::as_invited(path, arguments.answers.as_deref())?;
            Subject::of_job(&job, arguments.rows, arguments.providers)?
        }
        None => of_arguments(arguments)?,
    };
    if arguments.run {
        return output::print_json(&subject.run()?);
    }
    let mut plan = subject.forecast()?;
    if arguments.check {
        plan.compare(&run_apart()?);
    }
    match arguments.json {
        true => output::print_json(&plan),
        false => output::print_text(&fitted(&plan.in_words(), 10)),
    }
}

/// Runs what was planned in a process of its own, whose memory is the job's.
fn run_apart() -> Result<Took, Error> {
    let program = std::env::current_exe().map_err(Error::input)?;
    let arguments = std::env::args_os().skip(1);
    let arguments = arguments.filter(|argument| argument != "--check" && argument != "--json");
    let ran = std::process::Command::new(program)
        .args(arguments)
        .arg("--run")
        .stderr(std::process::Stdio::inherit())
        .output()
        .map_err(Error::input)?;
    if !ran.status.success() {
        return Err(Error::input("the job that was planned could not be run"));
    }
    serde_json::from_slice(&ran.stdout).map_err(Error::bug)
}

fn of_arguments(arguments: &PlanArguments) -> Result<Subject, Error> {
    let (schema, rows) = match (&arguments.schema, arguments.dataset) {
        (Some(path), _) => {
            let (_, schema) = schema::read(path)?;
            (schema, arguments.rows.unwrap_or_default())
        }
        (None, Some(bundle)) => {
            let (data, _) = bundle.table(arguments.coding).map_err(Error::bug)?;
            let rows = arguments.rows.unwrap_or(data.rows());
            (bundle.schema(arguments.coding), rows)
        }
        (None, None) => return Err(Error::input("name a job, a bundled data set or a schema")),
    };
    if let Some(epsilon) = arguments.private {
        let promise = (epsilon, arguments.delta.map(Delta::get));
        return Subject::of_promise(schema, rows, arguments.providers, promise);
    }
    Subject::of_schema(
        schema,
        rows,
        arguments.providers,
        arguments.iota,
        (arguments.iterations, arguments.batches),
    )
}
