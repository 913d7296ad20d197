//! A job file: what is to be trained with which providers on the network.

use crate::failure::{Failure, Kind};
use crate::job::{Job, JobBuilder};
use crate::simulation::job_failure;
use crate::summary::{About, Controls};
use crate::trained::{MODEL_FILE, REPORT_FILE, Trained};
use heda_crypto::random::Randomness;
use heda_dp::account::Mechanism;
use heda_learn::data::Dataset;
use heda_learn::optimise::Settings;
use heda_learn::partition::Goal;
use heda_learn::schema::Schema;
use heda_learn::table::TableReader;
use heda_node::client::state::StateFile;
use heda_node::client::training::{Listener, NetworkJob, NetworkJobError};
use heda_node::client::{ConnectError, Connector, RemoteProvider};
use heda_node::config::{Answer, ClassWeights, Iota, JobConfig, Seconds};
use heda_node::identity::Identity;
use heda_node::system::clock::SystemClock;
use heda_node::system::stop::StopSignal;
use heda_node::wire::WireLimits;
use heda_train::job::JobSpec;
use heda_train::local::fresh_job_id;
use heda_train::proposal::{ClassWeight, Ranking, Spending};
use sha2::{Digest, Sha256};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A job file with its schema.
#[derive(Debug, Clone)]
pub struct RemoteJob {
    config: JobConfig,
    job: Job,
}

impl RemoteJob {
    /// Reads and checks a job file and its schema.
    ///
    /// # Errors
    /// If one of them cannot be used. The error names the place and the remedy.
    pub fn load(path: &Path) -> Result<Self, Failure> {
        Self::with_answers(path, &[])
    }

