//! Steps R1 and R2: shares of the scores.
//!
//! For every digit of every hidden column P grows a tree with 32 leaves and U opens it at a random
//! place Δ', before β is known. P sends c for its column (`heda_crypto::vole`). When β is known, U
//! sends for each tree the turn e = Δ' ⊕ digit, which is uniform. Then both have shares:
//! a_i (U) and −r_i (P) with a_i − r_i = z_i modulo 2^w.

use super::rows::Batch;
use super::shape::{Place, Shape};
use super::{StepError, exactly};
use heda_crypto::bits::{BitReader, BitWriter, packed_bytes};
use heda_crypto::transfer::{Punctured, Tree};
use heda_crypto::vole::{ChooserColumn, DIGIT_BITS, LEAVES, Leaves, SenderColumn};
use heda_learn::resident::{ColumnKind, Weights};
use rayon::prelude::*;
use zeroize::Zeroizing;

/// Adds one vector of shares to another.
fn merge(mut sum: Zeroizing<Vec<u32>>, other: Zeroizing<Vec<u32>>) -> Zeroizing<Vec<u32>> {
    for (sum, other) in sum.iter_mut().zip(other.iter()) {
        *sum = sum.wrapping_add(*other);
    }
    sum
}

fn zeros(rows: usize) -> Zeroizing<Vec<u32>> {
    Zeroizing::new(vec![0; rows])
}

fn leaves(words: &[u128]) -> Leaves {
    let mut leaves = Zeroizing::new([[0; 16]; LEAVES]);
    for (leaf, word) in leaves.iter_mut().zip(words) {
        *leaf = word.to_le_bytes();
    }
    leaves
}

/// The turns as they are sent: five bits a tree.
pub(super) fn write_turns(turns: &[u8]) -> Vec<u8> {
    let mut writer = BitWriter::with_capacity(turns.len());
    for turn in turns {
        writer.push(u64::from(*turn), DIGIT_BITS as u32);
    }
    writer.finish()
}

fn read_turns(trees: usize, message: &[u8]) -> Result<Vec<u8>, StepError> {
    let expected = packed_bytes(trees, DIGIT_BITS as u32);
    let mut reader = BitReader::new(exactly("the turns", message, expected)?);
    Ok((0..trees)
        .map(|_| reader.next(DIGIT_BITS as u32) as u8)
        .collect())
}

/// P after R2: every tree streamed, no turn known.
pub(super) struct SentColumns {
    columns: Vec<SenderColumn>,
}

impl SentColumns {
    /// R2: streams every tree once; appends c for its column.
    pub(super) fn send(
        shape: &Shape,
        trees: &[Tree],
        batch: Batch<'_>,
        message: &mut Vec<u8>,
    ) -> Self {
        let places = shape.places();
        let one = |(place, tree): (&Place, &Tree)| {
            let column = SenderColumn::new(&leaves(tree.leaves()), batch.count(), place.width);
            let mut writer = BitWriter::with_capacity(packed_bytes(batch.count(), place.width));
            column.write_correction(&batch.column(place.column), &mut writer);
            (column, writer.finish())
        };
        let made: Vec<(SenderColumn, Vec<u8>)> =
            places.par_iter().zip(trees.par_iter()).map(one).collect();
        let mut columns = Vec::with_capacity(made.len());
        for (column, bytes) in made {
            columns.push(column);
            message.extend(bytes);
        }
        Self { columns }
    }

    /// The masks r of all rows: minus P's share, with the offset of the digits taken off.
    pub(super) fn masks(
        self,
        shape: &Shape,
        batch: Batch<'_>,
        turns: &[u8],
    ) -> Result<Zeroizing<Vec<u32>>, StepError> {
        let turns = read_turns(shape.trees(), turns)?;
        let rows = batch.count();
        let mut shares = self
            .columns
            .into_par_iter()
            .zip(shape.places().par_iter().zip(turns.par_iter()))
            .fold(
                || zeros(rows),
                |mut shares, (column, (place, turn))| {
                    column.add_share(*turn, place.shift, &mut shares);
                    shares
                },
            )
            .reduce(|| zeros(rows), merge);
        let offset = shape.resolution.digit_offset() as u32;
        let fraction = shape.resolution.value_bits();
        for (row, share) in shares.iter_mut().enumerate() {
            let values = batch.row(row);
            let lift = |&column: &usize| match shape.kinds[column] {
                ColumnKind::Number => values[column] as u32,
                ColumnKind::Indicator => (values[column] as u32) << fraction,
            };
            let sum: u32 = shape.hidden.iter().map(lift).fold(0, u32::wrapping_add);
            let own = share.wrapping_sub(offset.wrapping_mul(sum));
            *share = shape.resolution.reduce(own.wrapping_neg());
        }
        Ok(shares)
    }
}

/// U after R2: every tree opened but for one leaf, and the columns' c.
pub(super) struct OpenedColumns {
    pub(super) trees: Vec<Punctured>,
    pub(super) missing: Zeroizing<Vec<u8>>,
    pub(super) corrections: Vec<u8>,
}

impl OpenedColumns {
    /// R3, first half: the turns for these weights, and U's shares a of the rows, on top of what U
    /// knows of their scores.
    pub(super) fn shares(
        self,
        shape: &Shape,
        weights: &Weights,
        known: Zeroizing<Vec<u32>>,
    ) -> (Vec<u8>, Zeroizing<Vec<u32>>) {
        let rows = known.len();
        let hidden = shape.hidden.iter();
        let digits = hidden.flat_map(|&column| weights.digits(column, shape.resolution));
        let turns: Vec<u8> = digits
            .zip(self.missing.iter())
            .map(|(digit, missing)| digit ^ missing)
            .collect();
        let mut begin = 0;
        let parts: Vec<&[u8]> = shape
            .places()
            .iter()
            .map(|place| {
                let length = packed_bytes(rows, place.width);
                begin += length;
                &self.corrections[begin - length..begin]
            })
            .collect();
        let shares = shape
            .places()
            .par_iter()
            .zip(parts)
            .enumerate()
            .fold(
                || zeros(rows),
                |mut shares, (number, (place, part))| {
                    let column = ChooserColumn {
                        leaves: &leaves(self.trees[number].leaves()),
                        missing: self.missing[number],
                        turn: turns[number],
                        width: place.width,
                    };
                    column.add_share(&mut BitReader::new(part), place.shift, &mut shares);
                    shares
                },
            )
            .reduce(|| zeros(rows), merge);
        (write_turns(&turns), merge(shares, known))
    }
}
