//! The chain of entries: everything that the ledger ever noted, each bound to all before it.
//!
//! ```text
//! hash(0) = SHA-256("heda ledger" | epoch)
//! hash(n) = SHA-256(hash(n − 1) | n | time | the entry as JSON)
//! ```
//!
//! The tables are what the entries add up to; [`verify`] adds them up again and compares. To note
//! a new kind of thing, add a variant to [`Entry`], say in [`Totals::add`] what it counts for, and
//! read the same sum from the tables in [`Totals::of_tables`].

use super::{LedgerError, LedgerLoss};
use crate::system::clock::Timestamp;
use crate::system::{hex, unhex};
use rusqlite::{Connection, OptionalExtension, params};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};

/// Which ledger: drawn at random when it is begun.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Epoch(pub(super) [u8; 16]);

impl std::fmt::Display for Epoch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&hex(&self.0))
    }
}

impl std::str::FromStr for Epoch {
    type Err = LedgerError;

    fn from_str(text: &str) -> Result<Self, LedgerError> {
        let damaged = || LedgerError::Damaged("an epoch".into());
        unhex(text).map(Self).ok_or_else(damaged)
    }
}

/// The last entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ChainHead {
    pub(super) number: u64,
    pub(super) hash: [u8; 32],
}

/// What reveals a number and is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Counted {
    /// A gradient.
    Iteration,
    /// Counts of held-out rows.
    Evaluation,
    /// Scores of the features, or sums of columns.
    Ranking,
}

impl Counted {
    /// Counts one more in its job, and gives how many there are then.
    pub(super) fn statement(self) -> &'static str {
        match self {
            Self::Iteration => {
                "UPDATE jobs SET iterations = iterations + 1
                 WHERE peer = ?1 AND id = ?2 AND state = 'open' RETURNING iterations"
            }
            Self::Evaluation => {
                "UPDATE jobs SET evaluations = evaluations + 1
                 WHERE peer = ?1 AND id = ?2 RETURNING evaluations"
            }
            Self::Ranking => {
                "UPDATE jobs SET rankings = rankings + 1
                 WHERE peer = ?1 AND id = ?2 RETURNING rankings"
            }
        }
    }
}

impl std::fmt::Display for Counted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Iteration => "iterations",
            Self::Evaluation => "evaluations on held-out rows",
            Self::Ranking => "rankings of its features",
        })
    }
}

/// One thing that happened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum Entry {
    /// The first entry: why this ledger was begun, and what it took over.
    Begun { because: String, carried: Totals },
    /// Takes the place of all entries before it.
    Carried { totals: Totals },
    /// A job.
    Opened { peer: String, job: String },
    /// A number is about to leave.
    Counted {
        what: Counted,
        job: String,
        data_set: String,
    },
    /// Numbers for a data user, and with whom if that is new.
    Disclosed {
        peer: String,
        data_set: String,
        numbers: u64,
        #[serde(rename = "circle")]
        provider_set: Option<String>,
    },
    /// A release.
    Paid {
        job: String,
        data_set: String,
        billionths: u64,
    },
    /// Its content.
    Stored { job: String, sha256: String },
    /// An answer of a private job, by what it adds to the cost of the job.
    Private {
        peer: String,
        job: String,
        data_set: String,
        parts: u64,
    },
    /// An answer took its number, so many after the last one.
    Answered {
        job: String,
        number: u32,
        advance: u64,
    },
    /// A job that had so many numbers is no longer kept.
    Forgotten { answered: u64 },
    /// A private job set aside what it may still pay.
    Held {
        peer: String,
        job: String,
        parts: u64,
    },
    /// What a job had set aside is free.
    Freed { job: String },
    /// A data user failed a check that no honest one fails.
    FailedCheck { peer: String, job: String },
    /// The end of a job.
    Finished { job: String },
    /// Something was refused.
    Refused { job: String },
}

