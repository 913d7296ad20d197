//! `heda provider setup`: from an invitation to a provider that serves, with a few answers.

use crate::options::CsvOptions;
use crate::output;
use heda::Error;
use heda::identity::PeerFingerprint;
use heda::layout::{command, fitted, wrapped};
use heda::provider::{self, PrivacyChoice, SetupChoices, SetupDone};
use heda::{Epsilon, report};
use std::io::{BufRead, IsTerminal, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// Answer an invitation: key, configuration and the answer, made at once
///
/// Reads the invitation and your rows, makes a key if there is none yet, and writes schema.toml, a
/// provider.toml with comments, and the answer for the data user. What is not given as an option is
/// asked for. Nothing leaves the machine, and nothing that is there is overwritten.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  heda provider setup --invitation invitation.toml
  heda provider setup --invitation invitation.toml --name north --data rows.csv \\
    --address north.example:7443 --serve")]
pub(crate) struct Setup {
    /// The data user's invitation
    #[arg(long, value_name = "FILE")]
    invitation: PathBuf,
    /// Name of this provider: small letters, digits, `-` and `.`
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// The rows, CSV or Parquet
    #[arg(long, value_name = "FILE")]
    data: Option<PathBuf>,
    /// Host and port where the data user reaches this provider
    #[arg(long, value_name = "HOST:PORT")]
    address: Option<String>,
    /// Address and port to listen on, if not those of --address
    #[arg(long, value_name = "IP:PORT")]
    listen: Option<SocketAddr>,
    /// Epsilon that published columns may cost in all; nothing is published without it
    #[arg(long, value_name = "EPSILON")]
    epsilon_total: Option<Epsilon>,
    /// Epsilon that private jobs may reach in all; if not given twice what the invitation promises, at most 2
    #[arg(long, value_name = "EPSILON", conflicts_with = "allow_exact")]
    privacy_epsilon: Option<Epsilon>,
    /// Serve jobs that promise no epsilon and delta: their sums are exact
    #[arg(long)]
    allow_exact: bool,
    /// Answers of other providers; at least this many must then take part in every job
    #[arg(long, value_name = "FILE", num_args = 1..)]
    known: Vec<PathBuf>,
    /// Folder for identity, schema.toml, provider.toml and the answer
    #[arg(long, value_name = "DIR", default_value = ".")]
    out: PathBuf,
    /// Serve at once, until SIGTERM or SIGINT
    #[arg(long)]
    pub(super) serve: bool,
    /// Print one JSON object
    #[arg(long, conflicts_with = "serve")]
    json: bool,
    #[command(flatten)]
    csv: CsvOptions,
}

/// What was made.
#[derive(serde::Serialize)]
struct ProviderWritten<'a> {
    name: &'a str,
    fingerprint: PeerFingerprint,
    rows: u64,
    answer_path: &'a Path,
    config_path: &'a Path,
    /// What the configuration allows, in words.
    policy: &'a [String],
}

/// Makes everything, and says where the configuration is if it is to be served.
pub(crate) fn run(arguments: &Setup) -> Result<Option<PathBuf>, Error> {
    let setup = provider::Setup::of_invitation(&arguments.invitation, &arguments.out)?;
    let name = given(
        "--name",
        "What is this provider called?",
        arguments.name.clone(),
    )?;
    let data = arguments
        .data
        .as_ref()
        .map(|path| path.display().to_string());
    let data = given("--data", "Where are the rows (CSV or Parquet)?", data)?;
    let question = "Where does the data user reach this provider (host:port)?";
    let address = given("--address", question, arguments.address.clone())?;
    let done = setup.write(&SetupChoices {
        name,
        data: data.into(),
        csv: arguments.csv.format(),
        address,
        listen: arguments.listen,
        epsilon_total: arguments.epsilon_total,
        privacy: arguments.privacy(),
        known: arguments.known.clone(),
    })?;
    output::warn(done.warnings.iter().cloned());
    if arguments.json {
        output::print_json(&ProviderWritten {
            name: &done.name,
            fingerprint: done.fingerprint,
            rows: done.rows,
            answer_path: &done.answer,
            config_path: &done.config,
            policy: &done.policy,
        })?;
        return Ok(None);
    }
    output::print_text(&words(&done, arguments.serve))?;
    Ok(arguments.serve.then_some(done.config))
}

impl Setup {
    fn privacy(&self) -> PrivacyChoice {
        match (self.allow_exact, self.privacy_epsilon) {
            (true, _) => PrivacyChoice::Exact,
            (false, None) => PrivacyChoice::AsInvited,
            (false, Some(epsilon)) => PrivacyChoice::UpTo(epsilon),
        }
    }
}

/// What an option says, or what is answered on a terminal.
fn given(option: &str, question: &str, said: Option<String>) -> Result<String, Error> {
    if let Some(said) = said {
        return Ok(said);
    }
    let missing = || Error::input(format!("{option} is missing: {question}"));
    if !std::io::stdin().is_terminal() {
        return Err(missing());
    }
    let mut terminal = std::io::stderr().lock();
    let _ = write!(terminal, "{question} ").and_then(|()| terminal.flush());
    drop(terminal);
    let mut line = String::new();
    let mut input = std::io::stdin().lock();
    input.read_line(&mut line).map_err(Error::input)?;
    match line.trim() {
        "" => Err(missing()),
        line => Ok(line.to_owned()),
    }
}

fn words(done: &SetupDone, serve: bool) -> String {
    let policy: Vec<String> = (done.policy.iter())
        .map(|line| fitted(&format!("  {line}"), 4))
        .collect();
    let from = &done.from;
    let next = match serve {
        true => String::new(),
        false => {
            let config = report::quoted(&done.config.to_string_lossy());
            let line = format!("heda provider serve --config {config}");
            format!("\n\nThen:\n{}", command(&line, "  "))
        }
    };
    let taken = match done.privacy_epsilon {
        Some(epsilon) => {
            let words = format!(
                "Privacy budget: epsilon {epsilon} for all private jobs together, for as long as the ledger \
                 lives. To decide otherwise, change privacy_epsilon_total before the first job."
            );
            format!("\n\n{}", wrapped(&words, "").join("\n"))
        }
        None => String::new(),
    };
    let file = |path: &Path, words: &str| fitted(&format!("{}  {words}", path.display()), 2);
    format!(
        "{} rows fit the schema.\n\n{}\n{}\n{}{taken}\n\n{}\n{}\n{}{next}",
        done.rows,
        file(
            &done.answer,
            &format!("for {from}; nothing in it is secret")
        ),
        file(&done.config, "for you; this is what it allows:"),
        policy.join("\n"),
        wrapped(
            "To be sure that nobody changed a file on the way, compare by voice:",
            ""
        )
        .join("\n"),
        fitted(
            &format!("  {from}'s number  {}", done.from_fingerprint.spoken()),
            4
        ),
        fitted(&format!("  your number  {}", done.fingerprint.spoken()), 4),
    )
}
