//! Linear encryption over the lattice, on one core: a small batch and a large one.

use super::timing::milliseconds;
use heda::failure::{Failure, Kind};
use heda_crypto::lattice::{EncryptedMatrix, SecretKey, ZeroPool};
use heda_crypto::random::Randomness;
use rand_core::Rng;
use rayon::ThreadPoolBuilder;
use serde::Serialize;
use std::fmt;
use std::hint::black_box;
use std::sync::Arc;

/// Rows and columns: a provider's part of BCWD, one block, and the training rows of Adult.
const SHAPES: [(usize, usize); 3] = [(186, 9), (8192, 14), (26_048, 14)];

/// Times in milliseconds on one core. Scores and sums make their own encryptions of zero.
#[derive(Serialize)]
pub(super) struct Section {
    rows: usize,
    columns: usize,
    encrypt: f64,
    scores: f64,
    weighted_sums: f64,
    decrypt_scores: f64,
    decrypt_sums: f64,
}

fn bug(error: impl fmt::Display) -> Failure {
    Failure::new(Kind::Bug, error)
}

/// Measures all shapes.
pub(super) fn measure() -> Result<Vec<Section>, Failure> {
    let one_core = ThreadPoolBuilder::new()
        .num_threads(1)
        .build()
        .map_err(bug)?;
    one_core.install(|| {
        SHAPES
            .into_iter()
            .map(|(rows, columns)| section(rows, columns))
            .collect()
    })
}

fn section(rows: usize, columns: usize) -> Result<Section, Failure> {
    let mut rng = Randomness::from_os().fork("bench", 0).map_err(bug)?;
    let key = SecretKey::generate(&mut rng).map_err(bug)?;
    let values: Vec<u32> = (0..rows * columns).map(|_| rng.next_u32() % 1025).collect();
    let mut words = |count| -> Vec<u64> { (0..count).map(|_| rng.next_u64() >> 16).collect() };
    let (by_column, by_row) = (words(columns), words(rows));
    let mut rng = Randomness::from_os().fork("bench", 1).map_err(bug)?;
    let matrix: EncryptedMatrix = key
        .encrypt_matrix(&values, rows, columns, &mut rng)
        .map_err(bug)?;
    let mut zeros = ZeroPool::on_demand(Arc::clone(key.public_key()), &mut rng);
    let scores = matrix
        .scores(&by_column, &by_row, &mut zeros)
        .map_err(bug)?;
    let sums = matrix
        .weighted_sums(&by_row, &by_column, &mut zeros)
        .map_err(bug)?;
    Ok(Section {
        rows,
        columns,
        encrypt: milliseconds(|| {
            black_box(key.encrypt_matrix(&values, rows, columns, &mut rng).is_ok());
        }),
        scores: milliseconds(|| {
            black_box(matrix.scores(&by_column, &by_row, &mut zeros).is_ok());
        }),
        weighted_sums: milliseconds(|| {
            black_box(
                matrix
                    .weighted_sums(&by_row, &by_column, &mut zeros)
                    .is_ok(),
            );
        }),
        decrypt_scores: milliseconds(|| {
            black_box(key.decrypt_scores(&scores, rows, columns).is_ok());
        }),
        decrypt_sums: milliseconds(|| {
            black_box(key.decrypt_sums(&sums, rows, columns).is_ok());
        }),
    })
}

impl fmt::Display for Section {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "lattice, {} rows of {} columns, one core",
            self.rows, self.columns
        )?;
        writeln!(f, "  encrypt          {:>9.2} ms", self.encrypt)?;
        writeln!(f, "  scores           {:>9.2} ms", self.scores)?;
        writeln!(f, "  weighted sums    {:>9.2} ms", self.weighted_sums)?;
        writeln!(f, "  decrypt scores   {:>9.2} ms", self.decrypt_scores)?;
        write!(f, "  decrypt sums     {:>9.2} ms", self.decrypt_sums)
    }
}
