//! What all providers of a job must agree on, and the masks that hold them to it.
//!
//! A data user that tells providers different things must not get a sum: noise that one of them
//! counts on would be missing. So a provider hears a message that all must get alike only through
//! `JobMasks::hear`, which adds its bytes to the masks: they cancel between providers that heard
//! the same from the proposal on, in the same order, and hide everything otherwise. That holds for
//! every message that implements `FromUser` and every sum that is masked, also for those that are
//! not written yet. The proposal comes before the masks; providers sign it with their mask keys.

use crate::error::PeerProblem;
use crate::guard::AgreedPlan;
use crate::message::FromUser;
use heda_blocks::channel::Channel;
use heda_crypto::masking::{MaskingError, Masks};
use zeroize::Zeroizing;

/// A provider's masks, bound to all that it heard, and the plan under which its session answers.
pub struct JobMasks {
    masks: Masks,
    plan: Option<AgreedPlan>,
}

impl JobMasks {
    /// Masks of providers that signed the same proposal; `announcements` is what they heard next.
    pub fn new(mut masks: Masks, announcements: &[u8]) -> Self {
        masks.agree(announcements);
        Self { masks, plan: None }
    }

    /// Whether this provider is the only one, so that masks hide nothing.
    pub fn is_alone(&self) -> bool {
        self.masks.is_alone()
    }

    /// Waits for a message that every provider must get alike.
    pub(crate) fn hear<M: FromUser>(
        &mut self,
        channel: &mut Channel,
        known: M::Known,
    ) -> Result<M, PeerProblem> {
        let bytes = channel.receive(M::TAG, M::limit(known))?;
        self.masks.agree(&[M::TAG]);
        self.masks.agree(&bytes);
        M::decode(&bytes, known).map_err(|e| PeerProblem::message(M::NAME, e))
    }

    /// From here on the session answers under this plan, which the guard has set aside.
    pub fn set_aside(&mut self, plan: AgreedPlan) {
        self.plan = Some(plan);
    }

    /// The plan of a private job.
    pub fn plan(&self) -> Option<AgreedPlan> {
        self.plan
    }

    /// The masks of one answer, for [`crate::closing::OpenSum::close`] alone.
    pub(crate) fn stream(
        &mut self,
        purpose: &str,
        round: u64,
        length: usize,
    ) -> Result<Zeroizing<Vec<u64>>, MaskingError> {
        #[cfg(test)]
        tests::DRAWN.with_borrow_mut(|drawn| {
            drawn.push((purpose.to_owned(), round, *self.masks.agreed()));
        });
        self.masks.stream(purpose, round, length)
    }
}

#[cfg(test)]
pub(crate) mod tests;
#[cfg(test)]
mod weaker;
