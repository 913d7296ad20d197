//! What a data user has learned of a data set over all of its jobs, and with whom.
//!
//! Numbers are counted by data user and data set for as long as the ledger lives: a new job gives
//! nothing anew. Gradients, counts and scores are sums over the providers of a job, and sums over
//! different providers can be subtracted; so a job keeps its providers from the first sum on, and
//! provider sets from which one provider's numbers follow are refused ([`crate::guard::policy::provider_set`]).

use super::chain::Entry;
use super::{Change, JobKey, Ledger, LedgerError};
use crate::guard::policy::provider_set::{Exposure, ProviderSet, exposure};
use rusqlite::{Connection, OptionalExtension, params};
use serde::Serialize;
use std::collections::BTreeSet;

/// What leaves. Of sums of different kinds no combination is a sum of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DisclosureKind {
    /// Scores of the features.
    Scores,
    /// Published columns: no sum, but in an order of rows that depends on who takes part.
    Release,
    /// Sums over rows: of columns, gradients, and counts of held-out rows. Gradients at coefficients that put
    /// all rows on one side of the boundary add up to the sums of columns.
    Training,
}

impl DisclosureKind {
    fn name(self) -> &'static str {
        match self {
            Self::Scores => "scores",
            Self::Release => "release",
            Self::Training => "training",
        }
    }
}

/// Something that is about to leave.
#[derive(Debug, Clone, Copy)]
pub struct Disclosure<'a> {
    /// What.
    pub kind: DisclosureKind,
    /// Who takes part.
    pub provider_set: &'a ProviderSet,
    /// How many numbers it is.
    pub numbers: u64,
    /// How many the data user may learn of the data set, over all of its jobs.
    pub numbers_most: u64,
    /// Whether sums may be such that one provider's numbers follow from them.
    pub may_single_out: bool,
}

/// What one data user has learned.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DisclosedReport {
    /// The data user's fingerprint.
    pub peer: String,
    /// What the configuration called it last.
    pub label: String,
    /// Numbers in all gradients and counts of all its jobs.
    pub numbers: u64,
    /// Different sets of providers that it trained with.
    #[serde(rename = "circles")]
    pub provider_sets: u64,
}

impl Ledger {
    /// Whether all of it could leave, before anything is paid for.
    pub fn foresee(
        &self,
        job: &JobKey,
        data_set: &str,
        disclosure: &Disclosure<'_>,
    ) -> Result<(), LedgerError> {
        let opened = self.opened()?;
        check_provider_set(&opened.connection, job, data_set, disclosure)?;
        within(numbers(&opened.connection, job, data_set)?, disclosure)
    }

    /// Notes what is about to leave and is not counted in any other way.
    pub fn disclose(
        &self,
        job: &JobKey,
        data_set: &str,
        disclosure: &Disclosure<'_>,
    ) -> Result<(), LedgerError> {
        self.change(|change| disclose(change, job, data_set, disclosure))
    }
}

/// Notes what is about to leave, as a part of a change.
pub(super) fn disclose(
    change: &Change<'_>,
    job: &JobKey,
    data_set: &str,
    disclosure: &Disclosure<'_>,
) -> Result<(), LedgerError> {
    let first = check_provider_set(change, job, data_set, disclosure)?;
    if first {
        change.execute(
            "INSERT INTO circles (peer, job, data_set, kind, circle, columns)
             VALUES (?1, ?2, ?3, ?4, ?5, 0)",
            params![
                job.peer.to_string(),
                job.id,
                data_set,
                disclosure.kind.name(),
                written(disclosure.provider_set)
            ],
        )?;
    }
    within(numbers(change, job, data_set)?, disclosure)?;
    change.execute(
        "INSERT INTO disclosed VALUES (?1, ?2, ?3)
         ON CONFLICT DO UPDATE SET numbers = numbers + excluded.numbers",
        params![job.peer.to_string(), data_set, disclosure.numbers],
    )?;
    change.note(&Entry::Disclosed {
        peer: job.peer.to_string(),
        data_set: data_set.to_owned(),
        numbers: disclosure.numbers,
        provider_set: first.then(|| written(disclosure.provider_set)),
    })
}

