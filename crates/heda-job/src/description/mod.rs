//! What is to be trained: one [`Job`], the same for everybody who takes part.
//!
//! A job file, the options of a command and the builder of the library fill in a [`RawJob`]; a
//! [`Job`] is made from it by `TryFrom`, where all rules of combination are. What excludes each other
//! are arms of [`Task`], so a job that was parsed cannot be contradictory, whatever door it came
//! through. Its serde form is what travels in the proposal (J1), field by field in this order, and
//! the only encoding: [`Job::digest`] is the digest of these bytes. It is the job's identity for a
//! checkpoint, for the signatures of the providers and for a provider's ledger.
//!
//! Where the providers are, who ranks the features and how long to wait is beside the job
//! ([`crate::proposal::Parties`]).

mod checks;
mod fault;
mod limits;
mod raw;

pub use fault::JobFault;
pub use limits::{BadShare, Name, NoName, Share};
pub use raw::RawJob;

use crate::class_weights::ClassWeight;
use crate::engine::Engine;
use crate::proposal::{Privacy, Spending};
use crate::rounds::PathRounds;
use heda_learn::loss::LossKind;
use heda_learn::optimise::{PenaltyPath, Settings};
use heda_learn::partition::Goal;
use heda_learn::resident::Resolution;
use heda_learn::schema::Schema;
use heda_learn::score;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fmt;

/// What is to be trained. Nothing in it contradicts anything else.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Unchecked")]
pub struct Job {
    data_set: Name,
    schema: String,
    held_out: Share,
    task: Task,
}

/// A job as it is written, before its numbers are looked at.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Unchecked {
    data_set: Name,
    schema: String,
    held_out: Share,
    task: Task,
}

/// What is learned, and under which guarantee.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Task {
    /// Classes, from exact sums.
    Exact(ExactTraining),
    /// Classes, with differential privacy for everything that the job reveals.
    Private(PrivateTraining),
    /// A number, by least squares on exact sums.
    Regression(Regression),
}

/// Classes from exact sums: one model for each class that is told from the rest.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExactTraining {
    /// Class indices to be told from the rest, one model each.
    pub positives: Vec<u32>,
    /// How gradients are computed.
    pub engine: Engine,
    /// What the engine is told in its own words; it alone knows what they mean.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub engine_options: BTreeMap<String, u64>,
    /// What is minimised.
    pub loss: LossKind,
    /// How much the rows of each class count; all alike if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class_weight: Option<ClassWeight>,
    /// How each model is improved.
    pub training: Training,
    /// Which features are protected.
    pub features: Features,
}

/// Classes with differential privacy: loss, grids and steps follow from the promise, and all
/// features are encrypted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PrivateTraining {
    /// What everything that the job reveals keeps to.
    pub privacy: Privacy,
    /// Class indices to be told from the rest, as many as the promise has models.
    pub positives: Vec<u32>,
}

/// A number by least squares.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Regression {
    /// How the model is improved.
    pub training: Training,
    /// Which features are protected. They are not scored: scores are of classes.
    pub features: Features,
}

/// How a model is improved by exact gradients.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Training {
    /// Method, penalty and when to stop.
    pub settings: Settings,
    /// Penalties of which held-out rows choose one, instead of that of the settings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<PenaltyPath>,
    /// How finely values, weights, scores and derivatives are cut.
    pub resolution: Resolution,
}

/// Which features are encrypted, and what is done with the others.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Features {
    /// The encrypted ones.
    pub protected: Protected,
    /// How features are ranked.
    pub ranking: Ranking,
    /// What may be spent on publishing the others; without it they are left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spending: Option<Spending>,
}

/// All features encrypted, in the order of the schema.
static EVERY_FEATURE: Features = Features {
    protected: Protected::All,
    ranking: Ranking::Schema,
    spending: None,
};

/// Engine `resident` has none.
static NO_OPTIONS: BTreeMap<String, u64> = BTreeMap::new();

