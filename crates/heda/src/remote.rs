//! A job file: what is to be trained with which providers on the network.

use crate::clock::processor_seconds;
use crate::failure::{Failure, Kind};
use crate::identity::PeerFingerprint;
use crate::job::{Job, JobBuilder};
use crate::schema::confirmed_schema;
use crate::simulation::job_failure;
use crate::summary::{About, Controls, CpuSeconds};
use crate::trained::{MODEL_FILE, REPORT_FILE, Trained};
use heda_crypto::random::Randomness;
use heda_job::job::JobSpec;
use heda_job::local::fresh_job_id;
use heda_learn::data::Dataset;
use heda_learn::infer;
use heda_learn::schema::Schema;
use heda_learn::table::TableReader;
use heda_node::client::state::StateFile;
use heda_node::client::training::{Listener, NetworkJob, NetworkJobError};
use heda_node::client::{ConnectError, Connector, RemoteProvider};
use heda_node::config::{Answer, JobConfig, SecondsValue};
use heda_node::identity::Identity;
use heda_node::system::clock::SystemClock;
use heda_node::system::stop::StopSignal;
use heda_node::wire::WireLimits;
use sha2::{Digest, Sha256};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A job file with its schema.
#[derive(Debug, Clone)]
pub struct RemoteJob {
    config: JobConfig,
    job: Job,
    answers: Vec<Answer>,
}

impl RemoteJob {
    /// Reads and checks a job file and its schema.
    ///
    /// # Errors
    /// If one of them cannot be used. The error names the place and the remedy.
    pub fn load(path: &Path) -> Result<Self, Failure> {
        Self::answered_by(path, Vec::new())
    }

    /// A job file as `heda invite` wrote it, with the answers of a folder, or of `answers` beside the
    /// file if none is named. Nobody may have answered yet: such a job can be looked at, not trained.
    ///
    /// # Errors
    /// As [`RemoteJob::with_answers`].
    pub fn as_invited(path: &Path, folder: Option<&Path>) -> Result<Self, Failure> {
        let named = JobConfig::load_early(path, &[]).map_err(Failure::input)?;
        let answers = match named.providers.is_empty() || folder.is_some() {
            true => Answer::of_job(path, folder).map_err(Failure::input)?,
            false => Vec::new(),
        };
        let config = JobConfig::load_early(path, &answers).map_err(Failure::input)?;
        Self::checked(config, answers)
    }

    /// The same with providers whose answers to an invitation are in a folder.
    ///
    /// # Errors
    /// As [`RemoteJob::load`], and if an answer is about other data or another schema.
    pub fn with_answers(path: &Path, folder: &Path) -> Result<Self, Failure> {
        Self::answered_by(path, Answer::in_folder(folder).map_err(Failure::input)?)
    }

    fn answered_by(path: &Path, answers: Vec<Answer>) -> Result<Self, Failure> {
        let config = JobConfig::load_with(path, &answers).map_err(Failure::input)?;
        Self::checked(config, answers)
    }

    fn checked(config: JobConfig, answers: Vec<Answer>) -> Result<Self, Failure> {
        let schema = Arc::new(Schema::read(&config.schema).map_err(Failure::input)?);
        let own = schema.fingerprint().to_string();
        for answer in &answers {
            let (what, theirs, ours) = match answer {
                _ if answer.data_set != config.data_set => (
                    "data set",
                    answer.data_set.as_str(),
                    config.data_set.as_str(),
                ),
                _ if answer.schema != own => ("schema", answer.schema.as_str(), own.as_str()),
                _ => continue,
            };
            return Err(Failure::input(format!(
                "{} answered for the {what} {theirs}, the job is about {ours}; send it the \
                 invitation again",
                answer.name
            )));
        }
        let job = described(&config, &schema, None)?;
        Ok(Self {
            config,
            job,
            answers,
        })
    }

    /// Where the schema is.
    pub fn schema_path(&self) -> &Path {
        &self.config.schema
    }

    /// What is to be trained.
    pub fn job(&self) -> &Job {
        &self.job
    }

    /// How many providers take part.
    pub fn providers(&self) -> usize {
        self.config.providers.len()
    }

    /// That somebody takes part.
    ///
    /// # Errors
    /// If no provider is named and none has answered yet.
    pub fn check_answered(&self) -> Result<(), Failure> {
        match self.config.providers.is_empty() {
            false => Ok(()),
            true => Err(Failure::input(
                "no provider has answered yet; put the answers into the folder `answers` beside the \
                 job file, or name providers in it",
            )),
        }
    }

