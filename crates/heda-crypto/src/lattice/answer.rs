//! Linear combinations of an encrypted matrix, and reading them.
//!
//! The party that holds the encrypted matrix knows the weights and the masks. It learns nothing.
//! The key holder learns the masked results and nothing else, see `docs/circuit-privacy.md`:
//!  1. multiply and add up;
//!  2. add the mask to the coefficients that carry results;
//!  3. add a fresh encryption of zero with flooding noise;
//!  4. switch both halves to the last prime;
//!  5. send the second half, and of the first one only the coefficients that carry results.

use super::error::LatticeError;
use super::keys::SecretKey;
use super::layout::SlotLayout;
use super::matrix::{Ciphertext, EncryptedMatrix};
use super::parameters::{DEGREE, MODULUS_BITS, PLAINTEXT_MODULUS, PRIMES, check_vector};
use super::ring::{Poly, Ring, Spectrum};
use super::wire::{self, Kind};
use super::zeros::{Zero, ZeroPool};
use rayon::prelude::*;

impl EncryptedMatrix {
    /// Encrypted Σ_j weights_j·x_ij + mask_i modulo 2^48, for every row i.
    pub fn scores(
        &self,
        weights: &[u64],
        mask: &[u64],
        zeros: &mut ZeroPool,
    ) -> Result<Vec<u8>, LatticeError> {
        check_vector("weights of the columns", weights, self.columns())?;
        check_vector("mask of the scores", mask, self.rows())?;
        let combined = self.combine_scores(weights, mask, self.zeros(zeros, Kind::Scores)?);
        Ok(self.message(Kind::Scores, combined))
    }

    /// Encrypted Σ_i weights_i·x_ij + mask_j modulo 2^48, for every column j.
    pub fn weighted_sums(
        &self,
        weights: &[u64],
        mask: &[u64],
        zeros: &mut ZeroPool,
    ) -> Result<Vec<u8>, LatticeError> {
        check_vector("weights of the rows", weights, self.rows())?;
        check_vector("mask of the sums", mask, self.columns())?;
        let combined = self.combine_sums(weights, mask, self.zeros(zeros, Kind::Sums)?);
        Ok(self.message(Kind::Sums, combined))
    }

    fn zeros(&self, pool: &mut ZeroPool, kind: Kind) -> Result<Vec<Zero>, LatticeError> {
        if pool.public_key().fingerprint() != self.fingerprint {
            return Err(LatticeError::OtherKey);
        }
        Ok(pool.take(answers(&self.layout, kind)))
    }

    /// Steps 1 to 3 for scores: one answer for each block of rows.
    pub(super) fn combine_scores(
        &self,
        weights: &[u64],
        mask: &[u64],
        zeros: Vec<Zero>,
    ) -> Vec<Combined> {
        let layout = &self.layout;
        let multiplier = |group| layout.score_multiplier(self.ring, group, weights);
        let multipliers: Vec<_> = (0..layout.groups())
            .into_par_iter()
            .map(multiplier)
            .collect();
        let combine = |(block, zero): (usize, Zero)| {
            let pairs = |group| (self.at(block, group), &multipliers[group]);
            let mask = &mask[layout.block_rows(block)];
            let masked = layout.score_positions(block).zip(mask.iter().copied());
            Combined::new(self.ring, (0..layout.groups()).map(pairs), masked, zero)
        };
        zeros.into_par_iter().enumerate().map(combine).collect()
    }

    /// Steps 1 to 3 for weighted sums: one answer for each group of columns.
    pub(super) fn combine_sums(
        &self,
        weights: &[u64],
        mask: &[u64],
        zeros: Vec<Zero>,
    ) -> Vec<Combined> {
        let layout = &self.layout;
        let multiplier = |block| layout.sum_multiplier(self.ring, block, weights);
        let multipliers: Vec<_> = (0..layout.blocks())
            .into_par_iter()
            .map(multiplier)
            .collect();
        let combine = |(group, zero): (usize, Zero)| {
            let pairs = |block| (self.at(block, group), &multipliers[block]);
            let mask = &mask[layout.group_columns(group)];
            let masked = layout.sum_positions(group).zip(mask.iter().copied());
            Combined::new(self.ring, (0..layout.blocks()).map(pairs), masked, zero)
        };
        zeros.into_par_iter().enumerate().map(combine).collect()
    }

    fn at(&self, block: usize, group: usize) -> &Ciphertext {
        &self.ciphertexts[block * self.layout.groups() + group]
    }

    /// Steps 4 and 5.
    pub(super) fn message(&self, kind: Kind, combined: Vec<Combined>) -> Vec<u8> {
        let mut bytes = wire::header(kind, &self.fingerprint, Some(&self.layout));
        let pack = |(index, answer): (usize, &Combined)| {
            answer.packed(self.ring, &positions(&self.layout, kind, index))
        };
        let parts: Vec<_> = combined.par_iter().enumerate().map(pack).collect();
        parts.iter().for_each(|part| bytes.extend(part));
        bytes
    }
}

/// A masked and re-randomised linear combination under the full modulus.
pub(super) struct Combined {
    pub(super) c0: Poly,
    pub(super) c1: Poly,
}