/// Refuses a provider set that the job may not have; whether it is the first one of its kind.
fn check_provider_set(
    connection: &Connection,
    job: &JobKey,
    data_set: &str,
    disclosure: &Disclosure<'_>,
) -> Result<bool, LedgerError> {
    let known: Option<String> = connection
        .query_row(
            "SELECT circle FROM circles WHERE peer = ?1 AND job = ?2 AND kind = ?3",
            params![job.peer.to_string(), job.id, disclosure.kind.name()],
            |row| row.get(0),
        )
        .optional()?;
    if let Some(known) = known {
        return match known == written(disclosure.provider_set) {
            true => Ok(false),
            false => Err(LedgerError::OtherProviders(job.id.clone())),
        };
    }
    if disclosure.kind == DisclosureKind::Release || disclosure.may_single_out {
        return Ok(true);
    }
    let before = provider_sets(connection, job, data_set, disclosure.kind)?;
    match exposure(&before, disclosure.provider_set) {
        None => Ok(true),
        Some(Exposure::SinglesOut(provider)) => Err(LedgerError::SinglesOut(provider)),
        Some(Exposure::TooMany) => Err(LedgerError::TooManyCircles),
    }
}

fn within(before: u64, disclosure: &Disclosure<'_>) -> Result<(), LedgerError> {
    match before.saturating_add(disclosure.numbers) <= disclosure.numbers_most {
        true => Ok(()),
        false => Err(LedgerError::Disclosed {
            before,
            more: disclosure.numbers,
            most: disclosure.numbers_most,
        }),
    }
}

fn numbers(connection: &Connection, job: &JobKey, data_set: &str) -> Result<u64, LedgerError> {
    let numbers: Option<u64> = connection
        .query_row(
            "SELECT numbers FROM disclosed WHERE peer = ?1 AND data_set = ?2",
            params![job.peer.to_string(), data_set],
            |row| row.get(0),
        )
        .optional()?;
    Ok(numbers.unwrap_or(0))
}

fn provider_sets(
    connection: &Connection,
    job: &JobKey,
    data_set: &str,
    kind: DisclosureKind,
) -> Result<BTreeSet<ProviderSet>, LedgerError> {
    let mut query = connection.prepare(
        // Before version 7 sums of columns were written down as scores.
        "SELECT DISTINCT circle FROM circles WHERE peer = ?1 AND data_set = ?2
         AND (kind = ?3 OR ?3 = 'training' AND kind = 'scores' AND columns)",
    )?;
    let rows = query.query_map(
        params![job.peer.to_string(), data_set, kind.name()],
        |row| row.get::<_, String>(0),
    )?;
    rows.map(|row| read(&row?)).collect()
}

/// Fingerprints in their order, with spaces between them.
fn written(provider_set: &ProviderSet) -> String {
    let members: Vec<String> = provider_set.iter().map(ToString::to_string).collect();
    members.join(" ")
}

fn read(text: &str) -> Result<ProviderSet, LedgerError> {
    let members = text.split(' ').map(|member| member.parse().ok());
    let provider_set: Option<ProviderSet> = members.collect();
    provider_set.ok_or_else(|| LedgerError::Damaged("a provider set".into()))
}

/// What every data user has learned of a data set.
pub(super) fn report(
    connection: &Connection,
    data_set: &str,
) -> Result<Vec<DisclosedReport>, LedgerError> {
    let mut query = connection.prepare(
        "SELECT d.peer, d.numbers,
             coalesce((SELECT label FROM jobs j WHERE j.peer = d.peer
                       ORDER BY opened DESC, rowid DESC LIMIT 1), ''),
             (SELECT count(DISTINCT circle) FROM circles c
              WHERE c.peer = d.peer AND c.data_set = d.data_set AND c.kind = 'training')
         FROM disclosed d WHERE d.data_set = ?1 ORDER BY d.peer",
    )?;
    let rows = query.query_map([data_set], |row| {
        Ok(DisclosedReport {
            peer: row.get(0)?,
            numbers: row.get(1)?,
            label: row.get(2)?,
            provider_sets: row.get(3)?,
        })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}
