//! One iteration of engine `resident` on the Wisconsin rows: three providers and the data user in this
//! process, all nine columns encrypted. Setup is not timed.

#![allow(missing_docs, clippy::unwrap_used)]

use criterion::{Criterion, criterion_group, criterion_main};
use heda_crypto::random::Randomness;
use heda_job::description::{RawJob, Training};
use heda_job::job::{JobSpec, Quiet};
use heda_job::local::{self, Parts};
use heda_job::proposal::JobId;
use heda_learn::bundled::{Bundle, Coding};
use heda_learn::data::Dataset;
use heda_learn::gradient::Batch;
use heda_learn::optimise::{Method, Settings};
use heda_learn::resident::Resolution;
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
fn train(iterations: u32) -> Duration {
    let randomness = Randomness::from_os();
    let schema = Arc::new(Bundle::Bcwd.schema(Coding::Paper));
    let guards = Parts::new(parts(), &randomness)
        .unwrap()
        .guards(&schema, "1".parse().unwrap());
    let method = Method::Descent {
        rate: 0.1,
        minimum_rate: 0.0,
        decay: 0.0,
        batches: 1,
    };
    let raw = RawJob {
        training: Training {
            settings: Settings {
                method,
                c: None,
                tolerance: 0.0,
                max_iterations: iterations,
            },
            resolution: Resolution::default(),
            ..Training::usual(&schema)
        },
        ..RawJob::new("bcwd", &schema)
    };
    let spec = JobSpec::new(JobId([1; 16]), raw.try_into().unwrap(), schema);
    let run = local::run(&spec, &guards, &randomness, &mut Quiet, None, false).unwrap();
    let phases = run.outcome.phases.iter();
    phases.filter(|p| p.phase == "train").map(|p| p.took).sum()
}

fn engines(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("iteration of 560 rows");
    group.sample_size(10);
    group.bench_function("resident", |b| {
        b.iter_custom(|iterations| train(iterations as u32));
    });
    group.finish();
}

criterion_group!(benches, engines);
criterion_main!(benches);
