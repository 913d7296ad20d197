//! `heda invite`: a data user asks providers to take part, by one file.

use crate::options::TrainingOptions;
use crate::output;
use heda::confirmed_schema;
use heda::failure::{Failure, Kind};
use heda::files::write_new;
use heda::identity::{self, Identity, PeerFingerprint};
use heda::layout::{command, fitted};
use heda::{Job, report};
use heda_dp::epsilon::Epsilon;
use heda_dp::gdp::Delta;
use heda_node::config::template::{self, Minimised};
use heda_node::config::{Invitation, Name, PrivacyConfig, Terms};
use std::num::{NonZeroU32, NonZeroU64};
use std::path::{Path, PathBuf};

/// Invite providers to a job: one file for all of them
///
/// Makes a key, if there is none yet, a job file and an invitation with the schema and the
/// data user's fingerprint. Send the invitation to every provider, put their answers into the
/// folder `answers`, and run `heda train job.toml --answers answers`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  heda invite --name university --schema schema.toml
  heda invite --name university --schema schema.toml --private 1 --rows 30000
  heda invite --name university --schema schema.toml --iterations 40 --out study")]
pub(crate) struct InviteArguments {
    /// Name of the data user: small letters, digits, `-` and `.`
    #[arg(long, value_name = "NAME")]
    name: String,
    /// The schema that all parties will read their rows by
    #[arg(long, value_name = "FILE")]
    schema: PathBuf,
    /// Name of the data set, the same at all parties; the name of the schema if not given
    #[arg(long, value_name = "NAME")]
    dataset: Option<String>,
    /// Folder for invitation.toml, job.toml, schema.toml, identity and answers
    #[arg(long, value_name = "DIR", default_value = ".")]
    out: PathBuf,
    /// Accept a schema that still has marks of what was read from rows
    #[arg(long)]
    unconfirmed: bool,
    #[command(flatten)]
    training: TrainingOptions,
    /// Invite to a private job: epsilon for everything that it reveals of a row
    #[arg(long, value_name = "EPSILON", requires = "rows")]
    private: Option<Epsilon>,
    /// Delta of a private job; by the number of rows if not given
    #[arg(long, value_name = "DELTA", requires = "private")]
    delta: Option<Delta>,
    /// Approximate number of training rows of all providers together, for a private job
    #[arg(long, value_name = "N", requires = "private")]
    rows: Option<NonZeroU64>,
    /// Number of other providers whose noise each provider counts on in a private job; all but one if not given
    #[arg(long, value_name = "N", requires = "private")]
    trusted: Option<u32>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// What was made.
#[derive(serde::Serialize)]
struct InvitationWritten<'a> {
    name: &'a str,
    fingerprint: PeerFingerprint,
    invitation_path: &'a Path,
    job_path: &'a Path,
    answers_path: &'a Path,
}

impl InviteArguments {
    fn privacy(&self) -> Option<PrivacyConfig> {
        Some(PrivacyConfig {
            epsilon: self.private?,
            delta: self.delta,
            rows: self.rows?,
            trusted: self.trusted,
            moments: None,
        })
    }
}

