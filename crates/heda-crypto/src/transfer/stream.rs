//! From leaves to correlated columns: vector oblivious linear evaluation over a small field.
//!
//! Follows Roy, "SoftSpokenOT: Quieter OT Extension from Small-Field Silent VOLE in the Minicrypt
//! Model" (CRYPTO 2022), section 3. Each leaf x of a tree is the key of a stream r_x. Who has all
//! leaves computes u = Σ r_x and v = Σ x·r_x; who lacks leaf δ computes w = Σ (x − δ)·r_x, in which
//! that leaf does not occur. So w = v + u·δ (signs do not matter in characteristic two).
//!
//! Streams are AES-128 in counter mode. Sums over all x with bit j, for all j together, are formed
//! while the leaves go by: four leaves at once for the lowest two bits, and fours like a counter
//! that carries for the others.

use super::field::{FieldBits, MAX_BITS, bit_mask};
use aes::cipher::{BlockCipherEncrypt, KeyInit};
use aes::{Aes128Enc, Block};
use zeroize::Zeroize;

/// Words of 128 rows in a block: what the widest instructions encrypt at once. Fewer, and the cipher
/// takes them one by one, which costs several times as much.
pub(super) const BLOCK_WORDS: usize = 64;
/// From so many words on it is quicker to encrypt a whole block.
const MANY_WORDS: usize = 8;

/// One plane of one block.
type Plane = [u128; BLOCK_WORDS];

/// The ciphers of one tree's leaves. The first may be missing.
pub(super) struct Leaves {
    ciphers: Vec<Aes128Enc>,
    tree: u32,
}

impl Leaves {
    /// All leaves, in order, or all but the first.
    pub(super) fn new(tree: usize, keys: &[u128]) -> Self {
        let cipher = |key: &u128| Aes128Enc::new(&key.to_le_bytes().into());
        Self {
            ciphers: keys.iter().map(cipher).collect(),
            tree: tree as u32,
        }
    }
}

/// Where a block lies in the streams.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    /// The first word of the block's first plane in every stream.
    pub(super) position: u64,
    /// Planes of u: one for bits, f for elements of the field.
    pub(super) planes: usize,
    /// Words of the block that are used.
    pub(super) words: usize,
}

/// Room for the sums of one tree and block, to be used for many.
///
/// Planes are encrypted one by one, or, if all of them together fill no more than a block, at once:
/// *lanes* are the words of the planes that are encrypted together, one plane after the other.
pub(super) struct Summation {
    field: FieldBits,
    place: Place,
    counters: [Block; BLOCK_WORDS],
    streams: [[Block; BLOCK_WORDS]; 4],
    /// Lane by lane: the sum of all streams.
    sum: Plane,
    /// At each level the sum that waits for its neighbour.
    waiting: [Plane; MAX_BITS],
    /// Bit by bit and lane by lane: the sum of the streams of all leaves with that bit.
    lanes: [Plane; MAX_BITS],
    /// Plane by plane: the sum of all streams.
    sums: Vec<Plane>,
    /// Plane by plane and bit by bit: the sum of the streams of all leaves with that bit.
    by_bit: Vec<Plane>,
}

impl Summation {
    pub(super) fn new(field: FieldBits, place: Place) -> Self {
        Self {
            field,
            place,
            counters: [Block::default(); BLOCK_WORDS],
            streams: [[Block::default(); BLOCK_WORDS]; 4],
            sum: [0; BLOCK_WORDS],
            waiting: [[0; BLOCK_WORDS]; MAX_BITS],
            lanes: [[0; BLOCK_WORDS]; MAX_BITS],
            sums: vec![[0; BLOCK_WORDS]; place.planes],
            by_bit: vec![[0; BLOCK_WORDS]; place.planes * field.get()],
        }
    }

    /// Who has all leaves: u (`planes` planes) and v (f planes) of one tree.
    pub(super) fn all_leaves(&mut self, leaves: &Leaves, u: &mut [u128], v: &mut [u128]) {
        self.add_planes(leaves);
        for (u, sum) in u.chunks_exact_mut(BLOCK_WORDS).zip(&self.sums) {
            u.copy_from_slice(sum);
        }
        self.weigh(v);
    }

