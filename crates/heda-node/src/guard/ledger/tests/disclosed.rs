//! What a data user learns over all of its jobs, and with whom.

use super::*;

fn provider_set(names: &[&str]) -> ProviderSet {
    names.iter().map(|name| peer(name)).collect()
}

fn disclosure(kind: DisclosureKind, provider_set: &ProviderSet) -> Disclosure<'_> {
    Disclosure {
        kind,
        provider_set,
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
fn train(ledger: &Ledger, id: &str, provider_set: &ProviderSet) -> Result<u64, LedgerError> {
    ledger.open_job(&key(id), &terms("same")).unwrap();
    let disclosure = disclosure(DisclosureKind::Training, provider_set);
    ledger.foresee(&key(id), "ward", &disclosure)?;
    super::count(
        ledger,
        Counted::Iteration,
        &key(id),
        LIMITS,
        Some(&disclosure),
    )
}

#[test]
fn numbers_are_counted_over_all_jobs_and_a_new_job_gives_nothing_anew() {
    let bench = Bench::new();
    let all = provider_set(&["a", "b", "c"]);
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
        (entry.numbers, entry.provider_sets, entry.label.as_str()),
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
    let disclosure = disclosure(DisclosureKind::Training, &all);
    let counted = super::count(
        &ledger,
        Counted::Iteration,
        &theirs,
        LIMITS,
        Some(&disclosure),
    );
    assert!(counted.is_ok());
}

#[test]
fn an_evaluation_counts_as_well() {
    let bench = Bench::new();
    let ledger = bench.with_job("a");
    let all = provider_set(&["a", "b"]);
    let limits = CountLimits {
        per_job: 100,
        per_day: 1000,
    };
    let disclosure = disclosure(DisclosureKind::Training, &all);
    let evaluate = || {
        super::count(
            &ledger,
            Counted::Evaluation,
            &key("a"),
            limits,
            Some(&disclosure),
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
    let (all, fewer) = (
        provider_set(&["a", "b", "c", "d"]),
        provider_set(&["a", "b"]),
    );
    for kind in [
        DisclosureKind::Scores,
        DisclosureKind::Release,
        DisclosureKind::Training,
    ] {
        ledger
            .disclose(&key("a"), "ward", &disclosure(kind, &all))
            .unwrap();
        for attempt in [Ledger::foresee, Ledger::disclose] {
            let refused = attempt(&ledger, &key("a"), "ward", &disclosure(kind, &fewer));
            let refused = refused.unwrap_err();
            let words = refused.to_string();
            assert!(matches!(refused, LedgerError::OtherProviders(_)), "{words}");
            assert!(words.contains("wait until all of them are back"), "{words}");
        }
    }
    // Scores with all of them, gradients with fewer: nothing can be subtracted.
    ledger.open_job(&key("b"), &terms("same")).unwrap();
    let scores = Disclosure {
        numbers: 0,
        ..disclosure(DisclosureKind::Scores, &all)
    };
    ledger.disclose(&key("b"), "ward", &scores).unwrap();
    let training = Disclosure {
        numbers: 0,
        ..disclosure(DisclosureKind::Training, &fewer)
    };
    ledger.disclose(&key("b"), "ward", &training).unwrap();
}

#[test]
fn jobs_that_subtract_to_one_provider_are_refused_whatever_their_names() {
    let bench = Bench::new();
    let ledger = bench.ledger();
    let (all, fewer) = (provider_set(&["a", "b", "c"]), provider_set(&["a", "b"]));
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
    let allowed = Disclosure {
        may_single_out: true,
        ..disclosure(DisclosureKind::Training, &all)
    };
    ledger.disclose(&key("two"), "ward", &allowed).unwrap();
}

#[test]
fn of_two_jobs_at_once_the_second_is_refused_when_its_gradient_is_due() {
    let bench = Bench::new();
    let ledger = bench.ledger();
    let (all, fewer) = (provider_set(&["a", "b", "c"]), provider_set(&["a", "b"]));
    for (id, provider_set) in [("one", &all), ("two", &fewer)] {
        ledger.open_job(&key(id), &terms("same")).unwrap();
        ledger
            .foresee(
                &key(id),
                "ward",
                &disclosure(DisclosureKind::Training, provider_set),
            )
            .unwrap();
    }
    let count = |id, provider_set| {
        let disclosure = disclosure(DisclosureKind::Training, provider_set);
        super::count(
            &ledger,
            Counted::Iteration,
            &key(id),
            LIMITS,
            Some(&disclosure),
        )
    };
    count("two", &fewer).unwrap();
    assert!(matches!(
        count("one", &all),
        Err(LedgerError::SinglesOut(_))
    ));
}

/// Until version 7 sums of columns were written down as scores: what an older ledger has may be either.
#[test]
fn scores_of_an_older_ledger_may_have_been_sums_of_columns() {
    let bench = Bench::new();
    let ledger = bench.with_job("a");
    let (all, fewer) = (provider_set(&["a", "b", "c"]), provider_set(&["a", "b"]));
    let scores = disclosure(DisclosureKind::Scores, &all);
    ledger.disclose(&key("a"), "ward", &scores).unwrap();
    let training = disclosure(DisclosureKind::Training, &fewer);
    ledger.foresee(&key("b"), "ward", &training).unwrap();
    ledger
        .change(|change| Ok(change.execute("UPDATE circles SET columns = 1", [])?))
        .unwrap();
    let refused = ledger.foresee(&key("b"), "ward", &training);
    assert!(matches!(refused, Err(LedgerError::SinglesOut(_))));
}

#[test]
fn a_data_user_may_learn_exactly_as_many_numbers_as_are_allowed() {
    let bench = Bench::new();
    let ledger = bench.with_job("a");
    let all = provider_set(&["a", "b", "c"]);
    let disclose = |numbers| {
        let disclosure = Disclosure {
            numbers,
            numbers_most: 30,
            ..disclosure(DisclosureKind::Training, &all)
        };
        ledger.foresee(&key("a"), "ward", &disclosure)?;
        ledger.disclose(&key("a"), "ward", &disclosure)
    };
    disclose(29).unwrap();
    assert!(disclose(2).is_err());
    disclose(1).unwrap();
    assert!(disclose(1).is_err());
}
