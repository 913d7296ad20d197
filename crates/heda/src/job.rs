//! What is to be trained: a [`Job`], put together step by step and checked once.

mod rules;

use crate::planning::AutoIota;
use heda_crypto::random::Randomness;
use heda_dp::epsilon::Epsilon;
use heda_dp::gdp::{Delta, DeltaError};
use heda_learn::data::Dataset;
use heda_learn::loss::LossKind;
use heda_learn::optimise::{PenaltyPath, Settings, usual_iterations};
use heda_learn::partition::Goal;
use heda_learn::private::{PlanError, PrivatePlan};
use heda_learn::resident::Resolution;
use heda_learn::schema::Schema;
use heda_learn::score::Method;
use heda_train::job::{Choice, JobSpec};
use heda_train::proposal::{ClassWeight, Engine, JobId, Privacy, Ranking, Spending, models_of};
use heda_train::weighing::BadWeight;
use std::collections::HashSet;
use std::sync::Arc;

/// A job that can be proposed to providers. Made by [`Job::builder`].
#[derive(Debug, Clone)]
pub struct Job {
    parts: Parts,
}

/// Puts a [`Job`] together. What is not said is chosen with care for the providers: every feature
/// encrypted, nothing published.
#[derive(Debug, Clone)]
pub struct JobBuilder {
    parts: Parts,
}

#[derive(Debug, Clone)]
struct Parts {
    data_set: String,
    schema: Arc<Schema>,
    engine: Engine,
    privacy: Option<Privacy>,
    resolution: Resolution,
    key_bits: u32,
    loss: Option<LossKind>,
    class_weight: Option<ClassWeight>,
    settings: Settings,
    path: Option<PenaltyPath>,
    holdout_permille: u32,
    ranking: Ranking,
    encrypted: Encrypted,
    spending: Option<Spending>,
}

/// Which features are encrypted.
#[derive(Debug, Clone)]
enum Encrypted {
    All,
    Best(usize),
    Named(Vec<String>),
    Auto {
        goal: Goal,
        sample: Option<Arc<Dataset>>,
    },
}