/// What the entries add up to, as far as budgets and limits go by it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Totals {
    /// ε paid by data set, in billionths.
    spent: BTreeMap<String, u64>,
    /// Numbers counted by data set, on all days.
    counted: BTreeMap<String, u64>,
    /// Numbers that left, by data user and data set.
    #[serde(default)]
    disclosed: BTreeMap<String, u64>,
    /// Jobs whose providers were noted, by data user and data set.
    #[serde(default)]
    #[serde(rename = "circles")]
    provider_sets: BTreeMap<String, u64>,
    /// What private jobs cost, by data user and data set, in 10⁻¹⁵ of μ².
    #[serde(default)]
    private: BTreeMap<String, u64>,
    /// Numbers of answers that are taken, over all jobs that are kept.
    #[serde(default)]
    answered: u64,
    /// Checks that data users failed.
    #[serde(default)]
    failed_checks: BTreeMap<String, u64>,
}

impl Totals {
    fn add(&mut self, entry: &Entry) {
        match entry {
            Entry::Begun { carried: all, .. } | Entry::Carried { totals: all } => {
                self.clone_from(all);
            }
            Entry::Counted { data_set, .. } => add(&mut self.counted, data_set, 1),
            Entry::Disclosed {
                peer,
                data_set,
                numbers,
                provider_set,
            } => {
                let who = format!("{peer} {data_set}");
                add(&mut self.disclosed, &who, *numbers);
                if provider_set.is_some() {
                    add(&mut self.provider_sets, &who, 1);
                }
            }
            Entry::Paid {
                data_set,
                billionths,
                ..
            } => add(&mut self.spent, data_set, *billionths),
            Entry::Private {
                peer,
                data_set,
                parts,
                ..
            } => add(&mut self.private, &format!("{peer} {data_set}"), *parts),
            Entry::Answered { advance, .. } => {
                self.answered = self.answered.saturating_add(*advance);
            }
            Entry::Forgotten { answered } => {
                self.answered = self.answered.saturating_sub(*answered);
            }
            Entry::FailedCheck { peer, .. } => add(&mut self.failed_checks, peer, 1),
            Entry::Opened { .. }
            | Entry::Stored { .. }
            | Entry::Held { .. }
            | Entry::Freed { .. }
            | Entry::Finished { .. }
            | Entry::Refused { .. } => {}
        }
    }

    /// The data sets that they are about.
    fn data_sets(&self) -> impl Iterator<Item = &str> {
        let by_user = [&self.disclosed, &self.provider_sets, &self.private];
        let by_user = by_user.into_iter().flat_map(BTreeMap::keys);
        // No name of a data set has a space.
        let by_user = by_user.filter_map(|who| Some(who.rsplit_once(' ')?.1));
        let plain = self.spent.keys().chain(self.counted.keys());
        plain.map(String::as_str).chain(by_user)
    }

    /// The same from the tables.
    pub(super) fn of_tables(connection: &Connection) -> Result<Self, LedgerError> {
        let spent = "SELECT data_set, sum(billionths) FROM releases GROUP BY data_set";
        let counted = "SELECT data_set, sum(iterations) FROM days GROUP BY data_set";
        let disclosed = "SELECT peer || ' ' || data_set, numbers FROM disclosed";
        let provider_sets =
            "SELECT peer || ' ' || data_set, count(*) FROM circles GROUP BY peer, data_set";
        let private = "SELECT peer || ' ' || data_set, sum(max(training, counts)) FROM private
                       GROUP BY peer, data_set";
        let answered = "SELECT coalesce(sum(next_step), 0) FROM jobs";
        Ok(Self {
            spent: sums(connection, spent)?,
            counted: sums(connection, counted)?,
            disclosed: sums(connection, disclosed)?,
            provider_sets: sums(connection, provider_sets)?,
            private: sums(connection, private)?,
            answered: connection.query_row(answered, [], |row| row.get(0))?,
            failed_checks: sums(connection, "SELECT peer, checks FROM failed_checks")?,
        })
    }
}