/// Which features are encrypted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Protected {
    /// All.
    All,
    /// The best of the ranking, so many.
    Best(usize),
    /// These, by name.
    Named(Vec<String>),
    /// The best of the ranking, as many as a goal asks for.
    For(Goal),
}

/// How the features are ordered by worth.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Ranking {
    /// Every provider scores its rows; the masked scores are added.
    Agreed {
        /// By which method.
        method: score::ScoringMethod,
    },
    /// One provider scores its rows and sends the order that follows, without the scores.
    Chosen {
        /// By which method.
        method: score::ScoringMethod,
    },
    /// The order is given, best first; nothing is read from data.
    Given {
        /// Names of all features.
        features: Vec<String>,
    },
    /// The order of the schema; nothing is read from data.
    Schema,
}

impl Ranking {
    /// Whether features are scored on rows.
    pub fn scores(&self) -> bool {
        matches!(self, Self::Agreed { .. } | Self::Chosen { .. })
    }
}

/// The identity of a job.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct JobDigest([u8; 32]);

impl fmt::Display for JobDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&crate::codec::hex(&self.0))
    }
}

impl fmt::Debug for JobDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "JobDigest({self})")
    }
}

impl TryFrom<Unchecked> for Job {
    type Error = JobFault;

    fn try_from(written: Unchecked) -> Result<Self, JobFault> {
        let Unchecked {
            data_set,
            schema,
            held_out,
            task,
        } = written;
        let job = Self {
            data_set,
            schema,
            held_out,
            task,
        };
        job.check()?;
        Ok(job)
    }
}

impl Job {
    /// What the providers call their data.
    pub fn data_set(&self) -> &Name {
        &self.data_set
    }

    /// The fingerprint of the schema, hexadecimal.
    pub fn schema(&self) -> &str {
        &self.schema
    }

    /// Share of the rows that is held out for evaluation.
    pub fn held_out(&self) -> Share {
        self.held_out
    }

    /// What is learned.
    pub fn task(&self) -> &Task {
        &self.task
    }

    /// The same job with something changed.
    ///
    /// # Errors
    /// If what comes of it contradicts itself.
    pub fn with(&self, change: impl FnOnce(&mut RawJob)) -> Result<Self, JobFault> {
        let mut raw = RawJob::from(self);
        change(&mut raw);
        raw.try_into()
    }

    /// The job's identity: the digest of its encoding.
    ///
    /// # Errors
    /// If the encoding cannot be written, which would be a defect.
    pub fn digest(&self) -> Result<JobDigest, serde_json::Error> {
        let bytes = serde_json::to_vec(self)?;
        Ok(JobDigest(Sha256::digest(bytes).into()))
    }

    /// Whether the label is a number.
    pub fn is_numeric(&self) -> bool {
        matches!(self.task, Task::Regression(_))
    }

    /// What a private job promises.
    pub fn privacy(&self) -> Option<Privacy> {
        match &self.task {
            Task::Private(task) => Some(task.privacy),
            Task::Exact(_) | Task::Regression(_) => None,
        }
    }

    /// A private job with the promise that its providers agreed on; any other job as it is.
    pub(crate) fn promising(mut self, agreed: impl FnOnce(Privacy) -> Privacy) -> Self {
        if let Task::Private(task) = &mut self.task {
            task.privacy = agreed(task.privacy);
        }
        self
    }

    /// Class indices to be told from the rest, one model each; a number has one model.
    pub fn positives(&self) -> &[u32] {
        match &self.task {
            Task::Exact(task) => &task.positives,
            Task::Private(task) => &task.positives,
            Task::Regression(_) => &[0],
        }
    }

    /// How gradients are computed.
    pub fn engine(&self) -> Engine {
        match &self.task {
            Task::Exact(task) => task.engine,
            Task::Private(_) | Task::Regression(_) => Engine::RESIDENT,
        }
    }

    /// What the engine is told in its own words.
    pub fn engine_options(&self) -> &BTreeMap<String, u64> {
        match &self.task {
            Task::Exact(task) => &task.engine_options,
            Task::Private(_) | Task::Regression(_) => &NO_OPTIONS,
        }
    }

