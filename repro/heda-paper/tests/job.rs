//! Engine `paper` in jobs: whole ones beside engine `resident`, and what it refuses.
#![allow(clippy::unwrap_used, reason = "a test that fails should say where")]

use heda_crypto::random::Randomness;
use heda_job::description::{Protected, RawJob, Training};
use heda_job::engine::Engine;
use heda_job::error::JobError;
use heda_job::job::{JobSpec, Outcome, Quiet};
use heda_job::local::{self, Parts};
use heda_job::proposal::{JobId, Spending};
use heda_learn::data::Dataset;
use heda_learn::loss::LossKind;
use heda_learn::optimise::{Method, Settings};
use heda_learn::resident::Resolution;
use heda_learn::schema::Schema;
use heda_paper::engine::{KEY_BITS_OPTION, paper};
use rand_core::Rng;
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
bounds = [0.0, 1.0]

[[column]]
name = "b"
kind = "numeric"
bounds = [0.0, 1.0]
"#;

fn schema() -> Arc<Schema> {
    Arc::new(Schema::parse(SCHEMA, "rows.toml").unwrap())
}

/// Rows whose class is the half of the unit interval that their first feature lies in.
fn rows(count: usize, seed: u64) -> Dataset {
    let mut rng = Randomness::seeded(seed).fork("rows", 0).unwrap();
    let mut draw = || f64::from(rng.next_u32()) / f64::from(u32::MAX);
    let (mut values, mut labels) = (Vec::new(), Vec::new());
    for _ in 0..count {
        let (a, b) = (draw(), draw());
        labels.push(u32::from(a >= 0.5));
        values.extend([a, b]);
    }
    let classes = vec!["no".into(), "yes".into()];
    Dataset::new(schema().features(), values, labels, classes).unwrap()
}

/// One feature encrypted, the other published; three steps on batches.
fn spec(change: impl FnOnce(&mut RawJob)) -> JobSpec {
    let schema = schema();
    let method = Method::Descent {
        rate: 1.0,
        minimum_rate: 0.0,
        decay: 0.0,
        batches: 8,
    };
    let settings = Settings {
        method,
        c: None,
        tolerance: 0.0,
        max_iterations: 3,
    };
    let mut raw = RawJob {
        training: Training {
            settings,
            resolution: Resolution::default(),
            ..Training::usual(&schema)
        },
        protected: Protected::Best(1),
        spending: Some(Spending::Total("2".parse().unwrap())),
        ..RawJob::new("rows", &schema)
    };
    change(&mut raw);
    JobSpec::new(JobId([1; 16]), raw.try_into().unwrap(), schema)
}

fn run(spec: &JobSpec) -> Result<Outcome, JobError> {
    let randomness = Randomness::seeded(5);
    let parts = Parts::new(vec![rows(60, 1), rows(80, 2)], &randomness).unwrap();
    let guards = parts.guards(&schema(), "1000".parse().unwrap());
    local::run(spec, &guards, &randomness, &mut Quiet, None, false).map(|run| run.outcome)
}

#[test]
fn a_whole_job_agrees_with_engine_resident() {
    let expected = run(&spec(|_| {})).unwrap();
    let found = run(&spec(|raw| raw.engine = paper())).unwrap();
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
}

#[test]
fn what_the_engine_cannot_do_is_refused_with_the_remedy() {
    let refused = |change: fn(&mut RawJob)| {
        let spec = spec(|raw| {
            raw.engine = paper();
            change(raw);
        });
        run(&spec).unwrap_err().to_string()
    };
    let loss = refused(|raw| raw.loss = Some(LossKind::Ridge));
    assert!(loss.contains("use engine resident"), "{loss}");
    let short = refused(|raw| {
        raw.engine_options.insert(KEY_BITS_OPTION.into(), 1024);
    });
    assert!(short.contains("2048"), "{short}");
    let unknown = spec(|raw| raw.engine = paper()).with(|raw| {
        raw.engine_options.insert("speed".into(), 9);
    });
    let unknown = unknown.unwrap_err().to_string();
    assert!(unknown.contains("has no option speed"), "{unknown}");
}

#[test]
fn the_engine_is_known_by_its_name_and_says_what_it_leaks() {
    let registered = paper();
    assert_eq!("paper".parse(), Ok(registered));
    assert_eq!(Engine::all(), [Engine::RESIDENT, paper()]);
    assert!(paper().leaks().len() >= 5);
}