fn add(sums: &mut BTreeMap<String, u64>, data_set: &str, more: u64) {
    let sum = sums.entry(data_set.to_owned()).or_default();
    *sum = sum.saturating_add(more);
}

fn sums(connection: &Connection, query: &str) -> Result<BTreeMap<String, u64>, LedgerError> {
    let mut query = connection.prepare(query)?;
    let rows = query.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// More entries than this are carried forward into one.
pub(super) const ENTRIES_KEPT: u64 = 20_000;

/// Begins a chain over what the tables hold.
pub(super) fn begin(
    connection: &Connection,
    epoch: Epoch,
    because: &str,
    now: Timestamp,
) -> Result<ChainHead, LedgerError> {
    connection.execute("DELETE FROM entries", [])?;
    connection.execute("DELETE FROM chain", [])?;
    let before = genesis(epoch);
    connection.execute(
        "INSERT INTO chain VALUES (0, ?1, ?2)",
        params![epoch.to_string(), before],
    )?;
    let entry = Entry::Begun {
        because: because.to_owned(),
        carried: Totals::of_tables(connection)?,
    };
    let start = ChainHead {
        number: 0,
        hash: before,
    };
    append_after(connection, start, &entry, now)
}

/// Notes something; what comes of the whole change is durable or did not happen.
pub(super) fn append(
    connection: &Connection,
    entry: &Entry,
    now: Timestamp,
) -> Result<(), LedgerError> {
    let last = head(connection)?.ok_or_else(no_chain)?;
    append_after(connection, last, entry, now).map(|_| ())
}

/// Replaces a long chain by one entry that carries its sums; old hashes live on in the next one.
pub(super) fn shorten(
    connection: &Connection,
    keep: u64,
    now: Timestamp,
) -> Result<(), LedgerError> {
    let query = "SELECT (SELECT max(number) FROM entries) - (SELECT min(number) FROM entries) + 1";
    let entries: u64 = connection.query_row(query, [], |row| row.get(0))?;
    if entries <= keep {
        return Ok(());
    }
    let last = head(connection)?.ok_or_else(no_chain)?;
    let totals = Totals::of_tables(connection)?;
    let carried = append_after(connection, last, &Entry::Carried { totals }, now)?;
    connection.execute("DELETE FROM entries WHERE number < ?1", [carried.number])?;
    connection.execute("UPDATE chain SET before = ?1", [last.hash])?;
    Ok(())
}

fn append_after(
    connection: &Connection,
    last: ChainHead,
    entry: &Entry,
    now: Timestamp,
) -> Result<ChainHead, LedgerError> {
    let what =
        serde_json::to_string(entry).map_err(|e| LedgerError::Damaged(format!("an entry: {e}")))?;
    let number = last.number + 1;
    let hash = link(&last.hash, number, now.0, &what);
    connection.execute(
        "INSERT INTO entries VALUES (?1, ?2, ?3, ?4)",
        params![number, now.0, what, hash],
    )?;
    Ok(ChainHead { number, hash })
}

fn genesis(epoch: Epoch) -> [u8; 32] {
    let hash = Sha256::new().chain_update(b"heda ledger");
    hash.chain_update(epoch.0).finalize().into()
}

fn link(before: &[u8; 32], number: u64, at: u64, what: &str) -> [u8; 32] {
    let hash = Sha256::new().chain_update(before);
    let hash = hash.chain_update(number.to_be_bytes());
    let hash = hash.chain_update(at.to_be_bytes());
    hash.chain_update(what.as_bytes()).finalize().into()
}

fn no_chain() -> LedgerError {
    LedgerError::Lost(LedgerLoss::NoChain)
}

/// The epoch, if the ledger has one yet.
pub(super) fn epoch(connection: &Connection) -> Result<Option<Epoch>, LedgerError> {
    let text: Option<String> = connection
        .query_row("SELECT epoch FROM chain", [], |row| row.get(0))
        .optional()?;
    text.map(|text| text.parse()).transpose()
}

/// The last entry.
pub(super) fn head(connection: &Connection) -> Result<Option<ChainHead>, LedgerError> {
    find(
        connection,
        "SELECT number, hash FROM entries ORDER BY number DESC LIMIT 1",
        [],
    )
}

/// The entry of this number.
pub(super) fn entry_at(
    connection: &Connection,
    number: u64,
) -> Result<Option<ChainHead>, LedgerError> {
    let query = "SELECT number, hash FROM entries WHERE number = ?1";
    find(connection, query, [number])
}

fn find(
    connection: &Connection,
    query: &str,
    values: impl rusqlite::Params,
) -> Result<Option<ChainHead>, LedgerError> {
    let found = connection.query_row(query, values, |row| {
        Ok(ChainHead {
            number: row.get(0)?,
            hash: row.get(1)?,
        })
    });
    Ok(found.optional()?)
}

/// Follows the chain from its first entry to its last, and compares its sums with the tables.
pub(super) fn verify(connection: &Connection) -> Result<ChainHead, LedgerError> {
    let before: Option<[u8; 32]> = connection
        .query_row("SELECT before FROM chain", [], |row| row.get(0))
        .optional()?;
    let mut hash = before.ok_or_else(no_chain)?;
    let mut last: Option<u64> = None;
    let mut totals = Totals::default();
    let mut query =
        connection.prepare("SELECT number, at, what, hash FROM entries ORDER BY number")?;
    let mut rows = query.query([])?;
    while let Some(row) = rows.next()? {
        let (number, at, what): (u64, u64, String) = (row.get(0)?, row.get(1)?, row.get(2)?);
        let written: [u8; 32] = row.get(3)?;
        hash = link(&hash, number, at, &what);
        if hash != written || last.is_some_and(|last| number != last + 1) {
            return Err(LedgerError::Lost(LedgerLoss::Broken(number)));
        }
        let entry: Entry = serde_json::from_str(&what)
            .map_err(|e| LedgerError::Damaged(format!("entry {number}: {e}")))?;
        let first = matches!(entry, Entry::Begun { .. } | Entry::Carried { .. });
        if last.is_none() && !first {
            return Err(LedgerError::Lost(LedgerLoss::Broken(number)));
        }
        totals.add(&entry);
        last = Some(number);
    }
    let number = last.ok_or_else(no_chain)?;
    match totals == Totals::of_tables(connection)? {
        true => Ok(ChainHead { number, hash }),
        false => Err(LedgerError::Lost(LedgerLoss::Disagrees)),
    }
}

/// Every data set that tables or entries name, as far as they can be read: altered ones may disagree.
pub(super) fn data_sets(connection: &Connection) -> Result<BTreeSet<String>, LedgerError> {
    let tables = "SELECT data_set FROM jobs UNION SELECT data_set FROM releases
                  UNION SELECT data_set FROM private";
    let mut query = connection.prepare(tables)?;
    let rows = query.query_map([], |row| row.get(0))?;
    let mut names: BTreeSet<String> = rows.collect::<Result<_, _>>()?;
    let totals = Totals::of_tables(connection)?;
    names.extend(totals.data_sets().map(str::to_owned));
    let mut query = connection.prepare("SELECT what FROM entries")?;
    let entries = query.query_map([], |row| row.get::<_, String>(0))?;
    for what in entries {
        let Ok(entry) = serde_json::from_str::<Entry>(&what?) else {
            continue;
        };
        let mut counted = Totals::default();
        counted.add(&entry);
        names.extend(counted.data_sets().map(str::to_owned));
    }
    Ok(names)
}

/// Why this ledger was begun, if its first entry is still there.
pub(super) fn beginning(connection: &Connection) -> Result<Option<String>, LedgerError> {
    let query = "SELECT what FROM entries WHERE number = 1";
    let what: Option<String> = connection
        .query_row(query, [], |row| row.get(0))
        .optional()?;
    let entry = what.and_then(|what| serde_json::from_str(&what).ok());
    Ok(entry.and_then(|entry| match entry {
        Entry::Begun { because, .. } => Some(because),
        _ => None,
    }))
}
