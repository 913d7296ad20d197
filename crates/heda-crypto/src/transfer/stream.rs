//! From leaves to correlated columns: vector oblivious linear evaluation over a small field.
//!
//! Follows Roy, "SoftSpokenOT: Quieter OT Extension from Small-Field Silent VOLE in the Minicrypt
//! Model" (CRYPTO 2022), section 3. Each leaf x of a tree is the key of a stream r_x. Who has all
//! leaves computes u = Σ r_x and v = Σ x·r_x; who lacks leaf δ computes w = Σ (x − δ)·r_x, in which
//! that leaf does not occur. So w = v + u·δ (signs do not matter in characteristic two).
//!
//! Streams are AES-128 in counter mode. Sums over all x with bit j, for all j together, are formed
//! while the leaves go by (`cipher`).

use super::field::{FieldBits, MAX_BITS, bit_mask};
use crate::cipher::{Addition, CipherSums, Ciphers, PIECE};
use zeroize::{Zeroize, Zeroizing};

/// Words of 128 rows in a block: as many as are encrypted together.
pub(super) const BLOCK_WORDS: usize = PIECE;

/// One plane of one block.
type Plane = [u128; BLOCK_WORDS];

/// The ciphers of one tree's leaves.
pub(super) struct Leaves {
    ciphers: Ciphers,
    tree: u32,
}

impl Leaves {
    /// All leaves, in order.
    pub(super) fn all(tree: usize, keys: &[u128]) -> Self {
        Self {
            ciphers: Ciphers::new(keys),
            tree: tree as u32,
        }
    }

    /// All but the first, in order. Number nought has no weight, so that anything may stand there.
    pub(super) fn all_but_first(tree: usize, keys: &[u128]) -> Self {
        let keys = Zeroizing::new([&[0], keys].concat());
        Self::all(tree, &keys)
    }
}

/// Where a block lies in the streams.
#[derive(Debug, Clone, Copy)]
pub(super) struct StreamPlace {
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
    place: StreamPlace,
    counters: Plane,
    /// Lane by lane: sums of streams.
    lanes: Box<CipherSums>,
    /// Plane by plane: the sum of all streams.
    sums: Vec<Plane>,
    /// Plane by plane and bit by bit: the sum of the streams of all leaves with that bit.
    by_bit: Vec<Plane>,
    /// Power by power of α: what it is multiplied by.
    powers: [Plane; 2 * MAX_BITS - 1],
}

impl Summation {
    pub(super) fn new(field: FieldBits, place: StreamPlace) -> Self {
        Self {
            field,
            place,
            counters: [0; BLOCK_WORDS],
            lanes: CipherSums::new(),
            sums: vec![[0; BLOCK_WORDS]; place.planes],
            by_bit: vec![[0; BLOCK_WORDS]; place.planes * field.get()],
            powers: [[0; BLOCK_WORDS]; 2 * MAX_BITS - 1],
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
                let words = sum.iter_mut().zip(correction).take(self.place.words);
                words.for_each(|(s, c)| *s ^= c & mask);
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
                self.sums[first + plane][..words].copy_from_slice(&self.lanes.all[lanes.clone()]);
                let by_bit = self.by_bit.chunks_exact_mut(self.field.get());
                for (sum, bit) in by_bit
                    .skip(first + plane)
                    .take(1)
                    .flatten()
                    .zip(&self.lanes.bits)
                {
                    sum[..words].copy_from_slice(&bit[lanes.clone()]);
                }
            }
        }
    }

    /// For some planes: `lanes` become the sums of all streams and of those with each bit.
    fn add_streams(&mut self, leaves: &Leaves, first: usize, planes: usize) {
        let words = self.place.words.min(BLOCK_WORDS);
        let used = planes * words;
        let place = |lane: usize| {
            ((first + lane / words.max(1)) * BLOCK_WORDS + lane % words.max(1)) as u64
        };
        let tree = u128::from(leaves.tree) << 64;
        for (lane, counter) in self.counters[..used].iter_mut().enumerate() {
            *counter = u128::from(self.place.position + place(lane)) | tree;
        }
        let (ciphers, counters) = (&leaves.ciphers, &self.counters);
        ciphers.sums(counters, used, Addition::Xor, &mut self.lanes);
    }

    /// Σ_j α^j·(sum of the streams with bit j), where plane q of a sum stands for α^q: sums with the
    /// same power of α are added first, then powers from f on are replaced by lower ones.
    fn weigh(&mut self, weighted: &mut [u128]) {
        let (bits, words) = (self.field.get(), self.place.words.min(BLOCK_WORDS));
        let powers = &mut self.powers;
        powers.iter_mut().for_each(|power| power[..words].fill(0));
        for (plane, by_bit) in self.by_bit.chunks_exact(bits).enumerate() {
            for (power, sum) in powers[plane..].iter_mut().zip(by_bit) {
                add(&mut power[..words], sum);
            }
        }
        for power in (bits..bits + self.place.planes - 1).rev() {
            let (lower, higher) = powers.split_at_mut(power);
            for term in self.field.modulus_terms() {
                add(&mut lower[power - bits + term][..words], &higher[0]);
            }
        }
        let planes = weighted.chunks_exact_mut(BLOCK_WORDS);
        for (plane, power) in planes.zip(powers.iter()) {
            plane[..words].copy_from_slice(&power[..words]);
        }
    }
}

/// Adds to each word of the first.
fn add(sum: &mut [u128], other: &[u128]) {
    sum.iter_mut()
        .zip(other)
        .for_each(|(sum, other)| *sum ^= other);
}

impl Drop for Summation {
    fn drop(&mut self) {
        self.sums.zeroize();
        self.by_bit.zeroize();
        self.powers.zeroize();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transfer::field::elements;
    use aes::Aes128Enc;
    use aes::cipher::{BlockCipherEncrypt, KeyInit};

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
                let place = StreamPlace {
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
                room.all_leaves(&Leaves::all(3, &keys), &mut u, &mut v);
                let correction: Vec<u128> =
                    (0..size as u128).map(|n| (n << 64) | (n * 31)).collect();
                let mut w = v.clone();
                room.all_but_one(
                    &Leaves::all_but_first(3, &relative),
                    delta,
                    &correction,
                    &mut w,
                );
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
