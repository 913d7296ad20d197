//! `heda provider`: guard the data, serve jobs, and see what left.

mod know;
mod setup;
mod words;

use crate::output;
use clap::{Args, Subcommand, ValueEnum};
use heda::Error;
use heda::confirmed_schema;
use heda::layout::fitted;
use heda::provider::{self, Finding, Invited, Verdict};
use heda::system::{LogFormat, start_log};
use serde::Serialize;
use std::fmt::Write as _;
use std::path::PathBuf;

/// Guard the data of one organisation: serve jobs, see what they cost and what left
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  heda provider setup --invitation invitation.toml
  heda provider serve --config provider.toml
  heda provider budget --config provider.toml")]
pub(crate) struct ProviderArguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    Setup(setup::Setup),
    Know(know::Know),
    /// Serve jobs until SIGTERM or SIGINT
    #[command(after_help = "Examples:
  heda provider serve --config provider.toml
  heda provider serve --config provider.toml --log json --verbose")]
    Serve(Serve),
    /// Find what is wrong with data, schema, keys, ports, clock and permissions
    #[command(after_help = "Examples:
  heda provider check --config provider.toml")]
    Check(Query),
    /// Show what a job would cost and reveal, before it is allowed
    #[command(after_help = "Examples:
  heda provider preview --invitation invitation.toml --data rows.csv
  heda provider preview --config provider.toml --job job.toml --as university")]
    Preview(PreviewArguments),
    /// Show jobs and refusals
    #[command(after_help = "Examples:
  heda provider status --config provider.toml")]
    Status(Query),
    /// Show what was released and what is left of epsilon
    #[command(after_help = "Examples:
  heda provider budget --config provider.toml --json")]
    Budget(Query),
    /// Free what a private job has set aside of the budget and does not use
    #[command(after_help = "Examples:
  heda provider release --config provider.toml --job 5f2b9c0a4d1e8f37")]
    Release(ReleaseArguments),
    /// Copy ledger and keys into a new folder, also while the provider serves
    #[command(after_help = "Examples:
  heda provider backup --config provider.toml --out backup")]
    Backup(Backup),
    /// Accept a damaged or missing ledger and continue; the reason is recorded
    #[command(after_help = "Examples:
  heda provider begin-anew --config provider.toml --because 'disk failed on 3 May, restored from backup'")]
    BeginAnew(BeginAnew),
}

#[derive(Debug, Args)]
struct Serve {
    /// The provider's configuration
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
    /// How log lines look
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = Log::Text)]
    log: Log,
    /// Accept a schema that still has marks of what was read from rows
    #[arg(long)]
    unconfirmed: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Log {
    /// For people
    Text,
    /// One JSON object a line
    Json,
}

#[derive(Debug, Args)]
struct Query {
    /// The provider's configuration
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
struct ReleaseArguments {
    /// The provider's configuration
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
    /// The job, as `heda provider budget` shows it
    #[arg(long, value_name = "JOB")]
    job: String,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
struct Backup {
    /// The provider's configuration
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
    /// The folder to make; keep it as safe as the originals
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
struct BeginAnew {
    /// The provider's configuration
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
    /// Why; the ledger keeps these words
    #[arg(long, value_name = "WORDS")]
    because: String,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
struct PreviewArguments {
    /// The provider's configuration; without it an invitation is judged as `setup` would answer it
    #[arg(long, value_name = "FILE", required_unless_present = "invitation")]
    config: Option<PathBuf>,
    /// The data user's invitation, if there is nothing else yet
    #[arg(long, value_name = "FILE", conflicts_with_all = ["job", "peer"])]
    invitation: Option<PathBuf>,
    /// The rows, CSV or Parquet, if there is no configuration yet
    #[arg(
        long,
        value_name = "FILE",
        requires = "invitation",
        conflicts_with = "config"
    )]
    data: Option<PathBuf>,
    /// Number of providers that an invitation is judged for
    #[arg(long, value_name = "N", default_value_t = 3, requires = "invitation")]
    providers: usize,
    /// The data user's job file, also as `heda invite` wrote it
    #[arg(
        long,
        value_name = "FILE",
        required_unless_present = "invitation",
        requires = "peer"
    )]
    job: Option<PathBuf>,
    /// Folder with answers to the invitation; `answers` beside the job file if not given
    #[arg(long, value_name = "DIR", requires = "job")]
    answers: Option<PathBuf>,
    /// The data user of the configuration that would ask
    #[arg(
        long = "as",
        value_name = "NAME",
        required_unless_present = "invitation"
    )]
    peer: Option<String>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

impl ProviderArguments {
    /// Whether this serves, until it is asked to stop.
    pub(crate) fn serves(&self) -> bool {
        match &self.action {
            Action::Serve(_) => true,
            Action::Setup(setup) => setup.serve,
            _ => false,
        }
    }
}

pub(crate) fn run(arguments: ProviderArguments) -> Result<(), Error> {
    match arguments.action {
        Action::Setup(arguments) => match setup::run(&arguments)? {
            Some(config) => run_serve(&Serve {
                config,
                log: Log::Text,
                unconfirmed: false,
            }),
            None => Ok(()),
        },
        Action::Know(arguments) => know::run(&arguments),
        Action::Serve(arguments) => run_serve(&arguments),
        Action::Check(arguments) => run_check(&arguments),
        Action::Preview(arguments) => run_preview(&arguments),
        Action::Status(arguments) => run_status(&arguments),
        Action::Budget(arguments) => run_budget(&arguments),
        Action::Release(arguments) => run_release(&arguments),
        Action::Backup(arguments) => run_backup(&arguments),
        Action::BeginAnew(arguments) => run_begin_anew(&arguments),
    }
}

