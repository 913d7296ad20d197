//! The rules of one process.

use super::*;
use crate::description::Protected;
use crate::engine::testing::{dataset, schema};
use crate::proposal::Spending;
use heda_dp::account::{Accountant, ColumnCharge, Mechanism};

const JOB: JobId = JobId([3; 16]);
const OTHER: JobId = JobId([4; 16]);

fn plan(parts: u64) -> AgreedPlan {
    AgreedPlan {
        cost: Cost::from_parts(parts),
        persons: false,
    }
}

/// A guard that has agreed to a plan for both jobs that costs as much as anyone likes.
fn agreed() -> LocalGuard {
    let guard = guard(None);
    for job in [JOB, OTHER] {
        guard.reserve(job, plan(u64::MAX)).unwrap();
    }
    guard
}

fn guard(limit: Option<u64>) -> LocalGuard {
    let books = MemoryLedger::default();
    if let Some(parts) = limit {
        books.limit_private(Cost::from_parts(parts));
    }
    LocalGuard::new(Arc::new(dataset(9, 1)), schema(), [1; 32].into(), books)
}

fn gradient(number: u32, cost: u64) -> Step {
    Step::Gradient {
        number,
        cost: Some(Cost::from_parts(cost)),
    }
}

/// An answer of a session that agreed on what the guard knows.
fn answer(guard: &LocalGuard, job: JobId, step: Step) -> Result<(), Refusal> {
    guard.authorise(job, step, guard.plan_of(job)).map(drop)
}

#[test]
fn an_answer_leaves_once_and_what_is_refused_costs_nothing() {
    let guard = agreed();
    answer(&guard, JOB, gradient(0, 5)).unwrap();
    answer(&guard, JOB, gradient(2, 5)).unwrap();
    for number in 0..=2 {
        let again = answer(&guard, JOB, gradient(number, 5)).unwrap_err();
        assert!(
            matches!(again, Refusal::Answered { next: 3, .. }),
            "{again}"
        );
    }
    assert_eq!(guard.charged(JOB).unwrap().job.parts(), 10);
    // Held-out rows are others: the job costs the dearer of both.
    let counts = Step::Evaluation {
        number: 3,
        cost: Some(Cost::from_parts(7)),
    };
    answer(&guard, JOB, counts).unwrap();
    assert_eq!(guard.charged(JOB).unwrap().job.parts(), 10);
}

#[test]
fn an_answer_is_begun_eight_times_at_most() {
    let guard = agreed();
    for _ in 0..MOST_TRIES {
        guard.begin(JOB, &gradient(0, 5)).unwrap();
    }
    let ninth = guard.begin(JOB, &gradient(0, 5)).unwrap_err();
    assert!(matches!(ninth, Refusal::Tries));
    let other = OTHER;
    guard.begin(other, &gradient(0, 5)).unwrap();
    answer(&guard, other, gradient(0, 5)).unwrap();
    for _ in 0..MOST_TRIES {
        guard.begin(other, &gradient(1, 5)).unwrap();
    }
    assert!(guard.begin(other, &gradient(1, 5)).is_err());
}

#[test]
fn a_data_user_that_failed_a_check_gets_nothing_more() {
    let guard = agreed();
    guard.begin(JOB, &gradient(0, 5)).unwrap();
    guard.end_cheating(JOB).unwrap();
    assert!(matches!(
        guard.begin(JOB, &gradient(0, 5)),
        Err(Refusal::Cheated)
    ));
    let answer = answer(&guard, JOB, gradient(0, 5));
    assert!(matches!(answer, Err(Refusal::Cheated)));
}

#[test]
fn what_is_set_aside_for_one_job_is_not_spent_by_another() {
    let guard = guard(Some(10));
    guard.reserve(JOB, plan(8)).unwrap();
    assert!(guard.reserve(OTHER, plan(3)).is_err());
    assert!(answer(&guard, OTHER, gradient(0, 3)).is_err());
    answer(&guard, JOB, gradient(0, 8)).unwrap();
    guard.reserve(OTHER, plan(2)).unwrap();
    answer(&guard, OTHER, gradient(0, 2)).unwrap();
}

#[test]
fn a_job_never_pays_more_than_its_plan_and_pays_nothing_without_one() {
    let guard = guard(None);
    let unplanned = answer(&guard, JOB, gradient(0, 5));
    assert!(matches!(unplanned, Err(Refusal::BeyondPlan)));
    guard.reserve(JOB, plan(9)).unwrap();
    answer(&guard, JOB, gradient(0, 5)).unwrap();
    let more = answer(&guard, JOB, gradient(1, 5));
    assert!(matches!(more, Err(Refusal::BeyondPlan)));
    answer(&guard, JOB, gradient(1, 4)).unwrap();
    assert_eq!(guard.charged(JOB).unwrap().job.parts(), 9);
}

#[test]
fn an_agreement_is_fixed_with_the_first_answer() {
    let guard = guard(None);
    let persons = AgreedPlan {
        persons: true,
        ..plan(9)
    };
    guard.reserve(JOB, plan(9)).unwrap();
    guard.reserve(JOB, persons).unwrap();
    // A session that agreed on the first one may not answer any more: its numbers are others.
    for late in [Some(plan(9)), None] {
        let refused = guard.authorise(JOB, gradient(0, 5), late);
        assert!(matches!(refused, Err(Refusal::OtherAgreement)));
    }
    answer(&guard, JOB, gradient(0, 5)).unwrap();
    for other in [
        plan(9),
        AgreedPlan {
            cost: Cost::from_parts(10),
            ..persons
        },
    ] {
        let refused = guard.reserve(JOB, other);
        assert!(matches!(refused, Err(Refusal::OtherAgreement)));
    }
    guard.reserve(JOB, persons).unwrap();
}

