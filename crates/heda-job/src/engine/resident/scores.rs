//! Steps R1 and R2: shares of the scores.
//!
//! For every digit of every hidden column P grows a tree with a leaf for every digit and U opens it at a random
//! place Δ', before β is known. P sends c for its column (`heda_crypto::vole`). When β is known, U
//! sends for each tree the correction e = Δ' ⊕ digit, which is uniform. Then both have shares:
//! a_i (U) and −r_i (P) with a_i − r_i = z_i modulo 2^w.

use super::rows::Batch;
use super::shape::{Place, Shape};
use super::{StepError, exactly};
use heda_crypto::bits::{BitReader, BitWriter, packed_bytes};
use heda_crypto::transfer::{Punctured, Tree};
use heda_crypto::vole::{ChooserColumn, SenderColumn};
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

/// The digit corrections as they are sent: as many bits a tree as its digit has.
pub(super) fn write_digit_corrections(places: &[Place], digit_corrections: &[u8]) -> Vec<u8> {
    let mut writer = BitWriter::with_capacity(digit_corrections.len());
    for (place, correction) in places.iter().zip(digit_corrections) {
        writer.push(u64::from(*correction), place.bits);
    }
    writer.finish()
}

fn read_digit_corrections(
    shape: &Shape,
    places: &[Place],
    message: &[u8],
) -> Result<Vec<u8>, StepError> {
    let expected = packed_bytes(shape.tree_levels(), 1);
    let mut reader = BitReader::new(exactly("the digit corrections", message, expected)?);
    let digit_corrections = places.iter().map(|place| reader.next(place.bits) as u8);
    Ok(digit_corrections.collect())
}

/// P after R2: every tree streamed, no correction known.
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
            let column = SenderColumn::new(tree.label(), tree.leaves(), batch.count(), place.width);
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
        digit_corrections: &[u8],
    ) -> Result<Zeroizing<Vec<u32>>, StepError> {
        let places = shape.places();
        let digit_corrections = read_digit_corrections(shape, &places, digit_corrections)?;
        let rows = batch.count();
        let mut shares = self
            .columns
            .into_par_iter()
            .zip(places.par_iter().zip(digit_corrections.par_iter()))
            .fold(
                || zeros(rows),
                |mut shares, (column, (place, correction))| {
                    column.add_share(*correction, place.shift, &mut shares);
                    shares
                },
            )
            .reduce(|| zeros(rows), merge);
        let offset = shape.resolution.weight_offset() as u32;
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
    /// R3, first half: the digit corrections for these weights, and U's shares a of the rows, on top of what U
    /// knows of their scores.
    pub(super) fn shares(
        self,
        shape: &Shape,
        weights: &Weights,
        known: Zeroizing<Vec<u32>>,
    ) -> (Vec<u8>, Zeroizing<Vec<u32>>) {
        let rows = known.len();
        let places = shape.places();
        let correction = |(place, missing): (&Place, &u8)| {
            place.digit(weights.lifted(place.column, shape.resolution)) ^ missing
        };
        let digit_corrections: Vec<u8> = places
            .iter()
            .zip(self.missing.iter())
            .map(correction)
            .collect();
        let mut begin = 0;
        let parts: Vec<&[u8]> = places
            .iter()
            .map(|place| {
                let length = packed_bytes(rows, place.width);
                begin += length;
                &self.corrections[begin - length..begin]
            })
            .collect();
        let shares = places
            .par_iter()
            .zip(parts)
            .enumerate()
            .fold(
                || zeros(rows),
                |mut shares, (number, (place, part))| {
                    let tree = &self.trees[number];
                    let column = ChooserColumn {
                        label: *tree.label(),
                        leaves: tree.leaves(),
                        missing: self.missing[number],
                        correction: digit_corrections[number],
                        width: place.width,
                    };
                    column.add_share(&mut BitReader::new(part), place.shift, &mut shares);
                    shares
                },
            )
            .reduce(|| zeros(rows), merge);
        (
            write_digit_corrections(&places, &digit_corrections),
            merge(shares, known),
        )
    }
}
