//! A data user on the network: who it is, with which providers it trains, and how patient it is.

use crate::clock::processor_seconds;
use crate::error::{Error, ErrorKind, Remedy};
use crate::files::PRIVATE;
use crate::identity::PeerFingerprint;
use crate::job::Job;
use crate::simulation::job_failure;
use crate::summary::{About, Controls, CpuSeconds};
use crate::trained::{MODEL_FILE, REPORT_FILE, Trained};
use heda_crypto::random::Randomness;
use heda_job::job::JobSpec;
use heda_job::local::fresh_job_id;
use heda_node::client::state::StateFile;
use heda_node::client::training::{Listener, NetworkJob, NetworkJobError};
use heda_node::client::{ConnectError, Connector, RemoteProvider};
use heda_node::config::{Answer, SecondsValue, Timeouts};
use heda_node::identity::Identity;
use heda_node::identity::trust::{Recognition, TrustedPeer};
use heda_node::system::clock::SystemClock;
use heda_node::system::stop::StopSignal;
use heda_node::wire::WireLimits;
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

pub use heda_node::config::OnLoss;

/// What the report says was typed, where a program trains.
const COMMAND: &str = "heda::Client::train";

/// Who trains on the network, and with whom.
///
/// ```no_run
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use heda::{Client, Job, ResultFolder, schema};
/// use std::{path::Path, sync::Arc};
///
/// let (_, schema) = schema::read(Path::new("schema.toml"))?;
/// let job = Job::builder("ward", schema).iterations(20).build()?;
/// let client = Client::new("identity")
///     .provider("hospital-a", "a.example:7443", "sha256:…".parse()?)
///     .provider("hospital-b", "b.example:7443", "sha256:…".parse()?);
/// let trained = client.train(&job, &ResultFolder::new(Path::new("result")), Arc::new(|_| ()))?;
/// println!("{}", trained.text());
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Client {
    pub(crate) identity: PathBuf,
    pub(crate) providers: Vec<RemoteProvider>,
    pub(crate) ranked_by: Option<String>,
    pub(crate) on_loss: OnLoss,
    pub(crate) timeouts: Timeouts,
    pub(crate) seed: Option<u64>,
}

impl Client {
    /// A data user with key and certificate in this folder, as [`crate::identity::create`] makes them,
    /// and with no provider yet.
    pub fn new(identity: impl Into<PathBuf>) -> Self {
        Self {
            identity: identity.into(),
            providers: Vec::new(),
            ranked_by: None,
            on_loss: OnLoss::default(),
            timeouts: Timeouts::default(),
            seed: None,
        }
    }

    /// With this provider, at a host and port, recognised by its fingerprint.
    pub fn provider(
        mut self,
        name: impl Into<String>,
        address: impl Into<String>,
        fingerprint: PeerFingerprint,
    ) -> Self {
        self.providers.push(RemoteProvider {
            address: address.into(),
            peer: TrustedPeer {
                label: name.into(),
                recognition: Recognition::Fingerprint(fingerprint),
            },
        });
        self
    }

    /// With the providers whose answers to an invitation are in a folder.
    ///
    /// # Errors
    /// If the folder holds no answers, or one that cannot be used.
    pub fn answered(self, folder: &Path) -> Result<Self, Error> {
        let answers = Answer::in_folder(folder).map_err(Error::input)?;
        Ok(answers.into_iter().fold(self, |client, answer| {
            client.provider(answer.name.as_str(), answer.address, answer.fingerprint)
        }))
    }

    /// The provider that ranks the features for all, where the job leaves it to one.
    pub fn ranked_by(mut self, provider: impl Into<String>) -> Self {
        self.ranked_by = Some(provider.into());
        self
    }

    /// What to do when a provider is lost and does not come back in time; stop, if this is not called.
    pub fn on_loss(mut self, on_loss: OnLoss) -> Self {
        self.on_loss = on_loss;
        self
    }

    /// Waits so many seconds for providers that cannot be reached or were lost; 600 if this is not
    /// called.
    ///
    /// # Errors
    /// If that is not between 1 and a week.
    pub fn patience(mut self, seconds: u64) -> Result<Self, Error> {
        self.timeouts.loss_seconds = SecondsValue::try_from(seconds).map_err(Error::input)?;
        Ok(self)
    }

