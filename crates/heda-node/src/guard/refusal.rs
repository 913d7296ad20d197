//! What a provider does not do for a data user, in words for both sides.

use crate::guard::ledger::LedgerError;
use crate::guard::policy::PolicyRefusal;

/// Why a job, or a step of one, is refused.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JobRefusal {
    /// Another data set.
    #[error("the data set {asked} is asked for, this provider has {offered}")]
    DataSet {
        /// What was asked for.
        asked: String,
        /// What there is.
        offered: String,
    },
    /// The proposal names a party by something that is no key.
    #[error("an identity of the proposal is no key")]
    Identity,
    /// The proposal is for other providers.
    #[error("this provider's key is not among the identities of the proposal")]
    NotAmong,
    /// An ε that would be read from private data.
    #[error("an automatic epsilon is read from the data, which are not public; name an epsilon")]
    AutomaticEpsilon,
    /// There is no budget at all.
    #[error("this provider publishes nothing")]
    PublishesNothing,
    /// A private job, for which there is no budget.
    #[error("this provider has no budget for private jobs")]
    NoPrivateBudget,
    /// A private job that does not fit beside what others have spent or set aside, which is not told.
    #[error(
        "the budget for private jobs on this data set has no room for this job; nothing was released"
    )]
    NoRoom,
    /// The terms of the job cannot be written down.
    #[error("the terms of the job cannot be written down: {0}")]
    Terms(serde_json::Error),
    /// The policy says no.
    #[error(transparent)]
    Policy(#[from] PolicyRefusal),
    /// A budget or a limit of the ledger is reached.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
}
