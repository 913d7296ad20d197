//! Tables from Python: columns come in whole, by the buffer protocol, and leave as encoded rows.

use crate::fault::{guarded, input};
use crate::schema::Schema;
use heda::{Dataset, Error, TableReader, data};
use pyo3::buffer::{Element, PyBuffer};
use pyo3::prelude::*;
use pyo3::types::PyByteArray;
use std::sync::Arc;

/// Columns of a table, to be encoded or predicted on.
#[pyclass(module = "heda._heda")]
#[derive(Default)]
pub(crate) struct Columns {
    columns: data::Columns,
}

/// Rows that a schema has encoded.
#[pyclass(module = "heda._heda", frozen)]
pub(crate) struct Rows {
    pub(crate) data: Arc<Dataset>,
    warnings: Vec<String>,
}

#[pymethods]
impl Columns {
    #[new]
    fn new() -> Self {
        Self::default()
    }

    /// A column of numbers: a one-dimensional buffer of float64, NaN where a value is missing.
    fn add_numbers(&mut self, name: &str, values: &Bound<'_, PyAny>) -> PyResult<()> {
        let numbers = vector::<f64>(values, name)?;
        self.add(name, data::Values::Numbers(numbers));
        Ok(())
    }

    /// A column of categories: a one-dimensional buffer of int32, positions in `levels`, negative
    /// where a value is missing.
    fn add_codes(
        &mut self,
        name: &str,
        codes: &Bound<'_, PyAny>,
        levels: Vec<String>,
    ) -> PyResult<()> {
        let codes = vector::<i32>(codes, name)?;
        let codes = codes.into_iter();
        let codes = codes.map(|code| u32::try_from(code).unwrap_or(u32::MAX));
        let codes = codes.collect();
        self.add(name, data::Values::Codes { codes, levels });
        Ok(())
    }

    /// The columns as encoded rows. They are used up: their room is free afterwards.
    fn encode(&mut self, py: Python<'_>, schema: &Schema, name: &str) -> PyResult<Rows> {
        let columns = std::mem::take(&mut self.columns);
        let read = || {
            let read = TableReader::new(schema.checked()).read_columns(&columns, name);
            read.map_err(Error::input)
        };
        let (data, report) = guarded(py, || py.detach(read))?;
        Ok(Rows {
            data: Arc::new(data),
            warnings: report.warnings(),
        })
    }

    fn __len__(&self) -> usize {
        self.columns.rows()
    }
}

impl Columns {
    /// What was collected, for work that goes on without this value.
    pub(crate) fn taken(&mut self) -> data::Columns {
        std::mem::take(&mut self.columns)
    }

    fn add(&mut self, name: &str, values: data::Values) {
        let columns = std::mem::take(&mut self.columns);
        self.columns = columns.with(name, values);
    }
}

#[pymethods]
impl Rows {
    /// Number of encoded columns.
    #[getter]
    fn width(&self) -> usize {
        self.data.width()
    }

    /// What happened to rows on the way, a sentence each.
    #[getter]
    fn warnings(&self) -> Vec<String> {
        self.warnings.clone()
    }

    fn __len__(&self) -> usize {
        self.data.rows()
    }
}

/// Native numbers as bytes, for `numpy.frombuffer`.
pub(crate) fn bytes<'py, const N: usize>(
    py: Python<'py>,
    numbers: impl Iterator<Item = [u8; N]>,
) -> Bound<'py, PyByteArray> {
    let bytes: Vec<u8> = numbers.flatten().collect();
    PyByteArray::new(py, &bytes)
}

/// The numbers of a buffer with one dimension.
fn vector<T: Element + Copy>(values: &Bound<'_, PyAny>, name: &str) -> PyResult<Vec<T>> {
    let py = values.py();
    let buffer = PyBuffer::<T>::get(values)
        .map_err(|e| input(py, format!("column {name}: no buffer of numbers ({e})")))?;
    match buffer.dimensions() {
        1 => buffer.to_vec(py),
        many => Err(input(
            py,
            format!("column {name}: {many} dimensions, not one"),
        )),
    }
}
