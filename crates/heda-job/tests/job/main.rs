//! The job from outside: resumed runs, several classes, and everything that can be wrong with a
//! proposal or a provider. Errors name the provider, nothing hangs.
#![allow(clippy::unwrap_used)]

mod numbers;
mod pairwise;
mod path;
mod refusals;
mod scaling;
mod weights;

use heda_crypto::random::Randomness;
use heda_job::description::{Protected, Ranking, RawJob, Training};
use heda_job::error::JobError;
use heda_job::job::{
    Checkpoint, IotaChooser, JobSpec, Known, NoIota, NotKept, Observer, Outcome, Quiet,
};
use heda_job::local::{self, Parts};
use heda_job::proposal::{Engine, JobId, Spending};
use heda_learn::data::Dataset;
use heda_learn::gradient::Batch;
use heda_learn::loss::LossKind;
use heda_learn::optimise::{Method, Settings, safe_rate};
use heda_learn::partition::{Goal, Partition};
use heda_learn::resident::Resolution;
use heda_learn::schema::Schema;
use heda_learn::score;
use rand_core::Rng;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

fn schema(classes: &[&str]) -> Arc<Schema> {
    let quoted: Vec<String> = classes.iter().map(|class| format!("\"{class}\"")).collect();
    let positive = match classes.len() {
        2 => format!("positive = {}\n", quoted[1]),
        _ => String::new(),
    };
    let column =
        |name| format!("[[column]]\nname = \"{name}\"\nkind = \"numeric\"\nbounds = [0.0, 1.0]\n");
    let text = format!(
        "format = 1\nname = \"rows\"\n[label]\ncolumn = \"class\"\nclasses = [{}]\n{positive}{}{}",
        quoted.join(", "),
        column("a"),
        column("b"),
    );
    Arc::new(Schema::parse(&text, "rows.toml").unwrap())
}

/// Rows whose class is the part of the unit interval that their first feature lies in.
fn rows(count: usize, classes: &[&str], seed: u64) -> Dataset {
    let mut rng = Randomness::seeded(seed).fork("rows", 0).unwrap();
    let mut draw = || f64::from(rng.next_u32()) / f64::from(u32::MAX);
    let (mut values, mut labels) = (Vec::new(), Vec::new());
    for _ in 0..count {
        let (a, b) = (draw(), draw());
        labels.push(((a * classes.len() as f64) as u32).min(classes.len() as u32 - 1));
        values.extend([a, b]);
    }
    let names = classes.iter().map(|class| (*class).to_owned()).collect();
    Dataset::new(schema(classes).features(), values, labels, names).unwrap()
}

const TWO: [&str; 2] = ["no", "yes"];

fn spec(classes: &[&str], settings: Settings) -> JobSpec {
    let schema = schema(classes);
    let raw = RawJob {
        training: Training {
            settings,
            resolution: Resolution::default(),
            ..Training::usual(&schema)
        },
        protected: Protected::Best(1),
        spending: Some(Spending::Total("2".parse().unwrap())),
        ..RawJob::new("rows", &schema)
    };
    JobSpec::new(JobId([1; 16]), raw.try_into().unwrap(), schema)
}

/// The same job with something changed.
fn with(spec: &JobSpec, change: impl FnOnce(&mut RawJob)) -> JobSpec {
    spec.with(change).unwrap()
}

/// All features encrypted, none published.
fn encrypted(spec: &JobSpec) -> JobSpec {
    with(spec, |raw| {
        raw.protected = Protected::All;
        raw.spending = None;
    })
}

fn lbfgs(max_iterations: u32) -> Settings {
    Settings {
        max_iterations,
        ..Settings::lbfgs()
    }
}

fn run_with(
    spec: &JobSpec,
    parts: Vec<Dataset>,
    observer: &mut dyn Observer,
    resume: Option<Checkpoint>,
) -> Result<Outcome, JobError> {
    let randomness = Randomness::seeded(5);
    let parts = Parts::new(parts, &randomness).unwrap();
    let guards = parts.guards(&schema(&TWO), "1000".parse().unwrap());
    local::run(spec, &guards, &randomness, observer, resume, false).map(|run| run.outcome)
}

