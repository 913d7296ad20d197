//! The job from outside: resumed runs, several classes, and everything that can be wrong with a
//! proposal or a provider. Errors name the provider, nothing hangs.
#![allow(clippy::unwrap_used)]

use ed25519_dalek::SigningKey;
use heda_blocks::channel::Channel;
use heda_crypto::random::Randomness;
use heda_learn::data::Dataset;
use heda_learn::fixed::Precision;
use heda_learn::loss::LossKind;
use heda_learn::optimise::{Method, Settings, safe_rate};
use heda_learn::partition::Partition;
use heda_learn::schema::Schema;
use heda_learn::score;
use heda_train::error::JobError;
use heda_train::job::{
    self, Checkpoint, Choice, IotaChooser, JobSpec, Known, Link, Observer, Outcome, Quiet,
};
use heda_train::local::{self, Parts};
use heda_train::proposal::{Engine, JobId, Ranking, Spending};
use rand_core::Rng;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

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
    let positives = match classes.len() {
        2 => vec![1],
        more => (0..more as u32).collect(),
    };
    JobSpec {
        job: JobId([1; 16]),
        dataset: "rows".into(),
        schema: schema(classes),
        positives,
        engine: Engine::Lookup,
        loss: LossKind::Logistic,
        precision: Precision::default(),
        settings,
        holdout_permille: 200,
        ranking: Ranking::Agreed {
            method: score::Method::KruskalWallis,
        },
        choice: Choice::Best(1),
        spending: Some(Spending::Total("2".parse().unwrap())),
        key_bits: 2048,
    }
}

fn lbfgs(max_iterations: u32) -> Settings {
    Settings {
        max_iterations,
        ..Settings::lbfgs(0.01)
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
    let houses = parts.houses(&schema(&TWO), "1000".parse().unwrap());
    local::run(spec, &houses, &randomness, observer, resume, false).map(|run| run.outcome)
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
    fn checkpoint(&mut self, checkpoint: &Checkpoint) -> Result<bool, String> {
        self.kept = Some(serde_json::to_string(checkpoint).map_err(|e| e.to_string())?);
        self.left -= 1;
        Ok(self.left > 0)
    }
}

#[test]
fn a_resumed_run_ends_where_the_uninterrupted_one_does() {
    let spec = spec(&TWO, lbfgs(8));
    let whole = run_with(&spec, two_parts(), &mut Quiet, None).unwrap();
    // After the split and three iterations.
    let mut observer = StopAfter {
        left: 4,
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
        job: JobId([2; 16]),
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
        let other = JobSpec {
            settings,
            ..spec.clone()
        };
        let refused = run_with(&other, two_parts(), &mut Quiet, Some(checkpoint.clone()));
        let refused = message(refused);
        assert!(refused.contains("put them back"), "{refused}");
    }
}

#[test]
fn an_evaluation_that_is_done_is_not_asked_for_again() {
    const THREE: [&str; 3] = ["low", "middle", "high"];
    let spec = spec(&THREE, lbfgs(2));
    let randomness = Randomness::seeded(6);
    let run = |observer: &mut dyn Observer, resume| {
        let parts = vec![rows(150, &THREE, 1), rows(150, &THREE, 2)];
        let parts = Parts::new(parts, &randomness).unwrap();
        let houses = parts.houses(&schema(&THREE), "1000".parse().unwrap());
        local::run(&spec, &houses, &randomness, observer, resume, true)
    };
    let whole = run(&mut Quiet, None).unwrap().outcome;
    // After the split, two iterations a class and the first evaluation.
    let mut observer = StopAfter {
        left: 1 + 3 * 2 + 1,
        kept: None,
    };
    let stopped = run(&mut observer, None).err().unwrap();
    assert!(matches!(stopped, JobError::Interrupted), "{stopped}");
    let checkpoint: Checkpoint = serde_json::from_str(&observer.kept.unwrap()).unwrap();
    assert_eq!(checkpoint.histograms.len(), 1);
    let resumed = run(&mut Quiet, Some(checkpoint)).unwrap().outcome;
    let counts = |outcome: &Outcome| {
        let messages = outcome.providers[0].view.iter();
        messages.filter(|message| message.tag == 0x26).count()
    };
    assert_eq!((counts(&whole), counts(&resumed)), (3, 2));
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
            ranking: Ranking::Chosen {
                method: score::Method::KruskalWallis,
                chooser,
            },
            ..spec(&TWO, lbfgs(2))
        };
        let parts = vec![rows(60, &TWO, 1), mirrored(80, 2)];
        let parts = Parts::new(parts, &randomness).unwrap();
        let houses = parts.houses(&schema(&TWO), "1000".parse().unwrap());
        let run = local::run(&spec, &houses, &randomness, &mut Quiet, None, true).unwrap();
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
    let nobody = JobSpec {
        ranking: Ranking::Chosen {
            method: score::Method::KruskalWallis,
            chooser: 2,
        },
        ..spec(&TWO, lbfgs(2))
    };
    let refused = message(run_with(&nobody, two_parts(), &mut Quiet, None));
    assert!(
        refused.contains("the place of the provider that ranks"),
        "{refused}"
    );
}

