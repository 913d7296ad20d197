//! The account of private jobs: what answers with noise have cost a row, by data set and by data user,
//! over all jobs and for as long as the ledger lives.
//!
//! A cost is μ² in whole 10⁻¹⁵ ([`Cost`]). A job costs any row the dearer of its training and its
//! counts ([`PaidByJob`]); jobs add up. The cap on the sum is fixed in the configuration as an ε
//! and a δ. It is a valid filter for jobs that are chosen in the light of earlier results, prices
//! included ([`heda_dp::gdp`]); there is no credit for what a job did not use.
//!
//! Every answer is paid for before it is computed, in a change of its own: after a crash the ledger
//! may show an answer that nobody got, never the other way round.

use super::chain::Entry;
use super::{Change, JobKey, Ledger, LedgerError, LedgerReader};
use heda_dp::compose::Composition;
use heda_dp::epsilon::Epsilon;
use heda_dp::gdp::{Cost, Delta};
use heda_train::house::{Bought, PaidByJob};
use rusqlite::{Connection, OptionalExtension, params};
use serde::Serialize;

/// No sum in the tables may leave the whole numbers that SQLite has.
const LARGEST: Cost = Cost::from_parts(1 << 62);

/// What private jobs may cost in all.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PrivateCap {
    /// ε of all jobs on the data set together.
    pub epsilon: Epsilon,
    /// ε of all jobs of one data user together.
    pub per_user: Epsilon,
    /// δ of both.
    pub delta: Delta,
}

impl PrivateCap {
    /// Σμ² of all jobs on the data set.
    pub fn total(&self) -> Cost {
        Cost::for_guarantee(self.epsilon, self.delta).min(LARGEST)
    }

    /// Σμ² of all jobs of one data user.
    pub fn of_user(&self) -> Cost {
        let own = Cost::for_guarantee(self.per_user, self.delta);
        own.min(self.total())
    }
}

/// Whose account does not reach.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Whose {
    /// That of the data set.
    DataSet,
    /// That of the data user.
    User,
}

impl std::fmt::Display for Whose {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::DataSet => "all private jobs on this data set",
            Self::User => "all private jobs of this data user",
        })
    }
}

/// What one data user's private jobs have cost.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PrivateUser {
    /// The data user's fingerprint.
    pub peer: String,
    /// What the configuration called it last.
    pub label: String,
    /// Σμ² of its jobs.
    pub squared: f64,
    /// The same as ε, rounded up; none beyond 1000.
    pub epsilon: Option<f64>,
    /// Its jobs that have paid anything.
    pub jobs: u64,
}

/// What private jobs have cost a data set, and what is left.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PrivateReport {
    /// The δ for which every ε here is meant.
    pub delta: f64,
    /// ε that may be reached in all; none if no private job is served.
    pub epsilon_total: Option<f64>,
    /// ε that is reached, rounded up; none beyond 1000.
    pub epsilon_spent: Option<f64>,
    /// ε that a job may still have, rounded down; 0 if there is nothing left.
    pub epsilon_left: f64,
    /// ε that is reached if the published columns are counted in, by one accountant for both.
    pub epsilon_with_published: Option<f64>,
    /// Σμ² that may be reached.
    pub squared_total: f64,
    /// Σμ² that is reached.
    pub squared_spent: f64,
    /// The same, exactly.
    #[serde(skip)]
    pub spent: Cost,
    /// By data user.
    pub users: Vec<PrivateUser>,
}

/// δ of reports where the configuration has none.
const REPORTED_DELTA: f64 = 1e-6;

