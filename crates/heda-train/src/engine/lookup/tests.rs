//! The engine against the fixed-point oracle, given the same masks: equal to the last bit.

use super::user::uniform_words;
use crate::house::OpenHouse;
use crate::job::{Choice, JobSpec, Quiet};
use crate::local::{self, LocalProvider, LocalRun, Parts};
use crate::proposal::{Engine, JobId, Ranking, Spending};
use crate::rows::{
    RowOrder, domain, fresh_row_seed, release_from_bytes, release_to_bytes, to_publish,
};
use heda_crypto::random::Randomness;
use heda_dp::account::{Accountant, Charge, ColumnCharge, Mechanism, Spend};
use heda_dp::{budget, laplace};
use heda_learn::data::{Dataset, Feature};
use heda_learn::fixed::{Domain, FixedRows, FixedSource, Position, Precision};
use heda_learn::loss::LossKind;
use heda_learn::optimise::{Method, Optimiser, Settings};
use heda_learn::schema::Schema;
use rand_core::Rng;
use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::Arc;

pub(crate) const SEED: u64 = 11;
pub(crate) const FEATURES: usize = 4;

/// Shaped rows: all zero, all one, and random ones; a one-hot feature at the end.
pub(crate) fn dataset(rows: usize, seed: u64) -> Dataset {
    let mut rng = Randomness::seeded(seed).fork("data", 0).unwrap();
    let mut features: Vec<Feature> = (0..FEATURES - 1)
        .map(|j| Feature {
            name: format!("x{j}"),
            columns: j..j + 1,
            levels: None,
        })
        .collect();
    features.push(Feature {
        name: "kind".into(),
        columns: 3..6,
        levels: Some(3),
    });
    let mut values = Vec::new();
    let mut labels = Vec::new();
    for row in 0..rows {
        let mut numbers: Vec<f64> = (0..3)
            .map(|_| f64::from(rng.next_u32()) / f64::from(u32::MAX))
            .collect();
        match row {
            0 => numbers.fill(0.0),
            1 => numbers.fill(1.0),
            _ => {}
        }
        let positive = numbers[0] + numbers[1] > 1.0 || row % 7 == 0;
        values.extend(numbers);
        let level = rng.next_u32() as usize % 3;
        values.extend((0..3).map(|l| f64::from(u8::from(l == level))));
        labels.push(u32::from(positive));
    }
    Dataset::new(features, values, labels, vec!["no".into(), "yes".into()]).unwrap()
}

fn schema() -> Arc<Schema> {
    let text = r#"
format = 1
name = "shaped"

[label]
column = "class"
classes = ["no", "yes"]
positive = "yes"

[[column]]
name = "x0"
kind = "numeric"
bounds = [0.0, 1.0]

[[column]]
name = "x1"
kind = "numeric"
bounds = [0.0, 1.0]

[[column]]
name = "x2"
kind = "numeric"
bounds = [0.0, 1.0]

[[column]]
name = "kind"
kind = "categorical"
levels = ["a", "b", "c"]
coding = "onehot"
"#;
    Arc::new(Schema::parse(text, "shaped.toml").unwrap())
}

pub(crate) fn spec(loss: LossKind, iota: usize, batches: usize) -> JobSpec {
    let method = Method::Descent {
        rate: 0.4,
        minimum_rate: 0.0,
        decay: 0.0,
        batches,
    };
    JobSpec {
        job: JobId([7; 16]),
        dataset: "shaped".into(),
        schema: schema(),
        positives: vec![1],
        engine: Engine::Lookup,
        loss,
        precision: Precision::default(),
        settings: Settings {
            method,
            l2: 0.01,
            tolerance: 0.0,
            max_iterations: 5,
        },
        holdout_permille: 200,
        ranking: Ranking::Given {
            features: ["x1", "kind", "x0", "x2"].map(String::from).to_vec(),
        },
        choice: Choice::Best(iota),
        spending: Some(Spending::Total("8".parse().unwrap())),
        key_bits: 2048,
    }
}

pub(crate) fn houses_for(parts: &[Dataset], randomness: &Randomness) -> Vec<LocalProvider> {
    let parts = Parts::new(parts.to_vec(), randomness).unwrap();
    parts.houses(&schema(), "1000".parse().unwrap())
}

