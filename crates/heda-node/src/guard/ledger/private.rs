//! The account of private jobs: what answers with noise have cost a row, by data set and by data user,
//! over all jobs and for as long as the ledger lives.
//!
//! A cost is μ² in whole 10⁻¹⁵ ([`Cost`]). A job costs any row the dearer of its training and its
//! counts ([`PaidByJob`]); jobs add up. The cap on the sum is fixed in the configuration as an ε
//! and a δ. It is a valid filter for jobs that are chosen in the light of earlier results, prices
//! included ([`heda_dp::gdp`]); there is no credit for what a job did not use.
//!
//! An answer is paid for in the change that records it, just before it leaves: after a crash the ledger
//! may show an answer that nobody got, never the other way round.

use super::chain::Entry;
use super::{Change, HoldReport, JobKey, Ledger, LedgerError, LedgerReader, holds};
use heda_dp::compose::Composition;
use heda_dp::epsilon::Epsilon;
use heda_dp::gdp::{Cost, Delta};
use heda_job::guard::{NoRoom, PaidByJob, PrivateAccount};
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
    /// ε that a further job of its own may have, rounded down; 0 where no cap is known.
    pub epsilon_left: f64,
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
    /// ε that all further jobs together may still have, rounded down; 0 if there is nothing left.
    pub epsilon_left: f64,
    /// ε that one job may have of a data user that has had none, rounded down.
    pub epsilon_for_one: f64,
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
    /// What jobs that run have set aside; it is not left.
    pub holds: Vec<HoldReport>,
}

/// δ of reports where the configuration has none.
const REPORTED_DELTA: f64 = 1e-6;

impl Ledger {
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

    /// The ε that a further job of this job's data user may have, rounded down: under both caps, beside
    /// what other jobs have set aside.
    pub fn private_room(
        &self,
        job: &JobKey,
        data_set: &str,
        cap: &PrivateCap,
    ) -> Result<f64, LedgerError> {
        let opened = self.opened()?;
        let moment = opened.connection.unchecked_transaction()?;
        let left = room(
            &moment,
            data_set,
            Some((&job.peer.to_string(), Some(&job.id))),
            cap,
        )?;
        Ok(rounded_down(left, cap.delta))
    }
}

impl LedgerReader {
    /// What a further job of a data user may cost, beside what its and others' jobs have set aside.
    pub fn private_room(
        &self,
        peer: &str,
        data_set: &str,
        cap: &PrivateCap,
    ) -> Result<Cost, LedgerError> {
        let moment = self.connection().unchecked_transaction()?;
        room(&moment, data_set, Some((peer, None)), cap)
    }

    /// What private jobs have cost a data set.
    pub fn private(
        &self,
        data_set: &str,
        cap: Option<&PrivateCap>,
    ) -> Result<PrivateReport, LedgerError> {
        report(self.connection(), data_set, cap)
    }
}

/// Pays for an answer, as a part of a change. What the job costs more with it must fit under both caps beside
/// what other jobs have set aside; otherwise nothing is written and nothing may leave.
pub(super) fn pay(
    change: &Change<'_>,
    job: &JobKey,
    data_set: &str,
    (paid, more): (PaidByJob, Cost),
    cap: &PrivateCap,
) -> Result<(), LedgerError> {
    fits(change, job, data_set, more, cap)?;
    holds::draw(change, job, more)?;
    write(change, job, data_set, paid, more)
}

