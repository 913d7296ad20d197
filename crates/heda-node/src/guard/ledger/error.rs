//! What goes wrong with a ledger: refusals by budget and limits, and failures of the store.

use super::JobKey;
use super::chain::Counted;
use super::private::Whose;
use crate::guard::policy::provider_set::CIRCLES_MOST;
use crate::identity::fingerprint::PeerFingerprint;
use heda_dp::epsilon::Epsilon;
use heda_dp::gdp::Delta;
use heda_job::guard::{Denied, MOST_TRIES};
use rusqlite::ErrorCode;
use std::path::PathBuf;

/// Why the ledger did not do as asked. Nothing may leave the provider then.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LedgerError {
    /// The file cannot be made or read.
    #[error("the ledger {path}: {cause}")]
    File {
        /// Which file.
        path: PathBuf,
        /// What the system said.
        cause: std::io::Error,
    },
    /// No room on the disk.
    #[error("the disk is full: the ledger could not be written, so nothing was released")]
    DiskFull,
    /// The file or its file system cannot be written.
    #[error(
        "the ledger cannot be written (read-only file or file system), so nothing was released; \
         when it can be written again the provider goes on by itself"
    )]
    ReadOnly,
    /// Another process held the ledger for too long.
    #[error("another process keeps the ledger locked; nothing was released")]
    Locked,
    /// SQLite failed otherwise.
    #[error("the ledger failed: {0}")]
    Sqlite(rusqlite::Error),
    /// Written by a later version of this program.
    #[error("the ledger has version {found}, this program knows {known}; use a newer program")]
    FromTheFuture {
        /// The file's.
        found: u32,
        /// Ours.
        known: u32,
    },
    /// Written by an earlier version of this program, and opened for reading only.
    #[error(
        "the ledger has version {found}, this program writes {known}; `provider check` and \
         `provider serve` bring it up to date"
    )]
    FromThePast {
        /// The file's.
        found: u32,
        /// Ours.
        known: u32,
    },
    /// The ledger is not the one, or not all of the one, that the anchor knows.
    #[error(
        "{0}; nothing is released. Stop the daemon and put the ledger back as it was, or restore \
         the latest backup; then, if entries are missing, run `heda provider begin-anew`"
    )]
    Lost(LedgerLoss),
    /// The anchor outside the store cannot be read or written.
    #[error(
        "the ledger's anchor {path}: {cause}; nothing is released. It must be readable and \
         writable, on a disk with room"
    )]
    Anchor {
        /// Which file.
        path: PathBuf,
        /// What the system said.
        cause: std::io::Error,
    },
    /// What is stored makes no sense.
    #[error("the ledger holds something unreadable: {0}; restore it from a backup")]
    Damaged(String),
    /// The budget does not reach.
    #[error(
        "epsilon {asked} was asked, {spent} of {total} are spent for this data set; nothing was \
         released"
    )]
    Exhausted {
        /// What the release would cost.
        asked: Epsilon,
        /// What is spent.
        spent: String,
        /// What may be spent in all.
        total: Epsilon,
    },
    /// The account of private jobs does not reach.
    #[error(
        "{whose} may cost a row epsilon {total} at delta {delta}; they have cost {spent}, and this \
         would make it {after}; nothing was released"
    )]
    PrivateExhausted {
        /// Whose.
        whose: Whose,
        /// ε so far.
        spent: String,
        /// ε with this.
        after: String,
        /// ε at most.
        total: Epsilon,
        /// δ of all of them.
        delta: Delta,
    },
    /// What is left of the account is set aside for other jobs.
    #[error(
        "{whose} may cost a row epsilon {total} at delta {delta}; with what jobs that run have set \
         aside it is {held}, and this job does not fit beside them; what they do not use is free when \
         they end, at the latest an hour after their last answer"
    )]
    PrivateHeld {
        /// Whose.
        whose: Whose,
        /// ε with what is set aside.
        held: String,
        /// ε at most.
        total: Epsilon,
        /// δ of all of them.
        delta: Delta,
    },
    /// Room that a data user did not use goes to those that waited meanwhile.
    #[error(
        "another data user has waited for the room that this one had set aside and did not use; it \
         comes first"
    )]
    OthersWait,
    /// There is no account of private jobs.
    #[error("this provider has no budget for private jobs")]
    NoPrivateBudget,
    /// An answer that has left before.
    #[error(
        "answer {number} of job {job} has left before, and no answer leaves twice; the next one is \
         {next}"
    )]
    Answered {
        /// Which job.
        job: String,
        /// What was asked for.
        number: u32,
        /// The first that may be.
        next: u32,
    },
    /// An answer was begun too often.
    #[error("an answer of job {0} was begun {MOST_TRIES} times and never taken; start a new job")]
    Tries(String),
    /// A job that was ended because of a failed check.
    #[error("job {0} failed a consistency check and has ended; start a new job")]
    Cheated(String),
    /// A private job came back with another agreement after its first answer.
    #[error("job {0} has had answers under another agreement of its providers; start a new job")]
    OtherAgreement(String),
    /// An answer would cost more than the plan that was agreed on.
    #[error("an answer would make job {0} cost more than its plan; start a new job")]
    BeyondPlan(String),
    /// A job came back with other terms.
    #[error("job {0} was opened on other terms; start a new job to change them")]
    OtherTerms(String),
    /// A job came back with another release.
    #[error("job {0} paid for another release; start a new job to change it")]
    OtherRelease(String),
    /// A job's name that another data user has used. Names are drawn at random: this is no
    /// accident.
    #[error("job {0} belongs to another data user")]
    Taken(String),
    /// A job came back with other providers after something had left.
    #[error(
        "job {0} has had results with other providers, and what one of them contributed would \
         follow from both; wait until all of them are back, then resume"
    )]
    OtherProviders(String),
    /// Jobs whose sums can be subtracted.
    #[error(
        "with the results that this data user has already, a job with these providers would show \
         what {0} alone contributes; take part with the same providers as before, or with at \
         least two more or fewer, or ask the operators for `rosters_may_single_out`"
    )]
    SinglesOut(PeerFingerprint),
    /// Too many different provider sets to keep track of.
    #[error(
        "this data user has trained with {CIRCLES_MOST} different sets of providers, as many as it \
         may; take one of them"
    )]
    TooManyCircles,
    /// The data user has learned what it may, over all of its jobs.
    #[error(
        "this data user has learned {before} numbers of the data set in all of its jobs and would \
         learn {more} more; {most} are allowed (revealed_per_unknown_lifetime_max)"
    )]
    Disclosed {
        /// In all jobs so far.
        before: u64,
        /// Now.
        more: u64,
        /// The limit.
        most: u64,
    },
    /// A job that was never opened, or has finished.
    #[error("job {0} is not open")]
    NotOpen(String),
    /// The job had all that it may have of something.
    #[error("job {job} had {limit} {what}, as many as a job may have")]
    JobLimit {
        /// Of what.
        what: Counted,
        /// Which job.
        job: String,
        /// The limit.
        limit: u64,
    },
    /// Jobs that run have reserved the rest of the day.
    #[error(
        "the job needs room for {need} iterations and evaluations today (UTC), {room} are free; \
         jobs that run have reserved {others}, and what they do not use is free when they end"
    )]
    DayReserved {
        /// What the job would need.
        need: u64,
        /// What is free.
        room: u64,
        /// What others hold.
        others: u64,
    },
    /// The day had all its iterations.
    #[error(
        "the data set had {0} iterations today (UTC), evaluations and rankings included, as many \
         as a day may have"
    )]
    DayIterations(u64),
    /// The folder of a backup cannot be made; one that is there is never overwritten.
    #[error("{path}: {cause}; a backup is made into a new folder")]
    BackupFolder {
        /// Which folder.
        path: PathBuf,
        /// What the system said.
        cause: std::io::Error,
    },
    /// A file cannot be copied into a backup.
    #[error("{path}: {cause}")]
    BackupFile {
        /// Which file.
        path: PathBuf,
        /// What the system said.
        cause: std::io::Error,
    },
}