    /// Who lacks leaf `delta`, and has the others in the order of x ⊕ `delta`: w (f planes) of one
    /// tree, after the peer's `correction` c (`planes` planes): Σ y·r_y + c·δ.
    pub(super) fn all_but_one(
        &mut self,
        leaves: &Leaves,
        delta: u8,
        correction: &[u128],
        w: &mut [u128],
    ) {
        self.add_planes(leaves);
        let corrections = correction.chunks_exact(BLOCK_WORDS);
        let planes = self.by_bit.chunks_exact_mut(self.field.get());
        for (plane, correction) in planes.zip(corrections) {
            for (bit, sum) in plane.iter_mut().enumerate() {
                let mask = bit_mask(delta, bit);
                sum.iter_mut()
                    .zip(correction)
                    .for_each(|(s, c)| *s ^= c & mask);
            }
        }
        self.weigh(w);
    }

    /// `sums` and `by_bit` of all planes.
    fn add_planes(&mut self, leaves: &Leaves) {
        let (planes, words) = (self.place.planes, self.place.words.min(BLOCK_WORDS));
        let together = match planes * words <= BLOCK_WORDS {
            true => planes,
            false => 1,
        };
        for first in (0..planes).step_by(together) {
            self.add_streams(leaves, first, together);
            for plane in 0..together {
                let lanes = plane * words..(plane + 1) * words;
                self.sums[first + plane][..words].copy_from_slice(&self.sum[lanes.clone()]);
                let by_bit = self.by_bit.chunks_exact_mut(self.field.get());
                for (sum, bit) in by_bit
                    .skip(first + plane)
                    .take(1)
                    .flatten()
                    .zip(&self.lanes)
                {
                    sum[..words].copy_from_slice(&bit[lanes.clone()]);
                }
            }
        }
    }

    /// For some planes: `sum` becomes the sum of all streams, `lanes` that of those with each bit.
    fn add_streams(&mut self, leaves: &Leaves, first: usize, planes: usize) {
        let words = self.place.words.min(BLOCK_WORDS);
        let used = planes * words;
        let encrypted = if used > MANY_WORDS { BLOCK_WORDS } else { used };
        let place = |lane: usize| {
            ((first + lane / words.max(1)) * BLOCK_WORDS + lane % words.max(1)) as u64
        };
        for (lane, counter) in self.counters[..used].iter_mut().enumerate() {
            let number = self.place.position + place(lane);
            counter[..8].copy_from_slice(&number.to_le_bytes());
            counter[8..12].copy_from_slice(&leaves.tree.to_le_bytes());
        }
        let bits = self.field.get();
        self.lanes[..bits].iter_mut().for_each(|sum| sum.fill(0));
        let missing = self.field.elements() - leaves.ciphers.len();
        self.streams[0].iter_mut().for_each(|b| b.fill(0));
        for four in 0..self.field.elements() / 4 {
            for (n, stream) in self.streams.iter_mut().enumerate() {
                if let Some(leaf) = (4 * four + n).checked_sub(missing) {
                    // Both slices have the same length.
                    let (from, to) = (&self.counters[..encrypted], &mut stream[..encrypted]);
                    let _ = leaves.ciphers[leaf].encrypt_blocks_b2b(from, to);
                }
            }
            let (low, high) = self.lanes.split_at_mut(2);
            add_four(&self.streams, used, &mut self.sum, low);
            carry(
                four,
                used,
                &mut self.sum,
                &mut self.waiting,
                &mut high[..bits - 2],
            );
        }
    }

    /// Σ_j α^j·(sum of the streams with bit j).
    fn weigh(&self, weighted: &mut [u128]) {
        let bits = self.field.get();
        weighted.fill(0);
        self.field.horner(weighted, |bit, planes| {
            let planes = planes.chunks_exact_mut(BLOCK_WORDS);
            for (plane, by_bit) in planes.zip(self.by_bit.chunks_exact(bits)) {
                plane
                    .iter_mut()
                    .zip(&by_bit[bit])
                    .for_each(|(p, s)| *p ^= s);
            }
        });
    }
}

