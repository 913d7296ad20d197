//! `heda provider setup`: from an invitation to a provider that serves, with a few answers.

use crate::commands::invite::own_identity;
use crate::options::CsvOptions;
use crate::output;
use heda::failure::Failure;
use heda::files::write_new;
use heda::identity::PeerFingerprint;
use heda::layout::{command, fitted, wrapped};
use heda::report;
use heda_dp::epsilon::Epsilon;
use heda_learn::schema::Schema;
use heda_learn::table::TableReader;
use heda_node::config::template::{self, ProviderSetup};
use heda_node::config::{ANSWER_ENDING, Answer, Invitation, Name};
use heda_node::identity::Identity;
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
    name: String,
    fingerprint: PeerFingerprint,
    rows: u64,
    answer_path: &'a Path,
    config_path: &'a Path,
    /// What the configuration allows, in words.
    policy: Vec<String>,
}

/// Makes everything, and says where the configuration is if it is to be served.
pub(crate) fn run(arguments: &Setup) -> Result<Option<PathBuf>, Failure> {
    let (invitation, schema) = Invitation::load(&arguments.invitation).map_err(Failure::input)?;
    let config = arguments.out.join("provider.toml");
    if config.exists() {
        let config = config.display();
        return Err(Failure::input(format!(
            "{config} is there already and is not overwritten; choose another folder by --out"
        )));
    }
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
    let listen = match arguments.listen {
        Some(listen) => listen,
        None => listen_of(&address)?,
    };
    let known = arguments.known.iter().map(|path| Answer::load(path));
    let known: Vec<Answer> = known.collect::<Result<_, _>>().map_err(Failure::input)?;
    let private = match arguments.allow_exact {
        true => None,
        false => {
            let cap = template::private_cap(&invitation, arguments.privacy_epsilon);
            Some(cap.map_err(Failure::input)?)
        }
    };
    let setup = ProviderSetup {
        private,
        invitation: &invitation,
        schema: &schema,
        rows: rows(arguments, &schema, Path::new(&data))?,
        data: std::fs::canonicalize(&data).map_err(Failure::input)?,
        csv: arguments.csv.format(),
        listen,
        epsilon_total: arguments.epsilon_total,
        known: &known,
    };
    let name: Name = name.parse().map_err(Failure::input)?;
    let identity = own_identity(name.as_str(), &arguments.out.join("identity"))?;
    let answer = Answer::new(
        &invitation,
        &schema,
        name.clone(),
        address,
        identity.fingerprint(),
        setup.policy(),
    );
    let answer_path = arguments.out.join(format!("{name}{ANSWER_ENDING}"));
    write_schema(&arguments.out.join("schema.toml"), &invitation, &schema)?;
    write_new(&answer_path, answer.to_toml().as_bytes())?;
    write_new(&config, setup.to_toml().as_bytes())?;
    if arguments.json {
        output::print_json(&ProviderWritten {
            name: name.to_string(),
            fingerprint: identity.fingerprint(),
            rows: setup.rows,
            answer_path: &answer_path,
            config_path: &config,
            policy: setup.policy(),
        })?;
        return Ok(None);
    }
    let words = words(&setup, &answer_path, &config, &identity, arguments.serve);
    output::print_text(&words)?;
    Ok(arguments.serve.then_some(config))
}

/// What an option says, or what is answered on a terminal.
fn given(option: &str, question: &str, said: Option<String>) -> Result<String, Failure> {
    if let Some(said) = said {
        return Ok(said);
    }
    let missing = || Failure::input(format!("{option} is missing: {question}"));
    if !std::io::stdin().is_terminal() {
        return Err(missing());
    }
    let mut terminal = std::io::stderr().lock();
    let _ = write!(terminal, "{question} ").and_then(|()| terminal.flush());
    drop(terminal);
    let mut line = String::new();
    let mut input = std::io::stdin().lock();
    input.read_line(&mut line).map_err(Failure::input)?;
    match line.trim() {
        "" => Err(missing()),
        line => Ok(line.to_owned()),
    }
}

/// An address is listened on as it is; for a host name, all addresses are.
fn listen_of(address: &str) -> Result<SocketAddr, Failure> {
    if let Ok(address) = address.parse() {
        return Ok(address);
    }
    let port = address
        .rsplit_once(':')
        .and_then(|(_, port)| port.parse().ok());
    let port: u16 = port.ok_or_else(|| {
        Failure::input(format!(
            "`{address}` is not an address of the form host:port"
        ))
    })?;
    Ok(SocketAddr::from(([0, 0, 0, 0], port)))
}

fn rows(arguments: &Setup, schema: &Schema, data: &Path) -> Result<u64, Failure> {
    let reader = TableReader::new(schema).with_format(arguments.csv.format());
    let (rows, report) = reader.read_file(data).map_err(Failure::input)?;
    output::warn(report.warnings());
    Ok(rows.rows() as u64)
}

/// The schema of the invitation, unless the same is there already.
fn write_schema(path: &Path, invitation: &Invitation, schema: &Schema) -> Result<(), Failure> {
    if !path.exists() {
        return write_new(path, invitation.schema.as_bytes());
    }
    let there = Schema::read(path).map_err(Failure::input)?;
    match there.fingerprint() == schema.fingerprint() {
        true => Ok(()),
        false => Err(Failure::input(format!(
            "{} is another schema and is not overwritten; choose another folder by --out",
            path.display()
        ))),
    }
}

fn words(
    setup: &ProviderSetup<'_>,
    answer: &Path,
    config: &Path,
    identity: &Identity,
    serve: bool,
) -> String {
    let policy = setup.policy();
    let policy: Vec<String> = policy
        .iter()
        .map(|line| fitted(&format!("  {line}"), 4))
        .collect();
    let from = &setup.invitation.from;
    let next = match serve {
        true => String::new(),
        false => {
            let config = report::quoted(&config.to_string_lossy());
            let line = format!("heda provider serve --config {config}");
            format!("\n\nThen:\n{}", command(&line, "  "))
        }
    };
    let taken = match setup.private {
        Some(cap) => {
            let words = format!(
                "Privacy budget: epsilon {} for all private jobs together, for as long as the ledger \
                 lives. To decide otherwise, change privacy_epsilon_total before the first job.",
                cap.epsilon
            );
            format!("\n\n{}", wrapped(&words, "").join("\n"))
        }
        None => String::new(),
    };
    let file = |path: &Path, words: &str| fitted(&format!("{}  {words}", path.display()), 2);
    format!(
        "{} rows fit the schema.\n\n{}\n{}\n{}{taken}\n\n{}\n{}\n{}{next}",
        setup.rows,
        file(answer, &format!("for {from}; nothing in it is secret")),
        file(config, "for you; this is what it allows:"),
        policy.join("\n"),
        wrapped(
            "To be sure that nobody changed a file on the way, compare by voice:",
            ""
        )
        .join("\n"),
        fitted(
            &format!(
                "  {from}'s number  {}",
                setup.invitation.fingerprint.spoken()
            ),
            4
        ),
        fitted(
            &format!("  your number  {}", identity.fingerprint().spoken()),
            4
        ),
    )
}
