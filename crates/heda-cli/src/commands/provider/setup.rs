//! `heda provider setup`: from an invitation to a provider that serves, with a few answers.

use crate::commands::invite::own_identity;
use crate::options::CsvOptions;
use crate::output;
use heda::failure::Failure;
use heda::files::write_new;
use heda_dp::epsilon::Epsilon;
use heda_learn::schema::Schema;
use heda_learn::table::TableReader;
use heda_node::config::{ANSWER_ENDING, Answer, Invitation, Name, template::ProviderSetup};
use heda_node::house::ledger::PrivateCap;
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
    /// What this provider is called: small letters, digits, `-` and `.`
    #[arg(long)]
    name: Option<String>,
    /// The rows, CSV or Parquet
    #[arg(long, value_name = "FILE")]
    data: Option<PathBuf>,
    /// Host and port where the data user reaches this provider
    #[arg(long, value_name = "HOST:PORT")]
    address: Option<String>,
    /// Address and port to listen on, if not those of --address
    #[arg(long, value_name = "ADDRESS:PORT")]
    listen: Option<SocketAddr>,
    /// What publishing columns with noise may cost in all; nothing is published without it
    #[arg(long, value_name = "E")]
    epsilon_total: Option<Epsilon>,
    /// Epsilon that private jobs may reach in all; twice what the invitation promises if not given
    #[arg(long, value_name = "E", conflicts_with = "allow_exact")]
    privacy_epsilon: Option<Epsilon>,
    /// Serve jobs that promise no epsilon and delta: their sums are exact
    #[arg(long)]
    allow_exact: bool,
    /// Answers of other providers; at least so many must then take part in every job
    #[arg(long, value_name = "FILE", num_args = 1..)]
    known: Vec<PathBuf>,
    /// Folder for identity, schema.toml, provider.toml and the answer
    #[arg(long, value_name = "DIR", default_value = ".")]
    out: PathBuf,
    /// Serve at once, until SIGTERM or SIGINT
    #[arg(long)]
    serve: bool,
    #[command(flatten)]
    csv: CsvOptions,
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
    let private = private_cap(arguments, &invitation)?;
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
    let words = words(&setup, &answer_path, &config, &identity, arguments.serve);
    output::print_text(&words)?;
    Ok(arguments.serve.then_some(config))
}

/// What private jobs may cost in all; nothing if exact sums are allowed.
fn private_cap(arguments: &Setup, invitation: &Invitation) -> Result<Option<PrivateCap>, Failure> {
    if arguments.allow_exact {
        return Ok(None);
    }
    let Some(privacy) = &invitation.terms.privacy else {
        return Err(Failure::input(format!(
            "{} invites to a job without a guarantee: its sums are exact. Ask for a private one (`heda \
             invite --private 1 --rows N`), or serve exact sums by --allow-exact",
            invitation.from
        )));
    };
    // Room for what has to be asked again after a break.
    let twice = privacy.epsilon.billionths().saturating_mul(2);
    let twice = Epsilon::from_billionths(twice).unwrap_or(privacy.epsilon);
    let epsilon = arguments.privacy_epsilon.unwrap_or(twice);
    Ok(Some(PrivateCap {
        epsilon,
        per_user: epsilon,
        delta: privacy.delta(),
    }))
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
    let (answer, config) = (answer.display(), config.display());
    let policy: Vec<String> = setup
        .policy()
        .iter()
        .map(|line| format!("  {line}"))
        .collect();
    let from = &setup.invitation.from;
    let next = match serve {
        true => String::new(),
        false => format!("\n\nThen: heda provider serve --config {config}"),
    };
    format!(
        "{} rows fit the schema.\n\n\
         {answer}  for {from}; nothing in it is secret\n\
         {config}  for you; this is what it allows:\n{}\n\n\
         To be sure that nobody changed a file on the way, compare by voice:\n  \
         {from}'s number  {}\n  your number  {}{next}",
        setup.rows,
        policy.join("\n"),
        setup.invitation.fingerprint.spoken(),
        identity.fingerprint().spoken(),
    )
}
