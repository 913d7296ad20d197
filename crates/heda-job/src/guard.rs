//! Where a provider's rules enter: who may have what, and what it costs.
//!
//! The job never touches a budget or a store itself. It asks its [`Guard`]: the daemon's guard
//! keeps a durable ledger and a policy, [`LocalGuard`] is the one for a single process.

mod local;
mod permit;
mod state;

pub use local::{LocalGuard, MemoryLedger};
pub use permit::{Permit, WrongPermit};
pub use state::{Denied, JobState, NoRoom, PrivateAccount};

use crate::proposal::{JobId, Proposal, Split};
use crate::release::ReleaseError;
use crate::rows::RowSeed;
use heda_blocks::stop::StopCode;
use heda_crypto::random::NoRandomness;
use heda_dp::account::{Charge, Exhausted, Receipt};
use heda_dp::gdp::Cost;
use heda_learn::data::Dataset;
use heda_learn::schema::Schema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// A guard says no, and why. The words go to the data user.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// A rule of the guard; the cause says which, and what would do.
    #[error("{0}")]
    Rule(Box<dyn std::error::Error + Send + Sync>),
    /// The budget does not reach.
    #[error(transparent)]
    Budget(#[from] Exhausted),
    /// The budget of private jobs does not reach.
    #[error(
        "this answer would take the privacy budget of these rows beyond its end: {spent:.6} of \
         {limit:.6} are spent; ask the provider for more, or train with what there is"
    )]
    PrivacyExhausted {
        /// Σμ² so far.
        spent: f64,
        /// Its limit.
        limit: f64,
    },
    /// A number that was answered before.
    #[error(
        "answer {number} of this job has left before, and no answer leaves twice; the next one is \
         {next}"
    )]
    Answered {
        /// What was asked for.
        number: u32,
        /// The first that may be.
        next: u32,
    },
    /// An answer was begun too often.
    #[error("an answer of this job was begun {MOST_TRIES} times and never taken; start a new job")]
    Tries,
    /// The data user failed a check that no honest one fails.
    #[error("this job failed a consistency check and has ended; start a new job")]
    Cheated,
    /// A private job came back with another agreement after its first answer.
    #[error("this job has had answers under another agreement of its providers; start a new job")]
    OtherAgreement,
    /// An answer would cost more than the plan that was agreed on.
    #[error("this answer would make the job cost more than its plan; start a new job")]
    BeyondPlan,
    /// A job came back with another proposal.
    #[error("this job was opened with another proposal; start a new job to change it")]
    OtherProposal,
    /// There is no budget at all.
    #[error("this provider has no budget to publish with; encrypt all features")]
    NoBudget,
    /// An ε that would be read from private data.
    #[error("automatic epsilon is read from the data and these are not public; name an epsilon")]
    AutomaticEpsilon,
    /// Something was asked before a job was admitted.
    #[error("no job was admitted in this session")]
    NotAdmitted,
    /// The release could not be made.
    #[error(transparent)]
    Release(#[from] ReleaseError),
    /// The operating system failed the guard.
    #[error(transparent)]
    Randomness(#[from] NoRandomness),
    /// Others have reserved what there is; it may be given back.
    #[error("{0}")]
    Busy(Box<dyn std::error::Error + Send + Sync>),
    /// The guard closes; it will open again.
    #[error("this provider is stopping; resume the job when it is back")]
    Stopping,
    /// The guard cannot write its books.
    #[error(
        "the provider's ledger failed, so nothing may leave; resume when its operator has mended it"
    )]
    LedgerFailed,
}

impl From<Denied> for Refusal {
    fn from(denied: Denied) -> Self {
        match denied {
            Denied::Answered { number, next } => Self::Answered { number, next },
            Denied::Tries => Self::Tries,
            Denied::Cheated => Self::Cheated,
            Denied::OtherAgreement => Self::OtherAgreement,
            Denied::BeyondPlan => Self::BeyondPlan,
        }
    }
}

