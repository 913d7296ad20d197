//! The evaluation of whole private jobs: beside counts in clear, with lost answers, with persons.

use super::job_tests::private_spec;
use crate::engine::testing::{SEED, dataset, local_providers_for, run, schema, with};
use crate::guard::{LocalGuard, MemoryLedger};
use crate::job::{Checkpoint, JobSpec, NotKept, Observer, Quiet};
use crate::local::{self, LocalProvider};
use crate::rows::{RowOrder, RowSeed};
use heda_crypto::random::Randomness;
use heda_learn::data::Dataset;
use heda_learn::private::PrivateEncoding;
use std::sync::Arc;

/// The held-out rows of a private job, counted in clear by its coefficients: those of the other class
/// by predicted class, then of the positive one.
fn private_counts(spec: &JobSpec, parts: &[Dataset], beta: &[f64]) -> Vec<f64> {
    let mut counts = vec![0.0; 4];
    for (index, data) in parts.iter().enumerate() {
        let randomness = Randomness::seeded(SEED).party(&format!("provider-{}", index + 1));
        let seed = RowSeed::fresh(&randomness).unwrap();
        let order = RowOrder::draw(data.rows(), spec.job.held_out(), &seed);
        let held_out = order.cut(data).1;
        for row in 0..held_out.rows() {
            let cells = held_out.row(row).iter().zip(&beta[1..]);
            let score = beta[0] + cells.map(|(x, b)| x * b).sum::<f64>();
            let lane = usize::from(score >= 0.0);
            counts[2 * usize::from(held_out.labels()[row] == 1) + lane] += 1.0;
        }
    }
    counts
}

/// A private job that holds out a quarter.
fn held_out_spec(training: u64, epsilon: &str) -> JobSpec {
    with(&private_spec(training, epsilon), |raw| raw.held_out = 0.25)
}

/// Held-out rows of a private job are counted with noise, twice, and the job costs no more for it: they
/// are other rows than those that it trains on.
#[test]
fn held_out_rows_of_a_private_job_are_counted_with_noise() {
    let sizes = [900, 700, 800];
    let parts = sizes.iter().enumerate();
    let parts: Vec<Dataset> = parts.map(|(i, &rows)| dataset(rows, i as u64)).collect();
    let off = |epsilon: &str| {
        let spec = held_out_spec(1800, epsilon);
        let outcome = run(&spec, &parts).outcome;
        let fit = &outcome.fits[0];
        let histogram = fit.histogram.clone().unwrap();
        assert_eq!(histogram.confusion().rows(), 600);
        assert_eq!(histogram.negatives.len(), 2);
        // One number, and a table of four.
        assert_eq!(outcome.revealed.count_numbers, 5);
        let right = fit.right.unwrap();
        assert_eq!(right.rows, 600);
        let width = PrivateEncoding::new(&schema()).width();
        let plan = spec.job.privacy().unwrap().plan(width).unwrap();
        let planned = spec.job.privacy().unwrap().noise_in_right(&plan, 3, 600);
        assert!((right.deviation - planned).abs() < 1e-9);
        let clear = private_counts(&spec, &parts, &fit.beta);
        let off = (right.estimate - clear[0] - clear[3]).abs();
        (off, right.deviation, histogram.noise.unwrap())
    };
    // Rounding of scores moves a few rows over the edge. No floor is under the noise.
    let (much, right, table) = off("50");
    assert!(right < 0.4 && table < 1.2, "{right} {table}");
    assert!(much < 4.0, "{much}");
    let (little, right, table) = off("0.1");
    assert!(right > 25.0 && table > 2.5 * right, "{right} {table}");
    assert!(little < 4.0 * right, "{little} {right}");
    // Paid beside the gradients, and not on top of them.
    let spec = held_out_spec(300, "1");
    let width = PrivateEncoding::new(&schema()).width();
    let plan = spec.job.privacy().unwrap().plan(width).unwrap();
    assert!(plan.cost_of_counts() <= plan.cost());
    let books = MemoryLedger::default();
    books.limit_private(plan.cost());
    let seed = [1; 32].into();
    let guard = LocalGuard::new(Arc::new(dataset(400, 1)), schema(), seed, books.clone());
    let providers = [LocalProvider {
        name: "clinic".into(),
        guard: Box::new(guard),
    }];
    let randomness = Randomness::seeded(1);
    let run = local::run(&spec, &providers, &randomness, &mut Quiet, None, false);
    assert!(run.unwrap().outcome.fits[0].histogram.is_some());
    assert_eq!(books.spent_private(), plan.cost());
}

/// From a thousand held-out rows on the table has ranges of scores.
#[test]
fn many_held_out_rows_are_counted_by_range() {
    let parts = [dataset(2200, 1), dataset(2200, 2)];
    let spec = held_out_spec(3300, "5");
    let fit = run(&spec, &parts).outcome.fits.remove(0);
    let histogram = fit.histogram.unwrap();
    assert_eq!((histogram.negatives.len(), histogram.decision), (4, 2));
    assert_eq!(histogram.confusion().rows(), 1100);
    assert!(histogram.auc_bounds().is_some());
}

