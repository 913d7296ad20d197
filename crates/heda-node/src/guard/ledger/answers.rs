//! Answers of a job: each is numbered, and leaves at most once in the life of the job.
//!
//! Number, limits, what is disclosed and what it costs become durable in one change, just before the
//! answer leaves. What is asked for again is refused: other noise on the same question would cost
//! again, and the same noise on another question would be none. A break before the change costs
//! nothing, because what was opened until then is uniform; so an answer may be begun again, a few
//! times.

use super::chain::{Counted, Entry};
use super::waiting::Resource;
use super::{
    Change, CountLimits, JobKey, Ledger, LedgerError, PrivateCap, disclosed, holds, private,
};
use crate::guard::ledger::Disclosure;
use heda_dp::gdp::Cost;
use heda_job::guard::{AgreedPlan, JobState, PaidByJob, Step};
use rusqlite::{Connection, OptionalExtension, params};

/// An answer that is about to leave, and what it must keep to.
#[derive(Debug, Clone, Copy)]
pub struct AnswerRecord<'a> {
    /// Which one.
    pub step: &'a Step,
    /// As what it is counted.
    pub what: Counted,
    /// How many a job and a day may have.
    pub limits: CountLimits,
    /// What it tells.
    pub disclosure: Option<&'a Disclosure<'a>>,
    /// What private jobs may cost.
    pub cap: Option<PrivateCap>,
    /// The plan of a private job that its session agreed on.
    pub plan: Option<AgreedPlan>,
}

impl Ledger {
    /// Records an answer, and says the how many-th of its kind it is in its job. For the day
    /// everything is one more iteration: otherwise new jobs would bring as many rankings and
    /// evaluations as anyone likes. An iteration needs an open job; an evaluation may come after the
    /// end, for a data user that lost the result.
    pub fn answer(
        &self,
        job: &JobKey,
        data_set: &str,
        answer: &AnswerRecord<'_>,
    ) -> Result<u64, LedgerError> {
        let private = answer.step.cost().is_some();
        let recorded = self.change(|change| {
            let lapsed = match private {
                true => holds::drop_lapsed(change)?,
                false => Vec::new(),
            };
            let in_job = self.count_in_job(change, job, answer)?;
            let (paid, more) = take(change, job, answer)?;
            if let Some(disclosure) = answer.disclosure {
                disclosed::disclose(change, job, data_set, disclosure)?;
            }
            let (what, per_day) = (answer.what, answer.limits.per_day);
            self.count_in_day(change, what, job, data_set, per_day)?;
            if private {
                let cap = answer.cap.ok_or(LedgerError::NoPrivateBudget)?;
                private::pay(change, job, data_set, (paid, more), &cap)?;
            }
            Ok((in_job, lapsed, change.now))
        });
        let (in_job, lapsed, now) = recorded?;
        self.let_others_pass(lapsed);
        self.reserved.used(job, now);
        if private {
            let waiting = &self.reserved.waiting;
            waiting.used(Resource::Account, data_set, job.peer);
        }
        Ok(in_job)
    }

    fn count_in_job(
        &self,
        change: &Change<'_>,
        job: &JobKey,
        answer: &AnswerRecord<'_>,
    ) -> Result<u64, LedgerError> {
        let (what, limit) = (answer.what, answer.limits.per_job);
        let in_job: Option<u64> = change
            .query_row(
                what.statement(),
                params![job.peer.to_string(), job.id],
                |row| row.get(0),
            )
            .optional()?;
        let job = job.id.clone();
        match in_job {
            None => Err(LedgerError::NotOpen(job)),
            Some(in_job) if in_job > limit => Err(LedgerError::JobLimit { what, job, limit }),
            Some(in_job) => Ok(in_job),
        }
    }

    /// The first number that was not answered in a job.
    pub fn next_step(&self, job: &JobKey) -> Result<u32, LedgerError> {
        next_step(&self.opened()?.connection, job)
    }

    /// Notes that a session begins with a numbered answer: it may do so a few times before one is
    /// recorded.
    pub fn try_answer(&self, job: &JobKey) -> Result<(), LedgerError> {
        self.change(|change| {
            let mut state = state(change, job)?;
            let begun = state.begin();
            begun.map_err(|denied| LedgerError::denied(denied, job))?;
            change.execute(
                "UPDATE jobs SET tries = ?3 WHERE peer = ?1 AND id = ?2",
                params![job.peer.to_string(), job.id, state.tries],
            )?;
            Ok(())
        })
    }

    /// Ends a job whose data user failed a check that no honest one fails, and counts it.
    pub fn end_cheating(&self, job: &JobKey) -> Result<(), LedgerError> {
        self.change(|change| {
            change.execute(
                "UPDATE jobs SET state = 'failed', ended = ?3 WHERE peer = ?1 AND id = ?2",
                params![job.peer.to_string(), job.id, change.now.0],
            )?;
            holds::free(change, job)?;
            change.execute(
                "INSERT INTO failed_checks VALUES (?1, 1, ?2)
                 ON CONFLICT DO UPDATE SET checks = checks + 1, last = excluded.last",
                params![job.peer.to_string(), change.now.0],
            )?;
            change.note(&Entry::FailedCheck {
                peer: job.peer.to_string(),
                job: job.id.clone(),
            })
        })
    }
}

pub(super) fn next_step(connection: &Connection, job: &JobKey) -> Result<u32, LedgerError> {
    let next = connection.query_row(
        "SELECT next_step FROM jobs WHERE peer = ?1 AND id = ?2",
        params![job.peer.to_string(), job.id],
        |row| row.get(0),
    );
    Ok(next.optional()?.unwrap_or(0))
}

/// What the ledger knows of a job's answers.
pub(super) fn state(connection: &Connection, job: &JobKey) -> Result<JobState, LedgerError> {
    let found = connection.query_row(
        "SELECT state, next_step, tries FROM jobs WHERE peer = ?1 AND id = ?2",
        params![job.peer.to_string(), job.id],
        |row| Ok((row.get::<_, String>(0)?, row.get(1)?, row.get(2)?)),
    );
    let not_open = || LedgerError::NotOpen(job.id.clone());
    let (state, next_step, tries) = found.optional()?.ok_or_else(not_open)?;
    Ok(JobState {
        agreed: holds::planned(connection, job)?,
        paid: private::paid_by(connection, job)?,
        next_step,
        tries,
        cheated: state == "failed",
    })
}

/// Takes the number of an answer, if it has one, and says what the job has paid with it and how much more that
/// is than before. In the same session the next number is begun, so it has been tried once.
fn take(
    change: &Change<'_>,
    job: &JobKey,
    answer: &AnswerRecord<'_>,
) -> Result<(PaidByJob, Cost), LedgerError> {
    let mut state = state(change, job)?;
    let before = state.next_step;
    let more = state.answer(answer.step, answer.plan);
    let more = more.map_err(|denied| LedgerError::denied(denied, job))?;
    if let Some(number) = answer.step.number() {
        change.execute(
            "UPDATE jobs SET next_step = ?3, tries = 1 WHERE peer = ?1 AND id = ?2",
            params![job.peer.to_string(), job.id, state.next_step],
        )?;
        change.note(&Entry::Answered {
            job: job.id.clone(),
            number,
            advance: u64::from(state.next_step - before),
        })?;
    }
    Ok((state.paid, more))
}
