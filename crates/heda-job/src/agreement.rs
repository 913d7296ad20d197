//! What all providers of a job must agree on, and the masks that hold them to it.
//!
//! A data user that tells providers different things must not get a sum: noise that one of them
//! counts on would be missing. So a provider hears a message that all must get alike only through
//! [`JobMasks::hear`], which adds its bytes to the masks: they cancel between providers that heard
//! the same from the proposal on, in the same order, and hide everything otherwise. That holds for
//! every message that implements [`FromUser`] and every sum that is masked, also for those that are
//! not written yet. The proposal comes before the masks; providers sign it with their mask keys.

use crate::error::{PeerProblem, ServeError};
use crate::guard::{AgreedPlan, Guard, Permit, Step};
use crate::message::FromUser;
use crate::proposal::JobId;
use heda_blocks::channel::Channel;
use heda_crypto::masking::{MaskingError, Masks};
use zeroize::Zeroizing;

/// A provider's masks, bound to all that it heard, and the plan under which its session answers.
pub(crate) struct JobMasks {
    masks: Masks,
    plan: Option<AgreedPlan>,
}

impl JobMasks {
    /// Masks of providers that signed the same proposal; `announcements` is what they heard next.
    pub(crate) fn new(mut masks: Masks, announcements: &[u8]) -> Self {
        masks.agree(announcements);
        Self { masks, plan: None }
    }

    /// Whether this provider is the only one, so that masks hide nothing.
    pub(crate) fn is_alone(&self) -> bool {
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
    pub(crate) fn set_aside(&mut self, plan: AgreedPlan) {
        self.plan = Some(plan);
    }

    /// The plan of a private job.
    pub(crate) fn plan(&self) -> Option<AgreedPlan> {
        self.plan
    }

    /// The masks of one recorded answer.
    pub(crate) fn stream(
        &mut self,
        permit: &Permit,
        purpose: &str,
        length: usize,
    ) -> Result<Zeroizing<Vec<u64>>, MaskingError> {
        #[cfg(test)]
        tests::DRAWN.with_borrow_mut(|drawn| {
            drawn.push((purpose.to_owned(), permit.round(), *self.masks.agreed()));
        });
        self.masks.stream(purpose, permit.round(), length)
    }
}

/// One answer on its way out: what its last message needs.
pub(crate) struct Closing<'a> {
    pub(crate) guard: &'a dyn Guard,
    pub(crate) job: JobId,
    pub(crate) step: Step,
    pub(crate) masks: &'a mut JobMasks,
}

impl Closing<'_> {
    /// Records the answer durably, and gives the masks of its sum. To be called when everything is
    /// computed: a break before it costs nothing, and after it the answer is spent.
    pub(crate) fn masks(
        self,
        purpose: &str,
        length: usize,
    ) -> Result<Zeroizing<Vec<u64>>, ServeError> {
        let plan = self.masks.plan();
        let permit = self.guard.authorise(self.job, self.step, plan)?;
        let masks = self.masks.stream(&permit, purpose, length);
        masks.map_err(ServeError::defect)
    }

    /// Records an answer that goes out without masks: engine `paper` sums nothing over providers.
    #[cfg(feature = "paper")]
    pub(crate) fn unmasked(self) -> Result<Permit, ServeError> {
        let plan = self.masks.plan();
        Ok(self.guard.authorise(self.job, self.step, plan)?)
    }
}

#[cfg(test)]
mod tests;
#[cfg(test)]
mod weaker;
