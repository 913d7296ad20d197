//! What the chain has on record, how it is shortened, and what can be read of one that was altered.

use super::*;

fn entries(connection: &Connection) -> Vec<Entry> {
    let mut query = connection
        .prepare("SELECT what FROM entries ORDER BY number")
        .unwrap();
    let entries = query.query_map([], |row| row.get::<_, String>(0)).unwrap();
    entries
        .map(|what| serde_json::from_str(&what.unwrap()).unwrap())
        .collect()
}

/// What was noted while something was done.
fn noted(ledger: &Ledger, work: impl FnOnce()) -> Vec<Entry> {
    let before = entries(&ledger.opened().unwrap().connection).len();
    work();
    entries(&ledger.opened().unwrap().connection).split_off(before)
}

/// Budgets do not go by it, but an operator can ask later why room was free.
#[test]
fn what_is_freed_is_on_record_if_there_was_any() {
    let bench = Bench::new();
    let ledger = bench.with_job("a");
    let (job, freed) = (|| "a".to_owned(), |job| Entry::Freed { job });
    let finished = || Entry::Finished { job: job() };
    let hold = || {
        let set_aside = "INSERT INTO holds VALUES (?1, 'a', 'ward', 5, ?2)";
        let own = params![key("a").peer.to_string(), START.0];
        let held = ledger.change(|change| Ok(change.execute(set_aside, own)?));
        assert_eq!(held.unwrap(), 1);
    };
    hold();
    let by_operator = noted(&ledger, || assert_eq!(ledger.release("a").unwrap(), 1));
    assert_eq!(by_operator, [freed(job())]);
    let end = || noted(&ledger, || ledger.finish_job(&key("a")).unwrap());
    assert_eq!(end(), [finished()]);
    hold();
    assert_eq!(end(), [freed(job()), finished()]);
}

/// Tables forget the numbers of a job with the job; the chain must not add them up for ever.
#[test]
fn numbers_of_a_forgotten_job_are_taken_off_the_sums() {
    for answers in [0, 1, 3] {
        let bench = Bench::new();
        let ledger = bench.ledger().keeping(1);
        ledger.open_job(&key("old"), &terms("same")).unwrap();
        for _ in 0..answers {
            count_one(&ledger, Counted::Iteration, &key("old"), (10, 100)).unwrap();
        }
        let _runs = ledger.reserve(&key("new"), "ward", (1, 0), 100).unwrap();
        let noted = noted(&ledger, || {
            ledger.open_job(&key("new"), &terms("same")).unwrap();
        });
        let opened = Entry::Opened {
            peer: key("new").peer.to_string(),
            job: "new".into(),
        };
        let forgotten = (answers > 0).then_some(Entry::Forgotten { answered: answers });
        let expected: Vec<Entry> = [opened].into_iter().chain(forgotten).collect();
        assert_eq!(noted, expected);
        assert_eq!(ledger.status("ward").unwrap().jobs.len(), 1);
        drop(ledger);
        bench.open().unwrap();
    }
}

#[test]
fn a_chain_is_carried_forward_when_it_is_longer_than_it_may_be_and_not_before() {
    let bench = Bench::new();
    let ledger = bench.with_job("a");
    let shortened = |keep| {
        let shorten = |change: &Change<'_>| chain::shorten(change, keep, change.now);
        ledger.change(shorten).unwrap();
        entries(&ledger.opened().unwrap().connection).len()
    };
    assert_eq!((shortened(2), shortened(1)), (2, 1));
    assert_eq!(ledger.head().unwrap().entry, 3);
    // Whatever is written keeps it short.
    let refused = || Entry::Refused { job: "a".into() };
    let many =
        |change: &Change<'_>| (1..chain::ENTRIES_KEPT).try_for_each(|_| change.note(&refused()));
    ledger.change(many).unwrap();
    let count = || entries(&ledger.opened().unwrap().connection).len();
    assert_eq!(count() as u64, chain::ENTRIES_KEPT);
    ledger.change(|change| change.note(&refused())).unwrap();
    assert_eq!(count(), 1);
    drop(ledger);
    assert_eq!(
        bench.ledger().head().unwrap().entry,
        4 + chain::ENTRIES_KEPT
    );
}

/// Who begins anew is charged for every data set of which any trace is left.
#[test]
fn data_sets_are_known_by_their_tables_and_by_their_entries() {
    let bench = Bench::new();
    let ledger = bench.with_job("a");
    ledger.disclose(&key("a"), "clinic", &plenty()).unwrap();
    let known = |altered: &str| {
        let opened = ledger.opened().unwrap();
        let altering = opened.connection.unchecked_transaction().unwrap();
        altering.execute_batch(altered).unwrap();
        let known = chain::data_sets(&altering).unwrap();
        Vec::from_iter(known)
    };
    let tables_gone = "DELETE FROM disclosed; DELETE FROM circles";
    for altered in [
        "DELETE FROM entries",
        tables_gone,
        "UPDATE entries SET what = 'unreadable'",
    ] {
        assert_eq!(known(altered), ["clinic", "ward"], "{altered}");
    }
    let shorten = |change: &Change<'_>| chain::shorten(change, 1, change.now);
    ledger.change(shorten).unwrap();
    assert_eq!(known(tables_gone), ["clinic", "ward"]);
    let all_gone = format!("{tables_gone}; DELETE FROM entries");
    assert_eq!(known(&all_gone), ["ward"], "the job names it");
}
