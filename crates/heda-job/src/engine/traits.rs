//! What every engine offers to the job, and what the job hands to it: one trait for each role.

use super::label_encoding::LabelEncoding;
use super::{Columns, Impossible};
use crate::closing::Closing;
use crate::error::{JobError, ServeError};
use crate::histogram::{Histogram, NoisyCounts};
use crate::parallel::Party;
use crate::plan::JobPlan;
use crate::proposal::Proposal;
use crate::regression_metrics::ErrorSum;
use crate::rounds::{Evaluation, Rounds};
use heda_blocks::channel::Channel;
use heda_crypto::random::Randomness;
use heda_dp::account::Charge;
use heda_learn::data::{Dataset, Feature};
use heda_learn::gradient::{Batch, Gradient};
use heda_learn::private::PrivateRows;
use heda_learn::resident::Resolution;
use heda_learn::scaling::Scaling;

/// What all parties of a job know once the split is agreed on.
#[derive(Clone, Copy)]
pub(crate) struct Terms<'a> {
    pub(crate) proposal: &'a Proposal,
    /// The features that take part, their columns one after the other.
    pub(crate) features: &'a [Feature],
    pub(crate) columns: &'a Columns,
    /// The plan of a private job.
    pub(crate) plan: Option<&'a JobPlan>,
}

impl Terms<'_> {
    /// Gradients of the whole job, over all classes.
    pub(crate) fn gradients(&self) -> u32 {
        let planned = self.plan.map(|plan| plan.plan().all_gradients());
        planned.unwrap_or(self.proposal.job.gradients())
    }

    /// Gradients and evaluations in their order.
    pub(crate) fn rounds(&self) -> Rounds {
        Rounds::of(&self.proposal.job).with_gradients(self.gradients())
    }

    /// Batches that a pass over the rows is cut into, at least one.
    pub(crate) fn batches(&self) -> usize {
        match self.plan {
            Some(plan) => plan.plan().passes().batches() as usize,
            None => self.proposal.job.batches() as usize,
        }
    }
}

/// All providers together have fewer than 2^this rows in a batch, whichever of so many it is.
pub(crate) fn row_bits(batches: usize, rows: impl Iterator<Item = usize>) -> u32 {
    let most: usize = rows.map(|rows| rows.div_ceil(batches.max(1))).sum();
    usize::BITS - most.leading_zeros()
}

/// How many rows one provider brings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Part {
    /// For training.
    pub(crate) rows: usize,
    /// Held out.
    pub(crate) held_out: usize,
}

/// How many rows an engine can take.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// Of one provider, held-out rows among them.
    pub(crate) rows: usize,
    /// Held out by all providers together.
    pub(crate) held_out: usize,
}

/// A provider that takes part, as the data user sees it before the engine takes over.
pub(crate) struct Joined {
    pub(crate) name: String,
    pub(crate) channel: Channel,
    pub(crate) part: Part,
    /// Whether its numbers come from a seed, by its own signed word.
    pub(crate) seeded: bool,
    /// What its release cost, if it published.
    pub(crate) charge: Option<Charge>,
    /// Published columns on the grid, row by row.
    pub(crate) open: Vec<u32>,
}

impl Party for Joined {
    fn name(&self) -> &str {
        &self.name
    }

    fn channel(&mut self) -> &mut Channel {
        &mut self.channel
    }
}

/// A provider's rows of a job, in the job's order.
pub(crate) struct ProviderRows {
    /// Training rows on the grid: hidden columns as they are, published ones as published.
    pub(crate) grid: Vec<u32>,
    /// Class, or number, of every training row.
    pub(crate) labels: Vec<u32>,
    /// Held-out rows on the grid; none of their columns is published.
    pub(crate) held_out_grid: Vec<u32>,
    /// Class, or number, of every held-out row.
    pub(crate) held_out_labels: Vec<u32>,
    /// What the labels are.
    pub(crate) labels_as: LabelEncoding,
    /// Training rows as a private job uses them.
    pub(crate) private: Option<PrivateRows>,
    /// Held-out rows as a private job uses them.
    pub(crate) private_held_out: Option<PrivateRows>,
    /// Where this provider begins with its batches ([`Parties::place`](crate::proposal::Parties::place)).
    pub(crate) place: usize,
}

/// An engine as a whole.
pub(crate) trait Implementation: Sync {
    /// Whether the data user sees gradients only as a sum over all providers.
    fn sums_over_providers(&self) -> bool;