impl Ledger {
    /// Pays for an answer of a private job, durably. What it costs, beyond what the job has paid
    /// already, must fit under both caps; otherwise nothing is written and nothing may leave.
    pub fn pay(
        &self,
        job: &JobKey,
        data_set: &str,
        (what, cost): (Bought, Cost),
        cap: &PrivateCap,
    ) -> Result<(), LedgerError> {
        self.change(|change| {
            let open = "SELECT EXISTS (SELECT 1 FROM jobs WHERE peer = ?1 AND id = ?2)";
            let key = params![job.peer.to_string(), job.id];
            if !change.query_row(open, key, |row| row.get::<_, bool>(0))? {
                return Err(LedgerError::NotOpen(job.id.clone()));
            }
            let before = paid_by(change, job)?;
            let after = before.with(what, cost);
            let more = after.charged().minus(before.charged()).unwrap_or_default();
            fits(change, job, data_set, more, cap)?;
            write(change, job, data_set, after, more)
        })
    }

    /// Whether so much could be paid, before anything is.
    pub fn foresee_private(
        &self,
        job: &JobKey,
        data_set: &str,
        cost: Cost,
        cap: &PrivateCap,
    ) -> Result<(), LedgerError> {
        fits(&self.opened()?.connection, job, data_set, cost, cap)
    }

    /// What one private job has paid.
    pub fn paid_by(&self, job: &JobKey) -> Result<PaidByJob, LedgerError> {
        paid_by(&self.opened()?.connection, job)
    }

    /// What private jobs have cost a data set.
    pub fn private(
        &self,
        data_set: &str,
        cap: Option<&PrivateCap>,
    ) -> Result<PrivateReport, LedgerError> {
        report(&self.opened()?.connection, data_set, cap)
    }

    /// The ε that private jobs have reached at this δ, and the same by data user; quicker than a report.
    pub fn private_spent(
        &self,
        data_set: &str,
        delta: Delta,
    ) -> Result<(Option<f64>, Vec<PrivateUser>), LedgerError> {
        let opened = self.opened()?;
        let moment = opened.connection.unchecked_transaction()?;
        let all = spent(&moment, data_set, None)?;
        Ok((epsilon_of(all, delta), users(&moment, data_set, delta)?))
    }
}

impl LedgerReader {
    /// What private jobs have cost a data set.
    pub fn private(
        &self,
        data_set: &str,
        cap: Option<&PrivateCap>,
    ) -> Result<PrivateReport, LedgerError> {
        report(self.connection(), data_set, cap)
    }
}

fn paid_by(connection: &Connection, job: &JobKey) -> Result<PaidByJob, LedgerError> {
    let found = connection.query_row(
        "SELECT training, counts FROM private WHERE peer = ?1 AND job = ?2",
        params![job.peer.to_string(), job.id],
        |row| {
            Ok(PaidByJob {
                training: Cost::from_parts(row.get(0)?),
                counts: Cost::from_parts(row.get(1)?),
            })
        },
    );
    Ok(found.optional()?.unwrap_or_default())
}

fn write(
    change: &Change<'_>,
    job: &JobKey,
    data_set: &str,
    paid: PaidByJob,
    more: Cost,
) -> Result<(), LedgerError> {
    let PaidByJob { training, counts } = paid;
    change.execute(
        "INSERT INTO private VALUES (?1, ?2, ?3, ?4, ?5)
         ON CONFLICT DO UPDATE SET training = excluded.training, counts = excluded.counts",
        params![
            job.peer.to_string(),
            job.id,
            data_set,
            training.min(LARGEST).parts(),
            counts.min(LARGEST).parts()
        ],
    )?;
    change.note(&Entry::Private {
        peer: job.peer.to_string(),
        job: job.id.clone(),
        data_set: data_set.to_owned(),
        parts: more.parts(),
    })
}

/// Refuses what one of both caps has no room for.
fn fits(
    connection: &Connection,
    job: &JobKey,
    data_set: &str,
    more: Cost,
    cap: &PrivateCap,
) -> Result<(), LedgerError> {
    let of_user = spent(connection, data_set, Some(&job.peer.to_string()))?;
    let of_all = spent(connection, data_set, None)?;
    for (whose, before, most, epsilon) in [
        (Whose::User, of_user, cap.of_user(), cap.per_user),
        (Whose::DataSet, of_all, cap.total(), cap.epsilon),
    ] {
        if before.plus(more) > most {
            return Err(LedgerError::PrivateExhausted {
                whose,
                spent: in_words(before, cap.delta),
                after: in_words(before.plus(more), cap.delta),
                total: epsilon,
                delta: cap.delta,
            });
        }
    }
    Ok(())
}