fn message(result: Result<Outcome, JobError>) -> String {
    result.unwrap_err().to_string()
}

fn two_parts() -> Vec<Dataset> {
    vec![rows(60, &TWO, 1), rows(80, &TWO, 2)]
}

/// Keeps the last checkpoint as text, and stops after some.
struct StopAfter {
    left: u32,
    kept: Option<String>,
}

impl Observer for StopAfter {
    fn checkpoint(&mut self, checkpoint: &Checkpoint) -> Result<bool, NotKept> {
        self.kept = Some(serde_json::to_string(checkpoint).map_err(NotKept::because)?);
        self.left -= 1;
        Ok(self.left > 0)
    }
}

#[test]
fn a_resumed_run_ends_where_the_uninterrupted_one_does() {
    resume(Engine::RESIDENT);
}

fn resume(engine: Engine) {
    let spec = with(&spec(&TWO, lbfgs(8)), |raw| raw.engine = engine);
    let whole = run_with(&spec, two_parts(), &mut Quiet, None).unwrap();
    // After the split, the centres and three iterations.
    let mut observer = StopAfter {
        left: 5,
        kept: None,
    };
    let stopped = run_with(&spec, two_parts(), &mut observer, None).unwrap_err();
    assert!(matches!(stopped, JobError::Interrupted));
    let checkpoint: Checkpoint = serde_json::from_str(&observer.kept.unwrap()).unwrap();
    assert_eq!(checkpoint.iteration, 3);
    let resumed = run_with(&spec, two_parts(), &mut Quiet, Some(checkpoint.clone())).unwrap();
    assert_eq!(resumed.fits[0].beta, whole.fits[0].beta);
    assert_eq!(resumed.fits[0].histogram, whole.fits[0].histogram);
    let other = JobSpec {
        id: JobId([2; 16]),
        ..spec
    };
    let refused = run_with(&other, two_parts(), &mut Quiet, Some(checkpoint)).unwrap_err();
    assert!(refused.to_string().contains("another job"), "{refused}");
}

#[test]
fn a_checkpoint_of_other_settings_is_refused_with_the_remedy() {
    let mut observer = StopAfter {
        left: 3,
        kept: None,
    };
    let spec = spec(&TWO, lbfgs(8));
    run_with(&spec, two_parts(), &mut observer, None).unwrap_err();
    let checkpoint: Checkpoint = serde_json::from_str(&observer.kept.unwrap()).unwrap();
    let method = Method::Descent {
        rate: 1.0,
        minimum_rate: 0.0,
        decay: 0.0,
        batches: 2,
    };
    for settings in [lbfgs(9), Settings { method, ..lbfgs(8) }] {
        let other = with(&spec, |raw| raw.training.settings = settings);
        let refused = run_with(&other, two_parts(), &mut Quiet, Some(checkpoint.clone()));
        let refused = message(refused);
        assert!(refused.contains("put them back"), "{refused}");
    }
}

#[test]
fn an_evaluation_that_is_done_is_not_asked_for_again() {
    // The same message belongs to a gradient.
    ask_for_evaluations_once(0x36, 6);
}

/// `tag` is the last message of an evaluation, and of so many gradients of the whole run.
fn ask_for_evaluations_once(tag: u8, gradients: usize) {
    const THREE: [&str; 3] = ["low", "middle", "high"];
    let spec = spec(&THREE, lbfgs(2));
    let randomness = Randomness::seeded(6);
    let run = |observer: &mut dyn Observer, resume| {
        let parts = vec![rows(150, &THREE, 1), rows(150, &THREE, 2)];
        let parts = Parts::new(parts, &randomness).unwrap();
        let guards = parts.guards(&schema(&THREE), "1000".parse().unwrap());
        local::run(&spec, &guards, &randomness, observer, resume, true)
    };
    let whole = run(&mut Quiet, None).unwrap().outcome;
    // After the split, the centres, two iterations a class and the first evaluation.
    let mut observer = StopAfter {
        left: 2 + 3 * 2 + 1,
        kept: None,
    };
    let stopped = run(&mut observer, None).err().unwrap();
    assert!(matches!(stopped, JobError::Interrupted), "{stopped}");
    let checkpoint: Checkpoint = serde_json::from_str(&observer.kept.unwrap()).unwrap();
    assert_eq!(checkpoint.histograms.len(), 1);
    let resumed = run(&mut Quiet, Some(checkpoint)).unwrap().outcome;
    let counts = |outcome: &Outcome| {
        let messages = outcome.providers[0].view.iter();
        messages.filter(|message| message.tag == tag).count()
    };
    assert_eq!((counts(&whole), counts(&resumed)), (3 + gradients, 2));
    for (whole, resumed) in whole.fits.iter().zip(&resumed.fits) {
        assert_eq!(whole.histogram, resumed.histogram);
    }
}

