//! The plan of a private job as its parties agreed on it.
//!
//! It is derived once in a session, when the agreement is known (J3a): who holds one has a plan that keeps the
//! promise. Numbers of answers, their costs and the noise of each follow from it.

use crate::guard::{AgreedPlan, Step};
use crate::proposal::{Privacy, Proposal};
use crate::rounds::Tally;
use heda_dp::gaussian::Variance;
use heda_learn::private::{PlanError, PrivatePlan};

/// The plan of one private job.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct JobPlan {
    privacy: Privacy,
    plan: PrivatePlan,
    providers: usize,
}

impl JobPlan {
    /// The plan of a proposal with what was agreed on, for rows of so many columns beside the bias;
    /// nothing if the job is exact.
    ///
    /// # Errors
    /// If no plan keeps the promise.
    pub(crate) fn of(proposal: &Proposal, columns: usize) -> Result<Option<Self>, PlanError> {
        let Some(privacy) = proposal.job.privacy() else {
            return Ok(None);
        };
        Ok(Some(Self {
            plan: privacy.plan(columns + 1)?,
            providers: proposal.parties.identities.len(),
            privacy,
        }))
    }

    /// What a guard sets aside for it.
    pub(crate) fn agreed(&self) -> AgreedPlan {
        AgreedPlan {
            cost: self.plan.cost(),
            persons: self.privacy.persons,
        }
    }

    /// The plan itself.
    pub(crate) fn plan(&self) -> &PrivatePlan {
        &self.plan
    }

    /// What was promised.
    pub(crate) fn privacy(&self) -> &Privacy {
        &self.privacy
    }

    /// One half of the moments.
    pub(crate) fn moments(&self, number: u32) -> Step {
        Step::Moments {
            number,
            cost: self.plan.cost_of_moment_answer(),
        }
    }

    /// How many providers add noise.
    pub(crate) fn providers(&self) -> usize {
        self.providers
    }

    /// What each provider adds to every number of a gradient.
    pub(crate) fn gradient_noise(&self) -> Variance {
        self.share(self.plan.variance())
    }

    /// The same of counts.
    pub(crate) fn count_noise(&self, tally: Tally) -> Variance {
        self.share(match tally {
            Tally::Right => self.plan.right_variance(),
            Tally::Table => self.plan.table_variance(),
        })
    }

    /// The same of moments, if they are bought.
    pub(crate) fn moment_noise(&self) -> Option<Variance> {
        self.plan
            .moments_variance()
            .map(|needed| self.share(needed))
    }

    fn share(&self, needed: Variance) -> Variance {
        self.privacy.share(needed, self.providers)
    }
}
