//! Words of any width packed without gaps, lowest bit first: how bulk messages travel.
//!
//! ```
//! use heda_crypto::bits::{pack, signed, unpack};
//!
//! let bytes = pack(&[3u64.wrapping_sub(5), 1], 28);
//! assert_eq!(bytes.len(), 7);
//! let words = unpack(&bytes, 2, 28)?;
//! assert_eq!((signed(words[0], 28), words[1]), (-2, 1));
//! # Ok::<(), heda_crypto::transfer::TransferError>(())
//! ```

use crate::transfer::TransferError;

/// The widest word.
pub const MOST_BITS: u32 = 48;

/// Bytes of `count` words of `width` bits.
pub fn packed_bytes(count: usize, width: u32) -> usize {
    (count * width as usize).div_ceil(8)
}

/// The lowest `width` bits, 1 to [`MOST_BITS`], of each word.
pub fn pack(words: &[u64], width: u32) -> Vec<u8> {
    let mut writer = BitWriter::with_capacity(packed_bytes(words.len(), width));
    words.iter().for_each(|word| writer.push(*word, width));
    writer.finish()
}

/// Exactly `count` words of `width` bits, 1 to [`MOST_BITS`], and noughts to the end of the last byte.
pub fn unpack(bytes: &[u8], count: usize, width: u32) -> Result<Vec<u64>, TransferError> {
    let (got, expected) = (bytes.len(), packed_bytes(count, width));
    if got != expected {
        return Err(TransferError::PackedLength { got, expected });
    }
    let used = count * width as usize % 8;
    if used > 0 && bytes.last().is_some_and(|byte| byte >> used != 0) {
        return Err(TransferError::PackedPadding);
    }
    let mut reader = BitReader::new(bytes);
    Ok((0..count).map(|_| reader.next(width)).collect())
}

/// The lowest `width` bits, 1 to 64, of a word, read as a signed number.
pub fn signed(word: u64, width: u32) -> i64 {
    let shift = u64::BITS - width;
    ((word << shift) as i64) >> shift
}

/// Appends words to a message.
#[derive(Debug, Default)]
pub struct BitWriter {
    bytes: Vec<u8>,
    pending: u64,
    filled: u32,
}

impl BitWriter {
    /// An empty message with room for so many bytes.
    pub fn with_capacity(bytes: usize) -> Self {
        Self {
            bytes: Vec::with_capacity(bytes),
            ..Self::default()
        }
    }

    /// Appends the lowest `width` bits (at most [`MOST_BITS`]) of a word.
    #[inline]
    pub fn push(&mut self, word: u64, width: u32) {
        if width > 32 {
            self.push_short(word & 0xffff_ffff, 32);
            self.push_short((word >> 32) & !(u64::MAX << (width - 32)), width - 32);
        } else {
            self.push_short(word & !(u64::MAX << width), width);
        }
    }

    #[inline]
    fn push_short(&mut self, word: u64, width: u32) {
        self.pending |= word << self.filled;
        self.filled += width;
        if self.filled >= 32 {
            let whole = self.pending as u32;
            self.bytes.extend_from_slice(&whole.to_le_bytes());
            self.pending >>= 32;
            self.filled -= 32;
        }
    }

    /// Appends the lowest `width` bits, 32 at most, of every word.
    pub fn extend(&mut self, words: impl ExactSizeIterator<Item = u32>, width: u32) {
        let begin = self.bytes.len();
        let bits = self.filled as usize + words.len() * width as usize;
        // Whole words of 32 bits, as many as will be full.
        self.bytes.resize(begin + bits / 32 * 4, 0);
        let mut places = self.bytes[begin..].chunks_exact_mut(4);
        let mask = !(u64::MAX << width);
        let (mut pending, mut filled) = (self.pending, self.filled);
        for word in words {
            pending |= (u64::from(word) & mask) << filled;
            filled += width;
            if filled >= 32 {
                if let Some(place) = places.next() {
                    place.copy_from_slice(&(pending as u32).to_le_bytes());
                }
                pending >>= 32;
                filled -= 32;
            }
        }
        (self.pending, self.filled) = (pending, filled);
    }

    /// Fills up the last byte with zeros, so that the next word begins on a byte.
    pub fn align(&mut self) {
        let whole = self.filled.div_ceil(8) as usize;
        self.bytes
            .extend_from_slice(&self.pending.to_le_bytes()[..whole]);
        (self.pending, self.filled) = (0, 0);
    }

    /// The message.
    pub fn finish(mut self) -> Vec<u8> {
        self.align();
        self.bytes
    }
}

/// Reads words from a message whose length was checked before.
#[derive(Debug, Clone)]
pub struct BitReader<'a> {
    bytes: &'a [u8],
    position: usize,
}

