//! The hash that makes keys from rows: H_i(x) = E_{K_i}(x) ⊕ x, with a fresh key of AES for every
//! transfer i of a session.
//!
//! Guo, Katz, Wang, Weng, Yu, "Better Concrete Security for Half-Gates Garbling (in the
//! Multi-Instance Setting)" (CRYPTO 2020), on why: under one fixed key every evaluation of the
//! cipher is a guess at all rows at once, so each doubling of the transfers costs a bit. Under a key
//! of its own a row is only hit by guesses made for it. Keys are public; they are a random offset of
//! the session plus the number of the transfer.

use aes::cipher::{BlockCipherEncrypt, KeyInit};
use aes::{Aes128Enc, Block};
use std::mem::ManuallyDrop;
use zeroize::Zeroize;

/// Hashes the rows of one session.
#[derive(Debug, Clone, Copy)]
pub(super) struct RowHash {
    offset: u128,
}

impl RowHash {
    pub(super) fn new(offset: u128) -> Self {
        Self { offset }
    }

    /// Works with the cipher of a transfer. Its key is public, so it is not wiped, which would take
    /// longer than to use it.
    fn with_cipher(&self, transfer: u64, work: impl FnOnce(&Aes128Enc)) {
        let key = self.offset ^ u128::from(transfer);
        let cipher = ManuallyDrop::new(Aes128Enc::new(&key.to_le_bytes().into()));
        work(&cipher);
    }

    /// H of one value.
    pub(super) fn one(&self, transfer: u64, value: u128) -> u128 {
        let mut block = Block::from(value.to_le_bytes());
        self.with_cipher(transfer, |cipher| cipher.encrypt_block(&mut block));
        u128::from_le_bytes(block.into()) ^ value
    }

    /// H of every value.
    pub(super) fn many(&self, transfer: u64, values: &mut Values) {
        self.with_cipher(transfer, |cipher| {
            // Both have the same length.
            let _ = cipher.encrypt_blocks_b2b(&values.inputs, &mut values.hashed);
        });
    }
}

/// Values of one transfer, and what they are hashed to.
pub(super) struct Values {
    inputs: Vec<Block>,
    hashed: Vec<Block>,
}

impl Values {
    pub(super) fn new(count: usize) -> Self {
        Self {
            inputs: vec![Block::default(); count],
            hashed: vec![Block::default(); count],
        }
    }

    /// Puts in what is to be hashed.
    pub(super) fn set(&mut self, values: impl Iterator<Item = u128>) {
        for (block, value) in self.inputs.iter_mut().zip(values) {
            *block = value.to_le_bytes().into();
        }
    }

    /// The lowest bits of what was hashed.
    pub(super) fn low(&self, entries: &mut [u16], mask: u16) {
        let low = |block: &Block| u16::from_le_bytes([block[0], block[1]]);
        let pairs = self.hashed.iter().zip(&self.inputs);
        for (entry, (block, input)) in entries.iter_mut().zip(pairs) {
            *entry = (low(block) ^ low(input)) & mask;
        }
    }

    /// What was hashed.
    pub(super) fn whole(&self, keys: &mut [u128]) {
        let pairs = self.hashed.iter().zip(&self.inputs);
        for (key, (block, input)) in keys.iter_mut().zip(pairs) {
            let word = |block: &Block| u128::from_le_bytes((*block).into());
            *key = word(block) ^ word(input);
        }
    }

    /// All bytes of what was hashed.
    pub(super) fn bytes(&self, out: &mut [u8]) {
        let pairs = self.hashed.iter().zip(&self.inputs);
        for (out, (block, input)) in out.chunks_exact_mut(16).zip(pairs) {
            let word = |block: &Block| u128::from_le_bytes((*block).into());
            out.copy_from_slice(&(word(block) ^ word(input)).to_le_bytes());
        }
    }
}

impl Drop for Values {
    fn drop(&mut self) {
        let blocks = self.inputs.iter_mut().chain(&mut self.hashed);
        blocks.for_each(|block| block.as_mut_slice().zeroize());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_and_many_equal_the_formula() {
        let hash = RowHash::new(0x1111);
        let cipher = Aes128Enc::new(&(0x1111 ^ 5u128).to_le_bytes().into());
        let inputs: Vec<u128> = (0..70).map(|n| n * 0x1234_5678_9abc_def1).collect();
        let mut values = Values::new(70);
        values.set(inputs.iter().copied());
        hash.many(5, &mut values);
        let (mut bytes, mut low) = ([0; 70 * 16], [0; 70]);
        values.bytes(&mut bytes);
        values.low(&mut low, 0x1ff);
        for (n, input) in inputs.iter().enumerate() {
            let mut block = input.to_le_bytes().into();
            cipher.encrypt_block(&mut block);
            let expected = u128::from_le_bytes(block.into()) ^ input;
            assert_eq!(hash.one(5, *input), expected);
            assert_eq!(bytes[n * 16..][..16], expected.to_le_bytes());
            assert_eq!(low[n], expected as u16 & 0x1ff);
            assert_ne!(hash.one(6, *input), expected);
        }
    }
}
