//! Shares of the product of a hidden digit and a column of numbers, modulo a power of two: VOLE
//! over a domain of up to 32 digits, as in SoftSpoken (Roy, CRYPTO 2022, section 3) with sums modulo
//! 2^w in place of a field.
//!
//! P, who holds the column x, made a tree with a leaf for every digit; U holds every leaf but number Δ'. Each
//! leaf v is a stream r_v of words, one a row: AES-128 in counter mode under the leaf, with the tree's label in
//! the counter, so that a guess at a leaf is a guess at one tree and not at those of all gradients and
//! sessions. Both agree on a public correction e and read leaf v as
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
//! known. U forms the same sums.

use crate::bits::{BitReader, BitWriter};
use crate::cipher::{self, Addition, Ciphers, Lane, PIECE, read_lanes};
use crate::transfer::TreeLabel;
use crate::wipe::wipe;

/// Bits of a digit, at most: each costs words of one bit fewer and twice the streams.
pub const MOST_DIGIT_BITS: u32 = 5;
/// Words are at most so wide.
pub const MOST_BITS: u32 = 32;

/// Bytes of every leaf's stream that are made together.
const PIECE_BYTES: usize = 16 * PIECE;

/// A word of a stream: the narrowest integer that holds the width.
trait Word: Lane {
    const ADDITION: Addition;
    fn minus(self, other: Self) -> Self;
    fn widen(self) -> u32;
    fn cut(value: u32) -> Self;
}

