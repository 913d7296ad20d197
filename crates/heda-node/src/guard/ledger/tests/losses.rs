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

/// What somebody may do to the rows of a ledger's tables.
const CHANGES: [&str; 8] = [
    "DELETE FROM releases",
    "UPDATE releases SET billionths = 1",
    "DELETE FROM days",
    "DELETE FROM entries WHERE number = (SELECT max(number) FROM entries)",
    "UPDATE entries SET at = at + 1 WHERE number = 2",
    "UPDATE entries SET what = replace(what, '1000000000', '1')",
    "DELETE FROM entries WHERE number = 1",
    "DELETE FROM chain",
];

#[test]
fn rows_changed_by_hand_are_noticed() {
    for sql in CHANGES {
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
    assert!(matches!(
        opened,
        Err(LedgerError::Lost(LedgerLoss::NoAnchor(_)))
    ));
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

fn caps<'a>(private: Option<&'a PrivateCap>, published: Option<&str>) -> Caps<'a> {
    Caps {
        data_set: "ward",
        private,
        published: published.map(epsilon),
    }
}

#[test]
fn an_operator_may_begin_anew_and_the_ledger_says_so() {
    let spent = Spent::new();
    let place = spent.bench.place();
    // A restored copy: what it knows is taken over.
    spent.delete();
    std::fs::copy(&spent.old_copy, spent.bench.path()).unwrap();
    let clock = Arc::clone(&spent.bench.clock);
    let begun = Ledger::begin_anew(
        &place,
        "restored from Monday",
        &caps(None, None),
        clock as _,
    );
    let begun = begun.unwrap();
    assert_eq!((begun.aside, begun.missing), (None, 2));
    let status = begun.ledger.status("ward").unwrap();
    assert_eq!(status.begun.as_deref(), Some("restored from Monday"));
    assert_eq!(status.jobs.len(), 1);
    drop(begun.ledger);
    // Garbage is moved aside, not deleted.
    spent.delete();
    std::fs::write(spent.bench.path(), vec![b'x'; 5000]).unwrap();
    let clock = Arc::clone(&spent.bench.clock);
    let begun = Ledger::begin_anew(&place, "the disk died", &caps(None, None), clock as _).unwrap();
    assert_eq!(
        std::fs::read(begun.aside.unwrap()).unwrap(),
        vec![b'x'; 5000]
    );
    assert!(spent.bench.ledger().status("ward").unwrap().jobs.is_empty());
}

/// Whatever was lost, a ledger that begins anew pays nothing that may have been paid already.
#[test]
fn entries_that_are_missing_are_charged_for_the_most_that_they_can_have_cost() {
    let cap = PrivateCap {
        epsilon: epsilon("2"),
        per_user: epsilon("2"),
        delta: heda_dp::gdp::Delta::new(1e-6).unwrap(),
    };
    for (name, lose) in LOSSES {
        let spent = Spent::new();
        lose(&spent);
        let clock = Arc::clone(&spent.bench.clock);
        let caps = caps(Some(&cap), Some("3"));
        let begun = Ledger::begin_anew(&spent.bench.place(), name, &caps, clock as _).unwrap();
        assert!(begun.missing > 0, "{name}");
        let private = begun.ledger.private("ward", Some(&cap)).unwrap();
        assert_eq!(private.spent, cap.total(), "{name}");
        assert_eq!(private.epsilon_left, 0.0, "{name}");
        let budget = begun.ledger.budget("ward", Some(epsilon("3"))).unwrap();
        assert_eq!(budget.epsilon_left, "0", "{name}");
        let paid = Spent::pays_again(&begun.ledger);
        assert!(matches!(paid, Err(LedgerError::Exhausted { .. })), "{name}");
        // The charge is part of the chain, and outlives the process.
        drop(begun.ledger);
        let again = spent.bench.ledger();
        assert_eq!(
            again.private("ward", Some(&cap)).unwrap().spent,
            cap.total()
        );
    }
}

fn private_cap(total: &str) -> PrivateCap {
    PrivateCap {
        epsilon: epsilon(total),
        per_user: epsilon(total),
        delta: heda_dp::gdp::Delta::new(1e-6).unwrap(),
    }
}

/// Beginning anew over what somebody altered accepts nothing of it as a smaller spending.
#[test]
fn a_ledger_that_was_altered_is_charged_for_the_most_that_it_can_have_cost() {
    let cap = private_cap("2");
    for sql in CHANGES {
        for with_anchor in [true, false] {
            let spent = Spent::new();
            count_one(&spent.bench.ledger(), Counted::Iteration, &key("a"), (3, 5)).unwrap();
            let connection = Connection::open(spent.bench.path()).unwrap();
            connection.execute(sql, []).unwrap();
            drop(connection);
            // Without an anchor neither a shorter chain nor one that is gone can be told.
            if !with_anchor {
                std::fs::remove_file(&spent.bench.place().anchor).unwrap();
                if sql.contains("max(number)") || sql.contains("FROM chain") {
                    continue;
                }
            }
            let clock = Arc::clone(&spent.bench.clock);
            let caps = caps(Some(&cap), Some("3"));
            let begun = Ledger::begin_anew(&spent.bench.place(), sql, &caps, clock as _).unwrap();
            assert!(begun.missing > 0, "{sql}, anchor {with_anchor}");
            let private = begun.ledger.private("ward", Some(&cap)).unwrap();
            assert_eq!(private.spent, cap.total(), "{sql}");
            let budget = begun.ledger.budget("ward", Some(epsilon("3"))).unwrap();
            assert_eq!(budget.epsilon_left, "0", "{sql}");
            let paid = Spent::pays_again(&begun.ledger);
            assert!(matches!(paid, Err(LedgerError::Exhausted { .. })), "{sql}");
        }
    }
}

