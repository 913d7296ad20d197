//! The noise that each provider adds, as its plan says.

use crate::closing::NoiseShare;
use crate::engine::Terms;
use crate::plan::JobPlan;
use crate::rounds::Tally;
use chacha20::ChaCha20Rng;
use heda_dp::gaussian::Variance;

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

impl Noise {
    fn of(plan: &JobPlan, share: Variance) -> Self {
        let providers = plan.providers() as u64;
        Self { share, providers }
    }
}

pub(super) fn noise(terms: &Terms<'_>) -> Option<Noise> {
    let plan = terms.plan?;
    Some(Noise::of(plan, plan.gradient_noise()))
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

pub(super) fn count_noise(terms: &Terms<'_>) -> Option<CountNoise> {
    let plan = terms.plan?;
    let noise = |tally| Noise::of(plan, plan.count_noise(tally));
    Some(CountNoise {
        right: noise(Tally::Right),
        table: noise(Tally::Table),
    })
}
