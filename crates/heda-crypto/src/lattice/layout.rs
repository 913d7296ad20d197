//! How a matrix lies in ciphertexts.
//!
//! A ciphertext holds `width` columns of `8192 / width` rows, row by row: the number in row i and
//! column j of its part is the coefficient of X^(i·width + j). One column per ciphertext
//! (`width` 1) and a whole small matrix in one ciphertext are the two ends of this family.
//!
//! Scores: multiply by w_0 + Σ w_j X^(−j); the coefficient i·width is Σ_j w_j x_ij.
//! Weighted sums: multiply by Σ_i w_i X^(−i·width); the coefficient j is Σ_i w_i x_ij.
//! X^(−k) is −X^(8192−k). No other product falls on these coefficients, because i·width + j stays
//! below 8192 for all rows and columns of a ciphertext.

use super::error::LatticeError;
use super::parameters::{DEGREE, check_shape};
use super::ring::{Ring, Spectrum, centre};
use std::ops::Range;
use zeroize::Zeroizing;

/// A shape and the number of columns that share a ciphertext.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SlotLayout {
    pub(super) rows: usize,
    pub(super) columns: usize,
    pub(super) width: usize,
}

impl SlotLayout {
    /// The cheapest layout of a shape; of equal ones the narrowest.
    pub(super) fn cheapest(rows: usize, columns: usize) -> Result<Self, LatticeError> {
        check_shape(rows, columns)?;
        let candidates = (1..=columns).map(|width| Self {
            rows,
            columns,
            width,
        });
        candidates
            .min_by_key(Self::cost)
            .ok_or(LatticeError::EmptyMatrix { rows, columns })
    }

    /// Operations of one round of scores and weighted sums, counted in half pointwise products
    /// over the full modulus. A transform is 13/2 products. An answer needs two transforms back,
    /// a zero-encryption three and a decryption about one.
    fn cost(&self) -> usize {
        let [blocks, groups] = [self.blocks(), self.groups()];
        let products = 4 * blocks * groups;
        let answers = 6 * (blocks + groups);
        // A constant is its own transform: scores of single columns transform no weights.
        let weights = blocks + if self.width == 1 { 0 } else { groups };
        2 * products + 13 * (answers + weights)
    }

    pub(super) fn rows_per_block(&self) -> usize {
        DEGREE / self.width
    }

    /// Runs of rows; each gives one ciphertext of scores.
    pub(super) fn blocks(&self) -> usize {
        self.rows.div_ceil(self.rows_per_block())
    }

    /// Runs of columns; each gives one ciphertext of weighted sums.
    pub(super) fn groups(&self) -> usize {
        self.columns.div_ceil(self.width)
    }

    pub(super) fn ciphertexts(&self) -> usize {
        self.blocks() * self.groups()
    }

    pub(super) fn block_rows(&self, block: usize) -> Range<usize> {
        let start = block * self.rows_per_block();
        start..self.rows.min(start + self.rows_per_block())
    }

    pub(super) fn group_columns(&self, group: usize) -> Range<usize> {
        let start = group * self.width;
        start..self.columns.min(start + self.width)
    }

    /// Coefficients that carry the scores of a block.
    pub(super) fn score_positions(&self, block: usize) -> impl Iterator<Item = usize> + use<> {
        let width = self.width;
        (0..self.block_rows(block).len()).map(move |i| i * width)
    }

    /// Coefficients that carry the sums of a group.
    pub(super) fn sum_positions(&self, group: usize) -> Range<usize> {
        0..self.group_columns(group).len()
    }

    /// What turns a group of columns into scores.
    pub(super) fn score_multiplier(&self, ring: &Ring, group: usize, weights: &[u64]) -> Spectrum {
        let weights = &weights[self.group_columns(group)];
        match weights {
            [constant] => ring.constant(centre(*constant)),
            _ => ring.transform(ring.signed(&mirrored(weights, 1))),
        }
    }

    /// What turns a block of rows into sums.
    pub(super) fn sum_multiplier(&self, ring: &Ring, block: usize, weights: &[u64]) -> Spectrum {
        let weights = &weights[self.block_rows(block)];
        ring.transform(ring.signed(&mirrored(weights, self.width)))
    }
}

/// Σ_k w_k X^(−k·step) with centred weights.
fn mirrored(weights: &[u64], step: usize) -> Zeroizing<Vec<i64>> {
    let mut coefficients = Zeroizing::new(vec![0; DEGREE]);
    for (k, weight) in weights.iter().enumerate() {
        match k {
            0 => coefficients[0] = centre(*weight),
            _ => coefficients[DEGREE - k * step] = -centre(*weight),
        }
    }
    coefficients
}

#[cfg(test)]
mod tests {
    use super::*;

    fn width(rows: usize, columns: usize) -> usize {
        SlotLayout::cheapest(rows, columns).unwrap().width
    }

    #[test]
    fn small_matrices_share_one_ciphertext() {
        for (rows, columns) in [(1, 1), (186, 9), (569, 14), (1, 1024), (8, 1024)] {
            let layout = SlotLayout::cheapest(rows, columns).unwrap();
            assert_eq!(layout.ciphertexts(), 1, "{rows} × {columns}");
        }
    }

    #[test]
    fn long_matrices_spread_their_columns() {
        assert_eq!(width(1 << 20, 14), 1);
        assert_eq!(width(26_048, 14), 2);
        assert!(width(8192, 14) < 14);
    }

    #[test]
    fn every_entry_has_one_place() {
        for (rows, columns, width) in [(20_000, 5, 2), (3, 7, 3), (8192, 1, 1), (700, 100, 100)] {
            let layout = SlotLayout {
                rows,
                columns,
                width,
            };
            let blocks: usize = (0..layout.blocks())
                .map(|b| layout.block_rows(b).len())
                .sum();
            let groups: usize = (0..layout.groups())
                .map(|g| layout.group_columns(g).len())
                .sum();
            assert_eq!((blocks, groups), (rows, columns));
            assert!(layout.rows_per_block() * width <= DEGREE);
        }
    }
}
