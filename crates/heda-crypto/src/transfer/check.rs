//! The consistency check of a request.
//!
//! Follows Roy 2022, section 4: a random linear map of all rows, masking rows among them, to 128
//! rows. What the chooser has (u, v) and what the sender has (w = v + u·Δ) must be mapped to values
//! in the same relation. If the chooser's columns stand for different u, the relation holds only for
//! guesses at Δ.
//!
//! The map is over F_2, so it may be applied plane by plane. Words of a block are the coefficients of
//! a polynomial over F_{2^128} (POLYVAL of RFC 8452), evaluated at a point that is drawn afresh for
//! every block; blocks are added, and so is the word of masking rows. Two different columns have
//! the same image for at most 30 of 2^128 points.
//!
//! The points come from a hash of the whole request and all that went before it (Fiat–Shamir). The
//! map has 128 rows, where 64 would do with an interactive challenge, because a cheat may try many
//! requests in private.

use super::stream::BLOCK_WORDS;
use crate::wipe::wipe;
use aes::Block;
use polyval::Polyval;
use polyval::universal_hash::UniversalHash;
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

/// What picks the linear map.
pub(super) struct Challenge([u8; 32]);

impl Challenge {
    /// From what went before, and the digests of the request's blocks.
    pub(super) fn new(before: &[u8; 32], blocks: &[[u8; 32]]) -> Self {
        let mut hash = Sha256::new();
        hash.update(b"heda transfer: challenge");
        hash.update(before);
        blocks.iter().for_each(|block| hash.update(block));
        Self(hash.finalize().into())
    }

    /// The hash that everything was drawn from.
    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The map of one block.
    pub(super) fn block(&self, number: usize) -> BlockMap {
        let digest: [u8; 32] = Sha256::new()
            .chain_update(b"heda transfer: point")
            .chain_update(self.0)
            .chain_update((number as u64).to_le_bytes())
            .finalize()
            .into();
        let mut point = [0; 16];
        point.copy_from_slice(&digest[..16]);
        BlockMap(Polyval::new(&point.into()))
    }

    /// The digest that stands for the image of v.
    pub(super) fn seal(&self, image: &[u128]) -> [u8; 32] {
        let mut hash = Sha256::new();
        hash.update(b"heda transfer: answer");
        hash.update(self.0);
        image
            .iter()
            .for_each(|word| hash.update(word.to_le_bytes()));
        hash.finalize().into()
    }
}

/// What planes are mapped to, a word a plane; wiped when it is dropped.
pub(super) type Image = Zeroizing<Vec<u128>>;

/// The part of the linear map that belongs to one block.
pub(super) struct BlockMap(Polyval);

impl BlockMap {
    /// The image of every plane of a block, of which the first `rows` words are rows, and one
    /// more is of masking rows if `masked`. Images of w tell about Δ, those of v about u: they are wiped.
    pub(super) fn image(&self, planes: &[u128], rows: usize, masked: bool) -> Image {
        let mut buffer = [Block::default(); BLOCK_WORDS];
        let image = planes.chunks_exact(BLOCK_WORDS).map(|plane| {
            let mut hash = self.0.clone();
            for (block, word) in buffer.iter_mut().zip(&plane[..rows]) {
                *block = word.to_le_bytes().into();
            }
            hash.update(&buffer[..rows]);
            let mask = if masked { plane[rows] } else { 0 };
            u128::from_le_bytes(hash.finalize().into()) ^ mask
        });
        let image = Zeroizing::new(image.collect());
        wipe(&mut buffer);
        image
    }
}

/// Adds images.
pub(super) fn add(mut a: Image, b: Image) -> Image {
    a.iter_mut().zip(b.iter()).for_each(|(a, b)| *a ^= b);
    a
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_map_is_linear_and_depends_on_all_it_should() {
        let challenge = Challenge::new(&[1; 32], &[[2; 32], [3; 32]]);
        let map = challenge.block(0);
        let plane = |seed: u128| -> Vec<u128> {
            let word = |n: u128| {
                (n + 1)
                    .wrapping_mul(seed)
                    .wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c)
            };
            (0..BLOCK_WORDS as u128).map(word).collect()
        };
        let (a, b) = (plane(3), plane(5));
        let sum: Vec<u128> = a.iter().zip(&b).map(|(a, b)| a ^ b).collect();
        for (rows, masked) in [(30, false), (29, true), (0, true), (7, true), (1, false)] {
            let image = |p: &[u128], map: &BlockMap| map.image(p, rows, masked);
            assert_eq!(image(&sum, &map), add(image(&a, &map), image(&b, &map)));
            let used = rows + usize::from(masked);
            for word in 0..BLOCK_WORDS {
                let mut other = a.clone();
                other[word] ^= 1 << 77;
                assert_eq!(image(&other, &map) == image(&a, &map), word >= used);
            }
            if rows > 0 {
                assert_ne!(image(&a, &map), image(&a, &challenge.block(1)));
                let changed = Challenge::new(&[1; 32], &[[2; 32], [4; 32]]);
                assert_ne!(image(&a, &map), image(&a, &changed.block(0)));
                let earlier = Challenge::new(&[0; 32], &[[2; 32], [3; 32]]);
                assert_ne!(image(&a, &map), image(&a, &earlier.block(0)));
            }
        }
        assert_ne!(challenge.seal(&[1]), challenge.seal(&[2]));
    }
}
