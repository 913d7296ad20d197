//! What can go wrong in a building block, and who is at fault.

use crate::hazmat_rsa::RsaError;
use crate::paillier::PaillierError;
use heda_blocks::channel::ChannelError;

/// Why a building block stopped.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum BlockError {
    /// The peer or the network failed.
    #[error(transparent)]
    Channel(#[from] ChannelError),
    /// The peer sent something that the protocol does not allow.
    #[error("the peer's {message} cannot be used: {reason}")]
    Peer {
        /// Which message.
        message: &'static str,
        /// What is wrong with it.
        reason: String,
    },
    /// An own input is longer than announced.
    #[error("input {index} has {bits} bits, but {allowed} were announced; announce more")]
    Input {
        /// Which input.
        index: usize,
        /// Its length.
        bits: usize,
        /// What was announced.
        allowed: usize,
    },
    /// The result could leave the range of the key.
    #[error(
        "{block} can need {needed} bits and the key has room for {available}; use a longer key \
         or smaller inputs"
    )]
    Capacity {
        /// Which block.
        block: &'static str,
        /// Bits that the result can have.
        needed: usize,
        /// Bits that the key has room for.
        available: usize,
    },
    /// An exponent that the signed digits cannot write.
    #[error("exponent {value} is not within ±{largest}; scale it down")]
    Exponent {
        /// The exponent.
        value: f64,
        /// The largest.
        largest: f64,
    },
    /// A base that is outside the interval that was agreed.
    #[error("base {value} is not within {low} to {high}; agree on a wider interval")]
    Base {
        /// The base.
        value: f64,
        /// Lower end.
        low: f64,
        /// Upper end.
        high: f64,
    },
    /// An interval and a precision whose factors would not be machine words.
    #[error("{fraction_bits} fraction bits on the interval {low} to {high} are not supported")]
    Grid {
        /// Fraction bits of a factor.
        fraction_bits: u32,
        /// Lower end.
        low: f64,
        /// Upper end.
        high: f64,
    },
    /// What the caller gave does not fit together.
    #[error("the caller's numbers, ciphertexts and keys do not fit together: {0}")]
    Misuse(#[from] Misuse),
}

/// How a building block was called wrongly.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Misuse {
    /// A Paillier key or ciphertext that does not belong here.
    #[error(transparent)]
    Paillier(#[from] PaillierError),
    /// An RSA key or ciphertext that does not belong here.
    #[error(transparent)]
    Rsa(#[from] RsaError),
    /// A vector that is longer than announced.
    #[error("a vector of {found} numbers where at most {longest} were announced; announce more")]
    Count {
        /// Its length.
        found: usize,
        /// What was announced.
        longest: usize,
    },
    /// Vectors that do not belong together.
    #[error("{alice} numbers of one party and {bob} of the other; there must be as many")]
    Lengths {
        /// Alice's.
        alice: usize,
        /// Bob's.
        bob: usize,
    },
    /// A blinding that would hide nothing.
    #[error(
        "numbers of {lowest} to {highest} bits cannot be blinded with {blinding} bits; at least \
         {least} are needed"
    )]
    Blinding {
        /// Bits of the smallest number.
        lowest: usize,
        /// Bits of the largest number.
        highest: usize,
        /// Bits of the blinding.
        blinding: usize,
        /// Bits that would do.
        least: usize,
    },
    /// One result was asked for where there is none.
    #[error("a block was called for no number")]
    Nothing,
}

impl BlockError {
    /// Whether the peer or the way to it is at fault, rather than the caller.
    pub fn blames_peer(&self) -> bool {
        matches!(self, Self::Channel(_) | Self::Peer { .. })
    }

    pub(crate) fn peer(message: &'static str, reason: impl std::fmt::Display) -> Self {
        let reason = reason.to_string();
        Self::Peer { message, reason }
    }
}

impl From<PaillierError> for BlockError {
    fn from(error: PaillierError) -> Self {
        Self::Misuse(error.into())
    }
}

impl From<RsaError> for BlockError {
    fn from(error: RsaError) -> Self {
        Self::Misuse(error.into())
    }
}
