//! Transfers of one of more than 2^f: an index is chosen by two transfers, its highest bits by the
//! first and the few lowest by the second.
//!
//! Entry (h, l) is hidden by word l of the first transfer's key at h, and by word h of a stream under
//! the second transfer's key at l (Naor and Pinkas, "Oblivious Transfer and Polynomial Evaluation",
//! STOC 1999, with two factors). The chooser has one key of each transfer. For any other entry it lacks
//! one of the two, which hides the entry like a pad of its own: keys are outputs of the hash, and a
//! stream is AES in counter mode under a key that is used for nothing else, with the transfer's number in the counter: a
//! guess at a key is a guess at the keys of one transfer.
//!
//! Corrections: those of all first transfers, then those of all second ones.

use super::indices::{ChosenIndices, IndexCorrections, IndexKeys, RandomIndices, entry_mask};
use super::{FieldBits, TransferError, expect_count};
use crate::cipher;
use zeroize::Zeroizing;

/// How an index is divided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WideIndex {
    high: u32,
    low: u32,
}

impl WideIndex {
    /// Bits that the second transfer may have: a key holds a word of sixteen bits for each of its entries.
    const MOST_LOW_BITS: u32 = 3;

    /// Indices of so many bits over a field: one transfer where the field has as many.
    pub fn new(field: FieldBits, bits: u32) -> Result<Self, TransferError> {
        let field = field.get() as u32;
        let high = bits.min(field);
        let most = field + Self::MOST_LOW_BITS;
        match (1..=most).contains(&bits) {
            true => Ok(Self {
                high,
                low: bits - high,
            }),
            false => Err(TransferError::IndexBits { got: bits, most }),
        }
    }

    /// Transfers for each index.
    pub fn transfers(self) -> usize {
        1 + usize::from(self.low > 0)
    }

    fn parts(self, index: u16) -> (u16, u16) {
        (index >> self.low, index & ((1 << self.low) - 1))
    }
}

/// Word number `number` of a key.
fn word(key: u128, number: u16) -> u16 {
    (key >> (16 * u32::from(number))) as u16
}

/// Words of sixteen bits in a block.
const WORDS: u16 = 8;

/// The words of many blocks.
fn read_words(blocks: &[u128], words: &mut [u16]) {
    for (block, words) in blocks
        .iter()
        .zip(words.chunks_exact_mut(usize::from(WORDS)))
    {
        for (word, bytes) in words.iter_mut().zip(block.to_le_bytes().chunks_exact(2)) {
            *word = u16::from_le_bytes([bytes[0], bytes[1]]);
        }
    }
}

impl RandomIndices {
    /// Step 11 for wide indices.
    pub fn correct_wide(
        self,
        index: WideIndex,
        wanted: &[u16],
    ) -> Result<(IndexCorrections, ChosenIndices), TransferError> {
        let high = wanted.iter().map(|wanted| index.parts(*wanted).0 as u8);
        let low = wanted.iter().map(|wanted| index.parts(*wanted).1 as u8);
        let second = if index.low > 0 { wanted.len() } else { 0 };
        let parts = Zeroizing::new(high.chain(low.take(second)).collect::<Vec<u8>>());
        self.correct(&parts)
    }
}

impl ChosenIndices {
    /// Step 13 for wide indices: the pads at the indices that were wanted.
    pub fn wide_pads(
        self,
        index: WideIndex,
        wanted: &[u16],
        entry_bits: u32,
    ) -> Result<Zeroizing<Vec<u16>>, TransferError> {
        if index.low == 0 {
            return Ok(Zeroizing::new(self.pads(entry_bits)?));
        }
        let mask = entry_mask(entry_bits)?;
        expect_count("the list of indices", 2 * wanted.len(), self.count())?;
        let (first, second) = self.split(wanted.len())?;
        let (hash, transfers) = second.numbers();
        let (first, second) = (first.keys(), second.keys());
        let counter = |(wanted, transfer): (&u16, u64)| {
            hash.counter(transfer, u64::from(index.parts(*wanted).0 / WORDS))
        };
        let counters = wanted.iter().zip(transfers).map(counter);
        let counters: Zeroizing<Vec<u128>> = Zeroizing::new(counters.collect());
        let mut blocks = Zeroizing::new(vec![0; wanted.len()]);
        cipher::encrypt(&second, 1, &counters, &mut blocks);
        let pad = |(wanted, (first, block)): (&u16, (&u128, &u128))| {
            let (high, low) = index.parts(*wanted);
            (word(*first, low) ^ word(*block, high % WORDS)) & mask
        };
        let keys = first.iter().zip(blocks.iter());
        Ok(Zeroizing::new(wanted.iter().zip(keys).map(pad).collect()))
    }
}

impl IndexKeys {
    /// Step 12 for wide indices: for every index the pads of all entries, `entry_bits` long.
    pub fn wide_pads(
        self,
        index: WideIndex,
        corrections: &IndexCorrections,
        entry_bits: u32,
        mut each_row: impl FnMut(usize, &[u16]),
    ) -> Result<(), TransferError> {
        if index.low == 0 {
            return self.pads(corrections, index.high, entry_bits, each_row);
        }
        let mask = entry_mask(entry_bits)?;
        let rows = self.count() / 2;
        let (first, second) = self.split(rows)?;
        let (hash, transfers) = second.numbers();
        let entries = 1 << index.low;
        let mut low_keys = Zeroizing::new(Vec::with_capacity(rows * entries));
        second.keys(&corrections.part(rows..2 * rows)?, index.low, |_, keys| {
            low_keys.extend_from_slice(keys);
        })?;
        let each = (1usize << index.high).div_ceil(usize::from(WORDS));
        let mut counters = vec![0; entries * each];
        let mut blocks = Zeroizing::new(vec![0; entries * each]);
        let mut words = Zeroizing::new(vec![0; entries * each * usize::from(WORDS)]);
        let mut pads = Zeroizing::new(vec![0; entries << index.high]);
        first.keys(&corrections.part(0..rows)?, index.high, |row, keys| {
            let low_keys = &low_keys[row * entries..][..entries];
            let transfer = transfers.start + row as u64;
            for counters in counters.chunks_exact_mut(each) {
                for (counter, block) in counters.iter_mut().zip(0..) {
                    *counter = hash.counter(transfer, block);
                }
            }
            cipher::encrypt(low_keys, each, &counters, &mut blocks);
            read_words(&blocks, &mut words);
            let streams = words.chunks_exact(each * usize::from(WORDS));
            for (low, stream) in streams.enumerate() {
                let places = pads[low..].iter_mut().step_by(entries);
                for (pad, (key, stream)) in places.zip(keys.iter().zip(stream)) {
                    *pad = (word(*key, low as u16) ^ stream) & mask;
                }
            }
            each_row(row, &pads);
        })?;
        Ok(())
    }
}
