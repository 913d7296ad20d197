//! Primes, inverses and common divisors, by the backend.

use super::natural::Natural;
use crypto_bigint::modular::{BoxedMontyForm, BoxedMontyParams};
use crypto_bigint::{BoxedUint, Gcd, Odd, Resize};
use crypto_primes::hazmat::{SetBits, SmallFactorsSieveFactory};
use crypto_primes::{Flavor, is_prime, sieve_and_find};
use rand_core::CryptoRng;
use zeroize::Zeroizing;

impl Natural {
    /// A random prime of exactly `bits` bits with its two highest bits set, so that the product of
    /// two has exactly twice as many, and congruent to 3 modulo 4. `None` below 16 bits.
    ///
    /// Whether it is prime is decided by a base-2 Miller–Rabin and a strong Lucas test (Baillie
    /// and Wagstaff), for which no counterexample is known.
    pub(crate) fn random_prime<R: CryptoRng + ?Sized>(bits: u32, rng: &mut R) -> Option<Self> {
        if bits < 16 {
            return None;
        }
        let sieve = SmallFactorsSieveFactory::new(Flavor::Any, bits, SetBits::TwoMsb).ok()?;
        let accept = |_: &mut R, candidate: &BoxedUint| {
            candidate.as_words()[0] & 3 == 3 && is_prime(Flavor::Any, candidate)
        };
        sieve_and_find(rng, sieve, accept)
            .ok()?
            .map(Natural::trimmed)
    }

    /// Whether this is (almost certainly) prime.
    pub(crate) fn is_prime(&self) -> bool {
        is_prime(Flavor::Any, self.backend())
    }

    /// The greatest common divisor, of numbers that everybody may know.
    pub(crate) fn gcd_vartime(&self, other: &Self) -> Self {
        Self::trimmed(self.backend().gcd_vartime(other.backend()))
    }

    /// The greatest common divisor.
    pub(crate) fn gcd(&self, other: &Self) -> Self {
        Self::trimmed(self.backend().gcd(other.backend()))
    }

    /// The inverse modulo an odd number, both of which everybody may know.
    pub(crate) fn inverse_vartime(&self, modulus: &Self) -> Option<Self> {
        let value = self.reduced(modulus)?;
        let modulus = Odd::new(modulus.backend().clone()).into_option()?;
        let inverse = value.invert_odd_mod_vartime(&modulus);
        inverse.into_option().map(Self::trimmed)
    }

    /// The inverse modulo an odd number.
    pub(crate) fn inverse(&self, modulus: &Self) -> Option<Self> {
        let value = self.reduced(modulus)?;
        let modulus = Zeroizing::new(Odd::new(modulus.backend().clone()).into_option()?);
        let inverse = value.invert_odd_mod(&modulus);
        inverse.into_option().map(Self::trimmed)
    }

    /// The remainder, in as many limbs as the modulus has.
    fn reduced(&self, modulus: &Self) -> Option<Zeroizing<BoxedUint>> {
        let remainder = self.div_rem(modulus)?.1;
        let precision = modulus.backend().bits_precision();
        Some(Zeroizing::new(remainder.backend().resize(precision)))
    }

    /// Whether this is the square of a whole number, for numbers that everybody may know.
    pub(crate) fn is_square_vartime(&self) -> bool {
        let root = Self::trimmed(self.backend().floor_sqrt_vartime());
        &root * &root == *self
    }

    /// `self^exponent mod modulus` by the backend alone: the yardstick for tests and benchmarks.
    /// `None` for an even modulus.
    #[doc(hidden)]
    pub fn power_by_backend(&self, exponent: &Self, modulus: &Self) -> Option<Self> {
        let base = self.reduced(modulus)?;
        let odd = Odd::new(modulus.backend().clone()).into_option()?;
        let parameters = BoxedMontyParams::new_vartime(odd);
        let power = BoxedMontyForm::new((*base).clone(), &parameters).pow(exponent.backend());
        Some(Self::trimmed(power.retrieve()))
    }
}
