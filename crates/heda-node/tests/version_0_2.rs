//! A ledger of version 0.2 is taken over with all that it charged. Its files are what that version wrote for
//! one of three providers: a job that published four features, and a private one with moments, gradients
//! and counts. Its own reports are beside it.
#![allow(clippy::unwrap_used, reason = "a test that fails should say where")]

mod common;

use common::*;
use heda_dp::gdp::Cost;
use heda_job::guard::AgreedPlan;
use heda_node::guard::ledger::{
    JobKey, JobTerms, LEDGER_VERSION, Ledger, LedgerError, LedgerPlace, PrivateCap, Whose,
};
use heda_node::system::clock::{ManualClock, Timestamp};
use rusqlite::types::Value as Cell;
use rusqlite::{Connection, OpenFlags};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

const DATA_SET: &str = "biopsies";

/// Every table with its columns and rows.
type Tables = BTreeMap<String, (Vec<String>, Vec<Vec<Cell>>)>;

fn names(connection: &Connection, query: &str) -> Vec<String> {
    let mut query = connection.prepare(query).unwrap();
    let names = query.query_map([], |row| row.get(0)).unwrap();
    names.map(Result::unwrap).collect()
}

fn rows(connection: &Connection, table: &str, columns: &[String]) -> Vec<Vec<Cell>> {
    let query = format!("SELECT {} FROM {table} ORDER BY rowid", columns.join(", "));
    let mut query = connection.prepare(&query).unwrap();
    let row = |row: &rusqlite::Row<'_>| (0..columns.len()).map(|at| row.get(at)).collect();
    let rows = query.query_map([], row).unwrap();
    rows.map(Result::unwrap).collect()
}

fn opened(path: &Path) -> (Connection, u32) {
    let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY).unwrap();
    let version = connection.pragma_query_value(None, "user_version", |row| row.get(0));
    (connection, version.unwrap())
}

fn tables(connection: &Connection) -> Tables {
    let tables = names(
        connection,
        "SELECT name FROM sqlite_master WHERE type = 'table'",
    );
    let one = |table: String| {
        let info = format!("SELECT name FROM pragma_table_info('{table}') ORDER BY cid");
        let columns = names(connection, &info);
        let rows = rows(connection, &table, &columns);
        (table, (columns, rows))
    };
    tables.into_iter().map(one).collect()
}

/// Whether everything that was reported is reported again.
fn assert_within(before: &Value, after: &Value, place: &str) {
    match (before, after) {
        (Value::Object(before), Value::Object(after)) => {
            for (name, value) in before {
                let place = format!("{place}.{name}");
                let found = after.get(name).unwrap_or_else(|| panic!("{place} is gone"));
                assert_within(value, found, &place);
            }
        }
        (Value::Array(before), Value::Array(after)) => {
            assert_eq!(before.len(), after.len(), "{place}");
            for (number, (before, after)) in before.iter().zip(after).enumerate() {
                assert_within(before, after, &format!("{place}.{number}"));
            }
        }
        _ => assert_eq!(before, after, "{place}"),
    }
}

#[test]
fn a_ledger_of_version_0_2_is_taken_over_with_all_that_it_charged() {
    let folder = tempfile::tempdir().unwrap();
    let files = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/files/ledger-0.2");
    let copied = |name: &str| {
        let path = folder.path().join(name);
        std::fs::copy(files.join(name), &path).unwrap();
        path
    };
    let place = LedgerPlace {
        ledger: copied("ledger.sqlite"),
        anchor: copied("ledger.anchor"),
    };
    let (connection, version) = opened(&place.ledger);
    let before = tables(&connection);
    drop(connection);
    assert!(version < LEDGER_VERSION, "{version}");
    for table in [
        "jobs",
        "releases",
        "days",
        "circles",
        "disclosed",
        "private",
    ] {
        assert!(!before[table].1.is_empty(), "{table}");
    }
    let Cell::Integer(seen) = before["clock"].1[0][1] else {
        panic!("a time");
    };
    let clock = Arc::new(ManualClock::at(Timestamp(seen as u64)));
    let ledger = Ledger::open(&place, clock.clone()).unwrap();

    // What it reports.
    let told = std::fs::read_to_string(files.join("reports.json")).unwrap();
    let told: Value = serde_json::from_str(&told).unwrap();
    let cap = PrivateCap {
        epsilon: "2".parse().unwrap(),
        per_user: "2".parse().unwrap(),
        delta: "1e-5".parse().unwrap(),
    };
    let report = |what: &str, report: Value| assert_within(&told[what], &report, what);
    let total = Some("1.5".parse().unwrap());
    let budget = ledger.budget(DATA_SET, total).unwrap();
    assert_eq!((&budget.epsilon_spent[..], budget.releases.len()), ("1", 1));
    report("budget", serde_json::to_value(budget).unwrap());
    let status = ledger.status(DATA_SET).unwrap();
    assert!(status.disclosed[0].numbers > 0 && status.iterations_today > 0);
    let jobs = status.jobs.clone();
    report("status", serde_json::to_value(status).unwrap());
    let private = ledger.private(DATA_SET, Some(&cap)).unwrap();
    assert_eq!(told["private_parts"], private.spent.parts());
    assert!(private.spent > Cost::ZERO && private.holds.is_empty());
    report("private", serde_json::to_value(&private).unwrap());

    // What is in its tables, to the last row: what was added comes after it, or beside it.
    let (connection, version) = opened(&place.ledger);
    assert_eq!(version, LEDGER_VERSION);
    for (table, (columns, own)) in &before {
        let found = rows(&connection, table, columns);
        assert_eq!(found[..own.len()], own[..], "{table}");
        assert!(found.len() == own.len() || table == "entries", "{table}");
    }
    drop(connection);

    // It goes on from there: what is left is left, and nothing more.
    let user = identity("user").fingerprint();
    let names: Vec<&str> = jobs.iter().map(|job| &job.job[..]).collect();
    let key = |id: &str| JobKey {
        peer: user,
        id: id.to_owned(),
    };
    let paid = names
        .iter()
        .map(|id| ledger.paid_by(&key(id)).unwrap().charged());
    assert_eq!(paid.sum::<Cost>(), private.spent);
    let left = cap.total().minus(private.spent).unwrap();
    let more = left.plus(Cost::from_parts(1));
    let plan = |cost| AgreedPlan {
        cost,
        persons: false,
    };
    let terms = JobTerms {
        label: "user".into(),
        data_set: DATA_SET.into(),
        engine: "resident".into(),
        request: "x".into(),
    };
    ledger.open_job(&key("next"), &terms).unwrap();
    let refused = ledger.hold(&key("next"), DATA_SET, plan(more), &cap);
    let refused = refused.unwrap_err();
    let whose = Whose::User;
    assert!(
        matches!(refused, LedgerError::PrivateExhausted { whose: w, .. } if w == whose),
        "{refused}"
    );
    let held = ledger.hold(&key("next"), DATA_SET, plan(left), &cap);
    held.unwrap();
    drop(ledger);
    let again = Ledger::open(&place, clock).unwrap();
    let spent = again.private(DATA_SET, Some(&cap)).unwrap().spent;
    assert_eq!(spent, private.spent);
}