    /// Rows of all providers, held-out ones included, as a private job states them.
    pub fn stated_rows(&self) -> Option<usize> {
        let training = self.config.privacy.as_ref()?.rows.get();
        let trained = 1.0 - self.config.held_out.get();
        Some((training as f64 / trained).round() as usize)
    }

    /// Providers that answered, by name and fingerprint.
    pub fn answered(&self) -> impl Iterator<Item = (&str, PeerFingerprint)> {
        let answers = self.answers.iter();
        answers.map(|answer| (answer.name.as_str(), answer.fingerprint))
    }

    /// The same, but providers that cannot be reached are waited for so many seconds.
    ///
    /// # Errors
    /// If that is not between 1 and a week.
    pub fn with_patience(mut self, seconds: u64) -> Result<Self, Failure> {
        let patience = SecondsValue::try_from(seconds).map_err(Failure::input)?;
        self.config.timeouts.loss_seconds = patience;
        Ok(self)
    }

    /// How long providers that cannot be reached are waited for.
    pub fn patience(&self) -> Duration {
        self.config.timeouts.loss_seconds.duration()
    }

    /// Whether the run can be repeated, and therefore protects nothing.
    pub fn is_seeded(&self) -> bool {
        self.config.seed.is_some()
    }

    /// What deserves a second thought before it runs.
    pub fn warning(&self) -> Option<String> {
        let privacy = self.config.privacy.as_ref();
        privacy.and_then(|privacy| privacy.warning())
    }

    /// Trains until the end, a signal or `stop`, and leaves model and report in the folder.
    pub(crate) fn train(
        &self,
        into: &ResultFolder<'_>,
        listener: Listener,
        stop: Option<&StopSignal>,
    ) -> Result<Trained, Failure> {
        let began = Instant::now();
        let used = processor_seconds();
        let config = &self.config;
        let schema = self.job.schema();
        let randomness = randomness(config);
        // Everything that can be wrong here is found before the folder is taken or anyone asked.
        let job = match sample(config, schema)? {
            Some(sample) => described(config, schema, Some(Arc::new(sample)))?,
            None => self.job.clone(),
        };
        let endpoints = Endpoints::find(config)?;
        let marked = self.has_marks()?;
        let mut state = self.open_state(into, &randomness)?;
        let spec = JobSpec {
            chooser: config.chooser(),
            ..job.spec(state.state().job, &randomness)
        };
        let network = network_job(config, endpoints, spec, &randomness, listener);
        let outcome = network.run_until(&mut state, stop.cloned());
        let outcome = outcome.map_err(|error| give_up(&state, into, &error))?;
        let about = About {
            privacy: job.privacy(),
            dataset: config.data_set.to_string(),
            schema,
            engine: job.engine(),
            seeded: self.is_seeded(),
            automatic_epsilon: false,
            total_seconds: began.elapsed().as_secs_f64(),
            busy: Vec::new(),
            cpu_seconds: CpuSeconds {
                user: processor_seconds()
                    .zip(used)
                    .map(|(now, before)| now - before),
                provider: None,
            },
            controls: Controls::default(),
        };
        let lost = state.state().lost.clone();
        let mut trained = Trained::new(about, job.loss(), &outcome, lost)?;
        // `--unconfirmed` takes a schema that was read from rows; it does not make it public.
        if marked {
            trained.note_bounds_from_rows();
        }
        trained.ledgers.clone_from(&state.state().ledgers);
        let written = trained.write_with_mode(into.folder, into.command, into.mode);
        written.map_err(|failure| kept(&failure))?;
        // Last: as long as there is a checkpoint, nothing has to be asked for again.
        state.finish().map_err(|error| kept(&error))?;
        Ok(trained)
    }

    /// Whether the schema still has marks of what was read from rows.
    fn has_marks(&self) -> Result<bool, Failure> {
        let (text, _) = confirmed_schema(self.schema_path(), true)?;
        Ok(infer::unconfirmed(&text) > 0)
    }

