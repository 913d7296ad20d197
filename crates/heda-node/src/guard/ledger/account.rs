//! The budget of a data set in the ledger: a release is paid for once, and stored before it leaves.

use super::chain::Entry;
use super::{Change, JobKey, Ledger, LedgerError, decimal};
use crate::system::hex;
use heda_dp::account::{Charge, Receipt, Spend};
use heda_dp::epsilon::Epsilon;
use rusqlite::{Connection, OptionalExtension, params};
use sha2::{Digest, Sha256};

/// What the budget bought.
#[derive(Debug)]
pub enum Purchase {
    /// Paid, nothing has left yet: make the release and store it.
    Paid(Receipt),
    /// Paid and made before: send this again.
    Stored(Vec<u8>),
}

/// What one job may spend of a data set's budget.
#[derive(Debug)]
pub struct JobBudget<'a> {
    ledger: &'a Ledger,
    job: &'a JobKey,
    data_set: &'a str,
    total: Epsilon,
}

impl Spend for JobBudget<'_> {
    type Refused = LedgerError;

    /// Writes the charge durably, within the limit of the data set. The same charge of the same
    /// job is written once: a job that lost its release before it was stored makes it again.
    fn record(&mut self, charge: &Charge) -> Result<(), LedgerError> {
        let (job, data_set, total) = (self.job, self.data_set, self.total);
        let written = written(charge)?;
        self.ledger.change(|change| {
            if let Some((paid, _)) = find_release(change, job)? {
                return same(job, &paid, &written);
            }
            let asked = charge.total();
            let spent = spent_billionths(change, data_set)?;
            let left = total.billionths().saturating_sub(spent);
            if asked.billionths() > left {
                return Err(LedgerError::Exhausted {
                    asked,
                    spent: decimal(spent),
                    total,
                });
            }
            insert_release(change, job, data_set, &written, asked)
        })
    }
}

impl Ledger {
    /// What a job may spend of a data set that has this limit.
    pub fn job_budget<'a>(
        &'a self,
        job: &'a JobKey,
        data_set: &'a str,
        total: Epsilon,
    ) -> JobBudget<'a> {
        JobBudget {
            ledger: self,
            job,
            data_set,
            total,
        }
    }

    /// Pays for a job's release, once; or finds what it paid for before.
    pub fn buy(
        &self,
        job: &JobKey,
        data_set: &str,
        charge: Charge,
        total: Epsilon,
    ) -> Result<Purchase, LedgerError> {
        let found = find_release(&self.opened()?.connection, job)?;
        if let Some((paid, Some(content))) = found {
            same(job, &paid, &written(&charge)?)?;
            return Ok(Purchase::Stored(content));
        }
        let receipt = self.job_budget(job, data_set, total).spend(charge)?;
        Ok(Purchase::Paid(receipt))
    }

    /// Stores the content of a paid release before it leaves; returns its SHA-256. What is stored
    /// once is never changed.
    pub fn store_release(&self, job: &JobKey, content: &[u8]) -> Result<[u8; 32], LedgerError> {
        let hash: [u8; 32] = Sha256::digest(content).into();
        self.change(|change| {
            let stored = change.execute(
                "UPDATE releases SET content = ?3, sha256 = ?4
                 WHERE peer = ?1 AND job = ?2 AND content IS NULL",
                params![job.peer.to_string(), job.id, content, hash],
            )?;
            if stored != 1 {
                return Err(LedgerError::OtherRelease(job.id.clone()));
            }
            let (job, sha256) = (job.id.clone(), hex(&hash));
            change.note(&Entry::Stored { job, sha256 })?;
            Ok(hash)
        })
    }
}

fn written(charge: &Charge) -> Result<String, LedgerError> {
    let written = serde_json::to_string(charge);
    written.map_err(|e| LedgerError::Damaged(format!("a charge: {e}")))
}

fn same(job: &JobKey, paid: &str, asked: &str) -> Result<(), LedgerError> {
    match paid == asked {
        true => Ok(()),
        false => Err(LedgerError::OtherRelease(job.id.clone())),
    }
}

type StoredRelease = (String, Option<Vec<u8>>);

fn find_release(
    connection: &Connection,
    job: &JobKey,
) -> Result<Option<StoredRelease>, LedgerError> {
    type Row = (String, Option<Vec<u8>>, Option<[u8; 32]>);
    let found: Option<Row> = connection
        .query_row(
            "SELECT charge, content, sha256 FROM releases WHERE peer = ?1 AND job = ?2",
            params![job.peer.to_string(), job.id],
            |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
        )
        .optional()?;
    let Some((charge, content, sha256)) = found else {
        return Ok(None);
    };
    // A release that changed on the disk would be a second one, unpaid.
    let digest = content
        .as_ref()
        .map(|c| <[u8; 32]>::from(Sha256::digest(c)));
    match digest == sha256 {
        true => Ok(Some((charge, content))),
        false => Err(LedgerError::Damaged(format!(
            "the release of job {}",
            job.id
        ))),
    }
}

fn insert_release(
    change: &Change<'_>,
    job: &JobKey,
    data_set: &str,
    charge: &str,
    asked: Epsilon,
) -> Result<(), LedgerError> {
    let open: bool = change.query_row(
        "SELECT count(*) FROM jobs WHERE peer = ?1 AND id = ?2 AND state = 'open'",
        params![job.peer.to_string(), job.id],
        |row| row.get::<_, u64>(0).map(|n| n == 1),
    )?;
    if !open {
        return Err(LedgerError::NotOpen(job.id.clone()));
    }
    change.execute(
        "INSERT INTO releases (peer, job, data_set, charge, billionths, paid)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        params![
            job.peer.to_string(),
            job.id,
            data_set,
            charge,
            asked.billionths(),
            change.now.0
        ],
    )?;
    change.note(&Entry::Paid {
        job: job.id.clone(),
        data_set: data_set.to_owned(),
        billionths: asked.billionths(),
    })
}

/// The sum of everything paid for a data set. Exact: billionths are whole numbers.
pub(super) fn spent_billionths(
    connection: &Connection,
    data_set: &str,
) -> Result<u64, LedgerError> {
    let spent = connection.query_row(
        "SELECT coalesce(sum(billionths), 0) FROM releases WHERE data_set = ?1",
        [data_set],
        |row| row.get(0),
    )?;
    Ok(spent)
}
