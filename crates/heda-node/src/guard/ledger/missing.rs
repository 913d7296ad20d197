//! Entries that a ledger has lost, and what they can have cost.
//!
//! The anchor knows how many entries there were. What stood in those that are gone nobody knows; a
//! single one can have paid for as much as the caps left room for. So a ledger that begins anew
//! without them counts all of that as used, for every data set that it knows of. So does one whose
//! chain and tables disagree: what was altered nobody knows either. Budgets only ever err on the side
//! of the rows.

use super::LedgerError;
use super::account::spent_billionths;
use super::anchor::Anchored;
use super::chain;
use super::private::{PrivateCap, spent};
use crate::system::clock::Timestamp;
use heda_dp::account::{Charge, ColumnCharge, Mechanism};
use heda_dp::epsilon::Epsilon;
use rusqlite::{Connection, params};

/// What jobs on a data set may cost by its configuration.
#[derive(Debug, Clone, Copy)]
pub struct Caps<'a> {
    /// The data set.
    pub data_set: &'a str,
    /// What private jobs may cost.
    pub private: Option<&'a PrivateCap>,
    /// What may be published.
    pub published: Option<Epsilon>,
}

/// Whom the ledger names where it does not know who was answered.
pub(super) const NOBODY: &str = "missing entries";

/// How many entries a ledger lacks that its anchor knows; all of them if it is another one, or if it
/// was altered.
pub(super) fn count(
    found: Option<&Connection>,
    anchored: Option<&Anchored>,
) -> Result<u64, LedgerError> {
    // A chain that cannot be read has no entries.
    let epoch = found.and_then(|found| chain::epoch(found).ok().flatten());
    let head = found.and_then(|found| chain::head(found).ok().flatten());
    let longest = [anchored.map(|anchored| anchored.head), head];
    let longest = longest.into_iter().flatten().map(|head| head.number).max();
    // The first entry tells why the ledger was begun, and carries what was paid before.
    let all = longest.unwrap_or(0).max(1);
    let altered = epoch.is_some() && found.is_some_and(|found| chain::verify(found).is_err());
    let Some(anchored) = anchored else {
        return Ok(if altered { all } else { 0 });
    };
    let (Some(found), Some(head)) = (found, head) else {
        return Ok(all);
    };
    let known = anchored.head.number;
    Ok(match epoch == Some(anchored.epoch) && !altered {
        true if head.number < known => known - head.number,
        true => match chain::entry_at(found, known)? {
            Some(entry) if entry != anchored.head => all,
            _ => 0,
        },
        false => all,
    })
}

/// Charges all that the caps leave room for: of the data set that they are about, and of every other
/// one that the ledger knows, which may hold the same people.
pub(super) fn charge(
    change: &Connection,
    caps: &Caps<'_>,
    now: Timestamp,
) -> Result<(), LedgerError> {
    let mut names = chain::data_sets(change)?;
    names.insert(caps.data_set.to_owned());
    for (number, data_set) in names.iter().enumerate() {
        let caps = Caps { data_set, ..*caps };
        charge_one(change, &caps, &format!("missing-{}-{number}", now.0), now)?;
    }
    Ok(())
}

fn charge_one(
    change: &Connection,
    caps: &Caps<'_>,
    name: &str,
    now: Timestamp,
) -> Result<(), LedgerError> {
    if let Some(cap) = caps.private {
        let spent = spent(change, caps.data_set, None)?;
        let left = cap.total().minus(spent).unwrap_or_default();
        change.execute(
            "INSERT INTO private (peer, job, data_set, training, counts)
             VALUES (?1, ?2, ?3, ?4, 0)",
            params![NOBODY, name, caps.data_set, left.parts()],
        )?;
    }
    if let Some(total) = caps.published {
        let spent = spent_billionths(change, caps.data_set)?;
        let left = total.billionths().saturating_sub(spent);
        if let Ok(left) = Epsilon::from_billionths(left) {
            charge_release(change, caps.data_set, (name, left), now)?;
        }
    }
    Ok(())
}

/// A release of which nothing is known but what it may have cost.
fn charge_release(
    change: &Connection,
    data_set: &str,
    (name, epsilon): (&str, Epsilon),
    now: Timestamp,
) -> Result<(), LedgerError> {
    let column = ColumnCharge {
        name: NOBODY.to_owned(),
        epsilon,
    };
    let damaged = |e: &dyn std::fmt::Display| LedgerError::Damaged(e.to_string());
    let charge = Charge::new(Mechanism::Laplace, vec![column]).map_err(|e| damaged(&e))?;
    let charge = serde_json::to_string(&charge).map_err(|e| damaged(&e))?;
    change.execute(
        "INSERT INTO jobs (peer, id, label, data_set, engine, terms, opened, ended, state)
         VALUES (?1, ?2, ?1, ?3, '-', '-', ?4, ?4, 'finished')",
        params![NOBODY, name, data_set, now.0],
    )?;
    change.execute(
        "INSERT INTO releases (peer, job, data_set, charge, billionths, paid)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        params![NOBODY, name, data_set, charge, epsilon.billionths(), now.0],
    )?;
    Ok(())
}
