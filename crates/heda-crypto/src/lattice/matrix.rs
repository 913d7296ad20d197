//! Encrypting a matrix.

use super::error::LatticeError;
use super::keys::{PublicKey, SecretKey, masked, pack_poly, packed_poly_bytes, unpack_poly};
use super::layout::SlotLayout;
use super::ring::{Poly, Ring, Spectrum, ring};
use super::sample::{self, Seed};
use super::wire::{self, Kind, LatticeFingerprint};
use chacha20::ChaCha20Rng;
use rand_core::CryptoRng;
use rayon::prelude::*;
use std::fmt;
use zeroize::Zeroizing;

/// A matrix of small integers under somebody's key.
///
/// The uniform halves of its ciphertexts come from one seed, which is all that is sent of them.
#[derive(Clone)]
pub struct EncryptedMatrix {
    pub(super) ring: &'static Ring,
    pub(super) layout: SlotLayout,
    pub(super) fingerprint: LatticeFingerprint,
    seed: Seed,
    pub(super) ciphertexts: Vec<Ciphertext>,
}

/// A pair (c0, c1) with c0 + c1·s = round(q·m/2^48) + error.
#[derive(Clone)]
pub(super) struct Ciphertext {
    pub(super) c0: Spectrum,
    pub(super) c1: Spectrum,
}

impl SecretKey {
    /// Encrypts a row-major matrix of non-negative integers.
    pub fn encrypt_matrix<R: CryptoRng>(
        &self,
        values: &[u32],
        rows: usize,
        columns: usize,
        rng: &mut R,
    ) -> Result<EncryptedMatrix, LatticeError> {
        self.encrypt_in(values, SlotLayout::cheapest(rows, columns)?, rng)
    }

    pub(super) fn encrypt_in<R: CryptoRng>(
        &self,
        values: &[u32],
        layout: SlotLayout,
        rng: &mut R,
    ) -> Result<EncryptedMatrix, LatticeError> {
        self.encrypt_with(values, layout, rng, sample::error)
    }

    /// Encrypts with a given source of errors: tests go to the bounds with it.
    pub(super) fn encrypt_with<R: CryptoRng>(
        &self,
        values: &[u32],
        layout: SlotLayout,
        rng: &mut R,
        error: impl Fn(&mut ChaCha20Rng) -> Zeroizing<Vec<i64>> + Sync,
    ) -> Result<EncryptedMatrix, LatticeError> {
        let expected = layout.rows * layout.columns;
        if values.len() != expected {
            let (what, found) = ("matrix", values.len());
            return Err(LatticeError::WrongCount {
                what,
                expected,
                found,
            });
        }
        let seed = sample::seed(rng);
        let error_seed = Zeroizing::new(sample::seed(rng));
        let encrypt = |part: usize| {
            let error = error(&mut sample::generator(&error_seed, part as u64));
            let mut payload = self.ring.signed(&error);
            encode_part(self.ring, &mut payload, values, &layout, part);
            let (c1, c0) = masked(self.ring, &seed, part as u64, &self.secret, payload);
            Ciphertext { c0, c1 }
        };
        let ciphertexts = (0..layout.ciphertexts())
            .into_par_iter()
            .map(encrypt)
            .collect();
        let fingerprint = self.fingerprint();
        Ok(EncryptedMatrix {
            ring: self.ring,
            layout,
            fingerprint,
            seed,
            ciphertexts,
        })
    }
}

fn encode_part(ring: &Ring, payload: &mut Poly, values: &[u32], layout: &SlotLayout, part: usize) {
    let columns = layout.group_columns(part % layout.groups());
    for (i, row) in layout.block_rows(part / layout.groups()).enumerate() {
        for (j, column) in columns.clone().enumerate() {
            let value = u64::from(values[row * layout.columns + column]);
            ring.add_encoded(payload, i * layout.width + j, value);
        }
    }
}

impl EncryptedMatrix {
    /// Rows of the matrix.
    pub fn rows(&self) -> usize {
        self.layout.rows
    }

    /// Columns of the matrix.
    pub fn columns(&self) -> usize {
        self.layout.columns
    }

    /// Zeros that one call of [`EncryptedMatrix::scores`] takes from the pool.
    pub fn zeros_per_scores(&self) -> usize {
        self.layout.blocks()
    }

    /// Zeros that one call of [`EncryptedMatrix::weighted_sums`] takes from the pool.
    pub fn zeros_per_sums(&self) -> usize {
        self.layout.groups()
    }

    /// What everybody sees in the place of each cell, row by row: a residue of its coefficient.
    /// Attacks compare them.
    #[doc(hidden)]
    pub fn visible_cells(&self) -> Vec<u64> {
        let layout = &self.layout;
        let mut seen = vec![0; layout.rows * layout.columns];
        for (part, ciphertext) in self.ciphertexts.iter().enumerate() {
            let half = self.ring.inverse(ciphertext.c0.clone());
            let columns = layout.group_columns(part % layout.groups());
            for (i, row) in layout.block_rows(part / layout.groups()).enumerate() {
                for (j, column) in columns.clone().enumerate() {
                    seen[row * layout.columns + column] = half.0[i * layout.width + j];
                }
            }
        }
        seen
    }

    /// The matrix as bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = wire::header(Kind::Matrix, &self.fingerprint, Some(&self.layout));
        bytes.extend(self.seed);
        let halves = self.ciphertexts.par_iter().map(|ciphertext| {
            let mut packed = Vec::with_capacity(packed_poly_bytes());
            pack_poly(&mut packed, &self.ring.inverse(ciphertext.c0.clone()));
            packed
        });
        halves
            .collect::<Vec<_>>()
            .iter()
            .for_each(|half| bytes.extend(half));
        bytes
    }

    /// Bytes of an encrypted matrix of this shape.
    pub fn byte_length(rows: usize, columns: usize) -> Result<usize, LatticeError> {
        Ok(wire::HEADER_BYTES + body_bytes(&SlotLayout::cheapest(rows, columns)?))
    }

    /// Reads what [`EncryptedMatrix::to_bytes`] wrote for a matrix of the agreed shape, under
    /// the key of the party that sent it.
    pub fn from_bytes(
        bytes: &[u8],
        rows: usize,
        columns: usize,
        public_key: &PublicKey,
    ) -> Result<Self, LatticeError> {
        let layout = SlotLayout::cheapest(rows, columns)?;
        let (fingerprint, body) =
            wire::open(bytes, Kind::Matrix, Some(&layout), body_bytes(&layout))?;
        if fingerprint != public_key.fingerprint() {
            return Err(LatticeError::OtherKey);
        }
        let ring = ring()?;
        let (seed, halves) = body.split_at(size_of::<Seed>());
        let seed: Seed = std::array::from_fn(|i| seed[i]);
        let read = |(part, half): (usize, &[u8])| {
            let c0 = ring.transform(unpack_poly(half)?);
            let c1 = sample::uniform(ring, &seed, part as u64);
            Ok(Ciphertext { c0, c1 })
        };
        let halves = halves.par_chunks(packed_poly_bytes()).enumerate();
        let ciphertexts = halves.map(read).collect::<Result<_, LatticeError>>()?;
        Ok(Self {
            ring,
            layout,
            fingerprint,
            seed,
            ciphertexts,
        })
    }
}

fn body_bytes(layout: &SlotLayout) -> usize {
    size_of::<Seed>() + layout.ciphertexts() * packed_poly_bytes()
}

impl fmt::Debug for EncryptedMatrix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "EncryptedMatrix({} × {})", self.rows(), self.columns())
    }
}
