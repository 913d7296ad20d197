//! What is to be trained: a [`Job`], put together step by step and checked once.

use crate::error::Error;
use crate::forecast::AutoIota;
use heda_crypto::random::Randomness;
use heda_dp::epsilon::Epsilon;
use heda_dp::gdp::Delta;
use heda_job::description::{self, JobFault, Protected, Ranking, RawJob, Share};
use heda_job::job::JobSpec;
use heda_job::proposal::{ClassWeight, Engine, JobId, Privacy, Spending, models_of};
use heda_learn::data::Dataset;
use heda_learn::loss::LossKind;
use heda_learn::optimise::{Method, PenaltyPath, Settings};
use heda_learn::partition::Goal;
use heda_learn::private::PrivatePlan;
use heda_learn::resident::Resolution;
use heda_learn::schema::Schema;
use std::sync::Arc;

/// A job that can be proposed to providers, with the schema that they agreed on. Made by
/// [`Job::builder`].
#[derive(Debug, Clone)]
pub struct Job {
    description: description::Job,
    schema: Arc<Schema>,
    /// Rows that the number of encrypted features is chosen with.
    sample: Option<Arc<Dataset>>,
    bounds_from_rows: bool,
}

/// Puts a [`Job`] together. What is not said is chosen with care for the providers: every feature
/// encrypted, nothing published.
#[derive(Debug, Clone)]
pub struct JobBuilder {
    raw: RawJob,
    schema: Arc<Schema>,
    sample: Option<Arc<Dataset>>,
    bounds_from_rows: bool,
}

impl Job {
    /// Begins a job on what the providers call `data_set`, with rows of this schema.
    pub fn builder(data_set: impl Into<String>, schema: impl Into<Arc<Schema>>) -> JobBuilder {
        let schema = schema.into();
        JobBuilder {
            raw: RawJob::new(data_set, &schema),
            schema,
            sample: None,
            bounds_from_rows: false,
        }
    }

    /// What travels to the providers: the same job, whatever door it came through.
    pub fn description(&self) -> &description::Job {
        &self.description
    }

    /// The schema that all parties have agreed on.
    pub fn schema(&self) -> &Arc<Schema> {
        &self.schema
    }

    /// What the providers call their data.
    pub fn data_set(&self) -> &str {
        self.description.data_set().as_str()
    }

    /// How gradients are computed.
    pub fn engine(&self) -> Engine {
        self.description.engine()
    }

    /// What is minimised.
    pub fn loss(&self) -> LossKind {
        self.description.loss()
    }

    /// How much the rows of each class count, if not all alike.
    pub fn class_weight(&self) -> Option<&ClassWeight> {
        self.description.class_weight()
    }

    /// The penalties of which one will be chosen, if that is wanted.
    pub fn penalty_path(&self) -> Option<&PenaltyPath> {
        self.description.penalties()
    }

    /// Scikit-learn's C, or no penalty, unless it is chosen.
    pub fn penalty(&self) -> Option<f64> {
        self.description.training()?.settings.c
    }

    /// Iterations at most, of each model with one penalty; a private job has as many as its plan says.
    pub fn iterations(&self) -> u32 {
        match (self.plan(), self.description.training()) {
            (Some(plan), _) => plan.gradients(),
            (None, Some(training)) => training.settings.max_iterations,
            (None, None) => 0,
        }
    }

    /// Gradients of each model, over all penalties that are tried.
    pub fn gradients(&self) -> u32 {
        let path = self.description.path();
        path.map_or_else(|| self.iterations(), |path| path.gradients())
    }

    /// What a private job does to keep its promise.
    pub fn plan(&self) -> Option<PrivatePlan> {
        let width = self.schema.width() + 1;
        self.privacy().and_then(|privacy| privacy.plan(width).ok())
    }

    /// Share of the rows that is held out for evaluation.
    pub fn held_out(&self) -> Share {
        self.description.held_out()
    }

