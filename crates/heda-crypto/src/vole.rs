//! Shares of the product of a hidden digit and a column of numbers, modulo a power of two: VOLE
//! over a domain of up to 32 digits, as in SoftSpoken (Roy, CRYPTO 2022, section 3) with sums modulo
//! 2^w in place of a field.
//!
//! P, who holds the column x, made a tree with a leaf for every digit; U holds every leaf but number Δ'. Each
//! leaf v is a stream r_v of words, one a row. Both agree on a public turn e and read leaf v as
//! number v ⊕ e; U's digit is then Δ = Δ' ⊕ e.
//!
//! 1. P sends c = x − Σ_v r_v.
//! 2. P's share is Σ_v (v ⊕ e)·r_v.
//! 3. U's share is Δ·(c + Σ_{v≠Δ'} r_v) − Σ_{v≠Δ'} (v ⊕ e)·r_v.
//!
//! The shares add up to Δ·x: what U lacks, r_Δ', has the factor Δ − (Δ' ⊕ e) = 0.
//!
//! Who learns what: c is uniform to U, which lacks one of the streams; P receives nothing but e,
//! which is uniform because Δ' is. A tree serves one c: two on the same streams would differ by
//! the difference of two columns.
//!
//! Step 1 and all sums that step 2 needs are independent of e: Σ_v (v ⊕ e)·r_v is put together
//! from the sums over leaves with one bit set, so that P streams every leaf once, before e is
//! known.

use crate::bits::{BitReader, BitWriter};
use aes::cipher::{BlockCipherEncrypt, KeyInit};
use aes::{Aes128Enc, Block};
use zeroize::{Zeroize, Zeroizing};

/// Bits of a digit, at most: each costs words of one bit fewer and twice the streams.
pub const MOST_DIGIT_BITS: u32 = 5;
/// Words are at most so wide.
pub const MOST_BITS: u32 = 32;

/// Bytes of every leaf's stream that are made together: several times what the widest instructions encrypt
/// at once, because a cipher takes a moment to get its keys ready; those of all leaves stay in the cache.
const BLOCK_BYTES: usize = 4096;
const CIPHER_BLOCKS: usize = BLOCK_BYTES / 16;

/// The leaves of a tree, a power of two of them: 128-bit keys, each for one stream.
pub type Leaves = [u128];

/// A word of a stream: the narrowest integer that holds the width.
trait Lane: Copy + Default + Zeroize + 'static {
    const BYTES: usize;
    fn read(bytes: &[u8]) -> Self;
    fn plus(self, other: Self) -> Self;
    fn minus(self, other: Self) -> Self;
    fn widen(self) -> u32;
    fn cut(value: u32) -> Self;
}

macro_rules! lane {
    ($type:ty) => {
        impl Lane for $type {
            const BYTES: usize = size_of::<$type>();

            #[inline(always)]
            fn read(bytes: &[u8]) -> Self {
                let mut word = [0; size_of::<$type>()];
                word.copy_from_slice(bytes);
                Self::from_le_bytes(word)
            }

            #[inline(always)]
            fn plus(self, other: Self) -> Self {
                self.wrapping_add(other)
            }

            #[inline(always)]
            fn minus(self, other: Self) -> Self {
                self.wrapping_sub(other)
            }

            #[inline(always)]
            fn widen(self) -> u32 {
                u32::from(self)
            }

            #[inline(always)]
            fn cut(value: u32) -> Self {
                value as Self
            }
        }
    };
}

lane!(u8);
lane!(u16);
lane!(u32);

/// Words of a leaf's stream that are made together: no more than there are rows.
fn per_block<L: Lane>(rows: usize) -> usize {
    (BLOCK_BYTES / L::BYTES).min(rows).max(1)
}

/// The streams of a tree, made block by block.
struct Streams {
    ciphers: Vec<Aes128Enc>,
    counter: u128,
    buffer: [Block; CIPHER_BLOCKS],
}

