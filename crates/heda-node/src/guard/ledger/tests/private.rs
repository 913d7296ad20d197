//! The account of private jobs.

mod reports;
mod set_aside;
mod transactions;

use super::*;
use crate::guard::ledger::{PrivateCap, Whose};
use heda_dp::gdp::{Cost, Delta};
use heda_job::guard::AgreedPlan;

/// What an answer is about.
#[derive(Clone, Copy)]
enum About {
    Training,
    HeldOut,
}
const GRADIENT: About = About::Training;
const COUNTS: About = About::HeldOut;

/// An answer of a private job, under the next number.
fn pay(
    ledger: &Ledger,
    job: &JobKey,
    (about, cost): (About, Cost),
    cap: &PrivateCap,
) -> Result<(), LedgerError> {
    let number = ledger.next_step(job)?;
    answer(ledger, job, (about, number, cost), cap)
}

fn answer(
    ledger: &Ledger,
    job: &JobKey,
    (about, number, cost): (About, u32, Cost),
    cap: &PrivateCap,
) -> Result<(), LedgerError> {
    let plan = ledger.change(|change| holds::planned(change, job))?;
    answer_under(ledger, job, (about, number, cost), (cap, plan))
}

/// An answer of a session that agreed on a plan.
fn answer_under(
    ledger: &Ledger,
    job: &JobKey,
    (about, number, cost): (About, u32, Cost),
    (cap, plan): (&PrivateCap, Option<AgreedPlan>),
) -> Result<(), LedgerError> {
    let cost = Some(cost);
    let (what, step) = match about {
        About::Training => (Counted::Iteration, Step::Gradient { number, cost }),
        About::HeldOut => (Counted::Evaluation, Step::Evaluation { number, cost }),
    };
    let answer = AnswerRecord {
        step: &step,
        what,
        limits: CountLimits {
            per_job: u64::MAX,
            per_day: u64::MAX,
        },
        disclosure: None,
        cap: Some(*cap),
        plan,
    };
    ledger.answer(job, "ward", &answer).map(|_| ())
}

fn delta() -> Delta {
    "1e-6".parse().unwrap()
}

fn cap(total: &str, user: &str) -> PrivateCap {
    PrivateCap {
        epsilon: epsilon(total),
        per_user: epsilon(user),
        delta: delta(),
    }
}

fn cost(text: &str) -> Cost {
    Cost::for_guarantee(epsilon(text), delta())
}

fn plan(cost: Cost) -> AgreedPlan {
    AgreedPlan {
        cost,
        persons: false,
    }
}

/// A job whose plan may cost as much as the tables hold.
fn opened(ledger: &Ledger, user: &str, id: &str) -> JobKey {
    let job = unplanned(ledger, user, id);
    let most = plan(Cost::from_parts(1 << 62));
    ledger
        .change(|change| holds::agree(change, &job, most))
        .unwrap();
    job
}

fn unplanned(ledger: &Ledger, user: &str, id: &str) -> JobKey {
    let job = key_of(user, id);
    ledger.open_job(&job, &terms(id)).unwrap();
    job
}

fn spent(ledger: &Ledger) -> Cost {
    ledger.private("ward", None).unwrap().spent
}

#[test]
fn answers_add_up_until_the_cap_and_never_beyond() {
    let bench = Bench::new();
    let ledger = bench.ledger();
    let job = opened(&ledger, "user", "one");
    let cap = cap("1", "1");
    let each = Cost::from_parts(cap.total().parts() / 10);
    for paid in 1..=10 {
        pay(&ledger, &job, (GRADIENT, each), &cap).unwrap();
        assert_eq!(spent(&ledger), each.times(paid));
    }
    let refused = pay(&ledger, &job, (GRADIENT, each), &cap);
    assert!(matches!(
        refused,
        Err(LedgerError::PrivateExhausted {
            whose: Whose::User,
            ..
        })
    ));
    assert_eq!(spent(&ledger), each.times(10));
    assert!(refused.unwrap_err().is_refusal());
    // The whole of it is what the cap says.
    let report = ledger.private("ward", Some(&cap)).unwrap();
    let reached = report.epsilon_spent.unwrap();
    assert!((0.99..=1.0).contains(&reached), "{reached}");
    assert!(report.epsilon_left < 0.001, "{}", report.epsilon_left);
    // Nobody is asked for a job that was never opened, and an even larger number is refused.
    let unknown = pay(&ledger, &key("two"), (GRADIENT, each), &cap);
    assert!(matches!(unknown, Err(LedgerError::NotOpen(_))));
    let most = Cost::from_parts(u64::MAX);
    assert!(pay(&ledger, &job, (GRADIENT, most), &cap).is_err());
}