    fn open_state(
        &self,
        into: &ResultFolder<'_>,
        randomness: &Randomness,
    ) -> Result<StateFile, Failure> {
        let (folder, terms) = (into.folder, terms(&self.config, &self.job)?);
        let results = [MODEL_FILE, REPORT_FILE];
        if into.resume {
            return StateFile::resume(folder, &terms, &results).map_err(Failure::input);
        }
        let job = match self.config.seed {
            // The whole run goes by one seed, as when all parties share a process.
            Some(seed) => fresh_job_id(&Randomness::seeded(seed)),
            None => fresh_job_id(randomness),
        };
        let job = job.map_err(|e| Failure::new(Kind::Bug, e))?;
        StateFile::begin(folder, &terms, job, &results).map_err(Failure::input)
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

/// A result that could not be written is not lost: the checkpoint is still there.
fn kept(cause: &dyn std::fmt::Display) -> Failure {
    let words =
        format!("{cause}; the job is done and kept: put this right and run again with --resume");
    Failure::new(Kind::Resumable, words)
}

/// A job that came to nothing before anything was paid for or learned does not block its folder.
fn give_up(state: &StateFile, into: &ResultFolder<'_>, error: &NetworkJobError) -> Failure {
    let failure = failure(error);
    if failure.kind() == Kind::Resumable || into.resume || state.abandon() {
        return failure;
    }
    let words = format!(
        "{failure}; the folder {} keeps the job, because a provider may have paid for a release: \
         go on with --resume, or choose another --out",
        into.folder.display()
    );
    Failure::new(failure.kind(), words)
}

fn randomness(config: &JobConfig) -> Randomness {
    match config.seed {
        None => Randomness::from_os(),
        Some(seed) => Randomness::seeded(seed).party("user"),
    }
}

/// What may not change between the parts of a job: the job itself, who takes part, and the seed.
/// Where providers are, and how long to wait for them, may.
fn terms(config: &JobConfig, job: &Job) -> Result<String, Failure> {
    let digest = job.description().digest();
    let digest = digest.map_err(|e| Failure::new(Kind::Bug, e))?;
    let mut hash = Sha256::new();
    hash.update(digest.to_string());
    for provider in &config.providers {
        hash.update(provider.name.as_str());
        hash.update([0]);
    }
    if let Some(seed) = config.seed {
        hash.update(seed.to_le_bytes());
    }
    let digest = hash.finalize();
    Ok(digest.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// The job of a file. With `iota = "auto"` accuracy is estimated on the sample.
pub(crate) fn described(
    config: &JobConfig,
    schema: &Arc<Schema>,
    sample: Option<Arc<Dataset>>,
) -> Result<Job, Failure> {
    let raw = config.raw(schema).map_err(Failure::input)?;
    let builder = JobBuilder::of_raw(raw, Arc::clone(schema), sample);
    builder.build().map_err(Failure::input)
}

/// Rows that the data user may read, if the job names some.
fn sample(config: &JobConfig, schema: &Schema) -> Result<Option<Dataset>, Failure> {
    let path = config.auto.as_ref().and_then(|auto| auto.sample.as_ref());
    let read = path.map(|path| TableReader::new(schema).read_file(path));
    let read = read.transpose().map_err(Failure::input)?;
    Ok(read.map(|(rows, _)| rows))
}

/// Who goes to whom.
struct Endpoints {
    identity: Identity,
    providers: Vec<RemoteProvider>,
}

impl Endpoints {
    fn find(config: &JobConfig) -> Result<Self, Failure> {
        let providers = config.remote_providers().map_err(Failure::input)?;
        for provider in &providers {
            provider.check().map_err(Failure::input)?;
        }
        let identity = Identity::load(&config.identity).map_err(Failure::input)?;
        Ok(Self {
            identity,
            providers,
        })
    }
}

fn network_job(
    config: &JobConfig,
    endpoints: Endpoints,
    spec: JobSpec,
    randomness: &Randomness,
    listener: Listener,
) -> NetworkJob {
    NetworkJob {
        spec,
        providers: endpoints.providers,
        connector: Connector {
            identity: endpoints.identity,
            clock: Arc::new(SystemClock),
            limits: WireLimits {
                patience: config.timeouts.answer_seconds.duration(),
                ..WireLimits::default()
            },
            connect_patience: config.timeouts.connect_seconds.duration(),
        },
        randomness: randomness.clone(),
        on_loss: config.on_loss,
        loss_patience: config.timeouts.loss_seconds.duration(),
        listener,
    }
}

fn failure(error: &NetworkJobError) -> Failure {
    let kind = match error {
        NetworkJobError::Connect(ConnectError::Address { .. } | ConnectError::Setup { .. }) => {
            Kind::Input
        }
        NetworkJobError::Connect(_) => Kind::Peer,
        NetworkJobError::Refused { .. } => Kind::Refused,
        NetworkJobError::Lost { .. } | NetworkJobError::Stopped(_) => Kind::Resumable,
        // A checkpoint that could not be written leaves the one before it.
        NetworkJobError::State(_) => Kind::Resumable,
        NetworkJobError::Job(error) => return job_failure(error),
        _ => Kind::Bug,
    };
    Failure::new(kind, error)
}
