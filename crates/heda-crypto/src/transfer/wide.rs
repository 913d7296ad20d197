//! Transfers of one of more than 2^f: an index is chosen by two transfers, its highest bits by the
//! first and the few lowest by the second.
//!
//! Entry (h, l) is hidden by word l of the first transfer's key at h, and by word h of a stream under
//! the second transfer's key at l (Naor and Pinkas, "Oblivious Transfer and Polynomial Evaluation",
//! STOC 1999, with two factors). The chooser has one key of each transfer. For any other entry it lacks
//! one of the two, which hides the entry like a pad of its own: keys are outputs of the hash, and a
//! stream is AES in counter mode under a key that is used for nothing else.
//!
//! Corrections: those of all first transfers, then those of all second ones.

use super::indices::{ChosenIndices, IndexCorrections, IndexKeys, RandomIndices, entry_mask};
use super::{FieldBits, TransferError, expect_count};
use aes::cipher::{BlockCipherEncrypt, KeyInit};
use aes::{Aes128Enc, Block};
use zeroize::{Zeroize, Zeroizing};

/// Bits that the second transfer may have: a key holds a word of sixteen bits for each of its entries.
const MOST_LOW_BITS: u32 = 3;

/// How an index is divided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WideIndex {
    high: u32,
    low: u32,
}

impl WideIndex {
    /// Indices of so many bits over a field: one transfer where the field has as many.
    pub fn new(field: FieldBits, bits: u32) -> Result<Self, TransferError> {
        let field = field.get() as u32;
        let high = bits.min(field);
        let most = field + MOST_LOW_BITS;
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

/// The words of the stream under a key, eight a block.
struct Stream(Aes128Enc);

impl Stream {
    fn new(key: u128) -> Self {
        Self(Aes128Enc::new(&key.to_le_bytes().into()))
    }

    fn fill(&self, blocks: &mut [Block]) {
        for (number, block) in blocks.iter_mut().enumerate() {
            *block = (number as u128).to_le_bytes().into();
        }
        self.0.encrypt_blocks(blocks);
    }

    fn word(&self, number: u16) -> u16 {
        let mut block = u128::from(number / 8).to_le_bytes().into();
        self.0.encrypt_block(&mut block);
        word(u128::from_le_bytes(block.into()), number % 8)
    }
}

impl RandomIndices {
    /// Step 11 for wide indices.
    pub fn correct_wide(
        self,
        index: WideIndex,
        wanted: &[u16],
    ) -> Result<(IndexCorrections, ChosenIndices), TransferError> {
        expect_count(
            "the list of indices",
            wanted.len() * index.transfers(),
            self.count(),
        )?;
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
        let (first, second) = self.split(wanted.len())?;
        let keys = (first.keys(), second.keys());
        let pad = |(wanted, (first, second)): (&u16, (&u128, &u128))| {
            let (high, low) = index.parts(*wanted);
            (word(*first, low) ^ Stream::new(*second).word(high)) & mask
        };
        let keys = keys.0.iter().zip(keys.1.iter());
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
        mut each: impl FnMut(usize, &[u16]),
    ) -> Result<(), TransferError> {
        if index.low == 0 {
            return self.pads(corrections, index.high, entry_bits, each);
        }
        let mask = entry_mask(entry_bits)?;
        let rows = self.count() / 2;
        let (first, second) = self.split(rows)?;
        let entries = 1 << index.low;
        let mut low_keys = Zeroizing::new(Vec::with_capacity(rows * entries));
        second.keys(&corrections.part(rows..2 * rows)?, index.low, |_, keys| {
            low_keys.extend_from_slice(keys);
        })?;
        let mut blocks = vec![Block::default(); (1usize << index.high).div_ceil(8)];
        let mut pads = Zeroizing::new(vec![0; entries << index.high]);
        first.keys(&corrections.part(0..rows)?, index.high, |row, keys| {
            let lows = &low_keys[row * entries..][..entries];
            for (low, key) in lows.iter().enumerate() {
                Stream::new(*key).fill(&mut blocks);
                let words = Block::cast_slice_to_core(&blocks).as_flattened();
                let words = words.chunks_exact(2).zip(keys);
                for (high, (stream, key)) in words.enumerate() {
                    let stream = u16::from_le_bytes([stream[0], stream[1]]);
                    pads[high * entries + low] = (word(*key, low as u16) ^ stream) & mask;
                }
            }
            each(row, &pads);
        })?;
        blocks.iter_mut().for_each(|b| b.as_mut_slice().zeroize());
        Ok(())
    }
}
