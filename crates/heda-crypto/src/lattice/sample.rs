//! Random polynomials: uniform, ternary, error and flooding.

use super::parameters::{DEGREE, ERROR_BOUND, FLOOD_BITS, PRIME_BITS};
use super::prime::Prime;
use super::ring::{Poly, Ring};
use chacha20::ChaCha20Rng;
use rand_core::{CryptoRng, SeedableRng};
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

/// The uniform polynomial number `part` of a public seed.
pub(super) fn uniform(ring: &Ring, seed: &Seed, part: u64) -> Poly {
    let mut rng = generator(seed, part);
    let mut residues = Vec::with_capacity(ring.primes.len() * DEGREE);
    for prime in &ring.primes {
        residues.extend((0..DEGREE).map(|_| uniform_residue(prime, &mut rng)));
    }
    Poly(residues)
}

fn uniform_residue<R: CryptoRng>(prime: &Prime, rng: &mut R) -> u64 {
    loop {
        let candidate = rng.next_u64() >> (u64::BITS - PRIME_BITS);
        if prime.contains(candidate) {
            return candidate;
        }
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
        coefficients.extend(kept.map(|byte| i64::from(byte % 3) - 1));
        coefficients.truncate(DEGREE);
    }
    coefficients
}

/// Centred binomial coefficients of variance 10.5: errors.
pub(super) fn error<R: CryptoRng>(rng: &mut R) -> Zeroizing<Vec<i64>> {
    const MASK: u64 = (1 << ERROR_BOUND) - 1;
    let draw = |_| {
        let bits = rng.next_u64();
        let ones = |shift: u32| i64::from(((bits >> shift) & MASK).count_ones());
        ones(0) - ones(ERROR_BOUND)
    };
    Zeroizing::new((0..DEGREE).map(draw).collect())
}

/// Coefficients uniform in [−2^135, 2^135).
pub(super) fn flooding<R: CryptoRng>(ring: &Ring, rng: &mut R) -> Poly {
    const TOP_BITS: u32 = FLOOD_BITS + 1 - u128::BITS;
    let mut poly = Poly(vec![0; ring.primes.len() * DEGREE]);
    let reducers: Vec<FloodReducer> = ring.primes.iter().map(FloodReducer::new).collect();
    for index in 0..DEGREE {
        let low = u128::from(rng.next_u64()) << 64 | u128::from(rng.next_u64());
        let top = rng.next_u64() >> (u64::BITS - TOP_BITS);
        for (prime, (reducer, residues)) in ring
            .primes
            .iter()
            .zip(reducers.iter().zip(poly.0.chunks_exact_mut(DEGREE)))
        {
            residues[index] = reducer.residue(prime, low, top);
        }
    }
    poly
}

/// Reduces low + 2^128·top − 2^135.
struct FloodReducer {
    top_weight: u64,
    offset: u64,
}

impl FloodReducer {
    fn new(prime: &Prime) -> Self {
        let top_weight = prime.reduce(u128::from(prime.reduce(u128::MAX)) + 1);
        let offset = prime.reduce(u128::from(top_weight) << (FLOOD_BITS - u128::BITS));
        Self { top_weight, offset }
    }

    fn residue(&self, prime: &Prime, low: u128, top: u64) -> u64 {
        let high = prime.reduce(u128::from(top) * u128::from(self.top_weight));
        let sum = prime.add(prime.reduce(low), high);
        prime.subtract(sum, self.offset)
    }
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
        let prime = &ring.primes[1];
        let reducer = FloodReducer::new(prime);
        // 2^135 itself is 128 · 2^128: the offset takes it away.
        assert_eq!(reducer.residue(prime, 5, 128), 5);
        assert_eq!(reducer.residue(prime, 0, 128), 0);
        assert_eq!(reducer.residue(prime, u128::MAX, 127), prime.subtract(0, 1));
    }

    #[test]
    fn seeds_expand_the_same_way_and_parts_differ() {
        let ring = ring().unwrap();
        let seed = [3; 32];
        assert!(uniform(ring, &seed, 4) == uniform(ring, &seed, 4));
        assert!(uniform(ring, &seed, 4) != uniform(ring, &seed, 5));
    }
}
