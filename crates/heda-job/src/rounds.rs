//! Which gradients and evaluations a job has, and in which order. All parties derive the same from
//! the proposal, so nothing of it depends on what anyone has learned.

use crate::description::Job;
use heda_learn::resident::Measure;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// A path of penalties as providers see it: how many there are, and how many gradients each has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PathRounds {
    /// Penalties that are tried one after the other.
    pub penalties: u32,
    /// Gradients of the first one, of each model.
    pub first: u32,
    /// Gradients of each of the others.
    pub next: u32,
}

impl PathRounds {
    /// Gradients of one model.
    pub fn gradients(&self) -> u32 {
        let others = self.penalties.saturating_sub(1);
        self.first.saturating_add(self.next.saturating_mul(others))
    }

    /// The gradients of one penalty of one model, counted over the whole job.
    fn span(&self, class: u32, step: u32) -> Range<u32> {
        let model = class.saturating_mul(self.gradients());
        let begin = match step {
            0 => model,
            _ => {
                let before = self.next.saturating_mul(step - 1);
                model.saturating_add(self.first).saturating_add(before)
            }
        };
        let length = if step == 0 { self.first } else { self.next };
        begin..begin.saturating_add(length)
    }
}

/// Which of a provider's held-out rows an evaluation is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HeldOut {
    /// All.
    All,
    /// Those that choose the penalty.
    Choosing,
    /// The others: what is reported must not be counted on rows that chose.
    Reported,
}

impl HeldOut {
    /// Their places among so many.
    pub(crate) fn of(self, rows: usize) -> Range<usize> {
        match self {
            Self::All => 0..rows,
            Self::Choosing => 0..rows / 2,
            Self::Reported => rows / 2..rows,
        }
    }
}

/// What an evaluation by counts asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tally {
    /// Rows by class and range of score.
    Table,
    /// One number: rows that the model predicts right.
    Right,
}

impl Tally {
    /// The answers about one model of a private job, in their order.
    const PRIVATE: [Self; 2] = [Self::Right, Self::Table];
}

/// One evaluation of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Evaluation {
    /// Counts up by one over the whole job.
    pub(crate) number: u32,
    /// What is counted.
    pub(crate) tally: Tally,
    /// Index into the proposal's classes, or the measure of a number's errors.
    pub(crate) class: u32,
    /// About which rows.
    pub(crate) rows: HeldOut,
    /// How many gradients of the job come before it.
    pub(crate) after: u32,
}

/// The order of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Rounds {
    models: u32,
    numeric: bool,
    private: bool,
    /// Over all models.
    gradients: u32,
    path: Option<PathRounds>,
    /// Answers of a private job before its first gradient.
    moments: u32,
}

/// What moments cost is paid in so many answers, so that one that is lost does not cost all.
pub(crate) const MOMENT_HALVES: u32 = heda_learn::private::MOMENT_ANSWERS;

impl Rounds {
    /// Of a job; a private one has as many gradients as its plan says
    /// ([`Rounds::with_gradients`]).
    pub(crate) fn of(job: &Job) -> Self {
        let privacy = job.privacy();
        Self {
            models: job.positives().len() as u32,
            numeric: job.is_numeric(),
            private: privacy.is_some(),
            gradients: job.gradients(),
            path: job.path(),
            moments: match privacy {
                Some(privacy) if privacy.sums() > 0 => MOMENT_HALVES,
                _ => 0,
            },
        }
    }

    /// The same with so many gradients over all models.
    pub(crate) fn with_gradients(self, gradients: u32) -> Self {
        Self { gradients, ..self }
    }

    /// The number of a gradient among the answers of a private job.
    pub(crate) fn number_of_gradient(&self, iteration: u32) -> u32 {
        self.moments.saturating_add(iteration)
    }

    /// The number of an evaluation among the answers of a private job.
    pub(crate) fn number_of_evaluation(&self, number: u32) -> u32 {
        self.number_of_gradient(self.gradients)
            .saturating_add(number)
    }

    /// Gradients over all models.
    pub(crate) fn gradients(&self) -> u32 {
        self.gradients
    }

    /// Evaluations that choose a penalty.
    fn trials(&self) -> u32 {
        let penalties = self.path.map_or(0, |path| path.penalties);
        penalties.saturating_mul(self.models)
    }

