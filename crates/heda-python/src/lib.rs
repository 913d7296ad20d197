//! Heda for Python: the compiled part of the package `heda`, over the same library as the command
//! line. What users see is the typed package in `python/heda`; `python/heda/_heda.pyi` says what is
//! offered here.
//!
//! Long work runs on threads of its own while the interpreter is free; signals are looked at in
//! between. A panic becomes an exception. Rows come in by the buffer protocol: no Python object a cell.

mod fault;
mod job;
mod logs;
mod model;
mod planning;
mod publishing;
mod roles;
mod schema;
mod simulate;
mod table;
mod work;

use pyo3::prelude::*;

/// The compiled part of the package `heda`.
#[pymodule(name = "_heda")]
fn offered(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add("__version__", env!("CARGO_PKG_VERSION"))?;
    m.add_class::<job::Trained>()?;
    m.add_class::<model::Model>()?;
    m.add_class::<roles::Daemon>()?;
    m.add_class::<schema::Schema>()?;
    m.add_class::<table::Columns>()?;
    m.add_class::<table::Rows>()?;
    for function in [
        wrap_pyfunction!(fault::danger_panic, m)?,
        wrap_pyfunction!(job::describe_job, m)?,
        wrap_pyfunction!(job::train, m)?,
        wrap_pyfunction!(job::train_with, m)?,
        wrap_pyfunction!(logs::next_line, m)?,
        wrap_pyfunction!(planning::plan_job, m)?,
        wrap_pyfunction!(planning::plan_schema, m)?,
        wrap_pyfunction!(publishing::preview_publishing, m)?,
        wrap_pyfunction!(publishing::publish, m)?,
        wrap_pyfunction!(roles::budget, m)?,
        wrap_pyfunction!(roles::check, m)?,
        wrap_pyfunction!(roles::create_identity, m)?,
        wrap_pyfunction!(roles::preview, m)?,
        wrap_pyfunction!(roles::score, m)?,
        wrap_pyfunction!(roles::status, m)?,
        wrap_pyfunction!(simulate::simulate, m)?,
    ] {
        m.add_function(function)?;
    }
    Ok(())
}
