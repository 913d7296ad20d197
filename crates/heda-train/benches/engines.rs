//! One iteration of each engine on the Wisconsin rows: three providers and the data user in this
//! process, all nine columns encrypted. Engine `paper` works on mini-batches of about 32 rows with
//! keys of 2048 bits. Setup is not timed.

#![allow(missing_docs, clippy::unwrap_used)]

use criterion::{Criterion, criterion_group, criterion_main};
use heda_crypto::random::Randomness;
use heda_learn::bundled::{Bundle, Coding};
use heda_learn::data::Dataset;
use heda_learn::gradient::Batch;
use heda_learn::loss::LossKind;
use heda_learn::optimise::{Method, Settings};
use heda_learn::resident::Resolution;
use heda_learn::score;
use heda_train::job::{Choice, JobSpec, Quiet};
use heda_train::local::{self, Parts};
use heda_train::proposal::{Engine, JobId, Ranking};
use std::sync::Arc;
use std::time::Duration;

const PROVIDERS: usize = 3;

fn parts() -> Vec<Dataset> {
    let (data, _) = Bundle::Bcwd.table(Coding::Paper).unwrap();
    let rows: Vec<usize> = (0..data.rows()).collect();
    (0..PROVIDERS)
        .map(|part| data.select_rows(&rows[Batch::new(part, PROVIDERS).share(rows.len())]))
        .collect()
}

/// How long so many iterations took.
fn train(engine: Engine, batches: usize, iterations: u32) -> Duration {
    let randomness = Randomness::from_os();
    let schema = Arc::new(Bundle::Bcwd.schema(Coding::Paper));
    let houses = Parts::new(parts(), &randomness)
        .unwrap()
        .houses(&schema, "1".parse().unwrap());
    let method = Method::Descent {
        rate: 0.1,
        minimum_rate: 0.0,
        decay: 0.0,
        batches,
    };
    let spec = JobSpec {
        job: JobId([1; 16]),
        dataset: "bcwd".into(),
        schema,
        positives: vec![1],
        engine,
        loss: LossKind::Logistic,
        resolution: Resolution::default(),
        settings: Settings {
            method,
            c: None,
            tolerance: 0.0,
            max_iterations: iterations,
        },
        holdout_permille: 200,
        ranking: Ranking::Agreed {
            method: score::Method::KruskalWallis,
        },
        choice: Choice::Best(9),
        spending: None,
        privacy: None,
        key_bits: 2048,
        class_weight: None,
        path: None,
    };
    let run = local::run(&spec, &houses, &randomness, &mut Quiet, None, false).unwrap();
    let phases = run.outcome.phases.iter();
    phases.filter(|p| p.phase == "train").map(|p| p.took).sum()
}

fn engines(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("iteration of 560 rows");
    group.sample_size(10);
    group.bench_function("resident", |b| {
        b.iter_custom(|iterations| train(Engine::Resident, 1, iterations as u32));
    });
    group.finish();
    let mut group = criterion.benchmark_group("iteration of 32 rows");
    group.sample_size(10);
    group.bench_function("paper", |b| {
        b.iter_custom(|iterations| train(Engine::Paper, 17, iterations as u32));
    });
    group.finish();
}

criterion_group!(benches, engines);
criterion_main!(benches);
