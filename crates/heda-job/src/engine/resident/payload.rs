//! Steps R5 and R6: the sum of weighted rows.
//!
//! For every row and bit l of its symbol U sends the correction of a random transfer to the bit c
//! that it read. P has pads p_0 and p_1 for the two values of c, a word a column. With
//! m = p_0 − σ_l·x it sends p_0 − p_1 + (1 − 2σ_l)·x. U takes p_0 if c = 0, and p_1 plus what was
//! sent if c = 1: in both cases m + x·(c ⊕ σ_l), and c ⊕ σ_l is the bit of the code. All words of
//! level l are modulo 2^(w−l), since they count 2^l times.
//!
//! Q = −Σ 2^l·m − Σ zero_i·x_i makes the sum of everything U holds the gradient.

use super::StepError;
use super::rows::Batch;
use super::shape::Shape;
use heda_crypto::bits::{BitReader, BitWriter};
use heda_crypto::transfer::{BitCorrections, BitKeys, ChosenBits};
use heda_learn::resident::CodeTable;
use zeroize::Zeroizing;

/// Sums of words, level by level, bias first.
struct LevelSums {
    width: usize,
    sums: Zeroizing<Vec<u64>>,
}

impl LevelSums {
    fn new(shape: &Shape) -> Self {
        let width = shape.largest.len();
        Self {
            width,
            sums: Zeroizing::new(vec![0; width * shape.levels()]),
        }
    }

    fn level(&mut self, level: usize) -> &mut [u64] {
        &mut self.sums[level * self.width..][..self.width]
    }

    /// Σ_l 2^l·(sum of level l).
    fn total(&self) -> Zeroizing<Vec<u64>> {
        let mut total = Zeroizing::new(vec![0u64; self.width]);
        for (level, sums) in self.sums.chunks_exact(self.width).enumerate() {
            for (total, sum) in total.iter_mut().zip(sums) {
                *total = total.wrapping_add(sum << level);
            }
        }
        total
    }
}

/// The words of a pad.
fn words<const BYTES: usize>(pad: &[u8]) -> impl Iterator<Item = u64> + '_ {
    pad.chunks_exact(BYTES).map(|bytes| {
        let mut word = [0; 8];
        word[..BYTES].copy_from_slice(bytes);
        u64::from_le_bytes(word)
    })
}

/// P's payload of a block, and what it owes to the sum.
pub(super) struct Payload {
    /// R6 without Q.
    pub(super) message: Vec<u8>,
    /// The block's part of Q, modulo 2^64, bias first.
    pub(super) provider_share: Zeroizing<Vec<u64>>,
}

/// P's side of R6.
pub(super) fn write(
    shape: &Shape,
    table: &CodeTable,
    batch: Batch<'_>,
    pads: &[u16],
    keys: BitKeys,
    corrections: &BitCorrections,
) -> Result<Payload, StepError> {
    let mut writer = BitWriter::with_capacity(shape.payload_bytes(batch.count()));
    let mut sums = LevelSums::new(shape);
    match shape.pad_word() {
        4 => write_rows::<4>(
            shape,
            batch,
            pads,
            keys,
            corrections,
            &mut writer,
            &mut sums,
        )?,
        _ => write_rows::<8>(
            shape,
            batch,
            pads,
            keys,
            corrections,
            &mut writer,
            &mut sums,
        )?,
    }
    let mut provider_share = sums.total();
    provider_share
        .iter_mut()
        .for_each(|sum| *sum = sum.wrapping_neg());
    for row in 0..batch.count() {
        let zero = u64::from(table.zero(batch.label(row)));
        for (provider_share, &payload) in provider_share.iter_mut().zip(batch.payload(row)) {
            *provider_share =
                provider_share.wrapping_sub(zero.wrapping_mul(i64::from(payload) as u64));
        }
    }
    Ok(Payload {
        message: writer.finish(),
        provider_share,
    })
}

fn write_rows<const BYTES: usize>(
    shape: &Shape,
    batch: Batch<'_>,
    pads: &[u16],
    keys: BitKeys,
    corrections: &BitCorrections,
    writer: &mut BitWriter,
    sums: &mut LevelSums,
) -> Result<(), StepError> {
    let widths = shape.sum_bits();
    let levels = shape.levels();
    keys.pads(corrections, widths.len() * BYTES, |number, zero, one| {
        let (row, level) = (number / levels, number % levels);
        // All ones if σ_l is set.
        let hidden = u64::from(pads[row] >> level & 1).wrapping_neg();
        let values = batch.payload(row);
        let pads = words::<BYTES>(zero).zip(words::<BYTES>(one));
        let columns = widths.iter().zip(values).zip(pads);
        for (sum, ((width, &value), (p0, p1))) in sums.level(level).iter_mut().zip(columns) {
            let value = i64::from(value) as u64;
            let taken = value & hidden;
            *sum = sum.wrapping_add(p0).wrapping_sub(taken);
            let sent = p0
                .wrapping_sub(p1)
                .wrapping_add(value)
                .wrapping_sub(taken << 1);
            writer.push(sent, width - level as u32);
        }
    })?;
    Ok(())
}

/// U's side of R6: the sum of all words that it can open, modulo 2^64, bias first.
pub(super) fn read(
    shape: &Shape,
    message: &[u8],
    symbols: &[u16],
    chosen: ChosenBits,
) -> Result<Zeroizing<Vec<u64>>, StepError> {
    let mut sums = LevelSums::new(shape);
    match shape.pad_word() {
        4 => read_rows::<4>(shape, message, symbols, chosen, &mut sums)?,
        _ => read_rows::<8>(shape, message, symbols, chosen, &mut sums)?,
    }
    Ok(sums.total())
}

fn read_rows<const BYTES: usize>(
    shape: &Shape,
    message: &[u8],
    symbols: &[u16],
    chosen: ChosenBits,
    sums: &mut LevelSums,
) -> Result<(), StepError> {
    let widths = shape.sum_bits();
    let levels = shape.levels();
    let mut reader = BitReader::new(message);
    chosen.pads(widths.len() * BYTES, |number, pad| {
        let (row, level) = (number / levels, number % levels);
        let chosen = u64::from(symbols[row] >> level & 1).wrapping_neg();
        let columns = widths.iter().zip(words::<BYTES>(pad));
        for (sum, (width, pad)) in sums.level(level).iter_mut().zip(columns) {
            let sent = reader.next(width - level as u32);
            *sum = sum.wrapping_add(pad).wrapping_add(sent & chosen);
        }
    })?;
    Ok(())
}

/// Words of the sums as they are sent.
pub(super) fn write_sums(shape: &Shape, sums: &[u64]) -> Vec<u8> {
    let mut writer = BitWriter::with_capacity(sums.len() * 6);
    for (sum, width) in sums.iter().zip(shape.sum_bits()) {
        writer.push(*sum, width);
    }
    writer.finish()
}

/// Q as it arrived.
pub(super) fn read_sums(shape: &Shape, message: &[u8]) -> Vec<u64> {
    let mut reader = BitReader::new(message);
    let widths = shape.sum_bits();
    widths.into_iter().map(|width| reader.next(width)).collect()
}
