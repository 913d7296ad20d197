//! How long releases and measures take: `cargo bench -p heda-dp`.

#[allow(dead_code, clippy::unwrap_used)]
#[path = "../tests/common/mod.rs"]
mod common;

use chacha20::ChaCha20Rng;
use common::{Compared, pay, scaled};
use criterion::{Criterion, criterion_group, criterion_main};
use heda_dp::account::Mechanism;
use heda_dp::budget::split_equally;
use heda_dp::column::ColumnSpec;
use heda_dp::laplace;
use heda_mechanisms::auto::automatic_epsilon;
use heda_mechanisms::bounds::Bounds;
use heda_mechanisms::cluster::{Clusters, Corners, default_size};
use heda_mechanisms::measure;
use heda_mechanisms::points::Points;
use rand_core::{Rng, SeedableRng};
use std::hint::black_box;

/// As many rows as the training part of Adult, thirteen columns of both kinds.
fn laplace_release(c: &mut Criterion) {
    let columns: Vec<ColumnSpec> = (0..13)
        .map(|j| match j % 2 {
            0 => ColumnSpec::Grid { steps: 1024 },
            _ => ColumnSpec::Levels { count: 16 },
        })
        .collect();
    let values: Vec<Vec<u32>> = (0..13).map(|j| vec![j; 26_048]).collect();
    let epsilons = split_equally("2".parse().expect("an epsilon"), 13).expect("a split");
    let mut rng = ChaCha20Rng::from_seed([1; 32]);
    c.bench_function("laplace 26048 x 13", |b| {
        b.iter(|| {
            let receipt = pay(Mechanism::Laplace, &epsilons);
            let prepared = laplace::prepare(&columns, &values).expect("valid");
            black_box(prepared.release(receipt, &mut rng).expect("released"))
        })
    });
}

fn clusters(c: &mut Criterion) {
    let mut group = c.benchmark_group("clusters");
    group.sample_size(10);
    let adult = scaled("adult");
    let size = default_size(adult.rows());
    group.bench_function("as printed, Adult 32561 x 14", |b| {
        b.iter(|| black_box(Clusters::form(&adult, size, Corners::Remaining)))
    });
    let mut rng = ChaCha20Rng::from_seed([2; 32]);
    let unit = |_| (rng.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
    let large = Points::new(10, (0..10_000_000).map(unit).collect()).expect("points");
    let bounds = [Bounds::UNIT; 10];
    group.bench_function("fixed corners, 1000000 x 10", |b| {
        let size = default_size(large.rows());
        b.iter(|| black_box(Clusters::form(&large, size, Corners::Fixed(&bounds))))
    });
    group.finish();
}

fn linkage(c: &mut Criterion) {
    let adult = scaled("adult");
    let epsilons = automatic_epsilon(&adult).expect("epsilons");
    let mut group = c.benchmark_group("record linkage, Adult");
    group.sample_size(10);
    for compared in [Compared::Standard, Compared::Ima(127)] {
        let prepared = compared.prepare(&adult);
        let receipt = pay(prepared.mechanism(), epsilons.columns());
        let mut rng = ChaCha20Rng::from_seed([3; 32]);
        let released = prepared.release(receipt, &mut rng).expect("released");
        group.bench_function(format!("{compared:?}"), |b| {
            b.iter(|| black_box(measure::record_linkage(&adult, released.points())))
        });
    }
    group.bench_function("nothing changed", |b| {
        b.iter(|| black_box(measure::record_linkage(&adult, &adult)))
    });
    group.finish();
}

criterion_group!(benches, laplace_release, clusters, linkage);
criterion_main!(benches);
