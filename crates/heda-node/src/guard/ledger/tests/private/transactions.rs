//! How many durable changes an answer costs, counted in the file: every one ends with a frame in SQLite's
//! write-ahead log that names the size of the ledger.

use super::*;

/// Durable changes since the log was begun.
fn commits(bench: &Bench) -> usize {
    let mut log = bench.path().into_os_string();
    log.push("-wal");
    let log = std::fs::read(log).unwrap();
    let number = |at: usize| u32::from_be_bytes(log[at..at + 4].try_into().unwrap());
    let (page, salts) = (number(8) as usize, &log[16..24]);
    let frames = (32..).step_by(24 + page);
    let frames = frames.take_while(|frame| frame + 24 + page <= log.len());
    let current = frames.filter(|frame| &log[frame + 8..frame + 16] == salts);
    current.filter(|frame| number(frame + 4) > 0).count()
}

#[test]
fn a_session_costs_one_durable_change_and_each_of_its_gradients_one_more() {
    let bench = Bench::new();
    let ledger = bench.ledger();
    let cap = cap("2", "2");
    let job = unplanned(&ledger, "user", "one");
    let idle = unplanned(&ledger, "other", "idle");
    let each = Cost::from_parts(1000);
    let held = plan(each.times(20));
    ledger.hold(&job, "ward", held, &cap).unwrap();
    let mut before = commits(&bench);
    let mut more = || {
        let now = commits(&bench);
        now - std::mem::replace(&mut before, now)
    };
    ledger.try_answer(&job).unwrap();
    assert_eq!(more(), 1);
    for number in 0..8 {
        answer_under(&ledger, &job, (GRADIENT, number, each), (&cap, Some(held))).unwrap();
        assert_eq!(more(), 1, "number, cost and limits in one");
    }
    // What another job has let lapse is freed in the same change.
    ledger.hold(&idle, "ward", held, &cap).unwrap();
    bench.pass(LAPSE_SECONDS - 10);
    answer_under(&ledger, &job, (GRADIENT, 8, each), (&cap, Some(held))).unwrap();
    assert_eq!(ledger.private("ward", Some(&cap)).unwrap().holds.len(), 2);
    bench.pass(20);
    let _ = more();
    answer_under(&ledger, &job, (GRADIENT, 9, each), (&cap, Some(held))).unwrap();
    assert_eq!(more(), 1);
    assert_eq!(ledger.private("ward", Some(&cap)).unwrap().holds.len(), 1);
    // A refusal leaves nothing behind.
    let again = answer_under(&ledger, &job, (GRADIENT, 9, each), (&cap, Some(held)));
    assert!(matches!(again, Err(LedgerError::Answered { next: 10, .. })));
    assert_eq!(more(), 0);
    assert_eq!(spent(&ledger), each.times(10));
}
