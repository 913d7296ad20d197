//! Arithmetic in Z_q[X]/(X^8192 + 1) with q a product of three primes.
//!
//! A [`Poly`] holds coefficients, a [`Spectrum`] transformed values: two types, so that the one
//! can never be taken for the other. Both are wiped on drop, because secrets and masks live in
//! them. Nothing here branches on a residue.

use super::error::LatticeError;
use super::parameters::{self, DEGREE, PLAINTEXT_MODULUS, PRIMES};
use super::prime::{Factor, Prime};
use super::transform::Transform;
use std::sync::OnceLock;
use zeroize::{Zeroize, ZeroizeOnDrop};

/// Products of two residues that fit into 128 bits together: (2^62)² · 16 = 2^128.
const LAZY_PRODUCTS: usize = 16;
/// Neighbouring values whose products are added up together, so that they stay in registers.
const STRIP: usize = 4;

/// Residues of a polynomial over all primes.
const RESIDUES: usize = PRIMES.len() * DEGREE;

/// Coefficients, one run of 8192 residues per prime.
#[derive(Clone, PartialEq, Eq, Zeroize, ZeroizeOnDrop)]
pub(super) struct Poly(pub(super) Vec<u64>);

/// Transformed values, one run of 8192 residues per prime.
#[derive(Clone, PartialEq, Eq, Zeroize, ZeroizeOnDrop)]
pub(super) struct Spectrum(pub(super) Vec<u64>);

impl Poly {
    /// Memory for a whole polynomial at once: a vector that grew would leave copies unwiped.
    pub(super) fn zero() -> Self {
        Self(vec![0; RESIDUES])
    }
}

/// The ring of these parameters.
pub(super) struct Ring {
    pub(super) primes: [Prime; 3],
    transforms: [Transform; 3],
    modulus_mod_plaintext: u64,
    inverse_plaintext_modulus: [Factor; 3],
    drop_third: [Factor; 2],
    drop_second: Factor,
}

/// The ring, built and checked once.
pub(super) fn ring() -> Result<&'static Ring, LatticeError> {
    static RING: OnceLock<Result<Ring, LatticeError>> = OnceLock::new();
    RING.get_or_init(Ring::build).as_ref().map_err(Clone::clone)
}

impl Ring {
    fn build() -> Result<Self, LatticeError> {
        parameters::check()?;
        Self::tables().ok_or(LatticeError::UnsoundParameters(
            "a modulus has no transform",
        ))
    }

    fn tables() -> Option<Self> {
        let primes = all(PRIMES.map(Prime::new))?;
        let product = PRIMES
            .iter()
            .fold(1u64, |product, p| product.wrapping_mul(*p));
        let inverse = |prime: Prime, of| Some(prime.factor(prime.inverse(of)?));
        Some(Self {
            transforms: all(primes.map(|prime| Transform::new(prime, DEGREE)))?,
            modulus_mod_plaintext: product % PLAINTEXT_MODULUS,
            inverse_plaintext_modulus: all(primes.map(|p| inverse(p, PLAINTEXT_MODULUS)))?,
            drop_third: all([primes[0], primes[1]].map(|p| inverse(p, PRIMES[2])))?,
            drop_second: inverse(primes[0], PRIMES[1])?,
            primes,
        })
    }

    /// The polynomial with these small signed coefficients.
    pub(super) fn signed(&self, coefficients: &[i64]) -> Poly {
        let mut poly = Poly::zero();
        self.add_signed(&mut poly, coefficients);
        poly
    }

    /// Adds small signed coefficients.
    pub(super) fn add_signed(&self, sum: &mut Poly, coefficients: &[i64]) {
        for (prime, sum) in self.primes.iter().zip(sum.0.chunks_exact_mut(DEGREE)) {
            for (sum, coefficient) in sum.iter_mut().zip(coefficients) {
                *sum = prime.add(*sum, prime.signed(*coefficient));
            }
        }
    }

