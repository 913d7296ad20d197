//! Steps R3 and R4: for every row U reads one symbol of a table that P made.
//!
//! P's table for row i has in place v the code of the derivative at the scores that v and r_i leave
//! possible, hidden by σ_i, one value for the whole row. U reads place top_k(a_i). Whatever place it reads, the symbol
//! is uniform, because σ_i is; and it is one place, because the transfer gives one key.

use super::StepError;
use super::rows::Batch;
use super::shape::Shape;
use heda_crypto::bits::{BitReader, BitWriter, packed_bytes};
use heda_crypto::transfer::{IndexCorrections, IndexKeys};
use heda_learn::resident::CodeTable;
use rand_core::Rng;
use zeroize::Zeroizing;

/// What P draws for the rows of one gradient. Used once.
pub(super) struct RowSecrets {
    /// Rounds the derivative to a code.
    pub(super) coins: Zeroizing<Vec<u32>>,
    /// σ: hides the code.
    pub(super) pads: Zeroizing<Vec<u16>>,
}

impl RowSecrets {
    pub(super) fn draw(rows: usize, code_bits: u32, rng: &mut impl Rng) -> Self {
        let mask = (1u32 << code_bits) - 1;
        Self {
            coins: Zeroizing::new((0..rows).map(|_| rng.next_u32()).collect()),
            pads: Zeroizing::new((0..rows).map(|_| (rng.next_u32() & mask) as u16).collect()),
        }
    }
}

/// R4: the symbols of all rows.
pub(super) fn write(
    shape: &Shape,
    table: &CodeTable,
    batch: Batch<'_>,
    masks: &[u32],
    secrets: &RowSecrets,
    keys: IndexKeys,
    corrections: &IndexCorrections,
) -> Result<Vec<u8>, StepError> {
    let (k, b) = (shape.resolution.index_bits(), shape.resolution.code_bits());
    let index = shape.index()?;
    let mut writer = BitWriter::with_capacity(shape.symbol_bytes(batch.count()));
    let mut entries = Zeroizing::new(Vec::with_capacity(1 << k));
    let mut symbols: Zeroizing<Vec<u16>> = Zeroizing::new(vec![0; 1 << k]);
    keys.wide_pads(index, corrections, b, |row, pads| {
        table.places(batch.label(row), masks[row], &mut entries);
        let (coin, code_pad) = (u64::from(secrets.coins[row]), secrets.pads[row]);
        let sources = entries.iter().zip(pads);
        for (symbol, (entry, pad)) in symbols.iter_mut().zip(sources) {
            *symbol = ((entry + coin) >> 32) as u16 ^ code_pad ^ pad;
        }
        match b {
            1 => writer.extend(symbols.as_chunks().0.iter().map(byte_of_bits), 8),
            _ => writer.extend(symbols.iter().map(|symbol| u32::from(*symbol)), b),
        }
    })?;
    Ok(writer.finish())
}

/// Eight symbols of one bit, the first lowest: a table has at least sixteen.
fn byte_of_bits(symbols: &[u16; 8]) -> u32 {
    let bytes = symbols.map(|symbol| symbol as u8 & 1);
    // The product moves the bit of byte n to bit n of the highest byte.
    (u64::from_le_bytes(bytes).wrapping_mul(0x0102_0408_1020_4080) >> 56) as u32
}

/// U's side of R4: the symbol at the chosen place of every row, of which U has the pad, still hidden by
/// σ.
pub(super) fn read(
    message: &[u8],
    index_bits: u32,
    entry_bits: u32,
    places: &[impl Copy + Into<usize>],
    pads: &[u16],
) -> Zeroizing<Vec<u16>> {
    let mut symbols = Zeroizing::new(Vec::with_capacity(places.len()));
    let mut tables = RowTables::new(message, entry_bits << index_bits);
    for (place, pad) in places.iter().zip(pads) {
        symbols.push(tables.next_entry((*place).into(), entry_bits) ^ pad);
    }
    symbols
}

/// Tables of 2^`index_bits` entries for every row, entry by entry.
pub(super) fn write_tables(
    keys: IndexKeys,
    corrections: &IndexCorrections,
    index_bits: u32,
    entry_bits: u32,
    entry: impl Fn(usize, usize) -> u16,
) -> Result<Vec<u8>, StepError> {
    let bytes = packed_bytes(keys.count() << index_bits, entry_bits);
    let mut writer = BitWriter::with_capacity(bytes);
    keys.pads(corrections, index_bits, entry_bits, |row, pads| {
        for (place, pad) in pads.iter().enumerate() {
            writer.push(u64::from(entry(row, place) ^ pad), entry_bits);
        }
    })?;
    Ok(writer.finish())
}

/// The tables of a message one after the other. An entry is read by going over the whole table, so
/// that no address depends on the place.
struct RowTables<'a> {
    reader: BitReader<'a>,
    bits: u32,
}

impl<'a> RowTables<'a> {
    fn new(message: &'a [u8], bits: u32) -> Self {
        Self {
            reader: BitReader::new(message),
            bits,
        }
    }

    fn next_entry(&mut self, place: usize, entry_bits: u32) -> u16 {
        let (begin, end) = (place as u32 * entry_bits, (place as u32 + 1) * entry_bits);
        let mut found = 0u64;
        let mut offset = 0;
        // Words of 32 bits cover the table; an entry may lie across two of them.
        while offset < self.bits {
            let count = (self.bits - offset).min(32);
            let word = self.reader.next(count);
            let down = begin.wrapping_sub(offset);
            let up = offset.wrapping_sub(begin);
            let starts_here = u64::from(u8::from(begin >= offset && begin < offset + count));
            let goes_on = u64::from(u8::from(begin < offset && end > offset));
            found |= (word >> (down & 31)) & starts_here.wrapping_neg();
            found |= (word << (up & 31)) & goes_on.wrapping_neg();
            offset += count;
        }
        (found & !(u64::MAX << entry_bits)) as u16
    }
}