/// The first entry of a ledger that began anew carries what was paid before: it is no empty one.
#[test]
fn a_ledger_with_one_entry_is_charged_as_any_other() {
    let (cap, spent) = (private_cap("2"), Spent::new());
    let begin = |because: &str| {
        let clock = Arc::clone(&spent.bench.clock);
        let caps = caps(Some(&cap), Some("3"));
        Ledger::begin_anew(&spent.bench.place(), because, &caps, clock as _).unwrap()
    };
    assert_eq!(begin("a new disk").missing, 0);
    spent.delete();
    let begun = begin("the disk died");
    assert_eq!(begun.missing, 1);
    let private = begun.ledger.private("ward", Some(&cap)).unwrap();
    assert_eq!(private.spent, cap.total());
}

/// Other data sets of the ledger, which may hold the same people, are charged as well.
#[test]
fn every_data_set_that_a_ledger_knows_is_charged() {
    let cap = private_cap("2");
    for sql in ["DELETE FROM days", "DELETE FROM releases"] {
        let spent = Spent::new();
        let ledger = spent.bench.ledger();
        ledger.open_job(&key("b"), &terms("same")).unwrap();
        let clinic = ledger.buy(&key("b"), "clinic", charge("1", 1), epsilon("1"));
        clinic.unwrap();
        count_one(&ledger, Counted::Iteration, &key("a"), (3, 5)).unwrap();
        drop(ledger);
        let connection = Connection::open(spent.bench.path()).unwrap();
        connection.execute(sql, []).unwrap();
        drop(connection);
        let clock = Arc::clone(&spent.bench.clock);
        let caps = caps(Some(&cap), Some("3"));
        let begun = Ledger::begin_anew(&spent.bench.place(), sql, &caps, clock as _).unwrap();
        for data_set in ["ward", "clinic"] {
            let private = begun.ledger.private(data_set, Some(&cap)).unwrap();
            assert_eq!(private.spent, cap.total(), "{data_set} after {sql}");
            let budget = begun.ledger.budget(data_set, Some(epsilon("3"))).unwrap();
            assert_eq!(budget.epsilon_left, "0", "{data_set} after {sql}");
        }
        drop(begun.ledger);
        assert!(spent.bench.open().is_ok(), "{sql}");
    }
}

#[test]
fn a_ledger_that_lost_nothing_begins_anew_without_a_charge() {
    let bench = Bench::new();
    let ledger = bench.with_job("a");
    drop(ledger);
    let cap = PrivateCap {
        epsilon: epsilon("2"),
        per_user: epsilon("2"),
        delta: heda_dp::gdp::Delta::new(1e-6).unwrap(),
    };
    let clock = Arc::clone(&bench.clock);
    let caps = caps(Some(&cap), Some("3"));
    let begun = Ledger::begin_anew(&bench.place(), "a new disk", &caps, clock as _).unwrap();
    assert_eq!(begun.missing, 0);
    let private = begun.ledger.private("ward", Some(&cap)).unwrap();
    assert_eq!(private.epsilon_spent, Some(0.0));
    assert_eq!(
        begun.ledger.budget("ward", None).unwrap().epsilon_spent,
        "0"
    );
}

#[test]
fn a_data_set_under_another_name_is_known_by_its_rows() {
    let bench = Bench::new();
    let ledger = bench.ledger();
    // As they are written now, and as 0.2 wrote them.
    let ends = crate::guard::ledger::rows_in_terms("d1");
    let now = terms(&format!("job {}{ends}", "5".repeat(64)));
    let before = terms("{\"rows\": \"d0\"}");
    for (id, terms) in [("a", now), ("c", before)] {
        ledger.open_job(&key(id), &terms).unwrap();
    }
    ledger
        .buy(&key("a"), "ward", charge("1", 1), epsilon("1"))
        .unwrap();
    assert!(ledger.other_data_sets("clinic", Some("d0"), None).unwrap()[0].same_rows);
    let others = |name: &str, digest| ledger.other_data_sets(name, digest, None).unwrap();
    assert_eq!(others("ward", Some("d1")), []);
    let found = others("clinic", Some("d1"));
    assert_eq!(
        (found[0].data_set.as_str(), found[0].same_rows),
        ("ward", true)
    );
    let words = found[0].to_string();
    assert!(
        words.contains("publishing 1. Its rows are those"),
        "{words}"
    );
    assert!(words.contains("served now as clinic"), "{words}");
    let words = others("clinic", Some("d2"))[0].to_string();
    assert!(words.contains("If clinic holds the same people"), "{words}");
    assert!(!others("clinic", None)[0].same_rows);
    // Who only reads is told the same.
    let reader = LedgerReader::open(&bench.place()).unwrap();
    assert_eq!(reader.other_names("clinic").unwrap(), ["ward"]);
    assert!(reader.other_names("ward").unwrap().is_empty());
    let read = OtherSpent::of_reader(&reader, "clinic", Some("d1"), None).unwrap();
    assert_eq!(read, others("clinic", Some("d1")));
    // Terms that are no JSON are no rows either.
    ledger.open_job(&key("b"), &terms("plain words")).unwrap();
    assert!(!others("clinic", Some("d2"))[0].same_rows);
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
