//! What a data user has asked a provider for in one session. Gradients and histograms leave under
//! masks that are good for one round, so each round is asked for once and in order. Answers have numbers,
//! which the guard of the rows looks at for the life of the job ([`crate::guard::Step`]).

use crate::description::Job;
use crate::engine::{GradientQuestion, Terms};
use crate::error::PeerProblem;
use crate::guard::Step;
use crate::message::Command;
use crate::rounds::{Evaluation, Rounds, Tally};
use heda_dp::gdp::Cost;
use heda_learn::gradient::Batch;
use heda_learn::private::PrivatePlan;

/// Numbers of answers end here.
const STEPS_LIMIT: u32 = 1 << 30;

/// The last rounds that were answered.
#[derive(Debug)]
pub(super) struct RequestOrder {
    rounds: Rounds,
    plan: Option<PrivatePlan>,
    iteration: Option<u32>,
    evaluation: Option<Evaluation>,
    step: Option<u32>,
    /// The first number that was not answered before this session.
    next_step: u32,
}

/// What a command asks for.
#[derive(Debug)]
pub(super) enum StepAnswer {
    Gradient(GradientQuestion),
    /// With the class that counts as one.
    Evaluation(Evaluation, u32),
}

impl RequestOrder {
    /// Before the first command of a session of a job whose answers before `next_step` have left.
    pub(super) fn new(terms: &Terms<'_>, next_step: u32) -> Self {
        let plan = terms.plan.map(|plan| plan.plan().clone());
        Self::with(terms.rounds(), plan, next_step)
    }

    fn with(rounds: Rounds, plan: Option<PrivatePlan>, next_step: u32) -> Self {
        Self {
            rounds,
            plan,
            iteration: None,
            evaluation: None,
            step: None,
            next_step,
        }
    }

    /// What a command asks for, and what its answer is to the guard; nothing if the job is done.
    pub(super) fn answer(
        &mut self,
        job: &Job,
        command: Command,
    ) -> Result<Option<(Step, StepAnswer)>, PeerProblem> {
        match command {
            Command::Gradient {
                step,
                iteration,
                class,
                batch,
                row_bits,
            } => {
                let (positive, batch) = self.gradient(job, iteration, class, batch)?;
                let answered = self.step.map_or(self.next_step, |last| last + 1);
                let number = self.numbered(step, self.rounds.number_of_gradient(iteration))?;
                let question = GradientQuestion {
                    iteration,
                    class,
                    positive,
                    batch,
                    row_bits,
                };
                let cost = self.cost_of_gradient(iteration, answered);
                let step = Step::Gradient { number, cost };
                Ok(Some((step, StepAnswer::Gradient(question))))
            }
            Command::Evaluate { step, number } => {
                let (evaluation, positive) = self.evaluation(job, number)?;
                let number = self.numbered(step, self.rounds.number_of_evaluation(number))?;
                let cost = self.plan.as_ref().map(|plan| match evaluation.tally {
                    Tally::Right => plan.cost_of_right(),
                    Tally::Table => plan.cost_of_table(),
                });
                let step = Step::Evaluation { number, cost };
                Ok(Some((step, StepAnswer::Evaluation(evaluation, positive))))
            }
            Command::Finish => Ok(None),
        }
    }

    /// What a gradient costs in a private job: its whole pass if no answer of the pass has left before, of this session or
    /// another, and nothing more afterwards. Answers before `answered` have left or never will.
    fn cost_of_gradient(&self, iteration: u32, answered: u32) -> Option<Cost> {
        let plan = self.plan.as_ref()?;
        let first = plan.passes().first_of_pass(iteration);
        Some(match answered > self.rounds.number_of_gradient(first) {
            true => Cost::ZERO,
            false => plan.cost_of_pass(),
        })
    }

    /// The number of an answer: it grows, and in a private job every answer has a number of its own.
    fn numbered(&mut self, step: u32, private: u32) -> Result<u32, PeerProblem> {
        let grows = self.step.is_none_or(|last| step > last) && step < STEPS_LIMIT;
        if !grows || (self.plan.is_some() && step != private) {
            let reason = format!("answer {step} repeated, out of place or beyond the end");
            return Err(PeerProblem::message("command", reason));
        }
        self.step = Some(step);
        Ok(step)
    }