/// Rows whose class follows the second feature, so that their order of features is the other one.
fn mirrored(count: usize, seed: u64) -> Dataset {
    let data = rows(count, &TWO, seed);
    let values = data
        .values()
        .chunks_exact(2)
        .flat_map(|row| [row[1], row[0]]);
    let (values, labels) = (values.collect(), data.labels().to_vec());
    Dataset::new(
        data.features().to_vec(),
        values,
        labels,
        data.classes().to_vec(),
    )
    .unwrap()
}

#[test]
fn one_provider_may_choose_the_order_and_sends_no_scores() {
    let randomness = Randomness::seeded(5);
    for (chooser, first) in [(0, 0), (1, 1)] {
        let spec = JobSpec {
            chooser: Some(chooser),
            ..ranked_by_one()
        };
        let parts = vec![rows(60, &TWO, 1), mirrored(80, 2)];
        let parts = Parts::new(parts, &randomness).unwrap();
        let guards = parts.guards(&schema(&TWO), "1000".parse().unwrap());
        let run = local::run(&spec, &guards, &randomness, &mut Quiet, None, true).unwrap();
        assert_eq!(run.outcome.ranking, [(first, None), (1 - first, None)]);
        assert_eq!(
            run.outcome.ranked_by,
            format!("provider-{} alone, by kw", chooser + 1)
        );
        for (place, provider) in run.outcome.providers.iter().enumerate() {
            // Two bytes a feature after the fingerprint of the schema; scores would be six.
            let scores = provider.view.iter().filter(|message| message.tag == 0x04);
            let lengths: Vec<usize> = scores.map(|message| message.body.len()).collect();
            let expected: &[usize] = if place == chooser { &[32 + 4] } else { &[] };
            assert_eq!(lengths, expected);
        }
    }
    for chooser in [None, Some(2)] {
        let nobody = JobSpec {
            chooser,
            ..ranked_by_one()
        };
        let refused = message(run_with(&nobody, two_parts(), &mut Quiet, None));
        assert!(
            refused.contains("which of its providers ranks"),
            "{refused}"
        );
    }
}

fn ranked_by_one() -> JobSpec {
    with(&spec(&TWO, lbfgs(2)), |raw| {
        let method = score::ScoringMethod::KruskalWallis;
        raw.ranking = Some(Ranking::Chosen { method });
    })
}

/// Chooses the number of features that it was made with, and counts how often it was asked.
#[derive(Debug)]
struct Chooser {
    iota: usize,
    asked: AtomicUsize,
}

impl IotaChooser for Chooser {
    fn choose(&self, known: Known<'_>) -> Result<Partition, NoIota> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        assert_eq!(known.rows, [60, 80]);
        assert_eq!(known.features.len(), 2);
        Partition::exactly(known.ranking, self.iota).map_err(NoIota::because)
    }
}

