//! Scores and weighted sums equal the clear computation modulo 2^48.

use crate::lattice::layout::SlotLayout;
use crate::lattice::parameters::PLAINTEXT_MODULUS;
use crate::lattice::wire::Kind;
use crate::lattice::*;
use crate::random::Randomness;
use chacha20::ChaCha20Rng;
use rand_core::Rng;
use std::sync::Arc;

const MASK: u64 = PLAINTEXT_MODULUS - 1;

/// 0, 1, −1, the bounds, and random numbers.
fn shaped(count: usize, rng: &mut ChaCha20Rng) -> Vec<u64> {
    let half = PLAINTEXT_MODULUS / 2;
    let special = [0, 1, MASK, half, half - 1, half + 1];
    let mut pick = |i: usize| match rng.next_u64() {
        any if any % 3 == 0 => any >> 16,
        any if any % 3 == 1 => (any >> 16) & MASK,
        any => special[(i + any as usize % 7) % special.len()],
    };
    (0..count).map(|i| pick(i) & MASK).collect()
}

fn values(count: usize, rng: &mut ChaCha20Rng) -> Vec<u32> {
    let mut pick = |i: usize| match i % 5 {
        0 => 0,
        1 => 1,
        2 => u32::from(u16::MAX),
        _ => rng.next_u32() & 0x3ff,
    };
    (0..count).map(&mut pick).collect()
}

fn clear_scores(x: &[u32], columns: usize, weights: &[u64], mask: &[u64]) -> Vec<u64> {
    let score = |(row, mask): (&[u32], &u64)| {
        row.iter().zip(weights).fold(*mask, |sum, (x, w)| {
            sum.wrapping_add(u64::from(*x).wrapping_mul(*w))
        }) & MASK
    };
    x.chunks(columns).zip(mask).map(score).collect()
}

fn clear_sums(x: &[u32], columns: usize, weights: &[u64], mask: &[u64]) -> Vec<u64> {
    let mut sums = mask.to_vec();
    for (row, weight) in x.chunks(columns).zip(weights) {
        for (sum, x) in sums.iter_mut().zip(row) {
            *sum = sum.wrapping_add(u64::from(*x).wrapping_mul(*weight)) & MASK;
        }
    }
    sums
}

fn check(key: &SecretKey, layout: SlotLayout, rng: &mut ChaCha20Rng) {
    let SlotLayout { rows, columns, .. } = layout;
    let x = values(rows * columns, rng);
    let matrix = key.encrypt_in(&x, layout, rng).unwrap();
    let mut pool = ZeroPool::on_demand(Arc::clone(key.public_key()), rng);

    let (weights, mask) = (shaped(columns, rng), shaped(rows, rng));
    let bytes = matrix.scores(&weights, &mask, &mut pool).unwrap();
    let scores = key.decrypt_in(&bytes, Kind::Scores, &layout).unwrap();
    assert!(
        scores == clear_scores(&x, columns, &weights, &mask),
        "scores of {layout:?}"
    );

    let (weights, mask) = (shaped(rows, rng), shaped(columns, rng));
    let bytes = matrix.weighted_sums(&weights, &mask, &mut pool).unwrap();
    let sums = key.decrypt_in(&bytes, Kind::Sums, &layout).unwrap();
    assert_eq!(
        sums,
        clear_sums(&x, columns, &weights, &mask),
        "sums of {layout:?}"
    );
}

fn setup(seed: u64) -> (SecretKey, ChaCha20Rng) {
    let mut rng = Randomness::seeded(seed).fork("exactness", 0).unwrap();
    (SecretKey::generate(&mut rng).unwrap(), rng)
}

#[test]
fn every_layout_is_exact() {
    let (key, mut rng) = setup(1);
    for (rows, columns) in [(1, 1), (1, 5), (186, 9), (2_731, 3), (8_192, 1), (8_193, 2)] {
        for width in (1..=columns).step_by(2) {
            check(
                &key,
                SlotLayout {
                    rows,
                    columns,
                    width,
                },
                &mut rng,
            );
        }
    }
}

#[test]
fn chosen_layouts_are_exact() {
    let (key, mut rng) = setup(2);
    for (rows, columns) in [
        (100, 100),
        (8_191, 4),
        (26_048, 14),
        (100_000, 1),
        (1, 1024),
    ] {
        check(&key, SlotLayout::cheapest(rows, columns).unwrap(), &mut rng);
    }
}

#[test]
fn the_widest_long_matrix_is_exact() {
    let (key, mut rng) = setup(3);
    check(&key, SlotLayout::cheapest(100_000, 100).unwrap(), &mut rng);
}
