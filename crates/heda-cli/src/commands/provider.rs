//! `heda provider`: guard the data, serve jobs, and see what left.

mod know;
mod setup;

use crate::commands::schema_file::confirmed_schema;
use crate::output;
use clap::{Args, Subcommand, ValueEnum};
use heda::failure::{Failure, Kind};
use heda_dp::gdp::Cost;
use heda_learn::schema::Schema;
use heda_node::config::{JobConfig, ProviderConfig};
use heda_node::house::backup::backup;
use heda_node::house::check::{Finding, Verdict, check};
use heda_node::house::ledger::{
    BudgetReport, DisclosedReport, Ledger, LedgerError, LedgerReader, PrivateReport, StatusReport,
};
use heda_node::house::policy::{Grant, Policy};
use heda_node::house::provider_data::ProviderData;
use heda_node::identity::trust::PeerIdentity;
use heda_node::system::clock::{Clock, SystemClock};
use heda_node::system::logging::{self, LogFormat};
use serde::Serialize;
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
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let findings = check(&config, &clock);
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
    let job = JobConfig::load(&arguments.job).map_err(Failure::input)?;
    let data = ProviderData::load(&config).map_err(Failure::input)?;
    let entry = config
        .allowed
        .iter()
        .find(|peer| peer.name.as_str() == arguments.peer);
    let entry = entry.ok_or_else(|| {
        Failure::input(format!("no [[allow]] entry is called {}", arguments.peer))
    })?;
    let peer = PeerIdentity {
        label: arguments.peer.clone(),
        fingerprint: entry
            .fingerprint
            .ok_or_else(|| Failure::input("only peers with a fingerprint can be previewed"))?,
    };
    let own = heda_node::identity::Identity::load(&config.identity).map_err(Failure::input)?;
    let facts = data.facts(job.holdout_permille());
    let mut request = job.request(&facts, own.fingerprint());
    // One model a class, or one for two classes; a plan knows its gradients.
    request.iterations *= match data.dataset().classes().len() as u64 {
        2 => 1,
        classes => classes,
    };
    if let Ok(schema) = Schema::read(&job.schema) {
        request.schema = schema.fingerprint().to_string();
    }
    if job.data_set != config.data_set {
        let words = format!(
            "the job asks for the data set {}, this provider has {}",
            job.data_set, config.data_set
        );
        return Err(Failure::new(Kind::Refused, words));
    }
    let policy = Policy::new(&config);
    let learned = learned(&config, &peer)?;
    let account = account(&config)?;
    output::print_text(&policy.preview(&peer, &facts, &request, learned, account.as_ref()))?;
    match policy.evaluate(&peer, &facts, &request) {
        Ok(grant) => room(&config, &grant, account.as_ref()),
        Err(refusal) => Err(Failure::new(Kind::Refused, refusal)),
    }
}

/// Whether the budget of private jobs has room for one more.
fn room(
    config: &ProviderConfig,
    grant: &Grant,
    account: Option<&PrivateReport>,
) -> Result<(), Failure> {
    let cap = config.limits.private_cap();
    let (Some(each), Some(cap)) = (grant.private_gradient, cap) else {
        return Ok(());
    };
    let spent = account.map_or(Cost::ZERO, |account| account.spent);
    match spent.plus(each.times(grant.iterations)) <= cap.total() {
        true => Ok(()),
        false => Err(Failure::new(
            Kind::Refused,
            "the budget of private jobs has no room for this one",
        )),
    }
}

/// Numbers that a data user has learned so far; none before there is a ledger.
fn learned(config: &ProviderConfig, peer: &PeerIdentity) -> Result<u64, Failure> {
    if !config.ledger_place().ledger.exists() {
        return Ok(0);
    }
    let status = reader(config)?.status(config.data_set.as_str(), SystemClock.now());
    let status = status.map_err(ledger_failure)?;
    let own = peer.fingerprint.to_string();
    let entry = status.disclosed.into_iter().find(|entry| entry.peer == own);
    Ok(entry.map_or(0, |entry| entry.numbers))
}

/// The account of private jobs; none before there is a ledger.
fn account(config: &ProviderConfig) -> Result<Option<PrivateReport>, Failure> {
    if !config.ledger_place().ledger.exists() {
        return Ok(None);
    }
    private(&reader(config)?, config).map(Some)
}

fn private(reader: &LedgerReader, config: &ProviderConfig) -> Result<PrivateReport, Failure> {
    let cap = config.limits.private_cap();
    let report = reader.private(config.data_set.as_str(), cap.as_ref());
    report.map_err(ledger_failure)
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

fn reader(config: &ProviderConfig) -> Result<LedgerReader, Failure> {
    let place = config.ledger_place();
    if !place.ledger.exists() && !place.anchor.exists() {
        let path = place.ledger.display();
        return Err(Failure::input(format!(
            "there is no ledger {path} yet; it is made by the first `provider serve`"
        )));
    }
    LedgerReader::open(&place).map_err(ledger_failure)
}

fn ledger_failure(error: LedgerError) -> Failure {
    Failure::input(error)
}

fn run_status(arguments: &Query) -> Result<(), Failure> {
    let config = load(&arguments.config)?;
    let reader = reader(&config)?;
    let report = reader
        .status(config.data_set.as_str(), SystemClock.now())
        .map_err(ledger_failure)?;
    let private = private(&reader, &config)?;
    if arguments.json {
        return output::print_json(&WithPrivate { report, private });
    }
    output::print_text(status_text(&report, &private).trim_end())
}

/// A report of the ledger with the account of private jobs.
#[derive(Debug, Serialize)]
struct WithPrivate<T> {
    #[serde(flatten)]
    report: T,
    private: PrivateReport,
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
    // Without a budget nothing is published any more; what was published stays on the books.
    let reader = reader(&config)?;
    let report = reader
        .budget(config.data_set.as_str(), config.limits.epsilon_total)
        .map_err(ledger_failure)?;
    let private = private(&reader, &config)?;
    if arguments.json {
        return output::print_json(&WithPrivate { report, private });
    }
    let mut text = budget_text(&report);
    private_text(&mut text, &private);
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
