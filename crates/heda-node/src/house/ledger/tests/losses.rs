//! Every way in which a store can lose or replace its ledger, and that it is noticed before
//! anything is paid for or released again.

use super::*;

/// A ledger on which all of ε 1 is spent, and a copy of it from before that.
struct Spent {
    bench: Bench,
    old_copy: PathBuf,
}

impl Spent {
    fn new() -> Self {
        let bench = Bench::new();
        let ledger = bench.with_job("a");
        let old_copy = bench.folder.path().join("old.sqlite");
        let reader = LedgerReader::open(&bench.place()).unwrap();
        reader.copy_to(&old_copy).unwrap();
        ledger
            .buy(&key("a"), "ward", charge("1", 1), epsilon("1"))
            .unwrap();
        ledger.store_release(&key("a"), b"noisy").unwrap();
        Self { bench, old_copy }
    }

    /// Tries to spend ε 1 again.
    fn pays_again(ledger: &Ledger) -> Result<(), LedgerError> {
        ledger.open_job(&key("b"), &terms("same"))?;
        ledger
            .buy(&key("b"), "ward", charge("1", 1), epsilon("1"))
            .map(|_| ())
    }

    fn files(&self) -> [PathBuf; 3] {
        ["", "-wal", "-shm"].map(|suffix| {
            self.bench
                .folder
                .path()
                .join(format!("ledger.sqlite{suffix}"))
        })
    }

    fn delete(&self) {
        for file in self.files() {
            let _ = std::fs::remove_file(file);
        }
    }
}

/// Does something to a store.
type Lose = fn(&Spent);

/// What can happen to the files of a store.
const LOSSES: [(&str, Lose); 7] = [
    ("deleted", |spent| spent.delete()),
    ("emptied", |spent| {
        spent.delete();
        std::fs::write(spent.bench.path(), b"").unwrap();
    }),
    ("emptied in place", |spent| {
        let file = std::fs::File::options()
            .write(true)
            .open(spent.bench.path());
        file.unwrap().set_len(0).unwrap();
        let _ = std::fs::remove_file(&spent.files()[1]);
    }),
    ("an old copy", |spent| {
        spent.delete();
        std::fs::copy(&spent.old_copy, spent.bench.path()).unwrap();
    }),
    ("an old copy over it, in place", |spent| {
        let old = std::fs::read(&spent.old_copy).unwrap();
        // A moment later, as the clock of the file system counts moments.
        std::thread::sleep(Duration::from_millis(20));
        std::fs::write(spent.bench.path(), old).unwrap();
        let _ = std::fs::remove_file(&spent.files()[1]);
    }),
    ("another ledger", |spent| {
        spent.delete();
        let other = Bench::new();
        other.with_job("a");
        let reader = LedgerReader::open(&other.place()).unwrap();
        reader.copy_to(&spent.bench.path()).unwrap();
    }),
    ("damaged", |spent| {
        let mut bytes = std::fs::read(spent.bench.path()).unwrap();
        let half = bytes.len() / 2;
        bytes[half..].fill(0x5a);
        std::thread::sleep(Duration::from_millis(20));
        std::fs::write(spent.bench.path(), bytes).unwrap();
        let _ = std::fs::remove_file(&spent.files()[1]);
    }),
];

#[test]
fn a_lost_ledger_is_noticed_at_the_next_start() {
    for (name, lose) in LOSSES {
        let spent = Spent::new();
        lose(&spent);
        let opened = spent.bench.open();
        assert!(
            opened.as_ref().is_err_and(|error| !error.is_refusal()),
            "{name}: {opened:?}"
        );
        let read = LedgerReader::open(&spent.bench.place());
        assert!(read.is_err(), "{name}: {read:?}");
    }
}

#[test]
fn a_lost_ledger_is_noticed_by_the_daemon_that_uses_it() {
    for (name, lose) in LOSSES {
        let spent = Spent::new();
        let ledger = spent.bench.ledger();
        // It has done something, and knows the ledger from its own memory as well.
        ledger.refuse(&key("a"), "user", "too late").unwrap();
        lose(&spent);
        let paid = Spent::pays_again(&ledger);
        assert!(paid.is_err_and(|error| !error.is_refusal()), "{name}");
        let served = ledger.buy(&key("a"), "ward", charge("1", 1), epsilon("1"));
        assert!(served.is_err_and(|error| !error.is_refusal()), "{name}");
    }
}

#[test]
fn rows_changed_by_hand_are_noticed() {
    for sql in [
        "DELETE FROM releases",
        "UPDATE releases SET billionths = 1",
        "DELETE FROM days",
        "DELETE FROM entries WHERE number = (SELECT max(number) FROM entries)",
        "UPDATE entries SET at = at + 1 WHERE number = 2",
        "UPDATE entries SET what = replace(what, '1000000000', '1')",
        "DELETE FROM entries WHERE number = 1",
        "DELETE FROM chain",
    ] {
        let spent = Spent::new();
        let limits = (3, 5);
        let ledger = spent.bench.ledger();
        count_one(&ledger, Counted::Iteration, &key("a"), limits).unwrap();
        drop(ledger);
        let connection = Connection::open(spent.bench.path()).unwrap();
        connection.execute(sql, []).unwrap();
        drop(connection);
        let opened = spent.bench.open();
        assert!(
            matches!(opened, Err(LedgerError::Lost(_))),
            "{sql}: {opened:?}"
        );
    }
}