    /// Evaluations of what is reported: one a model, or one for each measure of a number's errors. A
    /// private job has two a model, so that one that is lost does not cost the other.
    pub(crate) fn results(&self) -> u32 {
        match self.numeric {
            true => Measure::ALL.len() as u32,
            false => self.models.saturating_mul(self.tallies().len() as u32),
        }
    }

    /// What is asked for each model.
    fn tallies(&self) -> &'static [Tally] {
        match self.private {
            true => &Tally::PRIVATE,
            false => &[Tally::Table],
        }
    }

    /// All evaluations.
    pub(crate) fn evaluations(&self) -> u32 {
        self.trials().saturating_add(self.results())
    }

    /// The evaluation of one penalty of one model: by counts, or of a number by squared errors.
    pub(crate) fn trial(&self, class: u32, step: u32) -> Option<Evaluation> {
        let path = self.path?;
        let sound = class < self.models && step < path.penalties;
        sound.then(|| Evaluation {
            number: class * path.penalties + step,
            tally: Tally::Table,
            class: if self.numeric { 0 } else { class },
            rows: HeldOut::Choosing,
            after: path.span(class, step).end,
        })
    }

    /// An evaluation whose result is reported: by measure, or all of one class before those of the
    /// next.
    pub(crate) fn result(&self, place: u32) -> Option<Evaluation> {
        let tallies = self.tallies();
        let each = tallies.len() as u32;
        (place < self.results()).then(|| Evaluation {
            number: self.trials() + place,
            tally: tallies[(place % each) as usize],
            class: place / each,
            rows: match self.path {
                Some(_) => HeldOut::Reported,
                None => HeldOut::All,
            },
            after: self.gradients,
        })
    }

    /// An evaluation by its number.
    pub(crate) fn evaluation(&self, number: u32) -> Option<Evaluation> {
        match number.checked_sub(self.trials()) {
            Some(place) => self.result(place),
            None => {
                let penalties = self.path?.penalties;
                self.trial(number / penalties, number % penalties)
            }
        }
    }

    /// The gradients of one penalty of one model, counted over the whole job.
    pub(crate) fn span(&self, class: u32, step: u32) -> Range<u32> {
        match self.path {
            Some(path) => path.span(class, step),
            None => {
                let each = self.gradients / self.models.max(1);
                let begin = each.saturating_mul(class);
                begin..begin.saturating_add(each)
            }
        }
    }

    /// Whether a gradient follows this one directly, so that both sides can prepare for it.
    pub(crate) fn goes_on(&self, iteration: u32) -> bool {
        let next = iteration.saturating_add(1);
        let evaluated = self.path.is_some_and(|path| {
            let within = next % path.gradients().max(1);
            (0..path.penalties).any(|step| path.span(0, step).end % path.gradients() == within)
        });
        next < self.gradients && !evaluated
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proposal::Privacy;
    use crate::proposal::testing::proposal;
    use heda_learn::optimise::{PenaltyPath, Settings};

    /// Three penalties; here each later one has fewer gradients than the first.
    const PATH: PathRounds = PathRounds {
        penalties: 3,
        first: 5,
        next: 2,
    };

    fn rounds(path: Option<PathRounds>, numeric: bool) -> Rounds {
        Rounds {
            models: if numeric { 1 } else { 2 },
            numeric,
            private: false,
            gradients: if numeric { 9 } else { 18 },
            path,
            moments: 0,
        }
    }

    #[test]
    fn rounds_are_those_of_the_job() {
        let job = proposal().job;
        let plain = Rounds::of(&job);
        assert_eq!((plain.gradients(), plain.evaluations()), (5, 1));
        let path = job.with(|raw| {
            raw.training.settings = Settings::lbfgs();
            raw.training.settings.max_iterations = 4;
            raw.training.path = Some(PenaltyPath::usual());
        });
        let rounds = Rounds::of(&path.unwrap());
        assert_eq!((rounds.gradients(), rounds.evaluations()), (20, 6));
        assert_eq!(rounds.trial(0, 4).unwrap().after, 20);
    }

    /// Gradients of a private job come after its moments, if it buys any.
    #[test]
    fn a_private_job_is_numbered_from_its_moments_on() {
        let promise = Privacy::new("1".parse().unwrap(), "1e-5".parse().unwrap(), 100);
        let persons = Privacy {
            persons: true,
            ..promise
        };
        let moments = Privacy {
            moments: 3,
            ..promise
        };
        for (privacy, first) in [
            (None, 0),
            (Some(promise), 0),
            (Some(persons), 2),
            (Some(moments), 2),
        ] {
            let job = proposal().job.with(|raw| raw.privacy = privacy).unwrap();
            let rounds = Rounds::of(&job).with_gradients(9);
            assert_eq!(rounds.number_of_gradient(0), first, "{privacy:?}");
            assert_eq!(rounds.number_of_evaluation(1), first + 10);
        }
    }

    #[test]
    fn there_is_a_trial_for_every_penalty_of_every_model_and_no_other() {
        let rounds = rounds(Some(PATH), false);
        for (class, step, there) in [(1, 2, true), (2, 0, false), (0, 3, false), (2, 3, false)] {
            assert_eq!(rounds.trial(class, step).is_some(), there, "{class} {step}");
        }
    }

    #[test]
    fn gradients_and_evaluations_of_a_path_follow_one_another() {
        let rounds = rounds(Some(PATH), false);
        let mut expected = 0;
        for class in 0..2 {
            for step in 0..3 {
                let span = rounds.span(class, step);
                assert_eq!(span.start, expected);
                expected = span.end;
                let trial = rounds.trial(class, step).unwrap();
                assert_eq!(trial.after, span.end);
                assert_eq!(rounds.evaluation(trial.number), Some(trial));
                assert_eq!((trial.class, trial.rows), (class, HeldOut::Choosing));
                // Nothing is prepared where an evaluation comes first.
                assert!(!rounds.goes_on(span.end - 1));
                assert!((span.start..span.end - 1).all(|i| rounds.goes_on(i)));
            }
        }
        assert_eq!((expected, rounds.evaluations()), (18, 8));
        let last = rounds.evaluation(7).unwrap();
        assert_eq!((last.class, last.rows), (1, HeldOut::Reported));
        assert_eq!(last.after, 18);
        assert_eq!(rounds.evaluation(8), None);
    }

    #[test]
    fn a_number_is_chosen_by_its_squared_errors() {
        let rounds = rounds(Some(PATH), true);
        assert_eq!(rounds.evaluations(), 5);
        let of = |number| rounds.evaluation(number).map(|e| (e.class, e.rows));
        assert_eq!(of(2), Some((0, HeldOut::Choosing)));
        assert_eq!(of(4), Some((1, HeldOut::Reported)));
        assert_eq!(of(5), None);
    }

    #[test]
    fn without_a_path_there_is_one_evaluation_a_model_on_all_rows() {
        let rounds = rounds(None, false);
        assert_eq!((rounds.evaluations(), rounds.gradients()), (2, 18));
        let of = |number| {
            rounds
                .evaluation(number)
                .map(|e| (e.class, e.rows, e.after))
        };
        assert_eq!(of(1), Some((1, HeldOut::All, 18)));
        assert_eq!(of(2), None);
        assert_eq!(rounds.span(1, 0), 9..18);
        assert!(rounds.goes_on(8) && !rounds.goes_on(17));
    }

    /// Of a private job the right predictions of a model come before its table.
    #[test]
    fn every_model_of_a_private_job_has_two_evaluations() {
        let private = Rounds {
            private: true,
            ..rounds(None, false)
        };
        assert_eq!(private.evaluations(), 4);
        let all: Vec<_> = (0..4)
            .map(|number| private.evaluation(number).unwrap())
            .inspect(|evaluation| assert_eq!(evaluation.rows, HeldOut::All))
            .map(|evaluation| (evaluation.number, evaluation.class, evaluation.tally))
            .collect();
        let expected = [
            (0, 0, Tally::Right),
            (1, 0, Tally::Table),
            (2, 1, Tally::Right),
            (3, 1, Tally::Table),
        ];
        assert_eq!(all, expected);
        assert_eq!(private.evaluation(4), None);
        let exact = rounds(None, false).evaluation(1).unwrap();
        assert_eq!((exact.class, exact.tally), (1, Tally::Table));
    }

    #[test]
    fn every_held_out_row_chooses_or_is_reported() {
        for rows in [0, 1, 2, 7, 100] {
            let (choosing, reported) = (HeldOut::Choosing.of(rows), HeldOut::Reported.of(rows));
            assert_eq!((choosing.start, choosing.end), (0, reported.start));
            assert_eq!(reported.end, rows);
            assert!(reported.len().abs_diff(choosing.len()) <= 1);
        }
    }
}
