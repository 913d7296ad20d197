//! What a data user learns over all of its jobs, and with whom.

use super::*;

fn circle(names: &[&str]) -> Circle {
    names.iter().map(|name| peer(name)).collect()
}

fn leaving(kind: Kind, circle: &Circle) -> Leaving<'_> {
    Leaving {
        kind,
        circle,
        numbers: 10,
        numbers_most: 35,
        may_single_out: false,
    }
}

const LIMITS: CountLimits = CountLimits {
    per_job: 100,
    per_day: 1000,
};

/// One gradient of a job with these providers.
fn train(ledger: &Ledger, id: &str, circle: &Circle) -> Result<u64, LedgerError> {
    ledger.open_job(&key(id), &terms("same")).unwrap();
    let leaving = leaving(Kind::Training, circle);
    ledger.foresee(&key(id), "ward", &leaving)?;
    ledger.count(Counted::Iteration, &key(id), "ward", LIMITS, Some(&leaving))
}

#[test]
fn numbers_are_counted_over_all_jobs_and_a_new_job_gives_nothing_anew() {
    let bench = Bench::new();
    let all = circle(&["a", "b", "c"]);
    for id in ["one", "two", "three"] {
        train(&bench.ledger(), id, &all).unwrap();
    }
    let ledger = bench.ledger();
    for id in ["three", "four"] {
        let refused = train(&ledger, id, &all).unwrap_err();
        let expected = matches!(
            refused,
            LedgerError::Disclosed {
                before: 30,
                more: 10,
                most: 35
            }
        );
        assert!(expected && refused.is_refusal(), "{refused}");
    }
    // What was refused was not counted, in the job neither.
    assert_eq!(ledger.open_job(&key("three"), &terms("same")).unwrap(), 1);
    let status = ledger.status("ward").unwrap();
    let [entry] = status.disclosed.as_slice() else {
        panic!("one data user");
    };
    assert_eq!(
        (entry.numbers, entry.circles, entry.label.as_str()),
        (30, 1, "user")
    );
    assert_eq!(entry.peer, peer("user").to_string());
    // Another data user, and another data set, begin at nothing.
    assert!(ledger.status("other").unwrap().disclosed.is_empty());
    let theirs = JobKey {
        peer: peer("other user"),
        id: "five".into(),
    };
    ledger.open_job(&theirs, &terms("same")).unwrap();
    let leaving = leaving(Kind::Training, &all);
    let counted = ledger.count(Counted::Iteration, &theirs, "ward", LIMITS, Some(&leaving));
    assert!(counted.is_ok());
}

#[test]
fn an_evaluation_counts_as_well() {
    let bench = Bench::new();
    let ledger = bench.with_job("a");
    let all = circle(&["a", "b"]);
    let limits = CountLimits {
        per_job: 100,
        per_day: 1000,
    };
    let leaving = leaving(Kind::Training, &all);
    let evaluate = || {
        ledger.count(
            Counted::Evaluation,
            &key("a"),
            "ward",
            limits,
            Some(&leaving),
        )
    };
    for _ in 0..3 {
        evaluate().unwrap();
    }
    let refused = evaluate().unwrap_err();
    assert!(
        matches!(refused, LedgerError::Disclosed { .. }),
        "{refused}"
    );
}

#[test]
fn a_job_keeps_its_providers_once_something_has_left() {
    let bench = Bench::new();
    let ledger = bench.with_job("a");
    let (all, fewer) = (circle(&["a", "b", "c", "d"]), circle(&["a", "b"]));
    for kind in [Kind::Scores, Kind::Release, Kind::Training] {
        ledger
            .disclose(&key("a"), "ward", &leaving(kind, &all))
            .unwrap();
        for attempt in [Ledger::foresee, Ledger::disclose] {
            let refused = attempt(&ledger, &key("a"), "ward", &leaving(kind, &fewer));
            let refused = refused.unwrap_err();
            let words = refused.to_string();
            assert!(matches!(refused, LedgerError::OtherProviders(_)), "{words}");
            assert!(words.contains("wait until all of them are back"), "{words}");
        }
    }
    // Scores with all of them, gradients with fewer: nothing can be subtracted.
    ledger.open_job(&key("b"), &terms("same")).unwrap();
    let scores = Leaving {
        numbers: 0,
        ..leaving(Kind::Scores, &all)
    };
    ledger.disclose(&key("b"), "ward", &scores).unwrap();
    let training = Leaving {
        numbers: 0,
        ..leaving(Kind::Training, &fewer)
    };
    ledger.disclose(&key("b"), "ward", &training).unwrap();
}

#[test]
fn jobs_that_subtract_to_one_provider_are_refused_whatever_their_names() {
    let bench = Bench::new();
    let ledger = bench.ledger();
    let (all, fewer) = (circle(&["a", "b", "c"]), circle(&["a", "b"]));
    train(&ledger, "one", &all).unwrap();
    let refused = train(&ledger, "two", &fewer).unwrap_err();
    assert!(
        matches!(refused, LedgerError::SinglesOut(provider) if provider == peer("c")),
        "{refused}"
    );
    // The other way round at another ledger.
    let bench = Bench::new();
    let ledger = bench.ledger();
    train(&ledger, "one", &fewer).unwrap();
    let refused = train(&ledger, "two", &all).unwrap_err();
    assert!(matches!(refused, LedgerError::SinglesOut(_)), "{refused}");
    let allowed = Leaving {
        may_single_out: true,
        ..leaving(Kind::Training, &all)
    };
    ledger.disclose(&key("two"), "ward", &allowed).unwrap();
}

#[test]
fn of_two_jobs_at_once_the_second_is_refused_when_its_gradient_is_due() {
    let bench = Bench::new();
    let ledger = bench.ledger();
    let (all, fewer) = (circle(&["a", "b", "c"]), circle(&["a", "b"]));
    for (id, circle) in [("one", &all), ("two", &fewer)] {
        ledger.open_job(&key(id), &terms("same")).unwrap();
        ledger
            .foresee(&key(id), "ward", &leaving(Kind::Training, circle))
            .unwrap();
    }
    let count = |id, circle| {
        let leaving = leaving(Kind::Training, circle);
        ledger.count(Counted::Iteration, &key(id), "ward", LIMITS, Some(&leaving))
    };
    count("two", &fewer).unwrap();
    assert!(matches!(
        count("one", &all),
        Err(LedgerError::SinglesOut(_))
    ));
}
