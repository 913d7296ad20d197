//! What private jobs set aside of the account, and for how long.

use super::*;
use crate::guard::ledger::{HoldReport, LAPSE_SECONDS};

#[test]
fn a_failed_check_frees_what_the_job_had_set_aside() {
    let bench = Bench::new();
    let ledger = bench.ledger();
    let cap = cap("1", "1");
    let (first, second) = (opened(&ledger, "a", "one"), opened(&ledger, "b", "two"));
    ledger
        .hold(&first, "ward", plan(cost("0.9")), &cap)
        .unwrap();
    assert!(
        ledger
            .hold(&second, "ward", plan(cost("0.9")), &cap)
            .is_err()
    );
    ledger.end_cheating(&first).unwrap();
    ledger
        .hold(&second, "ward", plan(cost("0.9")), &cap)
        .unwrap();
}

/// A data user that only comes back blocks nobody for longer than one that went away.
#[test]
fn coming_back_without_an_answer_does_not_keep_what_is_set_aside() {
    let bench = Bench::new();
    let ledger = bench.ledger();
    let cap = cap("1", "1");
    let (first, second) = (opened(&ledger, "a", "one"), opened(&ledger, "b", "two"));
    ledger
        .hold(&first, "ward", plan(cost("0.9")), &cap)
        .unwrap();
    bench.pass(LAPSE_SECONDS - 60);
    ledger
        .hold(&first, "ward", plan(cost("0.9")), &cap)
        .unwrap();
    bench.pass(61);
    ledger
        .hold(&second, "ward", plan(cost("0.9")), &cap)
        .unwrap();
    assert!(
        ledger
            .hold(&first, "ward", plan(cost("0.9")), &cap)
            .is_err()
    );
}

#[test]
fn jobs_at_once_set_aside_what_they_cost_and_the_rest_waits_or_is_refused() {
    let bench = Bench::new();
    let ledger = bench.ledger();
    let cap = cap("2", "2");
    let each = Cost::from_parts(cap.total().parts() / 3);
    let jobs = ["a", "b", "c", "d"].map(|user| opened(&ledger, user, user));
    for job in &jobs[..3] {
        ledger.hold(job, "ward", plan(each), &cap).unwrap();
    }
    let held = ledger.hold(&jobs[3], "ward", plan(each), &cap).unwrap_err();
    assert!(matches!(held, LedgerError::PrivateHeld { .. }), "{held}");
    assert!(held.is_refusal());
    // Who has set nothing aside cannot pay from what others have.
    let paid = pay(&ledger, &jobs[3], (GRADIENT, each), &cap).unwrap_err();
    assert!(matches!(paid, LedgerError::PrivateHeld { .. }), "{paid}");
    // What was set aside is paid from, once and not twice.
    pay(&ledger, &jobs[0], (GRADIENT, each), &cap).unwrap();
    assert!(pay(&ledger, &jobs[0], (GRADIENT, each), &cap).is_err());
    // One of them ends without having paid: its room is free.
    ledger.free_unpaid(&jobs[1], "ward").unwrap();
    ledger.hold(&jobs[3], "ward", plan(each), &cap).unwrap();
    // One that has paid keeps it when its session ends, and a resumed one needs no more than the rest.
    ledger.free_unpaid(&jobs[0], "ward").unwrap();
    ledger.hold(&jobs[0], "ward", plan(each), &cap).unwrap();
    // What is spent is refused for good.
    for job in &jobs[2..] {
        pay(&ledger, job, (GRADIENT, each), &cap).unwrap();
    }
    let spent = ledger.hold(&jobs[1], "ward", plan(each.plus(each)), &cap);
    assert!(matches!(spent, Err(LedgerError::PrivateExhausted { .. })));
}