#[test]
fn a_chosen_split_is_kept_before_anyone_hears_it_and_not_chosen_again() {
    let chooser = Arc::new(Chooser {
        iota: 1,
        asked: AtomicUsize::new(0),
    });
    let goal = Protected::For(Goal::WithinSeconds(1.0));
    let spec = JobSpec {
        iota: Some(Arc::clone(&chooser) as Arc<dyn IotaChooser>),
        ..with(&spec(&TWO, lbfgs(4)), |raw| raw.protected = goal)
    };
    let mut observer = StopAfter {
        left: 1,
        kept: None,
    };
    let stopped = run_with(&spec, two_parts(), &mut observer, None).unwrap_err();
    assert!(matches!(stopped, JobError::Interrupted));
    let checkpoint: Checkpoint = serde_json::from_str(&observer.kept.unwrap()).unwrap();
    assert_eq!((checkpoint.iteration, checkpoint.optimisers.len()), (0, 0));
    assert_eq!(checkpoint.split.encrypted, [0]);
    let resumed = run_with(&spec, two_parts(), &mut Quiet, Some(checkpoint)).unwrap();
    assert_eq!(chooser.asked.load(Ordering::Relaxed), 1);
    let whole = run_with(&spec, two_parts(), &mut Quiet, None).unwrap();
    assert_eq!(chooser.asked.load(Ordering::Relaxed), 2);
    assert_eq!(resumed.fits[0].beta, whole.fits[0].beta);
    assert!(whole.split_reason.unwrap().contains("the best 1 of 2"));
    let too_many = JobSpec {
        iota: Some(Arc::new(Chooser {
            iota: 3,
            asked: AtomicUsize::new(0),
        })),
        ..spec
    };
    let refused = message(run_with(&too_many, two_parts(), &mut Quiet, None));
    assert!(refused.contains("cannot encrypt 3 features"), "{refused}");
}

#[test]
fn several_classes_are_told_apart_one_against_the_rest() {
    tell_classes_apart(Engine::RESIDENT);
}

fn tell_classes_apart(engine: Engine) {
    const THREE: [&str; 3] = ["low", "middle", "high"];
    let spec = with(&encrypted(&spec(&THREE, lbfgs(12))), |raw| {
        raw.engine = engine;
    });
    let randomness = Randomness::seeded(6);
    let parts = vec![rows(150, &THREE, 1), rows(150, &THREE, 2)];
    let parts = Parts::new(parts, &randomness).unwrap();
    let guards = parts.guards(&schema(&THREE), "1".parse().unwrap());
    let run = local::run(&spec, &guards, &randomness, &mut Quiet, None, false).unwrap();
    assert_eq!(run.outcome.fits.len(), 3);
    assert_eq!(run.outcome.ranking[0].0, 0, "the first feature decides");
    for (class, fit) in run.outcome.fits.iter().enumerate() {
        let confusion = fit.histogram.as_ref().unwrap().confusion();
        assert_eq!(confusion.rows(), 60);
        // The outer classes are separable by a line, the middle one is not.
        let accuracy = confusion.accuracy().unwrap();
        assert!(class == 1 || accuracy > 0.85, "class {class}: {accuracy}");
    }
}

#[test]
fn every_loss_and_optimiser_trains() {
    train_every_loss(Engine::RESIDENT);
}

fn train_every_loss(engine: Engine) {
    for loss in [LossKind::Logistic, LossKind::SquaredHinge, LossKind::Ridge] {
        let rate = safe_rate(loss, 2, 0.01);
        let descent = Method::Descent {
            rate,
            minimum_rate: 0.0,
            decay: 0.0,
            batches: 2,
        };
        let nesterov = Method::Nesterov { rate, batches: 1 };
        for method in [descent, nesterov, Method::Lbfgs { memory: 5 }] {
            let settings = Settings {
                method: method.clone(),
                c: Some(1.0),
                tolerance: 1e-3,
                max_iterations: 60,
            };
            let spec = with(&encrypted(&spec(&TWO, settings)), |raw| {
                raw.engine = engine;
                raw.loss = Some(loss);
            });
            let outcome = run_with(&spec, two_parts(), &mut Quiet, None).unwrap();
            let accuracy = outcome.fits[0]
                .histogram
                .as_ref()
                .unwrap()
                .confusion()
                .accuracy();
            let accuracy = accuracy.unwrap();
            assert!(accuracy > 0.75, "{engine} {loss} {method:?}: {accuracy}");
        }
    }
}