pub(super) fn paid_by(connection: &Connection, job: &JobKey) -> Result<PaidByJob, LedgerError> {
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

/// Refuses what one of both caps has no room for: for good if it is spent, for now if other jobs have
/// set it aside.
pub(super) fn fits(
    connection: &Connection,
    job: &JobKey,
    data_set: &str,
    more: Cost,
    cap: &PrivateCap,
) -> Result<(), LedgerError> {
    let accounts = [
        (Whose::User, cap.of_user(), cap.per_user),
        (Whose::DataSet, cap.total(), cap.epsilon),
    ];
    let peer = job.peer.to_string();
    for (whose, most, total) in accounts {
        let of_user = whose == Whose::User;
        let own = Some((&peer[..], &job.id[..]));
        let account = PrivateAccount {
            most,
            spent: spent(connection, data_set, of_user.then_some(&peer[..]))?,
            held: holds::of(connection, data_set, of_user.then_some(&peer[..]), own)?,
        };
        let delta = cap.delta;
        account.check(more).map_err(|refused| match refused {
            NoRoom::Spent => LedgerError::PrivateExhausted {
                whose,
                spent: in_words(account.spent, delta),
                after: in_words(account.spent.plus(more), delta),
                total,
                delta,
            },
            NoRoom::Held => LedgerError::PrivateHeld {
                whose,
                held: in_words(account.spent.plus(account.held), delta),
                total,
                delta,
            },
        })?;
    }
    Ok(())
}

/// What a further job of a data user may cost under both caps, beside what other jobs than this one
/// have set aside; without a data user, one that has had no job.
fn room(
    connection: &Connection,
    data_set: &str,
    user: Option<(&str, Option<&str>)>,
    cap: &PrivateCap,
) -> Result<Cost, LedgerError> {
    let own = user.and_then(|(peer, job)| Some((peer, job?)));
    let left = |most: Cost, peer: Option<&str>| {
        let used = spent(connection, data_set, peer)?;
        let held = holds::of(connection, data_set, peer, own)?;
        Ok::<_, LedgerError>(most.minus(used.plus(held)).unwrap_or_default())
    };
    let of_all = left(cap.total(), None)?;
    Ok(match user {
        Some((peer, _)) => of_all.min(left(cap.of_user(), Some(peer))?),
        None => of_all.min(cap.of_user()),
    })
}

/// The ε of what is left, rounded down: a job of so much fits.
fn rounded_down(left: Cost, delta: Delta) -> f64 {
    epsilon_of(left, delta).map_or(1000.0, |e| (e * 1e4).floor() / 1e4)
}

/// Σμ² of a data set, of everybody or of one data user.
pub(super) fn spent(
    connection: &Connection,
    data_set: &str,
    peer: Option<&str>,
) -> Result<Cost, LedgerError> {
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

pub(super) fn report(
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
    let holds = holds::report(connection, data_set)?;
    let held: Cost = holds.iter().map(|hold| hold.cost).sum();
    let left = total.minus(spent.plus(held)).unwrap_or_default();
    let for_one = match cap {
        Some(cap) => room(connection, data_set, None, cap)?,
        None => Cost::ZERO,
    };
    Ok(PrivateReport {
        delta: delta.get(),
        epsilon_total: cap.map(|cap| cap.epsilon.to_f64()),
        epsilon_spent: epsilon_of(spent, delta),
        epsilon_left: rounded_down(left, delta),
        epsilon_for_one: rounded_down(for_one, delta),
        epsilon_with_published: with_published(connection, data_set, spent, delta)?,
        squared_total: total.squared(),
        squared_spent: spent.squared(),
        spent,
        users: with_room(
            connection,
            data_set,
            users(connection, data_set, delta)?,
            cap,
        )?,
        holds,
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
            epsilon_left: 0.0,
            jobs: row.get(2)?,
        })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// The same with what each data user may still have.
fn with_room(
    connection: &Connection,
    data_set: &str,
    mut users: Vec<PrivateUser>,
    cap: Option<&PrivateCap>,
) -> Result<Vec<PrivateUser>, LedgerError> {
    let Some(cap) = cap else {
        return Ok(users);
    };
    for user in &mut users {
        let left = room(connection, data_set, Some((&user.peer, None)), cap)?;
        user.epsilon_left = rounded_down(left, cap.delta);
    }
    Ok(users)
}