    /// Whether the data user asks for every gradient of the proposal even when it has converged, so
    /// that no provider sees when that was.
    fn asks_for_all(&self) -> bool {
        false
    }

    /// The standard deviation of one row's derivative by rounding, roughly and rather too large; 0
    /// if none is to be expected.
    fn rounding(&self, resolution: Resolution) -> f64;

    /// How many rows it can take.
    fn limits(&self) -> Limits;

    /// Whether one provider's part can be done. Both sides ask before anything is paid for.
    fn check(&self, terms: &Terms<'_>, part: Part) -> Result<(), Impossible>;

    /// Steps J7 and J8 at the data user, with all providers at once. `scaling` is where the
    /// columns lie, as far as that is known, `labels_as` what the labels are.
    fn set_up_user(
        &self,
        terms: &Terms<'_>,
        parties: Vec<Joined>,
        scaling: &Scaling,
        labels_as: &LabelEncoding,
        randomness: &Randomness,
    ) -> Result<Box<dyn UserEngine>, JobError>;

    /// Whether it puts rows on a grid of its own, and so needs them as they are.
    fn rounds_itself(&self) -> bool {
        false
    }

    /// Steps J7 and J8 at a provider. Beside the rows stand those for training as they are, if the
    /// engine needs them.
    fn set_up_provider(
        &self,
        channel: &mut Channel,
        terms: &Terms<'_>,
        rows: (ProviderRows, Option<Dataset>),
        randomness: &Randomness,
    ) -> Result<Box<dyn ProviderEngine>, ServeError>;
}

/// What the data user asks of all providers in one iteration.
#[derive(Debug, Clone, Copy)]
pub(crate) struct GradientAsk<'a> {
    /// The coefficients, bias first.
    pub(crate) beta: &'a [f64],
    /// Index into the proposal's classes.
    pub(crate) class: u32,
    pub(crate) batch: Batch,
    /// Counts up by one over the whole job.
    pub(crate) iteration: u32,
    /// The number of the answer.
    pub(crate) step: u32,
}

/// What the data user asks of all providers in one evaluation.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EvaluationAsk<'a> {
    /// Which one.
    pub(crate) evaluation: Evaluation,
    /// The coefficients, bias first.
    pub(crate) beta: &'a [f64],
    /// The number of the answer.
    pub(crate) step: u32,
}

/// The data user's role once everything is set up.
pub(crate) trait UserEngine {
    /// The summed gradient over all providers (J9).
    fn gradient(&mut self, ask: GradientAsk<'_>) -> Result<Gradient, JobError>;

    /// By what the coefficients of the last gradient were multiplied, so that no score could leave what
    /// the engine can hold: 1 if they fitted.
    fn shrunk(&self) -> f64 {
        1.0
    }

    /// Held-out rows counted by score and class (J10); the decision is where the score is zero.
    fn histogram(&mut self, ask: EvaluationAsk<'_>) -> Result<Histogram, JobError>;

    /// The same for a private job: one of its two answers about a model.
    fn noisy_counts(&mut self, ask: EvaluationAsk<'_>) -> Result<NoisyCounts, JobError>;

    /// Errors on held-out rows with a numeric label, added up by one of the measures (J10).
    fn errors(&mut self, ask: EvaluationAsk<'_>) -> Result<ErrorSum, JobError>;

    /// The channels to all providers, in their order.
    fn channels(&mut self) -> Vec<&mut Channel>;
}

/// A command for a gradient, checked by the job.
#[derive(Debug, Clone, Copy)]
pub(crate) struct GradientQuestion {
    pub(crate) iteration: u32,
    /// Index into the proposal's classes.
    pub(crate) class: u32,
    /// The class that counts as one.
    pub(crate) positive: u32,
    pub(crate) batch: Batch,
    /// All providers together have fewer than 2^`row_bits` rows in the batch, as the data user says;
    /// for the engine to check.
    pub(crate) row_bits: u32,
}

/// A provider's role once everything is set up.
pub(crate) trait ProviderEngine {
    /// Answers one gradient (J9).
    fn gradient(
        &mut self,
        channel: &mut Channel,
        question: GradientQuestion,
        closing: Closing<'_>,
    ) -> Result<(), ServeError>;

    /// Answers one evaluation (J10), each at most once, in order. The number beside it is the class
    /// that counts as one.
    fn count(
        &mut self,
        channel: &mut Channel,
        ask: (Evaluation, u32),
        closing: Closing<'_>,
    ) -> Result<(), ServeError>;
}