impl Refusal {
    /// A rule of the guard that says no.
    pub fn rule(cause: impl std::error::Error + Send + Sync + 'static) -> Self {
        Self::Rule(Box::new(cause))
    }

    /// What the data user's program decides by.
    pub fn code(&self) -> StopCode {
        match self {
            Self::Stopping => StopCode::Stopping,
            Self::Busy(_) => StopCode::Busy,
            Self::LedgerFailed => StopCode::StoreFailed,
            Self::Randomness(_) => StopCode::Failed,
            Self::Rule(_)
            | Self::Budget(_)
            | Self::PrivacyExhausted { .. }
            | Self::Answered { .. }
            | Self::Tries
            | Self::Cheated
            | Self::OtherAgreement
            | Self::BeyondPlan
            | Self::OtherProposal
            | Self::NoBudget
            | Self::AutomaticEpsilon
            | Self::NotAdmitted
            | Self::Release(_) => StopCode::Refused,
        }
    }
}

/// How far the books of a guard have come: a data user that keeps this can later tell whether
/// they were lost or replaced since.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LedgerHead {
    /// Which books, hexadecimal; drawn when they are begun.
    pub epoch: String,
    /// Their last entry.
    pub entry: u64,
    /// Hash over all entries up to that one, hexadecimal.
    pub hash: String,
}

impl LedgerHead {
    /// Whether it can be printed and compared: digits of the right number.
    pub(crate) fn is_well_formed(&self) -> bool {
        let digits = |text: &str, length| {
            text.len() == length && text.bytes().all(|b| b.is_ascii_hexdigit())
        };
        digits(&self.epoch, 32) && digits(&self.hash, 64)
    }

    /// Whether these books, seen now, can be those that were seen before.
    pub fn can_follow(&self, before: &Self) -> bool {
        let same = self.hash == before.hash;
        self.epoch == before.epoch
            && (self.entry > before.entry || (self.entry == before.entry && same))
    }
}

/// What a guard gives to an admitted job.
#[derive(Debug, Clone)]
pub struct Admission {
    /// The rows.
    pub data: Arc<Dataset>,
    /// Whose row each one is, by number, if persons and not rows are what private jobs protect.
    pub persons: Option<Arc<[u32]>>,
    /// The schema that encoded them.
    pub schema: Arc<Schema>,
    /// Orders the rows of this job; the same again when the job comes back.
    pub row_seed: RowSeed,
    /// No batch may have fewer rows.
    pub minimum_batch: usize,
    /// No fewer rows may be held out, other than none.
    pub minimum_held_out: usize,
    /// How far its books have come, if it keeps any.
    pub ledger: Option<LedgerHead>,
    /// The first number that was not answered yet.
    pub next_step: u32,
    /// On how many others' noise a private job may count.
    pub trusted_most: u32,
}

/// What a private job was charged, told when it ends.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Charged {
    /// What the job has cost a row.
    pub job: Cost,
    /// ε that further jobs may have, if the provider tells.
    pub left: Option<f64>,
}

/// One answer that is about to leave. What is numbered leaves at most once in the life of the job:
/// numbers only grow, and a number that was recorded is never answered again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// J4: scores of the features.
    Scores,
    /// J5a: exact sums of columns.
    Sums {
        /// How many numbers.
        numbers: u64,
    },
    /// J5a of a private job: one half of what moments may cost.
    Moments {
        /// Its number.
        number: u32,
        /// What it costs a row.
        cost: Cost,
    },
    /// J9: a gradient over training rows.
    Gradient {
        /// Its number.
        number: u32,
        /// What it costs a row, in a private job.
        cost: Option<Cost>,
    },
    /// J10: an evaluation on held-out rows.
    Evaluation {
        /// Its number.
        number: u32,
        /// What it costs a row, in a private job.
        cost: Option<Cost>,
    },
}

impl Step {
    /// Its number, if it has one.
    pub fn number(&self) -> Option<u32> {
        match *self {
            Self::Scores | Self::Sums { .. } => None,
            Self::Moments { number, .. }
            | Self::Gradient { number, .. }
            | Self::Evaluation { number, .. } => Some(number),
        }
    }

