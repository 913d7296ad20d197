//! The hash that breaks correlations: TMMO of Guo, Katz, Wang, Yu, "Efficient and Secure
//! Multiparty Computation from Fixed-Key Block Ciphers" (IEEE S&P 2020).
//!
//! H(x, i) = π(π(x) ⊕ i) ⊕ π(x), where π is AES-128 under a fixed public key. In the model where
//! π is a random permutation, H is tweakable circular correlation robust: for a secret uniform R,
//! the values H(w ⊕ R, i) look like those of a random function of (w, i). That is what both users
//! of it here need. The single-call π(x) ⊕ x has no tweak, so it is not used.

use aes::cipher::{BlockCipherEncrypt, KeyInit};
use aes::{Aes128Enc, Block};
use sha2::{Digest, Sha256};
use zeroize::Zeroize;

/// Blocks that go through the cipher together, so that its pipeline is full.
const BATCH: usize = 32;

/// TMMO with the project's fixed key.
pub(super) struct TweakableHash {
    permutation: Aes128Enc,
}

impl TweakableHash {
    /// The key is public and not chosen by anyone: the beginning of a hash of a name.
    pub(super) fn new() -> Self {
        let digest = Sha256::digest(b"heda oblivious transfer: fixed key of TMMO");
        let mut key = [0; 16];
        key.copy_from_slice(&digest[..16]);
        Self {
            permutation: Aes128Enc::new(&key.into()),
        }
    }

    /// Replaces the value x at place n by H(x, tweak(n)).
    pub(super) fn hash(&self, values: &mut [u128], tweak: impl Fn(usize) -> u128) {
        let mut buffer = [Block::default(); BATCH];
        for (number, batch) in values.chunks_mut(BATCH).enumerate() {
            let blocks = &mut buffer[..batch.len()];
            for (block, value) in blocks.iter_mut().zip(batch.iter()) {
                *block = value.to_le_bytes().into();
            }
            self.permutation.encrypt_blocks(blocks);
            for (n, (block, value)) in blocks.iter_mut().zip(batch.iter_mut()).enumerate() {
                *value = u128::from_le_bytes((*block).into());
                *block = (*value ^ tweak(number * BATCH + n)).to_le_bytes().into();
            }
            self.permutation.encrypt_blocks(blocks);
            for (block, value) in blocks.iter().zip(batch.iter_mut()) {
                *value ^= u128::from_le_bytes((*block).into());
            }
        }
        buffer
            .iter_mut()
            .for_each(|block| block.as_mut_slice().zeroize());
    }
}

/// Tweak of one extended transfer, by its number in the session.
pub(super) fn transfer_tweak(transfer: u64) -> u128 {
    1 << 120 | u128::from(transfer)
}

/// Tweak of one entry of one table; `transfer` is the first transfer of its row.
pub(super) fn entry_tweak(transfer: u64, entry: usize) -> u128 {
    2 << 120 | u128::from(transfer) << 16 | entry as u128
}

#[cfg(test)]
mod tests {
    use super::*;
    use aes::Aes128;

    #[test]
    fn equals_the_formula_for_any_number_of_values() {
        let hash = TweakableHash::new();
        let digest = Sha256::digest(b"heda oblivious transfer: fixed key of TMMO");
        let cipher = Aes128::new_from_slice(&digest[..16]).unwrap();
        let pi = |x: u128| {
            let mut block = x.to_le_bytes().into();
            cipher.encrypt_block(&mut block);
            u128::from_le_bytes(block.into())
        };
        for count in [0, 1, 31, 32, 33, 100] {
            let inputs: Vec<u128> = (0..count).map(|n| n * n * 0x1234_5678_9abc).collect();
            let mut hashed = inputs.clone();
            hash.hash(&mut hashed, |n| transfer_tweak(n as u64 / 2));
            for (n, (input, output)) in inputs.iter().zip(&hashed).enumerate() {
                let inner = pi(*input);
                let expected = pi(inner ^ transfer_tweak(n as u64 / 2)) ^ inner;
                assert_eq!(*output, expected);
            }
        }
    }

    #[test]
    fn tweaks_of_different_uses_differ() {
        let last = u64::MAX >> 8;
        let tweaks = [
            transfer_tweak(0),
            transfer_tweak(last),
            entry_tweak(0, 0),
            entry_tweak(0, 4095),
            entry_tweak(1, 0),
            entry_tweak(last, 4095),
        ];
        let distinct: std::collections::BTreeSet<_> = tweaks.iter().collect();
        assert_eq!(distinct.len(), tweaks.len());
    }
}