/// Σμ² of a data set, of everybody or of one data user.
fn spent(connection: &Connection, data_set: &str, peer: Option<&str>) -> Result<Cost, LedgerError> {
    let parts: u64 = connection.query_row(
        "SELECT coalesce(sum(max(training, counts)), 0) FROM private
         WHERE data_set = ?1 AND (?2 IS NULL OR peer = ?2)",
        params![data_set, peer],
        |row| row.get(0),
    )?;
    Ok(Cost::from_parts(parts))
}

/// The ε of a cost, rounded up; none beyond what is written as an ε.
fn epsilon_of(cost: Cost, delta: Delta) -> Option<f64> {
    match cost == Cost::ZERO {
        true => Some(0.0),
        false => cost.epsilon(delta).ok().map(Epsilon::to_f64),
    }
}

/// The same for people.
fn in_words(cost: Cost, delta: Delta) -> String {
    match epsilon_of(cost, delta) {
        Some(epsilon) => format!("{:.4}", (epsilon * 1e4).ceil() / 1e4),
        None => "more than 1000".to_owned(),
    }
}

fn report(
    connection: &Connection,
    data_set: &str,
    cap: Option<&PrivateCap>,
) -> Result<PrivateReport, LedgerError> {
    let delta = match cap {
        Some(cap) => cap.delta,
        None => Delta::new(REPORTED_DELTA).map_err(|e| LedgerError::Damaged(e.to_string()))?,
    };
    // As of one moment: others may write meanwhile.
    let connection = &connection.unchecked_transaction()?;
    let spent = spent(connection, data_set, None)?;
    let total = cap.map_or(Cost::ZERO, PrivateCap::total);
    let left = total.minus(spent).unwrap_or_default();
    // Rounded down: a job of so much fits.
    let left = epsilon_of(left, delta).map_or(1000.0, |e| (e * 1e4).floor() / 1e4);
    Ok(PrivateReport {
        delta: delta.get(),
        epsilon_total: cap.map(|cap| cap.epsilon.to_f64()),
        epsilon_spent: epsilon_of(spent, delta),
        epsilon_left: left,
        epsilon_with_published: with_published(connection, data_set, spent, delta)?,
        squared_total: total.squared(),
        squared_spent: spent.squared(),
        spent,
        users: users(connection, data_set, delta)?,
    })
}

/// Releases may have been chosen one after the other: their sum counts as one part, which is never
/// less than all of them.
fn with_published(
    connection: &Connection,
    data_set: &str,
    spent: Cost,
    delta: Delta,
) -> Result<Option<f64>, LedgerError> {
    let published = super::account::spent_billionths(connection, data_set)?;
    let Ok(published) = Epsilon::from_billionths(published) else {
        return Ok(match published {
            0 => epsilon_of(spent, delta),
            _ => None,
        });
    };
    let both = Composition::new(spent, &[published]).epsilon(delta);
    Ok(both.ok().map(Epsilon::to_f64))
}

fn users(
    connection: &Connection,
    data_set: &str,
    delta: Delta,
) -> Result<Vec<PrivateUser>, LedgerError> {
    let mut query = connection.prepare(
        "SELECT p.peer, sum(max(p.training, p.counts)), count(*),
             coalesce((SELECT label FROM jobs j WHERE j.peer = p.peer
                       ORDER BY opened DESC, rowid DESC LIMIT 1), '')
         FROM private p WHERE p.data_set = ?1 GROUP BY p.peer ORDER BY p.peer",
    )?;
    let rows = query.query_map([data_set], |row| {
        let cost = Cost::from_parts(row.get(1)?);
        Ok(PrivateUser {
            peer: row.get(0)?,
            label: row.get(3)?,
            squared: cost.squared(),
            epsilon: epsilon_of(cost, delta),
            jobs: row.get(2)?,
        })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}
