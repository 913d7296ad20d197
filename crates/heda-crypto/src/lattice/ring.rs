//! Arithmetic in Z_q[X]/(X^8192 + 1) with q a product of three primes.
//!
//! Modular arithmetic and number-theoretic transforms come from `fhe-math`; all operations used
//! are its constant-time ones. A [`Poly`] holds coefficients, a [`Spectrum`] transformed values:
//! two types, so that the one can never be taken for the other. Both are wiped on drop, because
//! secrets and masks live in them.

use super::error::LatticeError;
use super::parameters::{self, DEGREE, PLAINTEXT_MODULUS, PRIME_BITS, PRIMES};
use fhe_math::ntt::NttOperator;
use fhe_math::zq::Modulus;
use std::sync::OnceLock;
use zeroize::{Zeroize, ZeroizeOnDrop};

/// Products of two residues that fit into 128 bits together: (2^62)² · 16 = 2^128.
const LAZY_PRODUCTS: usize = 16;

/// Coefficients, one run of 8192 residues per prime.
#[derive(Clone, PartialEq, Eq, Zeroize, ZeroizeOnDrop)]
pub(super) struct Poly(pub(super) Vec<u64>);

/// Transformed values, one run of 8192 residues per prime.
#[derive(Clone, PartialEq, Eq, Zeroize, ZeroizeOnDrop)]
pub(super) struct Spectrum(pub(super) Vec<u64>);

/// One prime of the modulus with what is precomputed for it.
pub(super) struct Prime {
    value: u64,
    /// 2^62 minus the prime, below 2^20.
    complement: u64,
    modulus: Modulus,
    ntt: NttOperator,
    inverse_plaintext_modulus: Factor,
}

/// A constant factor, prepared for fast multiplication.
#[derive(Clone, Copy)]
struct Factor {
    value: u64,
    shoup: u64,
}

/// The ring of these parameters.
pub(super) struct Ring {
    pub(super) primes: Vec<Prime>,
    modulus_mod_plaintext: u64,
    drop_third: [Factor; 2],
    drop_second: Factor,
}

/// The ring, built and checked once.
pub(super) fn ring() -> Result<&'static Ring, LatticeError> {
    static RING: OnceLock<Result<Ring, LatticeError>> = OnceLock::new();
    RING.get_or_init(Ring::build).as_ref().map_err(Clone::clone)
}

impl Prime {
    fn build(value: u64) -> Option<Self> {
        let complement = (1u64 << PRIME_BITS)
            .checked_sub(value)
            .filter(|c| *c < 1 << 20)?;
        let modulus = Modulus::new(value).ok()?;
        let ntt = NttOperator::new(&modulus, DEGREE)?;
        let inverse_plaintext_modulus = Factor::inverse(&modulus, PLAINTEXT_MODULUS)?;
        Some(Self {
            value,
            complement,
            modulus,
            ntt,
            inverse_plaintext_modulus,
        })
    }

    /// Residue of a signed number that is smaller than the prime.
    pub(super) fn signed(&self, number: i64) -> u64 {
        number.wrapping_add(number.wrapping_shr(63) & self.value as i64) as u64
    }

    /// Residue of a 128-bit number: 2^64 is 4·complement and 2^62 is complement modulo the prime.
    pub(super) fn reduce(&self, number: u128) -> u64 {
        const LOW: u128 = (1 << PRIME_BITS) - 1;
        let [low, high] = [number as u64, (number >> 64) as u64];
        // Below 2^64 · 2^22 + 2^64, then below 2^62 + 2^25 · 2^20.
        let folded = u128::from(high) * u128::from(4 * self.complement) + u128::from(low);
        let rest = (folded & LOW) as u64 + (folded >> PRIME_BITS) as u64 * self.complement;
        let exceeds = 0u64.wrapping_sub(u64::from(rest >= self.value));
        rest - (self.value & exceeds)
    }

    pub(super) fn add(&self, a: u64, b: u64) -> u64 {
        self.modulus.add(a, b)
    }

    pub(super) fn subtract(&self, a: u64, b: u64) -> u64 {
        self.modulus.sub(a, b)
    }

    fn times(&self, number: u64, factor: Factor) -> u64 {
        self.modulus.mul_shoup(number, factor.value, factor.shoup)
    }