impl Combined {
    fn new<'a>(
        ring: &Ring,
        pairs: impl Iterator<Item = (&'a Ciphertext, &'a Spectrum)> + Clone,
        mask: impl Iterator<Item = (usize, u64)>,
        zero: Zero,
    ) -> Self {
        let fresh = zero.randomiser.as_ref();
        let first = pairs.clone().map(|(c, w)| (&c.c0, w));
        let second = pairs.map(|(c, w)| (&c.c1, w));
        let first: Vec<_> = first.chain(fresh.map(|r| (&r.key.b, &r.u))).collect();
        let second: Vec<_> = second.chain(fresh.map(|r| (&r.key.a, &r.u))).collect();
        let mut c0 = ring.inverse(ring.inner_product(&first));
        let mut c1 = ring.inverse(ring.inner_product(&second));
        mask.for_each(|(index, value)| ring.add_encoded(&mut c0, index, value));
        ring.add(&mut c0, &zero.flooding);
        ring.add(&mut c1, &zero.error);
        Self { c0, c1 }
    }

    fn packed(&self, ring: &Ring, positions: &[usize]) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(answer_bytes(positions.len()));
        wire::pack(
            &mut bytes,
            (0..DEGREE).map(|index| ring.switch(&self.c1, index)),
        );
        wire::pack(
            &mut bytes,
            positions.iter().map(|index| ring.switch(&self.c0, *index)),
        );
        bytes
    }
}

fn answers(layout: &SlotLayout, kind: Kind) -> usize {
    match kind {
        Kind::Sums => layout.groups(),
        _ => layout.blocks(),
    }
}

fn positions(layout: &SlotLayout, kind: Kind, index: usize) -> Vec<usize> {
    match kind {
        Kind::Sums => layout.sum_positions(index).collect(),
        _ => layout.score_positions(index).collect(),
    }
}

fn answer_bytes(positions: usize) -> usize {
    wire::packed_bytes(DEGREE) + wire::packed_bytes(positions)
}

/// Bytes of a message about a matrix of this shape.
fn message_bytes(rows: usize, columns: usize, kind: Kind) -> Result<usize, LatticeError> {
    let layout = SlotLayout::cheapest(rows, columns)?;
    let each = (0..answers(&layout, kind)).map(|i| positions(&layout, kind, i).len());
    Ok(wire::HEADER_BYTES + each.map(answer_bytes).sum::<usize>())
}

impl EncryptedMatrix {
    /// Bytes of the scores of a matrix of this shape.
    pub fn scores_length(rows: usize, columns: usize) -> Result<usize, LatticeError> {
        message_bytes(rows, columns, Kind::Scores)
    }

    /// Bytes of the weighted sums of a matrix of this shape.
    pub fn sums_length(rows: usize, columns: usize) -> Result<usize, LatticeError> {
        message_bytes(rows, columns, Kind::Sums)
    }
}

impl SecretKey {
    /// Reads the answer of [`EncryptedMatrix::scores`]: one number per row.
    pub fn decrypt_scores(
        &self,
        bytes: &[u8],
        rows: usize,
        columns: usize,
    ) -> Result<Vec<u64>, LatticeError> {
        self.decrypt_in(bytes, Kind::Scores, &SlotLayout::cheapest(rows, columns)?)
    }

    /// Reads the answer of [`EncryptedMatrix::weighted_sums`]: one number per column.
    pub fn decrypt_sums(
        &self,
        bytes: &[u8],
        rows: usize,
        columns: usize,
    ) -> Result<Vec<u64>, LatticeError> {
        self.decrypt_in(bytes, Kind::Sums, &SlotLayout::cheapest(rows, columns)?)
    }

    pub(super) fn decrypt_in(
        &self,
        bytes: &[u8],
        kind: Kind,
        layout: &SlotLayout,
    ) -> Result<Vec<u64>, LatticeError> {
        let all: Vec<_> = (0..answers(layout, kind))
            .map(|i| positions(layout, kind, i))
            .collect();
        let body_bytes = all
            .iter()
            .map(|positions| answer_bytes(positions.len()))
            .sum();
        let (fingerprint, mut body) = wire::open(bytes, kind, Some(layout), body_bytes)?;
        if fingerprint != self.fingerprint() {
            return Err(LatticeError::OtherKey);
        }
        let mut parts = Vec::with_capacity(all.len());
        for positions in &all {
            let (part, rest) = body.split_at(answer_bytes(positions.len()));
            parts.push((part, positions));
            body = rest;
        }
        let decrypt =
            |(part, positions): (&[u8], &Vec<usize>)| self.decrypt_answer(part, positions);
        let numbers: Vec<Vec<u64>> = parts
            .into_par_iter()
            .map(decrypt)
            .collect::<Result<_, _>>()?;
        Ok(numbers.concat())
    }

    fn decrypt_answer(&self, part: &[u8], positions: &[usize]) -> Result<Vec<u64>, LatticeError> {
        let (c1, c0) = part.split_at(wire::packed_bytes(DEGREE));
        let c1 = self
            .ring
            .transform(Poly(wire::unpack(c1, DEGREE, PRIMES[0])?));
        let product = self
            .ring
            .inverse(self.ring.inner_product(&[(&c1, &self.secret)]));
        let c0 = wire::unpack(c0, positions.len(), PRIMES[0])?;
        let numbers = positions.iter().zip(c0);
        Ok(numbers
            .map(|(at, c0)| decode(self.ring.primes[0].add(product.0[*at], c0)))
            .collect())
    }
}

/// round(2^48·residue/p_0) modulo 2^48, by the reciprocal of the prime: no division, no branch.
fn decode(residue: u64) -> u64 {
    const SCALE: u32 = 125;
    const RECIPROCAL: u128 = (1 << SCALE) / PRIMES[0] as u128;
    const SHIFT: u32 = SCALE - MODULUS_BITS;
    let scaled = u128::from(residue) * RECIPROCAL + (1 << (SHIFT - 1));
    (scaled >> SHIFT) as u64 % PLAINTEXT_MODULUS
}
