//! Models: loaded, shown, predicted with.

use crate::fault::guarded;
use crate::schema::Schema;
use crate::table::{Columns, bytes};
use heda::{Error, TableReader, model};
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes};
use std::path::PathBuf;
use std::sync::Arc;

/// A trained model.
#[pyclass(module = "heda._heda", frozen)]
pub(crate) struct Model {
    model: Arc<model::Model>,
}

impl Model {
    pub(crate) fn of(model: model::Model) -> Self {
        Self {
            model: Arc::new(model),
        }
    }
}

/// Classes as int32 (−1 where nothing can be said), scores and, if the loss models them,
/// probabilities as float64, row by row.
type Predicted<'py> = (
    Bound<'py, PyByteArray>,
    Bound<'py, PyByteArray>,
    Option<Bound<'py, PyByteArray>>,
);

#[pymethods]
impl Model {
    /// Reads a model file.
    #[staticmethod]
    fn read(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        guarded(py, || model::read(&path).map(Self::of))
    }

    /// Reads the text of a model file.
    #[staticmethod]
    fn parse(py: Python<'_>, text: &str) -> PyResult<Self> {
        guarded(py, || {
            let model = model::Model::from_json(text, "model");
            model.map(Self::of).map_err(Error::input)
        })
    }

    /// The text of its file.
    fn to_json(&self) -> String {
        self.model.to_json()
    }

    /// The model as an ONNX file.
    fn to_onnx<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &model::to_onnx(&self.model))
    }

    #[getter]
    fn schema(&self) -> Schema {
        Schema::of(self.model.schema().clone())
    }

    #[getter]
    fn loss(&self) -> String {
        self.model.loss().to_string()
    }

    #[getter]
    fn classes(&self) -> Vec<String> {
        self.model.classes()
    }

    /// Intercept and coefficients of each classifier, in the units of the table.
    #[getter]
    fn coefficients(&self) -> Vec<(f64, Vec<f64>)> {
        let classifiers = self.model.classifiers().iter();
        let original = classifiers.map(|classifier| {
            let original = &classifier.original;
            let values = original.coefficients.iter();
            (
                original.intercept,
                values.map(|named| named.value).collect(),
            )
        });
        original.collect()
    }

    /// Predicts rows. The columns are used up.
    fn predict<'py>(
        &self,
        py: Python<'py>,
        mut columns: PyRefMut<'_, Columns>,
    ) -> PyResult<Predicted<'py>> {
        let columns = columns.taken();
        let model = &self.model;
        let all = guarded(py, || {
            py.detach(|| {
                let read = TableReader::new(model.schema()).read_rows_columns(&columns, "rows");
                let (rows, _) = read.map_err(Error::input)?;
                Ok(model.predict_rows(&rows))
            })
        })?;
        let mut each: Vec<Option<&model::Prediction>> = vec![None; columns.rows()];
        for (&number, prediction) in all.numbers.iter().zip(&all.predictions) {
            each[number as usize - 1] = Some(prediction);
        }
        let width = self.model.classifiers().len();
        let classes = self.model.classes().len();
        let class = |p: &Option<&model::Prediction>| p.map_or(-1, |p| p.class as i32);
        let numbers = |values: Option<&[f64]>, width: usize| match values {
            Some(values) => values.to_vec(),
            None => vec![f64::NAN; width],
        };
        let scores = each
            .iter()
            .flat_map(|p| numbers(p.map(|p| &p.scores[..]), width));
        let has_probability =
            !self.model.is_numeric() && self.model.loss().loss().probability(0.0).is_some();
        let probabilities = has_probability.then(|| {
            let shown = each
                .iter()
                .flat_map(|p| numbers(p.and_then(|p| p.probabilities.as_deref()), classes));
            bytes(py, shown.map(f64::to_ne_bytes))
        });
        Ok((
            bytes(py, each.iter().map(class).map(i32::to_ne_bytes)),
            bytes(py, scores.map(f64::to_ne_bytes)),
            probabilities,
        ))
    }
}