/// How a ledger was found to be lost or replaced.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LedgerLoss {
    /// No file.
    #[error("the ledger {0} is gone, though something was written there before")]
    Gone(PathBuf),
    /// A file without a chain, where the anchor knows one.
    #[error("the ledger is empty or of an earlier version, though its anchor knows entries")]
    NoChain,
    /// No anchor, where the ledger has a history.
    #[error("the ledger has entries, but its anchor {0} is missing")]
    NoAnchor(PathBuf),
    /// Another ledger.
    #[error("this is another ledger than the one that was used last")]
    OtherEpoch,
    /// Entries are missing at the end.
    #[error("the ledger ends with entry {found}, but entry {known} was written already")]
    Shorter {
        /// The last one in the file.
        found: u64,
        /// The last one that the anchor knows.
        known: u64,
    },
    /// The entry that the anchor knows is another one.
    #[error("entry {0} of the ledger is not the one that was written")]
    OtherEntry(u64),
    /// A hash does not fit.
    #[error("the chain of the ledger is broken at entry {0}")]
    Broken(u64),
    /// The tables do not hold what the entries add up to.
    #[error("budgets and counts in the ledger are not what its entries add up to")]
    Disagrees,
    /// SQLite finds the file damaged.
    #[error("the file of the ledger is damaged ({0})")]
    Damaged(String),
}