    /// The same with providers that answered an invitation.
    ///
    /// # Errors
    /// As [`RemoteJob::load`], and if an answer is about other data or another schema.
    pub fn with_answers(path: &Path, answers: &[Answer]) -> Result<Self, Failure> {
        let config = JobConfig::load_with(path, answers).map_err(Failure::input)?;
        let schema = Arc::new(Schema::read(&config.schema).map_err(Failure::input)?);
        let own = schema.fingerprint().to_string();
        for answer in answers {
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
        let job = job(&config, &schema, None)?;
        Ok(Self { config, job })
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

    /// The same, but providers that cannot be reached are waited for so long.
    pub fn with_patience(mut self, patience: Seconds) -> Self {
        self.config.timeouts.loss_seconds = patience;
        self
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
        let config = &self.config;
        let schema = self.job.schema();
        let randomness = randomness(config);
        // Everything that can be wrong here is found before the folder is taken or anyone asked.
        let job = match sample(config, schema)? {
            Some(sample) => job(config, schema, Some(Arc::new(sample)))?,
            None => self.job.clone(),
        };
        let way = Way::find(config)?;
        let mut state = self.open_state(into, &randomness)?;
        let spec = job.spec(state.state().job, &randomness);
        let network = network_job(config, way, spec, &randomness, listener);
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
            controls: Controls::default(),
        };
        let lost = state.state().lost.clone();
        let mut trained = Trained::new(about, job.loss(), &outcome, lost)?;
        trained.ledgers.clone_from(&state.state().ledgers);
        let written = trained.write_with_mode(into.folder, into.command, into.mode);
        written.map_err(|failure| kept(&failure))?;
        // Last: as long as there is a checkpoint, nothing has to be asked for again.
        state.finish().map_err(|error| kept(&error))?;
        Ok(trained)
    }

    fn open_state(
        &self,
        into: &ResultFolder<'_>,
        randomness: &Randomness,
    ) -> Result<StateFile, Failure> {
        let (folder, terms) = (into.folder, terms(&self.config, self.job.schema()));
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

/// What may not change between the parts of a job; where providers are, and how long to wait for
/// them, may.
fn terms(config: &JobConfig, schema: &Schema) -> String {
    let names: Vec<&str> = config.providers.iter().map(|p| p.name.as_str()).collect();
    // Not in the text of a job without it, so that such a job is still the same.
    let chosen = config.penalty.map(|penalty| format!(" {penalty:?}"));
    let chosen = chosen.unwrap_or_default();
    let text = format!(
        "{} {} {} {:?} {:?} {:?} {:?} {:?} {:?} {:?} {:?} {:?} {:?} {} {:?} {:?} {:?} {} {} {:?} {names:?}{chosen}",
        schema.fingerprint(),
        config.data_set,
        config.engine.name(),
        config.iota,
        config.encrypt,
        config.auto,
        config.ranking,
        config.ranked_by,
        config.order,
        config.epsilon,
        config.mechanism,
        (config.loss, &config.class_weight),
        config.optimiser,
        config.iterations,
        config.tolerance,
        config.c,
        config.seed,
        config.key_bits,
        config.holdout_permille(),
        config.privacy,
    );
    let digest = Sha256::digest(text);
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The job of a file. With `iota = "auto"` accuracy is estimated on the sample.
fn job(
    config: &JobConfig,
    schema: &Arc<Schema>,
    sample: Option<Arc<Dataset>>,
) -> Result<Job, Failure> {
    if config.mechanism != Mechanism::Laplace {
        return Err(Failure::input(
            "only `laplace` is published over the network",
        ));
    }
    let builder = Job::builder(config.data_set.to_string(), Arc::clone(schema))
        .engine(config.engine)
        .key_bits(config.key_bits)
        .class_weight(class_weight(config, schema)?)
        .settings(Settings {
            method: config.optimiser.clone(),
            c: Some(config.c.get()),
            tolerance: config.tolerance.get(),
            max_iterations: config.iterations.get(),
        })
        .choose_penalty(config.penalty_path())
        .hold_out(config.holdout_permille())
        .ranking(ranking(config))
        .spend(config.epsilon.map(Spending::Total));
    let builder = match config.loss {
        Some(loss) => builder.loss(loss),
        None => builder,
    };
    let builder = encrypted(builder, config, sample);
    let builder = match config.privacy {
        Some(privacy) => builder.private(privacy.promise(schema)),
        None => builder,
    };
    builder.build().map_err(Failure::input)
}

/// Weights in the order of the schema's classes.
fn class_weight(config: &JobConfig, schema: &Schema) -> Result<Option<ClassWeight>, Failure> {
    let by_name = match &config.class_weight {
        None => return Ok(None),
        Some(ClassWeights::Balanced) => return Ok(Some(ClassWeight::Balanced)),
        Some(ClassWeights::ByName(weights)) => weights,
    };
    named_weights(by_name.iter().map(|(name, w)| (name.as_str(), *w)), schema).map(Some)
}

/// Weights by the names of classes; a class that is not named counts 1.
///
/// # Errors
/// If the schema has no class of such a name.
pub fn named_weights<'a>(
    weights: impl IntoIterator<Item = (&'a str, f64)>,
    schema: &Schema,
) -> Result<ClassWeight, Failure> {
    let classes = schema.label().classes();
    let mut all = vec![1.0; classes.len()];
    for (name, weight) in weights {
        let Some(class) = classes.iter().position(|class| class == name) else {
            return Err(Failure::input(format!(
                "class_weight names {name:?}, and the classes are {}",
                classes.join(", ")
            )));
        };
        all[class] = weight;
    }
    Ok(ClassWeight::Given(all))
}

fn encrypted(builder: JobBuilder, config: &JobConfig, sample: Option<Arc<Dataset>>) -> JobBuilder {
    match (&config.encrypt, config.iota, &config.auto) {
        (Some(names), ..) => builder.encrypt_named(names),
        (None, Some(Iota::Best(iota)), _) => {
            builder.encrypt_best(usize::try_from(iota).unwrap_or(usize::MAX))
        }
        (None, _, Some(auto)) => {
            let goal = match (auto.within_seconds, auto.accuracy_loss) {
                (Some(seconds), _) => Goal::WithinSeconds(seconds.get()),
                (None, points) => Goal::AccuracyLoss(points.map_or(0.0, |p| p.get() / 100.0)),
            };
            builder.encrypt_for(goal, sample)
        }
        (None, _, None) => builder,
    }
}

fn ranking(config: &JobConfig) -> Ranking {
    let chooser = config.ranked_by.as_ref().and_then(|name| {
        let mut providers = config.providers.iter();
        providers.position(|provider| provider.name == *name)
    });
    match (&config.order, chooser) {
        (Some(order), _) => Ranking::Given {
            features: order.clone(),
        },
        (None, Some(chooser)) => Ranking::Chosen {
            method: config.ranking,
            chooser,
        },
        (None, None) => Ranking::Agreed {
            method: config.ranking,
        },
    }
}

/// Rows that the data user may read, if the job names some.
fn sample(config: &JobConfig, schema: &Schema) -> Result<Option<Dataset>, Failure> {
    let path = config.auto.as_ref().and_then(|auto| auto.sample.as_ref());
    let read = path.map(|path| TableReader::new(schema).read_file(path));
    let read = read.transpose().map_err(Failure::input)?;
    Ok(read.map(|(rows, _)| rows))
}

/// Who goes to whom.
struct Way {
    identity: Identity,
    providers: Vec<RemoteProvider>,
}

impl Way {
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
    way: Way,
    spec: JobSpec,
    randomness: &Randomness,
    listener: Listener,
) -> NetworkJob {
    NetworkJob {
        spec,
        providers: way.providers,
        connector: Connector {
            identity: way.identity,
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
        NetworkJobError::Lost { .. } | NetworkJobError::Stopped => Kind::Resumable,
        // A checkpoint that could not be written leaves the one before it.
        NetworkJobError::State(_) => Kind::Resumable,
        NetworkJobError::Job(error) => return job_failure(error),
        _ => Kind::Bug,
    };
    Failure::new(kind, error)
}
