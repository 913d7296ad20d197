//! Invitations and answers: one file each way, so that nobody copies fingerprints or schemas by
//! hand.
//!
//! A data user sends everyone the same invitation: who asks, for what, by which schema. A provider
//! answers with one file: where it is, who it is, what it allows. Both are as trustworthy as the way
//! they came by; people who want to be sure compare the numbers of
//! [`PeerFingerprint::spoken`] by voice.

use super::privacy::PrivacyConfig;
use super::values::{Name, Share};
use super::{BadContent, ConfigError, read_text};
use crate::guard::policy::{DataFacts, JobRequest};
use crate::identity::fingerprint::PeerFingerprint;
use heda_dp::epsilon::Epsilon;
use heda_job::description::{Job, JobFault, RawJob};
use heda_job::engine::Engine;
use heda_job::proposal::Spending;
use heda_learn::described;
use heda_learn::schema::Schema;
use rustls::pki_types::SubjectPublicKeyInfoDer;
use serde::Serialize;
use std::io::ErrorKind;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};

/// The version of both formats.
pub(super) const FORMAT: u32 = 1;
/// How the name of an answer ends.
pub const ANSWER_ENDING: &str = ".answer.toml";
/// Where `heda invite` makes room for them, beside the job file.
pub const ANSWERS_FOLDER: &str = "answers";
/// Most answers that a folder may hold.
pub(super) const MOST_ANSWERS: usize = 1000;

described! {
    /// What a data user sends to every provider; `heda invite` writes it, and nothing in it is secret.
    #[derive(Debug, Clone, PartialEq, Serialize)]
    pub struct Invitation {
        /// Version of the format.
        #[key("1")]
        pub format: u32,
        /// Name of the data user.
        #[key("\"university\"")]
        pub from: Name,
        /// Fingerprint of its key.
        #[key("\"sha256:00000000000000000000000000000000000000000000000000000000000000aa\"")]
        pub fingerprint: PeerFingerprint,
        /// Name of the data set, the same for everyone.
        #[key("\"ward-2026\"")]
        pub data_set: Name,
        /// The whole text of the schema.
        #[key("\"format = 1 …\"")]
        pub schema: String,
        /// What the data user will ask for.
        pub terms: Terms,
    }
}

described! {
    /// What a data user will ask for, as far as a provider's limits depend on it.
    #[derive(Debug, Clone, PartialEq, Serialize)]
    pub struct Terms {
        /// How gradients are computed.
        #[key("\"resident\"")]
        pub engine: Engine,
        /// Largest number of iterations of each model, with all penalties that are tried.
        #[key("40")]
        pub iterations: NonZeroU32,
        /// Share of the rows that is held out for evaluation.
        #[key("0.2")]
        pub held_out: Share,
        /// Epsilon that publishing may cost; without it nothing is published.
        #[key("1.5")]
        #[serde(skip_serializing_if = "Option::is_none")]
        pub epsilon: Option<Epsilon>,
        /// The guarantee for everything that the job reveals; without it sums are exact.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub privacy: Option<PrivacyConfig>,
    }
}

described! {
    /// What a provider sends back; `heda provider setup` writes it, and nothing in it is secret.
    #[derive(Debug, Clone, PartialEq, Serialize)]
    pub struct Answer {
        /// Version of the format.
        #[key("1")]
        pub format: u32,
        /// Name of the provider.
        #[key("\"hospital-a\"")]
        pub name: Name,
        /// Host and port where the data user reaches it.
        #[key("\"a.example:7443\"")]
        pub address: String,
        /// Fingerprint of its key.
        #[key("\"sha256:00000000000000000000000000000000000000000000000000000000000000aa\"")]
        pub fingerprint: PeerFingerprint,
        /// Name of the data set.
        #[key("\"ward-2026\"")]
        pub data_set: Name,
        /// Fingerprint of the schema that it reads its rows by.
        #[key("\"sha256:00000000000000000000000000000000000000000000000000000000000000aa\"")]
        pub schema: String,
        /// What it allows, in words.
        #[key("[\"university may ask, nobody else\"]")]
        pub policy: Vec<String>,
    }
}

