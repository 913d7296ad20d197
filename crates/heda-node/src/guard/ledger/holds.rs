//! What private jobs have set aside of the budget.
//!
//! Jobs that run at once would spend each other's budget, and none of them would finish. So a job sets
//! aside what its plan costs when all providers have agreed, at one provider after the other, and before
//! anything is paid. What is set aside is durable: a job that was interrupted finds it again. It lapses
//! an hour after the last answer, or after it was set aside if there was none, however often the job comes
//! back meanwhile; it goes with the job's last session if the job has paid nothing, ends with the job, and
//! an operator can release it. Who let it lapse or paid nothing lets others pass before it sets aside
//! again ([`super::waiting`]). What was paid is never given back.
//!
//! The plan itself is fixed with the first answer: [`JobState::answer`] lets a job pay no more than that, and
//! under no other plan.

use super::chain::Entry;
use super::waiting::Resource;
use super::{Change, JobKey, Ledger, LedgerError, PrivateCap, answers, latest, private};
use crate::identity::fingerprint::PeerFingerprint;
use crate::system::clock::Timestamp;
use heda_dp::gdp::Cost;
use heda_job::guard::{AgreedPlan, JobState};
use rusqlite::{Connection, OptionalExtension, params};
use serde::Serialize;

/// Seconds without an answer after which what is set aside is free again.
pub const LAPSE_SECONDS: u64 = 3600;

/// What one job has set aside and not paid yet.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HoldReport {
    /// The data user's fingerprint.
    pub peer: String,
    /// The job.
    pub job: String,
    /// What it may still pay.
    #[serde(skip)]
    pub cost: Cost,
    /// When it was set aside or last paid from.
    pub used: Timestamp,
}

impl Ledger {
    /// Sets aside what a job costs as a whole, less what it has paid. The plan may not change after the
    /// first answer.
    pub fn hold(
        &self,
        job: &JobKey,
        data_set: &str,
        plan: AgreedPlan,
        cap: &PrivateCap,
    ) -> Result<(), LedgerError> {
        let now = latest(&self.opened()?.connection, self.clock.now())?;
        self.free_lapsed()?;
        let take = || self.set_aside(job, data_set, plan, cap);
        // A job that comes back to what it has set aside takes nothing from anybody.
        if is_held(&self.opened()?.connection, job)? {
            return take();
        }
        let waiting = &self.reserved.waiting;
        waiting.in_turn((Resource::Account, data_set), job.peer, now, take)
    }

    fn set_aside(
        &self,
        job: &JobKey,
        data_set: &str,
        plan: AgreedPlan,
        cap: &PrivateCap,
    ) -> Result<(), LedgerError> {
        self.change(|change| {
            let need = agree(change, job, plan)?.unpaid();
            private::fits(change, job, data_set, need, cap)?;
            change.execute(
                "INSERT INTO holds VALUES (?1, ?2, ?3, ?4, ?5)
                 ON CONFLICT DO UPDATE SET parts = excluded.parts",
                params![
                    job.peer.to_string(),
                    job.id,
                    data_set,
                    need.parts(),
                    change.now.0
                ],
            )?;
            change.note(&Entry::Held {
                peer: job.peer.to_string(),
                job: job.id.clone(),
                parts: need.parts(),
            })
        })
    }

    /// Frees what a job has set aside if it has paid nothing and no other session of it runs: one of its
    /// sessions has ended.
    pub fn free_unpaid(&self, job: &JobKey, data_set: &str) -> Result<(), LedgerError> {
        if !is_held(&self.opened()?.connection, job)? {
            return Ok(());
        }
        let freed = self.change(|change| {
            // A session that begins now sets aside after this change.
            let runs = self.reserved.runs(job);
            let unpaid = private::paid_by(change, job)?.charged() == Cost::ZERO;
            match unpaid && !runs {
                true => free(change, job).map(|()| true),
                false => Ok(false),
            }
        })?;
        if freed {
            let waiting = &self.reserved.waiting;
            waiting.unused(Resource::Account, data_set, job.peer);
        }
        Ok(())
    }

    /// Frees what nobody has used for an hour.
    pub(super) fn free_lapsed(&self) -> Result<(), LedgerError> {
        let opened = self.opened()?;
        let now = latest(&opened.connection, self.clock.now())?;
        let any: bool = opened.connection.query_row(
            "SELECT EXISTS (SELECT 1 FROM holds WHERE used + ?1 < ?2)",
            params![LAPSE_SECONDS, now.0],
            |row| row.get(0),
        )?;
        drop(opened);
        if !any {
            return Ok(());
        }
        self.let_others_pass(self.change(drop_lapsed)?);
        Ok(())
    }

    /// Who let lapse what was set aside lets others pass before it sets aside again.
    pub(super) fn let_others_pass(&self, lapsed: Vec<(PeerFingerprint, String)>) {
        for (peer, data_set) in lapsed {
            let waiting = &self.reserved.waiting;
            waiting.unused(Resource::Account, &data_set, peer);
        }
    }

