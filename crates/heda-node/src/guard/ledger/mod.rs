//! The provider's ledger: every job, release and refusal, written durably before anything leaves.
//!
//! One SQLite file in write-ahead mode with full synchronisation. Every change is one IMMEDIATE
//! transaction, so that budgets hold across threads and processes, and across a crash at any
//! moment. A release is paid for first; its content is stored before it is sent, and the same job
//! gets the same content again without paying twice.
//!
//! Every change is also an entry of a chain of hashes (`chain`) whose head lies outside the store
//! (`anchor`). Whoever opens the ledger follows the chain, and every use looks whether the file
//! is still the same: a ledger that was lost or replaced is noticed before anything leaves.

mod account;
mod anchor;
mod answers;
mod chain;
mod disclosed;
mod error;
mod holds;
mod missing;
mod open;
mod others;
mod private;
mod report;
mod reserve;
mod schema;
#[cfg(test)]
mod tests;
mod waiting;

pub use account::{JobBudget, Purchase};
pub use answers::AnswerRecord;
pub use disclosed::{DisclosedReport, Disclosure, DisclosureKind};
pub use error::{LedgerError, LedgerLoss};
pub use holds::{HoldReport, LAPSE_SECONDS};
pub use missing::Caps;
pub use open::{Begun, LedgerPlace};
pub use others::OtherSpent;
pub(super) use others::rows_in_terms;
pub use private::{PrivateCap, PrivateReport, PrivateUser, Whose};
pub use report::{
    BudgetReport, FailedChecksReport, JobReport, LedgerReader, RefusalReport, ReleaseReport,
    StatusReport,
};
pub use reserve::Reservation;
pub use schema::LEDGER_VERSION;

use crate::identity::fingerprint::PeerFingerprint;
use crate::system::clock::{Clock, Day, Timestamp};
pub use chain::Counted;
use chain::Entry;
use heda_job::guard::LedgerHead;
use open::Opened;
use reserve::Reservations;
use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior, params};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Which job of which data user.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
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

/// Limits on something that reveals numbers and is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CountLimits {
    /// Of its kind, in one job.
    pub per_job: u64,
    /// Of everything that is counted, on one data set and day.
    pub per_day: u64,
}

/// The ledger, open for writing.
#[derive(Debug)]
pub struct Ledger {
    place: LedgerPlace,
    opened: Mutex<Opened>,
    clock: Arc<dyn Clock>,
    reserved: Reservations,
    records: u64,
}

/// Jobs, and refusals, that are kept unless something else is said.
const RECORDS_KEPT: u64 = 10_000;

/// A change in progress: the tables, and the chain.
struct Change<'a> {
    tables: Transaction<'a>,
    now: Timestamp,
}

impl std::ops::Deref for Change<'_> {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        &self.tables
    }
}

impl Change<'_> {
    /// Notes what this change does.
    fn note(&self, entry: &Entry) -> Result<(), LedgerError> {
        chain::append(self, entry, self.now)
    }
}

impl Ledger {
    /// Keeps this many jobs and as many refusals, beside those that budgets need.
    pub fn keeping(mut self, records: u64) -> Self {
        self.records = records;
        self
    }

    /// How far the ledger has come, for data users to keep.
    pub fn head(&self) -> Result<LedgerHead, LedgerError> {
        Ok(self.opened()?.head())
    }

