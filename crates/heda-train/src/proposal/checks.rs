//! What a proposal must keep to if it is private, about a number, or weighs classes.

use super::{BadProposal, ClassWeight, Engine, Proposal, Ranking};
use heda_learn::loss::LossKind;
use heda_learn::resident::Resolution;

impl Proposal {
    /// Everything that a private job reveals carries noise; what has none is not asked for.
    pub(super) fn check_privacy(&self) -> Result<(), BadProposal> {
        let Some(privacy) = &self.privacy else {
            return Ok(());
        };
        let rules = [
            (self.engine == Engine::Resident, "engine resident"),
            (
                self.loss == LossKind::BoundedLogistic,
                "the loss bounded-logistic",
            ),
            (
                self.resolution == Resolution::PRIVATE,
                "the resolution of private jobs",
            ),
            (
                self.positives.len() == privacy.models.get() as usize,
                "as many models as its promise is for",
            ),
            (self.batches == 1, "all rows in every gradient"),
            (
                matches!(self.ranking, Ranking::Given { .. }),
                "a given order of the features: scores would carry no noise",
            ),
            (self.spending.is_none(), "nothing published"),
            (
                !self.standardise,
                "no exact sums of columns; it can buy them with noise",
            ),
        ];
        let broken = rules.into_iter().find(|(holds, _)| !holds);
        broken.map_or(Ok(()), |(_, rule)| Err(BadProposal::NotPrivate(rule)))
    }

    /// What least squares on a number needs: scores and losses of classes have no meaning there.
    pub(super) fn check_numeric(&self) -> Result<(), BadProposal> {
        let rules = [
            (self.engine == Engine::Resident, "engine resident"),
            (self.loss == LossKind::Ridge, "the loss ridge"),
            (self.positives == [0], "one model"),
            (self.standardise, "the optimiser lbfgs"),
            (self.privacy.is_none(), "no promise of privacy"),
            (
                matches!(self.ranking, Ranking::Given { .. }),
                "a given order of the features: scores are of classes",
            ),
            (self.class_weight.is_none(), "no weights of classes"),
        ];
        let broken = rules.into_iter().find(|(holds, _)| !holds);
        match (self.numeric, broken) {
            (true, Some((_, rule))) => Err(BadProposal::NotNumeric(rule)),
            _ => Ok(()),
        }
    }

    /// What choosing a penalty needs. A private job would pay for every try.
    pub(super) fn check_path(&self) -> Result<(), BadProposal> {
        let Some(path) = self.path else {
            return Ok(());
        };
        let models = self.positives.len() as u32;
        let rules = [
            (self.engine == Engine::Resident, "engine resident"),
            (self.privacy.is_none(), "no promise of privacy"),
            (self.standardise, "the optimiser lbfgs"),
            (self.holdout_permille > 0, "rows held out to choose by"),
            (path.is_sound(), "2 to 16 penalties with a gradient each"),
            (
                path.gradients().saturating_mul(models) == self.iterations,
                "as many gradients as its penalties have together",
            ),
        ];
        let broken = rules.into_iter().find(|(holds, _)| !holds);
        broken.map_or(Ok(()), |(_, rule)| Err(BadProposal::NoChoice(rule)))
    }

    pub(super) fn check_weights(&self) -> Result<(), BadProposal> {
        let counted = self.class_weight != Some(ClassWeight::Balanced) || self.standardise;
        let rules = [
            (self.engine == Engine::Resident, "engine resident"),
            (self.privacy.is_none(), "no promise of privacy"),
            (counted, "the optimiser lbfgs, or numbers for weights"),
        ];
        let broken = rules.into_iter().find(|(holds, _)| !holds);
        match (&self.class_weight, broken) {
            (Some(_), Some((_, rule))) => Err(BadProposal::NotWeighed(rule)),
            _ => Ok(()),
        }
    }
}
