//! `heda invite`: a data user asks providers to take part, by one file.

use crate::options::TrainingOptions;
use crate::output;
use heda::Job;
use heda::confirmed_schema;
use heda::failure::{Failure, Kind};
use heda::files::write_new;
use heda::identity::{self, Identity};
use heda_dp::epsilon::Epsilon;
use heda_dp::gdp::Delta;
use heda_node::config::template::{self, Minimised};
use heda_node::config::{Invitation, Name, PrivacyConfig, Share, Terms};
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
pub(crate) struct Arguments {
    /// What the data user is called: small letters, digits, `-` and `.`
    #[arg(long)]
    name: String,
    /// The schema that all parties will read their rows by
    #[arg(long, value_name = "FILE")]
    schema: PathBuf,
    /// What everyone calls the data; the name of the schema if not given
    #[arg(long, value_name = "NAME")]
    data_set: Option<String>,
    /// Folder for invitation.toml, job.toml, schema.toml, identity and answers
    #[arg(long, value_name = "DIR", default_value = ".")]
    out: PathBuf,
    /// Take a schema that still has marks of what was read from rows
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
    /// About how many training rows all providers have together, for a private job
    #[arg(long, value_name = "N", requires = "private")]
    rows: Option<NonZeroU64>,
    /// On how many others' noise each provider counts in a private job; all but one if not given
    #[arg(long, value_name = "N", requires = "private")]
    trusted: Option<u32>,
}

impl Arguments {
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

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let (text, schema) = confirmed_schema(&arguments.schema, arguments.unconfirmed)?;
    let data_set = arguments.data_set.as_deref().unwrap_or(schema.name());
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
    output::print_text(&words(arguments, &identity))
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
    let held_out = f64::from(job.holdout_permille()) / 1000.0;
    Ok(Terms {
        engine: job.engine(),
        iterations: NonZeroU32::new(job.gradients()).ok_or_else(bug)?,
        held_out: Share::new(held_out).ok_or_else(bug)?,
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

fn words(arguments: &Arguments, identity: &Identity) -> String {
    let out = arguments.out.display();
    let number = identity.fingerprint().spoken();
    format!(
        "{out}/invitation.toml  for every provider; nothing in it is secret\n\
         {out}/job.toml         for you; edit it if you want, the invitation is made from it\n\
         {out}/answers          for the answers of the providers\n\n\
         Your number, to compare by voice: {number}\n\n\
         When the answers are there: heda train {out}/job.toml --answers {out}/answers --out result"
    )
}
