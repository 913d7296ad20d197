//! The provider's ledger: every job, release and refusal, written durably before anything leaves.
//!
//! One SQLite file in write-ahead mode with full synchronisation. Every change is one IMMEDIATE
//! transaction, so that budgets hold across threads and processes, and across a crash at any
//! moment. A release is paid for first; its content is stored before it is sent, and the same job
//! gets the same content again without paying twice.

mod account;
mod error;
mod report;
mod schema;
#[cfg(test)]
mod tests;

pub use account::{JobBudget, Purchase};
pub use error::LedgerError;
pub use report::{
    BudgetReport, JobReport, LedgerReader, RefusalReport, ReleaseReport, StatusReport,
};
pub use schema::LEDGER_VERSION;

use crate::identity::fingerprint::PeerFingerprint;
use crate::system::clock::{Clock, Day, Timestamp};
use crate::system::files;
use rusqlite::{
    Connection, OpenFlags, OptionalExtension, Transaction, TransactionBehavior, params,
};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Which job of which data user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobKey {
    /// The data user.
    pub peer: PeerFingerprint,
    /// The job's name, chosen by the data user.
    pub id: String,
}

/// What a job is about, agreed when it is opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobTerms {
    /// What the configuration calls the data user.
    pub label: String,
    /// The data set whose budget it uses.
    pub data_set: String,
    /// The engine.
    pub engine: String,
    /// The whole request, as text: a job that comes back must bring the same.
    pub request: String,
}

/// Limits on iterations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IterationLimits {
    /// In one job.
    pub per_job: u64,
    /// On one data set and day.
    pub per_day: u64,
}

/// Limits on evaluations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EvaluationLimits {
    /// In one job.
    pub per_job: u64,
    /// Of iterations and evaluations together, on one data set and day.
    pub per_day: u64,
}

/// The ledger, open for writing.
#[derive(Debug)]
pub struct Ledger {
    connection: Mutex<Connection>,
    clock: Arc<dyn Clock>,
}

/// How long to wait for another process that writes.
const LOCK_PATIENCE: Duration = Duration::from_secs(30);

impl Ledger {
    /// Opens the ledger, makes it if it is not there, and brings it to the current version.
    pub fn open(path: &Path, clock: Arc<dyn Clock>) -> Result<Self, LedgerError> {
        let file = |cause| LedgerError::File {
            path: path.to_owned(),
            cause,
        };
        // Made by us first, so that nobody else can ever read it; SQLite gives the files beside
        // it the same permissions.
        match files::create_secret(path, b"") {
            Err(e) if e.kind() != std::io::ErrorKind::AlreadyExists => return Err(file(e)),
            _ => {}
        }
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let mut connection = Connection::open_with_flags(path, flags)?;
        connection.busy_timeout(LOCK_PATIENCE)?;
        connection.pragma_update(None, "journal_mode", "WAL")?;
        connection.pragma_update(None, "synchronous", "FULL")?;
        connection.pragma_update(None, "foreign_keys", "ON")?;
        schema::migrate(&mut connection)?;
        Ok(Self {
            connection: Mutex::new(connection),
            clock,
        })
    }

