//! Where numbers leave a provider: a sum is closed with the permit of its answer, with masks, and in a
//! private job with noise.
//!
//! What a provider adds to a sum goes into an [`OpenSum`], which shows it to nobody. Only
//! [`OpenSum::close`] gives the numbers out. It consumes a [`Permit`], which a guard makes when the
//! answer is recorded, so that nothing leaves that was not paid for, and nothing twice:
//!
//! ```
//! use heda_job::agreement::JobMasks;
//! use heda_job::closing::{ClosingError, NoiseShare, OpenSum};
//! use heda_job::guard::Permit;
//!
//! fn leave(
//!     sum: OpenSum,
//!     permit: Permit,
//!     masks: &mut JobMasks,
//!     noise: NoiseShare,
//! ) -> Result<Vec<u64>, ClosingError> {
//!     sum.close(permit, masks, "gradient", Some(noise))
//! }
//! ```
//!
//! Without a permit the same does not compile:
//!
//! ```compile_fail,E0061
//! use heda_job::agreement::JobMasks;
//! use heda_job::closing::{ClosingError, NoiseShare, OpenSum};
//!
//! fn leave(
//!     sum: OpenSum,
//!     masks: &mut JobMasks,
//!     noise: NoiseShare,
//! ) -> Result<Vec<u64>, ClosingError> {
//!     sum.close(masks, "gradient", Some(noise))
//! }
//! ```
//!
//! Nor does it with a permit that another sum has used up:
//!
//! ```compile_fail,E0382
//! use heda_job::agreement::JobMasks;
//! use heda_job::closing::{ClosingError, NoiseShare, OpenSum};
//! use heda_job::guard::Permit;
//!
//! fn leave(
//!     sums: [OpenSum; 2],
//!     permit: Permit,
//!     masks: &mut JobMasks,
//!     noise: [NoiseShare; 2],
//! ) -> Result<Vec<u64>, ClosingError> {
//!     let ([sum, other], [noise, more]) = (sums, noise);
//!     other.close(permit, masks, "gradient", Some(more))?;
//!     sum.close(permit, masks, "gradient", Some(noise))
//! }
//! ```
//!
//! Nobody makes a permit by hand, although its answer is known:
//!
//! ```compile_fail,E0451
//! use heda_job::guard::{Permit, Step};
//! use heda_job::proposal::JobId;
//!
//! fn forged(job: JobId, step: Step) -> Permit {
//!     Permit { job, step }
//! }
//! ```
//!
//! ```
//! use heda_job::guard::{AgreedPlan, Guard, Permit, Refusal, Step};
//! use heda_job::proposal::JobId;
//!
//! fn granted(
//!     guard: &dyn Guard,
//!     (job, step): (JobId, Step),
//!     plan: AgreedPlan,
//! ) -> Result<Permit, Refusal> {
//!     guard.authorise(job, step, Some(plan))
//! }
//! ```
//!
//! Nobody copies one, and nobody reads an open sum:
//!
//! ```compile_fail,E0599
//! fn copied(permit: &heda_job::guard::Permit) -> heda_job::guard::Permit {
//!     permit.clone()
//! }
//! ```
//!
//! ```compile_fail,E0616
//! fn read(sum: &heda_job::closing::OpenSum) -> u64 {
//!     sum.numbers[0]
//! }
//! ```

use crate::agreement::JobMasks;
use crate::error::ServeError;
use crate::guard::{Guard, Permit, Step, WrongPermit};
use crate::proposal::JobId;
use chacha20::ChaCha20Rng;
use heda_crypto::masking::MaskingError;
use heda_dp::gaussian::{self, Variance};
use heda_learn::private::Passes;
use std::collections::VecDeque;
use zeroize::Zeroizing;

/// A provider's share of one sum over all providers, before it may leave.
pub struct OpenSum {
    job: JobId,
    step: Step,
    /// Modulo 2^64.
    numbers: Zeroizing<Vec<u64>>,
}

/// The sums over earlier batches of a private job, as far as later steps open them again by their bands. None of them
/// leaves as it is: a step's own sum goes in, and what is to be closed comes out.
pub(crate) struct Chain {
    passes: Passes,
    before: VecDeque<(u32, OpenSum)>,
}

impl Chain {
    /// Before the first step of a session. What earlier sessions summed is forgotten by all providers alike.
    pub(crate) fn new(passes: Passes) -> Self {
        let before = VecDeque::new();
        Self { passes, before }
    }

    /// What a step opens, and the earliest step that is in it.
    pub(crate) fn banded(&mut self, iteration: u32, own: OpenSum) -> (OpenSum, u32) {
        let first = self.passes.first_of_chain(iteration);
        self.before
            .retain(|(earlier, _)| (first..iteration).contains(earlier));
        let mut opened = OpenSum::new(own.job, own.step, own.width());
        self.before.push_back((iteration, own));
        for (earlier, sum) in &self.before {
            opened.add_times(sum, self.passes.band(iteration - earlier));
        }
        let earliest = self
            .before
            .front()
            .map_or(iteration, |(earlier, _)| *earlier);
        (opened, earliest)
    }
}