macro_rules! word {
    ($type:ty, $addition:expr) => {
        impl Word for $type {
            const ADDITION: Addition = $addition;

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

word!(u8, Addition::Bytes);
word!(u16, Addition::Halves);
word!(u32, Addition::Words);

/// Sums of a tree's streams, a piece after the other.
struct Streams {
    ciphers: Ciphers,
    label: TreeLabel,
    /// Blocks of every stream that were made.
    done: u64,
    counters: [u128; PIECE],
    sums: Box<cipher::CipherSums>,
}

impl Streams {
    fn new(label: &TreeLabel, leaves: &[u128]) -> Self {
        Self {
            ciphers: Ciphers::new(leaves),
            label: *label,
            done: 0,
            counters: std::array::from_fn(|place| label.counter(place as u64)),
            sums: cipher::CipherSums::new(),
        }
    }

    /// Sums of the next words of all streams.
    fn next<L: Word>(&mut self, words: usize) -> &cipher::CipherSums {
        let blocks = (words * L::BYTES).div_ceil(16);
        self.ciphers
            .sums(&self.counters, blocks, L::ADDITION, &mut self.sums);
        self.done += PIECE as u64;
        for (counter, block) in self.counters.iter_mut().zip(self.done..) {
            *counter = self.label.counter(block);
        }
        &self.sums
    }
}

/// Sums over one tree's streams: over all leaves, and over leaves with one bit of their number
/// set.
struct TreeSums<L: Word> {
    rows: usize,
    /// A row of words for all leaves, then one for each bit.
    words: Vec<L>,
}

impl<L: Word> TreeSums<L> {
    fn new(label: &TreeLabel, leaves: &[u128], rows: usize) -> Self {
        let mut streams = Streams::new(label, leaves);
        let bits = streams.ciphers.bits();
        let mut words = vec![L::default(); rows * (1 + bits)];
        let piece = PIECE_BYTES / L::BYTES;
        for begin in (0..rows).step_by(piece) {
            let count = piece.min(rows - begin);
            let sums = streams.next::<L>(count);
            let parts = words.chunks_exact_mut(rows);
            for (words, blocks) in parts.zip([&sums.all].into_iter().chain(&sums.bits)) {
                read_lanes(blocks, &mut words[begin..begin + count]);
            }
        }
        Self { rows, words }
    }

    /// The sum over all leaves.
    fn all(&self) -> &[L] {
        &self.words[..self.rows]
    }

    fn correction(&self, values: &[u32], width: u32, out: &mut BitWriter) {
        let differences = values.iter().zip(self.all());
        out.extend(
            differences.map(|(&value, &sum)| L::cut(value).minus(sum).widen()),
            width,
        );
    }

    /// Step 2, from the bits of e: a bit of v ⊕ e is set for the leaves with that bit, or for all
    /// others.
    fn add_share(&self, correction: u8, shift: u32, shares: &mut [u32]) {
        let mut weighted = [L::default(); PIECE];
        for (piece, shares) in shares.chunks_mut(PIECE).enumerate() {
            let begin = piece * PIECE;
            let weighted = &mut weighted[..shares.len()];
            weigh(
                correction,
                &self.all()[begin..],
                self.words[self.rows..]
                    .chunks_exact(self.rows)
                    .map(|words| &words[begin..]),
                weighted,
            );
            for (share, weighted) in shares.iter_mut().zip(&*weighted) {
                *share = share.wrapping_add(weighted.widen() << shift);
            }
        }
        wipe(&mut weighted);
    }
}

impl<L: Word> Drop for TreeSums<L> {
    fn drop(&mut self) {
        wipe(&mut self.words);
    }
}

/// Σ_v (v ⊕ e)·r_v from the sums by bits, the highest bit first: with each bit all before it is doubled.
fn weigh<'a, L: Word>(
    correction: u8,
    all: &[L],
    bits: impl DoubleEndedIterator<Item = &'a [L]> + ExactSizeIterator,
    weighted: &mut [L],
) {
    weighted.fill(L::default());
    for (bit, sums) in bits.enumerate().rev() {
        let words = weighted.iter_mut().zip(sums);
        match correction >> bit & 1 {
            0 => words.for_each(|(w, &sum)| *w = w.plus(*w).plus(sum)),
            _ => {
                for ((w, &sum), &all) in words.zip(all) {
                    *w = w.plus(*w).plus(all).minus(sum);
                }
            }
        }
    }
}

enum AnySums {
    Narrow(TreeSums<u8>),
    Middle(TreeSums<u16>),
    Wide(TreeSums<u32>),
}

/// One tree and column at P, streamed and ready for any correction.
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
    /// Streams every leaf of the tree with this label over all rows, with words of `width` bits.
    pub fn new(label: &TreeLabel, leaves: &[u128], rows: usize, width: u32) -> Self {
        let sums = match width {
            ..=8 => AnySums::Narrow(TreeSums::new(label, leaves, rows)),
            9..=16 => AnySums::Middle(TreeSums::new(label, leaves, rows)),
            _ => AnySums::Wide(TreeSums::new(label, leaves, rows)),
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
    pub fn add_share(self, correction: u8, shift: u32, shares: &mut [u32]) {
        match &self.sums {
            AnySums::Narrow(sums) => sums.add_share(correction, shift, shares),
            AnySums::Middle(sums) => sums.add_share(correction, shift, shares),
            AnySums::Wide(sums) => sums.add_share(correction, shift, shares),
        }
    }
}

/// One tree at U: every leaf but one. What stands in the missing place has no weight in the share,
/// so no branch and no address depends on which one it is.
pub struct ChooserColumn<'a> {
    /// The tree's label.
    pub label: TreeLabel,
    /// The leaves, anything in the missing place.
    pub leaves: &'a [u128],
    /// Δ': the number of the missing leaf.
    pub missing: u8,
    /// e, as it was sent.
    pub correction: u8,
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

    fn add_lanes<L: Word>(&self, corrections: &mut BitReader<'_>, shift: u32, shares: &mut [u32]) {
        let mut streams = Streams::new(&self.label, self.leaves);
        let bits = streams.ciphers.bits();
        let digit = u32::from(self.missing ^ self.correction);
        let piece = PIECE_BYTES / L::BYTES;
        let mut lanes = vec![L::default(); (2 + bits) * piece];
        let mut sent = vec![0; piece];
        for shares in shares.chunks_mut(piece) {
            let count = shares.len();
            let sums = streams.next::<L>(count);
            let (weighted, sum) = lanes.split_at_mut(piece);
            let parts = sum.chunks_exact_mut(piece);
            for (words, blocks) in parts.zip([&sums.all].into_iter().chain(&sums.bits)) {
                read_lanes(blocks, &mut words[..count]);
            }
            let (all, by_bit) = sum.split_at(piece);
            let by_bit = by_bit.chunks_exact(piece);
            weigh(self.correction, all, by_bit, &mut weighted[..count]);
            corrections.read(self.width, &mut sent[..count]);
            let sums = all.iter().zip(&*weighted).zip(&sent);
            for (share, ((sum, weighted), correction)) in shares.iter_mut().zip(sums) {
                let own = digit
                    .wrapping_mul(correction.wrapping_add(sum.widen()))
                    .wrapping_sub(weighted.widen());
                *share = share.wrapping_add(own << shift);
            }
        }
        wipe(&mut lanes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Randomness;
    use rand_core::Rng;

    const OFFSET: u128 = 0x5ca1_ab1e_0000_1234_5678_9abc_def0_0ff5;

    /// As the trees of a session have them.
    fn label(number: u64) -> TreeLabel {
        TreeLabel::from_bytes((OFFSET ^ u128::from(number)).to_le_bytes())
    }

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
        let column = SenderColumn::new(&label(5), &all, values.len(), width);
        let mut writer = BitWriter::with_capacity(0);
        column.write_correction(values, &mut writer);
        let message = writer.finish();
        assert_eq!(message.len(), (values.len() * width as usize).div_ceil(8));
        let correction = digit ^ missing;
        let (mut own, mut theirs) = (vec![7; values.len()], vec![0; values.len()]);
        column.add_share(correction, shift, &mut own);
        let mut punctured = all.clone();
        punctured[usize::from(missing)] = 0xee;
        let chooser = ChooserColumn {
            label: label(5),
            leaves: &punctured,
            missing,
            correction,
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
        let column = SenderColumn::new(&label(0), &leaves(3, 4), rows, 20);
        let mut writer = BitWriter::with_capacity(0);
        column.write_correction(&vec![0; rows], &mut writer);
        let ones: u32 = writer.finish().iter().map(|b| b.count_ones()).sum();
        let (mean, spread) = (rows as f64 * 10.0, (rows as f64 * 5.0).sqrt());
        assert!((f64::from(ones) - mean).abs() < 5.0 * spread, "{ones}");
    }

    /// The same leaves under two labels: had the counters a block in common, words would repeat.
    #[test]
    fn trees_with_the_same_leaves_have_no_block_of_their_streams_in_common() {
        let rows = 4 * PIECE * 3;
        let blocks = |number: u64| {
            let column = SenderColumn::new(&label(number), &leaves(8, 3), rows, 32);
            let mut writer = BitWriter::with_capacity(0);
            column.write_correction(&vec![0; rows], &mut writer);
            writer.finish()
        };
        let streams: Vec<Vec<u8>> = [0, 1, 2, 1 << 12, 1 << 28, 1 << 60].map(blocks).into();
        let all = streams.iter().flat_map(|stream| stream.chunks_exact(16));
        let distinct: std::collections::BTreeSet<&[u8]> = all.collect();
        assert_eq!(distinct.len(), streams.len() * rows / 4);
        assert_eq!(streams[1], blocks(1));
    }

    /// A stream by its definition, beyond the blocks that are made together.
    #[test]
    fn a_stream_is_aes_of_the_label_and_the_number_of_the_block() {
        use aes::cipher::{BlockCipherEncrypt, KeyInit};
        let (rows, leaves) = (4 * PIECE + 20, leaves(8, 1));
        let column = SenderColumn::new(&label(77), &leaves, rows, 32);
        let mut writer = BitWriter::with_capacity(0);
        column.write_correction(&vec![0; rows], &mut writer);
        let sent = writer.finish();
        let stream = |leaf: u128, block: u64| -> Vec<u32> {
            let mut bytes = (OFFSET ^ 77 ^ u128::from(block) << 64).to_le_bytes().into();
            aes::Aes128Enc::new(&leaf.to_le_bytes().into()).encrypt_block(&mut bytes);
            let words = bytes.chunks_exact(4);
            words
                .map(|word| u32::from_le_bytes(word.try_into().unwrap()))
                .collect()
        };
        for row in 0..rows {
            let sum = leaves.iter().fold(0u32, |sum, leaf| {
                sum.wrapping_add(stream(*leaf, row as u64 / 4)[row % 4])
            });
            let word = u32::from_le_bytes(sent[4 * row..][..4].try_into().unwrap());
            assert_eq!(word, sum.wrapping_neg(), "row {row}");
        }
    }
}
