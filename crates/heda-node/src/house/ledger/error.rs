//! What goes wrong with a ledger: refusals by budget and limits, and failures of the store.

use heda_dp::epsilon::Epsilon;
use rusqlite::ErrorCode;
use std::path::PathBuf;

/// Why the ledger did not do as asked. Nothing may leave the house then.
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
    /// A job that was never opened, or has finished.
    #[error("job {0} is not open")]
    NotOpen(String),
    /// The job had all its iterations.
    #[error("job {job} had {limit} iterations, as many as a job may have")]
    JobIterations {
        /// Which job.
        job: String,
        /// The limit.
        limit: u64,
    },
    /// The job had all its evaluations.
    #[error("job {job} had {limit} evaluations on held-out rows, as many as it may have")]
    JobEvaluations {
        /// Which job.
        job: String,
        /// The limit.
        limit: u64,
    },
    /// The day had all its iterations.
    #[error(
        "the data set had {0} iterations today (UTC), evaluations included, as many as a day may \
         have"
    )]
    DayIterations(u64),
}

impl From<rusqlite::Error> for LedgerError {
    fn from(error: rusqlite::Error) -> Self {
        match error.sqlite_error_code() {
            Some(ErrorCode::DiskFull) => Self::DiskFull,
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Self::Locked,
            _ => Self::Sqlite(error),
        }
    }
}

impl LedgerError {
    /// Whether this is a refusal by budget or limits, and not a failure.
    pub fn is_refusal(&self) -> bool {
        matches!(
            self,
            Self::Exhausted { .. }
                | Self::OtherTerms(_)
                | Self::OtherRelease(_)
                | Self::Taken(_)
                | Self::NotOpen(_)
                | Self::JobIterations { .. }
                | Self::JobEvaluations { .. }
                | Self::DayIterations(_)
        )
    }
}
