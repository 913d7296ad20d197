//! Whole jobs: the engine beside engine `lookup`, and its evaluation beside the clear model.

use crate::engine::Engine;
use crate::engine::lookup::tests::{FEATURES, counted_in_clear, dataset, run, spec};
use crate::job::JobSpec;
use heda_learn::data::Dataset;
use heda_learn::loss::LossKind;

fn resident(spec: JobSpec) -> JobSpec {
    JobSpec {
        engine: Engine::Resident,
        ..spec
    }
}

/// Both engines round without bias, each in its own way, and publish the same noisy columns.
#[test]
fn five_steps_end_near_those_of_the_other_engine() {
    let cases = [
        (LossKind::Logistic, 0.05),
        (LossKind::SquaredHinge, 0.25),
        (LossKind::Ridge, 0.2),
    ];
    for (loss, within) in cases {
        for iota in [0, 2, FEATURES] {
            for (sizes, batches) in [(vec![60], 1), (vec![45, 60, 51], 3)] {
                let sizes = sizes.iter().enumerate();
                let parts: Vec<Dataset> = sizes.map(|(i, &rows)| dataset(rows, i as u64)).collect();
                let spec = spec(loss, iota, batches);
                let expected = &run(&spec, &parts).outcome.fits[0].beta;
                let found = &run(&resident(spec), &parts).outcome.fits[0].beta;
                for (found, expected) in found.iter().zip(expected) {
                    let apart = (found - expected).abs();
                    assert!(
                        apart < within,
                        "{loss} {iota} {batches}: {found} {expected}"
                    );
                }
                assert_ne!(found, &vec![0.0; 7]);
            }
        }
    }
}

#[test]
fn two_round_trips_an_iteration_and_one_before_the_first() {
    let spec = resident(spec(LossKind::Logistic, FEATURES, 1));
    let got = run(&spec, &[dataset(30, 1), dataset(30, 2)]);
    for provider in &got.outcome.providers {
        assert_eq!(provider.traffic["train"].round_trips, 2 * 5 + 1);
    }
}

#[test]
fn the_histogram_counts_the_held_out_rows_as_the_clear_model_does() {
    let parts = [dataset(200, 1), dataset(150, 2)];
    for iota in [1, FEATURES] {
        let mut spec = resident(spec(LossKind::Logistic, iota, 1));
        spec.settings.max_iterations = 8;
        let got = run(&spec, &parts);
        let fit = &got.outcome.fits[0];
        let expected = counted_in_clear(&parts, &fit.beta);
        let confusion = fit.histogram.as_ref().unwrap().confusion();
        assert_eq!(
            [confusion.true_negatives, confusion.false_positives],
            expected[0]
        );
        assert_eq!(
            [confusion.false_negatives, confusion.true_positives],
            expected[1]
        );
        assert_eq!(confusion.rows(), 70);
    }
}

/// A model that converges at once asks for as many gradients as one that does not.
#[test]
fn providers_cannot_see_when_the_training_converged() {
    let trips = [1e3, 0.0].map(|tolerance| {
        let mut spec = resident(spec(LossKind::Logistic, FEATURES, 2));
        spec.settings.tolerance = tolerance;
        let got = run(&spec, &[dataset(60, 1)]);
        let used = got.outcome.fits[0].iterations;
        (used, got.outcome.providers[0].traffic["train"])
    });
    assert!(trips[0].0 < trips[1].0, "one of them converged");
    assert_eq!(trips[0].1.round_trips, trips[1].1.round_trips);
    assert_eq!(trips[0].1.bytes_sent, trips[1].1.bytes_sent);
    assert_eq!(trips[0].1.bytes_received, trips[1].1.bytes_received);
}

/// Before the first gradient nothing is sent whose length depends on rows, and little else.
#[test]
fn setup_sends_no_rows() {
    let spec = resident(spec(LossKind::Logistic, FEATURES, 1));
    let [small, large] = [40, 400].map(|rows| {
        let got = run(&spec, &[dataset(rows, 1)]);
        got.outcome.providers[0].traffic["encrypt"]
    });
    assert_eq!(small.bytes_sent, large.bytes_sent);
    assert_eq!(small.bytes_received, large.bytes_received);
    assert!(small.bytes_sent + small.bytes_received < 2_000_000);
}