impl<'a> BitReader<'a> {
    /// From the beginning.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, position: 0 }
    }

    /// The next word of `width` bits (at most [`MOST_BITS`]). Beyond the end there are zeros.
    #[inline]
    pub fn next(&mut self, width: u32) -> u64 {
        let (byte, shift) = (self.position / 8, self.position % 8);
        self.position += width as usize;
        let word = match self.bytes.get(byte..byte + 8).map(<[u8; 8]>::try_from) {
            Some(Ok(bytes)) => u64::from_le_bytes(bytes),
            _ => self.last_bytes(byte),
        };
        (word >> shift) & !(u64::MAX << width)
    }

    /// The next words of `width` bits, 32 at most.
    pub fn read(&mut self, width: u32, words: &mut [u32]) {
        let mask = !(u64::MAX << width);
        let mut position = self.position;
        self.position += words.len() * width as usize;
        for word in words {
            let (byte, shift) = (position / 8, position % 8);
            position += width as usize;
            let bytes = match self.bytes.get(byte..byte + 8).map(<[u8; 8]>::try_from) {
                Some(Ok(bytes)) => u64::from_le_bytes(bytes),
                _ => self.last_bytes(byte),
            };
            *word = ((bytes >> shift) & mask) as u32;
        }
    }

    #[cold]
    fn last_bytes(&self, byte: usize) -> u64 {
        let mut last = [0u8; 8];
        let rest = self.bytes.get(byte..).unwrap_or_default();
        let count = rest.len().min(8);
        last[..count].copy_from_slice(&rest[..count]);
        u64::from_le_bytes(last)
    }

    /// Goes to the beginning of the next byte.
    pub fn align(&mut self) {
        self.position = self.position.next_multiple_of(8);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_mixed_widths_round_trip_in_the_expected_bytes() {
        let widths = [1u32, 5, 48, 10, 20, 33, 32, 7, 25, 17, 40, 3];
        let word = |n: usize| 0x9e37_79b9_7f4a_7c15u64.wrapping_mul(n as u64 + 1);
        for count in [0, 1, 5, 12, 100] {
            let mut writer = BitWriter::with_capacity(0);
            let width = |n: usize| widths[n % widths.len()];
            (0..count).for_each(|n| writer.push(word(n), width(n)));
            let bytes = writer.finish();
            let bits: usize = (0..count).map(|n| width(n) as usize).sum();
            assert_eq!(bytes.len(), bits.div_ceil(8));
            let mut reader = BitReader::new(&bytes);
            for n in 0..count {
                let expected = word(n) & !(u64::MAX << width(n));
                assert_eq!(reader.next(width(n)), expected, "word {n} of {count}");
            }
        }
    }

    #[test]
    fn packed_words_round_trip_in_as_few_bytes_as_possible() {
        for width in 1..=MOST_BITS {
            for count in [0u64, 1, 2, 7, 8, 9, 65] {
                let words: Vec<u64> = (1..=count)
                    .map(|n| n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - width))
                    .collect();
                let bytes = pack(&words, width);
                assert_eq!(bytes.len(), (count * u64::from(width)).div_ceil(8) as usize);
                assert_eq!(unpack(&bytes, count as usize, width), Ok(words));
            }
            let least = -1i64 << (width - 1);
            for value in [0, -1, least, -1 - least] {
                let word = unpack(&pack(&[value as u64], width), 1, width).unwrap()[0];
                assert_eq!(signed(word, width), value, "{width} bits");
            }
        }
        // Whole bytes are the least significant ones, in order.
        assert_eq!(pack(&[0x0403_0201, 5], 24), [1, 2, 3, 5, 0, 0]);
    }

    #[test]
    fn other_lengths_and_stray_bits_are_refused() {
        let mut bytes = pack(&[1, 2, 3], 12);
        let (got, expected) = (5, 3);
        assert_eq!(
            unpack(&bytes, 2, 12),
            Err(TransferError::PackedLength { got, expected })
        );
        bytes[4] |= 0x10;
        assert_eq!(unpack(&bytes, 3, 12), Err(TransferError::PackedPadding));
    }

    #[test]
    fn aligned_parts_begin_on_bytes() {
        let mut writer = BitWriter::with_capacity(4);
        writer.push(1, 1);
        writer.align();
        writer.push(0xab, 8);
        let bytes = writer.finish();
        assert_eq!(bytes, [1, 0xab]);
        let mut reader = BitReader::new(&bytes);
        assert_eq!(reader.next(1), 1);
        reader.align();
        assert_eq!((reader.next(8), reader.next(8)), (0xab, 0));
        assert_eq!(packed_bytes(3, 5), 2);
    }
}