    fn connection(&self) -> MutexGuard<'_, Connection> {
        // A panic elsewhere rolled its transaction back: the connection is sound.
        self.connection
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs one change: all of it is durable when this returns, or nothing of it happened.
    fn change<T>(
        &self,
        work: impl FnOnce(&Transaction<'_>, Timestamp) -> Result<T, LedgerError>,
    ) -> Result<T, LedgerError> {
        let mut connection = self.connection();
        let change = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let now = advance_clock(&change, self.clock.now())?;
        let result = work(&change, now)?;
        change.commit()?;
        Ok(result)
    }

    /// Opens a job, or finds it open on the same terms. Returns the iterations it has had.
    pub fn open_job(&self, job: &JobKey, terms: &JobTerms) -> Result<u64, LedgerError> {
        self.change(|change, now| {
            let known: Option<(String, u64)> = change
                .query_row(
                    "SELECT terms, iterations FROM jobs WHERE peer = ?1 AND id = ?2",
                    params![job.peer.to_string(), job.id],
                    |row| Ok((row.get(0)?, row.get(1)?)),
                )
                .optional()?;
            match known {
                Some((request, _)) if request != terms.request => {
                    Err(LedgerError::OtherTerms(job.id.clone()))
                }
                Some((_, iterations)) => Ok(iterations),
                None if taken(change, job)? => Err(LedgerError::Taken(job.id.clone())),
                None => insert_job(change, job, terms, now).map(|()| 0),
            }
        })
    }

    /// Counts an iteration whose result is about to leave.
    pub fn count_iteration(
        &self,
        job: &JobKey,
        data_set: &str,
        limits: IterationLimits,
    ) -> Result<u64, LedgerError> {
        self.change(|change, now| {
            let in_job: Option<u64> = change
                .query_row(
                    "UPDATE jobs SET iterations = iterations + 1
                     WHERE peer = ?1 AND id = ?2 AND state = 'open' RETURNING iterations",
                    params![job.peer.to_string(), job.id],
                    |row| row.get(0),
                )
                .optional()?;
            let in_job = in_job.ok_or_else(|| LedgerError::NotOpen(job.id.clone()))?;
            if in_job > limits.per_job {
                return Err(LedgerError::JobIterations {
                    job: job.id.clone(),
                    limit: limits.per_job,
                });
            }
            count_in_day(change, now, data_set, limits.per_day)?;
            Ok(in_job)
        })
    }

    /// Counts an evaluation whose result is about to leave; also after the job has finished, for
    /// a data user that lost the result. For the day it is one more iteration: otherwise new jobs
    /// would bring as many evaluations as anyone likes.
    pub fn count_evaluation(
        &self,
        job: &JobKey,
        data_set: &str,
        limits: EvaluationLimits,
    ) -> Result<(), LedgerError> {
        self.change(|change, now| {
            let count: Option<u64> = change
                .query_row(
                    "UPDATE jobs SET evaluations = evaluations + 1
                     WHERE peer = ?1 AND id = ?2 RETURNING evaluations",
                    params![job.peer.to_string(), job.id],
                    |row| row.get(0),
                )
                .optional()?;
            let count = count.ok_or_else(|| LedgerError::NotOpen(job.id.clone()))?;
            if count > limits.per_job {
                let (job, limit) = (job.id.clone(), limits.per_job);
                return Err(LedgerError::JobEvaluations { job, limit });
            }
            count_in_day(change, now, data_set, limits.per_day)
        })
    }

    /// Notes that a job came to its end.
    pub fn finish_job(&self, job: &JobKey) -> Result<(), LedgerError> {
        self.change(|change, now| {
            change.execute(
                "UPDATE jobs SET state = 'finished', ended = ?3 WHERE peer = ?1 AND id = ?2",
                params![job.peer.to_string(), job.id, now.0],
            )?;
            Ok(())
        })
    }

    /// Notes that something was refused, and why.
    pub fn refuse(&self, job: &JobKey, label: &str, reason: &str) -> Result<(), LedgerError> {
        // Part of it may be the data user's words: they stay on their line.
        let plain = |c: char| if c.is_control() { ' ' } else { c };
        let reason: String = reason.chars().take(2000).map(plain).collect();
        self.change(|change, now| {
            change.execute(
                "INSERT INTO refusals (at, peer, label, job, reason) VALUES (?1, ?2, ?3, ?4, ?5)",
                params![now.0, job.peer.to_string(), label, job.id, reason],
            )?;
            Ok(())
        })
    }

    /// The day that limits count by: today, or the latest day ever seen if the clock went back.
    pub fn today(&self) -> Result<Day, LedgerError> {
        Ok(latest(&self.connection(), self.clock.now())?.day())
    }

    /// Writes something that changes nothing, to see whether writing works.
    pub fn try_writing(&self) -> Result<(), LedgerError> {
        let mut connection = self.connection();
        let change = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        change.execute("UPDATE clock SET seen = seen", [])?;
        Ok(change.commit()?)
    }

    /// Whether something has left for a job that may come back: a finished one may be evaluated
    /// again.
    pub fn has_begun_jobs(&self) -> Result<bool, LedgerError> {
        let begun = "SELECT EXISTS (SELECT 1 FROM jobs WHERE iterations > 0)
                     OR EXISTS (SELECT 1 FROM releases)";
        Ok(self.connection().query_row(begun, [], |row| row.get(0))?)
    }
}

/// The time by which limits count, without writing it down.
fn latest(connection: &Connection, now: Timestamp) -> Result<Timestamp, LedgerError> {
    let seen = connection.query_row("SELECT seen FROM clock", [], |row| row.get(0))?;
    Ok(Timestamp(now.0.max(seen)))
}

/// A clock that goes back would give a day's iterations twice: time in the ledger never does.
fn advance_clock(change: &Transaction<'_>, now: Timestamp) -> Result<Timestamp, LedgerError> {
    let seen: u64 = change.query_row(
        "UPDATE clock SET seen = max(seen, ?1) RETURNING seen",
        [now.0],
        |row| row.get(0),
    )?;
    Ok(Timestamp(seen))
}

/// Counts what is about to leave on this day.
fn count_in_day(
    change: &Transaction<'_>,
    now: Timestamp,
    data_set: &str,
    limit: u64,
) -> Result<(), LedgerError> {
    let today: u64 = change.query_row(
        "INSERT INTO days VALUES (?1, ?2, 1)
         ON CONFLICT DO UPDATE SET iterations = iterations + 1 RETURNING iterations",
        params![now.day().0, data_set],
        |row| row.get(0),
    )?;
    match today <= limit {
        true => Ok(()),
        false => Err(LedgerError::DayIterations(limit)),
    }
}

/// Whether another data user has a job of this name.
fn taken(change: &Transaction<'_>, job: &JobKey) -> Result<bool, LedgerError> {
    let taken = change.query_row(
        "SELECT EXISTS (SELECT 1 FROM jobs WHERE id = ?2 AND peer <> ?1)",
        params![job.peer.to_string(), job.id],
        |row| row.get(0),
    )?;
    Ok(taken)
}

fn insert_job(
    change: &Transaction<'_>,
    job: &JobKey,
    terms: &JobTerms,
    now: Timestamp,
) -> Result<(), LedgerError> {
    change.execute(
        "INSERT INTO jobs (peer, id, label, data_set, engine, terms, opened, state)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, 'open')",
        params![
            job.peer.to_string(),
            job.id,
            terms.label,
            terms.data_set,
            terms.engine,
            terms.request,
            now.0
        ],
    )?;
    Ok(())
}

/// Billionths as the decimal that people write, zero included.
fn decimal(billionths: u64) -> String {
    let text = format!(
        "{}.{:09}",
        billionths / 1_000_000_000,
        billionths % 1_000_000_000
    );
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}