#[test]
fn what_was_set_aside_lapses_after_an_idle_hour_and_an_operator_can_free_it() {
    let bench = Bench::new();
    let ledger = bench.ledger();
    let cap = cap("2", "2");
    let whole = cap.total();
    let part = Cost::from_parts(whole.parts() / 10);
    let [first, second] = ["a", "b"].map(|user| opened(&ledger, user, user));
    ledger.hold(&first, "ward", plan(whole), &cap).unwrap();
    bench.pass(LAPSE_SECONDS);
    pay(&ledger, &first, (GRADIENT, part), &cap).unwrap();
    // It was used just now.
    bench.pass(LAPSE_SECONDS);
    assert!(ledger.hold(&second, "ward", plan(part), &cap).is_err());
    bench.pass(1);
    ledger.hold(&second, "ward", plan(part), &cap).unwrap();
    // The first one comes back and has to fit beside the second.
    let back = ledger.hold(&first, "ward", plan(whole), &cap);
    assert!(matches!(back, Err(LedgerError::PrivateHeld { .. })));
    assert_eq!(ledger.release("b").unwrap(), 1);
    ledger.hold(&first, "ward", plan(whole), &cap).unwrap();
    assert_eq!(ledger.release("b").unwrap(), 0);
    // The end of a job frees what it did not use.
    ledger.finish_job(&first).unwrap();
    ledger.hold(&second, "ward", plan(part), &cap).unwrap();
}

#[test]
fn one_data_user_cannot_set_everything_aside() {
    let bench = Bench::new();
    let ledger = bench.ledger();
    let cap = cap("1", "0.6");
    let first = opened(&ledger, "a", "1");
    ledger
        .hold(&first, "ward", plan(cost("0.6")), &cap)
        .unwrap();
    let second = opened(&ledger, "a", "2");
    let refused = ledger.hold(&second, "ward", plan(cost("0.3")), &cap);
    assert!(matches!(
        refused,
        Err(LedgerError::PrivateHeld {
            whose: Whose::User,
            ..
        })
    ));
    let other = opened(&ledger, "b", "3");
    ledger
        .hold(&other, "ward", plan(cost("0.3")), &cap)
        .unwrap();
}

/// A data user that sets aside again what it did not use keeps nobody out: who waited comes first.
#[test]
fn who_did_not_use_what_was_set_aside_comes_after_those_who_waited() {
    for comes_back in [false, true] {
        let bench = Bench::new();
        let ledger = bench.ledger();
        let cap = cap("1", "1");
        let most = plan(cost("0.9"));
        let hold = |job: &JobKey| ledger.hold(job, "ward", most, &cap);
        let [one, other] = ["1", "2"].map(|id| opened(&ledger, "a", id));
        let second = opened(&ledger, "b", "3");
        hold(&one).unwrap();
        bench.pass(LAPSE_SECONDS - 10);
        let waits = hold(&second);
        assert!(matches!(waits, Err(LedgerError::PrivateHeld { .. })));
        match comes_back {
            true => ledger.free_unpaid(&one, "ward").unwrap(),
            false => bench.pass(11),
        }
        // Neither the same job nor one of another name.
        for job in [&one, &other] {
            let late = hold(job).unwrap_err();
            assert!(matches!(late, LedgerError::OthersWait), "{late}");
            assert!(late.is_refusal() && late.is_for_now());
        }
        hold(&second).unwrap();
        // Now the first one waits, and the second one does not use it.
        assert!(matches!(hold(&one), Err(LedgerError::PrivateHeld { .. })));
        ledger.free_unpaid(&second, "ward").unwrap();
        assert!(matches!(hold(&second), Err(LedgerError::OthersWait)));
        // Who does not ask any more does not wait any more.
        bench.pass(61);
        hold(&second).unwrap();
        // An answer was paid: that is use.
        pay(&ledger, &second, (GRADIENT, cost("0.1")), &cap).unwrap();
        assert!(matches!(hold(&one), Err(LedgerError::PrivateHeld { .. })));
        assert_eq!(ledger.release("3").unwrap(), 1);
        hold(&second).unwrap();
    }
}

/// A second job that waits keeps no place in the queue for the first one that does nothing, and neither does having
/// waited long ago.
#[test]
fn a_place_among_those_who_wait_is_not_kept() {
    let bench = Bench::new();
    let ledger = bench.ledger();
    let cap = cap("1", "1");
    let hold = |job: &JobKey| ledger.hold(job, "ward", plan(cost("0.9")), &cap);
    let [one, other] = ["1", "2"].map(|id| opened(&ledger, "a", id));
    let [second, third] = ["b", "c"].map(|user| opened(&ledger, user, user));
    hold(&one).unwrap();
    assert!(hold(&other).is_err(), "it waits before the second");
    assert!(hold(&second).is_err());
    ledger.free_unpaid(&one, "ward").unwrap();
    assert!(matches!(hold(&one), Err(LedgerError::OthersWait)));
    hold(&second).unwrap();
    ledger.free_unpaid(&second, "ward").unwrap();
    // The first one waited long ago; meanwhile the third came.
    bench.pass(61);
    hold(&third).unwrap();
    assert!(hold(&second).is_err());
    assert!(hold(&one).is_err());
    ledger.free_unpaid(&third, "ward").unwrap();
    assert!(matches!(hold(&one), Err(LedgerError::OthersWait)));
    hold(&second).unwrap();
}

