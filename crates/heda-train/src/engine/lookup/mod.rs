//! Engine `lookup`: masked scores, an oblivious table, a masked gradient.
//!
//! What it computes: Σ_i loss'(z_i, y_i)·(1, x_i) over a batch of everybody's rows, exactly as
//! `heda_learn::fixed` does it in clear. Steps G1 to G7 and E1 to E6 of `docs/protocols.md`.
//!
//! Who learns what: the provider nothing but which batch and class is asked for; the data user
//! the sum over all providers. See `docs/threat-model.md`.

#[cfg(test)]
mod attack_tests;
mod capacity;
mod evaluate;
mod provider;
mod setup;
#[cfg(test)]
pub(crate) mod tests;
mod user;
#[cfg(test)]
mod view_tests;

pub(crate) use capacity::check_held_out;
pub(crate) use provider::LookupProvider;
pub(crate) use setup::Encrypted;
pub(crate) use user::{LookupUser, Remote};

use super::{
    Implementation, Impossible, Joined, Limits, Part, ProviderEngine, ProviderRows, Terms,
    UserEngine,
};
use crate::error::{JobError, ServeError};
use heda_blocks::channel::Channel;
use heda_blocks::lookup::WORD_BYTES;
use heda_crypto::lattice::ROW_LIMIT;
use heda_crypto::masking::{MASK_BITS, Masks};
use heda_crypto::random::Randomness;
use heda_learn::fixed::RING;

/// The engine.
pub(crate) struct Lookup;

/// How many rows it can take.
pub(crate) const LIMITS: Limits = Limits {
    rows: ROW_LIMIT,
    held_out: evaluate::HELD_OUT_LIMIT,
};

impl Implementation for Lookup {
    fn sums_over_providers(&self) -> bool {
        true
    }

    fn limits(&self) -> Limits {
        LIMITS
    }

    fn check(&self, terms: &Terms<'_>, part: Part) -> Result<(), Impossible> {
        capacity::check_training(terms, part)?;
        check_held_out(terms, part)
    }

    fn set_up_user(
        &self,
        terms: &Terms<'_>,
        parties: Vec<Joined>,
        randomness: &Randomness,
    ) -> Result<Box<dyn UserEngine>, JobError> {
        let user = LookupUser::set_up(terms, parties, Encrypted::All, randomness)?;
        Ok(Box::new(user))
    }

    fn set_up_provider(
        &self,
        channel: &mut Channel,
        terms: &Terms<'_>,
        rows: ProviderRows,
        masks: Masks,
        randomness: &Randomness,
    ) -> Result<Box<dyn ProviderEngine>, ServeError> {
        let encrypted = Encrypted::All;
        let provider = LookupProvider::set_up(channel, terms, rows, masks, encrypted, randomness)?;
        Ok(Box::new(provider))
    }
}

/// Tags of this engine's messages, in wire order.
pub(crate) mod tag {
    /// J7: the provider's public key.
    pub(crate) const PUBLIC_KEY: u8 = 0x08;
    /// J7: encrypted rows, a batch each, then the held-out rows and their labels.
    pub(crate) const MATRIX: u8 = 0x09;
    /// G2, E1: encrypted masked scores.
    pub(crate) const SCORES: u8 = 0x21;
    /// G5, E4: encrypted cross terms.
    pub(crate) const SUMS: u8 = 0x24;
    /// G6: the gradient under the aggregation mask.
    pub(crate) const GRADIENT: u8 = 0x25;
    /// E5: the histogram under the aggregation mask.
    pub(crate) const COUNTS: u8 = 0x26;
}

// Masks and looked-up words are elements of the same ring.
const _: () = assert!(RING.bits() == MASK_BITS && RING.encoded_length(1) == WORD_BYTES);

/// Purposes of aggregation masks.
const GRADIENT_MASK: &str = "lookup gradient";
const COUNTS_MASK: &str = "lookup counts";