impl Streams {
    fn new(leaves: &Leaves) -> Self {
        let cipher = |leaf: &u128| Aes128Enc::new(&leaf.to_le_bytes().into());
        Self {
            ciphers: leaves.iter().map(cipher).collect(),
            counter: 0,
            buffer: [Block::default(); CIPHER_BLOCKS],
        }
    }

    /// The next words of one leaf's stream; every leaf is asked once for each block.
    fn read<L: Lane>(&mut self, leaf: usize, words: &mut [L]) {
        let blocks = &mut self.buffer[..(words.len() * L::BYTES).div_ceil(16)];
        for (number, block) in blocks.iter_mut().enumerate() {
            *block = (self.counter + number as u128).to_le_bytes().into();
        }
        self.ciphers[leaf].encrypt_blocks(blocks);
        let bytes = Block::cast_slice_to_core(blocks).as_flattened();
        for (word, bytes) in words.iter_mut().zip(bytes.chunks_exact(L::BYTES)) {
            *word = L::read(bytes);
        }
    }

    fn next_block(&mut self) {
        self.counter += CIPHER_BLOCKS as u128;
    }
}

impl Drop for Streams {
    fn drop(&mut self) {
        let zero = |block: &mut Block| block.as_mut_slice().zeroize();
        self.buffer.iter_mut().for_each(zero);
    }
}

/// P's sums over one tree's streams: over all leaves, and over leaves with one bit of their number
/// set.
struct Sums<L: Lane> {
    all: Vec<L>,
    bits: Vec<Vec<L>>,
}

impl<L: Lane> Sums<L> {
    fn new(leaves: &Leaves, rows: usize) -> Self {
        let mut streams = Streams::new(leaves);
        let per_block = per_block::<L>(rows);
        let mut sums = Self {
            all: vec![L::default(); rows],
            bits: vec![vec![L::default(); rows]; leaves.len().ilog2() as usize],
        };
        let mut words = Zeroizing::new(vec![L::default(); leaves.len() * per_block]);
        for begin in (0..rows).step_by(per_block) {
            let count = per_block.min(rows - begin);
            for (leaf, words) in words.chunks_exact_mut(per_block).enumerate() {
                streams.read(leaf, &mut words[..count]);
            }
            streams.next_block();
            sums.halve(&mut words, per_block, begin..begin + count);
        }
        sums
    }

    /// Adds neighbours bit by bit: before round j, each place that is a multiple of 2^j holds the sum
    /// over the leaves from there to the next such place; every second one has bit j set.
    fn halve(&mut self, words: &mut [L], per_block: usize, rows: std::ops::Range<usize>) {
        let (count, leaves) = (rows.len(), 1 << self.bits.len());
        for (bit, sum) in self.bits.iter_mut().enumerate() {
            let sum = &mut sum[rows.clone()];
            for even in (0..leaves).step_by(2 << bit) {
                let odd = (even + (1 << bit)) * per_block;
                let (low, high) = words.split_at_mut(odd);
                let even = &mut low[even * per_block..][..count];
                for ((sum, even), &odd) in sum.iter_mut().zip(even).zip(&high[..count]) {
                    *sum = sum.plus(odd);
                    *even = even.plus(odd);
                }
            }
        }
        self.all[rows].copy_from_slice(&words[..count]);
    }

    fn correction(&self, values: &[u32], width: u32, out: &mut BitWriter) {
        for (&value, &sum) in values.iter().zip(&self.all) {
            out.push(L::cut(value).minus(sum).widen().into(), width);
        }
    }

    /// Step 2, from the bits of e: a bit of v ⊕ e is set for the leaves with that bit, or for all
    /// others.
    fn add_share(&self, turn: u8, shift: u32, shares: &mut [u32]) {
        for (bit, sums) in self.bits.iter().enumerate() {
            let place = shift + bit as u32;
            match turn >> bit & 1 {
                0 => {
                    for (share, &sum) in shares.iter_mut().zip(sums) {
                        *share = share.wrapping_add(sum.widen() << place);
                    }
                }
                _ => {
                    for ((share, &sum), &all) in shares.iter_mut().zip(sums).zip(&self.all) {
                        *share = share.wrapping_add(all.minus(sum).widen() << place);
                    }
                }
            }
        }
    }
}