    /// Frees what jobs of this name have set aside, because the operator wishes it; how many.
    pub fn release(&self, id: &str) -> Result<usize, LedgerError> {
        self.change(|change| {
            let freed = change.execute("DELETE FROM holds WHERE job = ?1", [id])?;
            change.note(&Entry::Freed { job: id.to_owned() })?;
            Ok(freed)
        })
    }
}

/// Notes the plan of a private job. After its first answer it is the same or refused.
pub(super) fn agree(
    change: &Change<'_>,
    job: &JobKey,
    plan: AgreedPlan,
) -> Result<JobState, LedgerError> {
    let mut state = answers::state(change, job)?;
    let agreed = state.agree(plan);
    agreed.map_err(|denied| LedgerError::denied(denied, job))?;
    change.execute(
        "UPDATE jobs SET planned = ?3, persons = ?4 WHERE peer = ?1 AND id = ?2",
        params![
            job.peer.to_string(),
            job.id,
            plan.cost.parts(),
            plan.persons
        ],
    )?;
    Ok(state)
}

/// The plan of a private job; nothing before its providers agreed.
pub(super) fn planned(
    connection: &Connection,
    job: &JobKey,
) -> Result<Option<AgreedPlan>, LedgerError> {
    let planned = connection.query_row(
        "SELECT planned, persons FROM jobs WHERE peer = ?1 AND id = ?2",
        params![job.peer.to_string(), job.id],
        |row| {
            let cost = row.get::<_, Option<u64>>(0)?.map(Cost::from_parts);
            let persons: Option<bool> = row.get(1)?;
            let plan = cost.zip(persons);
            Ok(plan.map(|(cost, persons)| AgreedPlan { cost, persons }))
        },
    );
    Ok(planned.optional()?.flatten())
}

/// What jobs have set aside of a data set and may still pay, as far as it has not lapsed.
pub(super) fn report(
    connection: &Connection,
    data_set: &str,
) -> Result<Vec<HoldReport>, LedgerError> {
    let mut query = connection.prepare(
        "SELECT peer, job, parts, used FROM holds, clock
         WHERE data_set = ?1 AND used + ?2 >= seen AND parts > 0 ORDER BY used, job",
    )?;
    let rows = query.query_map(params![data_set, LAPSE_SECONDS], |row| {
        Ok(HoldReport {
            peer: row.get(0)?,
            job: row.get(1)?,
            cost: Cost::from_parts(row.get(2)?),
            used: Timestamp(row.get(3)?),
        })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

fn is_held(connection: &Connection, job: &JobKey) -> Result<bool, LedgerError> {
    let held = connection.query_row(
        "SELECT EXISTS (SELECT 1 FROM holds WHERE peer = ?1 AND job = ?2)",
        params![job.peer.to_string(), job.id],
        |row| row.get(0),
    )?;
    Ok(held)
}

/// Frees what a job has set aside.
pub(super) fn free(change: &Change<'_>, job: &JobKey) -> Result<(), LedgerError> {
    let freed = change.execute(
        "DELETE FROM holds WHERE peer = ?1 AND job = ?2",
        params![job.peer.to_string(), job.id],
    )?;
    match freed {
        0 => Ok(()),
        _ => change.note(&Entry::Freed {
            job: job.id.clone(),
        }),
    }
}

/// A job pays from what it has set aside.
pub(super) fn draw(change: &Change<'_>, job: &JobKey, paid: Cost) -> Result<(), LedgerError> {
    change.execute(
        "UPDATE holds SET parts = max(parts - ?3, 0), used = ?4 WHERE peer = ?1 AND job = ?2",
        params![job.peer.to_string(), job.id, paid.parts(), change.now.0],
    )?;
    Ok(())
}

/// Frees what nobody has used for an hour; whose it was, and of which data set.
pub(super) fn drop_lapsed(
    change: &Change<'_>,
) -> Result<Vec<(PeerFingerprint, String)>, LedgerError> {
    let mut query =
        change.prepare("DELETE FROM holds WHERE used + ?1 < ?2 RETURNING peer, data_set")?;
    let rows = query.query_map(params![LAPSE_SECONDS, change.now.0], |row| {
        Ok((row.get::<_, String>(0)?, row.get(1)?))
    })?;
    let freed: Vec<(String, String)> = rows.collect::<Result<_, _>>()?;
    let known = |(peer, data_set): (String, String)| Some((peer.parse().ok()?, data_set));
    Ok(freed.into_iter().filter_map(known).collect())
}

/// What jobs have set aside and has not lapsed, of everybody or of one data user, without that of one job.
pub(super) fn of(
    connection: &Connection,
    data_set: &str,
    peer: Option<&str>,
    without: Option<(&str, &str)>,
) -> Result<Cost, LedgerError> {
    let (own_peer, own_job) = without.unzip();
    let parts: u64 = connection.query_row(
        "SELECT coalesce(sum(parts), 0) FROM holds, clock
         WHERE data_set = ?1 AND used + ?5 >= seen AND (?2 IS NULL OR peer = ?2)
             AND (?3 IS NULL OR NOT (peer = ?3 AND job = ?4))",
        params![data_set, peer, own_peer, own_job, LAPSE_SECONDS],
        |row| row.get(0),
    )?;
    Ok(Cost::from_parts(parts))
}