/// Whatever room a data user is told of, a job of so much fits, and one of more does not.
#[test]
fn the_room_that_is_told_is_that_of_the_data_user_that_asks() {
    let bench = Bench::new();
    let ledger = bench.ledger();
    let cap = cap("1", "0.6");
    let [own, other] = ["a", "b"].map(|user| opened(&ledger, user, user));
    let room = |job: &JobKey| ledger.private_room(job, "ward", &cap).unwrap();
    // A new data user may have its part and no more.
    assert!((0.59..=0.6).contains(&room(&own)), "{}", room(&own));
    let report = ledger.private("ward", Some(&cap)).unwrap();
    assert_eq!(report.epsilon_for_one, room(&own));
    assert!(report.epsilon_left > 0.99);
    pay(&ledger, &own, (GRADIENT, cost("0.5")), &cap).unwrap();
    let (less, whole) = (room(&own), room(&other));
    assert!(less < 0.35 && whole > 0.59, "{less} {whole}");
    // What its own finished job has set aside is its own; what another sets aside is gone.
    ledger
        .hold(&other, "ward", plan(cost("0.6")), &cap)
        .unwrap();
    let between = room(&own);
    assert_eq!(room(&other), whole, "its own is not counted against it");
    let next = opened(&ledger, "a", "next");
    for (told, fits) in [(between, true), (between + 0.02, false)] {
        let wanted = Cost::for_guarantee(epsilon(&format!("{told:.4}")), delta());
        let held = ledger.hold(&next, "ward", plan(wanted), &cap);
        assert_eq!(held.is_ok(), fits, "{told}: {held:?}");
    }
    let report = ledger.private("ward", Some(&cap)).unwrap();
    let users: Vec<_> = report.users.iter().map(|u| u.peer.clone()).collect();
    assert_eq!(users, [own.peer.to_string()]);
    assert!(report.users[0].epsilon_left < 0.01, "its next job holds it");
}

#[test]
fn data_users_have_their_own_part_of_one_account() {
    let bench = Bench::new();
    let ledger = bench.ledger();
    let cap = cap("1", "0.6");
    let half = cost("0.6");
    for (user, id, fits) in [("a", "1", true), ("a", "2", false), ("b", "3", true)] {
        let job = opened(&ledger, user, id);
        let foreseen = ledger.hold(&job, "ward", plan(half), &cap);
        let paid = pay(&ledger, &job, (GRADIENT, half), &cap);
        assert_eq!(
            (foreseen.is_ok(), paid.is_ok()),
            (fits, fits),
            "{user} {id}"
        );
    }
    let third = opened(&ledger, "c", "4");
    let refused = pay(&ledger, &third, (GRADIENT, half), &cap).unwrap_err();
    let words = refused.to_string();
    assert!(
        words.contains("all private jobs on this data set"),
        "{words}"
    );
    assert!(words.contains("epsilon 1 at delta 1e-6"), "{words}");
    let users = ledger.private("ward", Some(&cap)).unwrap().users;
    assert_eq!(users.len(), 2);
    assert!(
        users
            .iter()
            .all(|user| user.jobs == 1 && user.epsilon <= Some(0.6))
    );
    // Another data set of the same provider has an account of its own.
    assert_eq!(ledger.private("clinic", None).unwrap().spent, Cost::ZERO);
}

#[test]
fn a_job_costs_the_dearer_of_training_and_counts() {
    let bench = Bench::new();
    let ledger = bench.ledger();
    let cap = cap("2", "2");
    let job = opened(&ledger, "user", "one");
    let (less, more) = (cost("0.5"), cost("1"));
    pay(&ledger, &job, (GRADIENT, less), &cap).unwrap();
    pay(&ledger, &job, (COUNTS, less), &cap).unwrap();
    assert_eq!(spent(&ledger), less, "other rows were counted");
    pay(&ledger, &job, (COUNTS, more), &cap).unwrap();
    assert_eq!(spent(&ledger), less.plus(more));
    // Another job divides the rows anew: both are paid.
    let next = opened(&ledger, "user", "two");
    pay(&ledger, &next, (COUNTS, less), &cap).unwrap();
    assert_eq!(spent(&ledger), less.plus(more).plus(less));
}

