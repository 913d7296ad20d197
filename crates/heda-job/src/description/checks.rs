//! The rules that are left where the types allow too much: bounds, what a peer could send, and what
//! nobody can tell without the schema.

use super::{
    ExactTraining, Features, Job, JobFault, PrivateTraining, Protected, Regression, Task, Training,
};
use crate::class_weights::ClassWeight;
use crate::engine::Engine;
use heda_learn::partition::Goal;
use heda_learn::schema::Schema;

/// More classes than these are not trained.
const CLASSES_LIMIT: usize = 256;
/// More gradients than these, over all models, are not asked for.
const GRADIENTS_LIMIT: u32 = 1_000_000;

impl Job {
    /// Bounds and what else a peer could send that the types allow.
    pub(super) fn check(&self) -> Result<(), JobFault> {
        check_models(self.positives())?;
        if let Some(training) = self.training() {
            training.settings.validate()?;
            self.check_path(training)?;
        }
        let gradients = self.gradients();
        if gradients > GRADIENTS_LIMIT {
            return Err(JobFault::Range {
                what: "the number of gradients over all models",
                got: gradients.into(),
                allowed: "1 to 1000000",
            });
        }
        if let Protected::For(goal) = self.features().protected {
            let (Goal::WithinSeconds(aim) | Goal::AccuracyLoss(aim)) = goal;
            let sound = aim.is_finite() && aim >= 0.0;
            sound.then_some(()).ok_or(JobFault::Goal)?;
        }
        match &self.task {
            Task::Exact(task) => task.check(),
            Task::Private(task) => task.check(),
            Task::Regression(task) => task.check(),
        }
    }

    fn check_path(&self, training: &Training) -> Result<(), JobFault> {
        let rules = [
            (self.engine() == Engine::RESIDENT, "engine resident"),
            (self.standardises(), "the optimiser lbfgs"),
            (
                self.held_out.is_some(),
                "rows held out to choose by, a fifth for instance",
            ),
        ];
        match (&training.path, first_broken(rules)) {
            (Some(_), Some(rule)) => Err(JobFault::Choice(rule)),
            _ => Ok(()),
        }
    }

    /// Whether the job is about rows of this schema: what nobody can tell without it.
    ///
    /// # Errors
    /// If it names features or classes that the schema does not have, or leaves none to train on.
    pub fn check_schema(&self, schema: &Schema) -> Result<(), JobFault> {
        let ours = schema.fingerprint().to_string();
        if self.schema != ours {
            let theirs = self.schema.clone();
            return Err(JobFault::Schema { theirs, ours });
        }
        let label = schema.label();
        match (self.is_numeric(), label.number().is_some()) {
            (false, true) => return Err(JobFault::Label("a number, and a class is to be learned")),
            (true, false) => return Err(JobFault::Label("a class, and a number is to be learned")),
            _ => {}
        }
        let classes = label.classes().len();
        if let Some(weight) = self.class_weight() {
            weight.check(classes)?;
        }
        if let Some(class) = self
            .positives()
            .iter()
            .find(|c| **c as usize >= classes.max(1))
        {
            return Err(JobFault::Range {
                what: "class",
                got: (*class).into(),
                allowed: "one of the schema",
            });
        }
        self.features().check_schema(schema)
    }
}

impl Features {
    fn check_schema(&self, schema: &Schema) -> Result<(), JobFault> {
        let features = schema.columns().len();
        let encrypted = match &self.protected {
            Protected::Best(iota) if *iota > features => {
                let iota = *iota;
                return Err(JobFault::TooMany { iota, features });
            }
            Protected::Best(iota) => *iota,
            Protected::Named(names) => {
                check_names(names, schema)?;
                names.len()
            }
            Protected::All | Protected::For(_) => features,
        };
        match encrypted == 0 && self.spending.is_none() {
            true => Err(JobFault::Nothing),
            false => Ok(()),
        }
    }
}

impl ExactTraining {
    fn check(&self) -> Result<(), JobFault> {
        let (engine, known) = (self.engine, self.engine.options());
        let stranger = |name: &&String| !known.contains(&name.as_str());
        match self.engine_options.keys().find(stranger).cloned() {
            Some(name) => Err(JobFault::EngineOption { engine, name }),
            None => self.check_weights(),
        }
    }

    fn check_weights(&self) -> Result<(), JobFault> {
        let counted = self.class_weight == Some(ClassWeight::Balanced);
        let rules = [
            (self.engine == Engine::RESIDENT, "engine resident"),
            (
                !counted || self.training.settings.method.standardises(),
                "the optimiser lbfgs, or numbers for weights",
            ),
        ];
        match (&self.class_weight, first_broken(rules)) {
            (Some(_), Some(rule)) => Err(JobFault::Weighed(rule)),
            _ => Ok(()),
        }
    }
}

impl PrivateTraining {
    fn check(&self) -> Result<(), JobFault> {
        match self.positives.len() == self.privacy.models.get() as usize {
            true => Ok(()),
            false => Err(JobFault::Range {
                what: "the number of models of a private job",
                got: self.positives.len() as u64,
                allowed: "as many as its promise is for",
            }),
        }
    }
}

impl Regression {
    fn check(&self) -> Result<(), JobFault> {
        let chosen = matches!(self.features.protected, Protected::For(_));
        let rules = [
            (
                self.training.settings.method.standardises(),
                "the optimiser lbfgs",
            ),
            (
                !chosen && !self.features.ranking.scores(),
                "all features encrypted, or named, or a given order: scores are of classes",
            ),
        ];
        first_broken(rules).map_or(Ok(()), |rule| Err(JobFault::Number(rule)))
    }
}

/// The first rule that does not hold.
pub(super) fn first_broken<const N: usize>(
    rules: [(bool, &'static str); N],
) -> Option<&'static str> {
    let broken = rules.into_iter().find(|(holds, _)| !holds);
    broken.map(|(_, rule)| rule)
}

fn check_models(positives: &[u32]) -> Result<(), JobFault> {
    if !(1..=CLASSES_LIMIT).contains(&positives.len()) {
        return Err(JobFault::Range {
            what: "the number of classes",
            got: positives.len() as u64,
            allowed: "1 to 256",
        });
    }
    let mut classes = positives.to_vec();
    classes.sort_unstable();
    match classes.windows(2).find(|pair| pair[0] == pair[1]) {
        None => Ok(()),
        Some(pair) => Err(JobFault::Range {
            what: "class",
            got: pair[0].into(),
            allowed: "named once",
        }),
    }
}

fn check_names(names: &[String], schema: &Schema) -> Result<(), JobFault> {
    let mut seen = std::collections::HashSet::new();
    for name in names {
        if !schema.columns().iter().any(|column| column.name() == name) {
            return Err(JobFault::NoSuchFeature(name.clone()));
        }
        if !seen.insert(name) {
            return Err(JobFault::Twice);
        }
    }
    Ok(())
}
