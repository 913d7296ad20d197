//! What the key holder can do with answers, without and with protection.
//!
//! It made the matrix, so it knows every uniform half a_j and every error e_j. Without a fresh
//! encryption of zero the second half of an answer is Σ w_j·a_j: linear equations for w. Without
//! flooding the noise is Σ w_j·(e_j + encoding remainder) and little else: least squares for w.

use super::noise::{invert, measure, multiply};
use crate::lattice::answer::Combined;
use crate::lattice::layout::SlotLayout;
use crate::lattice::parameters::*;
use crate::lattice::ring::{Poly, centre};
use crate::lattice::wire::{HEADER_BYTES, Kind, packed_bytes};
use crate::lattice::zeros::Zero;
use crate::lattice::*;
use crate::random::Randomness;
use chacha20::ChaCha20Rng;
use rand_core::Rng;
use std::sync::Arc;

const COLUMNS: usize = 4;
const LAYOUT: SlotLayout = SlotLayout {
    rows: DEGREE,
    columns: COLUMNS,
    width: 1,
};

/// How much of the protection an answer gets.
#[derive(Clone, Copy)]
enum Protection {
    None,
    RandomisedOnly,
    FloodedOnly,
    Full,
}

struct Game {
    key: SecretKey,
    matrix: EncryptedMatrix,
    values: Vec<u32>,
    pool: ZeroPool,
    rng: ChaCha20Rng,
}

impl Game {
    fn new(seed: u64) -> Self {
        let mut rng = Randomness::seeded(seed).fork("privacy", 0).unwrap();
        let key = SecretKey::generate(&mut rng).unwrap();
        let values: Vec<u32> = (0..DEGREE * COLUMNS)
            .map(|_| rng.next_u32() >> 22)
            .collect();
        let matrix = key.encrypt_in(&values, LAYOUT, &mut rng).unwrap();
        let pool = ZeroPool::on_demand(Arc::clone(key.public_key()), &mut rng);
        Self {
            key,
            matrix,
            values,
            pool,
            rng,
        }
    }

    fn numbers(&mut self, count: usize) -> Vec<u64> {
        (0..count)
            .map(|_| self.rng.next_u64() >> (64 - MODULUS_BITS))
            .collect()
    }

    fn zero(&mut self, protection: Protection) -> Zero {
        let nothing = || Poly(vec![0; PRIMES.len() * DEGREE]);
        let whole = self.pool.take(1).remove(0);
        let sample_error = crate::lattice::sample::error(&mut self.rng);
        match protection {
            Protection::None => Zero {
                randomiser: None,
                flooding: nothing(),
                error: nothing(),
            },
            Protection::FloodedOnly => Zero {
                randomiser: None,
                error: nothing(),
                ..whole
            },
            // An error of the usual size instead of the flooding.
            Protection::RandomisedOnly => Zero {
                flooding: self.key.ring.signed(&sample_error),
                ..whole
            },
            Protection::Full => whole,
        }
    }

    /// The answer before it is switched, and the masked scores.
    fn answer(&mut self, weights: &[u64], protection: Protection) -> (Combined, Vec<u64>) {
        let mask = self.numbers(DEGREE);
        let zero = self.zero(protection);
        let combined = self
            .matrix
            .combine_scores(weights, &mask, vec![zero])
            .remove(0);
        let score = |(row, mask): (&[u32], &u64)| {
            let products = row
                .iter()
                .zip(weights)
                .map(|(x, w)| u64::from(*x).wrapping_mul(*w));
            products.fold(*mask, u64::wrapping_add) % PLAINTEXT_MODULUS
        };
        let scores = self.values.chunks(COLUMNS).zip(&mask).map(score).collect();
        (combined, scores)
    }