    /// What is minimised.
    pub fn loss(&self) -> LossKind {
        match &self.task {
            Task::Exact(task) => task.loss,
            Task::Private(_) => LossKind::BoundedLogistic,
            Task::Regression(_) => LossKind::Ridge,
        }
    }

    /// How much the rows of each class count, if not all alike.
    pub fn class_weight(&self) -> Option<&ClassWeight> {
        match &self.task {
            Task::Exact(task) => task.class_weight.as_ref(),
            Task::Private(_) | Task::Regression(_) => None,
        }
    }

    /// How models are improved; the plan of a private job says it there.
    pub fn training(&self) -> Option<&Training> {
        match &self.task {
            Task::Exact(task) => Some(&task.training),
            Task::Regression(task) => Some(&task.training),
            Task::Private(_) => None,
        }
    }

    /// Which features are encrypted, and what is done with the others.
    pub fn features(&self) -> &Features {
        match &self.task {
            Task::Exact(task) => &task.features,
            Task::Regression(task) => &task.features,
            Task::Private(_) => &EVERY_FEATURE,
        }
    }

    /// What may be spent on publishing; nothing is published without it.
    pub fn spending(&self) -> Option<&Spending> {
        self.features().spending.as_ref()
    }

    /// How finely values, weights, scores and derivatives are cut.
    pub fn resolution(&self) -> Resolution {
        let training = self.training();
        training.map_or(Resolution::PRIVATE, |training| training.resolution)
    }

    /// Into how many batches a pass over the rows is cut.
    pub fn batches(&self) -> u32 {
        let batches = |training: &Training| training.settings.method.batches() as u32;
        self.training().map_or(1, batches)
    }

    /// Whether training works in deviations from the mean. A private job has coordinates of its
    /// own.
    pub fn standardises(&self) -> bool {
        let method = |training: &Training| training.settings.method.standardises();
        self.training().is_some_and(method)
    }

    /// Penalties of which held-out rows choose one.
    pub fn penalties(&self) -> Option<&PenaltyPath> {
        self.training().and_then(|training| training.path.as_ref())
    }

    /// The same as providers count them.
    pub fn path(&self) -> Option<PathRounds> {
        let training = self.training()?;
        let path = training.path.as_ref()?;
        let (first, next) = path.gradients(training.settings.max_iterations);
        Some(PathRounds {
            penalties: path.values().len() as u32,
            first,
            next,
        })
    }

    /// Gradients over all models. Those of a private job follow from its plan, which needs the
    /// columns; none here.
    pub fn gradients(&self) -> u32 {
        let each = match (self.training(), self.path()) {
            (None, _) => 0,
            (Some(_), Some(path)) => path.gradients(),
            (Some(training), None) => training.settings.max_iterations,
        };
        each.saturating_mul(self.positives().len() as u32)
    }
}

/// The classes to be told from the rest where a label has so many: of two the second one alone. A
/// number has one model.
pub fn models(classes: usize) -> Vec<u32> {
    match classes {
        0 => vec![0],
        2 => vec![1],
        many => (0..many as u32).collect(),
    }
}

impl Default for Training {
    /// What a private job has no use for.
    fn default() -> Self {
        Self {
            settings: Settings::lbfgs(),
            path: None,
            resolution: Resolution::PRIVATE,
        }
    }
}

impl Training {
    /// How a model is improved, with one of the penalties if several are tried.
    pub fn settings_of(&self, step: usize) -> Settings {
        match &self.path {
            Some(path) => path.settings(&self.settings, step),
            None => self.settings.clone(),
        }
    }

    /// L-BFGS with scikit-learn's penalty and so many gradients a model: the default of every door.
    pub fn usual(schema: &Schema) -> Self {
        let width = schema.width();
        Self {
            settings: Settings::for_columns(width),
            path: None,
            resolution: match schema.label().number() {
                Some(_) => Resolution::for_numbers(width),
                None => Resolution::for_columns(width),
            },
        }
    }
}

#[cfg(test)]
mod tests;
