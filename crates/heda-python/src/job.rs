//! Jobs with providers on the network, and what training leaves.

use crate::fault::guarded;
use crate::model::Model;
use crate::simulate::Wanted;
use crate::work;
use heda::Error;
use heda::{Client, JobFile, Phases, ResultFolder, confirmed_schema, report, schema};
use pyo3::prelude::*;
use std::path::PathBuf;

/// What training leaves.
#[pyclass(module = "heda._heda", frozen)]
pub(crate) struct Trained {
    trained: heda::Trained,
}

impl Trained {
    pub(crate) fn of(trained: heda::Trained) -> Self {
        Self { trained }
    }
}

#[pymethods]
impl Trained {
    #[getter]
    fn model(&self) -> Model {
        Model::of(self.trained.model.clone())
    }

    /// The summary as JSON.
    fn to_json(&self, py: Python<'_>) -> PyResult<String> {
        guarded(py, || {
            serde_json::to_string(&self.trained).map_err(Error::bug)
        })
    }

    /// The summary in words.
    #[getter]
    fn text(&self) -> String {
        self.trained.text()
    }

    /// Who learned what, in words.
    #[getter]
    fn privacy(&self) -> String {
        self.trained.summary.who_learned()
    }

    /// The whole report as one page; `command` is what was typed.
    fn to_html(&self, py: Python<'_>, command: &str) -> PyResult<String> {
        guarded(py, || {
            Ok(report::page(
                &self.trained.summary,
                &self.trained.model,
                command,
            ))
        })
    }
}

/// Checks a job file and tells data set, loss, engine, providers and whether it is seeded.
#[pyfunction]
#[pyo3(signature = (path, answers=None))]
pub(crate) fn describe_job(
    py: Python<'_>,
    path: PathBuf,
    answers: Option<PathBuf>,
) -> PyResult<(String, String, String, usize, bool)> {
    guarded(py, || {
        let remote = JobFile::as_invited(&path, answers.as_deref())?;
        let job = remote.job();
        Ok((
            job.data_set().to_owned(),
            job.loss().to_string(),
            job.engine().to_string(),
            remote.providers(),
            remote.is_seeded(),
        ))
    })
}

/// Providers on the network and the data user who trains with them, as `heda.Providers` says it.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Parties {
    identity: PathBuf,
    schema: PathBuf,
    data_set: String,
    /// Name, address and fingerprint of each provider.
    peers: Vec<(String, String, String)>,
    seed: Option<u64>,
    patience: Option<u64>,
}

impl Parties {
    fn client(&self) -> Result<Client, Error> {
        let mut client = Client::new(&self.identity);
        for (name, address, fingerprint) in &self.peers {
            client = client.provider(name, address, fingerprint.parse().map_err(Error::input)?);
        }
        if let Some(seed) = self.seed {
            client = client.danger_seeded(seed);
        }
        match self.patience {
            Some(seconds) => client.patience(seconds).map_err(of_patience),
            None => Ok(client),
        }
    }

    /// The job that an estimator wants; a private one has been told about how many rows there are.
    fn job(&self, wanted: &Wanted, rows: usize, unconfirmed: bool) -> Result<heda::Job, Error> {
        let (text, schema) = confirmed_schema(&self.schema, unconfirmed)?;
        let from_rows = schema::marks(&text) > 0;
        let builder = heda::Job::builder(&self.data_set, schema).bounds_from_rows(from_rows);
        wanted.job(builder, rows)?.build()
    }
}

fn of_patience(error: Error) -> Error {
    Error::input(format!("patience: {error}"))
}

/// Trains with providers on the network, without a job file; `rows` is about how many training rows
/// they have in all, which only a private job has to know.
#[pyfunction]
#[pyo3(signature = (parties, wanted, rows, out, command, resume=false, unconfirmed=false, watch=None))]
#[allow(clippy::too_many_arguments)]
pub(crate) fn train_with(
    py: Python<'_>,
    parties: Parties,
    wanted: Wanted,
    rows: usize,
    out: PathBuf,
    command: String,
    resume: bool,
    unconfirmed: bool,
    watch: Option<&Bound<'_, PyAny>>,
) -> PyResult<Trained> {
    work::wait_for_left(py)?;
    let (client, job) = guarded(py, || {
        Ok((parties.client()?, parties.job(&wanted, rows, unconfirmed)?))
    })?;
    let phases = Phases::of(&job);
    work::run(py, watch, move |teller| {
        let into = ResultFolder {
            resume,
            command: &command,
            ..ResultFolder::new(&out)
        };
        client.train_until(&job, &into, teller.listener(phases), &teller.stop())
    })
    .map(Trained::of)
}

/// Trains with providers on the network; model, report and checkpoint go into a folder.
#[pyfunction]
#[pyo3(signature = (path, out, command, resume=false, unconfirmed=false, answers=None, patience=None, watch=None))]
#[allow(clippy::too_many_arguments)]
pub(crate) fn train(
    py: Python<'_>,
    path: PathBuf,
    out: PathBuf,
    command: String,
    resume: bool,
    unconfirmed: bool,
    answers: Option<PathBuf>,
    patience: Option<u64>,
    watch: Option<&Bound<'_, PyAny>>,
) -> PyResult<Trained> {
    work::wait_for_left(py)?;
    let job = guarded(py, || {
        let job = JobFile::as_invited(&path, answers.as_deref())?;
        job.check_answered()?;
        confirmed_schema(job.schema_path(), unconfirmed)?;
        match patience {
            Some(seconds) => job.with_patience(seconds).map_err(of_patience),
            None => Ok(job),
        }
    })?;
    let phases = Phases::of(job.job());
    work::run(py, watch, move |teller| {
        let into = ResultFolder {
            resume,
            command: &command,
            ..ResultFolder::new(&out)
        };
        job.train_until(&into, teller.listener(phases), &teller.stop())
    })
    .map(Trained::of)
}