pub(crate) fn run(spec: &JobSpec, parts: &[Dataset]) -> LocalRun {
    let providers = houses_for(parts, &Randomness::seeded(SEED));
    local::run(
        spec,
        &providers,
        &Randomness::seeded(SEED),
        &mut Quiet,
        None,
        true,
    )
    .unwrap()
}

/// Values on the grid by definition, and not by the engine's own rounding: the largest point that
/// is at most half a step above the value. Scaling by a power of two is exact.
fn nearest(values: &[f64], bits: u32) -> Vec<u32> {
    let point = |value: &f64| {
        let scaled = value * f64::from(1u32 << bits);
        let below = scaled as u32;
        below + u32::from(scaled - f64::from(below) >= 0.5)
    };
    values.iter().map(point).collect()
}

/// A provider's training rows as the engine uses them: published columns with the noise that the
/// provider's generator draws.
fn rows_of(spec: &JobSpec, name: &str, data: &Dataset, published: &[usize]) -> FixedRows {
    let randomness = Randomness::seeded(SEED).party(name);
    let seed = fresh_row_seed(&randomness).unwrap();
    let order = RowOrder::draw(data.rows(), spec.holdout_permille, &seed);
    let bits = spec.precision.value_bits();
    let mut grid = nearest(order.cut(data).0.values(), bits);
    let width = data.width();
    if !published.is_empty() {
        let open: Vec<&Feature> = published.iter().map(|&f| &data.features()[f]).collect();
        let specs: Vec<_> = open.iter().map(|f| domain(f, bits)).collect();
        let values: Vec<_> = open
            .iter()
            .map(|f| to_publish(&grid, width, &f.columns))
            .collect();
        let parts = budget::split_equally("8".parse().unwrap(), open.len()).unwrap();
        let columns = open.iter().zip(parts).map(|(f, epsilon)| ColumnCharge {
            name: f.name.clone(),
            epsilon,
        });
        let charge = Charge::new(Mechanism::Laplace, columns.collect()).unwrap();
        let receipt = Accountant::new("8".parse().unwrap()).spend(charge).unwrap();
        let mut rng = randomness.fork("release noise", 0).unwrap();
        let released = laplace::prepare(&specs, &values)
            .unwrap()
            .release(receipt, &mut rng)
            .unwrap();
        let noisy = release_from_bytes(
            &release_to_bytes(released.columns()),
            &open,
            order.training.len(),
            bits,
        )
        .unwrap();
        let columns: Vec<usize> = open.iter().flat_map(|f| f.columns.clone()).collect();
        for (row, cells) in grid.chunks_exact_mut(width).enumerate() {
            for (at, &j) in columns.iter().enumerate() {
                cells[j] = noisy[row * columns.len() + at];
            }
        }
    }
    let labels = order
        .training
        .iter()
        .map(|&row| data.labels()[row] == 1)
        .collect();
    FixedRows::new(width, grid.into_iter().map(|x| x as i32).collect(), labels).unwrap()
}

/// The oracle with the masks that the data user's generators draw.
fn oracle_beta(spec: &JobSpec, parts: &[Dataset], published: &[usize]) -> Vec<f64> {
    let names: Vec<String> = (1..=parts.len()).map(|n| format!("provider-{n}")).collect();
    let rows: Vec<FixedRows> = names
        .iter()
        .zip(parts)
        .map(|(n, data)| rows_of(spec, n, data, published))
        .collect();
    let counts: Vec<usize> = rows.iter().map(FixedRows::rows).collect();
    let batches = spec.settings.method.batches();
    let user = Randomness::seeded(SEED).party("user");
    let mut drawn: HashMap<(usize, u32), Vec<u64>> = HashMap::new();
    let masks = |at: Position| {
        let batch = heda_learn::gradient::Batch::new(at.iteration as usize % batches, batches);
        let share = batch.share(counts[at.provider]);
        let masks = drawn.entry((at.provider, at.iteration)).or_insert_with(|| {
            let source = user.party(&names[at.provider]);
            let mut rng = source.fork("lookup masks", at.iteration.into()).unwrap();
            uniform_words(&mut rng, share.len()).to_vec()
        });
        masks[at.row - share.start]
    };
    let domain = Domain::of_features(parts[0].features(), spec.precision).unwrap();
    let mut source = FixedSource::new(spec.precision, domain, spec.loss, rows, masks).unwrap();
    let mut optimiser = Optimiser::new(spec.settings.clone(), parts[0].width() + 1).unwrap();
    optimiser
        .run(&mut source, |_| ControlFlow::Continue(()))
        .unwrap();
    optimiser.beta().to_vec()
}

