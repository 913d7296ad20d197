//! From an invitation to a provider that can serve: key, configuration, and the answer.

use crate::data::{self, CsvFormat};
use crate::error::{Error, Remedy};
use crate::files::write_new;
use crate::identity::{self, PeerFingerprint};
use heda_dp::epsilon::Epsilon;
use heda_learn::schema::Schema;
use heda_node::config::template::{self, ProviderSetup};
use heda_node::config::{ANSWER_ENDING, Answer, Invitation};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// An invitation that is to be answered into a folder.
#[derive(Debug)]
pub struct Setup {
    invitation: Invitation,
    schema: Schema,
    folder: PathBuf,
    config: PathBuf,
}

/// What an operator decides.
#[derive(Debug, Clone)]
pub struct SetupChoices {
    /// What the provider is called: small letters, digits, `-` and `.`.
    pub name: String,
    /// The rows, CSV or Parquet.
    pub data: PathBuf,
    /// How they are written.
    pub csv: CsvFormat,
    /// Host and port where the data user reaches the provider.
    pub address: String,
    /// Where to listen, if not there.
    pub listen: Option<SocketAddr>,
    /// ε that published columns may cost in all; nothing is published without it.
    pub epsilon_total: Option<Epsilon>,
    /// What private jobs may cost, or that exact sums are served.
    pub privacy: PrivacyChoice,
    /// Answers of other providers; at least as many must take part in every job.
    pub known: Vec<PathBuf>,
}

/// What jobs must promise.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum PrivacyChoice {
    /// Private jobs up to twice the ε of the invitation, and at most 2.
    AsInvited,
    /// Private jobs up to this ε.
    UpTo(Epsilon),
    /// Jobs without a guarantee are served: their sums are exact.
    Exact,
}

/// A provider that can serve.
#[derive(Debug)]
pub struct SetupDone {
    /// What it is called.
    pub name: String,
    /// Its key.
    pub fingerprint: PeerFingerprint,
    /// Who invited.
    pub from: String,
    /// The key of who invited.
    pub from_fingerprint: PeerFingerprint,
    /// How many rows fit the schema.
    pub rows: u64,
    /// What happened to rows on the way, a sentence each.
    pub warnings: Vec<String>,
    /// For the data user.
    pub answer: PathBuf,
    /// What [`super::Provider::serve`] takes.
    pub config: PathBuf,
    /// What the configuration allows, a sentence each.
    pub policy: Vec<String>,
    /// ε that private jobs may reach in all, if only they are served.
    pub privacy_epsilon: Option<Epsilon>,
}

impl Setup {
    /// Reads an invitation that is to be answered into a folder.
    ///
    /// # Errors
    /// If it cannot be used, or the folder has a configuration already.
    pub fn of_invitation(invitation: &Path, folder: &Path) -> Result<Self, Error> {
        let (invitation, schema) = Invitation::load(invitation).map_err(Error::input)?;
        let config = folder.join("provider.toml");
        if config.exists() {
            let config = config.display();
            let words = format!("{config} is there already and is not overwritten");
            return Err(Error::input(words).with_remedy(Remedy::OtherFolder));
        }
        Ok(Self {
            invitation,
            schema,
            folder: folder.to_owned(),
            config,
        })
    }

    /// Reads the rows and writes key, schema, configuration and answer. Nothing that is there is
    /// overwritten.
    ///
    /// # Errors
    /// If the rows do not fit, a choice cannot be used, or a file cannot be written.
    pub fn write(&self, choices: &SetupChoices) -> Result<SetupDone, Error> {
        let listen = match choices.listen {
            Some(listen) => listen,
            None => listen_of(&choices.address)?,
        };
        let known = choices.known.iter().map(|path| Answer::load(path));
        let known: Vec<Answer> = known.collect::<Result<_, _>>().map_err(Error::input)?;
        let cap = |epsilon| template::private_cap(&self.invitation, epsilon).map(Some);
        let private = match choices.privacy {
            PrivacyChoice::Exact => Ok(None),
            PrivacyChoice::AsInvited => cap(None),
            PrivacyChoice::UpTo(epsilon) => cap(Some(epsilon)),
        };
        let private = private.map_err(Error::input)?;
        let (rows, report) = data::read(&choices.data, &self.schema, choices.csv)?;
        let setup = ProviderSetup {
            private,
            invitation: &self.invitation,
            schema: &self.schema,
            rows: rows.rows() as u64,
            data: std::fs::canonicalize(&choices.data).map_err(Error::input)?,
            csv: choices.csv,
            listen,
            epsilon_total: choices.epsilon_total,
            known: &known,
        };
        let (answer, fingerprint) = self.write_files(&setup, choices)?;
        Ok(SetupDone {
            name: choices.name.clone(),
            fingerprint,
            from: self.invitation.from.to_string(),
            from_fingerprint: self.invitation.fingerprint,
            rows: setup.rows,
            warnings: report.warnings(),
            answer,
            config: self.config.clone(),
            policy: setup.policy(),
            privacy_epsilon: private.map(|cap| cap.epsilon),
        })
    }

    /// Where the answer is, and the provider's key.
    fn write_files(
        &self,
        setup: &ProviderSetup<'_>,
        choices: &SetupChoices,
    ) -> Result<(PathBuf, PeerFingerprint), Error> {
        let name: heda_node::config::Name = choices.name.parse().map_err(Error::input)?;
        let identity = identity::load_or_create(name.as_str(), &self.folder.join("identity"))?;
        let path = self.folder.join(format!("{name}{ANSWER_ENDING}"));
        let answer = Answer::new(
            &self.invitation,
            &self.schema,
            name,
            choices.address.clone(),
            identity.fingerprint(),
            setup.policy(),
        );
        self.write_schema()?;
        write_new(&path, answer.to_toml().as_bytes())?;
        write_new(&self.config, setup.to_toml().as_bytes())?;
        Ok((path, identity.fingerprint()))
    }

    /// The schema of the invitation, unless the same is there already.
    fn write_schema(&self) -> Result<(), Error> {
        let path = self.folder.join("schema.toml");
        if !path.exists() {
            return write_new(&path, self.invitation.schema.as_bytes());
        }
        let there = Schema::read(&path).map_err(Error::input)?;
        match there.fingerprint() == self.schema.fingerprint() {
            true => Ok(()),
            false => {
                let path = path.display();
                let words = format!("{path} is another schema and is not overwritten");
                Err(Error::input(words).with_remedy(Remedy::OtherFolder))
            }
        }
    }
}

/// An address is listened on as it is; for a host name, all addresses are.
fn listen_of(address: &str) -> Result<SocketAddr, Error> {
    if let Ok(address) = address.parse() {
        return Ok(address);
    }
    let port = address
        .rsplit_once(':')
        .and_then(|(_, port)| port.parse().ok());
    let port: u16 = port.ok_or_else(|| {
        Error::input(format!(
            "`{address}` is not an address of the form host:port"
        ))
    })?;
    Ok(SocketAddr::from(([0, 0, 0, 0], port)))
}
