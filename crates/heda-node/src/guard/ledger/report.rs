//! What the ledger says, for `provider status` and `provider budget`.

use super::account::spent_billionths;
use super::disclosed::{self, DisclosedReport};
use super::open::{check_file, check_history, file_error};
use super::{
    LEDGER_VERSION, Ledger, LedgerError, LedgerLoss, LedgerPlace, chain, decimal, latest, schema,
};
use crate::system::clock::{Day, Timestamp};
use crate::system::files;
use heda_dp::account::Charge;
use heda_dp::epsilon::Epsilon;
use rusqlite::{Connection, OpenFlags, params};
use serde::Serialize;
use std::path::Path;

/// One release.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ReleaseReport {
    /// The data user's fingerprint.
    pub peer: String,
    /// Its job.
    pub job: String,
    /// When it was paid.
    pub paid: Timestamp,
    /// Mechanism and ε by column.
    pub charge: Charge,
    /// SHA-256 of what was released, if it was made.
    pub sha256: Option<String>,
}

/// The budget of a data set and what it was spent on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BudgetReport {
    /// The data set.
    pub data_set: String,
    /// ε that may be spent in all, as a decimal; 0 if nothing may be published.
    pub epsilon_total: String,
    /// ε that is spent, as a decimal.
    pub epsilon_spent: String,
    /// ε that is left, as a decimal.
    pub epsilon_left: String,
    /// What it was spent on, oldest first.
    pub releases: Vec<ReleaseReport>,
    /// What each data user has learned beside that, over all of its jobs.
    pub disclosed: Vec<DisclosedReport>,
}

/// One job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct JobReport {
    /// The data user's fingerprint.
    pub peer: String,
    /// What the configuration called it.
    pub label: String,
    /// The job.
    pub job: String,
    /// Its data set.
    pub data_set: String,
    /// Its engine.
    pub engine: String,
    /// When it was opened.
    pub opened: Timestamp,
    /// When it ended, if it did.
    pub ended: Option<Timestamp>,
    /// `open`, `finished`, or `failed` after a failed consistency check.
    pub state: String,
    /// Iterations whose results left.
    pub iterations: u64,
    /// Evaluations on held-out rows whose results left.
    pub evaluations: u64,
    /// Rankings of the features whose results left.
    pub rankings: u64,
}

/// One refusal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RefusalReport {
    /// When.
    pub at: Timestamp,
    /// The data user's fingerprint.
    pub peer: String,
    /// What the configuration called it.
    pub label: String,
    /// The job.
    pub job: String,
    /// Why.
    pub reason: String,
}

/// Consistency checks that a data user failed. No honest one fails any.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FailedChecksReport {
    /// The data user's fingerprint.
    pub peer: String,
    /// How many.
    pub checks: u64,
    /// When the last one was.
    pub last: Timestamp,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StatusReport {
    /// The latest day seen (UTC), which limits count by.
    pub day: Day,
    /// Iterations served on that day, for the data set, evaluations included.
    pub iterations_today: u64,
    /// Why this ledger was begun, while that entry is kept.
    pub begun: Option<String>,
    /// What each data user has learned of the data set, over all of its jobs.
    pub disclosed: Vec<DisclosedReport>,
    /// Who failed consistency checks.
    pub failed_checks: Vec<FailedChecksReport>,
    /// The latest jobs, newest first.
    pub jobs: Vec<JobReport>,
    /// The latest refusals, newest first.
    pub refusals: Vec<RefusalReport>,
}

/// A ledger that is only read, also while the daemon writes.
#[derive(Debug)]
pub struct LedgerReader(Connection);

/// At most this many jobs and refusals are listed.
const LISTED: u32 = 1000;

impl LedgerReader {
    /// Opens the file for reading; it must be there, of a known version, and the ledger that its
    /// anchor knows.
    pub fn open(place: &LedgerPlace) -> Result<Self, LedgerError> {
        // The anchor first: a daemon that writes meanwhile only makes the ledger longer.
        let anchored = place.anchor().read()?;
        if anchored.is_some() && !place.ledger.exists() {
            return Err(LedgerError::Lost(LedgerLoss::Gone(place.ledger.clone())));
        }
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(&place.ledger, flags)?;
        connection.busy_timeout(super::open::LOCK_PATIENCE)?;
        match schema::version(&connection)? {
            LEDGER_VERSION => {}
            found if anchored.is_some() && found < schema::CHAIN_VERSION => {
                return Err(LedgerError::Lost(LedgerLoss::NoChain));
            }
            found => {
                let known = LEDGER_VERSION;
                return Err(LedgerError::FromThePast { found, known });
            }
        }
        check_file(&connection)?;
        check_history(&connection, anchored.as_ref(), place)?;
        Ok(Self(connection))
    }

    pub(super) fn connection(&self) -> &Connection {
        &self.0
    }

    /// Writes a whole copy into a new file, also while the daemon writes.
    pub fn copy_to(&self, path: &Path) -> Result<(), LedgerError> {
        let file = |cause| file_error(path, cause);
        // Made by us first, so that nobody else can ever read it.
        files::create_secret(path, b"").map_err(file)?;
        let name = path.to_str();
        let name = name.ok_or_else(|| file(std::io::Error::other("the name is not UTF-8 text")))?;
        self.0.execute("VACUUM INTO ?1", [name])?;
        let written = std::fs::File::open(path).and_then(|copy| copy.sync_all());
        written.map_err(file)
    }

