//! How long it takes to score the features of Adult, the largest bundled data set.

use criterion::{Criterion, criterion_group, criterion_main};
use heda_learn::bundled::{Bundle, Coding};
use heda_learn::score::{Scores, ScoringMethod};
use std::hint::black_box;
use std::time::Duration;

fn scores(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("adult");
    group
        .sample_size(10)
        .warm_up_time(Duration::from_millis(500))
        .measurement_time(Duration::from_secs(2));
    for coding in [Coding::Paper, Coding::Natural] {
        let (data, _) = bundled(coding);
        for method in ScoringMethod::ALL {
            group.bench_function(format!("{coding}/{method}"), |bencher| {
                bencher.iter(|| black_box(Scores::compute(black_box(&data), method, 1)));
            });
        }
    }
    group.finish();
}

fn bundled(coding: Coding) -> (heda_learn::data::Dataset, heda_learn::table::ReadReport) {
    Bundle::Adult
        .table(coding)
        .expect("the bundled data set is tested")
}

criterion_group!(benches, scores);
criterion_main!(benches);
