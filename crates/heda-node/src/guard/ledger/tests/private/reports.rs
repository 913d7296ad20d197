//! What is said of the account of private jobs, to operators and in refusals.

use super::*;
use crate::guard::ledger::PrivateUser;

/// One data user has paid ε 0.5, another has set ε 0.3 aside.
fn used(bench: &Bench, cap: &PrivateCap) -> (Ledger, JobKey, JobKey) {
    let ledger = bench.ledger();
    let [paid, holds] = ["a", "b"].map(|user| opened(&ledger, user, user));
    pay(&ledger, &paid, (GRADIENT, cost("0.5")), cap).unwrap();
    ledger.hold(&holds, "ward", plan(cost("0.3")), cap).unwrap();
    (ledger, paid, holds)
}

#[test]
fn who_only_reads_the_ledger_is_told_the_same() {
    let (bench, cap) = (Bench::new(), cap("1", "0.6"));
    let (ledger, paid, holds) = used(&bench, &cap);
    let reader = LedgerReader::open(&bench.place()).unwrap();
    let report = ledger.private("ward", Some(&cap)).unwrap();
    assert_eq!(reader.private("ward", Some(&cap)).unwrap(), report);
    assert_eq!(report.holds[0].cost, cost("0.3"));
    // The quick answer for metrics, which says nothing of what is left.
    let (spent, users) = ledger.private_spent("ward", cap.delta).unwrap();
    assert_eq!(spent, report.epsilon_spent);
    let [user] = report.users.as_slice() else {
        panic!("one data user has paid");
    };
    let quick = PrivateUser {
        epsilon_left: 0.0,
        ..user.clone()
    };
    assert_eq!(users, [quick]);
    // What a further job may cost, beside what is set aside.
    let room = |job: &JobKey| {
        let peer = job.peer.to_string();
        reader.private_room(&peer, "ward", &cap).unwrap()
    };
    let left = |most: Cost, used: &str| most.minus(cost(used)).unwrap();
    assert_eq!(room(&paid), left(cap.of_user(), "0.5"));
    assert_eq!(room(&holds), left(cap.of_user(), "0.3"));
    let stranger = room(&key_of("c", "c"));
    let both = cost("0.5").plus(cost("0.3"));
    let of_all = cap.total().minus(both).unwrap();
    assert_eq!(stranger, cap.of_user().min(of_all));
}

#[test]
fn every_data_user_is_told_what_it_may_still_have() {
    let (bench, cap) = (Bench::new(), cap("1", "0.6"));
    let (ledger, paid, _) = used(&bench, &cap);
    let next = JobKey {
        id: "next".into(),
        ..paid
    };
    let room = ledger.private_room(&next, "ward", &cap).unwrap();
    assert!(room > 0.1, "{room}");
    let user = &ledger.private("ward", Some(&cap)).unwrap().users[0];
    assert_eq!(user.epsilon_left, room);
    let unknown = &ledger.private("ward", None).unwrap().users[0];
    assert_eq!(unknown.epsilon_left, 0.0, "no cap is known");
}

#[test]
fn a_refusal_says_what_was_spent_and_what_it_would_be() {
    let (bench, cap) = (Bench::new(), cap("1", "0.6"));
    let (ledger, paid, _) = used(&bench, &cap);
    let words = |job: &JobKey, more: Cost| {
        let refused = pay(&ledger, job, (GRADIENT, more), &cap);
        refused.unwrap_err().to_string()
    };
    let after = cost("0.5").times(2).epsilon(delta()).unwrap().to_f64();
    let after = (after * 1e4).ceil() / 1e4;
    let twice = words(&paid, cost("0.5"));
    let expected = format!(
        "all private jobs of this data user may cost a row epsilon 0.6 at delta 1e-6; they have cost \
         0.5000, and this would make it {after:.4}"
    );
    assert!(twice.starts_with(&expected), "{twice}");
    let nothing_yet = words(&opened(&ledger, "c", "c"), Cost::from_parts(1 << 61));
    let expected = "they have cost 0.0000, and this would make it more than 1000";
    assert!(nothing_yet.contains(expected), "{nothing_yet}");
    let [fits, waits] = ["d", "e"].map(|user| opened(&ledger, user, user));
    let hold = |job: &JobKey| ledger.hold(job, "ward", plan(cost("0.6")), &cap);
    hold(&fits).unwrap();
    let held = hold(&waits).unwrap_err().to_string();
    let all = ["0.5", "0.3", "0.6"].map(cost).into_iter().sum::<Cost>();
    let all = all.epsilon(delta()).unwrap();
    let expected = format!("it is {:.4},", (all.to_f64() * 1e4).ceil() / 1e4);
    assert!(held.contains(&expected), "{held}");
}

#[test]
fn where_nothing_is_published_the_accountant_of_both_says_the_same() {
    let (bench, cap) = (Bench::new(), cap("1", "0.6"));
    let (ledger, ..) = used(&bench, &cap);
    let report = ledger.private("ward", Some(&cap)).unwrap();
    assert!(report.epsilon_spent > Some(0.49));
    assert_eq!(report.epsilon_with_published, report.epsilon_spent);
}