    /// A run that can be repeated, and therefore protects nothing: for tests.
    pub fn danger_seeded(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// Trains until the end or until SIGTERM or SIGINT, and leaves model and report in a folder.
    ///
    /// # Errors
    /// If a provider refuses or is lost, or the job cannot be done.
    pub fn train(
        &self,
        job: &Job,
        into: &ResultFolder<'_>,
        listener: Listener,
    ) -> Result<Trained, Error> {
        self.run(job, into, listener, None)
    }

    /// The same until the end or until `stop` is set: for programs that hear signals themselves.
    ///
    /// # Errors
    /// As [`Client::train`].
    pub fn train_until(
        &self,
        job: &Job,
        into: &ResultFolder<'_>,
        listener: Listener,
        stop: &StopSignal,
    ) -> Result<Trained, Error> {
        self.run(job, into, listener, Some(stop))
    }

    fn run(
        &self,
        job: &Job,
        into: &ResultFolder<'_>,
        listener: Listener,
        stop: Option<&StopSignal>,
    ) -> Result<Trained, Error> {
        let began = Instant::now();
        let used = processor_seconds();
        let randomness = self.randomness();
        // Everything that can be wrong here is found before the folder is taken or anyone asked.
        let chooser = self.checked()?;
        let identity = Identity::load(&self.identity).map_err(Error::input)?;
        let mut state = self.open_state(job, into, &randomness)?;
        let spec = JobSpec {
            chooser,
            ..job.spec(state.state().job, &randomness)
        };
        let network = self.network_job(identity, spec, &randomness, listener);
        let outcome = network.run_until(&mut state, stop.cloned());
        let outcome = outcome.map_err(|error| give_up(&state, into, error))?;
        let user = processor_seconds().zip(used);
        let about = About {
            total_seconds: began.elapsed().as_secs_f64(),
            cpu_seconds: CpuSeconds {
                user: user.map(|(now, before)| now - before),
                provider: None,
            },
            ..self.about(job)
        };
        let lost = state.state().lost.clone();
        let mut trained = Trained::new(about, job.loss(), &outcome, lost)?;
        if job.has_bounds_from_rows() {
            trained.note_bounds_from_rows();
        }
        trained.ledgers.clone_from(&state.state().ledgers);
        let written = trained.write_with_mode(into.folder, into.command, into.mode);
        written.map_err(|failure| kept(&failure))?;
        // Last: as long as there is a checkpoint, nothing has to be asked for again.
        state.finish().map_err(|error| kept(&error))?;
        Ok(trained)
    }

    fn about<'a>(&self, job: &'a Job) -> About<'a> {
        About {
            privacy: job.privacy(),
            dataset: job.data_set().to_owned(),
            schema: job.schema(),
            engine: job.engine(),
            seeded: self.seed.is_some(),
            automatic_epsilon: false,
            total_seconds: 0.0,
            busy: Vec::new(),
            cpu_seconds: CpuSeconds::default(),
            controls: Controls::default(),
        }
    }

    /// The place of the provider that ranks the features, if one does, after everything that can be
    /// known to be wrong.
    fn checked(&self) -> Result<Option<usize>, Error> {
        if self.providers.is_empty() {
            let words = "a job on the network needs at least one provider";
            return Err(Error::input(words).with_remedy(Remedy::GiveAnswers));
        }
        let mut names = BTreeSet::new();
        for provider in &self.providers {
            provider.check().map_err(Error::input)?;
            let name = &provider.peer.label;
            if !names.insert(name) {
                return Err(Error::input(format!("two providers are called {name}")));
            }
        }
        let Some(name) = &self.ranked_by else {
            return Ok(None);
        };
        let mut labels = self.providers.iter().map(|known| &known.peer.label);
        let place = labels.position(|label| label == name);
        let missing = || Error::input(format!("{name} ranks the features and takes no part"));
        place.map(Some).ok_or_else(missing)
    }

    fn randomness(&self) -> Randomness {
        match self.seed {
            None => Randomness::from_os(),
            Some(seed) => Randomness::seeded(seed).party("user"),
        }
    }

    fn open_state(
        &self,
        job: &Job,
        into: &ResultFolder<'_>,
        randomness: &Randomness,
    ) -> Result<StateFile, Error> {
        let (folder, terms) = (into.folder, self.terms(job)?);
        let results = [MODEL_FILE, REPORT_FILE];
        if into.resume {
            return StateFile::resume(folder, &terms, &results).map_err(Error::input);
        }
        let id = match self.seed {
            // The whole run goes by one seed, as when all parties share a process.
            Some(seed) => fresh_job_id(&Randomness::seeded(seed)),
            None => fresh_job_id(randomness),
        };
        let id = id.map_err(Error::bug)?;
        StateFile::begin(folder, &terms, id, &results).map_err(Error::input)
    }

    /// What may not change between the parts of a job: the job itself, who takes part, and the seed.
    /// Where providers are, and how long to wait for them, may.
    fn terms(&self, job: &Job) -> Result<String, Error> {
        let digest = job.description().digest().map_err(Error::bug)?;
        let mut hash = Sha256::new();
        hash.update(digest.to_string());
        for provider in &self.providers {
            hash.update(provider.peer.label.as_str());
            hash.update([0]);
        }
        if let Some(seed) = self.seed {
            hash.update(seed.to_le_bytes());
        }
        let digest = hash.finalize();
        Ok(digest.iter().map(|byte| format!("{byte:02x}")).collect())
    }

    fn network_job(
        &self,
        identity: Identity,
        spec: JobSpec,
        randomness: &Randomness,
        listener: Listener,
    ) -> NetworkJob {
        NetworkJob {
            spec,
            providers: self.providers.clone(),
            connector: Connector {
                identity,
                clock: Arc::new(SystemClock),
                limits: WireLimits {
                    patience: self.timeouts.answer_seconds.duration(),
                    ..WireLimits::default()
                },
                connect_patience: self.timeouts.connect_seconds.duration(),
            },
            randomness: randomness.clone(),
            on_loss: self.on_loss,
            loss_patience: self.timeouts.loss_seconds.duration(),
            listener,
        }
    }
}

