//! `heda provider`: guard the data, serve jobs, and see what left.

mod know;
mod setup;

use crate::output;
use clap::{Args, Subcommand, ValueEnum};
use heda::confirmed_schema;
use heda::failure::Failure;
use heda::oversight::{
    self, BudgetReport, DisclosedReport, Finding, PrivateReport, StatusReport, Verdict,
};
use heda_node::config::ProviderConfig;
use heda_node::house::backup::backup;
use heda_node::house::ledger::{Ledger, LedgerError};
use heda_node::system::clock::SystemClock;
use heda_node::system::logging::{self, LogFormat};
use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::Arc;

/// Guard the data of one organisation: serve jobs, see what they cost and what left.
#[derive(Debug, Args)]
pub(crate) struct Provider {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    Setup(setup::Setup),
    Know(know::Know),
    /// Serve jobs until SIGTERM or SIGINT.
    Serve(Serve),
    /// Find what is wrong with data, schema, keys, ports, clock and permissions.
    Check(Query),
    /// Show what a job would cost and reveal, before it is allowed.
    Preview(Preview),
    /// Show jobs and refusals.
    Status(Query),
    /// Show what was released and what is left of epsilon.
    Budget(Query),
    /// Copy ledger and keys into a new folder, also while the provider serves.
    Backup(Backup),
    /// Take the ledger as it is, or an empty one if there is none, although entries are missing.
    BeginAnew(BeginAnew),
}

