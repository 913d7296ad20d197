//! A small recorded job that can be played again to one of its parties, message by message.

use ed25519_dalek::SigningKey;
use heda_blocks::channel::{Channel, Recorded, Wire, WireError};
use heda_crypto::random::Randomness;
use heda_job::description::{Protected, Ranking, RawJob, Training};
use heda_job::engine::Engine;
use heda_job::error::{JobError, ServeError};
use heda_job::job::{self, JobSpec, Link, Outcome, Provider, Quiet, Served};
use heda_job::local::{self, LocalProvider, Parts};
use heda_job::proposal::{JobId, Spending};
use heda_learn::data::Dataset;
use heda_learn::optimise::Settings;
use heda_learn::resident::Resolution;
use heda_learn::schema::Schema;
use heda_learn::score::ScoringMethod;
use std::collections::VecDeque;
use std::sync::Arc;

const SCHEMA: &str = r#"
format = 1
name = "rows"
[label]
column = "class"
classes = ["no", "yes"]
positive = "yes"
[[column]]
name = "a"
kind = "numeric"
bounds = [0, 1]
[[column]]
name = "b"
kind = "numeric"
bounds = [0, 1]
"#;

/// A message as it travels: its tag and its body.
pub type Message = Vec<u8>;

/// A small job of two providers that uses every step: ranking, release, gradients, evaluation.
/// Everything random in it is seeded, so that the recording is always the same.
pub struct Play {
    spec: JobSpec,
    schema: Arc<Schema>,
    parts: Parts,
    randomness: Randomness,
    /// What the first provider received.
    pub to_provider: Vec<Message>,
    /// What the data user received, provider by provider.
    pub to_user: Vec<Vec<Message>>,
}

impl Play {
    /// Runs the job with an engine and a ranking that the providers agree on, and keeps what its
    /// parties received.
    pub fn record(engine: Engine) -> Self {
        let method = ScoringMethod::KruskalWallis;
        Self::record_ranked(engine, Ranking::Agreed { method })
    }

    /// The same with the ranking of the first provider.
    pub fn record_chosen(engine: Engine) -> Self {
        let method = ScoringMethod::KruskalWallis;
        Self::record_ranked(engine, Ranking::Chosen { method })
    }

    fn record_ranked(engine: Engine, ranking: Ranking) -> Self {
        let schema = Arc::new(Schema::parse(SCHEMA, "rows.toml").expect("a schema"));
        let randomness = Randomness::seeded(5);
        let data = [30, 40].map(|rows| rows_of(&schema, rows));
        let parts = Parts::new(data.into(), &randomness).expect("seeded");
        let mut play = Self {
            spec: JobSpec {
                chooser: matches!(ranking, Ranking::Chosen { .. }).then_some(0),
                ..spec(engine, ranking, &schema)
            },
            schema,
            parts,
            randomness,
            to_provider: Vec::new(),
            to_user: Vec::new(),
        };
        let (guards, randomness) = (play.guards(), &play.randomness);
        let run = local::run(&play.spec, &guards, randomness, &mut Quiet, None, true);
        let run = run.expect("the job of the recording");
        play.to_provider = messages(&run.reports[0].view);
        let views = run
            .outcome
            .providers
            .iter()
            .map(|provider| messages(&provider.view));
        play.to_user = views.collect();
        play
    }

    fn guards(&self) -> Vec<LocalProvider> {
        let limit = "1000".parse().expect("a decimal");
        self.parts.guards(&self.schema, limit)
    }

    fn identity(&self, name: &str) -> SigningKey {
        let mut rng = self
            .randomness
            .party(name)
            .fork("identity", 0)
            .expect("seeded");
        SigningKey::generate(&mut rng)
    }

    /// The first provider, with these messages of the data user.
    pub fn serve(&self, messages: Vec<Message>) -> Result<Served, ServeError> {
        let guards = self.guards();
        let LocalProvider { name, guard } = &guards[0];
        let identity = self.identity(name);
        let provider = Provider {
            guard: guard.as_ref(),
            identity: &identity,
            randomness: self.randomness.party(name),
        };
        provider.serve(&mut scripted(messages))
    }

    /// The data user, with these messages of the providers.
    pub fn train(&self, scripts: Vec<Vec<Message>>) -> Result<Outcome, JobError> {
        let links = self.guards().into_iter().zip(scripts);
        let links = links.map(|(LocalProvider { name, .. }, messages)| Link {
            identity: self.identity(&name).verifying_key(),
            channel: scripted(messages),
            name,
        });
        let randomness = self.randomness.party("user");
        job::run(&self.spec, links.collect(), &randomness, &mut Quiet, None)
    }
}

fn rows_of(schema: &Schema, rows: usize) -> Dataset {
    let values = (0..2 * rows).map(|n| (n * 37 % 101) as f64 / 101.0);
    let labels = (0..rows).map(|row| u32::from((2 * row * 37) % 101 > 50));
    let classes = schema.label().classes();
    let (values, labels) = (values.collect(), labels.collect());
    Dataset::new(schema.features(), values, labels, classes).expect("rows of this schema")
}

fn spec(engine: Engine, ranking: Ranking, schema: &Arc<Schema>) -> JobSpec {
    let raw = RawJob {
        training: Training {
            settings: Settings {
                max_iterations: 1,
                ..Settings::lbfgs()
            },
            resolution: Resolution::default(),
            ..Training::usual(schema)
        },
        engine,
        ranking: Some(ranking),
        protected: Protected::Best(1),
        spending: Some(Spending::Total("2".parse().expect("a decimal"))),
        ..RawJob::new("rows", schema)
    };
    let job = raw.try_into().expect("a job without contradictions");
    JobSpec::new(JobId([1; 16]), job, Arc::clone(schema))
}

fn messages(view: &[Recorded]) -> Vec<Message> {
    let whole = |message: &Recorded| [&[message.tag], &message.body[..]].concat();
    view.iter().map(whole).collect()
}

/// A peer that says what it is told to and does not listen.
struct Script(VecDeque<Message>);

impl Wire for Script {
    fn send(&mut self, _: Vec<u8>) -> Result<(), WireError> {
        Ok(())
    }

    fn receive(&mut self, limit: usize) -> Result<Vec<u8>, WireError> {
        match self.0.pop_front() {
            Some(message) if message.len() <= limit => Ok(message),
            Some(message) => Err(WireError::TooLong {
                got: message.len(),
                limit,
            }),
            None => Err(WireError::Closed("the script is at its end".into())),
        }
    }
}

fn scripted(messages: Vec<Message>) -> Channel {
    Channel::new(Box::new(Script(messages.into())))
}
