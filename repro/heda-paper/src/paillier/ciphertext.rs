//! Plaintexts and ciphertexts, each bound to its key.

use super::KeyFingerprint;
use crate::integer::{Integer, Natural, Residue};
use std::fmt;

/// A signed number that a key can encrypt, between −N/2 and N/2. Erased when dropped.
#[derive(Clone, PartialEq, Eq)]
pub struct Plaintext {
    value: Integer,
    fingerprint: KeyFingerprint,
}

impl Plaintext {
    pub(super) fn new(value: Integer, fingerprint: KeyFingerprint) -> Self {
        Self { value, fingerprint }
    }

    /// The number.
    pub fn integer(&self) -> &Integer {
        &self.value
    }

    /// The number.
    pub fn into_integer(self) -> Integer {
        self.value
    }

    /// As a machine integer, if it fits.
    pub fn to_i64(&self) -> Option<i64> {
        self.value.to_i64()
    }

    /// As a double machine integer, if it fits.
    pub fn to_i128(&self) -> Option<i128> {
        self.value.to_i128()
    }

    /// The key it is meant for.
    pub fn fingerprint(&self) -> KeyFingerprint {
        self.fingerprint
    }

    /// The residue modulo N: negative numbers count from the top.
    pub(super) fn residue(&self, modulus: &Natural) -> Natural {
        let magnitude = self.value.magnitude();
        // Both are computed, so that time does not tell the sign.
        let wrapped = modulus.checked_sub(magnitude).unwrap_or_else(Natural::zero);
        let mut chosen = magnitude.clone();
        chosen.select_if(&wrapped, self.value.is_negative());
        chosen
    }
}

/// Keeps the number out of logs.
impl fmt::Debug for Plaintext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Plaintext(key {})", self.fingerprint)
    }
}

/// An encrypted number: a unit modulo N², with the fingerprint of its key.
///
/// Equality compares the ciphertexts, not what is in them.
#[derive(Clone, PartialEq, Eq)]
pub struct Ciphertext {
    pub(super) residue: Residue,
    fingerprint: KeyFingerprint,
}

impl Ciphertext {
    pub(super) fn new(residue: Residue, fingerprint: KeyFingerprint) -> Self {
        Self {
            residue,
            fingerprint,
        }
    }

    /// The key it belongs to.
    pub fn fingerprint(&self) -> KeyFingerprint {
        self.fingerprint
    }
}

impl fmt::Debug for Ciphertext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Ciphertext(key {})", self.fingerprint)
    }
}
