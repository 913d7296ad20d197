//! Linear encryption: encrypting, scores, weighted sums and decrypting.

use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use heda_crypto::lattice::{EncryptedMatrix, MODULUS_BITS, SecretKey, ZeroPool};
use heda_crypto::random::Randomness;
use rand_core::Rng;
use std::hint::black_box;
use std::sync::Arc;

/// One dataset with its key and vectors.
struct Case {
    key: SecretKey,
    values: Vec<u32>,
    matrix: EncryptedMatrix,
    rows: usize,
    columns: usize,
    per_row: Vec<u64>,
    per_column: Vec<u64>,
}

impl Case {
    fn new(rows: usize, columns: usize) -> Self {
        let mut rng = Randomness::seeded(1).fork("bench", 0).expect("seeded");
        let key = SecretKey::generate(&mut rng).expect("key");
        let values: Vec<u32> = (0..rows * columns).map(|_| rng.next_u32() >> 22).collect();
        let matrix = key
            .encrypt_matrix(&values, rows, columns, &mut rng)
            .expect("matrix");
        let mut numbers = |count| {
            (0..count)
                .map(|_| rng.next_u64() >> (64 - MODULUS_BITS))
                .collect()
        };
        let (per_row, per_column) = (numbers(rows), numbers(columns));
        Self {
            key,
            values,
            matrix,
            rows,
            columns,
            per_row,
            per_column,
        }
    }

    /// A pool with `ready` zeros prepared, so that making them is not measured.
    fn pool(&self, ready: usize) -> ZeroPool {
        let mut rng = Randomness::seeded(2).fork("zeros", 0).expect("seeded");
        let mut pool = ZeroPool::on_demand(Arc::clone(self.key.public_key()), &mut rng);
        pool.prepare(ready);
        pool
    }

    fn scores(&self, pool: &mut ZeroPool) -> Vec<u8> {
        self.matrix
            .scores(&self.per_column, &self.per_row, pool)
            .expect("scores")
    }

    fn sums(&self, pool: &mut ZeroPool) -> Vec<u8> {
        self.matrix
            .weighted_sums(&self.per_row, &self.per_column, pool)
            .expect("sums")
    }
}

fn shape(criterion: &mut Criterion, rows: usize, columns: usize) {
    let case = Case::new(rows, columns);
    let mut group = criterion.benchmark_group(format!("lattice {rows} × {columns}"));
    group.sample_size(10);
    let mut rng = Randomness::seeded(3).fork("encrypt", 0).expect("seeded");
    group.bench_function("encrypt", |b| {
        b.iter(|| {
            black_box(
                case.key
                    .encrypt_matrix(&case.values, rows, columns, &mut rng),
            )
        });
    });
    let (blocks, groups) = (case.matrix.zeros_per_scores(), case.matrix.zeros_per_sums());
    group.bench_function("scores", |b| {
        let run = |mut pool| black_box(case.scores(&mut pool));
        b.iter_batched(|| case.pool(blocks), run, BatchSize::PerIteration);
    });
    group.bench_function("weighted sums", |b| {
        let run = |mut pool| black_box(case.sums(&mut pool));
        b.iter_batched(|| case.pool(groups), run, BatchSize::PerIteration);
    });
    let (scores, sums) = (case.scores(&mut case.pool(0)), case.sums(&mut case.pool(0)));
    group.bench_function("decrypt scores", |b| {
        b.iter(|| black_box(case.key.decrypt_scores(&scores, case.rows, case.columns)));
    });
    group.bench_function("decrypt sums", |b| {
        b.iter(|| black_box(case.key.decrypt_sums(&sums, case.rows, case.columns)));
    });
    group.bench_function("zeros for both", |b| {
        b.iter(|| black_box(case.pool(blocks + groups)))
    });
    group.finish();
}

fn all(criterion: &mut Criterion) {
    shape(criterion, 186, 9);
    shape(criterion, 8_192, 14);
    shape(criterion, 26_048, 14);
}

criterion_group!(benches, all);
criterion_main!(benches);
