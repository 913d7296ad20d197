//! Random transfers: the sender gets two random keys, the chooser the one of its choice.
//!
//! The extension as it stands: steps 4 to 7 with one group per 128 transfers, and no answer.
//!
//! Messages: chooser → sender: position (8 bytes), then 16 bytes per transfer (rounded up to a
//! multiple of 8 transfers).

use super::OtError;
use super::extension::GROUP;
use super::hash::transfer_tweak;
use super::lookup::{LookupChooser, LookupSender, POSITION_BYTES, RequestLayout};
use rayon::prelude::*;
use std::fmt;
use zeroize::Zeroizing;

/// The sender's two keys of a random transfer.
#[derive(Clone, PartialEq, Eq)]
pub struct KeyPair(Zeroizing<[[u8; 16]; 2]>);

impl KeyPair {
    /// The keys for choice `false` and `true`.
    pub fn keys(&self) -> &[[u8; 16]; 2] {
        &self.0
    }
}

/// The chooser's key of a random transfer.
#[derive(Clone, PartialEq, Eq)]
pub struct ChosenKey(Zeroizing<[u8; 16]>);

impl ChosenKey {
    /// The key.
    pub fn key(&self) -> &[u8; 16] {
        &self.0
    }
}

impl LookupChooser {
    /// Asks for one random transfer per choice.
    pub fn random(&mut self, choices: &[bool]) -> Result<(Vec<u8>, Vec<ChosenKey>), OtError> {
        let layout = RequestLayout::new(choices.len(), 1)?;
        let first_group = self.position.advance(layout.all_groups())?;
        let mut request = vec![0; layout.request_bytes()];
        let (position, strips) = request.split_at_mut(POSITION_BYTES);
        position.copy_from_slice(&first_group.to_le_bytes());
        let mut keys = Zeroizing::new(vec![0; choices.len().next_multiple_of(GROUP)]);
        strips
            .par_chunks_mut(layout.full_strip_bytes())
            .zip(keys.par_chunks_mut(GROUP))
            .zip(choices.par_chunks(GROUP))
            .enumerate()
            .for_each(|(number, ((part, keys), choices))| {
                let strip = layout.strip(first_group, number);
                let bits = choices
                    .iter()
                    .rev()
                    .fold(0, |word, bit| word << 1 | u128::from(*bit));
                self.extension.extend(strip, &[bits], part, keys);
                let first = strip.first_group * GROUP as u64;
                self.hash.hash(keys, |n| transfer_tweak(first + n as u64));
            });
        let chosen = keys[..choices.len()].iter();
        let chosen = chosen.map(|key| ChosenKey(Zeroizing::new(key.to_le_bytes())));
        Ok((request, chosen.collect()))
    }
}

impl LookupSender {
    /// Takes part in `count` random transfers.
    pub fn random(&mut self, request: &[u8], count: usize) -> Result<Vec<KeyPair>, OtError> {
        let layout = RequestLayout::new(count, 1)?;
        let (first_group, strips) = self.accept(layout, request)?;
        let mut words = Zeroizing::new(vec![[0; 2 * GROUP]; count.div_ceil(GROUP)]);
        words
            .par_iter_mut()
            .zip(strips.par_chunks(layout.full_strip_bytes()))
            .enumerate()
            .for_each(|(number, (words, part))| {
                let strip = layout.strip(first_group, number);
                let (zero, one) = words.split_at_mut(GROUP);
                self.extension.extend(strip, part, zero);
                let delta = self.extension.delta();
                one.iter_mut()
                    .zip(zero)
                    .for_each(|(one, zero)| *one = *zero ^ delta);
                let first = strip.first_group * GROUP as u64;
                let tweak = |n| transfer_tweak(first + (n % GROUP) as u64);
                self.hash.hash(words, tweak);
            });
        let pair = |n: usize| {
            let group = &words[n / GROUP];
            let keys = [group[n % GROUP], group[GROUP + n % GROUP]];
            KeyPair(Zeroizing::new(keys.map(u128::to_le_bytes)))
        };
        Ok((0..count).map(pair).collect())
    }
}

impl fmt::Debug for KeyPair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeyPair(secret)")
    }
}

impl fmt::Debug for ChosenKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ChosenKey(secret)")
    }
}