#[test]
fn published_columns_are_composed_in_one_account() {
    let bench = Bench::new();
    let ledger = bench.ledger();
    let job = opened(&ledger, "user", "one");
    pay(&ledger, &job, (GRADIENT, cost("1")), &cap("2", "2")).unwrap();
    ledger
        .buy(&job, "ward", charge("0.5", 1), epsilon("1"))
        .unwrap();
    let report = ledger.private("ward", Some(&cap("2", "2"))).unwrap();
    let (alone, both) = (
        report.epsilon_spent.unwrap(),
        report.epsilon_with_published.unwrap(),
    );
    assert!(alone <= 1.0 && both > alone && both < 1.5, "{alone} {both}");
}

#[test]
fn the_account_outlives_the_process_and_the_memory_of_jobs() {
    let bench = Bench::new();
    let cap = cap("2", "2");
    let paid = cost("1");
    {
        let ledger = bench.ledger();
        let job = opened(&ledger, "user", "one");
        pay(&ledger, &job, (GRADIENT, paid), &cap).unwrap();
    }
    let ledger = bench.ledger().keeping(2);
    assert_eq!(spent(&ledger), paid);
    for id in 0..5 {
        opened(&ledger, "user", &format!("more-{id}"));
    }
    // A job that paid is not forgotten: its rows stay divided as they were.
    let again = ledger.open_job(&key("one"), &terms("other"));
    assert!(matches!(again, Err(LedgerError::OtherTerms(_))));
    assert_eq!(spent(&ledger), paid);
}

#[test]
fn an_account_that_was_changed_is_noticed() {
    let bench = Bench::new();
    {
        let ledger = bench.ledger();
        let job = opened(&ledger, "user", "one");
        pay(&ledger, &job, (GRADIENT, cost("1")), &cap("2", "2")).unwrap();
    }
    let file = Connection::open(bench.path()).unwrap();
    file.execute("UPDATE private SET training = training - 1", [])
        .unwrap();
    drop(file);
    assert!(matches!(
        bench.open(),
        Err(LedgerError::Lost(LedgerLoss::Disagrees))
    ));
}

#[test]
fn an_answer_leaves_once_whoever_asks_and_numbers_only_grow() {
    let bench = Bench::new();
    let ledger = bench.ledger();
    let cap = cap("2", "2");
    let each = Cost::from_parts(cap.total().parts() / 10);
    let job = opened(&ledger, "user", "one");
    answer(&ledger, &job, (GRADIENT, 0, each), &cap).unwrap();
    // What was skipped is gone as well.
    answer(&ledger, &job, (GRADIENT, 3, each), &cap).unwrap();
    for number in [0, 1, 2, 3] {
        let again = answer(&ledger, &job, (GRADIENT, number, each), &cap).unwrap_err();
        let expected = LedgerError::Answered {
            job: "one".into(),
            number,
            next: 4,
        };
        assert_eq!(again.to_string(), expected.to_string());
        assert!(again.is_refusal());
        let counted = answer(&ledger, &job, (COUNTS, number, each), &cap);
        assert!(counted.is_err(), "numbers are those of all answers");
    }
    assert_eq!(
        spent(&ledger),
        each.times(2),
        "what is refused costs nothing"
    );
    assert_eq!(ledger.next_step(&job).unwrap(), 4);
    // Another process that opens the file knows it, too.
    drop(ledger);
    let ledger = bench.ledger();
    assert!(answer(&ledger, &job, (GRADIENT, 3, each), &cap).is_err());
    answer(&ledger, &job, (GRADIENT, 4, each), &cap).unwrap();
    let other = opened(&ledger, "user", "two");
    assert_eq!(ledger.next_step(&other).unwrap(), 0);
}

#[test]
fn an_answer_is_tried_eight_times_and_a_recorded_one_begins_the_count_anew() {
    let bench = Bench::new();
    let ledger = bench.ledger();
    let cap = cap("2", "2");
    let job = opened(&ledger, "user", "one");
    for _ in 0..7 {
        ledger.try_answer(&job).unwrap();
    }
    answer(&ledger, &job, (GRADIENT, 0, cost("0.1")), &cap).unwrap();
    // The session that recorded it has begun the next one.
    for _ in 0..7 {
        ledger.try_answer(&job).unwrap();
    }
    let ninth = ledger.try_answer(&job).unwrap_err();
    assert!(matches!(ninth, LedgerError::Tries(_)) && ninth.is_refusal());
    assert!(matches!(
        ledger.try_answer(&key("never")),
        Err(LedgerError::NotOpen(_))
    ));
}

