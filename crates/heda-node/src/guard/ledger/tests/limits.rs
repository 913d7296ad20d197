//! Rankings count, a day is reserved, and old records make room.

use super::*;

#[test]
fn rankings_are_limited_by_job_and_day_like_everything_that_reveals_a_number() {
    let bench = Bench::new();
    let ledger = bench.with_job("a");
    let count = |id, per_job, per_day| {
        let limits = CountLimits { per_job, per_day };
        super::count(&ledger, Counted::Ranking, &key(id), limits, None)
    };
    count("a", 2, 3).unwrap();
    count("a", 2, 3).unwrap();
    let third = count("a", 2, 3);
    assert!(had_all(&third, Counted::Ranking));
    ledger.open_job(&key("b"), &terms("same")).unwrap();
    count("b", 2, 3).unwrap();
    // 500 new jobs bring no more scores.
    for job in 0..500 {
        let id = format!("new-{job}");
        ledger.open_job(&key(&id), &terms("same")).unwrap();
        let refused = count_one(&ledger, Counted::Ranking, &key(&id), (2, 3));
        assert!(matches!(refused, Err(LedgerError::DayIterations(3))));
    }
    let unknown = count("z", 2, 9);
    assert!(matches!(unknown, Err(LedgerError::NotOpen(_))));
    assert_eq!(ledger.status("ward").unwrap().iterations_today, 3);
}

/// Room for one job of ten iterations on a day.
const DAY_LIMIT: u64 = 12;

#[test]
fn of_many_jobs_at_once_with_room_for_one_one_finishes() {
    let bench = Bench::new();
    let ledger = bench.ledger();
    let limits = (10, DAY_LIMIT);
    let jobs: Vec<JobKey> = (0..20).map(|n| key(&n.to_string())).collect();
    let admitted: Vec<_> = jobs
        .iter()
        .map(|job| ledger.reserve(job, "ward", (10, 0), DAY_LIMIT))
        .collect();
    let won: Vec<usize> = (0..20).filter(|n| admitted[*n].is_ok()).collect();
    assert_eq!(won, [0]);
    let words = admitted[1].as_ref().unwrap_err().to_string();
    assert!(
        words.contains("2 are free; jobs that run have reserved 10"),
        "{words}"
    );
    // Who goes on without a reservation does not take what is reserved.
    for job in &jobs[..2] {
        ledger.open_job(job, &terms("same")).unwrap();
    }
    let count = |job: &JobKey| count_one(&ledger, Counted::Iteration, job, limits);
    count(&jobs[1]).unwrap();
    count(&jobs[1]).unwrap();
    let third = count(&jobs[1]);
    assert!(
        matches!(third, Err(LedgerError::DayReserved { .. })),
        "{third:?}"
    );
    for _ in 0..10 {
        count(&jobs[0]).unwrap();
    }
    drop(admitted);
    assert!(matches!(
        count(&jobs[1]),
        Err(LedgerError::DayIterations(DAY_LIMIT))
    ));
}

#[test]
fn what_a_job_did_not_use_is_free_when_it_ends() {
    let bench = Bench::new();
    let ledger = bench.with_job("a");
    let limits = (10, DAY_LIMIT);
    let first = ledger
        .reserve(&key("a"), "ward", (8, 2), DAY_LIMIT)
        .unwrap();
    // The same job in a new session, while the old one waits for its end.
    let again = ledger
        .reserve(&key("a"), "ward", (8, 2), DAY_LIMIT)
        .unwrap();
    drop(first);
    for _ in 0..3 {
        count_one(&ledger, Counted::Iteration, &key("a"), limits).unwrap();
    }
    let other = |need| ledger.reserve(&key("b"), "ward", (need, 0), DAY_LIMIT);
    assert!(matches!(other(3), Err(LedgerError::DayReserved { .. })));
    drop(other(2).unwrap());
    drop(again);
    // 3 are used, and nobody is there: less than it needs is better than nothing.
    let rest = other(50).unwrap();
    let late = ledger.reserve(&key("c"), "ward", (1, 0), DAY_LIMIT);
    assert!(matches!(
        late,
        Err(LedgerError::DayReserved { others: 9, .. })
    ));
    drop(rest);
    // A job that comes back needs only what it has not had.
    assert!(ledger.reserve(&key("a"), "ward", (8, 2), DAY_LIMIT).is_ok());
}

/// Nobody keeps the room of a day without using it: it lapses, and who waited comes first.
#[test]
fn room_of_a_day_that_nobody_uses_lapses() {
    let bench = Bench::new();
    let ledger = bench.ledger();
    let reserve = |job: &JobKey| ledger.reserve(job, "ward", (10, 0), DAY_LIMIT);
    let first = reserve(&key_of("a", "one")).unwrap();
    bench.pass(LAPSE_SECONDS - 10);
    let waits = reserve(&key_of("b", "two"));
    assert!(matches!(waits, Err(LedgerError::DayReserved { .. })));
    bench.pass(11);
    // A new session of the same job, and a new job, of the data user that did nothing.
    for id in ["one", "three"] {
        let late = reserve(&key_of("a", id));
        assert!(matches!(late, Err(LedgerError::OthersWait)), "{id}");
    }
    let second = reserve(&key_of("b", "two")).unwrap();
    ledger
        .open_job(&key_of("b", "two"), &terms("same"))
        .unwrap();
    count_one(
        &ledger,
        Counted::Iteration,
        &key_of("b", "two"),
        (10, DAY_LIMIT),
    )
    .unwrap();
    // The hour begins anew with each answer.
    bench.pass(LAPSE_SECONDS);
    assert!(matches!(
        reserve(&key_of("a", "one")),
        Err(LedgerError::DayReserved { others: 9, .. })
    ));
    drop((first, second));
    assert!(reserve(&key_of("a", "one")).is_ok());
}