    /// A gradient, for this class on this batch; the class by its label. In a private job both follow from the
    /// iteration, and the data user may not say otherwise.
    fn gradient(
        &mut self,
        job: &Job,
        iteration: u32,
        class: u32,
        batch: u32,
    ) -> Result<(u32, Batch), PeerProblem> {
        let repeated = self.iteration.is_some_and(|last| iteration <= last);
        // What an evaluation of a path was about is over.
        let repeated = repeated
            || job.path().is_some() && self.evaluation.is_some_and(|e| iteration < e.after);
        if repeated || iteration >= self.rounds.gradients() {
            let reason = format!("iteration {iteration} repeated or beyond the end");
            return Err(PeerProblem::message("command", reason));
        }
        let refused = |reason| Err(PeerProblem::message("command", reason));
        let batch = match &self.plan {
            None if batch >= job.batches() => return refused("no such batch"),
            None => Batch::new(batch as usize, job.batches() as usize),
            Some(_) if !self.rounds.span(class, 0).contains(&iteration) => {
                return refused("a gradient of another model");
            }
            Some(plan) => match plan.passes().batch(iteration) {
                due if due.index() as u32 == batch => due,
                _ => return refused("another batch than the one that is due"),
            },
        };
        let positive = positive(job, class)?;
        self.iteration = Some(iteration);
        Ok((positive, batch))
    }

    /// An evaluation by its number; its class also by the label. On a path each has its place after
    /// the gradients of its penalty; a session that was resumed may begin with one.
    fn evaluation(&mut self, job: &Job, number: u32) -> Result<(Evaluation, u32), PeerProblem> {
        let refused = |reason: String| Err(PeerProblem::message("command", reason));
        let Some(evaluation) = self.rounds.evaluation(number) else {
            return refused(format!("there is no evaluation {number}"));
        };
        let positive = match job.is_numeric() {
            // The class is a measure of the errors.
            true => 0,
            false => positive(job, evaluation.class)?,
        };
        if !job.held_out().is_some() {
            return refused("an evaluation, but no rows are held out".into());
        }
        if self.evaluation.is_some_and(|last| number <= last.number) {
            return refused(format!("evaluation {number} again or out of order"));
        }
        let elsewhere = self.iteration.is_some_and(|i| i + 1 != evaluation.after);
        if job.path().is_some() && elsewhere {
            return refused(format!("evaluation {number} is not due here"));
        }
        self.evaluation = Some(evaluation);
        Ok((evaluation, positive))
    }
}