impl<L: Lane> Drop for Sums<L> {
    fn drop(&mut self) {
        self.all.zeroize();
        self.bits.iter_mut().for_each(Zeroize::zeroize);
    }
}

#[inline(always)]
fn add<L: Lane>(sums: &mut [L], words: &[L]) {
    for (sum, &word) in sums.iter_mut().zip(words) {
        *sum = sum.plus(word);
    }
}

enum AnySums {
    Narrow(Sums<u8>),
    Middle(Sums<u16>),
    Wide(Sums<u32>),
}

/// One tree and column at P, streamed and ready for any turn.
pub struct SenderColumn {
    sums: AnySums,
    width: u32,
}

impl std::fmt::Debug for SenderColumn {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SenderColumn")
            .field("width", &self.width)
            .finish_non_exhaustive()
    }
}

impl SenderColumn {
    /// Streams every leaf over all rows, with words of `width` bits.
    pub fn new(leaves: &Leaves, rows: usize, width: u32) -> Self {
        let sums = match width {
            ..=8 => AnySums::Narrow(Sums::new(leaves, rows)),
            9..=16 => AnySums::Middle(Sums::new(leaves, rows)),
            _ => AnySums::Wide(Sums::new(leaves, rows)),
        };
        Self { sums, width }
    }

    /// Step 1: appends c for the column `values`, a value a row.
    pub fn write_correction(&self, values: &[u32], out: &mut BitWriter) {
        match &self.sums {
            AnySums::Narrow(sums) => sums.correction(values, self.width, out),
            AnySums::Middle(sums) => sums.correction(values, self.width, out),
            AnySums::Wide(sums) => sums.correction(values, self.width, out),
        }
    }

    /// Step 2: adds P's share, times 2^`shift`, to the shares of all rows. A tree is used once.
    pub fn add_share(self, turn: u8, shift: u32, shares: &mut [u32]) {
        match &self.sums {
            AnySums::Narrow(sums) => sums.add_share(turn, shift, shares),
            AnySums::Middle(sums) => sums.add_share(turn, shift, shares),
            AnySums::Wide(sums) => sums.add_share(turn, shift, shares),
        }
    }
}

/// One tree at U: every leaf but one. What stands in the missing place has no weight in the share,
/// so no branch and no address depends on which one it is.
pub struct ChooserColumn<'a> {
    /// The leaves, anything in the missing place.
    pub leaves: &'a Leaves,
    /// Δ': the number of the missing leaf.
    pub missing: u8,
    /// e, as it was sent.
    pub turn: u8,
    /// Bits of a word.
    pub width: u32,
}

