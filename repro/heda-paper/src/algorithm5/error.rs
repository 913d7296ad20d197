//! What can go wrong in engine `paper`.

use super::capacity::CapacityError;
use crate::blocks::BlockError;
use crate::hazmat_rsa::RsaError;
use crate::packing::PackingError;
use crate::paillier::{KeyError, PaillierError};
use heda_blocks::channel::ChannelError;
use heda_crypto::random::NoRandomness;

/// Why a gradient did not come about.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum PaperError {
    /// The job does not fit the keys.
    #[error(transparent)]
    Capacity(#[from] CapacityError),
    /// The coefficients went beyond what was planned for. Nothing was sent.
    #[error(
        "the {what} reaches {found:.1}, and {limit:.1} were planned for; lower the learning rate, \
         raise the penalty, or plan for more"
    )]
    Range {
        /// Which quantity.
        what: &'static str,
        /// Its value.
        found: f64,
        /// The planned limit.
        limit: f64,
    },
    /// A building block stopped.
    #[error(transparent)]
    Block(BlockError),
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
    /// The operating system gave no randomness.
    #[error(transparent)]
    Randomness(#[from] NoRandomness),
    /// Something that no input can cause.
    #[error("internal error in engine paper: {0}")]
    Bug(#[from] PaperDefect),
}

/// What is wrong with the engine itself, or with the program that calls it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PaperDefect {
    /// A thread panicked.
    #[error("a thread panicked")]
    Panicked,
    /// A job needs somebody's rows.
    #[error("there are no providers")]
    NoProviders,
    /// The provider's rows are others than those that were agreed on.
    #[error("the rows do not have the agreed shape")]
    Rows,
    /// Too few or too many published values.
    #[error("the published columns do not fill the rows")]
    Published,
    /// A model or a part of the rows that the job does not have.
    #[error("there is no such class or batch")]
    NoSuchBatch,
    /// Sums of e to some power are never zero.
    #[error("a denominator is zero")]
    ZeroDenominator,
    /// Blindings are drawn from numbers above zero.
    #[error("a blinding is zero")]
    ZeroBlinding,
    /// No key could be made.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// Paillier's cryptosystem was used wrongly.
    #[error(transparent)]
    Paillier(#[from] PaillierError),
    /// RSA was used wrongly.
    #[error(transparent)]
    Rsa(#[from] RsaError),
    /// Numbers do not fit their places.
    #[error(transparent)]
    Packing(#[from] PackingError),
}

impl PaperError {
    /// Whether the peer or the way to it is at fault.
    pub fn blames_peer(&self) -> bool {
        match self {
            Self::Block(error) => error.blames_peer(),
            Self::Channel(_) | Self::Peer { .. } => true,
            Self::Capacity(_) | Self::Range { .. } | Self::Randomness(_) | Self::Bug(_) => false,
        }
    }

    pub(super) fn peer(message: &'static str, reason: impl std::fmt::Display) -> Self {
        let reason = reason.to_string();
        Self::Peer { message, reason }
    }
}

impl From<BlockError> for PaperError {
    fn from(error: BlockError) -> Self {
        match error {
            BlockError::Exponent { value, largest } => Self::Range {
                what: "largest coefficient of an encrypted column",
                found: value.abs(),
                limit: largest,
            },
            other => Self::Block(other),
        }
    }
}

impl From<PaillierError> for PaperError {
    fn from(error: PaillierError) -> Self {
        Self::Bug(error.into())
    }
}

impl From<RsaError> for PaperError {
    fn from(error: RsaError) -> Self {
        Self::Bug(error.into())
    }
}

impl From<PackingError> for PaperError {
    fn from(error: PackingError) -> Self {
        Self::Bug(error.into())
    }
}