#[test]
fn a_ledger_without_its_anchor_is_not_served() {
    let spent = Spent::new();
    std::fs::remove_file(&spent.bench.place().anchor).unwrap();
    let opened = spent.bench.open();
    assert!(matches!(opened, Err(LedgerError::Lost(Loss::NoAnchor(_)))));
}

#[test]
fn a_change_that_could_not_be_anchored_does_not_count_as_done() {
    let bench = Bench::new();
    let ledger = bench.with_job("a");
    let anchor = bench.place().anchor;
    let away = anchor.with_extension("away");
    std::fs::rename(&anchor, &away).unwrap();
    let bought = ledger.buy(&key("a"), "ward", charge("1", 1), epsilon("1"));
    assert!(matches!(
        bought,
        Err(LedgerError::Anchor { .. } | LedgerError::Lost(_))
    ));
    // Put right: paid already, and not a second time.
    std::fs::rename(&away, &anchor).unwrap();
    let bought = ledger.buy(&key("a"), "ward", charge("1", 1), epsilon("1"));
    assert!(matches!(bought, Ok(Purchase::Paid(_))), "{bought:?}");
    assert_eq!(spent(&ledger), 1_000_000_000);
}

#[test]
fn a_crash_before_the_anchor_loses_nothing() {
    let bench = Bench::new();
    bench.ledger();
    // After the first entry.
    std::fs::remove_file(bench.place().anchor).unwrap();
    let ledger = bench.ledger();
    let anchor = std::fs::read(bench.place().anchor).unwrap();
    // After a later entry: the anchor is one behind.
    ledger.open_job(&key("a"), &terms("same")).unwrap();
    drop(ledger);
    std::fs::write(bench.place().anchor, anchor).unwrap();
    assert_eq!(bench.with_job("a").status("ward").unwrap().jobs.len(), 1);
}

#[test]
fn an_operator_may_begin_anew_and_the_ledger_says_so() {
    let spent = Spent::new();
    let place = spent.bench.place();
    // A restored copy: what it knows is taken over.
    spent.delete();
    std::fs::copy(&spent.old_copy, spent.bench.path()).unwrap();
    let clock = Arc::clone(&spent.bench.clock);
    let (ledger, aside) = Ledger::begin_anew(&place, "restored from Monday", clock as _).unwrap();
    assert_eq!(aside, None);
    let status = ledger.status("ward").unwrap();
    assert_eq!(status.begun.as_deref(), Some("restored from Monday"));
    assert_eq!(status.jobs.len(), 1);
    drop(ledger);
    // Garbage is moved aside, not deleted.
    spent.delete();
    std::fs::write(spent.bench.path(), vec![b'x'; 5000]).unwrap();
    let clock = Arc::clone(&spent.bench.clock);
    let (_, aside) = Ledger::begin_anew(&place, "the disk died", clock as _).unwrap();
    assert_eq!(std::fs::read(aside.unwrap()).unwrap(), vec![b'x'; 5000]);
    assert!(spent.bench.ledger().status("ward").unwrap().jobs.is_empty());
}

#[test]
fn a_long_chain_is_carried_forward_with_its_sums() {
    let spent = Spent::new();
    let ledger = spent.bench.ledger();
    for number in 0..30 {
        ledger
            .change(|change| {
                change.note(&Entry::Refused { job: "a".into() })?;
                chain::shorten(change, 5, change.now)
            })
            .unwrap_or_else(|e| panic!("{number}: {e}"));
    }
    let entries = |ledger: &Ledger| -> u64 {
        let opened = ledger.opened().unwrap();
        let count = "SELECT count(*) FROM entries";
        opened
            .connection
            .query_row(count, [], |r| r.get(0))
            .unwrap()
    };
    assert!(entries(&ledger) <= 5, "{}", entries(&ledger));
    drop(ledger);
    let ledger = spent.bench.ledger();
    assert_eq!(super::spent(&ledger), 1_000_000_000);
    let paid = Spent::pays_again(&ledger);
    assert!(matches!(paid, Err(LedgerError::Exhausted { .. })));
}

#[test]
fn a_ledger_that_was_read_only_is_used_again_when_it_can_be_written() {
    let bench = Bench::new();
    let ledger = bench.with_job("a");
    let opened = ledger.opened().unwrap();
    opened
        .connection
        .pragma_update(None, "query_only", true)
        .unwrap();
    drop(opened);
    let refused = ledger.refuse(&key("a"), "user", "x");
    assert!(matches!(refused, Err(LedgerError::ReadOnly)), "{refused:?}");
    ledger.refuse(&key("a"), "user", "x").unwrap();
}