    /// Solves c1 = Σ w_j·a_j modulo the first prime from the first coefficients.
    fn solve_second_half(&self, answer: &Combined) -> Vec<u64> {
        let halves: Vec<Poly> = (0..COLUMNS)
            .map(|j| self.key.ring.inverse(self.matrix.ciphertexts[j].c1.clone()))
            .collect();
        let equation = |i: usize| {
            let mut row: Vec<u64> = halves.iter().map(|a| a.0[i]).collect();
            row.push(answer.c1.0[i]);
            row
        };
        let solution = eliminate((0..COLUMNS).map(equation).collect(), PRIMES[0]);
        let centred = |w: u64| {
            if w > PRIMES[0] / 2 {
                w.wrapping_sub(PRIMES[0])
            } else {
                w
            }
        };
        solution
            .into_iter()
            .map(|w| centred(w) % PLAINTEXT_MODULUS)
            .collect()
    }

    /// Least squares of the measured noise against the known errors.
    fn fit_noise(&self, answer: &Combined, scores: &[u64]) -> Vec<f64> {
        let noise = measure(&self.key, &answer.c0, &answer.c1, scores);
        let errors: Vec<Vec<f64>> = (0..COLUMNS).map(|j| self.known_noise(j)).collect();
        let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
        let normal = |j: usize| {
            let mut row: Vec<f64> = errors.iter().map(|e| dot(e, &errors[j])).collect();
            row.push(dot(&noise, &errors[j]));
            row
        };
        least_squares((0..COLUMNS).map(normal).collect())
    }

    /// Error and encoding remainder of a column: q·x/2^48 is not an integer.
    fn known_noise(&self, column: usize) -> Vec<f64> {
        let ciphertext = &self.matrix.ciphertexts[column];
        let ring = self.key.ring;
        let messages: Vec<u64> = self
            .values
            .chunks(COLUMNS)
            .map(|row| u64::from(row[column]))
            .collect();
        let (c0, c1) = (
            ring.inverse(ciphertext.c0.clone()),
            ring.inverse(ciphertext.c1.clone()),
        );
        let whole = measure(&self.key, &c0, &c1, &messages);
        let q = PRIMES.iter().fold(1u64, |q, p| q.wrapping_mul(*p));
        let remainder = |x: &u64| centre(q.wrapping_mul(*x)) as f64 / PLAINTEXT_MODULUS as f64;
        whole
            .iter()
            .zip(&messages)
            .map(|(e, x)| e - remainder(x))
            .collect()
    }
}

/// Gauss–Jordan elimination modulo a prime; the last column is the right side.
fn eliminate(mut rows: Vec<Vec<u64>>, p: u64) -> Vec<u64> {
    for pivot in 0..rows.len() {
        let inverse = invert(rows[pivot][pivot], p);
        let scaled: Vec<u64> = rows[pivot]
            .iter()
            .map(|v| multiply(*v, inverse, p))
            .collect();
        for row in &mut rows {
            let factor = p - row[pivot];
            for (value, scaled) in row.iter_mut().zip(&scaled) {
                *value = (*value + multiply(factor, *scaled, p)) % p;
            }
        }
        rows[pivot] = scaled;
    }
    rows.into_iter().map(|row| row[row.len() - 1]).collect()
}

fn least_squares(mut rows: Vec<Vec<f64>>) -> Vec<f64> {
    for pivot in 0..rows.len() {
        let scaled: Vec<f64> = rows[pivot].iter().map(|v| v / rows[pivot][pivot]).collect();
        for row in &mut rows {
            let factor = row[pivot];
            row.iter_mut()
                .zip(&scaled)
                .for_each(|(v, s)| *v -= factor * s);
        }
        rows[pivot] = scaled;
    }
    rows.into_iter().map(|row| row[row.len() - 1]).collect()
}

/// Largest distance between two empirical distribution functions.
fn kolmogorov_smirnov(mut a: Vec<f64>, mut b: Vec<f64>) -> f64 {
    a.sort_by(f64::total_cmp);
    b.sort_by(f64::total_cmp);
    let below = |sorted: &[f64], x: f64| sorted.partition_point(|v| *v <= x) as f64;
    let gap = |x: &f64| (below(&a, *x) / a.len() as f64 - below(&b, *x) / b.len() as f64).abs();
    a.iter().chain(&b).map(gap).fold(0.0, f64::max)
}

/// Distance of an estimate from the weight it estimates.
fn distance(estimate: f64, weight: u64) -> f64 {
    (estimate - centre(weight) as f64).abs()
}

