//! Errors as the exceptions of `heda._errors`, and panics as one of them.

use heda::{Error, ErrorKind, Remedy};
use pyo3::prelude::*;
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The exception of a failure: its class says whose turn it is.
pub(crate) fn raised(py: Python<'_>, failure: &Error) -> PyErr {
    let class = match failure.kind() {
        ErrorKind::Input => "InputError",
        ErrorKind::Refused => "RefusedError",
        ErrorKind::Peer => "PeerError",
        ErrorKind::Resumable => "Interrupted",
        _ => "HedaBug",
    };
    exception(py, class, &in_python(failure))
}

/// Bad input, the most common case.
pub(crate) fn input(py: Python<'_>, words: impl std::fmt::Display) -> PyErr {
    raised(py, &Error::input(words.to_string()))
}

/// What a panic leaves behind.
pub(crate) fn defect(panic: &(dyn Any + Send)) -> Error {
    let words = panic
        .downcast_ref::<&str>()
        .map(|words| (*words).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "no words".to_owned());
    let words = format!(
        "a defect of heda ({words}); nothing of this run can be used. Please report it with this \
         message and the call that led to it"
    );
    Error::bug(words)
}

/// Does something short that holds the interpreter; a panic in it is an exception.
pub(crate) fn guarded<T>(py: Python<'_>, work: impl FnOnce() -> Result<T, Error>) -> PyResult<T> {
    let done = catch_unwind(AssertUnwindSafe(work));
    let done = done.unwrap_or_else(|panic| Err(defect(panic.as_ref())));
    done.map_err(|failure| raised(py, &failure))
}

/// What happened, and what to do in the words of Python.
fn in_python(error: &Error) -> String {
    let remedy = match error.remedy() {
        Some(Remedy::Resume) => "put this right and call again with resume=True",
        Some(Remedy::ResumeOrOtherFolder) => "go on with resume=True, or choose another out=",
        Some(Remedy::StartAfresh) => "call without resume=True",
        Some(Remedy::StartElsewhere) => "start afresh in another out=",
        Some(Remedy::WaitOrOtherFolder) => "wait for its end, or choose another out=",
        Some(Remedy::ConfirmSchema) => {
            "replace it by what is publicly known and delete the marks, or pass unconfirmed=True"
        }
        Some(Remedy::StateRows) => "pass rows=",
        _ => return error.to_string(),
    };
    format!("{}; {remedy}", error.what())
}

fn exception(py: Python<'_>, class: &str, words: &str) -> PyErr {
    let made = py
        .import("heda._errors")
        .and_then(|module| module.getattr(class))
        .and_then(|class| class.call1((words,)));
    match made {
        Ok(value) => PyErr::from_value(value),
        Err(error) => error,
    }
}

/// Panics, for the test that a panic becomes an exception.
#[pyfunction]
pub(crate) fn danger_panic(py: Python<'_>, on_a_thread: bool) -> PyResult<()> {
    let work = || -> Result<(), Error> { panic!("asked to panic") };
    match on_a_thread {
        true => crate::work::run(py, None, move |_| work()),
        false => guarded(py, work),
    }
}