fn run_serve(arguments: &Serve) -> Result<(), Error> {
    let config = provider::load(&arguments.config)?;
    confirmed_schema(&config.schema, arguments.unconfirmed)?;
    let format = match arguments.log {
        Log::Text => LogFormat::Text,
        Log::Json => LogFormat::Json,
    };
    start_log(format, output::verbosity());
    heda::Provider::serve(&config, |address| {
        // The only line on stdout: scripts that start a daemon wait for it.
        let _ = output::print_text(&format!("listening on {address}"));
    })
}

fn run_check(arguments: &Query) -> Result<(), Error> {
    let config = provider::load(&arguments.config)?;
    let findings = provider::check(&config);
    if arguments.json {
        output::print_json(&findings)?;
    } else {
        output::print_text(&fitted(findings_text(&findings).trim_end(), 19))?;
    }
    let bad = findings.iter().filter(|f| f.verdict == Verdict::Bad);
    match bad.count() {
        0 => Ok(()),
        1 => Err(Error::input("one thing must be put right")),
        many => Err(Error::input(format!("{many} things must be put right"))),
    }
}

fn findings_text(findings: &[Finding]) -> String {
    findings.iter().fold(String::new(), |mut text, finding| {
        let word = match finding.verdict {
            Verdict::Good => "good",
            Verdict::Warning => "look",
            Verdict::Bad => "BAD",
        };
        let _ = writeln!(text, "{word:<5} {:<12} {}", finding.part, finding.words);
        text
    })
}

/// What a preview comes to.
#[derive(Serialize)]
struct Previewed<'a> {
    permitted: bool,
    refusal: Option<String>,
    words: &'a str,
}

fn run_preview(arguments: &PreviewArguments) -> Result<(), Error> {
    let config = arguments
        .config
        .as_deref()
        .map(provider::load)
        .transpose()?;
    let preview = match (
        &arguments.invitation,
        &config,
        &arguments.job,
        &arguments.peer,
    ) {
        (Some(invitation), config, ..) => {
            let invited = Invited {
                invitation,
                data: arguments.data.as_deref(),
                providers: arguments.providers,
            };
            provider::preview_invitation(&invited, config.as_ref())?
        }
        (None, Some(config), Some(job), Some(peer)) => {
            provider::preview(config, job, arguments.answers.as_deref(), peer)?
        }
        _ => {
            return Err(Error::input(
                "give --invitation, or --config, --job and --as",
            ));
        }
    };
    if arguments.json {
        output::print_json(&Previewed {
            permitted: preview.refusal.is_none(),
            refusal: preview.refusal.as_ref().map(ToString::to_string),
            words: &preview.words,
        })?;
    } else {
        output::print_text(&fitted(&preview.words, 4))?;
    }
    preview.refusal.map_or(Ok(()), Err)
}

fn run_status(arguments: &Query) -> Result<(), Error> {
    let config = provider::load(&arguments.config)?;
    let status = provider::status(&config)?;
    if arguments.json {
        return output::print_json(&status);
    }
    let text = words::status(&status.report, &status.private) + &words::others(&status.others);
    output::print_text(text.trim_end())
}

fn run_budget(arguments: &Query) -> Result<(), Error> {
    let config = provider::load(&arguments.config)?;
    let budget = provider::budget(&config)?;
    if arguments.json {
        return output::print_json(&budget);
    }
    let text = words::budget(&budget.report, &budget.private) + &words::others(&budget.others);
    output::print_text(text.trim_end())
}

/// What a backup wrote.
#[derive(Serialize)]
struct Copied<'a> {
    files: &'a [PathBuf],
}

fn run_backup(arguments: &Backup) -> Result<(), Error> {
    let config = provider::load(&arguments.config)?;
    let made = provider::backup(&config, &arguments.out)?;
    if arguments.json {
        return output::print_json(&Copied { files: &made });
    }
    let lines: Vec<String> = made.iter().map(|path| path.display().to_string()).collect();
    output::print_text(&lines.join("\n"))
}

/// The words of an operator stay on their line.
const REASON_LIMIT: usize = 500;

/// The job whose budget was set free.
#[derive(Serialize)]
struct ReleasedBudget<'a> {
    job: &'a str,
}

fn run_release(arguments: &ReleaseArguments) -> Result<(), Error> {
    let config = provider::load(&arguments.config)?;
    match provider::release(&config, &arguments.job)? {
        false => Err(Error::input(format!(
            "no job {} has anything set aside; `heda provider budget` lists those that have",
            arguments.job
        ))),
        true if arguments.json => output::print_json(&ReleasedBudget {
            job: &arguments.job,
        }),
        true => output::print_text(&format!(
            "What job {} had set aside is free. What it has paid stays paid.",
            arguments.job
        )),
    }
}

fn run_begin_anew(arguments: &BeginAnew) -> Result<(), Error> {
    let config = provider::load(&arguments.config)?;
    let because: String = arguments.because.chars().take(REASON_LIMIT).collect();
    let because = because.replace(char::is_control, " ");
    let begun = provider::begin_anew(&config, &because)?;
    match arguments.json {
        true => output::print_json(&begun),
        false => output::print_text(words::begun(&begun, &because).trim_end()),
    }
}
