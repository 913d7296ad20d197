//! Schemas: read, proposed from a table, shown.

use crate::fault::guarded;
use crate::table::Columns;
use heda::Error;
use heda::data::CsvFormat;
use heda::schema::{self, ColumnKind, Proposal};
use pyo3::prelude::*;
use std::path::PathBuf;
use std::sync::Arc;

/// A checked schema and the text it was read from, whose comments may mark what is private.
#[pyclass(module = "heda._heda", frozen)]
#[derive(Clone)]
pub(crate) struct Schema {
    schema: Arc<schema::Schema>,
    text: String,
    assumptions: Vec<String>,
}

impl Schema {
    pub(crate) fn checked(&self) -> &Arc<schema::Schema> {
        &self.schema
    }

    pub(crate) fn of(schema: schema::Schema) -> Self {
        Self {
            text: schema.to_toml(),
            schema: Arc::new(schema),
            assumptions: Vec::new(),
        }
    }

    fn proposed(proposal: Proposal) -> Self {
        Self {
            schema: Arc::new(proposal.schema),
            text: proposal.text,
            assumptions: proposal.assumptions,
        }
    }
}

#[pymethods]
impl Schema {
    /// Reads a schema from text.
    #[staticmethod]
    fn parse(py: Python<'_>, text: String) -> PyResult<Self> {
        guarded(py, || {
            let schema = schema::Schema::parse(&text, "schema").map_err(Error::input)?;
            Ok(Self {
                schema: Arc::new(schema),
                text,
                assumptions: Vec::new(),
            })
        })
    }

    /// Reads a schema file.
    #[staticmethod]
    fn read(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        guarded(py, || {
            let (text, schema) = schema::read(&path)?;
            Ok(Self {
                schema: Arc::new(schema),
                text,
                assumptions: Vec::new(),
            })
        })
    }

    /// Proposes a schema for columns. They are used up.
    #[staticmethod]
    #[pyo3(signature = (columns, name, label=None))]
    fn propose(
        py: Python<'_>,
        mut columns: PyRefMut<'_, Columns>,
        name: &str,
        label: Option<&str>,
    ) -> PyResult<Self> {
        let columns = columns.taken();
        let propose = || schema::propose_columns(&columns, name, label);
        guarded(py, || py.detach(propose)).map(Self::proposed)
    }

    /// Proposes a schema for a CSV or Parquet file.
    #[staticmethod]
    #[pyo3(signature = (path, label=None))]
    fn propose_file(py: Python<'_>, path: PathBuf, label: Option<&str>) -> PyResult<Self> {
        let format = CsvFormat::default();
        let propose = || schema::propose(&path, label, format);
        guarded(py, || py.detach(propose)).map(Self::proposed)
    }

    /// The text with its comments.
    #[getter]
    fn text(&self) -> &str {
        &self.text
    }

    #[getter]
    fn name(&self) -> &str {
        self.schema.name()
    }

    /// What was assumed when it was proposed, a sentence each.
    #[getter]
    fn assumptions(&self) -> Vec<String> {
        self.assumptions.clone()
    }

    /// Lines that still hold what was read from rows.
    #[getter]
    fn unconfirmed(&self) -> usize {
        schema::marks(&self.text)
    }

    /// What parties compare before they begin.
    #[getter]
    fn fingerprint(&self) -> String {
        self.schema.fingerprint().to_string()
    }

    /// The column to be learned.
    #[getter]
    fn label(&self) -> &str {
        self.schema.label().column()
    }

    /// Names of the classes.
    #[getter]
    fn classes(&self) -> Vec<String> {
        self.schema.label().classes()
    }

    /// The values that the label may have.
    #[getter]
    fn label_values(&self) -> Vec<String> {
        self.schema.label().values().to_vec()
    }

    /// Name, kind, bounds and levels of each column.
    #[getter]
    #[allow(clippy::type_complexity)]
    fn columns(
        &self,
    ) -> Vec<(
        String,
        &'static str,
        Option<(f64, f64)>,
        Option<Vec<String>>,
    )> {
        let columns = self.schema.columns().iter();
        let described = columns.map(|column| {
            let (kind, bounds) = match column.kind() {
                ColumnKind::Numeric { bounds, dates, .. } => {
                    let kind = if *dates { "date" } else { "numeric" };
                    (kind, Some((bounds.lower(), bounds.upper())))
                }
                ColumnKind::Levels { ordered: true, .. } => ("ordinal", None),
                ColumnKind::Levels { .. } => ("categorical", None),
            };
            let levels = column.levels().map(<[String]>::to_vec);
            (column.name().to_owned(), kind, bounds, levels)
        });
        described.collect()
    }

    /// Names of the columns of an encoded row.
    #[getter]
    fn encoded(&self) -> Vec<String> {
        let columns = self.schema.encoded_columns().into_iter();
        columns.map(|column| column.name).collect()
    }
}
