//! Words of any width packed without gaps, lowest bit first: how bulk messages travel.

/// The widest word.
pub const MOST_BITS: u32 = 48;

/// Bytes of `count` words of `width` bits.
pub fn packed_bytes(count: usize, width: u32) -> usize {
    (count * width as usize).div_ceil(8)
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