/// Why a job cannot be proposed.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum JobFault {
    /// More features to encrypt than there are.
    #[error("iota is {iota}, but there are {features} features; choose 0 to {features}")]
    TooMany {
        /// What was asked for.
        iota: usize,
        /// What the schema has.
        features: usize,
    },
    /// A feature that the schema does not have.
    #[error("the schema has no feature \"{0}\"")]
    NoSuchFeature(String),
    /// A feature that was named before.
    #[error("a feature to encrypt is named twice")]
    Twice,
    /// No feature is encrypted and none published.
    #[error("no feature is encrypted and none published: there is nothing to train on")]
    Nothing,
    /// All rows would be held out.
    #[error("{0} of 1000 rows held out leaves none to train on; choose 0 to 999")]
    HeldOut(u32),
    /// No iteration.
    #[error("a job needs at least one iteration")]
    NoIteration,
    /// No plan keeps the promise.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// What does not go with a numeric label.
    #[error("the label is a number, which needs {0}")]
    Number(&'static str),
    /// What does not go with weights of classes.
    #[error("weights of classes need {0}")]
    Weighed(&'static str),
    /// Weights that the classes do not have.
    #[error(transparent)]
    Weights(#[from] BadWeight),
    /// A penalty that cannot be chosen.
    #[error("choosing the penalty needs {0}")]
    Choice(&'static str),
    /// A penalty that is none.
    #[error("the penalty C must be a number above 0; a large one means a small penalty")]
    Penalty,
}

impl Job {
    /// Begins a job on what the providers call `data_set`, with rows of this schema.
    pub fn builder(data_set: impl Into<String>, schema: impl Into<Arc<Schema>>) -> JobBuilder {
        let schema = schema.into();
        let max_iterations = usual_iterations(schema.width());
        let resolution = match schema.label().number() {
            Some(_) => Resolution::for_numbers(schema.width()),
            None => Resolution::for_columns(schema.width()),
        };
        JobBuilder {
            parts: Parts {
                data_set: data_set.into(),
                schema,
                engine: Engine::default(),
                key_bits: 2048,
                loss: None,
                class_weight: None,
                settings: Settings {
                    max_iterations,
                    ..Settings::lbfgs()
                },
                path: None,
                privacy: None,
                resolution,
                holdout_permille: 200,
                ranking: Ranking::Agreed {
                    method: Method::default(),
                },
                encrypted: Encrypted::All,
                spending: None,
            },
        }
    }

    /// The schema that all parties have agreed on.
    pub fn schema(&self) -> &Arc<Schema> {
        &self.parts.schema
    }

    /// What the providers call their data.
    pub fn data_set(&self) -> &str {
        &self.parts.data_set
    }

    /// How gradients are computed.
    pub fn engine(&self) -> Engine {
        self.parts.engine
    }

    /// What is minimised.
    pub fn loss(&self) -> LossKind {
        self.parts.loss()
    }

    /// How much the rows of each class count, if not all alike.
    pub fn class_weight(&self) -> Option<&ClassWeight> {
        self.parts.class_weight.as_ref()
    }

    /// The penalties of which one will be chosen, if that is wanted.
    pub fn penalty_path(&self) -> Option<&PenaltyPath> {
        self.parts.path.as_ref()
    }

    /// Scikit-learn's C, or no penalty, unless it is chosen.
    pub fn penalty(&self) -> Option<f64> {
        self.parts.settings.c
    }

    /// Iterations at most, of each model with one penalty; a private job has as many as its plan says.
    pub fn iterations(&self) -> u32 {
        let plan = self.plan().map(|plan| plan.gradients());
        plan.unwrap_or(self.parts.settings.max_iterations)
    }

    /// Gradients of each model, over all penalties that are tried.
    pub fn gradients(&self) -> u32 {
        let single = self.iterations();
        let path = self.parts.path.as_ref();
        path.map_or(single, |path| path.all_gradients(single))
    }

    /// What a private job does to keep its promise.
    pub fn plan(&self) -> Option<PrivatePlan> {
        let width = self.parts.schema.width() + 1;
        self.privacy().and_then(|privacy| privacy.plan(width).ok())
    }

    /// Share of the rows that is kept for evaluation, in thousandths.
    pub fn holdout_permille(&self) -> u32 {
        self.parts.holdout_permille
    }

    /// What the job promises, if it is private.
    pub fn privacy(&self) -> Option<&Privacy> {
        self.parts.privacy.as_ref()
    }

    /// Whether ε is read from the data, which is for public data only.
    pub fn reads_epsilon(&self) -> bool {
        self.parts.spending == Some(Spending::Automatic)
    }

    /// The job under a name. If the number of encrypted features is to be chosen, what that draws
    /// comes from `randomness`.
    pub fn spec(&self, job: JobId, randomness: &Randomness) -> JobSpec {
        let parts = &self.parts;
        let features = parts.schema.columns().len();
        let choice = match &parts.encrypted {
            Encrypted::All | Encrypted::Auto { .. } => Choice::Best(features),
            Encrypted::Best(iota) => Choice::Best(*iota),
            Encrypted::Named(names) => Choice::Named(names.clone()),
        };
        let spec = JobSpec {
            job,
            dataset: parts.data_set.clone(),
            schema: Arc::clone(&parts.schema),
            positives: positives(&parts.schema),
            engine: parts.engine,
            loss: parts.loss(),
            resolution: parts.resolution(),
            settings: parts.settings.clone(),
            holdout_permille: parts.holdout_permille,
            ranking: parts.ranking.clone(),
            choice,
            spending: parts.spending.clone(),
            privacy: parts.privacy,
            key_bits: parts.key_bits,
            class_weight: parts.class_weight.clone(),
            path: parts.path.clone(),
        };
        match &parts.encrypted {
            Encrypted::Auto { goal, sample } => {
                AutoIota::put_into(spec, *goal, sample.as_deref(), randomness)
            }
            _ => spec,
        }
    }
}

/// The classes to be told from the rest: of two, the second one alone. A number has one model.
fn positives(schema: &Schema) -> Vec<u32> {
    match schema.label().classes().len() {
        0 => vec![0],
        2 => vec![1],
        many => (0..many as u32).collect(),
    }
}

impl JobBuilder {
    /// Encrypts the best features by the ranking, so many.
    pub fn encrypt_best(mut self, iota: usize) -> Self {
        self.parts.encrypted = Encrypted::Best(iota);
        self
    }

    /// Encrypts these features. They need no ranking, and none is read from data.
    pub fn encrypt_named<N: Into<String>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        let named: Vec<String> = names.into_iter().map(Into::into).collect();
        let columns = self.parts.schema.columns().iter();
        let rest = columns.map(|column| column.name().to_owned());
        let rest = rest.filter(|name| !named.contains(name));
        let features = named.iter().cloned().chain(rest).collect();
        self.parts.ranking = Ranking::Given { features };
        self.parts.encrypted = Encrypted::Named(named);
        self
    }

    /// Chooses how many features are encrypted when ranking and rows are known. Accuracy is
    /// estimated on `sample`: rows of the same schema that the data user may read.
    pub fn encrypt_for(mut self, goal: Goal, sample: Option<Arc<Dataset>>) -> Self {
        self.parts.encrypted = Encrypted::Auto { goal, sample };
        self
    }

    /// Publishes the features that are not encrypted under so much ε in sum, instead of leaving
    /// them out.
    pub fn publish_rest(self, total: Epsilon) -> Self {
        self.spend(Some(Spending::Total(total)))
    }

    /// Says what is spent on the features that are not encrypted; nothing leaves them out.
    pub fn spend(mut self, spending: Option<Spending>) -> Self {
        self.parts.spending = spending;
        self
    }

    /// How features are ranked; by the sum over all providers if this is not called.
    pub fn ranking(mut self, ranking: Ranking) -> Self {
        self.parts.ranking = ranking;
        self
    }

    /// What is minimised; the logistic loss if this is not called, and least squares for a number.
    pub fn loss(mut self, loss: LossKind) -> Self {
        self.parts.loss = Some(loss);
        self
    }

    /// How the model is improved; by L-BFGS with C = 1 and the usual number of gradients if this
    /// is not called.
    pub fn settings(mut self, settings: Settings) -> Self {
        self.parts.settings = settings;
        self
    }

    /// The penalty as scikit-learn's C: ½‖w‖² beside C times the summed loss, on standardised
    /// features. A smaller number is a larger penalty, nothing is none; 1 if this is not called.
    pub fn penalty(mut self, c: impl Into<Option<f64>>) -> Self {
        self.parts.settings.c = c.into();
        self
    }

    /// Tries these penalties one after the other and keeps the best, by one half of the held-out rows;
    /// the other half is for the result. Each costs gradients and an evaluation.
    pub fn choose_penalty(mut self, path: impl Into<Option<PenaltyPath>>) -> Self {
        self.parts.path = path.into();
        self
    }

    /// Training with exact gradients ends when no component of the gradient is larger.
    pub fn tolerance(mut self, tolerance: f64) -> Self {
        self.parts.settings.tolerance = tolerance;
        self
    }

    /// At most so many iterations of each model.
    pub fn iterations(mut self, at_most: u32) -> Self {
        self.parts.settings.max_iterations = at_most;
        self
    }

    /// Share of the rows that is kept for evaluation, in thousandths; a fifth if this is not called.
    pub fn hold_out(mut self, permille: u32) -> Self {
        self.parts.holdout_permille = permille;
        self
    }

    /// How gradients are computed; by engine `resident` if this is not called.
    pub fn engine(mut self, engine: Engine) -> Self {
        self.parts.engine = engine;
        self
    }

    /// How finely engine `resident` cuts values, weights, scores and derivatives; for a job without
    /// noise if this is not called.
    pub fn resolution(mut self, resolution: Resolution) -> Self {
        self.parts.resolution = resolution;
        self
    }

    /// Makes the job private: everything that it reveals keeps to (ε, δ), which all models share. Loss,
    /// steps and grids are those of private jobs, no feature is scored and all are encrypted.
    pub fn private(mut self, privacy: Privacy) -> Self {
        let columns = self.parts.schema.columns().iter();
        let features = columns.map(|column| column.name().to_owned()).collect();
        self.parts.ranking = Ranking::Given { features };
        self.parts.encrypted = Encrypted::All;
        self.parts.spending = None;
        self.parts.engine = Engine::Resident;
        self.parts.loss = Some(LossKind::BoundedLogistic);
        self.parts.resolution = Resolution::PRIVATE;
        self.parts.privacy = Some(Privacy {
            models: models_of(&self.parts.schema),
            ..privacy
        });
        self
    }

    /// The same for about so many training rows in all, with the δ that suits them if none is given, and
    /// with means and deviations bought where the schema states nothing typical.
    ///
    /// # Errors
    /// If δ is no protection for so many rows.
    pub fn private_within(
        self,
        epsilon: Epsilon,
        delta: Option<f64>,
        rows: usize,
    ) -> Result<Self, DeltaError> {
        let rows = rows as u64;
        let delta = match delta {
            Some(delta) => Delta::new(delta)?,
            None => Delta::default_for(rows),
        };
        delta.check_rows(rows)?;
        let promise = Privacy::new(epsilon, delta, rows).suited(&self.parts.schema);
        Ok(self.private(promise))
    }

    /// How much the rows of each class count; all alike if this is not called.
    pub fn class_weight(mut self, weight: impl Into<Option<ClassWeight>>) -> Self {
        self.parts.class_weight = weight.into();
        self
    }

    /// Key size of engine `paper`.
    pub fn key_bits(mut self, bits: u32) -> Self {
        self.parts.key_bits = bits;
        self
    }

    /// The job, checked.
    ///
    /// # Errors
    /// If no provider could do it, whatever its rows.
    pub fn build(self) -> Result<Job, JobFault> {
        let mut parts = self.parts;
        match parts.schema.label().number() {
            Some(_) => parts.fit_number()?,
            None => parts.check_weights()?,
        }
        parts.check_path()?;
        let features = parts.schema.columns().len();
        let none = match &parts.encrypted {
            Encrypted::Best(iota) if *iota > features => {
                let iota = *iota;
                return Err(JobFault::TooMany { iota, features });
            }
            Encrypted::Best(iota) => *iota == 0,
            Encrypted::Named(names) => {
                check_names(names, &parts.schema)?;
                names.is_empty()
            }
            Encrypted::All | Encrypted::Auto { .. } => false,
        };
        if none && parts.spending.is_none() {
            return Err(JobFault::Nothing);
        }
        if parts.holdout_permille >= 1000 {
            return Err(JobFault::HeldOut(parts.holdout_permille));
        }
        if parts.settings.max_iterations == 0 {
            return Err(JobFault::NoIteration);
        }
        if let Some(privacy) = &parts.privacy {
            privacy.plan(parts.schema.width() + 1)?;
        }
        let useless = |c: f64| !(c.is_finite() && c > 0.0);
        if parts.settings.c.is_some_and(useless) {
            return Err(JobFault::Penalty);
        }
        Ok(Job { parts })
    }
}

fn check_names(names: &[String], schema: &Schema) -> Result<(), JobFault> {
    let mut seen = HashSet::new();
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