#[test]
fn every_gradient_equals_the_oracles() {
    let mut runs = 0;
    for loss in [LossKind::Logistic, LossKind::SquaredHinge, LossKind::Ridge] {
        for iota in [0, 1, 2, FEATURES] {
            for (parts, batches) in [(vec![40], 1), (vec![25, 40, 31], 3)] {
                let parts: Vec<Dataset> = parts
                    .iter()
                    .enumerate()
                    .map(|(i, &n)| dataset(n, i as u64))
                    .collect();
                let spec = spec(loss, iota, batches);
                let got = run(&spec, &parts);
                let published = {
                    let mut p = got.outcome.split.published.clone();
                    p.sort_unstable();
                    p
                };
                assert_eq!(published.len(), FEATURES - iota);
                let expected = oracle_beta(&spec, &parts, &published);
                assert_eq!(
                    got.outcome.fits[0].beta, expected,
                    "{loss} iota {iota} {batches}"
                );
                assert_ne!(expected, vec![0.0; 7]);
                runs += 1;
            }
        }
    }
    assert_eq!(runs, 24);
}

#[test]
fn two_round_trips_an_iteration_and_provider() {
    let got = run(
        &spec(LossKind::Logistic, 2, 1),
        &[dataset(30, 1), dataset(30, 2)],
    );
    for provider in &got.outcome.providers {
        assert_eq!(provider.traffic["train"].round_trips, 2 * 5);
    }
}

/// Held-out rows by class and prediction, from the rows themselves.
pub(crate) fn counted_in_clear(parts: &[Dataset], beta: &[f64]) -> [[u64; 2]; 2] {
    let mut expected = [[0u64; 2]; 2];
    for (index, data) in parts.iter().enumerate() {
        let randomness = Randomness::seeded(SEED).party(&format!("provider-{}", index + 1));
        let seed = fresh_row_seed(&randomness).unwrap();
        let order = RowOrder::draw(data.rows(), 200, &seed);
        let grid = nearest(order.cut(data).1.values(), 10);
        for (row, cells) in order.held_out.iter().zip(grid.chunks_exact(data.width())) {
            let z: f64 = beta[0]
                + cells
                    .iter()
                    .zip(&beta[1..])
                    .map(|(&x, b)| f64::from(x) / 1024.0 * b)
                    .sum::<f64>();
            assert!(
                z.abs() > 1e-3,
                "a row too near to the decision for this test"
            );
            expected[data.labels()[*row] as usize][usize::from(z > 0.0)] += 1;
        }
    }
    expected
}

#[test]
fn the_histogram_counts_the_held_out_rows_as_the_clear_model_does() {
    let parts = [dataset(200, 1), dataset(150, 2)];
    let mut spec = spec(LossKind::Logistic, FEATURES, 1);
    spec.settings.max_iterations = 8;
    let got = run(&spec, &parts);
    let beta = &got.outcome.fits[0].beta;
    let expected = counted_in_clear(&parts, beta);
    let confusion = got.outcome.fits[0].histogram.as_ref().unwrap().confusion();
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

#[test]
fn a_house_that_is_not_public_refuses_automatic_epsilon_and_the_error_names_it() {
    let data = Arc::new(dataset(30, 1));
    let seed = zeroize::Zeroizing::new([1; 32]);
    let house = OpenHouse::new(data, schema(), seed, Accountant::new("1".parse().unwrap()));
    let providers = [LocalProvider {
        name: "clinic".into(),
        house: Box::new(house),
    }];
    let mut spec = spec(LossKind::Logistic, 2, 1);
    spec.spending = Some(Spending::Automatic);
    let failed = local::run(
        &spec,
        &providers,
        &Randomness::seeded(1),
        &mut Quiet,
        None,
        false,
    );
    let message = failed.unwrap_err().to_string();
    assert!(
        message.starts_with("provider clinic: the peer stopped: refused"),
        "{message}"
    );
}