impl From<rusqlite::Error> for LedgerError {
    fn from(error: rusqlite::Error) -> Self {
        match error.sqlite_error_code() {
            Some(ErrorCode::DiskFull) => Self::DiskFull,
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Self::Locked,
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
                Self::Lost(LedgerLoss::Damaged(error.to_string()))
            }
            Some(ErrorCode::ReadOnly) => Self::ReadOnly,
            _ => Self::Sqlite(error),
        }
    }
}

impl LedgerError {
    /// What every guard refuses, about this job.
    pub(super) fn denied(denied: Denied, job: &JobKey) -> Self {
        let job = job.id.clone();
        match denied {
            Denied::Answered { number, next } => Self::Answered { job, number, next },
            Denied::Tries => Self::Tries(job),
            Denied::Cheated => Self::Cheated(job),
            Denied::OtherAgreement => Self::OtherAgreement(job),
            Denied::BeyondPlan => Self::BeyondPlan(job),
        }
    }

    /// Whether the same may be possible soon, because jobs that run have set aside what there is.
    pub fn is_for_now(&self) -> bool {
        matches!(
            self,
            Self::DayReserved { .. } | Self::PrivateHeld { .. } | Self::OthersWait
        )
    }

    /// Whether this is a refusal by budget or limits, and not a failure.
    pub fn is_refusal(&self) -> bool {
        matches!(
            self,
            Self::Exhausted { .. }
                | Self::PrivateExhausted { .. }
                | Self::PrivateHeld { .. }
                | Self::OthersWait
                | Self::NoPrivateBudget
                | Self::Answered { .. }
                | Self::Tries(_)
                | Self::Cheated(_)
                | Self::OtherAgreement(_)
                | Self::BeyondPlan(_)
                | Self::OtherTerms(_)
                | Self::OtherRelease(_)
                | Self::Taken(_)
                | Self::OtherProviders(_)
                | Self::SinglesOut(_)
                | Self::TooManyCircles
                | Self::Disclosed { .. }
                | Self::NotOpen(_)
                | Self::JobLimit { .. }
                | Self::DayReserved { .. }
                | Self::DayIterations(_)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rusqlite::ffi;

    #[test]
    fn what_sqlite_says_is_told_by_what_an_operator_can_do() {
        for (code, words) in [
            (ffi::SQLITE_FULL, "the disk is full"),
            (ffi::SQLITE_BUSY, "another process keeps the ledger locked"),
            (ffi::SQLITE_BUSY_SNAPSHOT, "another process keeps"),
            (ffi::SQLITE_LOCKED, "another process keeps"),
            (ffi::SQLITE_CORRUPT, "the file of the ledger is damaged"),
            (ffi::SQLITE_NOTADB, "the file of the ledger is damaged"),
            (ffi::SQLITE_READONLY, "cannot be written (read-only"),
            (ffi::SQLITE_MISUSE, "the ledger failed:"),
        ] {
            let cause = rusqlite::Error::SqliteFailure(ffi::Error::new(code), None);
            let error = LedgerError::from(cause);
            assert!(error.to_string().contains(words), "{code}: {error}");
            assert!(!error.is_refusal() && !error.is_for_now());
        }
    }
}
