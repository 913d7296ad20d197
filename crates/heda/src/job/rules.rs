//! What must go together in a job on a numeric label, and in one that weighs classes.

use super::{Encrypted, JobFault, Parts};
use heda_learn::loss::LossKind;
use heda_learn::resident::Resolution;
use heda_train::proposal::{ClassWeight, Engine, Ranking};

impl Parts {
    pub(super) fn loss(&self) -> LossKind {
        let number = self.schema.label().number().map(|_| LossKind::Ridge);
        self.loss.or(number).unwrap_or_default()
    }

    /// How finely the job is cut. By the number of rows where derivatives are small numbers: those of a
    /// hinge, of least squares on a class or of weighed rows reach so far that fewer bits would not do.
    pub(super) fn resolution(&self) -> Resolution {
        let number = self.schema.label().number().is_some();
        let small = self.loss() == LossKind::Logistic && self.class_weight.is_none();
        match number || small {
            true => self.resolution,
            false => self.resolution.whatever_rows(),
        }
    }

    /// What goes with a numeric label. Features cannot be scored by it, so where all are encrypted,
    /// or are named, their order is that of the schema.
    pub(super) fn fit_number(&mut self) -> Result<(), JobFault> {
        let columns = self.schema.columns().iter();
        if let Encrypted::All | Encrypted::Best(_) = self.encrypted
            && self.encrypts_all()
        {
            let features = columns.map(|column| column.name().to_owned()).collect();
            self.ranking = Ranking::Given { features };
        }
        let chosen = matches!(self.encrypted, Encrypted::Auto { .. });
        let rules = [
            (
                self.privacy.is_none(),
                "a job without a promise of privacy: private jobs learn classes",
            ),
            (self.loss() == LossKind::Ridge, "the loss ridge"),
            (self.engine == Engine::Resident, "engine resident"),
            (self.settings.method.standardises(), "the optimiser lbfgs"),
            (self.class_weight.is_none(), "no weights of classes"),
            (
                !chosen && matches!(self.ranking, Ranking::Given { .. }),
                "all features encrypted, or named, or a given order: scores are of classes",
            ),
        ];
        match rules.into_iter().find(|(holds, _)| !holds) {
            Some((_, rule)) => Err(JobFault::Number(rule)),
            None => Ok(()),
        }
    }

    fn encrypts_all(&self) -> bool {
        match self.encrypted {
            Encrypted::All => true,
            Encrypted::Best(iota) => iota == self.schema.columns().len(),
            Encrypted::Named(_) | Encrypted::Auto { .. } => false,
        }
    }

    pub(super) fn check_path(&self) -> Result<(), JobFault> {
        if self.path.is_none() {
            return Ok(());
        }
        let rules = [
            (
                self.privacy.is_none(),
                "a job without a promise of privacy: every try would cost budget, and a private job \
                 bounds its coefficients instead",
            ),
            (self.engine == Engine::Resident, "engine resident"),
            (self.settings.method.standardises(), "the optimiser lbfgs"),
            (
                self.holdout_permille > 0,
                "held-out rows to choose by, a fifth for instance",
            ),
        ];
        match rules.into_iter().find(|(holds, _)| !holds) {
            Some((_, rule)) => Err(JobFault::Choice(rule)),
            None => Ok(()),
        }
    }

    pub(super) fn check_weights(&self) -> Result<(), JobFault> {
        let Some(weight) = &self.class_weight else {
            return Ok(());
        };
        weight.check(self.schema.label().classes().len())?;
        let counted = *weight == ClassWeight::Balanced;
        let rules = [
            (self.privacy.is_none(), "no promise of privacy"),
            (self.engine == Engine::Resident, "engine resident"),
            (
                !counted || self.settings.method.standardises(),
                "the optimiser lbfgs, or numbers for weights",
            ),
        ];
        match rules.into_iter().find(|(holds, _)| !holds) {
            Some((_, rule)) => Err(JobFault::Weighed(rule)),
            None => Ok(()),
        }
    }
}
