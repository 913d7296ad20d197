//! Resource of a day that running jobs have reserved.
//!
//! Many jobs that begin at once would share what is left of a day, and none of them would finish.
//! So a job reserves what it may need when it is admitted; what it did not use is free again when
//! its session ends, or an hour after its last answer. Reservations live in memory: they end with the
//! process that made them.

use super::waiting::{Resource, WaitingList};
use super::{JobKey, LAPSE_SECONDS, Ledger, LedgerError, latest};
use crate::system::clock::Timestamp;
use rusqlite::{OptionalExtension, params};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What running jobs hold.
#[derive(Debug, Clone, Default)]
pub(super) struct Reservations {
    held: Arc<Mutex<HashMap<JobKey, Held>>>,
    /// Who waits, for this and for the account of private jobs.
    pub(super) waiting: WaitingList,
}

#[derive(Debug)]
struct Held {
    data_set: String,
    left: u64,
    /// When it was reserved, or used last.
    used: Timestamp,
    /// Whether the job used any of it.
    answered: bool,
    /// A job may come back while its old session still waits for its end.
    sessions: u32,
}

/// Resource for one session of a job; free again when this is dropped.
#[derive(Debug)]
pub struct Reservation {
    all: Reservations,
    job: JobKey,
}

impl Reservations {
    fn held(&self) -> MutexGuard<'_, HashMap<JobKey, Held>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What other jobs hold of a data set, as far as it has not lapsed.
    pub(super) fn of_others(&self, job: &JobKey, data_set: &str, now: Timestamp) -> u64 {
        let mut held = self.held();
        for (key, held) in held.iter_mut() {
            if held.left > 0 && held.used.0.saturating_add(LAPSE_SECONDS) < now.0 {
                held.left = 0;
                self.waiting.unused(Resource::Day, &held.data_set, key.peer);
            }
        }
        let others = held
            .iter()
            .filter(|(key, held)| *key != job && held.data_set == data_set);
        others.map(|(_, held)| held.left).sum()
    }

    /// A job used some of its own.
    pub(super) fn used(&self, job: &JobKey, now: Timestamp) {
        if let Some(held) = self.held().get_mut(job) {
            held.left = held.left.saturating_sub(1);
            held.used = now;
            held.answered = true;
            self.waiting.used(Resource::Day, &held.data_set, job.peer);
        }
    }

    /// Whether a job runs now.
    pub(super) fn runs(&self, job: &JobKey) -> bool {
        self.held().contains_key(job)
    }

    /// Whether a job holds anything.
    fn holds(&self, job: &JobKey) -> bool {
        self.held().get(job).is_some_and(|held| held.left > 0)
    }

    fn hold(&self, job: &JobKey, data_set: &str, room: u64, now: Timestamp) -> Reservation {
        let mut all = self.held();
        let held = all.entry(job.clone()).or_insert_with(|| Held {
            data_set: data_set.to_owned(),
            left: 0,
            used: now,
            answered: false,
            sessions: 0,
        });
        if held.left == 0 {
            held.used = now;
        }
        held.left = held.left.max(room);
        held.sessions += 1;
        Reservation {
            all: self.clone(),
            job: job.clone(),
        }
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        let mut all = self.all.held();
        if let Some(held) = all.get_mut(&self.job) {
            held.sessions -= 1;
            if held.sessions == 0 {
                if !held.answered {
                    let waiting = &self.all.waiting;
                    waiting.unused(Resource::Day, &held.data_set, self.job.peer);
                }
                all.remove(&self.job);
            }
        }
    }
}

impl Ledger {
    /// Reserves room for a job that has `iterations` in all and needs `beside` for everything else
    /// that is counted. Who is alone gets what is left of the day, even if it is less.
    pub fn reserve(
        &self,
        job: &JobKey,
        data_set: &str,
        (iterations, beside): (u64, u64),
        per_day: u64,
    ) -> Result<Reservation, LedgerError> {
        let opened = self.opened()?;
        let connection = &opened.connection;
        let had: Option<u64> = connection
            .query_row(
                "SELECT iterations FROM jobs WHERE peer = ?1 AND id = ?2",
                params![job.peer.to_string(), job.id],
                |row| row.get(0),
            )
            .optional()?;
        let now = latest(connection, self.clock.now())?;
        let day = now.day();
        let today: Option<u64> = connection
            .query_row(
                "SELECT iterations FROM days WHERE day = ?1 AND data_set = ?2",
                params![day.0, data_set],
                |row| row.get(0),
            )
            .optional()?;
        let need = iterations.saturating_sub(had.unwrap_or(0)) + beside;
        let others = self.reserved.of_others(job, data_set, now);
        let free = per_day.saturating_sub(today.unwrap_or(0));
        let room = free.saturating_sub(others);
        let take = || match room < need && others > 0 {
            true => Err(LedgerError::DayReserved { need, room, others }),
            false => Ok(self.reserved.hold(job, data_set, need.min(room), now)),
        };
        if self.reserved.holds(job) {
            return take();
        }
        let waiting = &self.reserved.waiting;
        waiting.in_turn((Resource::Day, data_set), job.peer, now, take)
    }
}
