//! What a forecast is about.

use super::Forecast;
use super::cost::{Shape, Took, measure, measuring, planned_rows, run_whole};
use crate::error::{Error, Remedy};
use crate::{Job, JobFile};
use heda_crypto::random::Randomness;
use heda_dp::epsilon::Epsilon;
use heda_job::description::{Protected, Ranking, Share};
use heda_job::job::JobSpec;
use heda_job::proposal::{Engine, JobId};
use heda_learn::gradient::Batch;
use heda_learn::schema::Schema;
use std::sync::Arc;

/// How often engine `resident` is measured. Another one may be slow, and is measured once.
const REPEATS: u32 = 3;

/// What a forecast is about: a job, its rows and its providers.
#[derive(Debug)]
pub struct Subject {
    /// The job.
    pub spec: JobSpec,
    /// All features, the encrypted ones first.
    pub order: Vec<usize>,
    /// How many of them are encrypted.
    pub iota: usize,
    /// Rows of all providers together, held-out ones included.
    pub rows: usize,
    /// How many providers.
    pub providers: usize,
}

impl Subject {
    /// That there is something to measure.
    fn check(&self) -> Result<(), Error> {
        let Self {
            iota,
            rows,
            providers,
            ..
        } = self;
        if *providers == 0 || rows / providers < 10 {
            return Err(Error::input(format!(
                "{rows} rows for {providers} providers: each needs ten or more"
            )));
        }
        let features = self.order.len();
        match *iota > features {
            true => Err(Error::input(format!(
                "iota is {iota}, but there are {features} features; choose 0 to {features}"
            ))),
            false => Ok(()),
        }
    }

    /// Rows of each provider.
    fn shares(&self) -> Vec<usize> {
        let parts = 0..self.providers;
        parts
            .map(|part| Batch::new(part, self.providers).share(self.rows).len())
            .collect()
    }

    fn shape<'a>(&'a self, shares: &'a [usize]) -> Shape<'a> {
        Shape {
            spec: &self.spec,
            order: &self.order,
            iota: self.iota,
            rows: shares,
            most_rows: planned_rows(self.providers, self.spec.job.held_out()),
            repeats: match self.spec.job.engine() == Engine::RESIDENT {
                true => REPEATS,
                false => 1,
            },
        }
    }

    /// Measures, and says what the job will cost.
    ///
    /// # Errors
    /// If there are too few rows, or the job cannot be run.
    pub fn forecast(&self) -> Result<Forecast, Error> {
        self.check()?;
        let shares = self.shares();
        Ok(super::of_costs(self, &measure(&self.shape(&shares))?))
    }

    /// Runs the whole job on random rows, and says what it took.
    ///
    /// # Errors
    /// As [`forecast`](Self::forecast).
    pub fn run(&self) -> Result<Took, Error> {
        self.check()?;
        let shares = self.shares();
        run_whole(&self.shape(&shares))
    }

    /// A job with remote providers, or with so many that have not answered yet. Rows that are not given
    /// are those that a private job states. Where ι is chosen later, all features are planned as
    /// encrypted: that takes longest.
    ///
    /// # Errors
    /// If it names a feature that the schema does not have, or nobody says how many rows there are.
    pub fn of_job(remote: &JobFile, rows: Option<usize>, unanswered: usize) -> Result<Self, Error> {
        let rows = rows.or_else(|| remote.stated_rows()).ok_or_else(|| {
            let error = Error::input("the job does not say how many rows there are");
            error.with_remedy(Remedy::StateRows)
        })?;
        let schema = remote.job().schema();
        let spec = remote.job().spec(JobId([0; 16]), &Randomness::from_os());
        let all = schema.columns().len();
        let (encrypted, iota): (Vec<usize>, usize) = match &spec.job.features().protected {
            Protected::Best(iota) => (Vec::new(), *iota),
            Protected::All | Protected::For(_) => (Vec::new(), all),
            Protected::Named(names) => {
                let place = |name: &String| {
                    let columns = schema.columns();
                    let found = columns.iter().position(|column| column.name() == name);
                    found.ok_or_else(|| {
                        Error::input(format!("the schema has no feature \"{name}\""))
                    })
                };
                let places: Vec<usize> = names.iter().map(place).collect::<Result<_, _>>()?;
                let iota = places.len();
                (places, iota)
            }
        };
        let rest = (0..all).filter(|feature| !encrypted.contains(feature));
        let order = encrypted.iter().copied().chain(rest).collect();
        Ok(Self {
            order,
            iota,
            rows,
            providers: match remote.providers() {
                0 => unanswered,
                known => known,
            },
            spec,
        })
    }

    /// A job with providers that are not known yet.
    ///
    /// # Errors
    /// If there is no such job.
    pub fn of_schema(
        schema: impl Into<Arc<Schema>>,
        rows: usize,
        providers: usize,
        iota: Option<usize>,
        (iterations, batches): (u32, usize),
    ) -> Result<Self, Error> {
        let schema = schema.into();
        let features = schema.columns().len();
        let settings = measuring(&schema, iterations, batches);
        let job = Job::builder("plan", schema)
            .settings(settings)
            .ranking(Ranking::Schema);
        let job = job.build()?;
        Ok(Self {
            spec: job.spec(JobId([0; 16]), &Randomness::from_os()),
            order: (0..features).collect(),
            iota: iota.unwrap_or(features),
            rows,
            providers,
        })
    }

    /// The same for a private job: its promise decides how it is trained.
    ///
    /// # Errors
    /// If there is no such job.
    pub fn of_promise(
        schema: impl Into<Arc<Schema>>,
        rows: usize,
        providers: usize,
        (epsilon, delta): (Epsilon, Option<f64>),
    ) -> Result<Self, Error> {
        let schema = schema.into();
        let features = schema.columns().len();
        let training = rows - Share::USUAL.of(rows as u64) as usize;
        let job = Job::builder("plan", schema).private_within(epsilon, delta, training)?;
        let job = job.build()?;
        Ok(Self {
            spec: job.spec(JobId([0; 16]), &Randomness::from_os()),
            order: (0..features).collect(),
            iota: features,
            rows,
            providers,
        })
    }
}
