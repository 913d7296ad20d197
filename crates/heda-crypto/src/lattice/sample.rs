//! Random polynomials: uniform, ternary, error and flooding.

use super::parameters::{DEGREE, ERROR_BOUND, FLOOD_BITS, PRIME_BITS};
use super::prime::Prime;
use super::ring::{Poly, Ring, Spectrum};
use chacha20::ChaCha20Rng;
use rand_core::{CryptoRng, Rng, SeedableRng};
use zeroize::Zeroizing;

/// What a uniform polynomial is expanded from.
pub(super) type Seed = [u8; 32];

/// A fresh public seed.
pub(super) fn seed<R: CryptoRng>(rng: &mut R) -> Seed {
    let mut seed = [0; 32];
    rng.fill_bytes(&mut seed);
    seed
}

/// The generator of one of many parts under one seed.
pub(super) fn generator(seed: &Seed, part: u64) -> ChaCha20Rng {
    let mut generator = ChaCha20Rng::from_seed(*seed);
    generator.set_stream(part);
    generator
}

/// The uniform polynomial number `part` of a public seed, transformed.
///
/// The transform permutes all polynomials: its values are uniform if and only if the coefficients
/// are. So the values are drawn, and nobody pays for transforming them.
pub(super) fn uniform(ring: &Ring, seed: &Seed, part: u64) -> Spectrum {
    let mut rng = generator(seed, part);
    let mut bytes = vec![0; 8 * DEGREE];
    let mut values = Vec::with_capacity(ring.primes.len() * DEGREE);
    for prime in &ring.primes {
        rng.fill_bytes(&mut bytes);
        let (words, _) = bytes.as_chunks();
        let words = words.iter().map(|word| u64::from_le_bytes(*word));
        values.extend(words.map(|word| uniform_residue(prime, word, &mut rng)));
    }
    Spectrum(values)
}

/// The upper bits of a word, or of the next ones in the rare case that they are no residue.
fn uniform_residue<R: CryptoRng>(prime: &Prime, mut word: u64, rng: &mut R) -> u64 {
    loop {
        let candidate = word >> (u64::BITS - PRIME_BITS);
        if prime.contains(candidate) {
            return candidate;
        }
        word = rng.next_u64();
    }
}

/// Coefficients uniform in {−1, 0, 1}: secrets.
pub(super) fn ternary<R: CryptoRng>(rng: &mut R) -> Zeroizing<Vec<i64>> {
    let mut coefficients = Zeroizing::new(Vec::with_capacity(DEGREE));
    let mut bytes = Zeroizing::new([0u8; 64]);
    while coefficients.len() < DEGREE {
        rng.fill_bytes(bytes.as_mut());
        // 255 = 3 · 85: only the byte 255 has to be thrown away.
        let kept = bytes.iter().filter(|byte| **byte != u8::MAX);
        // Never beyond the capacity: a vector that grew would leave a copy unwiped.
        let missing = DEGREE - coefficients.len();
        coefficients.extend(kept.take(missing).map(|byte| i64::from(byte % 3) - 1));
    }
    coefficients
}

/// Centred binomial coefficients of variance 10.5: errors.
pub(super) fn error<R: CryptoRng>(rng: &mut R) -> Zeroizing<Vec<i64>> {
    const MASK: u64 = (1 << ERROR_BOUND) - 1;
    let bytes = random_bytes(8 * DEGREE, rng);
    let difference = |word: &[u8; 8]| {
        let bits = u64::from_le_bytes(*word);
        let ones = |shift: u32| i64::from(((bits >> shift) & MASK).count_ones());
        ones(0) - ones(ERROR_BOUND)
    };
    Zeroizing::new(bytes.as_chunks().0.iter().map(difference).collect())
}

/// Coefficients uniform in [−2^135, 2^135).
pub(super) fn flooding<R: CryptoRng>(ring: &Ring, rng: &mut R) -> Poly {
    const { assert!(FLOOD_BITS + 1 == u128::BITS + u8::BITS) };
    let low = random_bytes(size_of::<u128>() * DEGREE, rng);
    let top = random_bytes(DEGREE, rng);
    let mut poly = Poly::zero();
    for (prime, residues) in ring.primes.iter().zip(poly.0.chunks_exact_mut(DEGREE)) {
        let top_weight = top_weight(prime);
        let parts = low.as_chunks().0.iter().zip(top.iter());
        for (residue, (low, top)) in residues.iter_mut().zip(parts) {
            *residue = flood_residue(prime, top_weight, u128::from_le_bytes(*low), *top);
        }
    }
    poly
}

/// 2^128 modulo the prime: below 2^44, because 2^64 is 4·complement and that below 2^22.
fn top_weight(prime: &Prime) -> i64 {
    prime.add(prime.reduce(u128::MAX), 1).cast_signed()
}

/// Residue of low + 2^128·top − 2^135.
fn flood_residue(prime: &Prime, top_weight: i64, low: u128, top: u8) -> u64 {
    let centred = i64::from(top) - (1 << (FLOOD_BITS - u128::BITS));
    prime.add(prime.reduce(low), prime.signed(centred * top_weight))
}

/// Many bytes at once, which is how the generator is fast; wiped on drop.
fn random_bytes<R: CryptoRng>(count: usize, rng: &mut R) -> Zeroizing<Vec<u8>> {
    let mut bytes = Zeroizing::new(vec![0; count]);
    rng.fill_bytes(&mut bytes);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lattice::ring::ring;
    use crate::random::Randomness;

    #[test]
    fn small_samples_have_their_moments() {
        let mut rng = Randomness::seeded(1).fork("sample", 0).unwrap();
        let moment = |samples: &[i64]| {
            samples.iter().map(|x| (x * x) as f64).sum::<f64>() / samples.len() as f64
        };
        let errors = error(&mut rng);
        assert!(
            errors
                .iter()
                .all(|e| e.unsigned_abs() <= u64::from(ERROR_BOUND))
        );
        assert!((moment(&errors) - 10.5).abs() < 0.6, "{}", moment(&errors));
        let secret = ternary(&mut rng);
        assert_eq!(secret.len(), DEGREE);
        assert!((moment(&secret) - 2.0 / 3.0).abs() < 0.03);
        assert!(secret.iter().sum::<i64>().abs() < 300);
    }

    #[test]
    fn flooding_residues_belong_to_one_integer() {
        let ring = ring().unwrap();
        for prime in &ring.primes {
            let residue = |low, top| flood_residue(prime, top_weight(prime), low, top);
            // 2^135 itself is 128 · 2^128: the offset takes it away.
            assert_eq!(residue(5, 128), 5);
            assert_eq!(residue(0, 128), 0);
            assert_eq!(residue(u128::MAX, 127), prime.subtract(0, 1));
            // The bounds: −2^135 = −2^68 · 2^67 and 2^135 − 1.
            let bound = prime.product(prime.reduce(1 << 68), prime.reduce(1 << 67));
            assert_eq!(residue(0, 0), prime.negate(bound));
            assert_eq!(residue(u128::MAX, u8::MAX), prime.subtract(bound, 1));
        }
    }

    #[test]
    fn seeds_expand_the_same_way_and_parts_differ() {
        let ring = ring().unwrap();
        let seed = [3; 32];
        assert!(uniform(ring, &seed, 4) == uniform(ring, &seed, 4));
        assert!(uniform(ring, &seed, 4) != uniform(ring, &seed, 5));
    }
}