/// Each answer is kept on its own: with either of them lost there is still an accuracy.
#[test]
fn one_lost_answer_does_not_cost_the_other() {
    struct Keep(Vec<Checkpoint>);
    impl Observer for Keep {
        fn checkpoint(&mut self, checkpoint: &Checkpoint) -> Result<bool, NotKept> {
            self.0.push(checkpoint.clone());
            Ok(true)
        }
    }
    let parts = [dataset(400, 1)];
    let spec = held_out_spec(300, "5");
    let (randomness, mut kept) = (Randomness::seeded(SEED), Keep(Vec::new()));
    let guards = local_providers_for(&parts, &randomness);
    let whole = local::run(&spec, &guards, &randomness, &mut kept, None, false);
    let whole = whole.unwrap().outcome.fits.remove(0);
    let last = kept.0.pop().unwrap();
    let answers = last.noisy.clone();
    assert_eq!(answers.iter().flatten().count(), 2);
    for lost in [0, 1] {
        let mut state = last.clone();
        state.noisy[lost] = None;
        let guards = local_providers_for(&parts, &randomness);
        let resumed = local::run(&spec, &guards, &randomness, &mut Quiet, Some(state), false);
        let fit = resumed.unwrap().outcome.fits.remove(0);
        let right = fit.right.unwrap();
        assert!(right.deviation > whole.right.unwrap().deviation);
        assert_eq!(fit.histogram.is_some(), lost == 0);
        let alone = answers[1 - lost].as_ref().unwrap();
        match lost {
            0 => assert_eq!(right.deviation, alone.deviation),
            _ => assert_eq!(right.estimate, alone.counts[0]),
        }
    }
}

/// Five rows of everybody are one person: means and lengths of steps go by persons.
#[test]
fn moments_and_steps_of_a_job_that_protects_persons_go_by_persons() {
    struct Last(Option<Checkpoint>);
    impl Observer for Last {
        fn checkpoint(&mut self, checkpoint: &Checkpoint) -> Result<bool, NotKept> {
            self.0 = Some(checkpoint.clone());
            Ok(true)
        }
    }
    let drawn = dataset(2000, 1);
    let mut values = drawn.values().to_vec();
    values
        .chunks_mut(drawn.width())
        .for_each(|row| row[0] = 0.9);
    let names = drawn.classes().to_vec();
    let labels = drawn.labels().to_vec();
    let data = Dataset::new(drawn.features().to_vec(), values, labels, names).unwrap();
    let persons: Vec<u32> = (0..2000).map(|row| row / 5).collect();
    let spec = with(&private_spec(400, "40"), |raw| {
        raw.privacy = raw.privacy.map(|privacy| privacy.suited(&schema()));
    });
    let seed = [4; 32].into();
    let guard = LocalGuard::new(Arc::new(data), schema(), seed, MemoryLedger::default());
    let providers = [LocalProvider {
        name: "clinic".into(),
        guard: Box::new(guard.of_persons(persons)),
    }];
    let (randomness, mut last) = (Randomness::seeded(1), Last(None));
    let outcome = local::run(&spec, &providers, &randomness, &mut last, None, false);
    let outcome = outcome.unwrap().outcome;
    assert_eq!(outcome.providers[0].rows, 2000);
    let bought = last.0.unwrap().bought.unwrap();
    // Divided by rows it would be 0.58.
    let mean = bought.centres[0].mean;
    assert!((mean - 0.9).abs() < 0.03, "{mean}");
    let persons = bought.persons.unwrap();
    assert!((persons - 400.0).abs() < 40.0, "{persons}");
    assert_eq!(outcome.persons, Some(persons));
    let width = PrivateEncoding::new(&schema()).width();
    let plan = outcome.privacy.unwrap().plan(width).unwrap();
    assert_eq!(outcome.settings, plan.settings_for(persons));
    assert_ne!(outcome.settings, plan.settings_for(2000.0));
}

/// Persons are held out with all of their rows, and one row of each is counted.
#[test]
fn a_private_job_that_protects_persons_is_evaluated() {
    let data = dataset(1200, 1);
    // Three rows a person.
    let persons: Vec<u32> = (0..1200).map(|row| row / 3).collect();
    let spec = held_out_spec(900, "5");
    let seed = [4; 32].into();
    let guard = LocalGuard::new(Arc::new(data), schema(), seed, MemoryLedger::default());
    let providers = [LocalProvider {
        name: "clinic".into(),
        guard: Box::new(guard.of_persons(persons)),
    }];
    let randomness = Randomness::seeded(1);
    let outcome = local::run(&spec, &providers, &randomness, &mut Quiet, None, false);
    let outcome = outcome.unwrap().outcome;
    let provider = &outcome.providers[0];
    assert_eq!((provider.rows, provider.held_out), (900, 100));
    assert_eq!(outcome.fits[0].right.unwrap().rows, 100);
}
