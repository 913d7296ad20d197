//! From leaves to correlated columns: vector oblivious linear evaluation over a small field.
//!
//! Follows Roy, "SoftSpokenOT: Quieter OT Extension from Small-Field Silent VOLE in the Minicrypt
//! Model" (CRYPTO 2022), section 3. Each leaf x of a tree is the key of a stream r_x. Who has all
//! leaves computes u = Σ r_x and v = Σ x·r_x; who lacks leaf δ computes w = Σ (x − δ)·r_x, in which
//! that leaf does not occur. So w = v + u·δ (signs do not matter in characteristic two).
//!
//! Streams are AES-128 in counter mode. Sums over all x with bit j, for all j together, are formed
//! while the leaves go by, like a counter that carries: two additions a leaf and word.

use super::field::{FieldBits, MAX_BITS, bit_mask};
use aes::cipher::{BlockCipherEncrypt, KeyInit};
use aes::{Aes128Enc, Block};
use zeroize::{Zeroize, Zeroizing};

/// Words of 128 rows in a block. It is what the widest backend of the cipher takes at once.
pub(super) const BLOCK_WORDS: usize = 30;

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

    /// For one plane of a block whose streams begin at `position`: the sum of all streams, and for
    /// each bit j the sum of the streams of all leaves with that bit.
    fn sums(&self, field: FieldBits, position: u64, total: &mut Plane, by_bit: &mut [Plane]) {
        let mut counters = [Block::default(); BLOCK_WORDS];
        for (counter, number) in counters.iter_mut().zip(position..) {
            counter[..8].copy_from_slice(&number.to_le_bytes());
            counter[8..12].copy_from_slice(&self.tree.to_le_bytes());
        }
        let mut stream = [Block::default(); BLOCK_WORDS];
        // At level j a partial sum waits for its neighbour.
        let mut waiting = [[0; BLOCK_WORDS]; MAX_BITS];
        by_bit.iter_mut().for_each(|plane| plane.fill(0));
        let missing = field.elements() - self.ciphers.len();
        for (leaf, cipher) in self.ciphers.iter().enumerate() {
            // Both slices have BLOCK_WORDS blocks.
            let _ = cipher.encrypt_blocks_b2b(&counters, &mut stream);
            for (word, block) in total.iter_mut().zip(&stream) {
                *word = u128::from_le_bytes((*block).into());
            }
            carry(leaf + missing, total, &mut waiting, by_bit);
        }
        waiting.zeroize();
        stream.iter_mut().for_each(|b| b.as_mut_slice().zeroize());
    }
}

/// Adds the stream of leaf number `leaf`. After the last leaf `sum` is the sum of all.
fn carry(leaf: usize, sum: &mut Plane, waiting: &mut [Plane], by_bit: &mut [Plane]) {
    let ones = (leaf.trailing_ones() as usize).min(by_bit.len());
    for (first, odd) in waiting.iter().zip(&mut *by_bit).take(ones) {
        for ((sum, first), odd) in sum.iter_mut().zip(first).zip(odd) {
            *odd ^= *sum;
            *sum ^= first;
        }
    }
    if ones < by_bit.len() {
        waiting[ones] = *sum;
    }
}

/// Where a block lies in the streams.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    /// The first word of the block's first plane in every stream.
    pub(super) position: u64,
    /// Planes of u: one for bits, f for elements of the field.
    pub(super) planes: usize,
}

/// Who has all leaves: u (`planes` planes) and v (f planes) of one tree and block.
pub(super) fn all_leaves(
    leaves: &Leaves,
    field: FieldBits,
    place: Place,
    u: &mut [u128],
    v: &mut [u128],
) {
    fold(leaves, field, place, u, v, |_, _, _| ());
}

/// Who lacks leaf `delta`, and has the others in the order of x ⊕ `delta`: w (f planes) of one tree
/// and block, after the peer's `correction` c (`planes` planes): Σ y·r_y + c·δ.
pub(super) fn all_but_one(
    leaves: &Leaves,
    field: FieldBits,
    place: Place,
    delta: u8,
    correction: &[u128],
    w: &mut [u128],
) {
    let mut unused = Zeroizing::new([0; MAX_BITS * BLOCK_WORDS]);
    let unused = &mut unused[..place.planes * BLOCK_WORDS];
    fold(leaves, field, place, unused, w, |plane, bit, sum| {
        let mask = bit_mask(delta, bit);
        let correction = &correction[plane * BLOCK_WORDS..][..BLOCK_WORDS];
        sum.iter_mut()
            .zip(correction)
            .for_each(|(sum, c)| *sum ^= c & mask);
    });
}

/// Σ_j α^j·(sum of the streams with bit j, after `change(plane, j, sum)`), and the sum of all.
fn fold(
    leaves: &Leaves,
    field: FieldBits,
    place: Place,
    total: &mut [u128],
    weighted: &mut [u128],
    change: impl Fn(usize, usize, &mut Plane),
) {
    let mut by_bit = Zeroizing::new([[[0; BLOCK_WORDS]; MAX_BITS]; MAX_BITS]);
    let mut sum = Zeroizing::new([0; BLOCK_WORDS]);
    for (plane, total) in total.chunks_exact_mut(BLOCK_WORDS).enumerate() {
        let by_bit = &mut by_bit[plane][..field.get()];
        let position = place.position + (plane * BLOCK_WORDS) as u64;
        leaves.sums(field, position, &mut sum, by_bit);
        total.copy_from_slice(&*sum);
        for (bit, sum) in by_bit.iter_mut().enumerate() {
            change(plane, bit, sum);
        }
    }
    weighted.fill(0);
    field.horner(weighted, |bit, planes| {
        let planes = planes.chunks_exact_mut(BLOCK_WORDS).take(place.planes);
        for (plane, by_bit) in planes.zip(by_bit.iter()) {
            plane
                .iter_mut()
                .zip(&by_bit[bit])
                .for_each(|(p, s)| *p ^= s);
        }
    });
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
                };
                let size = planes * BLOCK_WORDS;
                let streams: Vec<_> = keys
                    .iter()
                    .map(|k| read(&stream(*k, 3, 1000, size), BLOCK_WORDS))
                    .collect();
                let (mut u, mut v) = (vec![0; size], vec![0; field.get() * BLOCK_WORDS]);
                all_leaves(&Leaves::new(3, &keys), field, place, &mut u, &mut v);
                let correction: Vec<u128> =
                    (0..size as u128).map(|n| (n << 64) | (n * 31)).collect();
                let mut w = v.clone();
                all_but_one(
                    &Leaves::new(3, &relative),
                    field,
                    place,
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
