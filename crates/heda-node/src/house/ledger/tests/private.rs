//! The account of private jobs.

use super::*;
use crate::house::ledger::{PrivateCap, Whose};
use heda_dp::gdp::{Cost, Delta};
use heda_train::house::Bought;

const GRADIENT: Bought = Bought::Gradient { iteration: 0 };
const COUNTS: Bought = Bought::Counts { class: 0 };

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

fn opened(ledger: &Ledger, user: &str, id: &str) -> JobKey {
    let job = JobKey {
        peer: peer(user),
        id: id.into(),
    };
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
        ledger.pay(&job, "ward", (GRADIENT, each), &cap).unwrap();
        assert_eq!(spent(&ledger), each.times(paid));
    }
    let refused = ledger.pay(&job, "ward", (GRADIENT, each), &cap);
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
    let unknown = ledger.pay(&key("two"), "ward", (GRADIENT, each), &cap);
    assert!(matches!(unknown, Err(LedgerError::NotOpen(_))));
    let most = Cost::from_parts(u64::MAX);
    assert!(ledger.pay(&job, "ward", (GRADIENT, most), &cap).is_err());
}

#[test]
fn data_users_have_their_own_part_of_one_account() {
    let bench = Bench::new();
    let ledger = bench.ledger();
    let cap = cap("1", "0.6");
    let half = cost("0.6");
    for (user, id, fits) in [("a", "1", true), ("a", "2", false), ("b", "3", true)] {
        let job = opened(&ledger, user, id);
        let foreseen = ledger.foresee_private(&job, "ward", half, &cap);
        let paid = ledger.pay(&job, "ward", (GRADIENT, half), &cap);
        assert_eq!(
            (foreseen.is_ok(), paid.is_ok()),
            (fits, fits),
            "{user} {id}"
        );
    }
    let third = opened(&ledger, "c", "4");
    let refused = ledger
        .pay(&third, "ward", (GRADIENT, half), &cap)
        .unwrap_err();
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
    ledger.pay(&job, "ward", (GRADIENT, less), &cap).unwrap();
    ledger.pay(&job, "ward", (COUNTS, less), &cap).unwrap();
    assert_eq!(spent(&ledger), less, "other rows were counted");
    ledger.pay(&job, "ward", (COUNTS, more), &cap).unwrap();
    assert_eq!(spent(&ledger), less.plus(more));
    // Another job divides the rows anew: both are paid.
    let next = opened(&ledger, "user", "two");
    ledger.pay(&next, "ward", (COUNTS, less), &cap).unwrap();
    assert_eq!(spent(&ledger), less.plus(more).plus(less));
}

#[test]
fn published_columns_are_composed_in_one_account() {
    let bench = Bench::new();
    let ledger = bench.ledger();
    let job = opened(&ledger, "user", "one");
    ledger
        .pay(&job, "ward", (GRADIENT, cost("1")), &cap("2", "2"))
        .unwrap();
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
        ledger.pay(&job, "ward", (GRADIENT, paid), &cap).unwrap();
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
        ledger
            .pay(&job, "ward", (GRADIENT, cost("1")), &cap("2", "2"))
            .unwrap();
    }
    let file = Connection::open(bench.path()).unwrap();
    file.execute("UPDATE private SET training = training - 1", [])
        .unwrap();
    drop(file);
    assert!(matches!(
        bench.open(),
        Err(LedgerError::Lost(Loss::Disagrees))
    ));
}
