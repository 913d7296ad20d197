//! The right to let one recorded answer leave a provider.

use super::{AgreedPlan, Guard, Refusal, Step};
use crate::proposal::JobId;

/// Proof that a guard has recorded one answer of one job, with its number and its cost. It cannot be
/// copied, and the sum that it lets out consumes it ([`crate::closing::OpenSum::close`]).
#[derive(Debug, PartialEq, Eq)]
#[must_use = "the answer is recorded and paid for; let it leave"]
pub struct Permit {
    job: JobId,
    step: Step,
}

/// A permit of another answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the permit is for {permitted:?} and not for {asked:?}; nothing left")]
pub struct WrongPermit {
    /// What was recorded.
    pub permitted: Step,
    /// What was to leave.
    pub asked: Step,
}

impl Permit {
    /// Has the answer recorded. There is no other way to a permit.
    pub(super) fn obtain<G: Guard + ?Sized>(
        guard: &G,
        (job, step): (JobId, Step),
        plan: Option<AgreedPlan>,
    ) -> Result<Self, Refusal> {
        guard.record(job, &step, plan)?;
        Ok(Self { job, step })
    }

    /// Uses the permit up, if it is for this answer.
    pub(crate) fn redeem(self, job: JobId, step: Step) -> Result<(), WrongPermit> {
        match self == (Self { job, step }) {
            true => Ok(()),
            false => Err(WrongPermit {
                permitted: self.step,
                asked: step,
            }),
        }
    }

    #[cfg(test)]
    pub(crate) fn of(job: JobId, step: Step) -> Self {
        Self { job, step }
    }
}