    /// The transform of a constant polynomial: the constant everywhere.
    pub(super) fn constant(&self, value: i64) -> Spectrum {
        let mut spectrum = Spectrum(vec![0; RESIDUES]);
        for (prime, values) in self.primes.iter().zip(spectrum.0.chunks_exact_mut(DEGREE)) {
            values.fill(prime.signed(value));
        }
        spectrum
    }

    /// Transforms a polynomial over the first primes, as many as it has residues for.
    pub(super) fn transform(&self, mut poly: Poly) -> Spectrum {
        for (transform, residues) in self.transforms.iter().zip(poly.0.chunks_exact_mut(DEGREE)) {
            transform.forward(residues);
        }
        Spectrum(std::mem::take(&mut poly.0))
    }

    /// The inverse of [`Ring::transform`].
    pub(super) fn inverse(&self, mut spectrum: Spectrum) -> Poly {
        let runs = spectrum.0.chunks_exact_mut(DEGREE);
        for (transform, residues) in self.transforms.iter().zip(runs) {
            transform.backward(residues);
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

    /// `sum -= left·right`.
    pub(super) fn subtract_product(&self, sum: &mut Spectrum, left: &Spectrum, right: &Spectrum) {
        let factors = left
            .0
            .chunks_exact(DEGREE)
            .zip(right.0.chunks_exact(DEGREE));
        let runs = sum.0.chunks_exact_mut(DEGREE).zip(factors);
        for (prime, (sum, (left, right))) in self.primes.iter().zip(runs) {
            for (sum, (left, right)) in sum.iter_mut().zip(left.iter().zip(right)) {
                *sum = prime.subtract(*sum, prime.product(*left, *right));
            }
        }
    }

    /// `sum += term`.
    pub(super) fn add(&self, sum: &mut Poly, term: &Poly) {
        let runs = sum
            .0
            .chunks_exact_mut(DEGREE)
            .zip(term.0.chunks_exact(DEGREE));
        for (prime, (sum, term)) in self.primes.iter().zip(runs) {
            for (sum, term) in sum.iter_mut().zip(term) {
                *sum = prime.add(*sum, *term);
            }
        }
    }

    /// `-poly`.
    #[cfg(test)]
    pub(super) fn negate(&self, poly: &mut Poly) {
        for (prime, residues) in self.primes.iter().zip(poly.0.chunks_exact_mut(DEGREE)) {
            for residue in residues {
                *residue = prime.negate(*residue);
            }
        }
    }

    /// Adds round(q·value/2^48) to one coefficient: how BFV carries a number.
    ///
    /// With r the centred remainder of q·value modulo 2^48 this is (q·value − r)/2^48, and q
    /// vanishes modulo each prime.
    pub(super) fn add_encoded(&self, poly: &mut Poly, index: usize, value: u64) {
        let remainder = centre(self.modulus_mod_plaintext.wrapping_mul(value));
        let constants = self.primes.iter().zip(self.inverse_plaintext_modulus);
        for ((prime, inverse), residues) in constants.zip(poly.0.chunks_exact_mut(DEGREE)) {
            let encoded = prime.times(prime.signed(-remainder), inverse);
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
    let (sums, _) = sum.as_chunks_mut::<STRIP>();
    for (strip, at) in sums.iter_mut().zip((start..).step_by(STRIP)) {
        let mut products = strip.map(u128::from);
        for (left, right) in batch {
            let factors = left.0[at..at + STRIP].iter().zip(&right.0[at..at + STRIP]);
            for (product, (left, right)) in products.iter_mut().zip(factors) {
                *product += u128::from(*left) * u128::from(*right);
            }
        }
        *strip = products.map(|product| prime.reduce(product));
    }
}

/// Everything, if nothing is missing.
fn all<T, const N: usize>(parts: [Option<T>; N]) -> Option<[T; N]> {
    let parts: Option<Vec<T>> = parts.into_iter().collect();
    parts?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

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
