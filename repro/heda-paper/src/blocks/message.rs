//! Vectors of ciphertexts on a channel, and the checks that all blocks share.

use crate::blocks::error::{BlockError, Misuse};
use crate::hazmat_rsa::{RsaCiphertext, RsaPublicKey};
use crate::integer::{Integer, Natural};
use crate::paillier::{Ciphertext, Plaintext, PrivateKey, PublicKey};
use heda_blocks::channel::Channel;
use rand_core::CryptoRng;

/// Tags of the blocks' messages. One block runs at a time, in an order that both sides know.
pub(crate) mod tag {
    pub(crate) const ADDITION: u8 = 0x40;
    pub(crate) const SUBTRACTION: u8 = 0x41;
    pub(crate) const DOT_PRODUCT: u8 = 0x42;
    pub(crate) const MULTIPLICATION: u8 = 0x43;
    pub(crate) const POWER: u8 = 0x44;
    pub(crate) const RSA_BLINDED: u8 = 0x45;
    pub(crate) const RSA_EXCHANGED: u8 = 0x46;
    pub(crate) const KEY_MASKED: u8 = 0x47;
    pub(crate) const KEY_EXCHANGED: u8 = 0x48;
}

/// Public lengths of both parties' inputs: |a| < 2^alice and |b| < 2^bob, for every number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InputBits {
    /// Bits of Alice's numbers.
    pub alice: usize,
    /// Bits of Bob's numbers.
    pub bob: usize,
}

pub(crate) fn send_paillier(
    channel: &mut Channel,
    tag: u8,
    key: &PublicKey,
    ciphertexts: &[Ciphertext],
) -> Result<(), BlockError> {
    Ok(channel.send(tag, &key.encode(ciphertexts)?)?)
}

/// Encrypts one's own numbers and sends them.
pub(crate) fn send_inputs<R: CryptoRng + ?Sized>(
    channel: &mut Channel,
    tag: u8,
    key: &PrivateKey,
    numbers: &[Integer],
    allowed: usize,
    rng: &mut R,
) -> Result<(), BlockError> {
    check_lengths(magnitudes(numbers), allowed)?;
    let encrypted = key.encrypt_batch(&plaintexts(key.public(), numbers)?, rng)?;
    send_paillier(channel, tag, key.public(), &encrypted)
}

pub(crate) fn receive_paillier(
    channel: &mut Channel,
    tag: u8,
    key: &PublicKey,
    count: usize,
    message: &'static str,
) -> Result<Vec<Ciphertext>, BlockError> {
    let limit = key.encoded_length(count).unwrap_or(usize::MAX);
    let body = channel.receive(tag, limit)?;
    key.decode(&body, count)
        .map_err(|e| BlockError::peer(message, e))
}

pub(crate) fn send_rsa(
    channel: &mut Channel,
    tag: u8,
    key: &RsaPublicKey,
    ciphertexts: &[RsaCiphertext],
) -> Result<(), BlockError> {
    Ok(channel.send(tag, &key.encode(ciphertexts)?)?)
}

pub(crate) fn receive_rsa(
    channel: &mut Channel,
    tag: u8,
    key: &RsaPublicKey,
    count: usize,
    message: &'static str,
) -> Result<Vec<RsaCiphertext>, BlockError> {
    let limit = key.encoded_length(count).unwrap_or(usize::MAX);
    let body = channel.receive(tag, limit)?;
    key.decode(&body, count)
        .map_err(|e| BlockError::peer(message, e))
}

/// That a result of so many bits, its sign not counted, stays between −N/2 and N/2.
pub(crate) fn check_paillier(
    block: &'static str,
    key: &PublicKey,
    needed: usize,
) -> Result<(), BlockError> {
    check_room(block, needed, key.bits().saturating_sub(2))
}

/// That a result of so many bits stays below N.
pub(crate) fn check_rsa(
    block: &'static str,
    key: &RsaPublicKey,
    needed: usize,
) -> Result<(), BlockError> {
    check_room(block, needed, key.bits().saturating_sub(1))
}

fn check_room(block: &'static str, needed: usize, available: usize) -> Result<(), BlockError> {
    match needed <= available {
        true => Ok(()),
        false => Err(BlockError::Capacity {
            block,
            needed,
            available,
        }),
    }
}

/// That every own number is as short as was announced.
pub(crate) fn check_lengths<'a>(
    numbers: impl IntoIterator<Item = &'a Natural>,
    allowed: usize,
) -> Result<(), BlockError> {
    for (index, number) in numbers.into_iter().enumerate() {
        let bits = number.bit_length();
        if bits > allowed {
            return Err(BlockError::Input {
                index,
                bits,
                allowed,
            });
        }
    }
    Ok(())
}

/// That two vectors belong together.
pub(crate) fn check_same_length(alice: usize, bob: usize) -> Result<(), BlockError> {
    match alice == bob {
        true => Ok(()),
        false => Err(Misuse::Lengths { alice, bob }.into()),
    }
}

pub(crate) fn magnitudes(numbers: &[Integer]) -> impl Iterator<Item = &Natural> {
    numbers.iter().map(Integer::magnitude)
}

pub(crate) fn plaintexts(
    key: &PublicKey,
    numbers: &[Integer],
) -> Result<Vec<Plaintext>, BlockError> {
    let encode = |number: &Integer| Ok(key.plaintext(number.clone())?);
    numbers.iter().map(encode).collect()
}

/// A vector of one as that one.
pub(crate) fn only<T>(mut vector: Vec<T>) -> Result<T, BlockError> {
    Ok(vector.pop().ok_or(Misuse::Nothing)?)
}