    /// The ledger as it is now; one that is not the same file any more is looked at again.
    fn opened(&self) -> Result<MutexGuard<'_, Opened>, LedgerError> {
        // A panic elsewhere rolled its transaction back: the connection is sound.
        let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        opened.look(&self.place)?;
        Ok(opened)
    }

    /// Runs one change: all of it is durable when this returns, or nothing of it happened.
    fn change<T>(
        &self,
        work: impl FnOnce(&Change<'_>) -> Result<T, LedgerError>,
    ) -> Result<T, LedgerError> {
        let mut opened = self.opened()?;
        let changed = opened.change(&self.place, self.clock.now(), work);
        if changed.as_ref().is_err_and(|error| !error.is_refusal()) {
            // Whatever is wrong may be mended: the next use opens the file anew.
            opened.distrust();
        }
        changed
    }

    /// Opens a job, or finds it open on the same terms. Returns the iterations it has had.
    pub fn open_job(&self, job: &JobKey, terms: &JobTerms) -> Result<u64, LedgerError> {
        self.change(|change| {
            let known: Option<(String, u64, String)> = change
                .query_row(
                    "SELECT terms, iterations, state FROM jobs WHERE peer = ?1 AND id = ?2",
                    params![job.peer.to_string(), job.id],
                    |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
                )
                .optional()?;
            match known {
                Some((.., state)) if state == "failed" => Err(LedgerError::Cheated(job.id.clone())),
                Some((request, ..)) if request != terms.request => {
                    Err(LedgerError::OtherTerms(job.id.clone()))
                }
                Some((_, iterations, _)) => Ok(iterations),
                None if taken(change, job)? => Err(LedgerError::Taken(job.id.clone())),
                None => {
                    insert_job(change, job, terms)?;
                    self.forget_jobs(change)?;
                    Ok(0)
                }
            }
        })
    }

    /// Makes room among the jobs: first those of which nothing left, then finished ones, then the
    /// oldest. Jobs that paid for a release or an answer with noise stay, and so do those that run.
    fn forget_jobs(&self, change: &Change<'_>) -> Result<(), LedgerError> {
        let count: u64 = change.query_row("SELECT count(*) FROM jobs", [], |row| row.get(0))?;
        let excess = count.saturating_sub(self.records);
        if excess == 0 {
            return Ok(());
        }
        let mut query = change.prepare(
            "SELECT peer, id FROM jobs j WHERE NOT EXISTS
                 (SELECT 1 FROM releases r WHERE r.peer = j.peer AND r.job = j.id)
                 AND NOT EXISTS
                 (SELECT 1 FROM private p WHERE p.peer = j.peer AND p.job = j.id)
             ORDER BY iterations + evaluations + rankings + next_step > 0, state = 'open', opened, rowid",
        )?;
        let rows = query.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
        let jobs: Vec<(String, String)> = rows.collect::<Result<_, _>>()?;
        let idle = jobs.into_iter().filter(|(peer, id)| {
            let peer = peer.parse().ok();
            peer.is_none_or(|peer| {
                let id = id.clone();
                !self.reserved.runs(&JobKey { peer, id })
            })
        });
        for (peer, id) in idle.take(usize::try_from(excess).unwrap_or(usize::MAX)) {
            let answered: u64 = change.query_row(
                "DELETE FROM jobs WHERE peer = ?1 AND id = ?2 RETURNING next_step",
                [peer, id],
                |row| row.get(0),
            )?;
            if answered > 0 {
                change.note(&Entry::Forgotten { answered })?;
            }
        }
        Ok(())
    }

    /// Counts what is about to leave on this day, of which other jobs have reserved a part.
    fn count_in_day(
        &self,
        change: &Change<'_>,
        what: Counted,
        job: &JobKey,
        data_set: &str,
        limit: u64,
    ) -> Result<(), LedgerError> {
        let today: u64 = change.query_row(
            "INSERT INTO days VALUES (?1, ?2, 1)
             ON CONFLICT DO UPDATE SET iterations = iterations + 1 RETURNING iterations",
            params![change.now.day().0, data_set],
            |row| row.get(0),
        )?;
        if today > limit {
            return Err(LedgerError::DayIterations(limit));
        }
        let others = self.reserved.of_others(job, data_set, change.now);
        if today > limit.saturating_sub(others) {
            let (need, room) = (1, 0);
            return Err(LedgerError::DayReserved { need, room, others });
        }
        change.note(&Entry::Counted {
            what,
            job: job.id.clone(),
            data_set: data_set.to_owned(),
        })
    }

    /// Notes that a job came to its end. One that failed a check stays failed.
    pub fn finish_job(&self, job: &JobKey) -> Result<(), LedgerError> {
        self.change(|change| {
            change.execute(
                "UPDATE jobs SET state = 'finished', ended = ?3
                 WHERE peer = ?1 AND id = ?2 AND state <> 'failed'",
                params![job.peer.to_string(), job.id, change.now.0],
            )?;
            holds::free(change, job)?;
            let job = job.id.clone();
            change.note(&Entry::Finished { job })
        })
    }

    /// Notes that something was refused, and why.
    pub fn refuse(&self, job: &JobKey, label: &str, reason: &str) -> Result<(), LedgerError> {
        // Part of it may be the data user's words: they stay on their line.
        let plain = |c: char| if c.is_control() { ' ' } else { c };
        let reason: String = reason.chars().take(2000).map(plain).collect();
        self.change(|change| {
            change.execute(
                "INSERT INTO refusals (at, peer, label, job, reason) VALUES (?1, ?2, ?3, ?4, ?5)",
                params![change.now.0, job.peer.to_string(), label, job.id, reason],
            )?;
            change.execute(
                "DELETE FROM refusals WHERE number <= (SELECT max(number) FROM refusals) - ?1",
                [self.records],
            )?;
            let job = job.id.clone();
            change.note(&Entry::Refused { job })
        })
    }

    /// The day that limits count by: today, or the latest day ever seen if the clock went back.
    pub fn today(&self) -> Result<Day, LedgerError> {
        Ok(latest(&self.opened()?.connection, self.clock.now())?.day())
    }

    /// Writes something that changes nothing, to see whether writing works.
    pub fn try_writing(&self) -> Result<(), LedgerError> {
        let mut opened = self.opened()?;
        let behaviour = TransactionBehavior::Immediate;
        let change = opened.connection.transaction_with_behavior(behaviour)?;
        // SQLite writes this always; of a row that stays the same it would write nothing.
        change.pragma_update(None, "user_version", LEDGER_VERSION)?;
        Ok(change.commit()?)
    }

    /// Whether something has left for a job that may come back: a finished one may be evaluated
    /// again. What was charged for lost entries is nobody's job.
    pub fn has_begun_jobs(&self) -> Result<bool, LedgerError> {
        let begun = "SELECT EXISTS (SELECT 1 FROM jobs WHERE peer <> ?1
                                    AND iterations + evaluations + rankings + next_step > 0)
                     OR EXISTS (SELECT 1 FROM releases WHERE peer <> ?1)
                     OR EXISTS (SELECT 1 FROM private p
                                JOIN jobs j ON j.peer = p.peer AND j.id = p.job
                                WHERE p.peer <> ?1)";
        let opened = self.opened()?;
        let begun = opened
            .connection
            .query_row(begun, [missing::NOBODY], |row| row.get(0));
        Ok(begun?)
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

/// Whether another data user has a job of this name.
fn taken(change: &Change<'_>, job: &JobKey) -> Result<bool, LedgerError> {
    let taken = change.query_row(
        "SELECT EXISTS (SELECT 1 FROM jobs WHERE id = ?2 AND peer <> ?1)",
        params![job.peer.to_string(), job.id],
        |row| row.get(0),
    )?;
    Ok(taken)
}

fn insert_job(change: &Change<'_>, job: &JobKey, terms: &JobTerms) -> Result<(), LedgerError> {
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
            change.now.0
        ],
    )?;
    change.note(&Entry::Opened {
        peer: job.peer.to_string(),
        job: job.id.clone(),
    })
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
