//! With the crate `aes`, on any processor.

use super::lanes::{Bits, Lane, write_lanes};
use super::{Addition, CipherSums, MOST_BITS, PIECE};
use crate::wipe::wipe;
use aes::cipher::{BlockCipherEncrypt, KeyInit};
use aes::{Aes128Enc, Block};
use std::mem::ManuallyDrop;
use zeroize::Zeroize;

/// Ciphers whose round keys are wiped when they go.
pub(super) struct PortableCiphers(Vec<Aes128Enc>);

/// Blocks on their way through a cipher.
struct Blocks([Block; PIECE]);

impl Drop for Blocks {
    fn drop(&mut self) {
        let wipe = |block: &mut Block| block.as_mut_slice().zeroize();
        self.0.iter_mut().for_each(wipe);
    }
}

fn cipher(key: u128) -> Aes128Enc {
    Aes128Enc::new(&key.to_le_bytes().into())
}

/// Sums on their way, rows of as many words as a piece has.
struct AdditionRoom<L: Lane> {
    words: Vec<L>,
    piece: usize,
}

impl<L: Lane> AdditionRoom<L> {
    /// Rows for the sum of all, for what waits at each level, and for the sums by bits.
    const ROWS: usize = 1 + MOST_BITS + MOST_BITS;

    fn new() -> Self {
        let piece = PIECE * 16 / L::BYTES;
        let words = vec![L::default(); Self::ROWS * piece];
        Self { words, piece }
    }

    /// The sum of all, what waits, and the sums by bits.
    fn parts(&mut self) -> [&mut [L]; 3] {
        let (sum, rest) = self.words.split_at_mut(self.piece);
        let (waiting, bits) = rest.split_at_mut(MOST_BITS * self.piece);
        [sum, waiting, bits]
    }
}

impl<L: Lane> Drop for AdditionRoom<L> {
    fn drop(&mut self) {
        wipe(&mut self.words);
    }
}

/// Adds the second to the first, word by word.
fn add<L: Lane>(sum: &mut [L], other: &[L]) {
    for (sum, other) in sum.iter_mut().zip(other) {
        *sum = sum.plus(*other);
    }
}

/// The sum of four streams; what has bit 0 or 1 in its number is added to the sum of that bit.
fn add_four<L: Lane>(streams: &[Blocks; 4], sum: &mut [L], low: &mut [L], high: &mut [L]) {
    let [zero, one, two, three] = streams.each_ref().map(|blocks| {
        let bytes = Block::cast_slice_to_core(&blocks.0).as_flattened();
        bytes.chunks_exact(L::BYTES).map(L::read)
    });
    let streams = zero.zip(one).zip(two.zip(three));
    let sums = sum.iter_mut().zip(low.iter_mut().zip(high));
    for ((sum, (low, high)), ((zero, one), (two, three))) in sums.zip(streams) {
        let odd = one.plus(three);
        *low = low.plus(odd);
        *high = high.plus(two.plus(three));
        *sum = zero.plus(two).plus(odd);
    }
}

impl PortableCiphers {
    pub(super) fn new(keys: &[u128]) -> Self {
        Self(keys.iter().map(|key| cipher(*key)).collect())
    }

    pub(super) fn sums(
        &self,
        inputs: &[u128; PIECE],
        count: usize,
        addition: Addition,
        sums: &mut CipherSums,
    ) {
        match addition {
            Addition::Xor => self.add_up::<Bits>(inputs, count, sums),
            Addition::Bytes => self.add_up::<u8>(inputs, count, sums),
            Addition::Halves => self.add_up::<u16>(inputs, count, sums),
            Addition::Words => self.add_up::<u32>(inputs, count, sums),
        }
    }

    /// Sums of neighbours wait for each other, as digits do in a counter that carries: what is added
    /// at level j is the sum over 4·2^j ciphers, every second of which has bit j + 2 in its numbers. Where there are
    /// fewer than four ciphers the missing ones have no stream.
    fn add_up<L: Lane>(&self, inputs: &[u128; PIECE], count: usize, sums: &mut CipherSums) {
        // From eight on it is quicker to encrypt as many as the widest instructions take: fewer go one by one.
        let encrypted = if count > 8 { PIECE } else { count };
        let counters = inputs.map(|input| Block::from(input.to_le_bytes()));
        let mut streams = [(); 4].map(|()| Blocks([Block::default(); PIECE]));
        let mut room = AdditionRoom::<L>::new();
        let piece = room.piece;
        let used = count * 16 / L::BYTES;
        let [sum, waiting, bits] = room.parts();
        let (low, high) = bits.split_at_mut(2 * piece);
        let levels = self.0.len().div_ceil(4).ilog2() as usize;
        for (four, ciphers) in self.0.chunks(4).enumerate() {
            for (cipher, stream) in ciphers.iter().zip(&mut streams) {
                let (from, to) = (&counters[..encrypted], &mut stream.0[..encrypted]);
                // Both have the same length.
                let _ = cipher.encrypt_blocks_b2b(from, to);
            }
            let (first, second) = low.split_at_mut(piece);
            add_four(&streams, sum, first, second);
            let sum = &mut sum[..used];
            let ones = (four.trailing_ones() as usize).min(levels);
            let rows = high
                .chunks_exact_mut(piece)
                .zip(waiting.chunks_exact(piece));
            for (odd, first) in rows.take(ones) {
                add(&mut odd[..used], sum);
                add(sum, first);
            }
            if ones < levels {
                waiting[ones * piece..][..used].copy_from_slice(sum);
            }
        }
        write_lanes(sum, &mut sums.all);
        let rows = low.chunks_exact(piece).chain(high.chunks_exact(piece));
        for (words, sum) in rows.zip(&mut sums.bits) {
            write_lanes(words, sum);
        }
    }
}

/// A cipher whose key is public is not wiped: that would take longer than to use it.
pub(super) fn hash<const SECRET: bool>(
    keys: &[u128],
    each: usize,
    inputs: &[u128],
    hashed: &mut [u128],
) {
    let mut blocks = Blocks([Block::default(); PIECE]);
    let each = each.max(1);
    let parts = inputs.chunks(each).zip(hashed.chunks_mut(each));
    for (key, (inputs, hashed)) in keys.iter().zip(parts) {
        let cipher = ManuallyDrop::new(cipher(*key));
        for (inputs, hashed) in inputs.chunks(PIECE).zip(hashed.chunks_mut(PIECE)) {
            let blocks = &mut blocks.0[..inputs.len()];
            for (block, input) in blocks.iter_mut().zip(inputs) {
                *block = input.to_le_bytes().into();
            }
            cipher.encrypt_blocks(blocks);
            for (hashed, (block, input)) in hashed.iter_mut().zip(blocks.iter().zip(inputs)) {
                *hashed = u128::from_le_bytes((*block).into()) ^ input;
            }
        }
        if SECRET {
            drop(ManuallyDrop::into_inner(cipher));
        }
    }
}
