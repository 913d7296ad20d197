//! The result must not depend on how wide the bounds of a schema are, and means and deviations are
//! asked for at most once.

use super::{StopAfter, TWO, encrypted, lbfgs, rows, run_with, schema, spec, with};
use heda_job::job::{Checkpoint, JobSpec, Outcome, Quiet};
use heda_learn::data::Dataset;
use heda_learn::oracle::{TrainConfig, score, train};
use heda_learn::scaling::Scaling;
use heda_learn::schema::Schema;
use std::sync::Arc;

/// The same rows under bounds `times` as far apart.
fn widened(data: &Dataset, times: f64) -> Dataset {
    let start = 0.4 * (1.0 - 1.0 / times);
    let values = data.values().iter().map(|x| start + x / times).collect();
    let (labels, classes) = (data.labels().to_vec(), data.classes().to_vec());
    Dataset::new(data.features().to_vec(), values, labels, classes).unwrap()
}

/// Rows that no line separates.
fn parts(times: f64) -> Vec<Dataset> {
    let part = |(count, seed)| {
        let data = rows(count, &TWO, seed);
        let mut labels = data.labels().to_vec();
        labels
            .iter_mut()
            .step_by(5)
            .for_each(|label| *label = 1 - *label);
        let classes = data.classes().to_vec();
        let features = data.features().to_vec();
        let noisy = Dataset::new(features, data.values().to_vec(), labels, classes);
        widened(&noisy.unwrap(), times)
    };
    [(300, 1), (400, 2)].map(part).to_vec()
}

fn encrypt_all(iterations: u32) -> JobSpec {
    with(&encrypted(&spec(&TWO, lbfgs(iterations))), |raw| {
        raw.held_out = 0.0;
    })
}

fn joined(parts: &[Dataset]) -> Dataset {
    let values = parts.iter().flat_map(|part| part.values().to_vec());
    let labels = parts.iter().flat_map(|part| part.labels().to_vec());
    let (features, classes) = (parts[0].features().to_vec(), parts[0].classes().to_vec());
    Dataset::new(features, values.collect(), labels.collect(), classes).unwrap()
}

#[test]
fn bounds_that_are_far_too_wide_cost_nothing() {
    for times in [1.0, 100.0] {
        let parts = parts(times);
        let all = joined(&parts);
        let exact = train(&all, 1, &TrainConfig::logistic()).unwrap();
        let outcome = run_with(&encrypt_all(14), parts, &mut Quiet, None).unwrap();
        assert_eq!(outcome.revealed.moment_numbers, 6, "three numbers a column");
        let fit = &outcome.fits[0];
        assert_eq!(fit.iterations, 14, "every gradient is asked for");
        let scaling = Scaling::of(&all);
        let [found, wanted] = [&fit.beta, &exact.beta].map(|beta| scaling.to_deviations(beta));
        for (found, wanted) in found.iter().zip(&wanted) {
            let apart = (found - wanted).abs();
            assert!(apart < 0.04, "{times}: {found} {wanted}");
        }
        let same = (0..all.rows()).filter(|&row| {
            let side = |beta: &[f64]| score(beta, all.row(row)) > 0.0;
            side(&fit.beta) == side(&exact.beta)
        });
        assert!(same.count() * 100 > 98 * all.rows(), "{times}");
    }
}

#[test]
fn a_resumed_job_does_not_ask_for_sums_again() {
    let spec = encrypt_all(6);
    let straight = run_with(&spec, parts(1.0), &mut Quiet, None).unwrap();
    // The split, the centres, two gradients.
    let mut stop = StopAfter {
        left: 4,
        kept: None,
    };
    assert!(run_with(&spec, parts(1.0), &mut stop, None).is_err());
    let kept: Checkpoint = serde_json::from_str(&stop.kept.unwrap()).unwrap();
    assert_eq!(kept.moments.as_ref().unwrap().centres.len(), 2);
    let resumed = run_with(&spec, parts(1.0), &mut Quiet, Some(kept)).unwrap();
    // What the first attempt learned stays revealed.
    assert_eq!(resumed.revealed.moment_numbers, 6);
    let beta = |outcome: &Outcome| outcome.fits[0].beta.clone();
    for (resumed, straight) in beta(&resumed).iter().zip(beta(&straight)) {
        assert!((resumed - straight).abs() < 0.05, "{resumed} {straight}");
    }
}

#[test]
fn a_schema_that_states_means_and_deviations_is_not_asked() {
    let stated = schema(&TWO).to_toml().replace(
        "kind = \"numeric\"",
        "kind = \"numeric\"\ntypical = { mean = 0.5, deviation = 0.3 }",
    );
    let stated = Arc::new(Schema::parse(&stated, "stated.toml").unwrap());
    let fingerprint = stated.fingerprint().to_string();
    let spec = JobSpec {
        schema: stated,
        ..with(&encrypt_all(4), |raw| raw.schema = fingerprint)
    };
    let randomness = heda_crypto::random::Randomness::seeded(5);
    let parts = heda_job::local::Parts::new(parts(1.0), &randomness).unwrap();
    let guards = parts.guards(&spec.schema, "1000".parse().unwrap());
    let run = heda_job::local::run(&spec, &guards, &randomness, &mut Quiet, None, false);
    assert_eq!(run.unwrap().outcome.revealed.moment_numbers, 0);
}