/// Chooses the number of features that it was made with, and counts how often it was asked.
#[derive(Debug)]
struct Chooser {
    iota: usize,
    asked: AtomicUsize,
}

impl IotaChooser for Chooser {
    fn choose(&self, known: Known<'_>) -> Result<Partition, String> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        assert_eq!(known.rows, [60, 80]);
        assert_eq!(known.features.len(), 2);
        Partition::exactly(known.ranking, self.iota).map_err(|e| e.to_string())
    }
}

#[test]
fn a_chosen_split_is_kept_before_anyone_hears_it_and_not_chosen_again() {
    let chooser = Arc::new(Chooser {
        iota: 1,
        asked: AtomicUsize::new(0),
    });
    let spec = JobSpec {
        choice: Choice::Auto(Arc::clone(&chooser) as Arc<dyn IotaChooser>),
        ..spec(&TWO, lbfgs(4))
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
        choice: Choice::Auto(Arc::new(Chooser {
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
    const THREE: [&str; 3] = ["low", "middle", "high"];
    let spec = JobSpec {
        choice: Choice::Best(2),
        spending: None,
        ..spec(&THREE, lbfgs(12))
    };
    let randomness = Randomness::seeded(6);
    let parts = vec![rows(150, &THREE, 1), rows(150, &THREE, 2)];
    let parts = Parts::new(parts, &randomness).unwrap();
    let houses = parts.houses(&schema(&THREE), "1".parse().unwrap());
    let run = local::run(&spec, &houses, &randomness, &mut Quiet, None, false).unwrap();
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
                l2: 0.01,
                tolerance: 1e-3,
                max_iterations: 60,
            };
            let base = spec(&TWO, settings);
            let spec = JobSpec {
                loss,
                choice: Choice::Best(2),
                spending: None,
                ..base
            };
            let outcome = run_with(&spec, two_parts(), &mut Quiet, None).unwrap();
            let accuracy = outcome.fits[0]
                .histogram
                .as_ref()
                .unwrap()
                .confusion()
                .accuracy();
            assert!(accuracy.unwrap() > 0.75, "{loss} {method:?}: {accuracy:?}");
        }
    }
}

fn message(result: Result<Outcome, JobError>) -> String {
    result.unwrap_err().to_string()
}

#[test]
fn too_small_batches_are_refused_by_the_provider_they_would_expose() {
    let method = Method::Descent {
        rate: 0.5,
        minimum_rate: 0.0,
        decay: 0.0,
        batches: 30,
    };
    let settings = Settings {
        method,
        l2: 0.0,
        tolerance: 0.0,
        max_iterations: 5,
    };
    let refused = message(run_with(
        &spec(&TWO, settings),
        two_parts(),
        &mut Quiet,
        None,
    ));
    assert!(
        refused.contains("provider-1") && refused.contains("use fewer batches"),
        "{refused}"
    );
}

#[test]
fn a_few_held_out_rows_are_refused_by_the_provider_they_would_expose() {
    // One row of 60, and none.
    for (holdout_permille, held_out) in [(20, "1 rows"), (10, "0 rows")] {
        let spec = JobSpec {
            holdout_permille,
            ..spec(&TWO, lbfgs(3))
        };
        let refused = message(run_with(&spec, two_parts(), &mut Quiet, None));
        assert!(refused.contains("provider-1"), "{refused}");
        assert!(refused.contains(held_out), "{refused}");
        assert!(refused.contains("hold out a larger share"), "{refused}");
    }
    let nothing = JobSpec {
        holdout_permille: 0,
        ..spec(&TWO, lbfgs(3))
    };
    let trained = run_with(&nothing, two_parts(), &mut Quiet, None).unwrap();
    assert_eq!(trained.fits[0].histogram, None);
}

#[test]
fn what_cannot_be_done_costs_nothing() {
    let randomness = Randomness::seeded(5);
    let parts = Parts::new(two_parts(), &randomness).unwrap();
    // Enough for one release.
    let houses = parts.houses(&schema(&TWO), "2".parse().unwrap());
    let possible = spec(&TWO, lbfgs(2));
    let impossible = JobSpec {
        job: JobId([9; 16]),
        engine: Engine::Paper,
        loss: LossKind::Ridge,
        ..possible.clone()
    };
    let run = |spec| local::run(spec, &houses, &randomness, &mut Quiet, None, false);
    let refused = run(&impossible).err().unwrap().to_string();
    assert!(refused.contains("use engine lookup"), "{refused}");
    run(&possible).unwrap();
}

#[test]
fn a_training_that_runs_away_is_stopped_with_the_remedy() {
    let method = Method::Descent {
        rate: 1e308,
        minimum_rate: 0.0,
        decay: 0.0,
        batches: 1,
    };
    let settings = Settings {
        method,
        l2: 0.0,
        tolerance: 0.0,
        max_iterations: 20,
    };
    let failed = message(run_with(
        &spec(&TWO, settings),
        two_parts(),
        &mut Quiet,
        None,
    ));
    assert!(failed.contains("learning rate"), "{failed}");
}

#[test]
fn another_schema_is_refused_with_both_fingerprints() {
    let other = schema(&["nein", "ja"]);
    let spec = JobSpec {
        schema: Arc::clone(&other),
        ..spec(&TWO, lbfgs(3))
    };
    let refused = message(run_with(&spec, two_parts(), &mut Quiet, None));
    assert!(
        refused.contains(&other.fingerprint().to_string()),
        "{refused}"
    );
    assert!(
        refused.contains(&schema(&TWO).fingerprint().to_string()),
        "{refused}"
    );
}

#[test]
fn a_provider_with_one_class_cannot_take_part() {
    let mixed = rows(60, &TWO, 3);
    let ones: Vec<usize> = (0..60).filter(|&row| mixed.labels()[row] == 1).collect();
    let parts = vec![rows(60, &TWO, 1), mixed.select_rows(&ones)];
    let refused = message(run_with(&spec(&TWO, lbfgs(3)), parts, &mut Quiet, None));
    assert!(
        refused.contains("provider-2") && refused.contains("one side of class"),
        "{refused}"
    );
}

#[test]
fn an_exhausted_budget_releases_nothing() {
    let randomness = Randomness::seeded(5);
    let parts = Parts::new(two_parts(), &randomness).unwrap();
    let houses = parts.houses(&schema(&TWO), "1".parse().unwrap());
    let spec = spec(&TWO, lbfgs(3));
    let failed = local::run(&spec, &houses, &randomness, &mut Quiet, None, false);
    let failed = failed.unwrap_err().to_string();
    assert!(failed.contains("limit 1"), "{failed}");
}

#[test]
fn iota_beyond_the_features_is_refused_before_anything_is_encrypted() {
    let spec = JobSpec {
        choice: Choice::Best(3),
        ..spec(&TWO, lbfgs(3))
    };
    let refused = message(run_with(&spec, two_parts(), &mut Quiet, None));
    assert!(refused.contains("choose 0 to 2"), "{refused}");
}

/// Runs a job with one provider that behaves as told.
fn with_impostor(behave: impl FnOnce(Channel) + Send) -> String {
    let mut rng = Randomness::seeded(1).fork("identity", 0).unwrap();
    let identity = SigningKey::generate(&mut rng).verifying_key();
    let (user, end) = Channel::pair(Duration::from_millis(300));
    let links = vec![Link {
        name: "impostor".into(),
        identity,
        channel: user,
    }];
    std::thread::scope(|scope| {
        scope.spawn(move || behave(end));
        let randomness = Randomness::seeded(2);
        job::run(&spec(&TWO, lbfgs(3)), links, &randomness, &mut Quiet, None)
            .unwrap_err()
            .to_string()
    })
}

#[test]
fn nonsense_silence_and_departure_name_the_provider() {
    let nonsense = with_impostor(|mut channel| {
        channel.receive(0x01, 1 << 20).unwrap();
        channel.send(0x02, b"{\"rows\": -1}").unwrap();
    });
    assert!(
        nonsense.starts_with("provider impostor: its message \"acceptance\""),
        "{nonsense}"
    );
    let other_tag = with_impostor(|mut channel| {
        channel.receive(0x01, 1 << 20).unwrap();
        channel.send(0x55, b"").unwrap();
    });
    assert!(
        other_tag.contains("impostor") && other_tag.contains("message 85"),
        "{other_tag}"
    );
    let gone = with_impostor(drop);
    assert!(
        gone.contains("impostor") && gone.contains("closed"),
        "{gone}"
    );
    let silent = with_impostor(|_channel| std::thread::sleep(Duration::from_secs(1)));
    assert!(
        silent.contains("impostor") && silent.contains("did not answer"),
        "{silent}"
    );
    let greedy = with_impostor(|mut channel| {
        channel.receive(0x01, 1 << 20).unwrap();
        channel.send(0x02, &vec![b' '; 2 << 20]).unwrap();
    });
    assert!(
        greedy.contains("impostor") && greedy.contains("at most"),
        "{greedy}"
    );
}

#[test]
fn engine_paper_runs_a_whole_job_and_agrees_with_lookup() {
    let method = Method::Descent {
        rate: 1.0,
        minimum_rate: 0.0,
        decay: 0.0,
        batches: 8,
    };
    let settings = Settings {
        method,
        l2: 0.0,
        tolerance: 0.0,
        max_iterations: 3,
    };
    let lookup = spec(&TWO, settings);
    let paper = JobSpec {
        engine: Engine::Paper,
        ..lookup.clone()
    };
    let expected = run_with(&lookup, two_parts(), &mut Quiet, None).unwrap();
    let found = run_with(&paper, two_parts(), &mut Quiet, None).unwrap();
    assert_eq!(found.split, expected.split);
    let pairs = found.fits[0].beta.iter().zip(&expected.fits[0].beta);
    for (found, expected) in pairs {
        // The grids differ: two decimals against 1/128, coefficients in steps of 1/128.
        assert!((found - expected).abs() < 0.05, "{found} for {expected}");
    }
    assert!(found.fits[0].histogram.is_some());
    assert!(!found.revealed.summed, "every gradient is seen by itself");
    for provider in &found.providers {
        assert_eq!(provider.traffic["train"].round_trips, 3 * 3);
    }
    let short = JobSpec {
        key_bits: 1024,
        ..paper
    };
    let refused = run_with(&short, two_parts(), &mut Quiet, None).unwrap_err();
    assert!(refused.to_string().contains("2048"), "{refused}");
}
