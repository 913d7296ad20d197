//! Moments of a private job at the data user: what follows from the answers, and from those that were lost.

use super::purchase::{Purchased, private_encoding};
use super::{Checkpoint, NotKept, Observer, Progress};
use crate::agreement::tests::{Case, private};
use crate::engine::testing::{SEED, schema};
use crate::error::JobError;
use crate::local::{self, LocalProvider, LocalRun};
use crate::proposal::Privacy;
use heda_crypto::random::Randomness;
use heda_learn::private::{bought_centres, bought_persons};

/// Keeps every state, and stops when so many answers for the moments are there.
#[derive(Default)]
struct Kept {
    states: Vec<Checkpoint>,
    lost: Vec<u32>,
    stop_at: Option<usize>,
}

impl Observer for Kept {
    fn checkpoint(&mut self, state: &Checkpoint) -> Result<bool, NotKept> {
        self.states.push(state.clone());
        Ok(self.stop_at != Some(state.sums.len()))
    }

    fn progress(&mut self, progress: Progress) {
        if let Progress::LostAnswer(number) = progress {
            self.lost.push(number);
        }
    }
}

fn run(
    case: &Case,
    providers: &[LocalProvider],
    kept: &mut Kept,
    resume: Option<Checkpoint>,
) -> Result<LocalRun, JobError> {
    let randomness = Randomness::seeded(SEED);
    local::run(&case.spec, providers, &randomness, kept, resume, false)
}

/// What a state says of the moments.
fn moments_of(state: &Checkpoint) -> (u32, usize, bool) {
    (state.step, state.sums.len(), state.bought.is_some())
}

/// The mean of these answers.
fn mean_of(answers: &[Vec<i64>]) -> Vec<f64> {
    let mean = |place: usize| {
        let sum: i64 = answers.iter().map(|sums| sums[place]).sum();
        sum as f64 / answers.len() as f64
    };
    (0..answers[0].len()).map(mean).collect()
}

#[test]
fn every_answer_for_the_moments_is_kept_before_the_next_is_asked_for() {
    let case = private();
    let mut kept = Kept::default();
    let run = run(&case, &case.guards(), &mut kept, None).unwrap();
    let states: Vec<_> = kept.states.iter().map(moments_of).collect();
    let expected = [
        (0, 0, false),
        (1, 1, false),
        (2, 2, false),
        (2, 2, true),
        (3, 2, true),
    ];
    assert_eq!(states[..5], expected);
    assert_eq!((run.outcome.lost, kept.lost), (0, Vec::new()));
    // The centres follow from the mean of both, with half of the noise of one of them.
    let last = kept.states.last().unwrap();
    let privacy = run.outcome.privacy.unwrap();
    let plan = privacy.plan(case.parts[0].width() + 1).unwrap();
    let share = privacy.share(plan.moments_variance().unwrap(), case.parts.len());
    let variance = share.get() as f64 * case.parts.len() as f64;
    let rows: usize = run
        .outcome
        .providers
        .iter()
        .map(|provider| provider.rows)
        .sum();
    let centres = |variance| bought_centres(&mean_of(&last.sums), rows as f64, variance);
    let bought = last.bought.clone().unwrap();
    assert_eq!(bought.centres, centres(variance / 2.0));
    assert_ne!(bought.centres, centres(variance));
    // Between which values columns count is told with the model.
    let encoding = private_encoding(&schema(), Some(&bought.centres)).unwrap();
    assert_eq!(run.outcome.reach, Some(encoding.reach()));
}

#[test]
fn a_job_goes_on_with_the_answer_that_it_has() {
    let case = private();
    let providers = case.guards();
    let mut first = Kept {
        stop_at: Some(1),
        ..Kept::default()
    };
    let stopped = run(&case, &providers, &mut first, None);
    assert!(matches!(stopped, Err(JobError::Interrupted)));
    let mut kept = Kept::default();
    let resumed = run(&case, &providers, &mut kept, first.states.pop()).unwrap();
    assert_eq!((resumed.outcome.lost, kept.lost), (0, Vec::new()));
    assert_eq!(kept.states.last().unwrap().sums.len(), 2);
}

/// The providers gave the first answer, and the data user does not have it: it is told, not asked for again, and the other
/// one alone has more noise.
#[test]
fn a_job_goes_on_without_the_answer_that_was_lost() {
    let case = private();
    let providers = case.guards();
    let mut first = Kept {
        stop_at: Some(1),
        ..Kept::default()
    };
    let stopped = run(&case, &providers, &mut first, None);
    assert!(matches!(stopped, Err(JobError::Interrupted)));
    let before = first.states.swap_remove(0);
    assert_eq!(moments_of(&before), (0, 0, false));
    let mut kept = Kept::default();
    let resumed = run(&case, &providers, &mut kept, Some(before)).unwrap();
    assert_eq!((resumed.outcome.lost, kept.lost), (1, vec![0]));
    let last = kept.states.last().unwrap();
    assert_eq!((last.sums.len(), last.lost), (1, 1));
    assert_eq!(last.bought.as_ref().unwrap().centres.len(), 3);
}

fn privacy(persons: bool) -> Privacy {
    Privacy {
        moments: 1,
        persons,
        ..Privacy::new("1".parse().unwrap(), "1e-5".parse().unwrap(), 40)
    }
}

/// Variance of the noise of one answer: as much as the columns may be expected to differ.
const VARIANCE: f64 = 1e9;

#[test]
fn what_was_bought_is_the_mean_of_what_arrived() {
    let answers = [vec![4000, -2000, 30_600], vec![6000, -3000, 31_620]];
    let of =
        |answers: &[Vec<i64>], persons| Purchased::of(answers, &privacy(persons), 50, VARIANCE);
    let centres = |sums: [f64; 2], units, variance| bought_centres(&sums, units, variance);
    let both = of(&answers, false);
    assert_eq!(
        both.centres,
        centres([5000.0, -2500.0], 50.0, VARIANCE / 2.0)
    );
    assert_eq!(both.persons, None);
    let one = of(&answers[..1], false);
    assert_eq!(one.centres, centres([4000.0, -2000.0], 50.0, VARIANCE));
    assert_ne!(
        one.centres,
        centres([4000.0, -2000.0], 50.0, 2.0 * VARIANCE)
    );
}

#[test]
fn sums_over_persons_are_divided_by_persons_if_their_number_arrived() {
    let answers = [vec![4000, -2000, 30_600]];
    let bought = Purchased::of(&answers, &privacy(true), 50, VARIANCE);
    let persons = bought_persons(30_600.0);
    assert_eq!(bought.persons, Some(persons));
    assert_eq!(
        bought.centres,
        bought_centres(&[4000.0, -2000.0], persons, VARIANCE)
    );
    // Nothing arrived: columns lie where they are to be expected, and nobody was counted.
    for persons in [true, false] {
        let nothing = Purchased::of(&[], &privacy(persons), 50, VARIANCE);
        assert_eq!(nothing.persons, None);
        assert!((nothing.centres[0].mean - 0.5).abs() < 1e-9, "{nothing:?}");
        assert!(nothing.centres[0].deviation > 0.28, "{nothing:?}");
    }
}
