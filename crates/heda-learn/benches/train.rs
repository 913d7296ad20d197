//! A hundred full-batch gradients on Adult with 1×, 4× and 16× its rows: time per row must not
//! grow. Run with `cargo bench -p heda-learn --bench train`.

#![allow(missing_docs)]

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use heda_learn::bundled::{Bundle, Coding};
use heda_learn::gradient::{Batch, GradientSource};
use heda_learn::loss::LossKind;
use heda_learn::optimise::{Method, Settings};
use heda_learn::oracle::{ClearSource, TrainConfig, train};

fn hundred_iterations(bench: &mut Criterion) {
    let (data, _) = Bundle::Adult
        .table(Coding::Paper)
        .expect("bundled data can be read");
    let config = TrainConfig {
        loss: LossKind::Logistic,
        settings: Settings {
            method: Method::Lbfgs { memory: 10 },
            c: None,
            tolerance: 0.0,
            max_iterations: 100,
        },
    };
    bench.bench_function("adult, 100 iterations", |b| {
        b.iter(|| train(&data, 1, &config))
    });
}

fn scaling(bench: &mut Criterion) {
    let (data, _) = Bundle::Adult
        .table(Coding::Paper)
        .expect("bundled data can be read");
    let mut group = bench.benchmark_group("one gradient of adult");
    for times in [1usize, 4, 16] {
        let rows: Vec<usize> = (0..times).flat_map(|_| 0..data.rows()).collect();
        let large = data.select_rows(&rows);
        let beta = vec![0.1; large.width() + 1];
        group.throughput(Throughput::Elements(rows.len() as u64));
        group.bench_function(BenchmarkId::from_parameter(format!("{times}×")), |b| {
            let mut source = ClearSource::new(&large, 1, LossKind::Logistic);
            b.iter(|| source.gradient(&beta, Batch::FULL));
        });
    }
    group.finish();
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(10);
    targets = hundred_iterations, scaling
}
criterion_main!(benches);
