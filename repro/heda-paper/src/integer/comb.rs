//! Powers of a base that is known in advance (Lim and Lee, "More flexible exponentiation with
//! precomputation", CRYPTO '94).
//!
//! The exponent's bits are laid out in `ROWS` rows; a table holds the products of all subsets of
//! the rows' bases, so one product treats a whole column. Columns are cut into blocks with a
//! table each, so that only as many squarings are left as a block has columns. Tables stay so
//! small that every entry can be read at each step, which hides the exponent from the cache.

use super::limbs;
use super::natural::Natural;
use super::ring::{Residue, Ring};
use zeroize::{Zeroize, ZeroizeOnDrop};

/// More rows mean fewer products, but each row doubles what has to be read to hide the exponent.
const ROWS: usize = 6;
/// Columns of a block, and one more than the squarings of a power.
const BLOCK: usize = 8;

/// Tables for the powers of one base. Erased when dropped: those of a key holder are secret.
#[derive(Zeroize, ZeroizeOnDrop)]
pub(crate) struct Comb {
    columns: usize,
    blocks: Vec<Vec<u64>>,
}

impl Comb {
    /// Tables for exponents of up to `exponent_bits` bits.
    pub(crate) fn new<R: Ring>(ring: &R, base: &Residue, exponent_bits: usize) -> Self {
        let columns = exponent_bits.div_ceil(ROWS).max(1);
        let mut work = ring.workspace();
        let mut power = base.clone();
        let mut corners = vec![Vec::with_capacity(ROWS); columns.div_ceil(BLOCK)];
        for _ in 0..ROWS {
            for column in 0..columns {
                if column % BLOCK == 0 {
                    corners[column / BLOCK].push(power.clone());
                }
                ring.square_assign(&mut power, &mut work);
            }
        }
        let blocks = corners.iter().map(|bases| subset_products(ring, bases));
        Self {
            columns,
            blocks: blocks.collect(),
        }
    }

    /// `base^exponent`, in time that depends on neither.
    pub(crate) fn power<R: Ring>(&self, ring: &R, exponent: &Natural) -> Residue {
        let mut work = ring.workspace();
        let mut result = ring.one().clone();
        let mut factor = Residue::zero(ring.width());
        for offset in (0..BLOCK.min(self.columns)).rev() {
            if offset + 1 != BLOCK.min(self.columns) {
                ring.square_assign(&mut result, &mut work);
            }
            for (block, table) in self.blocks.iter().enumerate() {
                let column = block * BLOCK + offset;
                if column < self.columns {
                    let digit = self.digit(exponent.limbs(), column);
                    limbs::select(&mut factor.0, table, digit);
                    ring.multiply_assign(&mut result, &factor, &mut work);
                }
            }
        }
        result
    }

    /// The bits of one column, one of each row.
    fn digit(&self, exponent: &[u64], column: usize) -> usize {
        (0..ROWS)
            .map(|row| limbs::bits_at(exponent, row * self.columns + column, 1) << row)
            .sum()
    }
}

/// The product of every subset of the bases, at the index that has the subset's bits.
fn subset_products<R: Ring>(ring: &R, bases: &[Residue]) -> Vec<u64> {
    let width = ring.width();
    let mut work = ring.workspace();
    // At its full length from the beginning: a vector that grew would leave a copy unwiped.
    let mut table = vec![0; width << bases.len()];
    table[..width].copy_from_slice(&ring.one().0);
    for (index, base) in bases.iter().enumerate() {
        let (before, after) = table.split_at_mut(width << index);
        for (x, out) in before.chunks(width).zip(after.chunks_mut(width)) {
            ring.multiply_into(out, x, &base.0, &mut work);
        }
    }
    table
}
