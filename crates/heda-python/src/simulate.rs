//! A whole job in this process, on rows that the caller may read.

use crate::job::Trained;
use crate::schema::Schema;
use crate::table::Rows;
use crate::work;
use heda::{ClassWeight, Engine, Epsilon, Error, Job, JobBuilder, LossKind};
use heda::{PenaltyPath, Phases, Share, Simulation, Spending};
use pyo3::prelude::*;
use serde::Deserialize;
use serde::de::IntoDeserializer;
use serde::de::value::StrDeserializer;
use std::sync::Arc;

/// How to train, as estimators say it.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Wanted {
    loss: String,
    engine: String,
    c: Option<f64>,
    /// Whether the penalty is chosen by held-out rows instead.
    choose: bool,
    max_iter: Option<u32>,
    tol: Option<f64>,
    holdout: f64,
    encrypt: Option<usize>,
    publish_epsilon: Option<f64>,
    epsilon: Option<f64>,
    delta: Option<f64>,
    /// Whether every class counts as much as the others together.
    balanced: bool,
    /// Or how much each counts, in the order of the schema's classes.
    weights: Option<Vec<f64>>,
}

/// Trains on encoded rows under encryption, with providers that are threads.
#[pyfunction]
#[pyo3(signature = (rows, schema, title, wanted, providers, seed=None, watch=None))]
#[allow(clippy::too_many_arguments)]
pub(crate) fn simulate(
    py: Python<'_>,
    rows: &Rows,
    schema: &Schema,
    title: String,
    wanted: Wanted,
    providers: usize,
    seed: Option<u64>,
    watch: Option<&Bound<'_, PyAny>>,
) -> PyResult<Trained> {
    let data = Arc::clone(&rows.data);
    let builder = Job::builder(schema.checked().name(), Arc::clone(schema.checked()));
    let held_out = || wanted.held_out().map(|share| share.of(data.rows() as u64));
    let job = held_out()
        .and_then(|held_out| wanted.job(builder, data.rows() - held_out as usize))
        .and_then(JobBuilder::build);
    let job = job.map_err(|error| crate::fault::raised(py, &error))?;
    let held_out = job.held_out();
    let phases = Phases::of(&job);
    let mut simulation = Simulation::new(job)
        .title(title)
        .providers(providers)
        .set_aside(held_out);
    if let Some(seed) = seed {
        simulation = simulation.danger_seeded(seed);
    }
    work::run(py, watch, move |teller| {
        simulation.run(&data, &mut teller.watcher(phases))
    })
    .map(Trained::of)
}

impl Wanted {
    fn held_out(&self) -> Result<Share, Error> {
        Share::new(self.holdout).map_err(|e| Error::input(format!("holdout: {e}")))
    }

    /// The job on so many training rows, of which only a private one has to know.
    pub(crate) fn job(&self, builder: JobBuilder, training: usize) -> Result<JobBuilder, Error> {
        let loss: LossKind = named("loss", &self.loss)?;
        let engine: Engine = named("engine", &self.engine)?;
        let held_out = self.held_out()?.get();
        let builder = builder.engine(engine).loss(loss).hold_out(held_out);
        let builder = builder.class_weight(self.class_weight());
        let mut builder = self.settings(builder);
        if let Some(iota) = self.encrypt {
            builder = builder.encrypt_best(iota);
        }
        if let Some(epsilon) = self.publish_epsilon {
            builder = builder.spend(Some(Spending::Total(exact(epsilon)?)));
        }
        match self.epsilon {
            Some(epsilon) => builder.private_within(exact(epsilon)?, self.delta, training),
            None => Ok(builder),
        }
    }

    fn class_weight(&self) -> Option<ClassWeight> {
        let given = self.weights.clone().map(ClassWeight::Given);
        given.or(self.balanced.then_some(ClassWeight::Balanced))
    }

    /// The penalty is scikit-learn's, on standardised columns.
    fn settings(&self, builder: JobBuilder) -> JobBuilder {
        let builder = builder.penalty(self.c);
        let builder = builder.choose_penalty(self.choose.then(PenaltyPath::usual));
        let builder = match self.tol {
            Some(tolerance) => builder.tolerance(tolerance),
            None => builder,
        };
        match self.max_iter {
            Some(iterations) => builder.iterations(iterations),
            None => builder,
        }
    }
}

/// What a job file calls so.
pub(crate) fn named<'n, T: Deserialize<'n>>(what: &str, name: &'n str) -> Result<T, Error> {
    let known: StrDeserializer<'n, serde::de::value::Error> = name.into_deserializer();
    T::deserialize(known).map_err(|e| Error::input(format!("{what}={name:?}: {e}")))
}

/// ε as it is written, without the noise of binary fractions.
pub(crate) fn exact(epsilon: f64) -> Result<Epsilon, Error> {
    epsilon.to_string().parse().map_err(Error::input)
}