    /// What it costs a row, in a private job.
    pub fn cost(&self) -> Option<Cost> {
        match *self {
            Self::Scores | Self::Sums { .. } => None,
            Self::Moments { cost, .. } => Some(cost),
            Self::Gradient { cost, .. } | Self::Evaluation { cost, .. } => cost,
        }
    }
}

/// How often a numbered answer may be begun before it is recorded. What was opened without it is
/// uniform, so an honest data user may begin again after a break; a cheat may guess this often.
pub const MOST_TRIES: u32 = 8;

/// What the parties of a private job agreed on (J3a), as far as numbers and costs of its answers follow from it. It is
/// fixed with the first numbered answer: under another agreement answers would have other numbers, and the same question
/// could be asked again under one of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AgreedPlan {
    /// What all answers of the plan cost a row; the job never pays more.
    pub cost: Cost,
    /// Whether the number of persons is bought.
    pub persons: bool,
}

/// What one private job has paid. A row is trained on or held out, and for as long as the job lives
/// it stays what it is: so the job costs a row the dearer of both, not their sum.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PaidByJob {
    /// For gradients and moments.
    pub training: Cost,
    /// For counts.
    pub counts: Cost,
}

impl PaidByJob {
    /// After one more answer.
    pub fn with(self, step: &Step) -> Self {
        let cost = step.cost().unwrap_or_default();
        match step {
            Step::Evaluation { .. } => Self {
                counts: self.counts.plus(cost),
                ..self
            },
            _ => Self {
                training: self.training.plus(cost),
                ..self
            },
        }
    }

    /// What the job costs any row at most.
    pub fn charged(self) -> Cost {
        self.training.max(self.counts)
    }
}

/// A batch of one row is the row.
pub const SMALLEST_BATCH: usize = 2;

/// A provider's rules.
pub trait Guard: Send + Sync {
    /// Admits a proposal, or refuses it.
    fn admit(&self, proposal: &Proposal) -> Result<Admission, Refusal>;

    /// Agrees to which features are encrypted, published and left out, before anything of them is
    /// sent.
    fn agree_split(&self, job: JobId, split: &Split) -> Result<(), Refusal>;

    /// The release of this job: the stored one if there is one, otherwise `make` is called with
    /// the receipt after the charge has been recorded, and its result is stored and returned.
    fn release(
        &self,
        job: JobId,
        charge: Charge,
        make: &mut dyn FnMut(Receipt) -> Result<Vec<u8>, Refusal>,
    ) -> Result<Vec<u8>, Refusal>;

    /// Sets aside what a private job costs as a whole, when all providers have agreed and before
    /// anything is paid: jobs at once then do not spend each other's budget. The plan's cost includes what
    /// the job has paid already. After the first numbered answer the plan may not change.
    fn reserve(&self, job: JobId, plan: AgreedPlan) -> Result<(), Refusal>;

    /// Called before anything of an answer is computed. Refuses what would be refused later, and a
    /// number that was tried [`MOST_TRIES`] times.
    fn begin(&self, job: JobId, step: &Step) -> Result<(), Refusal>;

    /// Records an answer, what it costs included: durable when this returns, or nothing happened. A
    /// number that was recorded before is refused, and so is an answer of another plan than the one that
    /// was set aside last: `plan` is that of the session.
    fn record(&self, job: JobId, step: &Step, plan: Option<AgreedPlan>) -> Result<(), Refusal>;

    /// Records an answer and gives the right to let it leave.
    fn authorise(
        &self,
        job: JobId,
        step: Step,
        plan: Option<AgreedPlan>,
    ) -> Result<Permit, Refusal> {
        Permit::obtain(self, (job, step), plan)
    }

    /// Ends a job whose data user failed a check that no honest one fails.
    fn end_cheating(&self, job: JobId) -> Result<(), Refusal>;

    /// What a private job was charged.
    fn charged(&self, job: JobId) -> Result<Charged, Refusal>;
}

#[cfg(test)]
mod tests;
