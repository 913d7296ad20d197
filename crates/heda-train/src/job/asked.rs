//! What a data user has asked a provider for in one session. Gradients and histograms leave under
//! masks that are good for one round, so each round is asked for once and in order.

use crate::error::PeerProblem;
use crate::proposal::Proposal;

/// The last rounds that were answered.
#[derive(Debug, Default)]
pub(super) struct Asked {
    iteration: Option<u32>,
    class: Option<u32>,
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

    /// An evaluation of this class; the class by its label.
    pub(super) fn evaluation(
        &mut self,
        proposal: &Proposal,
        class: u32,
    ) -> Result<u32, PeerProblem> {
        let positive = match proposal.numeric {
            // The class is a measure of the errors.
            true if class < proposal.evaluations() => 0,
            _ => positive(proposal, class)?,
        };
        if proposal.holdout_permille == 0 {
            let reason = "an evaluation, but no rows are held out";
            return Err(PeerProblem::message("command", reason));
        }
        if self.class.is_some_and(|last| class <= last) {
            let reason = format!("class {class} evaluated again or out of order");
            return Err(PeerProblem::message("command", reason));
        }
        self.class = Some(class);
        Ok(positive)
    }
}

fn positive(proposal: &Proposal, class: u32) -> Result<u32, PeerProblem> {
    let found = proposal.positives.get(class as usize).copied();
    found.ok_or_else(|| PeerProblem::message("command", "no such class"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proposal::testing::proposal;

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

        assert_eq!(asked.evaluation(&proposal, 1).unwrap(), 2);
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
}