/// Who waits for more than there is keeps no room from a job that fits.
#[test]
fn a_job_that_fits_does_not_wait_for_one_that_does_not() {
    let bench = Bench::new();
    let ledger = bench.ledger();
    let cap = cap("1", "1");
    let [first, large, small] = ["a", "b", "c"].map(|user| opened(&ledger, user, user));
    let hold = |job: &JobKey, text: &str| ledger.hold(job, "ward", plan(cost(text)), &cap);
    hold(&first, "0.6").unwrap();
    assert!(matches!(
        hold(&large, "0.9"),
        Err(LedgerError::PrivateHeld { .. })
    ));
    hold(&small, "0.3").unwrap();
}

/// The end of an old session frees nothing that a newer one of the same job relies on.
#[test]
fn what_is_set_aside_stays_while_a_session_of_the_job_runs() {
    let bench = Bench::new();
    let ledger = bench.ledger();
    let cap = cap("1", "1");
    let [first, second] = ["a", "b"].map(|user| opened(&ledger, user, user));
    let hold = |job: &JobKey| ledger.hold(job, "ward", plan(cost("0.9")), &cap);
    let newer = ledger.reserve(&first, "ward", (1, 0), 100).unwrap();
    hold(&first).unwrap();
    ledger.free_unpaid(&first, "ward").unwrap();
    assert!(hold(&second).is_err());
    drop(newer);
    ledger.free_unpaid(&first, "ward").unwrap();
    hold(&second).unwrap();
}

/// An answer after the lapse pays for itself and sets nothing aside again.
#[test]
fn an_answer_does_not_renew_what_has_lapsed() {
    let bench = Bench::new();
    let ledger = bench.ledger();
    let cap = cap("1", "1");
    let [first, second] = ["a", "b"].map(|user| opened(&ledger, user, user));
    let hold = |job: &JobKey, text: &str| ledger.hold(job, "ward", plan(cost(text)), &cap);
    hold(&first, "0.9").unwrap();
    bench.pass(LAPSE_SECONDS + 1);
    pay(&ledger, &first, (GRADIENT, cost("0.2")), &cap).unwrap();
    assert!(ledger.private("ward", Some(&cap)).unwrap().holds.is_empty());
    hold(&second, "0.9").unwrap();
    let holds = ledger.private("ward", Some(&cap)).unwrap().holds;
    assert_eq!((holds.len(), holds[0].job.as_str()), (1, "b"));
}

/// What never fits waits for nothing, and keeps nobody from what is free.
#[test]
fn who_is_refused_for_good_does_not_wait() {
    let bench = Bench::new();
    let ledger = bench.ledger();
    let cap = cap("1", "1");
    let [first, second] = ["a", "b"].map(|user| opened(&ledger, user, user));
    let hold = |job: &JobKey, text: &str| ledger.hold(job, "ward", plan(cost(text)), &cap);
    hold(&first, "0.9").unwrap();
    let never = hold(&second, "1.1").unwrap_err();
    assert!(matches!(never, LedgerError::PrivateExhausted { .. }));
    ledger.free_unpaid(&first, "ward").unwrap();
    hold(&first, "0.9").unwrap();
}

#[test]
fn what_is_set_aside_is_reported_until_it_has_lapsed() {
    let bench = Bench::new();
    let ledger = bench.ledger();
    let cap = cap("1", "1");
    let job = opened(&ledger, "a", "one");
    let held = || ledger.private("ward", Some(&cap)).unwrap().holds;
    assert_eq!(held(), []);
    ledger.hold(&job, "ward", plan(cost("0.9")), &cap).unwrap();
    let expected = HoldReport {
        peer: job.peer.to_string(),
        job: "one".into(),
        cost: cost("0.9"),
        used: START,
    };
    bench.pass(LAPSE_SECONDS);
    // The ledger's own time advances with what is written.
    ledger.refuse(&job, "user", "no").unwrap();
    assert_eq!(held(), [expected]);
    bench.pass(1);
    ledger.refuse(&job, "user", "no").unwrap();
    assert_eq!(held(), []);
}