#[derive(Debug, Args)]
struct Serve {
    /// The provider's configuration.
    #[arg(long)]
    config: PathBuf,
    /// How log lines look.
    #[arg(long, value_enum, default_value_t = Log::Text)]
    log: Log,
    /// Serve by a schema that still has marks of what was read from rows.
    #[arg(long)]
    unconfirmed: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Log {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}

#[derive(Debug, Args)]
struct Query {
    /// The provider's configuration.
    #[arg(long)]
    config: PathBuf,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
struct Backup {
    /// The provider's configuration.
    #[arg(long)]
    config: PathBuf,
    /// The folder to make; keep it as safe as the originals.
    #[arg(long)]
    out: PathBuf,
}

#[derive(Debug, Args)]
struct BeginAnew {
    /// The provider's configuration.
    #[arg(long)]
    config: PathBuf,
    /// Why; the ledger keeps these words.
    #[arg(long)]
    because: String,
}

#[derive(Debug, Args)]
struct Preview {
    /// The provider's configuration.
    #[arg(long)]
    config: PathBuf,
    /// The data user's job file.
    #[arg(long)]
    job: PathBuf,
    /// Which data user of the configuration would ask.
    #[arg(long = "as")]
    peer: String,
}

pub(crate) fn run(arguments: Provider) -> Result<(), Failure> {
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
        Action::Backup(arguments) => run_backup(&arguments),
        Action::BeginAnew(arguments) => run_begin_anew(&arguments),
    }
}

fn load(path: &std::path::Path) -> Result<ProviderConfig, Failure> {
    ProviderConfig::load(path).map_err(Failure::input)
}

fn run_serve(arguments: &Serve) -> Result<(), Failure> {
    let config = load(&arguments.config)?;
    confirmed_schema(&config.schema, arguments.unconfirmed)?;
    logging::start(match arguments.log {
        Log::Text => LogFormat::Text,
        Log::Json => LogFormat::Json,
    });
    heda::Provider::serve(&config, |address| {
        // The only line on stdout: scripts that start a daemon wait for it.
        let _ = output::print_text(&format!("listening on {address}"));
    })
}

fn run_check(arguments: &Query) -> Result<(), Failure> {
    let config = load(&arguments.config)?;
    let findings = oversight::check(&config);
    if arguments.json {
        output::print_json(&findings)?;
    } else {
        output::print_text(findings_text(&findings).trim_end())?;
    }
    let bad = findings.iter().filter(|f| f.verdict == Verdict::Bad);
    match bad.count() {
        0 => Ok(()),
        1 => Err(Failure::input("one thing must be put right")),
        many => Err(Failure::input(format!("{many} things must be put right"))),
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

fn run_preview(arguments: &Preview) -> Result<(), Failure> {
    let config = load(&arguments.config)?;
    let preview = oversight::preview(&config, &arguments.job, &arguments.peer)?;
    output::print_text(&preview.words)?;
    preview.refusal.map_or(Ok(()), Err)
}

fn private_text(text: &mut String, account: &PrivateReport) {
    let words = |epsilon: Option<f64>| match epsilon {
        Some(epsilon) => format!("{:.4}", (epsilon * 1e4).ceil() / 1e4),
        None => "more than 1000".to_owned(),
    };
    if account.epsilon_total.is_none() && account.users.is_empty() {
        return;
    }
    let spent = words(account.epsilon_spent);
    let delta = account.delta;
    let _ = match account.epsilon_total {
        Some(total) => writeln!(
            text,
            "private jobs: epsilon {spent} of {total} at delta {delta:e} is spent for a row; a job may \
             still have {}",
            account.epsilon_left
        ),
        None => writeln!(
            text,
            "private jobs: none is served; epsilon {spent} at delta {delta:e} was spent for a row"
        ),
    };
    for user in &account.users {
        let _ = writeln!(
            text,
            "  {} ({}): epsilon {} in {} jobs",
            user.label,
            user.peer,
            words(user.epsilon),
            user.jobs
        );
    }
    if account.epsilon_with_published != account.epsilon_spent {
        let _ = writeln!(
            text,
            "with the published columns, in one account: epsilon {} at delta {delta:e}",
            words(account.epsilon_with_published)
        );
    }
}

fn disclosed_text(text: &mut String, disclosed: &[DisclosedReport]) {
    for entry in disclosed {
        let _ = writeln!(
            text,
            "{} ({}) learned {} numbers in all of its jobs, from {} different sets of providers",
            entry.label, entry.peer, entry.numbers, entry.circles
        );
    }
}

fn ledger_failure(error: LedgerError) -> Failure {
    Failure::input(error)
}

fn run_status(arguments: &Query) -> Result<(), Failure> {
    let config = load(&arguments.config)?;
    let status = oversight::status(&config)?;
    if arguments.json {
        return output::print_json(&status);
    }
    output::print_text(status_text(&status.report, &status.private).trim_end())
}

fn status_text(status: &StatusReport, private: &PrivateReport) -> String {
    let mut text = format!(
        "{} iterations, evaluations and rankings today (UTC)\n",
        status.iterations_today
    );
    if let Some(begun) = &status.begun {
        let _ = writeln!(text, "this ledger was begun because: {begun}");
    }
    private_text(&mut text, private);
    disclosed_text(&mut text, &status.disclosed);
    for job in &status.jobs {
        let _ = writeln!(
            text,
            "job {} of {} on {}: {}, engine {}, {} iterations, {} evaluations, {} rankings",
            job.job,
            job.label,
            job.data_set,
            job.state,
            job.engine,
            job.iterations,
            job.evaluations,
            job.rankings
        );
    }
    for refusal in &status.refusals {
        let _ = writeln!(
            text,
            "refused job {} of {}: {}",
            refusal.job, refusal.label, refusal.reason
        );
    }
    text
}

fn run_budget(arguments: &Query) -> Result<(), Failure> {
    let config = load(&arguments.config)?;
    let budget = oversight::budget(&config)?;
    if arguments.json {
        return output::print_json(&budget);
    }
    let mut text = budget_text(&budget.report);
    private_text(&mut text, &budget.private);
    output::print_text(text.trim_end())
}

fn run_backup(arguments: &Backup) -> Result<(), Failure> {
    let config = load(&arguments.config)?;
    let made = backup(&config, &arguments.out).map_err(Failure::input)?;
    let lines: Vec<String> = made.iter().map(|path| path.display().to_string()).collect();
    output::print_text(&lines.join("\n"))
}

/// The words of an operator stay on their line.
const REASON_LIMIT: usize = 500;

fn run_begin_anew(arguments: &BeginAnew) -> Result<(), Failure> {
    let config = load(&arguments.config)?;
    let because: String = arguments.because.chars().take(REASON_LIMIT).collect();
    let because = because.replace(char::is_control, " ");
    let begun = Ledger::begin_anew(&config.ledger_place(), &because, Arc::new(SystemClock));
    let (ledger, aside) = begun.map_err(ledger_failure)?;
    let budget = ledger.budget(config.data_set.as_str(), config.limits.epsilon_total);
    let budget = budget.map_err(ledger_failure)?;
    let mut text = format!(
        "a new ledger begins, because: {because}\nit knows of epsilon {} spent on {} and of {} \
         releases; if more was released, lower epsilon_total by what is missing\n",
        budget.epsilon_spent,
        budget.data_set,
        budget.releases.len()
    );
    if let Some(path) = aside {
        let _ = writeln!(text, "what could not be read is kept as {}", path.display());
    }
    output::print_text(&(text + "restart the daemon if it runs"))
}

fn budget_text(budget: &BudgetReport) -> String {
    let mut text = format!(
        "{}: epsilon {} of {} spent, {} left\n",
        budget.data_set, budget.epsilon_spent, budget.epsilon_total, budget.epsilon_left
    );
    disclosed_text(&mut text, &budget.disclosed);
    for release in &budget.releases {
        let columns: Vec<String> = release
            .charge
            .columns()
            .iter()
            .map(|column| format!("{} {}", column.name, column.epsilon))
            .collect();
        let _ = writeln!(
            text,
            "job {}: epsilon {} by {} ({}), sha256 {}",
            release.job,
            release.charge.total(),
            release.charge.mechanism(),
            columns.join(", "),
            release.sha256.as_deref().unwrap_or("not made yet")
        );
    }
    text
}
