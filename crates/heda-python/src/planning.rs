//! What a job will cost, for Python.

use crate::schema::Schema;
use crate::simulate::exact;
use crate::work;
use heda::Error;
use heda::JobFile;
use heda::forecast::Subject;
use pyo3::prelude::*;
use std::path::PathBuf;

/// The plan of a job with providers that are not known yet, as JSON and in words.
#[pyfunction]
pub(crate) fn plan_schema(
    py: Python<'_>,
    schema: &Schema,
    rows: usize,
    providers: usize,
    encrypt: Option<usize>,
    iterations: u32,
    private: Option<(f64, Option<f64>)>,
) -> PyResult<(String, String)> {
    let schema = schema.checked().clone();
    told(py, move || match private {
        None => Subject::of_schema(schema, rows, providers, encrypt, (iterations, 1)),
        Some((epsilon, delta)) => {
            Subject::of_promise(schema, rows, providers, (exact(epsilon)?, delta))
        }
    })
}

/// The plan of a job file, also as `heda invite` wrote it.
#[pyfunction]
#[pyo3(signature = (path, answers, rows, providers))]
pub(crate) fn plan_job(
    py: Python<'_>,
    path: PathBuf,
    answers: Option<PathBuf>,
    rows: Option<usize>,
    providers: usize,
) -> PyResult<(String, String)> {
    told(py, move || {
        let job = JobFile::as_invited(&path, answers.as_deref())?;
        Subject::of_job(&job, rows, providers)
    })
}

fn told(
    py: Python<'_>,
    subject: impl FnOnce() -> Result<Subject, Error> + Send + 'static,
) -> PyResult<(String, String)> {
    work::run(py, None, move |_| {
        let plan = subject()?.forecast()?;
        let json = serde_json::to_string(&plan).map_err(Error::bug)?;
        Ok((json, plan.in_words()))
    })
}
