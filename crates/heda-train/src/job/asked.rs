//! What a data user has asked a provider for in one session. Gradients and histograms leave under
//! masks that are good for one round, so each round is asked for once and in order.

use crate::error::PeerProblem;
use crate::proposal::Proposal;
use crate::rounds::{Evaluation, Rounds};

/// The last rounds that were answered.
#[derive(Debug, Default)]
pub(super) struct Asked {
    iteration: Option<u32>,
    evaluation: Option<Evaluation>,
}

impl Asked {
    /// A gradient, for this class on this batch; the class by its label.
    pub(super) fn gradient(
        &mut self,
        proposal: &Proposal,
        iteration: u32,
        class: u32,
        batch: u32,
    ) -> Result<u32, PeerProblem> {
        let repeated = self.iteration.is_some_and(|last| iteration <= last);
        // What an evaluation of a path was about is over.
        let repeated = repeated
            || proposal.path.is_some() && self.evaluation.is_some_and(|e| iteration < e.after);
        if repeated || iteration >= proposal.iterations {
            let reason = format!("iteration {iteration} repeated or beyond the end");
            return Err(PeerProblem::message("command", reason));
        }
        if batch >= proposal.batches {
            return Err(PeerProblem::message("command", "no such batch"));
        }
        let positive = positive(proposal, class)?;
        self.iteration = Some(iteration);
        Ok(positive)
    }

    /// An evaluation by its number; its class also by the label. On a path each has its place after
    /// the gradients of its penalty; a session that was resumed may begin with one.
    pub(super) fn evaluation(
        &mut self,
        proposal: &Proposal,
        number: u32,
    ) -> Result<(Evaluation, u32), PeerProblem> {
        let refused = |reason: String| Err(PeerProblem::message("command", reason));
        let Some(evaluation) = Rounds::of(proposal).evaluation(number) else {
            return refused(format!("there is no evaluation {number}"));
        };
        let positive = match proposal.numeric {
            // The class is a measure of the errors.
            true => 0,
            false => positive(proposal, evaluation.class)?,
        };
        if proposal.holdout_permille == 0 {
            return refused("an evaluation, but no rows are held out".into());
        }
        if self.evaluation.is_some_and(|last| number <= last.number) {
            return refused(format!("evaluation {number} again or out of order"));
        }
        let elsewhere = self.iteration.is_some_and(|i| i + 1 != evaluation.after);
        if proposal.path.is_some() && elsewhere {
            return refused(format!("evaluation {number} is not due here"));
        }
        self.evaluation = Some(evaluation);
        Ok((evaluation, positive))
    }
}

fn positive(proposal: &Proposal, class: u32) -> Result<u32, PeerProblem> {
    let found = proposal.positives.get(class as usize).copied();
    found.ok_or_else(|| PeerProblem::message("command", "no such class"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proposal::Path;
    use crate::proposal::testing::proposal;
    use crate::rounds::HeldOut;

    #[test]
    fn every_round_is_answered_once_and_in_order() {
        let proposal = Proposal {
            positives: vec![4, 2],
            iterations: 10,
            batches: 2,
            holdout_permille: 200,
            ..proposal()
        };
        let mut asked = Asked::default();
        assert_eq!(asked.gradient(&proposal, 3, 1, 1).unwrap(), 2);
        assert_eq!(asked.gradient(&proposal, 9, 0, 0).unwrap(), 4);
        for (iteration, class, batch) in [(3, 0, 0), (9, 0, 0), (10, 0, 0)] {
            let refused = asked.gradient(&proposal, iteration, class, batch);
            assert!(refused.is_err(), "iteration {iteration}");
        }
        let mut asked = Asked::default();
        assert!(asked.gradient(&proposal, 0, 2, 0).is_err());
        assert!(asked.gradient(&proposal, 0, 0, 2).is_err());
        // What was refused was not answered.
        assert!(asked.gradient(&proposal, 0, 0, 0).is_ok());

        assert_eq!(asked.evaluation(&proposal, 1).unwrap().1, 2);
        for class in [0, 1, 2] {
            assert!(asked.evaluation(&proposal, class).is_err(), "class {class}");
        }
        let number = Proposal {
            numeric: true,
            positives: vec![0],
            ..proposal.clone()
        };
        let mut asked = Asked::default();
        assert!(asked.evaluation(&number, 0).is_ok());
        assert!(asked.evaluation(&number, 1).is_ok());
        assert!(asked.evaluation(&number, 2).is_err());
        let nothing = Proposal {
            holdout_permille: 0,
            ..proposal
        };
        assert!(Asked::default().evaluation(&nothing, 0).is_err());
    }

    /// On a path of penalties every evaluation has its place.
    #[test]
    fn evaluations_of_a_path_come_after_the_gradients_of_their_penalty() {
        let proposal = Proposal {
            iterations: 8,
            standardise: true,
            path: Some(Path {
                penalties: 3,
                first: 4,
                next: 2,
            }),
            ..proposal()
        };
        assert_eq!(proposal.check(), Ok(()));
        let mut asked = Asked::default();
        assert!(asked.gradient(&proposal, 2, 0, 0).is_ok());
        assert!(asked.evaluation(&proposal, 0).is_err(), "too early");
        assert!(asked.gradient(&proposal, 3, 0, 0).is_ok());
        let (first, positive) = asked.evaluation(&proposal, 0).unwrap();
        assert_eq!((first.rows, positive), (HeldOut::Choosing, 1));
        assert!(asked.evaluation(&proposal, 0).is_err(), "again");
        assert!(asked.evaluation(&proposal, 1).is_err(), "too early");
        for iteration in 4..8 {
            assert!(asked.gradient(&proposal, iteration, 0, 0).is_ok());
        }
        assert!(asked.evaluation(&proposal, 1).is_err(), "too late");
        assert!(asked.evaluation(&proposal, 2).is_ok());
        let (last, _) = asked.evaluation(&proposal, 3).unwrap();
        assert_eq!(last.rows, HeldOut::Reported);
        assert!(asked.evaluation(&proposal, 4).is_err(), "there is none");
        // A session that was resumed begins anywhere, and does not go back.
        let mut resumed = Asked::default();
        assert!(resumed.evaluation(&proposal, 1).is_ok());
        assert!(resumed.gradient(&proposal, 5, 0, 0).is_err());
        assert!(resumed.gradient(&proposal, 6, 0, 0).is_ok());
    }
}