fn of_this_format(format: u32, path: &Path) -> Result<(), ConfigError> {
    match format {
        FORMAT => Ok(()),
        other => Err(ConfigError::Content {
            path: path.to_owned(),
            cause: BadContent::Format(other),
        }),
    }
}

impl Invitation {
    /// The usual name of the file.
    pub const FILE: &str = "invitation.toml";

    /// An invitation of the present format.
    pub fn new(
        from: Name,
        fingerprint: PeerFingerprint,
        data_set: Name,
        schema: String,
        terms: Terms,
    ) -> Self {
        Self {
            format: FORMAT,
            from,
            fingerprint,
            data_set,
            schema,
            terms,
        }
    }

    /// Reads an invitation and the schema in it.
    pub fn load(path: &Path) -> Result<(Self, Schema), ConfigError> {
        let invitation: Self = read_text(path, Self::FILE, super::INVITATION_LIMIT)?;
        of_this_format(invitation.format, path)?;
        let name = format!("{}: schema", path.display());
        let schema = Schema::parse(&invitation.schema, &name).map_err(ConfigError::Schema)?;
        Ok((invitation, schema))
    }

    /// As a file, with a word on what it is.
    pub fn to_toml(&self) -> String {
        let text = "# An invitation to train a model together, made by `heda invite`. A provider \
                    takes it with\n# `heda provider setup --invitation FILE`. Nothing in it is \
                    secret.\n";
        text.to_owned() + &toml::to_string(self).unwrap_or_default()
    }

    /// What a provider with such rows would be asked for, by a data user with so many providers of
    /// whom nothing else is known yet.
    ///
    /// # Errors
    /// If the terms are not those of a job.
    pub fn request(
        &self,
        schema: &Schema,
        facts: &DataFacts,
        providers: usize,
    ) -> Result<JobRequest, JobFault> {
        let terms = &self.terms;
        let mut raw = RawJob::new(self.data_set.as_str(), schema);
        raw.engine = terms.engine;
        raw.training.settings.max_iterations = terms.iterations.get();
        raw.held_out = terms.held_out.get();
        raw.spending = terms.epsilon.map(Spending::Total);
        raw.privacy = terms.privacy.map(|privacy| privacy.promise(schema));
        let job = Job::try_from(raw)?;
        let stranger = |number: usize| {
            let key = format!("a provider that is not known yet, {number}");
            PeerFingerprint::of_key(&SubjectPublicKeyInfoDer::from(key.into_bytes()))
        };
        let others = (1..providers).map(stranger).collect();
        let scored = terms.privacy.is_none();
        let named = ("invitation".to_owned(), &job);
        Ok(JobRequest::of(named, facts, scored, others))
    }

    /// Iterations of all models: one a class, or one for two classes.
    pub fn iterations(&self, schema: &Schema) -> u64 {
        u64::from(self.terms.iterations.get()) * schema.label().models() as u64
    }
}

impl Answer {
    /// The usual name of the file.
    pub const FILE: &str = "NAME.answer.toml";

    /// An answer of the present format.
    pub fn new(
        invitation: &Invitation,
        schema: &Schema,
        name: Name,
        address: String,
        fingerprint: PeerFingerprint,
        policy: Vec<String>,
    ) -> Self {
        Self {
            format: FORMAT,
            name,
            address,
            fingerprint,
            data_set: invitation.data_set.clone(),
            schema: schema.fingerprint().to_string(),
            policy,
        }
    }

    /// Reads an answer.
    pub fn load(path: &Path) -> Result<Self, ConfigError> {
        let answer: Self = read_text(path, Self::FILE, super::FILE_LIMIT)?;
        of_this_format(answer.format, path)?;
        Ok(answer)
    }

    /// Reads all answers of a folder, in the order of their file names.
    pub fn in_folder(folder: &Path) -> Result<Vec<Self>, ConfigError> {
        let failed = |cause| ConfigError::File {
            path: folder.to_owned(),
            cause,
        };
        let mut paths: Vec<PathBuf> = Vec::new();
        for entry in std::fs::read_dir(folder).map_err(failed)? {
            let path = entry.map_err(failed)?.path();
            let name = path.file_name().map(|name| name.to_string_lossy());
            if name.is_some_and(|name| name.ends_with(ANSWER_ENDING)) {
                paths.push(path);
            }
        }
        if paths.is_empty() || paths.len() > MOST_ANSWERS {
            return Err(ConfigError::Content {
                path: folder.to_owned(),
                cause: BadContent::Answers(paths.len()),
            });
        }
        paths.sort();
        paths.iter().map(|path| Self::load(path)).collect()
    }