    pub(super) fn contains(&self, residue: u64) -> bool {
        residue < self.value
    }
}

impl Factor {
    fn inverse(modulus: &Modulus, of: u64) -> Option<Self> {
        let value = modulus.inv(modulus.reduce(of))?;
        Some(Self {
            value,
            shoup: modulus.shoup(value),
        })
    }
}

impl Ring {
    fn build() -> Result<Self, LatticeError> {
        parameters::check()?;
        Self::tables().ok_or(LatticeError::UnsoundParameters(
            "a modulus has no transform",
        ))
    }

    fn tables() -> Option<Self> {
        let primes = PRIMES
            .into_iter()
            .map(Prime::build)
            .collect::<Option<Vec<_>>>()?;
        let product = PRIMES
            .iter()
            .fold(1u64, |product, p| product.wrapping_mul(*p));
        let inverse = |i: usize, of| Factor::inverse(&primes[i].modulus, of);
        Some(Self {
            modulus_mod_plaintext: product % PLAINTEXT_MODULUS,
            drop_third: [inverse(0, PRIMES[2])?, inverse(1, PRIMES[2])?],
            drop_second: inverse(0, PRIMES[1])?,
            primes,
        })
    }

    /// The polynomial with these small signed coefficients.
    pub(super) fn signed(&self, coefficients: &[i64]) -> Poly {
        let residues =
            |prime: &Prime| -> Vec<u64> { coefficients.iter().map(|c| prime.signed(*c)).collect() };
        Poly(self.primes.iter().flat_map(residues).collect())
    }

    /// The transform of a constant polynomial: the constant everywhere.
    pub(super) fn constant(&self, value: i64) -> Spectrum {
        let residues = |prime: &Prime| std::iter::repeat_n(prime.signed(value), DEGREE);
        Spectrum(self.primes.iter().flat_map(residues).collect())
    }

    /// Transforms a polynomial over the first primes, as many as it has residues for.
    pub(super) fn transform(&self, mut poly: Poly) -> Spectrum {
        for (prime, residues) in self.primes.iter().zip(poly.0.chunks_exact_mut(DEGREE)) {
            prime.ntt.forward(residues);
        }
        Spectrum(std::mem::take(&mut poly.0))
    }

    /// The inverse of [`Ring::transform`].
    pub(super) fn inverse(&self, mut spectrum: Spectrum) -> Poly {
        for (prime, residues) in self.primes.iter().zip(spectrum.0.chunks_exact_mut(DEGREE)) {
            prime.ntt.backward(residues);
        }
        Poly(std::mem::take(&mut spectrum.0))
    }

    /// Sum of pairwise products, over the first primes of the first factor.
    pub(super) fn inner_product(&self, pairs: &[(&Spectrum, &Spectrum)]) -> Spectrum {
        let length = pairs.first().map_or(0, |(left, _)| left.0.len());
        let mut sum = Spectrum(vec![0; length]);
        for batch in pairs.chunks(LAZY_PRODUCTS - 1) {
            for (prime, start) in self.primes.iter().zip((0..length).step_by(DEGREE)) {
                accumulate(prime, &mut sum.0[start..start + DEGREE], batch, start);
            }
        }
        sum
    }

    /// `sum += term`.
    pub(super) fn add(&self, sum: &mut Poly, term: &Poly) {
        let runs = sum
            .0
            .chunks_exact_mut(DEGREE)
            .zip(term.0.chunks_exact(DEGREE));
        for (prime, (sum, term)) in self.primes.iter().zip(runs) {
            prime.modulus.add_vec(sum, term);
        }
    }

    /// `-poly`.
    pub(super) fn negate(&self, poly: &mut Poly) {
        for (prime, residues) in self.primes.iter().zip(poly.0.chunks_exact_mut(DEGREE)) {
            prime.modulus.neg_vec(residues);
        }
    }

