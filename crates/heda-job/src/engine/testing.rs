//! What the tests of engines share: shaped rows, a small job, and all parties in one process.

use crate::description::{Protected, Ranking, RawJob, Share};
use crate::job::{JobSpec, Quiet};
use crate::local::{self, LocalProvider, LocalRun, Parts};
use crate::proposal::{JobId, Spending};
use crate::rows::{RowOrder, RowSeed};
use heda_crypto::random::Randomness;
use heda_learn::data::{Dataset, Feature};
use heda_learn::loss::LossKind;
use heda_learn::optimise::{Method, Settings};
use heda_learn::resident::Resolution;
use heda_learn::schema::Schema;
use rand_core::Rng;
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

pub(crate) fn schema() -> Arc<Schema> {
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
    let mut raw = RawJob::new("shaped", &schema());
    raw.loss = Some(loss);
    raw.training.resolution = Resolution::default();
    raw.training.settings = Settings {
        method,
        c: Some(1.0 / 2.8),
        tolerance: 0.0,
        max_iterations: 5,
    };
    raw.ranking = Some(Ranking::Given {
        features: ["x1", "kind", "x0", "x2"].map(String::from).to_vec(),
    });
    raw.protected = Protected::Best(iota);
    raw.spending = Some(Spending::Total("8".parse().unwrap()));
    JobSpec::new(JobId([7; 16]), raw.try_into().unwrap(), schema())
}

/// The same job with something changed.
pub(crate) fn with(spec: &JobSpec, change: impl FnOnce(&mut RawJob)) -> JobSpec {
    spec.with(change).unwrap()
}

/// How a job without a promise is trained.
pub(crate) fn settings(spec: &JobSpec) -> &Settings {
    &spec.job.training().unwrap().settings
}

pub(crate) fn local_providers_for(
    parts: &[Dataset],
    randomness: &Randomness,
) -> Vec<LocalProvider> {
    let parts = Parts::new(parts.to_vec(), randomness).unwrap();
    parts.guards(&schema(), "1000".parse().unwrap())
}

pub(crate) fn run(spec: &JobSpec, parts: &[Dataset]) -> LocalRun {
    let providers = local_providers_for(parts, &Randomness::seeded(SEED));
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
pub(crate) fn nearest(values: &[f64], bits: u32) -> Vec<u32> {
    let point = |value: &f64| {
        let scaled = value * f64::from(1u32 << bits);
        let below = scaled as u32;
        below + u32::from(scaled - f64::from(below) >= 0.5)
    };
    values.iter().map(point).collect()
}

/// Held-out rows by class and prediction, from the rows themselves.
pub(crate) fn counted_in_clear(parts: &[Dataset], beta: &[f64]) -> [[u64; 2]; 2] {
    let mut expected = [[0u64; 2]; 2];
    for (index, data) in parts.iter().enumerate() {
        let randomness = Randomness::seeded(SEED).party(&format!("provider-{}", index + 1));
        let seed = RowSeed::fresh(&randomness).unwrap();
        let order = RowOrder::draw(data.rows(), Share::USUAL, &seed);
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
