//! RSA keys with the public exponent 65537.

use super::RsaError;
use crate::integer::{Modulus, Natural, Residue, Ring};
use crate::paillier::KeySize;
use rand_core::CryptoRng;
use sha2::{Digest, Sha256};
use std::fmt;
use std::sync::Arc;

/// The public exponent, a prime.
pub(super) const EXPONENT: u64 = 65537;

/// What tells one RSA key from another: a hash of the modulus.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct RsaFingerprint(pub(super) [u8; 16]);

impl RsaFingerprint {
    /// Bytes of a fingerprint.
    pub const LENGTH: usize = 16;

    /// The bytes.
    pub fn as_bytes(&self) -> &[u8; Self::LENGTH] {
        &self.0
    }

    fn of(modulus: &Natural) -> Self {
        let length = modulus.bit_length().div_ceil(8);
        let digest = Sha256::new()
            .chain_update(b"heda hazmat rsa key")
            .chain_update(modulus.to_be_bytes(length).unwrap_or_default())
            .finalize();
        Self(std::array::from_fn(|i| digest[i]))
    }
}

impl fmt::Display for RsaFingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for RsaFingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RsaFingerprint({self})")
    }
}

/// A public key, checked when it was made. Clones share everything.
#[derive(Clone)]
pub struct RsaPublicKey(Arc<Inner>);

struct Inner {
    modulus: Natural,
    ring: Modulus,
    fingerprint: RsaFingerprint,
}

impl RsaPublicKey {
    /// The key with this modulus, if that can be one of an accepted length.
    pub fn from_modulus(modulus: Natural) -> Result<Self, RsaError> {
        let bits = modulus.bit_length();
        if !modulus.is_odd() {
            return Err(RsaError::Even);
        }
        if KeySize::from_bits(bits).is_none() {
            return Err(RsaError::Size { bits });
        }
        Self::from_modulus_of_any_size(modulus)
    }

    /// As [`from_modulus`](Self::from_modulus), for keys that are too short to protect anything.
    #[doc(hidden)]
    pub fn from_modulus_insecure_for_tests(modulus: Natural) -> Result<Self, RsaError> {
        Self::from_modulus_of_any_size(modulus)
    }

    fn from_modulus_of_any_size(modulus: Natural) -> Result<Self, RsaError> {
        let ring = Modulus::new(&modulus).ok_or(RsaError::Even)?;
        if modulus.is_square_vartime() {
            return Err(RsaError::Square);
        }
        if modulus.is_prime() {
            return Err(RsaError::Prime);
        }
        Ok(Self(Arc::new(Inner {
            fingerprint: RsaFingerprint::of(&modulus),
            modulus,
            ring,
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
    pub fn fingerprint(&self) -> RsaFingerprint {
        self.0.fingerprint
    }

    pub(super) fn ring(&self) -> &Modulus {
        &self.0.ring
    }
}

impl PartialEq for RsaPublicKey {
    fn eq(&self, other: &Self) -> bool {
        self.modulus() == other.modulus()
    }
}

impl Eq for RsaPublicKey {}

impl fmt::Debug for RsaPublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "RsaPublicKey({} bits, {})",
            self.bits(),
            self.fingerprint()
        )
    }
}

/// A private key. All its parts are erased when dropped; it is never printed, never copied.
pub struct RsaPrivateKey {
    public: RsaPublicKey,
    pub(super) p: Half,
    pub(super) q: Half,
    /// 1/p modulo q.
    pub(super) p_inverse: Residue,
}

/// What is done modulo one prime.
pub(super) struct Half {
    pub(super) prime: Natural,
    pub(super) ring: Modulus,
    /// 1/65537 modulo p − 1.
    exponent: Natural,
}

impl RsaPrivateKey {
    /// Makes a key.
    pub fn generate<R: CryptoRng + ?Sized>(size: KeySize, rng: &mut R) -> Result<Self, RsaError> {
        Self::generate_insecure_for_tests(size.bits(), rng)
    }

    /// Makes a key of any even length from 64 bits on: short ones protect nothing.
    #[doc(hidden)]
    pub fn generate_insecure_for_tests<R: CryptoRng + ?Sized>(
        bits: usize,
        rng: &mut R,
    ) -> Result<Self, RsaError> {
        let half = u32::try_from(bits / 2).map_err(|_| RsaError::Size { bits })?;
        if bits < 64 || !bits.is_multiple_of(2) {
            return Err(RsaError::Size { bits });
        }
        loop {
            let p = Natural::random_prime(half, rng).ok_or(RsaError::Size { bits })?;
            let q = Natural::random_prime(half, rng).ok_or(RsaError::Size { bits })?;
            match Self::from_primes_insecure_for_tests(p, q) {
                Err(RsaError::EqualPrimes | RsaError::UnsuitablePrime) => {}
                other => return other,
            }
        }
    }

    /// The key with these primes, if they make one of an accepted length.
    pub fn from_primes(p: Natural, q: Natural) -> Result<Self, RsaError> {
        let bits = (&p * &q).bit_length();
        if KeySize::from_bits(bits).is_none() {
            return Err(RsaError::Size { bits });
        }
        Self::from_primes_insecure_for_tests(p, q)
    }

    /// As [`from_primes`](Self::from_primes), for keys that are too short to protect anything.
    #[doc(hidden)]
    pub fn from_primes_insecure_for_tests(p: Natural, q: Natural) -> Result<Self, RsaError> {
        if p == q {
            return Err(RsaError::EqualPrimes);
        }
        let (half_p, half_q) = (Half::new(p)?, Half::new(q)?);
        let inverse = half_p.prime.inverse(&half_q.prime);
        let inverse = inverse.ok_or(RsaError::UnsuitablePrime)?;
        Ok(Self {
            public: RsaPublicKey::from_modulus_of_any_size(&half_p.prime * &half_q.prime)?,
            p_inverse: half_q.ring.residue(&inverse),
            p: half_p,
            q: half_q,
        })
    }

    /// The public key.
    pub fn public(&self) -> &RsaPublicKey {
        &self.public
    }
}

impl Half {
    fn new(prime: Natural) -> Result<Self, RsaError> {
        let ring = Modulus::new(&prime).ok_or(RsaError::UnsuitablePrime)?;
        if !prime.is_prime() {
            return Err(RsaError::UnsuitablePrime);
        }
        let exponent = private_exponent(&prime).ok_or(RsaError::UnsuitablePrime)?;
        Ok(Self {
            prime,
            ring,
            exponent,
        })
    }

    pub(super) fn power(&self, number: &Natural) -> Residue {
        let residue = self.ring.residue(number);
        let bits = self.prime.bit_length();
        self.ring.power(&residue, self.exponent.limbs(), bits)
    }
}

/// 1/e modulo p − 1: (1 + k·(p − 1))/e for the k that makes it whole, −1/(p − 1) modulo e, where
/// the inverse is a power because e is prime. `None` if e divides p − 1.
fn private_exponent(prime: &Natural) -> Option<Natural> {
    let e = Natural::from(EXPONENT);
    let order = prime.checked_sub(&Natural::one())?;
    let residue = order.div_rem(&e)?.1.to_u64()?;
    let mut inverse = 1;
    for _ in 0..EXPONENT - 2 {
        inverse = inverse * residue % EXPONENT;
    }
    let k = Natural::from(EXPONENT - inverse);
    let (exponent, rest) = (&Natural::one() + &(&k * &order)).div_rem(&e)?;
    rest.is_zero().then_some(exponent)
}

/// Names the key, never shows it.
impl fmt::Debug for RsaPrivateKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RsaPrivateKey(of {:?})", self.public)
    }
}
