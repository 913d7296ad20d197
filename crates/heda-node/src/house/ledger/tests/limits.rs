//! Rankings count, a day is reserved, and old records make room.

use super::*;

#[test]
fn rankings_are_limited_by_job_and_day_like_everything_that_reveals_a_number() {
    let bench = Bench::new();
    let ledger = bench.with_job("a");
    let count = |id, per_job, per_day| {
        let limits = RankingLimits { per_job, per_day };
        ledger.count_ranking(&key(id), "ward", limits, None)
    };
    count("a", 2, 3).unwrap();
    count("a", 2, 3).unwrap();
    let third = count("a", 2, 3);
    assert!(matches!(third, Err(LedgerError::JobRankings { .. })));
    ledger.open_job(&key("b"), &terms("same")).unwrap();
    count("b", 2, 3).unwrap();
    // 500 new jobs bring no more scores.
    for job in 0..500 {
        let id = format!("new-{job}");
        ledger.open_job(&key(&id), &terms("same")).unwrap();
        let limits = RankingLimits {
            per_job: 2,
            per_day: 3,
        };
        let refused = ledger.count_ranking(&key(&id), "ward", limits, None);
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
    let limits = IterationLimits {
        per_job: 10,
        per_day: DAY_LIMIT,
    };
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
    let count = |job: &JobKey| ledger.count_iteration(job, "ward", limits, &plenty());
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
    let limits = IterationLimits {
        per_job: 10,
        per_day: DAY_LIMIT,
    };
    let first = ledger
        .reserve(&key("a"), "ward", (8, 2), DAY_LIMIT)
        .unwrap();
    // The same job in a new session, while the old one waits for its end.
    let again = ledger
        .reserve(&key("a"), "ward", (8, 2), DAY_LIMIT)
        .unwrap();
    drop(first);
    for _ in 0..3 {
        ledger
            .count_iteration(&key("a"), "ward", limits, &plenty())
            .unwrap();
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

#[test]
fn old_records_make_room_and_budgets_keep_theirs() {
    let bench = Bench::new();
    let ledger = bench.ledger().keeping(5);
    let limits = IterationLimits {
        per_job: 10,
        per_day: 100,
    };
    ledger.open_job(&key("paid"), &terms("same")).unwrap();
    ledger
        .buy(&key("paid"), "ward", charge("1", 1), epsilon("1"))
        .unwrap();
    ledger.open_job(&key("trained"), &terms("same")).unwrap();
    ledger
        .count_iteration(&key("trained"), "ward", limits, &plenty())
        .unwrap();
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
