//! What every guard decides alike.

use super::*;

fn plan(parts: u64) -> AgreedPlan {
    AgreedPlan {
        cost: Cost::from_parts(parts),
        persons: false,
    }
}

fn gradient(number: u32, parts: u64) -> Step {
    Step::Gradient {
        number,
        cost: Some(Cost::from_parts(parts)),
    }
}

fn counts(number: u32, parts: u64) -> Step {
    Step::Evaluation {
        number,
        cost: Some(Cost::from_parts(parts)),
    }
}

/// A job costs a row the dearer of training and counts: of the cheaper one nothing is added.
#[test]
fn an_answer_costs_what_the_job_costs_more_with_it() {
    let mut state = JobState::default();
    state.agree(plan(10)).unwrap();
    let agreed = state.agreed;
    let more = |state: &mut JobState, step| state.answer(&step, agreed).map(Cost::parts);
    assert_eq!(more(&mut state, gradient(0, 4)), Ok(4));
    assert_eq!(more(&mut state, counts(1, 3)), Ok(0));
    assert_eq!(more(&mut state, counts(2, 3)), Ok(2));
    assert_eq!(state.unpaid().parts(), 4);
    assert_eq!(more(&mut state, gradient(3, 6)), Ok(4));
    assert_eq!(state.unpaid(), Cost::ZERO);
    assert_eq!(more(&mut state, gradient(4, 1)), Err(Denied::BeyondPlan));
}

#[test]
fn exact_answers_have_numbers_and_cost_nothing() {
    let mut state = JobState::default();
    let exact = |number| Step::Gradient { number, cost: None };
    for step in [Step::Scores, Step::Sums { numbers: 3 }, Step::Scores] {
        assert_eq!(state.answer(&step, None), Ok(Cost::ZERO));
    }
    assert_eq!(state, JobState::default(), "sums without a number");
    assert_eq!(state.answer(&exact(6), None), Ok(Cost::ZERO));
    let next = 7;
    for number in [0, 6] {
        let again = state.answer(&exact(number), None);
        assert_eq!(again, Err(Denied::Answered { number, next }));
    }
    assert_eq!(state.answer(&exact(7), None), Ok(Cost::ZERO));
}

#[test]
fn an_answer_is_tried_eight_times_and_a_recorded_one_begins_the_count_anew() {
    let mut state = JobState::default();
    for _ in 0..2 {
        for _ in 0..MOST_TRIES {
            assert_eq!(state.begin(), Ok(()));
        }
        assert_eq!(state.begin(), Err(Denied::Tries));
        let number = state.next_step;
        let answered = state.answer(&Step::Gradient { number, cost: None }, None);
        assert_eq!(answered, Ok(Cost::ZERO));
    }
}

#[test]
fn nothing_leaves_a_job_that_failed_a_check() {
    let mut state = JobState {
        cheated: true,
        ..JobState::default()
    };
    assert_eq!(state.begin(), Err(Denied::Cheated));
    assert_eq!(state.answer(&Step::Scores, None), Err(Denied::Cheated));
}

#[test]
fn a_budget_is_spent_for_good_or_held_for_now() {
    let account = |spent, held| PrivateAccount {
        most: Cost::from_parts(10),
        spent: Cost::from_parts(spent),
        held: Cost::from_parts(held),
    };
    let check = |account: PrivateAccount, more| account.check(Cost::from_parts(more));
    assert_eq!(check(account(4, 3), 3), Ok(()));
    assert_eq!(check(account(4, 3), 4), Err(NoRoom::Held));
    assert_eq!(check(account(4, 3), 6), Err(NoRoom::Held));
    assert_eq!(check(account(4, 3), 7), Err(NoRoom::Spent));
    assert_eq!(check(account(10, 0), 0), Ok(()));
    assert_eq!(check(account(11, 0), 0), Err(NoRoom::Spent));
}