/// Where a job leaves its results, and how.
#[derive(Debug, Clone, Copy)]
pub struct ResultFolder<'a> {
    /// The folder; while the job runs its checkpoint is there as well.
    pub folder: &'a Path,
    /// Whether to go on from the checkpoint.
    pub resume: bool,
    /// What was typed, for the report.
    pub command: &'a str,
    /// Permissions of model and report.
    pub mode: u32,
}

impl<'a> ResultFolder<'a> {
    /// A folder for a job that begins; its files are for their owner only.
    pub fn new(folder: &'a Path) -> Self {
        Self {
            folder,
            resume: false,
            command: COMMAND,
            mode: PRIVATE,
        }
    }

    /// The same for a job that goes on from its checkpoint.
    pub fn resumed(self) -> Self {
        Self {
            resume: true,
            ..self
        }
    }
}

/// A result that could not be written is not lost: the checkpoint is still there.
fn kept(cause: &dyn std::fmt::Display) -> Error {
    let words = format!("{cause}; the job is done and kept");
    Error::new(ErrorKind::Resumable, words).with_remedy(Remedy::Resume)
}

/// A job that came to nothing before anything was paid for or learned does not block its folder.
fn give_up(state: &StateFile, into: &ResultFolder<'_>, error: NetworkJobError) -> Error {
    let failure = failure(error);
    if failure.kind() == ErrorKind::Resumable || into.resume || state.abandon() {
        return failure;
    }
    let words = format!(
        "{failure}; the folder {} keeps the job, because a provider may have paid for a release",
        into.folder.display()
    );
    Error::new(failure.kind(), words).with_remedy(Remedy::ResumeOrOtherFolder)
}

fn failure(error: NetworkJobError) -> Error {
    let kind = match &error {
        NetworkJobError::Connect(ConnectError::Address { .. } | ConnectError::Setup { .. }) => {
            ErrorKind::Input
        }
        NetworkJobError::Connect(_) => ErrorKind::Peer,
        NetworkJobError::Refused { .. } => ErrorKind::Refused,
        NetworkJobError::Lost { .. } | NetworkJobError::Stopped(_) => ErrorKind::Resumable,
        // A checkpoint that could not be written leaves the one before it.
        NetworkJobError::State(_) => ErrorKind::Resumable,
        _ => ErrorKind::Bug,
    };
    match error {
        NetworkJobError::Job(error) => job_failure(error),
        error => Error::new(kind, error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{Bundle, Coding};

    fn print(digits: &str) -> PeerFingerprint {
        format!("sha256:{}", digits.repeat(32)).parse().unwrap()
    }

    fn job() -> Job {
        let schema = Bundle::Bcwd.schema(Coding::Natural);
        Job::builder("tumours", schema).build().unwrap()
    }

    fn two() -> Client {
        let client = Client::new("nowhere").provider("north", "n.example:7443", print("aa"));
        client.provider("south", "s.example:7443", print("bb"))
    }

    #[test]
    fn what_is_wrong_with_a_client_is_said_before_anybody_is_asked() {
        let folder = tempfile::tempdir().unwrap();
        let into = ResultFolder::new(folder.path());
        for (client, words) in [
            (Client::new("nowhere"), "at least one provider"),
            (
                two().provider("north", "x.example:7443", print("cc")),
                "two providers are called north",
            ),
            (
                two().provider("west", "nowhere", print("cc")),
                "not an address of the form host:port",
            ),
            (two().ranked_by("east"), "east ranks the features"),
            (two(), "nowhere"),
        ] {
            let error = client.train(&job(), &into, Arc::new(|_| ())).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Input);
            assert!(error.to_string().contains(words), "{error}");
        }
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        assert!(two().patience(0).is_err());
    }

    #[test]
    fn a_job_is_resumed_with_the_same_parties_only() {
        let terms = |client: Client| client.terms(&job()).unwrap();
        let moved = Client::new("elsewhere").provider("north", "m.example:1", print("aa"));
        let moved = moved.provider("south", "s.example:7443", print("bb"));
        assert_eq!(terms(two()), terms(moved));
        assert_ne!(terms(two()), terms(two().danger_seeded(1)));
        let more = two().provider("west", "w.example:7443", print("cc"));
        assert_ne!(terms(two()), terms(more));
    }
}
