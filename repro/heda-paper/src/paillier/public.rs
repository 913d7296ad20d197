//! Public keys.

use super::error::{KeyError, PaillierError};
use super::{Ciphertext, Plaintext};
use crate::integer::{Comb, Integer, Natural, Ring, SquareModulus};
use sha2::{Digest, Sha256};
use std::fmt;
use std::sync::{Arc, OnceLock};

/// Lengths of keys that protect something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum KeySize {
    /// 2048 bits, some 112 bits of security: what the paper's tables use.
    Bits2048,
    /// 3072 bits, some 128 bits of security: the default.
    Bits3072,
    /// 4096 bits, some 140 bits of security.
    Bits4096,
}

impl KeySize {
    /// All lengths, shortest first.
    pub const ALL: [Self; 3] = [Self::Bits2048, Self::Bits3072, Self::Bits4096];

    /// Bits of the modulus.
    pub fn bits(self) -> usize {
        match self {
            Self::Bits2048 => 2048,
            Self::Bits3072 => 3072,
            Self::Bits4096 => 4096,
        }
    }

    /// The size with this many bits, if it is one of them.
    pub fn from_bits(bits: usize) -> Option<Self> {
        Self::ALL.into_iter().find(|size| size.bits() == bits)
    }
}

/// What tells one key from another: a hash of the modulus.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct KeyFingerprint([u8; 16]);

impl KeyFingerprint {
    /// Bytes of a fingerprint.
    pub const LENGTH: usize = 16;

    /// The bytes.
    pub fn as_bytes(&self) -> &[u8; Self::LENGTH] {
        &self.0
    }

    fn of(modulus: &Natural) -> Self {
        let digest = hash(b"heda paillier key", modulus, 0);
        Self(std::array::from_fn(|i| digest[i]))
    }
}

impl fmt::Display for KeyFingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for KeyFingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KeyFingerprint({self})")
    }
}

/// A public key, checked when it was made. Clones share everything.
#[derive(Clone)]
pub struct PublicKey(Arc<Inner>);

struct Inner {
    modulus: Natural,
    modulus_squared: Natural,
    half: Natural,
    fingerprint: KeyFingerprint,
    ring: SquareModulus,
    randomisers: OnceLock<Comb>,
}

impl PublicKey {
    /// The key with this modulus, if that can be one of an accepted length.
    ///
    /// That N has two prime factors of the right form cannot be seen from N; an owner who chose
    /// it badly harms only the secrecy of what is encrypted for that owner.
    pub fn from_modulus(modulus: Natural) -> Result<Self, KeyError> {
        let bits = modulus.bit_length();
        if !modulus.is_odd() {
            return Err(KeyError::Even);
        }
        if KeySize::from_bits(bits).is_none() {
            return Err(KeyError::Size { bits });
        }
        Self::from_modulus_of_any_size(modulus)
    }

    /// As [`from_modulus`](Self::from_modulus), for keys that are too short to protect anything.
    #[doc(hidden)]
    pub fn from_modulus_insecure_for_tests(modulus: Natural) -> Result<Self, KeyError> {
        Self::from_modulus_of_any_size(modulus)
    }

    pub(super) fn from_modulus_of_any_size(modulus: Natural) -> Result<Self, KeyError> {
        if modulus.is_odd() && modulus.is_square_vartime() {
            return Err(KeyError::Square);
        }
        if modulus.is_odd() && modulus.is_prime() {
            return Err(KeyError::Prime);
        }
        let ring = SquareModulus::new(&modulus).ok_or(KeyError::Even)?;
        Ok(Self(Arc::new(Inner {
            modulus_squared: &modulus * &modulus,
            half: &modulus >> 1,
            fingerprint: KeyFingerprint::of(&modulus),
            modulus,
            ring,
            randomisers: OnceLock::new(),
        })))
    }

    /// N.
    pub fn modulus(&self) -> &Natural {
        &self.0.modulus
    }

    /// Bits of N.
    pub fn bits(&self) -> usize {
        self.0.modulus.bit_length()
    }

    /// What tells this key from others.
    pub fn fingerprint(&self) -> KeyFingerprint {
        self.0.fingerprint
    }

    /// The largest plaintext, (N − 1)/2; its negative is the smallest.
    pub fn largest_plaintext(&self) -> &Natural {
        &self.0.half
    }

    /// A number as a plaintext of this key, if it is between −N/2 and N/2.
    pub fn plaintext(&self, value: impl Into<Integer>) -> Result<Plaintext, PaillierError> {
        let value = value.into();
        if value.magnitude() > &self.0.half {
            let bits = value.magnitude().bit_length();
            return Err(PaillierError::OutOfRange { bits });
        }
        Ok(Plaintext::new(value, self.fingerprint()))
    }

    pub(super) fn ring(&self) -> &SquareModulus {
        &self.0.ring
    }

    pub(super) fn modulus_squared(&self) -> &Natural {
        &self.0.modulus_squared
    }

    /// Bits of the short exponent.
    pub(super) fn exponent_bits(&self) -> usize {
        self.bits().div_ceil(2)
    }

    /// Tables for the powers of h^N, made when they are first needed.
    pub(super) fn randomisers(&self) -> &Comb {
        self.0.randomisers.get_or_init(|| {
            let ring = &self.0.ring;
            let h = ring.residue(&self.randomiser_base());
            let base = ring.power_vartime(&h, self.0.modulus.limbs());
            Comb::new(ring, &base, self.exponent_bits())
        })
    }

    /// h = −y² mod N, where y is a hash of N that is 128 bits longer than N before reduction.
    pub(super) fn randomiser_base(&self) -> Natural {
        let n = &self.0.modulus;
        let blocks = (self.bits() + 128).div_ceil(256) as u64;
        let bytes: Vec<u8> = (0..blocks)
            .flat_map(|block| hash(b"heda paillier randomiser", n, block))
            .collect();
        let ring = self.0.ring.root();
        let y = ring.residue(&Natural::from_be_bytes(&bytes));
        let zero = ring.subtract(&y, &y);
        ring.natural(&ring.subtract(&zero, &ring.multiply(&y, &y)))
    }

    pub(super) fn check(&self, found: KeyFingerprint) -> Result<(), PaillierError> {
        let expected = self.fingerprint();
        if expected == found {
            Ok(())
        } else {
            Err(PaillierError::MixedKeys { expected, found })
        }
    }

    pub(super) fn check_all<'a>(
        &self,
        ciphertexts: impl IntoIterator<Item = &'a Ciphertext>,
    ) -> Result<(), PaillierError> {
        ciphertexts
            .into_iter()
            .try_for_each(|c| self.check(c.fingerprint()))
    }
}

fn hash(purpose: &[u8], modulus: &Natural, block: u64) -> [u8; 32] {
    let length = modulus.bit_length().div_ceil(8);
    let bytes = modulus.to_be_bytes(length).unwrap_or_default();
    let digest = Sha256::new()
        .chain_update(purpose)
        .chain_update(block.to_be_bytes())
        .chain_update(bytes);
    digest.finalize().into()
}

impl PartialEq for PublicKey {
    fn eq(&self, other: &Self) -> bool {
        self.modulus() == other.modulus()
    }
}

impl Eq for PublicKey {}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PublicKey({} bits, {})", self.bits(), self.fingerprint())
    }
}