pub(crate) fn run(arguments: &InviteArguments) -> Result<(), Failure> {
    let (text, schema) = confirmed_schema(&arguments.schema, arguments.unconfirmed)?;
    let data_set = arguments.dataset.as_deref().unwrap_or(schema.name());
    let data_set: Name = data_set.parse().map_err(Failure::input)?;
    let privacy = arguments.privacy();
    output::warn(privacy.as_ref().and_then(PrivacyConfig::warning));
    let promise = privacy.map(|privacy| privacy.promise(&schema));
    let job = arguments
        .training
        .put_into(Job::builder(data_set.as_str(), schema));
    let job = match promise {
        Some(promise) => job.private(promise),
        None => job,
    };
    let job = job.build().map_err(Failure::input)?;
    let out = &arguments.out;
    let paths = ["invitation.toml", "job.toml"].map(|name| out.join(name));
    if let Some(there) = paths.iter().find(|path| path.exists()) {
        let there = there.display();
        return Err(Failure::input(format!(
            "{there} is there already and is not overwritten; choose another folder by --out"
        )));
    }
    let identity = own_identity(&arguments.name, &out.join("identity"))?;
    let invitation = Invitation::new(
        arguments.name.parse().map_err(Failure::input)?,
        identity.fingerprint(),
        data_set,
        text.clone(),
        terms(&job, privacy)?,
    );
    copy_schema(&arguments.schema, &out.join("schema.toml"), &text)?;
    std::fs::create_dir_all(out.join("answers")).map_err(Failure::input)?;
    let loss = serde_json::to_value(job.loss()).map_err(|e| Failure::new(Kind::Bug, e))?;
    let minimised = Minimised {
        loss: loss.as_str().unwrap_or_default(),
        iterations: job.iterations(),
        c: job.penalty().filter(|c| *c != 1.0),
        chosen: job.penalty_path().is_some(),
        balanced: arguments.training.is_balanced(),
    };
    let job = template::job(&invitation, &minimised);
    write_new(&paths[1], job.as_bytes())?;
    write_new(&paths[0], invitation.to_toml().as_bytes())?;
    match arguments.json {
        true => output::print_json(&InvitationWritten {
            name: &arguments.name,
            fingerprint: identity.fingerprint(),
            invitation_path: &paths[0],
            job_path: &paths[1],
            answers_path: &out.join("answers"),
        }),
        false => output::print_text(&words(arguments, &identity)),
    }
}

/// The identity in a folder, made if there is none.
pub(crate) fn own_identity(name: &str, folder: &Path) -> Result<Identity, Failure> {
    match folder.join("key.pem").exists() {
        true => Identity::load(folder).map_err(Failure::input),
        false => identity::create(name, folder, identity::DAYS),
    }
}

fn terms(job: &Job, privacy: Option<PrivacyConfig>) -> Result<Terms, Failure> {
    let bug = || Failure::new(Kind::Bug, "a job that was checked has no terms");
    Ok(Terms {
        engine: job.engine(),
        iterations: NonZeroU32::new(job.gradients()).ok_or_else(bug)?,
        held_out: job.held_out(),
        epsilon: None,
        privacy,
    })
}

/// The schema beside the job, unless that is where it came from.
fn copy_schema(from: &Path, to: &Path, text: &str) -> Result<(), Failure> {
    let same = std::fs::canonicalize(from).ok() == std::fs::canonicalize(to).ok();
    match (to.exists(), same) {
        (true, true) => Ok(()),
        (true, false) => Err(Failure::input(format!(
            "{} is another schema and is not overwritten; choose another folder by --out",
            to.display()
        ))),
        (false, _) => write_new(to, text.as_bytes()),
    }
}

fn words(arguments: &InviteArguments, identity: &Identity) -> String {
    let out = &arguments.out;
    let number = identity.fingerprint().spoken();
    let name = |name: &str| out.join(name).display().to_string();
    let files = [
        (
            "invitation.toml",
            "for every provider; nothing in it is secret",
        ),
        ("job.toml", "for you; edit it if you want"),
        ("answers", "for the answers of the providers"),
    ];
    let width = files.map(|(file, _)| name(file).chars().count());
    let width = width.into_iter().max().unwrap_or(0) + 2;
    let file = |(file, words)| fitted(&format!("{:<width$}{words}", name(file)), width);
    let quoted = |file: &str| report::quoted(&name(file));
    let train = format!(
        "heda train {} --answers {} --out result",
        quoted("job.toml"),
        quoted("answers")
    );
    format!(
        "{}\n\nYour number, to compare by voice: {number}\n\nWhen the answers are there:\n{}",
        files.map(file).join("\n"),
        command(&train, "  ")
    )
}
