//! The noise that each provider adds, as its plan says.

use crate::closing::NoiseShare;
use crate::engine::Terms;
use crate::rounds::Tally;
use chacha20::ChaCha20Rng;
use heda_dp::gaussian::Variance;
use heda_learn::private::PlanError;

/// The noise of a private job.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Noise {
    /// What each provider adds to every number.
    pub(super) share: Variance,
    pub(super) providers: u64,
}

impl Noise {
    /// Of the noise of all providers together.
    pub(super) fn deviation(&self) -> f64 {
        (self.share.get() as f64 * self.providers as f64).sqrt()
    }

    /// Bits of the noise of all providers together, but for a chance below 2^-180 a number.
    pub(super) fn bits(&self) -> u32 {
        (16.0 * self.deviation()).log2().ceil() as u32
    }

    /// What one provider adds to one answer, for which these numbers are.
    pub(super) fn of_answer(&self, rng: ChaCha20Rng) -> NoiseShare {
        let variance = self.share;
        NoiseShare { variance, rng }
    }
}

pub(super) fn noise(terms: &Terms<'_>) -> Result<Option<Noise>, PlanError> {
    let (Some(privacy), Some(plan)) = (terms.proposal.job.privacy(), terms.plan()?) else {
        return Ok(None);
    };
    let providers = terms.proposal.parties.identities.len();
    let share = privacy.share(plan.variance(), providers);
    Ok(Some(Noise {
        share,
        providers: providers as u64,
    }))
}

/// The noise of a private job's counts.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct CountNoise {
    pub(super) right: Noise,
    pub(super) table: Noise,
}

impl CountNoise {
    pub(super) fn of(&self, tally: Tally) -> &Noise {
        match tally {
            Tally::Right => &self.right,
            Tally::Table => &self.table,
        }
    }
}

pub(super) fn count_noise(terms: &Terms<'_>) -> Result<Option<CountNoise>, PlanError> {
    let (Some(privacy), Some(plan)) = (terms.proposal.job.privacy(), terms.plan()?) else {
        return Ok(None);
    };
    let providers = terms.proposal.parties.identities.len();
    let noise = |variance: Variance| Noise {
        share: privacy.share(variance, providers),
        providers: providers as u64,
    };
    Ok(Some(CountNoise {
        right: noise(plan.right_variance()),
        table: noise(plan.table_variance()),
    }))
}
