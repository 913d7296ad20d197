//! Blocks as words that are added without a carry from one to the next.

use super::PIECE;

/// A word of a block.
pub(crate) trait Lane: Copy + Default + 'static {
    /// How long it is.
    const BYTES: usize;
    /// From its bytes, lowest first.
    fn read(bytes: &[u8]) -> Self;
    /// To its bytes, lowest first.
    fn write(self, bytes: &mut [u8]);
    /// The sum of two.
    fn plus(self, other: Self) -> Self;
}

/// A word whose bits are added each by itself.
#[derive(Clone, Copy, Default)]
pub(super) struct Bits(u64);

macro_rules! lane {
    ($type:ty, $word:ty, $make:expr, $value:expr, $plus:expr) => {
        impl Lane for $type {
            const BYTES: usize = size_of::<$word>();

            #[inline(always)]
            fn read(bytes: &[u8]) -> Self {
                let mut word = [0; size_of::<$word>()];
                word.copy_from_slice(bytes);
                $make(<$word>::from_le_bytes(word))
            }

            #[inline(always)]
            fn write(self, bytes: &mut [u8]) {
                let value: $word = $value(self);
                bytes.copy_from_slice(&value.to_le_bytes());
            }

            #[inline(always)]
            fn plus(self, other: Self) -> Self {
                $plus(self, other)
            }
        }
    };
}

lane!(u8, u8, |word| word, |own| own, u8::wrapping_add);
lane!(u16, u16, |word| word, |own| own, u16::wrapping_add);
lane!(u32, u32, |word| word, |own| own, u32::wrapping_add);
lane!(Bits, u64, Bits, |own: Bits| own.0, |a: Bits, b: Bits| Bits(
    a.0 ^ b.0
));

/// The words in some blocks, as many as are asked for.
pub(crate) fn read_lanes<L: Lane>(blocks: &[u128; PIECE], words: &mut [L]) {
    let read = |block: &u128, words: &mut [L]| {
        let bytes = block.to_le_bytes();
        for (word, bytes) in words.iter_mut().zip(bytes.chunks_exact(L::BYTES)) {
            *word = L::read(bytes);
        }
    };
    // Whole blocks apart from the last words: their length is known when this is compiled.
    let mut whole = words.chunks_exact_mut(16 / L::BYTES);
    let mut blocks = blocks.iter();
    for (words, block) in whole.by_ref().zip(blocks.by_ref()) {
        read(block, words);
    }
    if let Some(block) = blocks.next() {
        read(block, whole.into_remainder());
    }
}

/// Blocks from their words.
pub(super) fn write_lanes<L: Lane>(words: &[L], blocks: &mut [u128; PIECE]) {
    for (words, block) in words.chunks_exact(16 / L::BYTES).zip(blocks) {
        let mut bytes = [0; 16];
        for (word, bytes) in words.iter().zip(bytes.chunks_exact_mut(L::BYTES)) {
            word.write(bytes);
        }
        *block = u128::from_le_bytes(bytes);
    }
}