#[test]
fn a_failed_check_ends_the_job_for_good_and_is_counted() {
    let bench = Bench::new();
    let ledger = bench.ledger();
    let cap = cap("2", "2");
    let job = opened(&ledger, "user", "one");
    answer(&ledger, &job, (GRADIENT, 0, cost("0.1")), &cap).unwrap();
    ledger.end_cheating(&job).unwrap();
    let refused = answer(&ledger, &job, (GRADIENT, 1, cost("0.1")), &cap);
    assert!(refused.is_err());
    let counts = answer(&ledger, &job, (COUNTS, 1, cost("0.1")), &cap);
    assert!(matches!(counts, Err(LedgerError::Cheated(_))));
    let again = ledger.open_job(&job, &terms("one"));
    assert!(matches!(again, Err(LedgerError::Cheated(_))));
    // Another session of the same job may end as an honest one does.
    ledger.finish_job(&job).unwrap();
    let again = ledger.open_job(&job, &terms("one"));
    assert!(matches!(again, Err(LedgerError::Cheated(_))));
    let status = ledger.status("ward").unwrap();
    assert_eq!(status.failed_checks.len(), 1);
    let failed = &status.failed_checks[0];
    assert_eq!(
        (&failed.peer, failed.checks),
        (&peer("user").to_string(), 1)
    );
    assert_eq!(status.jobs[0].state, "failed");
}

#[test]
fn a_job_never_pays_more_than_its_plan_and_nothing_without_one() {
    let bench = Bench::new();
    let ledger = bench.ledger();
    let cap = cap("2", "2");
    let each = Cost::from_parts(1000);
    let job = unplanned(&ledger, "user", "one");
    let refused = pay(&ledger, &job, (GRADIENT, each), &cap);
    assert!(matches!(refused, Err(LedgerError::BeyondPlan(_))));
    ledger
        .hold(&job, "ward", plan(each.times(2)), &cap)
        .unwrap();
    for _ in 0..2 {
        pay(&ledger, &job, (GRADIENT, each), &cap).unwrap();
        pay(&ledger, &job, (COUNTS, each), &cap).unwrap();
    }
    for about in [GRADIENT, COUNTS] {
        let refused = pay(&ledger, &job, (about, Cost::from_parts(1)), &cap).unwrap_err();
        assert!(matches!(refused, LedgerError::BeyondPlan(_)) && refused.is_refusal());
    }
    assert_eq!(spent(&ledger), each.times(2));
}

/// Under another agreement answers have other numbers: what was answered could be asked for again.
#[test]
fn an_agreement_is_fixed_with_the_first_answer() {
    let bench = Bench::new();
    let ledger = bench.ledger();
    let cap = cap("2", "2");
    let job = unplanned(&ledger, "user", "one");
    let rows = plan(cost("1"));
    let persons = AgreedPlan {
        persons: true,
        ..rows
    };
    ledger.hold(&job, "ward", rows, &cap).unwrap();
    ledger.hold(&job, "ward", persons, &cap).unwrap();
    // A session that agreed on the first one may not answer any more: its numbers are others.
    let number = |about, number| (about, number, cost("0.1"));
    let late = answer_under(&ledger, &job, number(GRADIENT, 0), (&cap, Some(rows)));
    assert!(matches!(late, Err(LedgerError::OtherAgreement(_))));
    assert_eq!(spent(&ledger), Cost::ZERO);
    pay(&ledger, &job, (GRADIENT, cost("0.1")), &cap).unwrap();
    let dearer = AgreedPlan {
        cost: cost("1.1"),
        ..persons
    };
    for other in [rows, dearer] {
        let refused = ledger.hold(&job, "ward", other, &cap).unwrap_err();
        assert!(matches!(refused, LedgerError::OtherAgreement(_)) && refused.is_refusal());
    }
    ledger.hold(&job, "ward", persons, &cap).unwrap();
}

#[test]
fn numbers_of_answers_and_failed_checks_that_were_changed_are_noticed() {
    for edit in [
        "UPDATE jobs SET next_step = next_step - 1",
        "DELETE FROM failed_checks",
    ] {
        let bench = Bench::new();
        {
            let ledger = bench.ledger();
            let job = opened(&ledger, "user", "one");
            answer(&ledger, &job, (GRADIENT, 3, cost("1")), &cap("2", "2")).unwrap();
            ledger.end_cheating(&job).unwrap();
        }
        bench.open().unwrap();
        let file = Connection::open(bench.path()).unwrap();
        file.execute(edit, []).unwrap();
        drop(file);
        let found = bench.open();
        assert!(
            matches!(found, Err(LedgerError::Lost(LedgerLoss::Disagrees))),
            "{edit}"
        );
    }
}
