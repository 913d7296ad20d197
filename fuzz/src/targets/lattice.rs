//! Keys, encrypted matrices and answers of the linear encryption.

use crate::driver::{Target, Verdict};
use heda_crypto::lattice::{EncryptedMatrix, PublicKey, SecretKey, ZeroPool};
use heda_crypto::random::Randomness;
use std::sync::Arc;

const ROWS: usize = 5;
const COLUMNS: usize = 3;
/// A decoded message costs transforms of 8192 numbers.
const SHORT_RUN: u64 = 400;

fn key_and_matrix() -> (SecretKey, EncryptedMatrix) {
    let mut rng = Randomness::seeded(1).fork("lattice", 0).expect("seeded");
    let key = SecretKey::generate(&mut rng).expect("parameters are sound");
    let values = [7; ROWS * COLUMNS];
    let matrix = key.encrypt_matrix(&values, ROWS, COLUMNS, &mut rng);
    (key, matrix.expect("the shape is allowed"))
}

fn pool(key: &SecretKey) -> ZeroPool {
    let mut rng = Randomness::seeded(1).fork("zeros", 0).expect("seeded");
    ZeroPool::on_demand(Arc::clone(key.public_key()), &mut rng)
}

/// Whatever is accepted is encoded as it came.
pub(super) fn public_key() -> Target {
    let (key, _) = key_and_matrix();
    let decode = |input: &[u8]| {
        let read = PublicKey::from_bytes(input);
        if let Ok(key) = &read {
            assert!(key.to_bytes() == input);
        }
        Verdict::from(read)
    };
    Target::new(vec![key.public_key().to_bytes()], decode).short_run(SHORT_RUN)
}

/// Whatever is accepted is encoded as it came.
pub(super) fn matrix() -> Target {
    let (key, matrix) = key_and_matrix();
    let seeds = vec![matrix.to_bytes()];
    let decode = move |input: &[u8]| {
        let read = EncryptedMatrix::from_bytes(input, ROWS, COLUMNS, key.public_key());
        if let Ok(matrix) = &read {
            assert!(matrix.to_bytes() == input);
        }
        Verdict::from(read)
    };
    Target::new(seeds, decode).short_run(SHORT_RUN)
}

/// Answers decrypt to the agreed number of numbers, or not at all.
pub(super) fn scores() -> Target {
    let (key, matrix) = key_and_matrix();
    let seed = matrix.scores(&[1; COLUMNS], &[2; ROWS], &mut pool(&key));
    let decode = move |input: &[u8]| {
        let read = key.decrypt_scores(input, ROWS, COLUMNS);
        assert!(read.as_ref().map_or(ROWS, Vec::len) == ROWS);
        Verdict::from(read)
    };
    Target::new(vec![seed.expect("the vectors fit")], decode).short_run(SHORT_RUN)
}

/// The same for weighted sums.
pub(super) fn sums() -> Target {
    let (key, matrix) = key_and_matrix();
    let seed = matrix.weighted_sums(&[1; ROWS], &[2; COLUMNS], &mut pool(&key));
    let decode = move |input: &[u8]| {
        let read = key.decrypt_sums(input, ROWS, COLUMNS);
        assert!(read.as_ref().map_or(COLUMNS, Vec::len) == COLUMNS);
        Verdict::from(read)
    };
    Target::new(vec![seed.expect("the vectors fit")], decode).short_run(SHORT_RUN)
}
