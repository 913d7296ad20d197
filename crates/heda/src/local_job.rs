//! A simulation with a bundled data set: what `demo` and the experiments run.

use crate::error::Error;
use crate::job::Job;
use crate::simulation::{Ran, Simulation};
use crate::trained::Trained;
use crate::watch::Watcher;
use heda_crypto::random::Randomness;
use heda_dp::epsilon::Epsilon;
use heda_dp::gdp::Delta;
use heda_job::description::{Ranking, Share};
use heda_job::proposal::{ClassWeight, Engine, Privacy, Spending};
use heda_learn::bundled::{Bundle, Coding};
use heda_learn::data::Dataset;
use heda_learn::optimise::Settings;
use heda_learn::partition::Goal;
use heda_learn::score::ScoringMethod;
use std::sync::Arc;

/// What to run.
#[derive(Debug, Clone)]
pub struct LocalJob {
    /// The data set.
    pub bundle: Bundle,
    /// How its categories become numbers.
    pub coding: Coding,
    /// Among how many the rows are divided.
    pub providers: usize,
    /// None: all of the features, so that nothing is published.
    pub iota: Option<usize>,
    /// What ι is chosen for, instead.
    pub goal: Option<Goal>,
    /// How gradients are computed.
    pub engine: Engine,
    /// How features are ranked.
    pub method: ScoringMethod,
    /// What is done with the features that are not encrypted.
    pub rest: Rest,
    /// How to train; what suits engine and rows if absent.
    pub settings: Option<Settings>,
    /// ε of a private job, with the δ that suits the rows; the rest of the job is then as private jobs
    /// are.
    pub private: Option<Epsilon>,
    /// Whether every class counts as much as the others together.
    pub balanced: bool,
    /// Where everything random comes from.
    pub randomness: Randomness,
}

/// What is done with features that are not encrypted.
#[derive(Debug, Clone)]
pub enum Rest {
    /// Published under so much ε in sum, or by the paper's automatic rule.
    Publish(Spending),
    /// Left out.
    Drop,
}

impl LocalJob {
    /// Runs the job and its controls.
    ///
    /// # Errors
    /// If the job cannot be run as asked, or fails.
    pub fn run(&self, hear: Watcher<'_>) -> Result<Trained, Error> {
        let table = self.bundle.table(self.coding);
        let (data, _) = table.map_err(Error::bug)?;
        self.run_on(&data, hear)
    }

    /// Runs the job and its controls on these rows of the data set.
    ///
    /// # Errors
    /// As [`LocalJob::run`].
    pub fn run_on(&self, data: &Dataset, hear: Watcher<'_>) -> Result<Trained, Error> {
        let mut trained = self.simulation(data)?.run(data, hear)?;
        // For people only: the model predicts what the file has.
        let words = |class: &String| self.bundle.class_in_words(class).to_owned();
        let classes = trained.summary.classes.iter().map(words).collect();
        trained.summary.classes = classes;
        Ok(trained)
    }

    /// The rows that the job trains on and those that it holds out, of all providers together.
    ///
    /// # Errors
    /// If the rows cannot be divided among so many.
    pub fn rows(&self, data: &Dataset) -> Result<(Dataset, Dataset), Error> {
        self.simulation(data)?.rows(data)
    }

    /// Runs the job without controls and keeps what every party received.
    ///
    /// # Errors
    /// As [`LocalJob::run`].
    pub fn recorded(&self, data: &Dataset) -> Result<Ran, Error> {
        self.simulation(data)?.recorded(data)
    }

    fn simulation(&self, data: &Dataset) -> Result<Simulation, Error> {
        let simulation = Simulation::new(self.job(data)?).title(self.bundle.title());
        Ok(simulation
            .providers(self.providers)
            .randomness(self.randomness.clone()))
    }

    fn job(&self, data: &Dataset) -> Result<Job, Error> {
        let schema = self.bundle.schema(self.coding);
        let features = schema.columns().len();
        let iota = self.iota.unwrap_or(features);
        let training = data.rows() - Share::USUAL.of(data.rows() as u64) as usize;
        let settings = self.engine.usual_settings(training);
        let settings = settings.unwrap_or_else(|| Settings::for_columns(schema.width()));
        let builder = Job::builder(self.bundle.name(), schema)
            .engine(self.engine)
            .class_weight(self.balanced.then_some(ClassWeight::Balanced))
            .settings(self.settings.clone().unwrap_or(settings))
            .ranking(Ranking::Agreed {
                method: self.method,
            })
            .spend(match &self.rest {
                Rest::Publish(spending) if iota < features || self.goal.is_some() => {
                    Some(spending.clone())
                }
                _ => None,
            });
        let builder = match self.goal {
            Some(goal) => builder.encrypt_for(goal, Some(Arc::new(data.clone()))),
            None => builder.encrypt_best(iota),
        };
        let builder = match self.private {
            Some(epsilon) => {
                let rows = training as u64;
                let promise = Privacy::new(epsilon, Delta::default_for(rows), rows);
                builder.private(promise.suited(&self.bundle.schema(self.coding)))
            }
            None => builder,
        };
        builder.build()
    }
}
