//! `heda train`: a job with providers over the network.

use crate::output;
use clap::Args;
use heda::failure::{Failure, Kind};
use heda::files::write_whole;
use heda::local_job::job_failure;
use heda::planning::AutoIota;
use heda::report;
use heda::summary::{About, Controls, Summary};
use heda_crypto::random::Randomness;
use heda_learn::fixed::Precision;
use heda_learn::model::{Model, Provenance};
use heda_learn::optimise::Settings;
use heda_learn::partition::Goal;
use heda_learn::schema::Schema;
use heda_learn::table::TableReader;
use heda_node::client::Connector;
use heda_node::client::state::StateFile;
use heda_node::client::training::{Listener, NetworkJob, NetworkJobError, Notice};
use heda_node::config::{Iota, JobConfig};
use heda_node::identity::Identity;
use heda_node::system::clock::SystemClock;
use heda_node::wire::WireLimits;
use heda_train::job::{Choice, JobSpec, Outcome};
use heda_train::local::fresh_job_id;
use heda_train::proposal::{JobId, Ranking, Spending};
use sha2::{Digest, Sha256};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

/// Train a model on the rows of providers over the network.
#[derive(Debug, Args)]
pub(crate) struct Train {
    /// The job file.
    job: PathBuf,
    /// Folder for the model, the report and, while the job runs, its checkpoint.
    #[arg(long, default_value = "heda-result")]
    out: PathBuf,
    /// Go on from the checkpoint in the folder.
    #[arg(long)]
    resume: bool,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

/// What `--json` prints.
#[derive(serde::Serialize)]
struct Trained {
    #[serde(flatten)]
    summary: Summary,
    providers_lost: Vec<String>,
}

pub(crate) fn run(arguments: &Train) -> Result<(), Failure> {
    let began = Instant::now();
    let config = JobConfig::load(&arguments.job).map_err(Failure::input)?;
    let schema = Arc::new(Schema::read(&config.schema).map_err(Failure::input)?);
    let randomness = randomness(&config);
    let mut state = open_state(arguments, &config, &schema, &randomness)?;
    let spec = spec(&config, &schema, state.state().job)?;
    let spec = with_auto_iota(spec, &config, &schema, &randomness)?;
    output::warn_of_leaks(spec.engine);
    let outcome = train(&config, spec, &randomness, &mut state)?;
    let mut trained = Trained {
        summary: summary(&config, &schema, &outcome, began),
        providers_lost: state.state().lost.clone(),
    };
    let model = model(&config, &schema, &outcome, &trained)?;
    let model_path = arguments.out.join("model.json");
    write_whole(&model_path, model.to_json().as_bytes())?;
    trained.summary.model_path = Some(model_path);
    let report_path = arguments.out.join("report.html");
    let page = report::html(&trained.summary, &model, &report::command_line());
    write_whole(&report_path, page.as_bytes())?;
    // Last: as long as there is a checkpoint, nothing has to be asked for again.
    state.finish().map_err(Failure::input)?;
    trained.summary.report_path = Some(report_path);
    match arguments.json {
        true => output::print_json(&trained),
        false => output::print_text(&trained.text()),
    }
}

impl Trained {
    fn text(&self) -> String {
        let mut text = self.summary.text();
        if !self.providers_lost.is_empty() {
            let lost = self.providers_lost.join(", ");
            text += &format!("\n{}", report::went_on_without(&lost));
        }
        text
    }
}

fn randomness(config: &JobConfig) -> Randomness {
    match config.seed {
        None => Randomness::from_os(),
        Some(seed) => {
            eprintln!("heda: a seed is given: this run can be repeated and protects nothing");
            Randomness::seeded(seed).party("user")
        }
    }
}

fn open_state(
    arguments: &Train,
    config: &JobConfig,
    schema: &Schema,
    randomness: &Randomness,
) -> Result<StateFile, Failure> {
    let terms = terms(config, schema);
    if arguments.resume {
        return StateFile::resume(&arguments.out, &terms).map_err(Failure::input);
    }
    let job = match config.seed {
        // The whole run goes by one seed, as when all parties share a process.
        Some(seed) => fresh_job_id(&Randomness::seeded(seed)),
        None => fresh_job_id(randomness),
    };
    let job = job.map_err(|e| Failure::new(Kind::Bug, e))?;
    StateFile::begin(&arguments.out, &terms, job).map_err(Failure::input)
}

/// What may not change between the parts of a job; where providers are, and how long to wait for
/// them, may.
fn terms(config: &JobConfig, schema: &Schema) -> String {
    let names: Vec<&str> = config.providers.iter().map(|p| p.name.as_str()).collect();
    let text = format!(
        "{} {} {} {:?} {:?} {:?} {:?} {:?} {:?} {:?} {:?} {:?} {:?} {} {:?} {:?} {:?} {} {} {names:?}",
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
        config.loss,
        config.optimiser,
        config.iterations,
        config.tolerance,
        config.regularisation,
        config.seed,
        config.key_bits,
        config.holdout_permille(),
    );
    let digest = Sha256::digest(text);
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The job of a file. With `iota = "auto"` all features are encrypted until somebody chooses.
pub(crate) fn spec(
    config: &JobConfig,
    schema: &Arc<Schema>,
    job: JobId,
) -> Result<JobSpec, Failure> {
    let positives = match schema.label().classes().len() {
        2 => vec![1],
        many => (0..many as u32).collect(),
    };
    let choice = match (&config.encrypt, config.iota) {
        (Some(names), _) => Choice::Named(names.clone()),
        (None, Some(Iota::Best(iota))) => Choice::Best(usize::try_from(iota).unwrap_or(usize::MAX)),
        (None, _) => Choice::Best(schema.columns().len()),
    };
    if config.mechanism != heda_dp::account::Mechanism::Laplace {
        return Err(Failure::input(
            "only `laplace` is published over the network",
        ));
    }
    Ok(JobSpec {
        job,
        dataset: config.data_set.to_string(),
        schema: Arc::clone(schema),
        positives,
        engine: config.engine,
        loss: config.loss,
        precision: Precision::default(),
        settings: Settings {
            method: config.optimiser.clone(),
            l2: config.regularisation.get(),
            tolerance: config.tolerance.get(),
            max_iterations: config.iterations.get(),
        },
        holdout_permille: config.holdout_permille(),
        ranking: ranking(config, schema),
        choice,
        spending: config.epsilon.map(Spending::Total),
        key_bits: config.key_bits,
    })
}

/// Features to encrypt that are named need no ranking, and none is read from data.
fn ranking(config: &JobConfig, schema: &Schema) -> Ranking {
    let names = || schema.columns().iter().map(|column| column.name());
    let chooser = config.ranked_by.as_ref().and_then(|name| {
        let mut providers = config.providers.iter();
        providers.position(|provider| provider.name == *name)
    });
    match (&config.order, &config.encrypt, chooser) {
        (Some(order), ..) => Ranking::Given {
            features: order.clone(),
        },
        (None, Some(encrypt), _) => {
            let rest = names().filter(|name| !encrypt.iter().any(|e| e == name));
            let rest = rest.map(str::to_owned);
            Ranking::Given {
                features: encrypt.iter().cloned().chain(rest).collect(),
            }
        }
        (None, None, Some(chooser)) => Ranking::Chosen {
            method: config.ranking,
            chooser,
        },
        (None, None, None) => Ranking::Agreed {
            method: config.ranking,
        },
    }
}

fn with_auto_iota(
    spec: JobSpec,
    config: &JobConfig,
    schema: &Arc<Schema>,
    randomness: &Randomness,
) -> Result<JobSpec, Failure> {
    let Some(auto) = &config.auto else {
        return Ok(spec);
    };
    let goal = match (auto.within_seconds, auto.accuracy_loss) {
        (Some(seconds), _) => Goal::WithinSeconds(seconds.get()),
        (None, points) => Goal::AccuracyLoss(points.map_or(0.0, |p| p.get() / 100.0)),
    };
    let sample = match &auto.sample {
        Some(path) => {
            let reader = TableReader::new(schema);
            Some(reader.read_file(path).map_err(Failure::input)?.0)
        }
        None => None,
    };
    Ok(AutoIota::put_into(spec, goal, sample.as_ref(), randomness))
}

fn train(
    config: &JobConfig,
    spec: JobSpec,
    randomness: &Randomness,
    state: &mut StateFile,
) -> Result<Outcome, Failure> {
    let job = NetworkJob {
        spec,
        providers: config.remote_providers().map_err(Failure::input)?,
        connector: Connector {
            identity: Identity::load(&config.identity).map_err(Failure::input)?,
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
        listener: listener(),
    };
    let outcome = job.run_until_signal(state);
    outcome.map_err(failure)
}

/// Plain lines on stderr, one for each thing that a person who waits wants to know.
fn listener() -> Listener {
    Arc::new(|notice| match notice {
        Notice::Reached(provider) => eprintln!("connected to {provider}"),
        Notice::Connected => eprintln!("connected to all providers"),
        Notice::Retry { cause, pause } => eprintln!("{cause}; again in {pause:?}"),
        Notice::Phase(name) => eprintln!("{name}"),
        Notice::Split(reason) => eprintln!("{reason}"),
        Notice::Iteration {
            done,
            at_most,
            norm,
        } => match norm {
            Some(norm) => eprintln!("iteration {done} of at most {at_most}, gradient {norm:.2e}"),
            None => eprintln!("iteration {done} of at most {at_most}"),
        },
        Notice::Lost { provider, cause } => eprintln!("lost {provider}: {cause}"),
        Notice::LeftBehind(provider) => eprintln!("going on without {provider}, with new masks"),
    })
}

fn failure(error: NetworkJobError) -> Failure {
    let kind = match &error {
        NetworkJobError::Connect(_) => Kind::Peer,
        NetworkJobError::Refused { .. } => Kind::Refused,
        NetworkJobError::Lost { .. } | NetworkJobError::Stopped => Kind::Resumable,
        // A checkpoint that could not be written leaves the one before it.
        NetworkJobError::State(_) => Kind::Resumable,
        NetworkJobError::Runtime(_) => Kind::Bug,
        NetworkJobError::Job(error) => return job_failure(error),
    };
    Failure::new(kind, error)
}

fn summary(config: &JobConfig, schema: &Schema, outcome: &Outcome, began: Instant) -> Summary {
    let names: Vec<String> = schema
        .columns()
        .iter()
        .map(|column| column.name().to_owned())
        .collect();
    let about = About {
        dataset: config.data_set.to_string(),
        engine: config.engine,
        seeded: config.seed.is_some(),
        feature_names: &names,
        class_names: &schema.label().classes(),
        automatic_epsilon: false,
        total_seconds: began.elapsed().as_secs_f64(),
        provider_seconds: None,
        controls: Controls::default(),
    };
    Summary::new(about, outcome)
}

fn model(
    config: &JobConfig,
    schema: &Schema,
    outcome: &Outcome,
    trained: &Trained,
) -> Result<Model, Failure> {
    let features = schema.features();
    let betas = outcome.fits.iter();
    let betas: Vec<Vec<f64>> = betas
        .map(|fit| outcome.full_beta(&features, &fit.beta))
        .collect();
    let summary = &trained.summary;
    let mut notes = std::collections::BTreeMap::new();
    notes.insert("seeded".to_owned(), summary.seeded.to_string());
    if !trained.providers_lost.is_empty() {
        notes.insert(
            report::PROVIDERS_LOST.to_owned(),
            trained.providers_lost.join(", "),
        );
    }
    let provenance = Provenance {
        dataset: summary.dataset.clone(),
        engine: summary.engine.to_string(),
        rows: summary.rows as u64,
        providers: summary.providers as u32,
        iterations: summary.iterations,
        features: summary.feature_uses(),
        versions: [("heda".to_owned(), env!("CARGO_PKG_VERSION").to_owned())].into(),
        notes,
    };
    Model::new(config.loss, schema.clone(), &betas, provenance)
        .map_err(|e| Failure::new(Kind::Bug, e))
}