#[test]
fn a_job_that_comes_back_keeps_its_proposal_and_its_division_of_rows() {
    let books = MemoryLedger::default();
    let guard = |seed| {
        let data = Arc::new(dataset(9, 1));
        LocalGuard::new(data, schema(), [seed; 32].into(), books.clone())
    };
    let proposal = crate::proposal::testing::proposal();
    let first = guard(1).admit(&proposal).unwrap();
    let back = guard(2).admit(&proposal).unwrap();
    assert_eq!(first.row_seed, back.row_seed);
    let mut raw = crate::proposal::testing::raw();
    raw.held_out = 0.5;
    let other = crate::proposal::testing::proposal_of(raw);
    let refused = guard(1).admit(&other);
    assert!(matches!(refused, Err(Refusal::OtherProposal)));
    let mut fewer = proposal;
    fewer.parties.identities.clear();
    assert!(guard(1).admit(&fewer).is_ok());
}

/// The head of a ledger of one digit each.
fn head(epoch: char, entry: u64, hash: char) -> LedgerHead {
    LedgerHead {
        epoch: epoch.to_string().repeat(32),
        entry,
        hash: hash.to_string().repeat(64),
    }
}

#[test]
fn the_head_of_a_ledger_is_32_and_64_hexadecimal_digits() {
    assert!(head('0', 3, 'f').is_well_formed());
    let with = |epoch: String, hash: String| LedgerHead {
        epoch,
        entry: 3,
        hash,
    };
    let (epoch, hash) = ("0".repeat(32), "f".repeat(64));
    for (epoch, hash) in [
        ("0".repeat(31), hash.clone()),
        ("0".repeat(33), hash.clone()),
        ("g".repeat(32), hash.clone()),
        (epoch.clone(), "f".repeat(63)),
        (epoch.clone(), "f".repeat(65)),
        (epoch, "\u{1b}".repeat(64)),
        (String::new(), String::new()),
    ] {
        let head = with(epoch, hash);
        assert!(!head.is_well_formed(), "{head:?}");
    }
}

/// What a data user finds out with the head that it kept: a ledger that was lost, replaced or set back.
#[test]
fn a_ledger_follows_itself_and_its_later_entries_and_no_other() {
    let before = head('1', 7, 'a');
    for (now, follows) in [
        (head('1', 7, 'a'), true),
        (head('1', 8, 'b'), true),
        (head('1', 8, 'a'), true),
        (head('1', 7, 'b'), false),
        (head('1', 6, 'a'), false),
        (head('1', 6, 'b'), false),
        (head('2', 7, 'a'), false),
        (head('2', 8, 'b'), false),
    ] {
        assert_eq!(now.can_follow(&before), follows, "{now:?}");
    }
}

#[test]
fn epsilon_is_read_from_rows_only_if_they_are_public() {
    let job = |spending| {
        let mut raw = crate::proposal::testing::raw();
        raw.protected = Protected::Best(2);
        raw.spending = Some(spending);
        crate::proposal::testing::proposal_of(raw)
    };
    let automatic = job(Spending::Automatic);
    let refused = guard(None).admit(&automatic);
    assert!(matches!(refused, Err(Refusal::AutomaticEpsilon)));
    assert!(guard(None).of_public_data().admit(&automatic).is_ok());
    let named = job(Spending::Total("1".parse().unwrap()));
    assert!(guard(None).admit(&named).is_ok());
}

/// A second release of the same rows would be a second charge, and its noise would average out.
#[test]
fn a_release_is_made_and_charged_once_and_handed_out_again() {
    let charge = |epsilon: &str| {
        let column = ColumnCharge {
            name: "x0".into(),
            epsilon: epsilon.parse().unwrap(),
        };
        Charge::new(Mechanism::Laplace, vec![column]).unwrap()
    };
    let data = Arc::new(dataset(9, 1));
    let accountant = Accountant::new("1".parse().unwrap());
    let guard = LocalGuard::new(data, schema(), [1; 32].into(), accountant);
    let mut made = 0;
    let mut release = |job| {
        guard.release(job, charge("0.6"), &mut |_| {
            made += 1;
            Ok(vec![made])
        })
    };
    assert_eq!(release(JOB).unwrap(), [1]);
    assert_eq!(release(JOB).unwrap(), [1]);
    assert!(matches!(release(OTHER), Err(Refusal::Budget(_))));
    assert_eq!(made, 1);
}

/// The owner of the rows may lower the limit while a job runs: the next answer already keeps to it.
#[test]
fn a_limit_that_is_lowered_holds_for_the_next_answer() {
    let books = MemoryLedger::default();
    let data = Arc::new(dataset(9, 1));
    let guard = LocalGuard::new(data, schema(), [1; 32].into(), books.clone());
    books.limit_private(Cost::from_parts(10));
    guard.reserve(JOB, plan(9)).unwrap();
    answer(&guard, JOB, gradient(0, 4)).unwrap();
    books.limit_private(Cost::from_parts(7));
    let refused = answer(&guard, JOB, gradient(1, 4));
    assert!(matches!(refused, Err(Refusal::PrivacyExhausted { .. })));
    assert_eq!(guard.charged(JOB).unwrap().job.parts(), 4);
    books.limit_private(Cost::from_parts(8));
    answer(&guard, JOB, gradient(1, 4)).unwrap();
}