    /// The budget of a data set.
    pub fn budget(
        &self,
        data_set: &str,
        total: Option<Epsilon>,
    ) -> Result<BudgetReport, LedgerError> {
        budget(&self.0, data_set, total)
    }

    /// Jobs and refusals.
    pub fn status(&self, data_set: &str, now: Timestamp) -> Result<StatusReport, LedgerError> {
        status(&self.0, data_set, now)
    }
}

impl Ledger {
    /// The budget of a data set.
    pub fn budget(
        &self,
        data_set: &str,
        total: Option<Epsilon>,
    ) -> Result<BudgetReport, LedgerError> {
        budget(&self.opened()?.connection, data_set, total)
    }

    /// Jobs and refusals.
    pub fn status(&self, data_set: &str) -> Result<StatusReport, LedgerError> {
        status(&self.opened()?.connection, data_set, self.clock.now())
    }

    /// ε spent on a data set, in billionths.
    pub fn spent_billionths(&self, data_set: &str) -> Result<u64, LedgerError> {
        spent_billionths(&self.opened()?.connection, data_set)
    }
}

fn budget(
    connection: &Connection,
    data_set: &str,
    total: Option<Epsilon>,
) -> Result<BudgetReport, LedgerError> {
    // As of one moment: others may write meanwhile.
    let connection = &connection.unchecked_transaction()?;
    let total = total.map_or(0, Epsilon::billionths);
    let spent = spent_billionths(connection, data_set)?;
    let mut query = connection.prepare(
        "SELECT peer, job, paid, charge, hex(sha256) FROM releases WHERE data_set = ?1
         ORDER BY paid, rowid",
    )?;
    let rows = query.query_map([data_set], |row| {
        let written: String = row.get(3)?;
        let hash: String = row.get(4)?;
        Ok((row.get(0)?, row.get(1)?, row.get(2)?, written, hash))
    })?;
    let releases = rows.map(|row| {
        let (peer, job, paid, written, hash) = row?;
        let charge: Charge =
            serde_json::from_str(&written).map_err(|e| LedgerError::Damaged(e.to_string()))?;
        Ok(ReleaseReport {
            peer,
            job,
            paid: Timestamp(paid),
            charge,
            sha256: (!hash.is_empty()).then(|| hash.to_lowercase()),
        })
    });
    Ok(BudgetReport {
        data_set: data_set.to_owned(),
        epsilon_total: decimal(total),
        epsilon_spent: decimal(spent),
        epsilon_left: decimal(total.saturating_sub(spent)),
        releases: releases.collect::<Result<_, LedgerError>>()?,
        disclosed: disclosed::report(connection, data_set)?,
    })
}

fn status(
    connection: &Connection,
    data_set: &str,
    now: Timestamp,
) -> Result<StatusReport, LedgerError> {
    // As of one moment: others may write meanwhile.
    let connection = &connection.unchecked_transaction()?;
    let day = latest(connection, now)?.day();
    let iterations_today = connection.query_row(
        "SELECT coalesce(sum(iterations), 0) FROM days WHERE day = ?1 AND data_set = ?2",
        params![day.0, data_set],
        |row| row.get(0),
    )?;
    Ok(StatusReport {
        day,
        iterations_today,
        begun: chain::beginning(connection)?,
        disclosed: disclosed::report(connection, data_set)?,
        failed_checks: failed_checks(connection)?,
        jobs: jobs(connection)?,
        refusals: refusals(connection)?,
    })
}

fn jobs(connection: &Connection) -> Result<Vec<JobReport>, LedgerError> {
    let mut query = connection.prepare(
        "SELECT peer, label, id, data_set, engine, opened, ended, state, iterations, evaluations,
                rankings FROM jobs ORDER BY opened DESC, rowid DESC LIMIT ?1",
    )?;
    let rows = query.query_map([LISTED], |row| {
        Ok(JobReport {
            peer: row.get(0)?,
            label: row.get(1)?,
            job: row.get(2)?,
            data_set: row.get(3)?,
            engine: row.get(4)?,
            opened: Timestamp(row.get(5)?),
            ended: row.get::<_, Option<u64>>(6)?.map(Timestamp),
            state: row.get(7)?,
            iterations: row.get(8)?,
            evaluations: row.get(9)?,
            rankings: row.get(10)?,
        })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

fn failed_checks(connection: &Connection) -> Result<Vec<FailedChecksReport>, LedgerError> {
    let mut query =
        connection.prepare("SELECT peer, checks, last FROM failed_checks ORDER BY peer")?;
    let rows = query.query_map([], |row| {
        Ok(FailedChecksReport {
            peer: row.get(0)?,
            checks: row.get(1)?,
            last: Timestamp(row.get(2)?),
        })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

fn refusals(connection: &Connection) -> Result<Vec<RefusalReport>, LedgerError> {
    let mut query = connection.prepare(
        "SELECT at, peer, label, job, reason FROM refusals ORDER BY number DESC LIMIT ?1",
    )?;
    let rows = query.query_map([LISTED], |row| {
        Ok(RefusalReport {
            at: Timestamp(row.get(0)?),
            peer: row.get(1)?,
            label: row.get(2)?,
            job: row.get(3)?,
            reason: row.get(4)?,
        })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}
