//! `heda invite`: a data user asks providers to take part, by one file.

use crate::options::TrainingOptions;
use crate::output;
use heda::Error;
use heda::confirmed_schema;
use heda::identity::PeerFingerprint;
use heda::invitation::{Invite, InviteWritten};
use heda::layout::{command, fitted};
use heda::{Delta, Epsilon, Job, PrivacyConfig, report};
use std::num::NonZeroU64;
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

pub(crate) fn run(arguments: &InviteArguments) -> Result<(), Error> {
    let (text, schema) = confirmed_schema(&arguments.schema, arguments.unconfirmed)?;
    let data_set = arguments.dataset.clone();
    let data_set = data_set.unwrap_or_else(|| schema.name().to_owned());
    let privacy = arguments.privacy();
    output::warn(privacy.as_ref().and_then(PrivacyConfig::warning));
    let promise = privacy.map(|privacy| privacy.promise(&schema));
    let job = arguments.training.put_into(Job::builder(data_set, schema));
    let job = match promise {
        Some(promise) => job.private(promise),
        None => job,
    };
    let job = job.build()?;
    let invite = Invite {
        name: &arguments.name,
        job: &job,
        privacy,
        schema_path: &arguments.schema,
        schema_text: &text,
    };
    let written = invite.write(&arguments.out)?;
    match arguments.json {
        true => output::print_json(&InvitationWritten {
            name: &arguments.name,
            fingerprint: written.fingerprint,
            invitation_path: &written.invitation,
            job_path: &written.job,
            answers_path: &written.answers,
        }),
        false => output::print_text(&words(arguments, &written)),
    }
}

fn words(arguments: &InviteArguments, written: &InviteWritten) -> String {
    let out = &arguments.out;
    let number = written.fingerprint.spoken();
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