#[test]
fn without_a_fresh_zero_linear_algebra_gives_the_weights() {
    let mut game = Game::new(21);
    let weights = game.numbers(COLUMNS);
    for exposed in [Protection::None, Protection::FloodedOnly] {
        let (answer, _) = game.answer(&weights, exposed);
        assert_eq!(game.solve_second_half(&answer), weights);
    }
    let (answer, _) = game.answer(&weights, Protection::Full);
    let found = game.solve_second_half(&answer);
    assert!(
        found
            .iter()
            .zip(&weights)
            .all(|(found, weight)| found != weight)
    );
}

#[test]
fn without_flooding_least_squares_gives_the_weights() {
    let mut game = Game::new(22);
    let weights = game.numbers(COLUMNS);
    // Within 64 of numbers up to 2^47: what double precision resolves.
    for exposed in [Protection::None, Protection::RandomisedOnly] {
        let (answer, scores) = game.answer(&weights, exposed);
        let estimates = game.fit_noise(&answer, &scores);
        assert!(
            estimates
                .iter()
                .zip(&weights)
                .all(|(e, w)| distance(*e, *w) < 64.0)
        );
    }
    let (answer, scores) = game.answer(&weights, Protection::Full);
    let estimates = game.fit_noise(&answer, &scores);
    // The estimates are off by far more than the whole range of the weights.
    assert!(
        estimates
            .iter()
            .zip(&weights)
            .all(|(e, w)| distance(*e, *w) > 100f64.exp2())
    );
}

#[test]
fn the_bytes_confirm_a_guess_only_without_protection() {
    let mut game = Game::new(23);
    let weights = game.numbers(COLUMNS);
    let mut second_half = |weights: &[u64], protection| {
        let (answer, _) = game.answer(weights, protection);
        let bytes = game.matrix.message(Kind::Scores, vec![answer]);
        bytes[HEADER_BYTES..HEADER_BYTES + packed_bytes(DEGREE)].to_vec()
    };
    let guess = second_half(&weights, Protection::None);
    assert!(second_half(&weights, Protection::None) == guess);
    let protected = second_half(&weights, Protection::Full);
    let equal = protected.iter().zip(&guess).filter(|(a, b)| a == b).count();
    let expected = guess.len() / 256;
    assert!(
        equal.abs_diff(expected) < 100,
        "{equal} equal bytes, {expected} by chance"
    );
}

#[test]
fn noise_is_the_same_for_any_weights() {
    let mut game = Game::new(24);
    let mut noise = |weight: u64, protection| {
        let (answer, scores) = game.answer(&[weight; COLUMNS], protection);
        measure(&game.key, &answer.c0, &answer.c1, &scores)
    };
    let largest = PLAINTEXT_MODULUS / 2;
    // Critical value at 0.1 %: 1.95·sqrt(2/8192).
    let critical = 1.95 * (2.0 / DEGREE as f64).sqrt();
    let protected =
        kolmogorov_smirnov(noise(0, Protection::Full), noise(largest, Protection::Full));
    assert!(protected < critical, "{protected} against {critical}");
    let exposed = kolmogorov_smirnov(
        noise(0, Protection::RandomisedOnly),
        noise(largest, Protection::RandomisedOnly),
    );
    assert!(
        exposed > 10.0 * critical,
        "the test must see a difference: {exposed}"
    );
}

#[test]
fn flooding_fills_its_range_evenly() {
    let mut game = Game::new(25);
    let (answer, scores) = game.answer(&[1; COLUMNS], Protection::Full);
    let noise = measure(&game.key, &answer.c0, &answer.c1, &scores);
    let width = f64::from(FLOOD_BITS).exp2();
    let mut bins = [0usize; 16];
    noise
        .iter()
        .for_each(|n| bins[(((n / width + 1.0) * 8.0) as usize).min(15)] += 1);
    let expected = DEGREE as f64 / 16.0;
    let chi: f64 = bins
        .iter()
        .map(|b| (*b as f64 - expected).powi(2) / expected)
        .sum();
    // 99.9 % point of chi-squared with 15 degrees of freedom.
    assert!(chi < 37.7, "{chi}");
}
