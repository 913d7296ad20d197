//! How long noise takes: `cargo bench -p heda-dp`.

use chacha20::ChaCha20Rng;
use criterion::{Criterion, criterion_group, criterion_main};
use heda_dp::account::{Accountant, Charge, ColumnCharge, Mechanism, Spend};
use heda_dp::budget::split_equally;
use heda_dp::column::ColumnSpec;
use heda_dp::laplace;
use rand_core::SeedableRng;
use std::hint::black_box;

/// As many rows as the training part of Adult, thirteen columns of both kinds.
fn adult_sized(c: &mut Criterion) {
    let columns: Vec<ColumnSpec> = (0..13)
        .map(|j| match j % 2 {
            0 => ColumnSpec::Grid { steps: 1024 },
            _ => ColumnSpec::Levels { count: 16 },
        })
        .collect();
    let values: Vec<Vec<u32>> = (0..13).map(|j| vec![j; 26_048]).collect();
    let epsilons = split_equally("2".parse().expect("an epsilon"), 13).expect("a split");
    let name = |(j, epsilon)| ColumnCharge {
        name: format!("c{j}"),
        epsilon,
    };
    let charge = Charge::new(
        Mechanism::Laplace,
        epsilons.into_iter().enumerate().map(name).collect(),
    );
    let charge = charge.expect("a charge");
    let mut rng = ChaCha20Rng::from_seed([1; 32]);
    c.bench_function("laplace 26048 x 13", |b| {
        b.iter(|| {
            let receipt = Accountant::new(charge.total())
                .spend(charge.clone())
                .expect("paid");
            let prepared = laplace::prepare(&columns, &values).expect("valid");
            black_box(prepared.release(receipt, &mut rng).expect("released"))
        })
    });
}

criterion_group!(benches, adult_sized);
criterion_main!(benches);
