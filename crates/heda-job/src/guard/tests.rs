//! The rules of one process.

use super::*;
use crate::engine::testing::{dataset, schema};

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
fn answer(guard: &LocalGuard, job: JobId, step: Step) -> Result<Permit, Refusal> {
    guard.authorise(job, step, guard.plan_of(job))
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
