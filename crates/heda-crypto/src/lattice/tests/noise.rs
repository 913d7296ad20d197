//! The worst noise that can occur still decrypts, and how the key holder measures noise.

use crate::lattice::answer::Combined;
use crate::lattice::layout::SlotLayout;
use crate::lattice::parameters::*;
use crate::lattice::ring::{Poly, Ring};
use crate::lattice::wire::Kind;
use crate::lattice::zeros::Zero;
use crate::lattice::*;
use crate::random::Randomness;
use zeroize::Zeroizing;

pub(super) fn multiply(a: u64, b: u64, p: u64) -> u64 {
    (u128::from(a) * u128::from(b) % u128::from(p)) as u64
}

pub(super) fn invert(a: u64, p: u64) -> u64 {
    let (mut power, mut base, mut exponent) = (1, a % p, p - 2);
    while exponent > 0 {
        if exponent & 1 == 1 {
            power = multiply(power, base, p);
        }
        base = multiply(base, base, p);
        exponent >>= 1;
    }
    power
}

/// (residue − taken)/divisor modulo p, centred.
fn digit(residue: u64, taken: &[(i64, u64)], divisor: u64, p: u64) -> i64 {
    let reduce = |number: i64| i128::from(number).rem_euclid(i128::from(p)) as u64;
    let taken = taken.iter().fold(0, |sum, (digit, weight)| {
        (sum + multiply(reduce(*digit), weight % p, p)) % p
    });
    let value = multiply((residue + p - taken) % p, invert(divisor % p, p), p);
    if value > p / 2 {
        value as i64 - p as i64
    } else {
        value as i64
    }
}

/// A coefficient as the centred integer it stands for, by mixed-radix digits.
fn integer(poly: &Poly, index: usize) -> f64 {
    let [p0, p1, p2] = PRIMES;
    let [v0, v1, v2] = [0, 1, 2].map(|i| poly.0[i * DEGREE + index]);
    let d0 = digit(v0, &[], 1, p0);
    let d1 = digit(v1, &[(d0, 1)], p0, p1);
    let d2 = digit(v2, &[(d0, 1), (d1, p0)], multiply(p0 % p2, p1 % p2, p2), p2);
    d0 as f64 + p0 as f64 * (d1 as f64 + p1 as f64 * d2 as f64)
}

/// c0 + c1·s minus the encoding of `messages`: the noise, as the key holder measures it.
pub(super) fn measure(key: &SecretKey, c0: &Poly, c1: &Poly, messages: &[u64]) -> Vec<f64> {
    let ring: &Ring = key.ring;
    let c1 = ring.transform(c1.clone());
    let mut phase = ring.inverse(ring.inner_product(&[(&c1, &key.secret)]));
    ring.add(&mut phase, c0);
    for (index, message) in messages.iter().enumerate() {
        ring.add_encoded(
            &mut phase,
            index,
            (PLAINTEXT_MODULUS - message) % PLAINTEXT_MODULUS,
        );
    }
    (0..messages.len())
        .map(|index| integer(&phase, index))
        .collect()
}

/// A zero whose flooding is at the end of its range in every coefficient.
fn extreme_zero() -> Zero {
    let residue = |p: u64| {
        let power = (0..FLOOD_BITS).fold(1, |power, _| multiply(power, 2, p));
        std::iter::repeat_n(p - power, DEGREE)
    };
    Zero {
        randomiser: None,
        flooding: Poly(PRIMES.into_iter().flat_map(residue).collect()),
        error: Poly(vec![0; PRIMES.len() * DEGREE]),
    }
}

/// The noise of the first coefficient without the extreme flooding, which has the same sign.
fn unflooded(key: &SecretKey, combined: &Combined, message: u64) -> f64 {
    let mut flooding = extreme_zero().flooding;
    key.ring.negate(&mut flooding);
    key.ring.add(&mut flooding, &combined.c0);
    measure(key, &flooding, &combined.c1, &[message])[0]
}

/// Every error at its bound, every weight −2^47, flooding at its end with the same sign.
fn worst(rows: usize, columns: usize, kind: Kind) {
    let mut rng = Randomness::seeded(11).fork("worst", 0).unwrap();
    let key = SecretKey::generate(&mut rng).unwrap();
    let layout = SlotLayout::cheapest(rows, columns).unwrap();
    let values = vec![u32::MAX; rows * columns];
    let error = |_: &mut _| Zeroizing::new(vec![i64::from(ERROR_BOUND); DEGREE]);
    let matrix = key.encrypt_with(&values, layout, &mut rng, error).unwrap();
    let (weight, mask) = (PLAINTEXT_MODULUS / 2, PLAINTEXT_MODULUS - 1);
    let (terms, answers) = match kind {
        Kind::Scores => (columns, rows),
        _ => (rows, columns),
    };
    let weights = vec![weight; terms];
    let masks = vec![mask; answers];
    let combined: Vec<Combined> = match kind {
        Kind::Scores => {
            let zeros = (0..layout.blocks()).map(|_| extreme_zero()).collect();
            matrix.combine_scores(&weights, &masks, zeros)
        }
        _ => {
            let zeros = (0..layout.groups()).map(|_| extreme_zero()).collect();
            matrix.combine_sums(&weights, &masks, zeros)
        }
    };
    let expected = (terms as u64 % 2 * weight + mask) % PLAINTEXT_MODULUS;
    let noise = -unflooded(&key, &combined[0], expected);
    let bound = combination_noise(terms);
    assert!(noise <= bound && noise > 0.95 * bound, "{noise} of {bound}");
    let bytes = matrix.message(kind, combined);
    assert!(
        key.decrypt_in(&bytes, kind, &layout)
            .unwrap()
            .iter()
            .all(|v| *v == expected)
    );
}

#[test]
fn the_worst_sums_at_the_row_limit_decrypt() {
    worst(ROW_LIMIT, 1, Kind::Sums);
}

#[test]
fn the_worst_scores_at_the_column_limit_decrypt() {
    worst(8, COLUMN_LIMIT, Kind::Scores);
}

#[test]
fn noise_of_fresh_ciphertexts_is_what_the_bound_says() {
    let mut rng = Randomness::seeded(12).fork("fresh", 0).unwrap();
    let key = SecretKey::generate(&mut rng).unwrap();
    let values: Vec<u32> = (0..DEGREE as u32).collect();
    let layout = SlotLayout {
        rows: DEGREE,
        columns: 1,
        width: 1,
    };
    let matrix = key.encrypt_in(&values, layout, &mut rng).unwrap();
    let messages: Vec<u64> = values.iter().map(|v| u64::from(*v)).collect();
    let [c0, c1] = [&matrix.ciphertexts[0].c0, &matrix.ciphertexts[0].c1];
    let (c0, c1) = (key.ring.inverse(c0.clone()), key.ring.inverse(c1.clone()));
    let noise = measure(&key, &c0, &c1, &messages);
    let largest = noise.iter().fold(0f64, |largest, n| largest.max(n.abs()));
    assert!(
        largest <= f64::from(ERROR_BOUND) + 1.0 && largest > 8.0,
        "{largest}"
    );
}