    /// Adds round(q·value/2^48) to one coefficient: how BFV carries a number.
    ///
    /// With r the centred remainder of q·value modulo 2^48 this is (q·value − r)/2^48, and q
    /// vanishes modulo each prime.
    pub(super) fn add_encoded(&self, poly: &mut Poly, index: usize, value: u64) {
        let remainder = centre(self.modulus_mod_plaintext.wrapping_mul(value));
        for (prime, residues) in self.primes.iter().zip(poly.0.chunks_exact_mut(DEGREE)) {
            let encoded = prime.times(prime.signed(-remainder), prime.inverse_plaintext_modulus);
            residues[index] = prime.add(residues[index], encoded);
        }
    }

    /// One coefficient, scaled by p_0/q and rounded: first the third prime goes, then the second.
    ///
    /// The primes fall, so a residue of a later one is reduced modulo the earlier ones as well.
    pub(super) fn switch(&self, poly: &Poly, index: usize) -> u64 {
        let [first, second, third] = [0, 1, 2].map(|i| poly.0[i * DEGREE + index]);
        let third_in = |i: usize| centred_in(third, PRIMES[2], PRIMES[i]);
        let [p0, p1] = [&self.primes[0], &self.primes[1]];
        let first = p0.times(p0.subtract(first, third_in(0)), self.drop_third[0]);
        let second = p1.times(p1.subtract(second, third_in(1)), self.drop_third[1]);
        let second = centred_in(second, PRIMES[1], PRIMES[0]);
        p0.times(p0.subtract(first, second), self.drop_second)
    }
}

/// The representative of a number modulo 2^48 that lies in [−2^47, 2^47).
pub(super) fn centre(value: u64) -> i64 {
    const SPARE: u32 = 64 - super::parameters::MODULUS_BITS;
    (value << SPARE).cast_signed() >> SPARE
}

/// The centred representative of a residue of `small`, as a residue of `large`.
fn centred_in(residue: u64, small: u64, large: u64) -> u64 {
    let is_upper_half = 0u64.wrapping_sub(u64::from(residue > small / 2));
    residue + (is_upper_half & (large - small))
}

fn accumulate(prime: &Prime, sum: &mut [u64], batch: &[(&Spectrum, &Spectrum)], start: usize) {
    for (offset, value) in sum.iter_mut().enumerate() {
        let at = start + offset;
        let products: u128 = batch
            .iter()
            .map(|(left, right)| u128::from(left.0[at]) * u128::from(right.0[at]))
            .sum();
        *value = prime.reduce(products + u128::from(*value));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reduction_is_right_at_the_bounds() {
        for prime in &ring().unwrap().primes {
            let p = u128::from(prime.value);
            let shaped = [
                0,
                1,
                p - 1,
                p,
                p + 1,
                2 * p,
                p * p - 1,
                p * p,
                u128::MAX,
                u128::MAX - p,
            ];
            let spread = (0..1000).map(|i| u128::MAX / 1009 * i + i);
            for number in shaped.into_iter().chain(spread) {
                assert_eq!(u128::from(prime.reduce(number)), number % p, "{number}");
            }
        }
    }

    #[test]
    fn encoding_and_switching_keep_the_number() {
        let ring = ring().unwrap();
        for value in [0, 1, 2, PLAINTEXT_MODULUS / 2, PLAINTEXT_MODULUS - 1] {
            let mut poly = ring.signed(&[0; DEGREE]);
            ring.add_encoded(&mut poly, 3, value);
            let p0 = u128::from(PRIMES[0]);
            let nearest = (u128::from(value) * p0 + (1 << 47)) >> 48;
            let gap = (u128::from(ring.switch(&poly, 3)) + p0 - nearest) % p0;
            assert!(gap <= 1 || gap == p0 - 1, "{value}: {gap}");
        }
    }

    #[test]
    fn transforms_multiply_modulo_x_to_the_degree_plus_one() {
        let ring = ring().unwrap();
        let monomial = |power: usize, factor: i64| {
            let mut coefficients = vec![0; DEGREE];
            coefficients[power] = factor;
            ring.signed(&coefficients)
        };
        let [left, right] = [monomial(DEGREE - 1, 5), monomial(3, 7)].map(|p| ring.transform(p));
        let product = ring.inverse(ring.inner_product(&[(&left, &right), (&left, &right)]));
        assert!(product == monomial(2, -70));
        assert!(ring.constant(-4) == ring.transform(monomial(0, -4)));
    }
}
