//! From 128 base transfers to any number: the extension of Ishai, Kilian, Nissim, Petrank,
//! "Extending Oblivious Transfers Efficiently" (CRYPTO 2003), with the columns expanded from
//! seeds as in Asharov, Lindell, Schneider, Zohner (CCS 2013).
//!
//! Transfers come in groups of 128. For each transfer the chooser ends with a word t and the
//! sender with q = t ⊕ c·Δ, where c is the choice and Δ the sender's secret: a hash of q and of
//! q ⊕ Δ gives the sender's two keys, a hash of t the chooser's one.
//!
//! Column i of a group is masked by a pseudorandom column that the sender cannot compute for the
//! base key it did not choose, so the sender learns nothing about the choices. The columns are
//! AES-128 in counter mode under the base keys, and the counter is the number of the group, so no
//! part of a column is ever used twice.

use super::OtError;
use super::base::Seed;
use crate::transfer::transpose::{SIDE, transpose};
use aes::cipher::{BlockCipherEncrypt, KeyInit};
use aes::{Aes128Enc, Block};
use subtle::{Choice, ConditionallySelectable};
use zeroize::{Zeroize, Zeroizing};

/// Transfers of one group.
pub(super) const GROUP: usize = SIDE;
/// Groups that one session may use: 2^40 transfers.
const MAX_GROUPS: u64 = 1 << 33;
/// Groups that are expanded together; the widest lookup has as many.
const MAX_STRIP: usize = super::MAX_INDEX_BITS as usize;

/// How far a session is, in groups. Both sides count alike.
#[derive(Debug, Default)]
pub(super) struct Position(u64);

impl Position {
    /// The first of `groups` groups that nobody used before.
    pub(super) fn advance(&mut self, groups: usize) -> Result<u64, OtError> {
        let first = self.0;
        let next = first
            .checked_add(groups as u64)
            .filter(|next| *next <= MAX_GROUPS);
        self.0 = next.ok_or(OtError::Exhausted)?;
        Ok(first)
    }

    /// Refuses a request that was made at another position.
    pub(super) fn expect(&self, got: u64) -> Result<(), OtError> {
        match self.0 {
            expected if expected == got => Ok(()),
            expected => Err(OtError::OutOfStep { got, expected }),
        }
    }

    #[cfg(test)]
    pub(super) fn at(groups: u64) -> Self {
        Self(groups)
    }
}

/// A strip of groups within a request: 128 columns, each with `width` bytes of every group.
#[derive(Debug, Clone, Copy)]
pub(super) struct Strip {
    /// Number of the first group in the session.
    pub(super) first_group: u64,
    /// How many groups.
    pub(super) groups: usize,
    /// How many of the 128 transfers of each group are wanted.
    pub(super) used: usize,
}

impl Strip {
    /// Bytes of a group within a column.
    fn width(&self) -> usize {
        self.used.div_ceil(8)
    }
}

/// One pseudorandom word of a column for each group of a strip.
type Words = Zeroizing<[u128; MAX_STRIP]>;

/// Writes the words of the column with this cipher.
fn expand(column: &Aes128Enc, strip: Strip, words: &mut Words) {
    let mut buffer = [Block::default(); MAX_STRIP];
    let blocks = &mut buffer[..strip.groups];
    for (group, block) in (strip.first_group..).zip(blocks.iter_mut()) {
        *block = u128::from(group).to_le_bytes().into();
    }
    column.encrypt_blocks(blocks);
    for (word, block) in words.iter_mut().zip(blocks) {
        *word = u128::from_le_bytes((*block).into());
        block.as_mut_slice().zeroize();
    }
}

/// Turns 128 columns of every group into 128 transfers of every group.
fn transpose_groups(words: &mut [u128]) {
    let (squares, _) = words.as_chunks_mut::<SIDE>();
    squares.iter_mut().for_each(transpose);
}

/// The extension's chooser: it was the base sender and knows both keys of every column.
pub(super) struct ExtensionChooser {
    columns: Vec<[Aes128Enc; 2]>,
}

impl ExtensionChooser {
    pub(super) fn new(seeds: &[[Seed; 2]]) -> Self {
        let cipher = |seed: &Seed| Aes128Enc::new(&(**seed).into());
        let columns = seeds.iter().map(|[zero, one]| [cipher(zero), cipher(one)]);
        Self {
            columns: columns.collect(),
        }
    }

