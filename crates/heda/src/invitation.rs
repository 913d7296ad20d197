//! A data user asks providers to take part, by one file for all of them.

use crate::error::{Error, Remedy};
use crate::files::write_new;
use crate::identity::{self, PeerFingerprint};
use crate::job::Job;
use heda_job::proposal::ClassWeight;
use heda_node::config::template::{self, Minimised};
use heda_node::config::{Invitation, PrivacyConfig, Terms};
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};

/// What providers are invited to.
#[derive(Debug)]
pub struct Invite<'a> {
    /// What the data user is called: small letters, digits, `-` and `.`.
    pub name: &'a str,
    /// The job; a private one has been built with what `privacy` promises.
    pub job: &'a Job,
    /// What a private job promises, as its file says it.
    pub privacy: Option<PrivacyConfig>,
    /// Where the schema is.
    pub schema_path: &'a Path,
    /// Its text, which goes into the invitation.
    pub schema_text: &'a str,
}

/// What was written.
#[derive(Debug)]
pub struct InviteWritten {
    /// The data user's key.
    pub fingerprint: PeerFingerprint,
    /// For every provider; nothing in it is secret.
    pub invitation: PathBuf,
    /// The job, for the data user.
    pub job: PathBuf,
    /// A folder for the answers of the providers.
    pub answers: PathBuf,
}

impl Invite<'_> {
    /// Writes invitation, job and schema into a folder, with a key if there is none yet. Nothing that is
    /// there is overwritten.
    ///
    /// # Errors
    /// If the name cannot be used or a file cannot be written.
    pub fn write(&self, folder: &Path) -> Result<InviteWritten, Error> {
        let written = |fingerprint| InviteWritten {
            fingerprint,
            invitation: folder.join("invitation.toml"),
            job: folder.join("job.toml"),
            answers: folder.join("answers"),
        };
        let paths = ["invitation.toml", "job.toml"].map(|name| folder.join(name));
        if let Some(there) = paths.iter().find(|path| path.exists()) {
            let there = there.display();
            let words = format!("{there} is there already and is not overwritten");
            return Err(Error::input(words).with_remedy(Remedy::OtherFolder));
        }
        let identity = identity::load_or_create(self.name, &folder.join("identity"))?;
        let written = written(identity.fingerprint());
        let invitation = Invitation::new(
            self.name.parse().map_err(Error::input)?,
            written.fingerprint,
            self.job.description().data_set().clone(),
            self.schema_text.to_owned(),
            self.terms()?,
        );
        self.copy_schema(&folder.join("schema.toml"))?;
        std::fs::create_dir_all(&written.answers).map_err(Error::input)?;
        write_new(&written.job, self.job_file(&invitation).as_bytes())?;
        write_new(&written.invitation, invitation.to_toml().as_bytes())?;
        Ok(written)
    }

    fn job_file(&self, invitation: &Invitation) -> String {
        let job = self.job;
        let minimised = Minimised {
            loss: job.loss(),
            iterations: job.iterations(),
            c: job.penalty().filter(|c| *c != 1.0),
            chosen: job.penalty_path().is_some(),
            balanced: job.class_weight() == Some(&ClassWeight::Balanced),
        };
        template::job(invitation, &minimised)
    }

    fn terms(&self) -> Result<Terms, Error> {
        let bug = || Error::bug("a job that was checked has no terms");
        Ok(Terms {
            engine: self.job.engine(),
            iterations: NonZeroU32::new(self.job.gradients()).ok_or_else(bug)?,
            held_out: self.job.held_out(),
            epsilon: None,
            privacy: self.privacy,
        })
    }

    /// The schema beside the job, unless that is where it came from.
    fn copy_schema(&self, to: &Path) -> Result<(), Error> {
        let same = std::fs::canonicalize(self.schema_path).ok() == std::fs::canonicalize(to).ok();
        match (to.exists(), same) {
            (true, true) => Ok(()),
            (true, false) => {
                let there = to.display();
                let words = format!("{there} is another schema and is not overwritten");
                Err(Error::input(words).with_remedy(Remedy::OtherFolder))
            }
            (false, _) => write_new(to, self.schema_text.as_bytes()),
        }
    }
}