    /// Whether features are scored, which is not needed where their order is given.
    pub fn scores_features(&self) -> bool {
        self.description.features().ranking.scores()
    }

    /// Whether columns may be published with noise.
    pub fn publishes(&self) -> bool {
        self.description.spending().is_some()
    }

    /// What the job promises, if it is private.
    pub fn privacy(&self) -> Option<Privacy> {
        self.description.privacy()
    }

    /// Whether ε is read from the data, which is for public data only.
    pub fn reads_epsilon(&self) -> bool {
        self.description.spending() == Some(&Spending::Automatic)
    }

    /// Whether bounds or levels of the schema were read from rows: the model then promises nothing.
    pub fn has_bounds_from_rows(&self) -> bool {
        self.bounds_from_rows
    }

    /// The job under a name. If the number of encrypted features is to be chosen, what that draws
    /// comes from `randomness`.
    pub fn spec(&self, id: JobId, randomness: &Randomness) -> JobSpec {
        let spec = JobSpec::new(id, self.description.clone(), Arc::clone(&self.schema));
        match &self.description.features().protected {
            Protected::For(goal) => {
                AutoIota::put_into(spec, *goal, self.sample.as_deref(), randomness)
            }
            _ => spec,
        }
    }
}

impl JobBuilder {
    /// The job that a file describes.
    pub(crate) fn of_raw(raw: RawJob, schema: Arc<Schema>, sample: Option<Arc<Dataset>>) -> Self {
        Self {
            raw,
            schema,
            sample,
            bounds_from_rows: false,
        }
    }

    /// Encrypts the best features by the ranking, so many.
    pub fn encrypt_best(mut self, iota: usize) -> Self {
        self.raw.protected = Protected::Best(iota);
        self
    }