    /// Step 5: for choices (one word per group) the request, and t of every transfer, by group.
    pub(super) fn extend(
        &self,
        strip: Strip,
        choices: &[u128],
        request: &mut [u8],
        t: &mut [u128],
    ) {
        let width = strip.width();
        let (mut zero, mut one) = (Words::default(), Words::default());
        let parts = request.chunks_exact_mut(strip.groups * width);
        for (index, (column, part)) in self.columns.iter().zip(parts).enumerate() {
            expand(&column[0], strip, &mut zero);
            expand(&column[1], strip, &mut one);
            for (group, bytes) in part.chunks_exact_mut(width).enumerate() {
                let sent = zero[group] ^ one[group] ^ choices[group];
                bytes.copy_from_slice(&sent.to_le_bytes()[..width]);
                t[group * SIDE + index] = zero[group];
            }
        }
        transpose_groups(t);
    }
}

/// The extension's sender: it was the base chooser and knows the key of every column that Δ chose.
pub(super) struct ExtensionSender {
    columns: Vec<Aes128Enc>,
    delta: Zeroizing<u128>,
}

impl ExtensionSender {
    pub(super) fn new(seeds: &[Seed], delta: u128) -> Self {
        let columns = seeds.iter().map(|seed| Aes128Enc::new(&(**seed).into()));
        Self {
            columns: columns.collect(),
            delta: delta.into(),
        }
    }

    /// The secret difference between what the two keys of a transfer are hashed from.
    pub(super) fn delta(&self) -> u128 {
        *self.delta
    }

    /// Step 6: q of every transfer, by group, from the strip's part of a request.
    pub(super) fn extend(&self, strip: Strip, request: &[u8], q: &mut [u128]) {
        let width = strip.width();
        let mut own = Words::default();
        let parts = request.chunks_exact(strip.groups * width);
        for (index, (column, part)) in self.columns.iter().zip(parts).enumerate() {
            expand(column, strip, &mut own);
            let bit = Choice::from((self.delta() >> index) as u8 & 1);
            let mask = u128::conditional_select(&0, &u128::MAX, bit);
            for (group, bytes) in part.chunks_exact(width).enumerate() {
                let mut sent = [0; 16];
                sent[..width].copy_from_slice(bytes);
                q[group * SIDE + index] = own[group] ^ u128::from_le_bytes(sent) & mask;
            }
        }
        transpose_groups(q);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_sides_hold_differs_by_choice_times_delta() {
        let seed = |n: usize, b: u8| Seed::new([n as u8 ^ b << 7; 16]);
        let pairs: Vec<_> = (0..128).map(|n| [seed(n, 0), seed(n, 1)]).collect();
        let delta = 0xdead_beef_0bad_cafe_1234_5678_9abc_def1_u128;
        let known = pairs.iter().enumerate();
        let known: Vec<_> = known
            .map(|(n, pair)| pair[(delta >> n & 1) as usize].clone())
            .collect();
        let chooser = ExtensionChooser::new(&pairs);
        let sender = ExtensionSender::new(&known, delta);
        for (groups, used) in [(1, 128), (8, 128), (12, 1), (3, 77)] {
            let strip = Strip {
                first_group: 9,
                groups,
                used,
            };
            let choices: Vec<u128> = (1..=groups as u128)
                .map(|n| ((n * 0x1357_9bdf) << 40) | n)
                .collect();
            let mut request = vec![0; 128 * groups * used.div_ceil(8)];
            let (mut t, mut q) = (vec![0; groups * 128], vec![0; groups * 128]);
            chooser.extend(strip, &choices, &mut request, &mut t);
            sender.extend(strip, &request, &mut q);
            for (group, choices) in choices.iter().enumerate() {
                for n in 0..used {
                    let difference = t[group * 128 + n] ^ q[group * 128 + n];
                    assert_eq!(difference, delta * (choices >> n & 1));
                }
            }
        }
    }

    #[test]
    fn positions_advance_and_end() {
        let mut position = Position::at(MAX_GROUPS - 3);
        assert_eq!(position.advance(2), Ok(MAX_GROUPS - 3));
        assert_eq!(position.advance(2), Err(OtError::Exhausted));
        assert_eq!(position.advance(1), Ok(MAX_GROUPS - 1));
        assert_eq!(position.advance(usize::MAX), Err(OtError::Exhausted));
        assert!(position.expect(0).is_err());
    }
}