/// Who used a part comes back at once, who used nothing after those that waited; a job that still holds its room
/// takes nothing from anybody.
#[test]
fn who_used_the_room_of_a_day_need_not_wait_for_others() {
    for used in [true, false] {
        let bench = Bench::new();
        let ledger = bench.ledger();
        let reserve = |job: &JobKey, need| ledger.reserve(job, "ward", (need, 0), DAY_LIMIT);
        let held = reserve(&key_of("a", "held"), 2).unwrap();
        let first = reserve(&key_of("a", "one"), 8).unwrap();
        ledger
            .open_job(&key_of("a", "one"), &terms("same"))
            .unwrap();
        if used {
            let limits = (10, DAY_LIMIT);
            count_one(&ledger, Counted::Iteration, &key_of("a", "one"), limits).unwrap();
        }
        assert!(reserve(&key_of("b", "two"), 9).is_err());
        drop(first);
        let again = reserve(&key_of("a", "three"), 3);
        assert_eq!(again.is_ok(), used);
        let waits = matches!(again, Err(LedgerError::OthersWait));
        assert_eq!(waits, !used);
        assert!(reserve(&key_of("a", "held"), 2).is_ok());
        drop(held);
    }
}

/// Room that lapsed and was reserved again, because nobody waited, is held for another hour.
#[test]
fn room_that_was_reserved_again_is_held_again() {
    let bench = Bench::new();
    let ledger = bench.ledger();
    let reserve = |user: &str| ledger.reserve(&key_of(user, user), "ward", (10, 0), DAY_LIMIT);
    let first = reserve("a").unwrap();
    bench.pass(LAPSE_SECONDS + 1);
    // Looked at, it lapses; nobody else wants it.
    drop(
        ledger
            .reserve(&key_of("c", "c"), "ward", (1, 0), DAY_LIMIT)
            .unwrap(),
    );
    let second = reserve("a").unwrap();
    bench.pass(LAPSE_SECONDS / 2);
    assert!(matches!(
        reserve("b"),
        Err(LedgerError::DayReserved { others: 10, .. })
    ));
    drop((first, second));
}

#[test]
fn old_records_make_room_and_budgets_keep_theirs() {
    let bench = Bench::new();
    let ledger = bench.ledger().keeping(5);
    let limits = (10, 100);
    ledger.open_job(&key("paid"), &terms("same")).unwrap();
    ledger
        .buy(&key("paid"), "ward", charge("1", 1), epsilon("1"))
        .unwrap();
    ledger.open_job(&key("trained"), &terms("same")).unwrap();
    count_one(&ledger, Counted::Iteration, &key("trained"), limits).unwrap();
    let _runs = ledger.reserve(&key("runs"), "ward", (1, 0), 100).unwrap();
    ledger.open_job(&key("runs"), &terms("same")).unwrap();
    for number in 0..50 {
        let id = format!("empty-{number}");
        ledger.open_job(&key(&id), &terms("same")).unwrap();
        ledger.refuse(&key(&id), "user", "too late").unwrap();
    }
    let status = ledger.status("ward").unwrap();
    assert_eq!((status.jobs.len(), status.refusals.len()), (5, 5));
    let kept: Vec<&str> = status.jobs.iter().map(|job| job.job.as_str()).collect();
    for id in ["paid", "trained", "runs", "empty-49"] {
        assert!(kept.contains(&id), "{id}: {kept:?}");
    }
    assert_eq!(status.iterations_today, 1);
    drop(ledger);
    let ledger = bench.ledger();
    assert_eq!(spent(&ledger), 1_000_000_000);
    let again = ledger.buy(&key("trained"), "ward", charge("1", 1), epsilon("1"));
    assert!(matches!(again, Err(LedgerError::Exhausted { .. })));
}

#[test]
fn a_clock_that_goes_back_gives_nothing_back() {
    let bench = Bench::new();
    let ledger = bench.with_job("a");
    let limits = (100, 1);
    let count = || count_one(&ledger, Counted::Iteration, &key("a"), limits);
    count().unwrap();
    bench.clock.set(Timestamp(START.0 - 3 * DAY));
    assert!(matches!(count(), Err(LedgerError::DayIterations(1))));
    assert_eq!(ledger.today().unwrap(), START.day());
    // Looking ahead is not having been there.
    bench.clock.set(Timestamp(START.0 + 50 * DAY));
    assert!(ledger.today().unwrap() > START.day());
    assert_eq!(ledger.status("ward").unwrap().iterations_today, 0);
    bench.clock.set(Timestamp(START.0 - 3 * DAY));
    assert_eq!(ledger.today().unwrap(), START.day());
    // The refused one was rolled back as a whole.
    let status = ledger.status("ward").unwrap();
    assert_eq!((status.iterations_today, status.jobs[0].iterations), (1, 1));
}