impl ChooserColumn<'_> {
    /// Step 3: reads c and adds U's share, times 2^`shift`, to the shares of all rows.
    pub fn add_share(&self, corrections: &mut BitReader<'_>, shift: u32, shares: &mut [u32]) {
        match self.width {
            ..=8 => self.add_lanes::<u8>(corrections, shift, shares),
            9..=16 => self.add_lanes::<u16>(corrections, shift, shares),
            _ => self.add_lanes::<u32>(corrections, shift, shares),
        }
    }

    fn add_lanes<L: Lane>(&self, corrections: &mut BitReader<'_>, shift: u32, shares: &mut [u32]) {
        let mut streams = Streams::new(self.leaves);
        let per_block = per_block::<L>(shares.len());
        let digit = u32::from(self.missing ^ self.turn);
        let mut words = Zeroizing::new(vec![L::default(); per_block]);
        let mut sum = Zeroizing::new(vec![L::default(); per_block]);
        let mut weighted = Zeroizing::new(vec![L::default(); per_block]);
        for shares in shares.chunks_mut(per_block) {
            let count = shares.len();
            let (sum, weighted) = (&mut sum[..count], &mut weighted[..count]);
            sum.fill(L::default());
            weighted.fill(L::default());
            // From the highest number down, the running sum is added once for each number below:
            // Σ number·r = Σ_{n ≥ 1} Σ_{number ≥ n} r.
            for number in (0..self.leaves.len()).rev() {
                let words = &mut words[..count];
                streams.read(number ^ usize::from(self.turn), words);
                add(sum, words);
                if number > 0 {
                    add(weighted, sum);
                }
            }
            streams.next_block();
            let sums = sum.iter().zip(weighted.iter());
            for (share, (sum, weighted)) in shares.iter_mut().zip(sums) {
                let correction = corrections.next(self.width) as u32;
                let own = digit
                    .wrapping_mul(correction.wrapping_add(sum.widen()))
                    .wrapping_sub(weighted.widen());
                *share = share.wrapping_add(own << shift);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Randomness;
    use rand_core::Rng;

    fn leaves(seed: u64, bits: u32) -> Vec<u128> {
        let mut rng = Randomness::seeded(seed).fork("leaves", 0).unwrap();
        let mut word = || u128::from(rng.next_u64()) << 64 | u128::from(rng.next_u64());
        (0..1 << bits).map(|_| word()).collect()
    }

    /// Both shares for a digit, in full and without the missing leaf.
    fn shares(
        (digit, missing, bits): (u8, u8, u32),
        values: &[u32],
        width: u32,
        shift: u32,
    ) -> (Vec<u32>, Vec<u32>) {
        let all = leaves(u64::from(width) << 8 | u64::from(missing), bits);
        let column = SenderColumn::new(&all, values.len(), width);
        let mut writer = BitWriter::with_capacity(0);
        column.write_correction(values, &mut writer);
        let message = writer.finish();
        assert_eq!(message.len(), (values.len() * width as usize).div_ceil(8));
        let turn = digit ^ missing;
        let (mut own, mut theirs) = (vec![7; values.len()], vec![0; values.len()]);
        column.add_share(turn, shift, &mut own);
        let mut punctured = all.clone();
        punctured[usize::from(missing)] = 0xee;
        let chooser = ChooserColumn {
            leaves: &punctured,
            missing,
            turn,
            width,
        };
        chooser.add_share(&mut BitReader::new(&message), shift, &mut theirs);
        (own, theirs)
    }

    #[test]
    fn shares_add_up_to_the_product_for_every_digit_and_width() {
        for (bits, width, rows) in [
            (5, 5, 700),
            (3, 8, 512),
            (4, 10, 257),
            (1, 15, 3),
            (5, 20, 1),
            (2, 25, 129),
            (5, 32, 300),
        ] {
            let modulus = u32::MAX >> (32 - width);
            let mut rng = Randomness::seeded(9).fork("values", 0).unwrap();
            let values: Vec<u32> = (0..rows).map(|_| rng.next_u32() & modulus).collect();
            for digit in 0..1u8 << bits {
                let missing = (digit * 7 + 3) % (1 << bits);
                let shift = 32 - width;
                let (own, theirs) = shares((digit, missing, bits), &values, width, shift);
                for ((p, u), value) in own.iter().zip(&theirs).zip(&values) {
                    let product = u32::from(digit).wrapping_mul(*value) << shift;
                    assert_eq!(p.wrapping_add(*u), product.wrapping_add(7), "width {width}");
                }
            }
        }
    }

    /// What U receives does not depend on the column as long as it lacks a leaf: with another
    /// column there is a missing stream that gives the same message. Here: bits look fair.
    #[test]
    fn corrections_look_uniform_for_a_constant_column() {
        let rows = 4096;
        let column = SenderColumn::new(&leaves(3, 4), rows, 20);
        let mut writer = BitWriter::with_capacity(0);
        column.write_correction(&vec![0; rows], &mut writer);
        let ones: u32 = writer.finish().iter().map(|b| b.count_ones()).sum();
        let (mean, spread) = (rows as f64 * 10.0, (rows as f64 * 5.0).sqrt());
        assert!((f64::from(ones) - mean).abs() < 5.0 * spread, "{ones}");
    }
}