/// The noise that a provider adds to every number of one answer.
pub struct NoiseShare {
    /// How much.
    pub variance: Variance,
    /// Of this answer only: the same noise under another sum would show the difference of both.
    pub rng: ChaCha20Rng,
}

/// Why a sum stays closed in.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClosingError {
    /// The permit lets something else leave.
    #[error(transparent)]
    Permit(#[from] WrongPermit),
    /// Noise without a cost, a cost without noise, or one of both in a job of the other kind.
    #[error("an answer has noise if and only if its job is private; nothing left")]
    Noise,
    /// There are no masks.
    #[error(transparent)]
    Masking(#[from] MaskingError),
}

impl OpenSum {
    /// So many zeros, to which this answer of this job adds up.
    pub fn new(job: JobId, step: Step, width: usize) -> Self {
        Self {
            job,
            step,
            numbers: Zeroizing::new(vec![0; width]),
        }
    }

    /// Adds these, number by number from the first.
    pub fn add(&mut self, numbers: &[u64]) {
        self.add_from(0, numbers);
    }

    /// The same from another number on.
    pub fn add_from(&mut self, first: usize, numbers: &[u64]) {
        for (sum, number) in self.numbers.iter_mut().skip(first).zip(numbers) {
            *sum = sum.wrapping_add(*number);
        }
    }

    /// Adds another sum, so many times.
    fn add_times(&mut self, other: &Self, times: u32) {
        for (sum, number) in self.numbers.iter_mut().zip(other.numbers.iter()) {
            *sum = sum.wrapping_add(number.wrapping_mul(times.into()));
        }
    }

    /// How many numbers it has.
    pub fn width(&self) -> usize {
        self.numbers.len()
    }

    /// The numbers as they may leave, modulo 2^64: with noise, and under masks that add up to zero over
    /// all providers.
    ///
    /// # Errors
    /// If the permit is for another answer, if a private job's answer would leave without noise, or if
    /// its masks were used before.
    pub fn close(
        mut self,
        permit: Permit,
        masks: &mut JobMasks,
        purpose: &str,
        noise: Option<NoiseShare>,
    ) -> Result<Vec<u64>, ClosingError> {
        permit.redeem(self.job, self.step)?;
        let private = [noise.is_some(), self.step.cost().is_some()];
        if private != [masks.plan().is_some(); 2] {
            return Err(ClosingError::Noise);
        }
        // Numbers of answers grow within a session, as rounds must.
        let round = self.step.number().unwrap_or(0).into();
        let masks = masks.stream(purpose, round, self.width())?;
        if let Some(noise) = noise {
            self.add(&noise.draw(self.width()));
        }
        Ok(self.masked(&masks))
    }

    fn masked(mut self, masks: &[u64]) -> Vec<u64> {
        self.add(masks);
        self.numbers.to_vec()
    }
}

#[cfg(test)]
impl OpenSum {
    /// A sum of no job in particular.
    pub(crate) fn of_test(width: usize) -> Self {
        let step = Step::Gradient {
            number: 0,
            cost: None,
        };
        Self::new(JobId([0; 16]), step, width)
    }

    /// What leaves under these masks.
    pub(crate) fn under(self, masks: &[u64]) -> Vec<u64> {
        self.masked(masks)
    }
}

impl NoiseShare {
    /// The noise of so many numbers.
    pub(crate) fn draw(mut self, count: usize) -> Zeroizing<Vec<u64>> {
        let one = |_| gaussian::sample(self.variance, &mut self.rng) as u64;
        Zeroizing::new((0..count).map(one).collect())
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
    /// The sum that is this answer, before anything is added up.
    pub(crate) fn sum(&self, width: usize) -> OpenSum {
        OpenSum::new(self.job, self.step, width)
    }

    /// Records the answer durably, and gives its numbers as they may leave. To be called when everything
    /// is computed: a break before it costs nothing, and after it the answer is spent.
    pub(crate) fn close(
        self,
        sum: OpenSum,
        purpose: &str,
        noise: Option<NoiseShare>,
    ) -> Result<Vec<u64>, ServeError> {
        let plan = self.masks.plan();
        let permit = self.guard.authorise(self.job, self.step, plan)?;
        let closed = sum.close(permit, self.masks, purpose, noise);
        closed.map_err(ServeError::defect)
    }

    /// Records an answer that goes out as it is: one provider's ranking by itself, or an exchange of an
    /// engine that sums nothing over providers.
    pub(crate) fn unmasked<T>(self, answer: T) -> Result<T, ServeError> {
        let plan = self.masks.plan();
        if plan.is_some() {
            return Err(ServeError::defect(ClosingError::Noise));
        }
        let permit = self.guard.authorise(self.job, self.step, plan)?;
        let redeemed = permit.redeem(self.job, self.step);
        redeemed.map_err(ServeError::defect)?;
        Ok(answer)
    }
}

#[cfg(test)]
mod tests;
