//! Jobs with providers on the network, and what training leaves.

use crate::fault::guarded;
use crate::model::Model;
use crate::work;
use heda::failure::{Failure, Kind};
use heda::{DataUser, Phases, RemoteJob, ResultFolder, confirmed_schema, report};
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
            serde_json::to_string(&self.trained).map_err(|e| Failure::new(Kind::Bug, e))
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
        let remote = RemoteJob::as_invited(&path, answers.as_deref())?;
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

/// Permissions of model and report: their owner reads them.
const MODE: u32 = 0o600;

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
        let job = RemoteJob::as_invited(&path, answers.as_deref())?;
        job.check_answered()?;
        confirmed_schema(job.schema_path(), unconfirmed)?;
        match patience {
            Some(seconds) => {
                (job.with_patience(seconds)).map_err(|e| Failure::input(format!("patience: {e}")))
            }
            None => Ok(job),
        }
    })?;
    let phases = Phases::of(job.job());
    work::run(py, watch, move |teller| {
        let into = ResultFolder {
            folder: &out,
            resume,
            command: &command,
            mode: MODE,
        };
        DataUser::train_remotely_until(&job, &into, teller.listener(phases), &teller.stop())
    })
    .map(Trained::of)
}
