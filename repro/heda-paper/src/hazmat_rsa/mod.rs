//! Textbook RSA, for its multiplicative property only. **Hazardous: this does not hide numbers.**
//!
//! The paper's power function multiplies encrypted numbers, ‖x‖·‖y‖ = ‖x·y‖, which RSA (Rivest,
//! Shamir, Adleman, CACM 1978) can do only in its bare form, m ↦ m^e mod N. Bare RSA is
//! *deterministic*, and that is how it is broken:
//!
//! - **Guessing.** Anybody encrypts the numbers that can occur and compares. A feature with 101
//!   possible values is read off at once by whoever can guess what was encrypted. This is an attack,
//!   not a theoretical blemish; it takes 101 encryptions.
//! - **Equality.** Equal numbers have equal ciphertexts, so counts and patterns are visible.
//! - **Factors.** ‖x‖·‖y‖ = ‖x·y‖ lets anybody test products: a number of 2k bits that is the
//!   product of two of k bits is found with 2^k work (Boneh, Joux, Nguyen, ASIACRYPT 2000).
//! - **Fixed points.** 0, 1 and N − 1 encrypt to themselves.
//! - **Decryption on demand.** Who decrypts for others decrypts anything: ‖x·r‖ looks like any
//!   other number.
//!
//! Use it only where the numbers may become known to the holder of the ciphertexts, or where each
//! is multiplied by a fresh, uniform, secret factor first. Nothing else in this crate relies on it.
//!
//! ```
//! use heda_paper::hazmat_rsa::RsaPrivateKey;
//! use heda_paper::integer::Natural;
//! use heda_crypto::random::Randomness;
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mut rng = Randomness::from_os().fork("example", 0)?;
//! # let private = RsaPrivateKey::generate_insecure_for_tests(256, &mut rng)?;
//! # /*
//! let private = RsaPrivateKey::generate(KeySize::Bits2048, &mut rng)?;
//! # */
//! let public = private.public();
//! let (x, y) = (Natural::from(6u64), Natural::from(7u64));
//! let product = public.multiply(&public.encrypt(&x)?, &public.encrypt(&y)?)?;
//! assert_eq!(private.decrypt(&product)?.to_u64(), Some(42));
//! # Ok(())
//! # }
//! ```

mod keys;
#[cfg(test)]
mod tests;
mod wire;

use crate::integer::{Natural, Residue, Ring};
pub use keys::{RsaFingerprint, RsaPrivateKey, RsaPublicKey};
use rayon::prelude::*;
use std::fmt;

/// What is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RsaError {
    /// Two things of different keys were brought together.
    #[error("an RSA ciphertext of key {found} was used with key {expected}")]
    MixedKeys {
        /// Fingerprint of the key in use.
        expected: RsaFingerprint,
        /// Fingerprint of the other key.
        found: RsaFingerprint,
    },
    /// The number is not below N.
    #[error("a number of {bits} bits is not below the RSA modulus; use a longer key")]
    OutOfRange {
        /// Bits of the number.
        bits: usize,
    },
    /// The modulus is even.
    #[error("the RSA modulus is even, so it is no product of two large primes")]
    Even,
    /// The modulus is a square.
    #[error("the RSA modulus is a square: anybody can decrypt with it")]
    Square,
    /// The modulus is prime.
    #[error("the RSA modulus is prime: anybody can decrypt with it")]
    Prime,
    /// The modulus is not as long as a key must be.
    #[error("the RSA modulus has {bits} bits; 2048, 3072 or 4096 are accepted")]
    Size {
        /// Bits of the modulus.
        bits: usize,
    },
    /// The two primes are equal.
    #[error("the RSA key's two primes are equal")]
    EqualPrimes,
    /// A factor is not prime or does not go with the public exponent.
    #[error("a factor of the RSA key is not prime, or 65537 divides it less one")]
    UnsuitablePrime,
    /// The bytes end too early or go on too long.
    #[error("{found} bytes where {expected} were expected; is the message or file whole?")]
    Length {
        /// Bytes that the context demands.
        expected: usize,
        /// Bytes that were given.
        found: usize,
    },
    /// Written by another version or something else altogether.
    #[error("not in a form that this version reads (first byte {found:02x})")]
    Format {
        /// The first byte.
        found: u8,
    },
    /// A ciphertext that is read belongs to another key.
    #[error("the RSA ciphertexts belong to another key; ask for some under this key")]
    OtherKey,
    /// A ciphertext that is read is not below N.
    #[error("RSA ciphertext {index} is not below the modulus")]
    NotBelowModulus {
        /// Which one.
        index: usize,
    },
}