/// The sum of four streams, and what they add to those with bit 0 and with bit 1.
fn add_four(streams: &[[Block; BLOCK_WORDS]; 4], words: usize, sum: &mut Plane, low: &mut [Plane]) {
    let (bit_0, bit_1) = low.split_at_mut(1);
    let (bit_0, bit_1) = (&mut bit_0[0], &mut bit_1[0]);
    for word in 0..words.min(BLOCK_WORDS) {
        let read = |n: usize| u128::from_le_bytes(streams[n][word].into());
        let (one, two, three) = (read(1), read(2), read(3));
        bit_0[word] ^= one ^ three;
        bit_1[word] ^= two ^ three;
        sum[word] = read(0) ^ one ^ two ^ three;
    }
}

/// Adds the sum of four number `four`. After the last one `sum` is the sum of all.
fn carry(
    four: usize,
    words: usize,
    sum: &mut Plane,
    waiting: &mut [Plane; MAX_BITS],
    by_bit: &mut [Plane],
) {
    let ones = (four.trailing_ones() as usize).min(by_bit.len());
    for (first, odd) in waiting.iter().zip(&mut *by_bit).take(ones) {
        for ((sum, first), odd) in sum.iter_mut().zip(first).zip(odd).take(words) {
            *odd ^= *sum;
            *sum ^= first;
        }
    }
    if ones < by_bit.len() {
        waiting[ones] = *sum;
    }
}

impl Drop for Summation {
    fn drop(&mut self) {
        let blocks = self.streams.iter_mut().flatten();
        blocks.for_each(|block| block.as_mut_slice().zeroize());
        self.sum.zeroize();
        self.waiting.zeroize();
        self.lanes.zeroize();
        self.sums.zeroize();
        self.by_bit.zeroize();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transfer::field::elements;

    /// The stream of a leaf, computed block by block.
    fn stream(key: u128, tree: u32, position: u64, words: usize) -> Vec<u128> {
        let cipher = Aes128Enc::new(&key.to_le_bytes().into());
        let word = |n: u64| {
            let counter = u128::from(position + n) | u128::from(tree) << 64;
            let mut block = counter.to_le_bytes().into();
            cipher.encrypt_block(&mut block);
            u128::from_le_bytes(block.into())
        };
        (0..words as u64).map(word).collect()
    }

    /// The elements of a block, row after row.
    fn read(planes: &[u128], row_words: usize) -> Vec<u8> {
        let mut rows = vec![0; row_words * 128];
        for (word, rows) in rows.chunks_exact_mut(128).enumerate() {
            let column: Vec<u128> = planes.chunks_exact(BLOCK_WORDS).map(|p| p[word]).collect();
            elements(&column, rows);
        }
        rows
    }

    #[test]
    fn both_sides_equal_their_definition() {
        for bits in 2..=8 {
            let field = FieldBits::new(bits).unwrap();
            let keys: Vec<u128> = (0..field.elements() as u128).map(|n| n * n + 77).collect();
            let delta = (field.elements() * 2 / 3) as u8;
            let relative: Vec<u128> = (1..field.elements())
                .map(|y| keys[y ^ usize::from(delta)])
                .collect();
            for planes in [1, field.get()] {
                let place = Place {
                    position: 1000,
                    planes,
                    words: BLOCK_WORDS,
                };
                let mut room = Summation::new(field, place);
                let size = planes * BLOCK_WORDS;
                let streams: Vec<_> = keys
                    .iter()
                    .map(|k| read(&stream(*k, 3, 1000, size), BLOCK_WORDS))
                    .collect();
                let (mut u, mut v) = (vec![0; size], vec![0; field.get() * BLOCK_WORDS]);
                room.all_leaves(&Leaves::new(3, &keys), &mut u, &mut v);
                let correction: Vec<u128> =
                    (0..size as u128).map(|n| (n << 64) | (n * 31)).collect();
                let mut w = v.clone();
                room.all_but_one(&Leaves::new(3, &relative), delta, &correction, &mut w);
                let [u, v, w, c] = [&u, &v, &w, &correction].map(|p| read(p, BLOCK_WORDS));
                for row in 0..BLOCK_WORDS * 128 {
                    let sum = streams.iter().fold(0, |sum, r| sum ^ r[row]);
                    let weighted = streams.iter().enumerate();
                    let weighted =
                        weighted.fold(0, |sum, (x, r)| sum ^ field.multiply(x as u8, r[row]));
                    assert_eq!((u[row], v[row]), (sum, weighted));
                    assert_eq!(w[row], weighted ^ field.multiply(delta, sum ^ c[row]));
                }
            }
        }
    }
}
