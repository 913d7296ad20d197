//! Columns under differential privacy, for Python.

use crate::fault::guarded;
use crate::schema::Schema;
use crate::table::{Rows, bytes};
use heda::Error;
use heda::publishing::{self, PublishReport, PublishRequest, PublishedValues};
use pyo3::prelude::*;
use pyo3::types::PyByteArray;

/// What is asked for, as a dict.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct PublishingOptions {
    features: Vec<String>,
    epsilon: String,
    weights: Vec<u32>,
    bits: u32,
}

impl PublishingOptions {
    fn request(&self) -> Result<PublishRequest<'_>, Error> {
        Ok(PublishRequest {
            features: &self.features,
            epsilon: self.epsilon.parse().map_err(Error::input)?,
            weights: &self.weights,
            bits: self.bits,
        })
    }
}

/// A column: its name and float64, or its name, int32 and what they stand for.
type PublishedColumn<'py> = (String, Bound<'py, PyByteArray>, Option<Vec<String>>);

fn json(report: &PublishReport) -> Result<String, Error> {
    serde_json::to_string(report).map_err(Error::bug)
}

/// What publishing would give away and buy, as JSON and in words.
#[pyfunction]
pub(crate) fn preview_publishing(
    py: Python<'_>,
    rows: &Rows,
    schema: &Schema,
    asked: PublishingOptions,
) -> PyResult<(String, String)> {
    let found = || {
        let report = publishing::preview(schema.checked(), &rows.data, &asked.request()?)?;
        Ok((json(&report)?, report.in_words()))
    };
    guarded(py, || py.detach(found))
}

/// Publishes columns; beside them what that gave away, as JSON and in words.
#[pyfunction]
pub(crate) fn publish<'py>(
    py: Python<'py>,
    rows: &Rows,
    schema: &Schema,
    asked: PublishingOptions,
) -> PyResult<(Vec<PublishedColumn<'py>>, String, String)> {
    let published = || publishing::publish(schema.checked(), &rows.data, &asked.request()?);
    let published = guarded(py, || py.detach(published))?;
    let column = |(name, values): (&str, PublishedValues)| match values {
        PublishedValues::Numbers(numbers) => {
            let numbers = numbers.into_iter().map(f64::to_ne_bytes);
            (name.to_owned(), bytes(py, numbers), None)
        }
        PublishedValues::Levels { codes, levels } => {
            let codes = codes.into_iter().map(u32::to_ne_bytes);
            (name.to_owned(), bytes(py, codes), Some(levels))
        }
    };
    let columns = published.values().map(column).collect();
    let told = guarded(py, || json(&published.report))?;
    Ok((columns, told, published.report.in_words()))
}