fn positive(job: &Job, class: u32) -> Result<u32, PeerProblem> {
    let found = job.positives().get(class as usize).copied();
    found.ok_or_else(|| PeerProblem::message("command", "no such class"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::description::RawJob;
    use crate::proposal::Privacy;
    use crate::proposal::testing::raw;
    use crate::rounds::HeldOut;
    use heda_learn::optimise::{Method, PenaltyPath, Settings};

    fn job(change: impl FnOnce(&mut RawJob)) -> Job {
        let mut raw = raw();
        change(&mut raw);
        raw.try_into().unwrap()
    }

    fn fresh(job: &Job) -> RequestOrder {
        RequestOrder::with(Rounds::of(job), None, 0)
    }

    fn two_batches(raw: &mut RawJob) {
        raw.positives = vec![4, 2];
        raw.training.settings.max_iterations = 5;
        raw.training.settings.method = Method::Nesterov {
            rate: 0.1,
            batches: 2,
        };
    }

    #[test]
    fn every_round_is_answered_once_and_in_order() {
        let asked_job = job(two_batches);
        let mut asked = fresh(&asked_job);
        assert_eq!(
            asked.gradient(&asked_job, 3, 1, 1).unwrap(),
            (2, Batch::new(1, 2))
        );
        assert_eq!(asked.gradient(&asked_job, 9, 0, 0).unwrap().0, 4);
        for (iteration, class, batch) in [(3, 0, 0), (9, 0, 0), (10, 0, 0)] {
            let refused = asked.gradient(&asked_job, iteration, class, batch);
            assert!(refused.is_err(), "iteration {iteration}");
        }
        let mut asked = fresh(&asked_job);
        assert!(asked.gradient(&asked_job, 0, 2, 0).is_err());
        assert!(asked.gradient(&asked_job, 0, 0, 2).is_err());
        // What was refused was not answered.
        assert!(asked.gradient(&asked_job, 0, 0, 0).is_ok());

        assert_eq!(asked.evaluation(&asked_job, 1).unwrap().1, 2);
        for class in [0, 1, 2] {
            assert!(
                asked.evaluation(&asked_job, class).is_err(),
                "class {class}"
            );
        }
        let number = job(|raw| {
            raw.numeric = true;
            raw.training.settings = Settings::lbfgs();
        });
        let mut asked = fresh(&number);
        assert!(asked.evaluation(&number, 0).is_ok());
        assert!(asked.evaluation(&number, 1).is_ok());
        assert!(asked.evaluation(&number, 2).is_err());
        let nothing = job(|raw| {
            two_batches(raw);
            raw.held_out = 0.0;
        });
        assert!(fresh(&nothing).evaluation(&nothing, 0).is_err());
    }

    /// On a path of penalties every evaluation has its place.
    #[test]
    fn evaluations_of_a_path_come_after_the_gradients_of_their_penalty() {
        let asked_job = job(|raw| {
            raw.training.settings = Settings {
                max_iterations: 4,
                ..Settings::lbfgs()
            };
            raw.training.path = Some(PenaltyPath::new(vec![0.1, 1.0, 10.0]).unwrap());
        });
        let mut asked = fresh(&asked_job);
        assert!(asked.gradient(&asked_job, 2, 0, 0).is_ok());
        assert!(asked.evaluation(&asked_job, 0).is_err(), "too early");
        assert!(asked.gradient(&asked_job, 3, 0, 0).is_ok());
        let (first, positive) = asked.evaluation(&asked_job, 0).unwrap();
        assert_eq!((first.rows, positive), (HeldOut::Choosing, 1));
        assert!(asked.evaluation(&asked_job, 0).is_err(), "again");
        assert!(asked.evaluation(&asked_job, 1).is_err(), "too early");
        for iteration in 4..12 {
            assert!(asked.gradient(&asked_job, iteration, 0, 0).is_ok());
        }
        assert!(asked.evaluation(&asked_job, 1).is_err(), "too late");
        assert!(asked.evaluation(&asked_job, 2).is_ok());
        let (last, _) = asked.evaluation(&asked_job, 3).unwrap();
        assert_eq!(last.rows, HeldOut::Reported);
        assert!(asked.evaluation(&asked_job, 4).is_err(), "there is none");
        // A session that was resumed begins anywhere, and does not go back.
        let mut resumed = fresh(&asked_job);
        assert!(resumed.evaluation(&asked_job, 1).is_ok());
        assert!(resumed.gradient(&asked_job, 7, 0, 0).is_err());
        assert!(resumed.gradient(&asked_job, 8, 0, 0).is_ok());
    }

    fn gradient(step: u32, iteration: u32, class: u32) -> Command {
        Command::Gradient {
            step,
            iteration,
            class,
            batch: 0,
            row_bits: 9,
        }
    }

    /// Numbers of answers grow in every job; in a private one each answer has its own.
    #[test]
    fn answers_have_numbers_that_grow_and_in_a_private_job_their_own() {
        let exact = job(|raw| raw.training.settings.max_iterations = 9);
        let mut asked = fresh(&exact);
        let mut answer = |command| {
            asked
                .answer(&exact, command)
                .map(|due| due.map(|due| due.0))
        };
        let first = answer(gradient(4, 0, 0)).unwrap().unwrap();
        assert_eq!((first.number(), first.cost()), (Some(4), None));
        assert!(answer(gradient(4, 1, 0)).is_err(), "the same number");
        assert!(answer(gradient(STEPS_LIMIT, 2, 0)).is_err());
        assert!(answer(gradient(9, 3, 0)).is_ok(), "a later one");
        let evaluate = Command::Evaluate { step: 8, number: 0 };
        assert!(answer(evaluate).is_err(), "numbers are of all answers");
        assert!(answer(Command::Finish).unwrap().is_none());

        let models = std::num::NonZeroU32::new(2).unwrap();
        let promise = Privacy {
            models,
            moments: 3,
            ..Privacy::new("1".parse().unwrap(), "1e-5".parse().unwrap(), 1000)
        };
        let private = job(|raw| {
            raw.positives = vec![0, 1];
            raw.privacy = Some(promise);
        });
        let plan = promise.plan(7).unwrap();
        let (each, all) = (plan.gradients(), plan.all_gradients());
        let rounds = Rounds::of(&private).with_gradients(all);
        let asked = || RequestOrder::with(rounds, Some(plan.clone()), 0);
        // Two answers for moments come before the gradients, and evaluations after them.
        let due = asked()
            .answer(&private, gradient(2, 0, 0))
            .unwrap()
            .unwrap();
        assert_eq!(due.0.cost(), Some(plan.cost_of_pass()));
        let right = Command::Evaluate {
            step: 2 + all,
            number: 0,
        };
        let due = asked().answer(&private, right).unwrap().unwrap();
        assert_eq!(due.0.cost(), Some(plan.cost_of_right()));
        let table = Command::Evaluate {
            step: 3 + all,
            number: 1,
        };
        let due = asked().answer(&private, table).unwrap().unwrap();
        assert_eq!(due.0.cost(), Some(plan.cost_of_table()));
        for (command, why) in [
            (gradient(3, 0, 0), "a second answer under another number"),
            (gradient(0, 0, 0), "the number of other answers"),
            (gradient(2, 0, 1), "a gradient of the other model"),
            (
                gradient(2 + each, each, 0),
                "of the first model beyond its end",
            ),
            (gradient(2 + all, all, 1), "beyond the plan"),
            (
                Command::Evaluate {
                    step: 2 + all,
                    number: 1,
                },
                "the table under the number of right predictions",
            ),
        ] {
            assert!(asked().answer(&private, command).is_err(), "{why}");
        }
        assert!(
            asked()
                .answer(&private, gradient(2 + each, each, 1))
                .is_ok()
        );
    }

    /// A pass is paid with its first answer in the life of the job, whichever of its steps that is, and once.
    #[test]
    fn a_pass_is_paid_with_its_first_answer_and_never_again() {
        let promise = Privacy {
            models: std::num::NonZeroU32::new(2).unwrap(),
            ..Privacy::new("1".parse().unwrap(), "1e-7".parse().unwrap(), 50_000)
        };
        let private = job(|raw| {
            raw.positives = vec![0, 1];
            raw.privacy = Some(promise);
        });
        let plan = promise.plan(16).unwrap();
        assert_eq!((plan.passes().passes(), plan.passes().batches()), (4, 16));
        let rounds = Rounds::of(&private).with_gradients(plan.all_gradients());
        let session = |next_step| RequestOrder::with(rounds, Some(plan.clone()), next_step);
        let ask = |asked: &mut RequestOrder, iteration: u32, batch: u32| {
            let command = Command::Gradient {
                step: iteration,
                iteration,
                class: iteration / plan.gradients(),
                batch,
                row_bits: 17,
            };
            let answer = asked.answer(&private, command);
            answer.map(|due| due.map(|(step, _)| step.cost() == Some(plan.cost_of_pass())))
        };
        let paid = |asked: &mut RequestOrder, iteration: u32| {
            ask(asked, iteration, iteration % 16).unwrap().unwrap()
        };
        let mut whole = session(0);
        let all: Vec<u32> = (0..128).filter(|i| paid(&mut whole, *i)).collect();
        assert_eq!(all, [0, 16, 32, 48, 64, 80, 96, 112]);
        // A session that comes back in the middle of a paid pass, and one whose pass began elsewhere.
        let mut back = session(21);
        assert!(!paid(&mut back, 21) && !paid(&mut back, 22) && paid(&mut back, 40));
        assert!(!paid(&mut back, 41) && paid(&mut back, 64));
        let mut late = session(16);
        assert!(paid(&mut late, 19) && !paid(&mut late, 20));
        // Batches follow from the numbers of steps.
        assert!(ask(&mut session(0), 3, 4).is_err());
        assert!(ask(&mut session(0), 19, 19).is_err());
    }
}