    /// The answers to the invitation of a job file: those of a folder, or, if none is named, those in
    /// `answers` beside the file, where `heda invite` makes room for them.
    pub fn of_job(job: &Path, folder: Option<&Path>) -> Result<Vec<Self>, ConfigError> {
        if let Some(folder) = folder {
            return Self::in_folder(folder);
        }
        let folder = super::beside(job, Path::new(ANSWERS_FOLDER));
        match Self::in_folder(&folder) {
            Err(ConfigError::File { cause, .. }) if cause.kind() == ErrorKind::NotFound => {
                Ok(Vec::new())
            }
            Err(ConfigError::Content {
                cause: BadContent::Answers(0),
                ..
            }) => Ok(Vec::new()),
            found => found,
        }
    }

    /// As a file, with a word on what it is.
    pub fn to_toml(&self) -> String {
        let text = "# A provider's answer to an invitation, made by `heda provider setup`. The data \
                    user puts it\n# beside those of the others and runs `heda train job.toml \
                    --answers FOLDER`. Nothing in it is secret.\n";
        text.to_owned() + &toml::to_string(self).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCHEMA: &str = "format = 1\nname = \"w\"\n[label]\ncolumn = \"y\"\nclasses = [\"a\", \
        \"b\", \"c\"]\n[[column]]\nname = \"age\" # '''\nkind = \"numeric\"\nbounds = [0, 120]\n";

    fn invitation() -> Invitation {
        let print = format!("sha256:{}", "ab".repeat(32));
        let text = format!(
            "format = 1\nfrom = \"university\"\nfingerprint = \"{print}\"\ndata_set = \"ward\"\n\
             schema = {}\n[terms]\nengine = \"{}\"\niterations = 20\nheld_out = 0.2\n",
            toml::Value::from(SCHEMA),
            Engine::default().name()
        );
        toml::from_str(&text).unwrap()
    }

    fn written(name: &str, text: &str) -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        (folder, path)
    }

    #[test]
    fn an_invitation_comes_back_with_its_schema() {
        let sent = invitation();
        let (_folder, path) = written("invitation.toml", &sent.to_toml());
        let (received, schema) = Invitation::load(&path).unwrap();
        assert_eq!(received, sent);
        assert_eq!(schema, Schema::parse(SCHEMA, "x").unwrap());
        assert_eq!(received.iterations(&schema), 60, "three models");
    }

    #[test]
    fn answers_are_found_by_their_ending() {
        let sent = invitation();
        let schema = Schema::parse(SCHEMA, "x").unwrap();
        let policy = vec!["nothing is published".to_owned()];
        let (name, address) = (sent.from.clone(), "north.example:7443".to_owned());
        let answer = Answer::new(&sent, &schema, name, address, sent.fingerprint, policy);
        let (folder, _) = written("b.answer.toml", &answer.to_toml());
        std::fs::write(folder.path().join("a.answer.toml"), answer.to_toml()).unwrap();
        std::fs::write(folder.path().join("notes.txt"), "x").unwrap();
        let found = Answer::in_folder(folder.path()).unwrap();
        assert_eq!(found, [answer.clone(), answer]);
        let (folder, _) = written("notes.txt", "x");
        let error = Answer::in_folder(folder.path()).unwrap_err();
        assert!(error.to_string().contains("0 files end in .answer.toml"));
    }

    #[test]
    fn what_is_wrong_is_named() {
        let good = invitation().to_toml();
        for (from, to, word) in [
            ("format = 1\nfrom", "format = 2\nfrom", "format 2"),
            ("from = ", "sender = ", "sender"),
            ("[0, 120]", "[120, 0]", "reversed"),
            ("sha256:ab", "sha256:", "64 hexadecimal digits"),
        ] {
            assert!(good.contains(from), "{from} in {good}");
            let (_folder, path) = written("i.toml", &good.replacen(from, to, 1));
            let error = Invitation::load(&path).unwrap_err().to_string();
            assert!(error.contains(word), "{error}");
        }
    }
}
