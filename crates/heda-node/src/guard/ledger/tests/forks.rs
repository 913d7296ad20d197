//! Ledgers that have gone another way than the one that is known: copies that somebody went on with, and files
//! and anchors that were put back together.

use super::*;

fn refuse(ledger: &Ledger, job: &str) {
    ledger.refuse(&key(job), "user", "no").unwrap();
}

/// A ledger of two entries, and a copy of it that goes on by itself for so many.
fn forked(own: u64, others: u64) -> (Bench, Ledger) {
    let (bench, other) = (Bench::new(), Bench::new());
    let ledger = bench.with_job("a");
    let copied = LedgerReader::open(&bench.place()).unwrap();
    copied.copy_to(&other.path()).unwrap();
    std::fs::create_dir(other.place().anchor.parent().unwrap()).unwrap();
    std::fs::copy(bench.place().anchor, other.place().anchor).unwrap();
    let elsewhere = other.ledger();
    (0..others).for_each(|_| refuse(&elsewhere, "elsewhere"));
    (0..own).for_each(|_| refuse(&ledger, "here"));
    delete(&bench);
    let reader = LedgerReader::open(&other.place()).unwrap();
    reader.copy_to(&bench.path()).unwrap();
    (bench, ledger)
}

fn delete(bench: &Bench) {
    for suffix in ["", "-wal", "-shm"] {
        let file = bench.folder.path().join(format!("ledger.sqlite{suffix}"));
        let _ = std::fs::remove_file(file);
    }
}

fn begun_anew(bench: &Bench) -> Begun {
    let caps = Caps {
        data_set: "ward",
        private: None,
        published: None,
    };
    let clock = Arc::clone(&bench.clock) as _;
    Ledger::begin_anew(&bench.place(), "a test", &caps, clock).unwrap()
}

#[test]
fn a_copy_that_went_on_by_itself_is_not_taken_for_the_ledger() {
    for others in [3, 4] {
        let (bench, ledger) = forked(3, others);
        let expected = "entry 5 of the ledger is not the one that was written";
        let opened = bench.open().unwrap_err();
        assert!(matches!(&opened, LedgerError::Lost(loss) if loss.to_string() == expected));
        let known = ledger.head().unwrap_err();
        assert!(matches!(&known, LedgerError::Lost(loss) if loss.to_string() == expected));
        drop(ledger);
        // What stood in the entries of ours nobody knows.
        assert_eq!(begun_anew(&bench).missing, 2 + others);
    }
}

#[test]
fn entries_that_an_older_copy_lacks_are_counted_one_by_one() {
    for own in 1..=4 {
        let (bench, ledger) = forked(own, 0);
        drop(ledger);
        assert!(matches!(
            bench.open(),
            Err(LedgerError::Lost(LedgerLoss::Shorter { found: 2, known })) if known == 2 + own
        ));
        assert_eq!(begun_anew(&bench).missing, own);
    }
}

/// After a crash the ledger may know more than its anchor; nothing is missing then.
#[test]
fn a_ledger_ahead_of_its_anchor_lacks_nothing() {
    let bench = Bench::new();
    let ledger = bench.with_job("a");
    let anchor = std::fs::read(bench.place().anchor).unwrap();
    (0..2).for_each(|_| refuse(&ledger, "a"));
    drop(ledger);
    std::fs::write(bench.place().anchor, anchor).unwrap();
    assert_eq!(begun_anew(&bench).missing, 0);
}

/// Ledger and anchor agree with each other, and a daemon that ran meanwhile knows better.
#[test]
fn a_running_daemon_notices_that_ledger_and_anchor_were_both_put_back() {
    let bench = Bench::new();
    let ledger = bench.with_job("a");
    let copy = bench.folder.path().join("copy.sqlite");
    let reader = LedgerReader::open(&bench.place()).unwrap();
    reader.copy_to(&copy).unwrap();
    let anchor = std::fs::read(bench.place().anchor).unwrap();
    refuse(&ledger, "a");
    delete(&bench);
    std::fs::copy(copy, bench.path()).unwrap();
    std::fs::write(bench.place().anchor, anchor).unwrap();
    bench.open().unwrap();
    let known = ledger.head();
    let shorter = LedgerLoss::Shorter { found: 2, known: 3 };
    assert!(matches!(&known, Err(LedgerError::Lost(loss)) if *loss == shorter));
}

/// The file itself stays as it is while the log beside it grows.
#[test]
fn an_entry_that_another_program_took_away_is_missed_by_the_next_change() {
    let bench = Bench::new();
    let ledger = bench.with_job("a");
    let file = Connection::open(bench.path()).unwrap();
    let last = "DELETE FROM entries WHERE number = (SELECT max(number) FROM entries)";
    file.execute(last, []).unwrap();
    let refused = ledger.refuse(&key("a"), "user", "no");
    let shorter = LedgerLoss::Shorter { found: 1, known: 2 };
    assert!(matches!(&refused, Err(LedgerError::Lost(loss)) if *loss == shorter));
}

/// The log of a file that is moved aside would else be taken for the log of the new one.
#[test]
fn what_is_beside_a_damaged_ledger_is_moved_aside_with_it() {
    let bench = Bench::new();
    // Another process has it open: its log is there.
    let _daemon = bench.with_job("a");
    let beside = |suffix: &str| bench.folder.path().join(format!("ledger.sqlite{suffix}"));
    let logged = std::fs::read(beside("-wal")).unwrap();
    assert!(!logged.is_empty());
    std::fs::write(bench.path(), vec![b'x'; 5000]).unwrap();
    let begun = begun_anew(&bench);
    let add = format!(".replaced-{}", START.0);
    assert_eq!(begun.aside, Some(beside(&add)));
    let moved = std::fs::read(beside(&format!("-wal{add}"))).unwrap();
    assert_eq!(moved, logged);
    assert!(beside(&format!("-shm{add}")).exists());
    assert!(begun.ledger.status("ward").unwrap().jobs.is_empty());
}
