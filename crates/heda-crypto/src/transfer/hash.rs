//! The hash that makes keys from rows: H_i(x) = E_{K_i}(x) ⊕ x, with a fresh key of AES for every
//! transfer i of a session.
//!
//! Guo, Katz, Wang, Weng, Yu, "Better Concrete Security for Half-Gates Garbling (in the
//! Multi-Instance Setting)" (CRYPTO 2020), on why: under one fixed key every evaluation of the
//! cipher is a guess at all rows at once, so each doubling of the transfers costs a bit. Under a key
//! of its own a row is only hit by guesses made for it. Keys are public; they are a random offset of
//! the session plus the number of the transfer.

use crate::cipher;
use std::ops::Range;
use zeroize::Zeroizing;

/// Transfers that are hashed together: as many as have their keys made ready at once.
const TOGETHER: usize = 16;

/// Hashes the rows of one session.
#[derive(Debug, Clone, Copy)]
pub(super) struct RowHash {
    offset: u128,
}

impl RowHash {
    pub(super) fn new(offset: u128) -> Self {
        Self { offset }
    }

    /// What is encrypted for block `block` of a stream under a key of transfer number `transfer`: no
    /// two transfers of a session have one in common, and other sessions have a random offset.
    pub(super) fn counter(&self, transfer: u64, block: u64) -> u128 {
        self.offset ^ u128::from(transfer) ^ u128::from(block) << 64
    }

    /// H of `count` values for each of these transfers of the session. They are numbered from nought here:
    /// `set` puts in what is to be hashed for one, `each` gets what it was hashed to.
    pub(super) fn run(
        &self,
        transfers: Range<u64>,
        count: usize,
        mut set: impl FnMut(usize, &mut [u128]),
        mut each: impl FnMut(usize, &[u128]),
    ) {
        let count = count.max(1);
        let mut inputs = Zeroizing::new(vec![0; TOGETHER * count]);
        let mut hashed = Zeroizing::new(vec![0; TOGETHER * count]);
        let mut keys = [0; TOGETHER];
        let mut first = 0;
        for transfer in transfers.clone().step_by(TOGETHER) {
            let some = ((transfers.end - transfer) as usize).min(TOGETHER);
            for (key, number) in keys.iter_mut().zip(transfer..) {
                *key = self.offset ^ u128::from(number);
            }
            let (inputs, hashed) = (&mut inputs[..some * count], &mut hashed[..some * count]);
            for (number, inputs) in inputs.chunks_exact_mut(count).enumerate() {
                set(first + number, inputs);
            }
            cipher::hash(&keys[..some], count, inputs, hashed);
            for (number, hashed) in hashed.chunks_exact(count).enumerate() {
                each(first + number, hashed);
            }
            first += some;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use aes::Aes128Enc;
    use aes::cipher::{BlockCipherEncrypt, KeyInit};

    #[test]
    fn every_transfer_has_a_key_of_its_own() {
        for (begin, transfers, count) in [(5, 1, 70), (0, 16, 1), (1 << 40, 37, 1), (9, 19, 3)] {
            let hash = RowHash::new(0x1111);
            let input = |transfer: usize, n: usize| {
                (transfer * 100 + n) as u128 * 0x1234_5678_9abc_def1_2222
            };
            let mut seen = 0;
            hash.run(
                begin..begin + transfers,
                count,
                |transfer, inputs| {
                    for (n, word) in inputs.iter_mut().enumerate() {
                        *word = input(transfer, n);
                    }
                },
                |transfer, hashed| {
                    assert_eq!((transfer, hashed.len()), (seen, count));
                    seen += 1;
                    let key = 0x1111 ^ (u128::from(begin) + transfer as u128);
                    let cipher = Aes128Enc::new(&key.to_le_bytes().into());
                    for (n, hashed) in hashed.iter().enumerate() {
                        let input = input(transfer, n);
                        let mut block = input.to_le_bytes().into();
                        cipher.encrypt_block(&mut block);
                        assert_eq!(*hashed, u128::from_le_bytes(block.into()) ^ input);
                    }
                },
            );
            assert_eq!(seen as u64, transfers);
        }
    }

    #[test]
    fn every_block_of_every_transfer_has_a_counter_of_its_own() {
        let hash = RowHash::new(u128::MAX / 3);
        assert_eq!(hash.counter(5, 0), (u128::MAX / 3) ^ 5);
        assert_eq!(hash.counter(0, 5), (u128::MAX / 3) ^ (5 << 64));
        let numbers = (0..40).flat_map(|transfer| (0..20).map(move |block| (transfer, block)));
        let counters = numbers.map(|(transfer, block)| hash.counter(transfer, block));
        let distinct: std::collections::BTreeSet<u128> = counters.collect();
        assert_eq!(distinct.len(), 40 * 20);
    }
}