/// An encrypted number, deterministically. Equal numbers are equal here: see the module.
#[derive(Clone, PartialEq, Eq)]
pub struct RsaCiphertext {
    residue: Residue,
    fingerprint: RsaFingerprint,
}

impl RsaCiphertext {
    /// The key it belongs to.
    pub fn fingerprint(&self) -> RsaFingerprint {
        self.fingerprint
    }
}

impl fmt::Debug for RsaCiphertext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RsaCiphertext(key {})", self.fingerprint)
    }
}

impl RsaPublicKey {
    /// Encrypts a number below N.
    pub fn encrypt(&self, number: &Natural) -> Result<RsaCiphertext, RsaError> {
        let bits = number.bit_length();
        if number >= self.modulus() {
            return Err(RsaError::OutOfRange { bits });
        }
        let residue = self.ring().residue(number);
        Ok(self.ciphertext(self.ring().power_vartime(&residue, &[keys::EXPONENT])))
    }

    /// Encrypts each, on all cores.
    pub fn encrypt_batch(&self, numbers: &[Natural]) -> Result<Vec<RsaCiphertext>, RsaError> {
        numbers.par_iter().map(|m| self.encrypt(m)).collect()
    }

    /// Encrypts x·y modulo N.
    pub fn multiply(
        &self,
        x: &RsaCiphertext,
        y: &RsaCiphertext,
    ) -> Result<RsaCiphertext, RsaError> {
        self.product([x, y])
    }

    /// Encrypts the product of all modulo N; 1 for none.
    pub fn product<'a>(
        &self,
        factors: impl IntoIterator<Item = &'a RsaCiphertext>,
    ) -> Result<RsaCiphertext, RsaError> {
        let mut work = self.ring().workspace();
        let mut product = self.ring().one().clone();
        for factor in factors {
            self.check(factor.fingerprint)?;
            self.ring()
                .multiply_assign(&mut product, &factor.residue, &mut work);
        }
        Ok(self.ciphertext(product))
    }

    fn ciphertext(&self, residue: Residue) -> RsaCiphertext {
        RsaCiphertext {
            residue,
            fingerprint: self.fingerprint(),
        }
    }

    fn check(&self, found: RsaFingerprint) -> Result<(), RsaError> {
        let expected = self.fingerprint();
        match expected == found {
            true => Ok(()),
            false => Err(RsaError::MixedKeys { expected, found }),
        }
    }
}

impl RsaPrivateKey {
    /// Decrypts by the two primes, in time that depends on the key's length only.
    pub fn decrypt(&self, ciphertext: &RsaCiphertext) -> Result<Natural, RsaError> {
        self.public().check(ciphertext.fingerprint)?;
        let number = self.public().ring().natural(&ciphertext.residue);
        let m_p = self.p.ring.natural(&self.p.power(&number));
        let m_q = self.q.power(&number);
        let difference = self.q.ring.subtract(&m_q, &self.q.ring.residue(&m_p));
        let quotient = self.q.ring.multiply(&difference, &self.p_inverse);
        Ok(&m_p + &(&self.p.prime * &self.q.ring.natural(&quotient)))
    }

    /// Decrypts each, on all cores.
    pub fn decrypt_batch(&self, ciphertexts: &[RsaCiphertext]) -> Result<Vec<Natural>, RsaError> {
        ciphertexts.par_iter().map(|c| self.decrypt(c)).collect()
    }
}