    /// Encrypts these features. They need no ranking, and none is read from data.
    pub fn encrypt_named<N: Into<String>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        let names = names.into_iter().map(Into::into);
        self.raw.encrypt_named(names.collect(), &self.schema);
        self
    }

    /// Chooses how many features are encrypted when ranking and rows are known. Accuracy is
    /// estimated on `sample`: rows of the same schema that the data user may read.
    pub fn encrypt_for(mut self, goal: Goal, sample: Option<Arc<Dataset>>) -> Self {
        self.raw.protected = Protected::For(goal);
        self.sample = sample;
        self
    }

    /// Publishes the features that are not encrypted under so much ε in sum, instead of leaving
    /// them out.
    pub fn publish_rest(self, total: Epsilon) -> Self {
        self.spend(Some(Spending::Total(total)))
    }

    /// Says what is spent on the features that are not encrypted; nothing leaves them out.
    pub fn spend(mut self, spending: Option<Spending>) -> Self {
        self.raw.spending = spending;
        self
    }

    /// How features are ranked; by the sum over all providers if this is not called.
    pub fn ranking(mut self, ranking: Ranking) -> Self {
        self.raw.ranking = Some(ranking);
        self
    }

    /// What is minimised; the logistic loss if this is not called, and least squares for a number.
    pub fn loss(mut self, loss: LossKind) -> Self {
        self.raw.loss = Some(loss);
        self
    }

    /// How the model is improved; by L-BFGS with C = 1 and the usual number of gradients if this
    /// is not called.
    pub fn settings(mut self, settings: Settings) -> Self {
        self.raw.training.settings = settings;
        self
    }

    /// How the model is improved; by L-BFGS if this is not called.
    pub fn optimiser(mut self, method: Method) -> Self {
        self.raw.training.settings.method = method;
        self
    }

    /// The penalty as scikit-learn's C: ½‖w‖² beside C times the summed loss, on standardised
    /// features. A smaller number is a larger penalty, nothing is none; 1 if this is not called.
    pub fn penalty(mut self, c: impl Into<Option<f64>>) -> Self {
        self.raw.training.settings.c = c.into();
        self
    }

    /// Tries these penalties one after the other and keeps the best, by one half of the held-out rows;
    /// the other half is for the result. Each costs gradients and an evaluation.
    pub fn choose_penalty(mut self, path: impl Into<Option<PenaltyPath>>) -> Self {
        self.raw.training.path = path.into();
        self
    }

    /// Training with exact gradients ends when no component of the gradient is larger.
    pub fn tolerance(mut self, tolerance: f64) -> Self {
        self.raw.training.settings.tolerance = tolerance;
        self
    }

    /// At most so many iterations of each model.
    pub fn iterations(mut self, at_most: u32) -> Self {
        self.raw.training.settings.max_iterations = at_most;
        self
    }

    /// Share of the rows that is held out for evaluation, 0 to 0.9; 0.2 if this is not called.
    pub fn hold_out(mut self, share: f64) -> Self {
        self.raw.held_out = share;
        self
    }

    /// How gradients are computed; by engine `resident` if this is not called.
    pub fn engine(mut self, engine: Engine) -> Self {
        self.raw.engine = engine;
        self
    }

    /// How finely engine `resident` cuts values, weights, scores and derivatives; for a job without
    /// noise if this is not called.
    pub fn resolution(mut self, resolution: Resolution) -> Self {
        self.raw.training.resolution = resolution;
        self
    }

    /// Makes the job private: everything that it reveals keeps to (ε, δ), which all models share. Loss,
    /// steps and grids are those of private jobs, no feature is scored and all are encrypted.
    pub fn private(mut self, privacy: Privacy) -> Self {
        self.raw.privacy = Some(Privacy {
            models: models_of(&self.schema),
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
    ) -> Result<Self, Error> {
        let rows = rows as u64;
        let delta = match delta {
            Some(delta) => Delta::new(delta).map_err(Error::input)?,
            None => Delta::default_for(rows),
        };
        delta.check_rows(rows).map_err(Error::input)?;
        let promise = Privacy::new(epsilon, delta, rows).suited(&self.schema);
        Ok(self.private(promise))
    }

    /// How much the rows of each class count; all alike if this is not called.
    pub fn class_weight(mut self, weight: impl Into<Option<ClassWeight>>) -> Self {
        self.raw.class_weight = weight.into();
        self
    }

    /// States whether bounds or levels of the schema were read from rows, as its marks say: model and
    /// report then promise nothing.
    pub fn bounds_from_rows(mut self, were_read: bool) -> Self {
        self.bounds_from_rows = were_read;
        self
    }

    /// An option of the engine, in its own words.
    pub fn engine_option(mut self, name: impl Into<String>, value: u64) -> Self {
        self.raw.engine_options.insert(name.into(), value);
        self
    }

    /// The job, checked.
    ///
    /// # Errors
    /// If no provider could do it, whatever its rows.
    pub fn build(self) -> Result<Job, Error> {
        self.checked().map_err(Error::input)
    }

    fn checked(mut self) -> Result<Job, JobFault> {
        self.raw.training.resolution = self.resolution_in_use();
        if self.raw.protected == Protected::Best(self.schema.columns().len()) {
            self.raw.protected = Protected::All;
        }
        let description = description::Job::try_from(self.raw)?;
        description.check_schema(&self.schema)?;
        if let Some(privacy) = description.privacy() {
            privacy.plan(self.schema.width() + 1)?;
        }
        Ok(Job {
            description,
            schema: self.schema,
            sample: self.sample,
            bounds_from_rows: self.bounds_from_rows,
        })
    }

    /// How finely the job is cut. By the number of rows where derivatives are small numbers: those of a
    /// hinge, of least squares on a class or of weighed rows reach so far that fewer bits would not do.
    fn resolution_in_use(&self) -> Resolution {
        let small = self.raw.loss.unwrap_or_default() == LossKind::Logistic
            && self.raw.class_weight.is_none();
        match self.raw.numeric || small {
            true => self.raw.training.resolution,
            false => self.raw.training.resolution.whatever_rows(),
        }
    }
}
