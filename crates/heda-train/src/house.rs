//! Where a provider's rules enter: who may have what, and what it costs.
//!
//! The job never touches a budget or a store itself. It asks its [`House`]: the daemon's house
//! keeps a durable ledger and a policy, [`OpenHouse`] is the one for a single process.

use crate::proposal::{JobId, Proposal, Spending, Split};
use crate::release::ReleaseError;
use heda_blocks::stop::StopCode;
use heda_crypto::random::NoRandomness;
use heda_dp::account::{Accountant, Charge, Exhausted, Receipt, Spend};
use heda_dp::gdp::Cost;
use heda_learn::data::Dataset;
use heda_learn::schema::Schema;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use zeroize::Zeroizing;

/// A house says no, and why. The words go to the data user.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// A rule of the house; the cause says which, and what would do.
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
    /// The operating system failed the house.
    #[error(transparent)]
    Randomness(#[from] NoRandomness),
    /// Others have reserved what there is; it may be given back.
    #[error("{0}")]
    Busy(Box<dyn std::error::Error + Send + Sync>),
    /// The house closes; it will open again.
    #[error("this provider is stopping; resume the job when it is back")]
    Stopping,
    /// The house cannot write its books.
    #[error(
        "the provider's ledger failed, so nothing may leave; resume when its operator has mended it"
    )]
    LedgerFailed,
}

impl Refusal {
    /// A rule of the house that says no.
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
            | Self::NoBudget
            | Self::AutomaticEpsilon
            | Self::NotAdmitted
            | Self::Release(_) => StopCode::Refused,
        }
    }
}

/// How far the books of a house have come: a data user that keeps this can later tell whether
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

/// What a house gives to an admitted job.
#[derive(Debug, Clone)]
pub struct Admission {
    /// The rows.
    pub data: Arc<Dataset>,
    /// Whose row each one is, by number, if persons and not rows are what private jobs protect.
    pub persons: Option<Arc<[u32]>>,
    /// The schema that encoded them.
    pub schema: Arc<Schema>,
    /// Orders the rows of this job; the same again when the job comes back.
    pub row_seed: Zeroizing<[u8; 32]>,
    /// No batch may have fewer rows.
    pub minimum_batch: usize,
    /// No fewer rows may be held out, other than none.
    pub minimum_held_out: usize,
    /// How far its books have come, if it keeps any.
    pub ledger: Option<LedgerHead>,
}

