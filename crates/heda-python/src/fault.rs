//! Failures as the exceptions of `heda._errors`, and panics as one of them.

use heda::Failure;
use heda::failure::Kind;
use pyo3::prelude::*;
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The exception of a failure: its class says whose turn it is.
pub(crate) fn raised(py: Python<'_>, failure: &Failure) -> PyErr {
    let class = match failure.kind() {
        Kind::Input => "InputError",
        Kind::Refused => "RefusedError",
        Kind::Peer => "PeerError",
        Kind::Resumable => "Interrupted",
        Kind::Bug => "HedaBug",
    };
    exception(py, class, &in_python(&failure.to_string()))
}

/// Bad input, the most common case.
pub(crate) fn input(py: Python<'_>, words: impl std::fmt::Display) -> PyErr {
    raised(py, &Failure::input(words))
}

/// What a panic leaves behind.
pub(crate) fn defect(panic: &(dyn Any + Send)) -> Failure {
    let words = panic
        .downcast_ref::<&str>()
        .map(|words| (*words).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "no words".to_owned());
    let words = format!(
        "a defect of heda ({words}); nothing of this run can be used. Please report it with this \
         message and the call that led to it"
    );
    Failure::new(Kind::Bug, words)
}

/// Does something short that holds the interpreter; a panic in it is an exception.
pub(crate) fn guarded<T>(py: Python<'_>, work: impl FnOnce() -> Result<T, Failure>) -> PyResult<T> {
    let done = catch_unwind(AssertUnwindSafe(work));
    let done = done.unwrap_or_else(|panic| Err(defect(panic.as_ref())));
    done.map_err(|failure| raised(py, &failure))
}

/// The remedies of the command line in the words of Python.
fn in_python(words: &str) -> String {
    const SAID: [(&str, &str); 6] = [
        ("start without --resume", "call without resume=True"),
        ("--resume", "resume=True"),
        ("another --out", "another out="),
        ("say --unconfirmed", "pass unconfirmed=True"),
        ("`heda train`", "job"),
        ("`heda init`", "heda.identity.create"),
    ];
    SAID.iter().fold(words.to_owned(), |words, (from, to)| {
        words.replace(from, to)
    })
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
    let work = || -> Result<(), Failure> { panic!("asked to panic") };
    match on_a_thread {
        true => crate::work::run(py, None, move |_| work()),
        false => guarded(py, work),
    }
}
