//! Keys: the secret one stays with the owner of the matrix, the public one re-randomises answers.
//!
//! A public key is (b, a) with b = −a·s + e. The half a is expanded from a seed, so nobody chose
//! it. One secret key has one public key, whose fingerprint names every message made under it.

use super::error::LatticeError;
use super::parameters::{DEGREE, PRIMES};
use super::ring::{Poly, Ring, Spectrum, ring};
use super::sample::{self, Seed};
use super::wire::{self, Kind, LatticeFingerprint};
use rand_core::CryptoRng;
use std::fmt;
use std::sync::Arc;

/// The key that encrypts and decrypts matrices. Wiped on drop.
pub struct SecretKey {
    pub(super) ring: &'static Ring,
    pub(super) secret: Spectrum,
    public: Arc<PublicKey>,
}

/// The key that makes fresh encryptions of zero.
#[derive(Clone)]
pub struct PublicKey {
    pub(super) ring: &'static Ring,
    pub(super) b: Spectrum,
    pub(super) a: Spectrum,
    body: Vec<u8>,
    fingerprint: LatticeFingerprint,
}

impl SecretKey {
    /// A fresh key pair.
    pub fn generate<R: CryptoRng>(rng: &mut R) -> Result<Self, LatticeError> {
        let ring = ring()?;
        let secret = ring.transform(ring.signed(&sample::ternary(rng)));
        let seed = sample::seed(rng);
        let error = ring.signed(&sample::error(rng));
        let (_, b) = masked(ring, &seed, 0, &secret, error);
        let public = Arc::new(PublicKey::assemble(ring, seed, ring.inverse(b)));
        Ok(Self {
            ring,
            secret,
            public,
        })
    }

    /// The public key that belongs to this key.
    pub fn public_key(&self) -> &Arc<PublicKey> {
        &self.public
    }

    pub(super) fn fingerprint(&self) -> LatticeFingerprint {
        self.public.fingerprint
    }
}

/// The uniform half number `part` of a seed, and `payload` minus its product with the secret.
pub(super) fn masked(
    ring: &Ring,
    seed: &Seed,
    part: u64,
    secret: &Spectrum,
    payload: Poly,
) -> (Spectrum, Spectrum) {
    let uniform = sample::uniform(ring, seed, part);
    let mut masked = ring.transform(payload);
    ring.subtract_product(&mut masked, &uniform, secret);
    (uniform, masked)
}

impl PublicKey {
    fn assemble(ring: &'static Ring, seed: Seed, b: Poly) -> Self {
        let mut body = Vec::from(seed);
        pack_poly(&mut body, &b);
        Self {
            ring,
            a: sample::uniform(ring, &seed, 0),
            b: ring.transform(b),
            fingerprint: LatticeFingerprint::of(&body),
            body,
        }
    }

    /// Names this key.
    pub fn fingerprint(&self) -> LatticeFingerprint {
        self.fingerprint
    }

    /// The key as bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = wire::header(Kind::PublicKey, &self.fingerprint, None);
        bytes.extend(&self.body);
        bytes
    }

    /// Bytes of a public key.
    pub fn byte_length() -> usize {
        wire::HEADER_BYTES + size_of::<Seed>() + packed_poly_bytes()
    }

    /// Reads what [`PublicKey::to_bytes`] wrote.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, LatticeError> {
        let ring = ring()?;
        let body_bytes = size_of::<Seed>() + packed_poly_bytes();
        let (fingerprint, body) = wire::open(bytes, Kind::PublicKey, None, body_bytes)?;
        if fingerprint != LatticeFingerprint::of(body) {
            return Err(LatticeError::DamagedKey);
        }
        let (seed, b) = body.split_at(size_of::<Seed>());
        let seed = std::array::from_fn(|i| seed[i]);
        Ok(Self::assemble(ring, seed, unpack_poly(b)?))
    }
}

/// Bytes of a polynomial over all primes.
pub(super) fn packed_poly_bytes() -> usize {
    PRIMES.len() * wire::packed_bytes(DEGREE)
}

pub(super) fn pack_poly(bytes: &mut Vec<u8>, poly: &Poly) {
    for residues in poly.0.chunks_exact(DEGREE) {
        wire::pack(bytes, residues.iter().copied());
    }
}

pub(super) fn unpack_poly(bytes: &[u8]) -> Result<Poly, LatticeError> {
    let mut residues = Vec::with_capacity(PRIMES.len() * DEGREE);
    for (prime, chunk) in PRIMES.iter().zip(bytes.chunks(wire::packed_bytes(DEGREE))) {
        residues.extend(wire::unpack(chunk, DEGREE, *prime)?);
    }
    Ok(Poly(residues))
}

impl fmt::Debug for SecretKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SecretKey(of {:?})", self.public)
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.fingerprint.as_bytes().iter().take(4);
        f.write_str("PublicKey(")?;
        name.into_iter()
            .try_for_each(|byte| write!(f, "{byte:02x}"))?;
        f.write_str(")")
    }
}