/// What a private job pays for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bought {
    /// Means and deviations of columns over the training rows.
    Moments,
    /// A gradient over the training rows.
    Gradient {
        /// Which one.
        iteration: u32,
    },
    /// Counts of the held-out rows.
    Counts {
        /// For which model.
        class: u32,
    },
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
    pub fn with(self, what: Bought, cost: Cost) -> Self {
        match what {
            Bought::Gradient { .. } | Bought::Moments => Self {
                training: self.training.plus(cost),
                ..self
            },
            Bought::Counts { .. } => Self {
                counts: self.counts.plus(cost),
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
pub trait House: Send + Sync {
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

    /// Called before the features are scored: scores are numbers about rows, too.
    fn begin_ranking(&self, job: JobId) -> Result<(), Refusal>;

    /// Called before sums of columns, so many numbers, are computed for the scale of the training.
    fn begin_sums(&self, job: JobId, numbers: u64) -> Result<(), Refusal>;

    /// Called before anything of an iteration is computed.
    fn begin_iteration(&self, job: JobId, iteration: u32) -> Result<(), Refusal>;

    /// Pays for one answer of a private job, durably, before anything of it is computed. What is
    /// asked for again after a break is another answer, with other noise, and is paid for again: the
    /// same noise over other choices would be no noise.
    fn pay(&self, job: JobId, what: Bought, cost: Cost) -> Result<(), Refusal>;

    /// Called before anything of an evaluation on held-out rows is computed.
    fn begin_evaluation(&self, job: JobId, number: u32) -> Result<(), Refusal>;
}

/// A house within one process: an accountant in memory, no policy beyond the smallest batch.
#[derive(Debug)]
pub struct OpenHouse {
    data: Arc<Dataset>,
    schema: Arc<Schema>,
    row_seed: Zeroizing<[u8; 32]>,
    public_data: bool,
    persons: Option<Arc<[u32]>>,
    books: Books,
}

/// Budget and releases of a house within one process. Clones are the same books; without an
/// accountant nothing is released.
#[derive(Debug, Clone, Default)]
pub struct Books(Arc<Mutex<Pages>>);

#[derive(Debug, Default)]
struct Pages {
    accountant: Option<Accountant>,
    private: HashMap<JobId, PaidByJob>,
    private_limit: Option<Cost>,
    releases: HashMap<JobId, Vec<u8>>,
}

impl Pages {
    fn spent_private(&self) -> Cost {
        self.private.values().map(|paid| paid.charged()).sum()
    }
}

impl From<Accountant> for Books {
    fn from(accountant: Accountant) -> Self {
        Self(Arc::new(Mutex::new(Pages {
            accountant: Some(accountant),
            ..Pages::default()
        })))
    }
}

impl Books {
    /// At most so much for private jobs, over all of them.
    pub fn limit_private(&self, limit: Cost) {
        let mut pages = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        pages.private_limit = Some(limit);
    }

    /// What private jobs have cost.
    pub fn spent_private(&self) -> Cost {
        let pages = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        pages.spent_private()
    }
}

impl OpenHouse {
    /// A house for rows encoded by this schema.
    pub fn new(
        data: Arc<Dataset>,
        schema: Arc<Schema>,
        row_seed: Zeroizing<[u8; 32]>,
        books: impl Into<Books>,
    ) -> Self {
        Self {
            data,
            schema,
            row_seed,
            public_data: false,
            persons: None,
            books: books.into(),
        }
    }

    /// States whose row each one is, by number: private jobs then protect the person.
    pub fn of_persons(mut self, persons: impl Into<Arc<[u32]>>) -> Self {
        self.persons = Some(persons.into());
        self
    }

    /// States that the data are public, so that ε may be read from them.
    pub fn of_public_data(mut self) -> Self {
        self.public_data = true;
        self
    }
}

impl House for OpenHouse {
    fn admit(&self, proposal: &Proposal) -> Result<Admission, Refusal> {
        if proposal.spending == Some(Spending::Automatic) && !self.public_data {
            return Err(Refusal::AutomaticEpsilon);
        }
        Ok(Admission {
            data: Arc::clone(&self.data),
            persons: self.persons.clone(),
            schema: Arc::clone(&self.schema),
            row_seed: self.row_seed.clone(),
            minimum_batch: SMALLEST_BATCH,
            minimum_held_out: SMALLEST_BATCH,
            ledger: None,
        })
    }

    fn agree_split(&self, _job: JobId, _split: &Split) -> Result<(), Refusal> {
        Ok(())
    }

    fn release(
        &self,
        job: JobId,
        charge: Charge,
        make: &mut dyn FnMut(Receipt) -> Result<Vec<u8>, Refusal>,
    ) -> Result<Vec<u8>, Refusal> {
        let mut books = self.books.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(stored) = books.releases.get(&job) {
            return Ok(stored.clone());
        }
        let accountant = books.accountant.as_mut().ok_or(Refusal::NoBudget)?;
        let receipt = accountant.spend(charge)?;
        let released = make(receipt)?;
        books.releases.insert(job, released.clone());
        Ok(released)
    }

    fn begin_ranking(&self, _job: JobId) -> Result<(), Refusal> {
        Ok(())
    }

    fn begin_sums(&self, _job: JobId, _numbers: u64) -> Result<(), Refusal> {
        Ok(())
    }

    fn begin_iteration(&self, _job: JobId, _iteration: u32) -> Result<(), Refusal> {
        Ok(())
    }

    fn pay(&self, job: JobId, what: Bought, cost: Cost) -> Result<(), Refusal> {
        let mut books = self.books.0.lock().unwrap_or_else(PoisonError::into_inner);
        let before = books.private.get(&job).copied().unwrap_or_default();
        let after = before.with(what, cost);
        let spent = books.spent_private();
        let more = after.charged().minus(before.charged()).unwrap_or_default();
        let limit = books.private_limit;
        if let Some(limit) = limit.filter(|limit| spent.plus(more) > *limit) {
            return Err(Refusal::PrivacyExhausted {
                spent: spent.squared(),
                limit: limit.squared(),
            });
        }
        books.private.insert(job, after);
        Ok(())
    }

    fn begin_evaluation(&self, _job: JobId, _number: u32) -> Result<(), Refusal> {
        Ok(())
    }
}
