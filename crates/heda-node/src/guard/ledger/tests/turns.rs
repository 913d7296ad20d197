//! Who holds the room of a day, for how long, and who comes first when it is free.

use super::*;

/// Room for one job of ten iterations on a day, and a little.
const DAY_LIMIT: u64 = 12;

fn reserve(ledger: &Ledger, user: &str, id: &str, need: u64) -> Result<Reservation, LedgerError> {
    ledger.reserve(&key_of(user, id), "ward", (need, 0), DAY_LIMIT)
}

fn answer(ledger: &Ledger, user: &str, id: &str) {
    let job = key_of(user, id);
    ledger.open_job(&job, &terms("same")).unwrap();
    count_one(ledger, Counted::Iteration, &job, (10, DAY_LIMIT)).unwrap();
}

/// Whether a job that asked had to let others pass, rather than that there was no room for it.
fn let_others_pass(asked: &Result<Reservation, LedgerError>) -> bool {
    match asked {
        Err(LedgerError::OthersWait) => true,
        Err(LedgerError::DayReserved { .. }) => false,
        other => panic!("{other:?}"),
    }
}

#[test]
fn who_used_all_of_its_room_need_not_let_others_pass_when_the_hour_is_over() {
    let bench = Bench::new();
    let ledger = bench.ledger();
    let _first = reserve(&ledger, "a", "one", 2).unwrap();
    (0..2).for_each(|_| answer(&ledger, "a", "one"));
    bench.pass(LAPSE_SECONDS - 10);
    let _second = reserve(&ledger, "c", "two", 10).unwrap();
    bench.pass(11);
    assert!(reserve(&ledger, "b", "three", 1).is_err(), "it waits");
    assert!(!let_others_pass(&reserve(&ledger, "a", "four", 1)));
}

#[test]
fn an_answer_keeps_the_room_of_its_job_for_another_hour() {
    let bench = Bench::new();
    let ledger = bench.ledger();
    let _first = reserve(&ledger, "a", "one", 10).unwrap();
    bench.pass(LAPSE_SECONDS - 10);
    answer(&ledger, "a", "one");
    bench.pass(LAPSE_SECONDS - 10);
    let late = reserve(&ledger, "b", "two", 10);
    assert!(
        matches!(
            late,
            Err(LedgerError::DayReserved {
                need: 10,
                room: 2,
                others: 9
            })
        ),
        "{late:?}"
    );
}

/// What was let lapse once is made good by an answer.
#[test]
fn who_answers_after_a_lapse_need_not_let_others_pass_any_more() {
    for answers in [false, true] {
        let bench = Bench::new();
        let ledger = bench.ledger();
        let _first = reserve(&ledger, "a", "one", 10).unwrap();
        bench.pass(LAPSE_SECONDS + 1);
        // Looked at, it lapses; nobody waits for it, and its job takes it again.
        drop(reserve(&ledger, "c", "two", 1).unwrap());
        let _again = reserve(&ledger, "a", "one", 10).unwrap();
        if answers {
            answer(&ledger, "a", "one");
        }
        assert!(reserve(&ledger, "b", "three", 10).is_err(), "it waits");
        let next = reserve(&ledger, "a", "four", 10);
        assert_eq!(let_others_pass(&next), !answers);
    }
}

/// Who used nothing comes last; who holds room asks nobody when another session of the same job begins.
#[test]
fn a_job_that_holds_its_room_takes_it_again_whoever_waits() {
    let bench = Bench::new();
    let ledger = bench.ledger();
    let _held = reserve(&ledger, "a", "held", 2).unwrap();
    let idle = reserve(&ledger, "a", "idle", 8).unwrap();
    assert!(reserve(&ledger, "b", "two", 9).is_err(), "it waits");
    drop(idle);
    assert!(let_others_pass(&reserve(&ledger, "a", "next", 1)));
    assert!(reserve(&ledger, "a", "held", 2).is_ok());
    // One that has used up what it held is like any other of its data user.
    (0..2).for_each(|_| answer(&ledger, "a", "held"));
    drop(reserve(&ledger, "a", "idle", 8).unwrap());
    let _third = reserve(&ledger, "c", "three", 9).unwrap();
    assert!(reserve(&ledger, "b", "two", 9).is_err(), "it waits");
    assert!(let_others_pass(&reserve(&ledger, "a", "held", 3)));
}

#[test]
fn room_that_a_job_takes_again_before_it_lapses_lapses_by_its_first_hour() {
    let bench = Bench::new();
    let ledger = bench.ledger();
    let _first = reserve(&ledger, "a", "one", 10).unwrap();
    bench.pass(LAPSE_SECONDS - 10);
    let _again = reserve(&ledger, "a", "one", 10).unwrap();
    assert!(reserve(&ledger, "b", "two", 10).is_err());
    bench.pass(11);
    assert!(reserve(&ledger, "b", "two", 10).is_ok());
}

/// A minute is the last moment at which one that asked still waits.
#[test]
fn who_asked_a_minute_ago_still_waits_and_longer_ago_does_not() {
    for (seconds, waits) in [(0, true), (60, true), (61, false)] {
        let bench = Bench::new();
        let ledger = bench.ledger();
        let first = reserve(&ledger, "a", "one", 10).unwrap();
        assert!(reserve(&ledger, "b", "two", 10).is_err());
        drop(first);
        bench.pass(seconds);
        let again = reserve(&ledger, "a", "three", 10);
        assert_eq!(again.is_err(), waits, "{seconds}");
        assert!(again.is_ok() || let_others_pass(&again));
    }
}
