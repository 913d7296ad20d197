//! The other roles: whoever guards data, makes an identity or scores features.

use crate::fault::{guarded, raised};
use crate::table::Rows;
use heda::forecast::ScoreReport;
use heda::system::StopSwitch;
use heda::{Error, ErrorKind};
use heda::{Score, confirmed_schema, identity, provider};
use pyo3::prelude::*;
use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How often signals are looked at while a daemon starts or stops.
const POLL: Duration = Duration::from_millis(50);

/// A provider that serves data users from a thread of this process.
#[pyclass(module = "heda._heda", frozen)]
pub(crate) struct Daemon {
    address: SocketAddr,
    switch: StopSwitch,
    thread: Mutex<Option<JoinHandle<Result<(), Error>>>>,
}

#[pymethods]
impl Daemon {
    /// Serves by a configuration; comes back when data users can connect.
    #[new]
    #[pyo3(signature = (config, unconfirmed=false))]
    fn new(py: Python<'_>, config: PathBuf, unconfirmed: bool) -> PyResult<Self> {
        let config = guarded(py, || {
            let config = provider::load(&config)?;
            confirmed_schema(&config.schema, unconfirmed)?;
            Ok(config)
        })?;
        crate::logs::start();
        let (switch, stop) = StopSwitch::new();
        let (ready, mut listening) = channel();
        let thread = std::thread::Builder::new().name("heda-provider".to_owned());
        let body = move || {
            let serve = || {
                heda::Provider::serve_until(
                    &config,
                    |address| {
                        // Whoever waited for it may have gone.
                        let _ = ready.send(address);
                    },
                    stop,
                )
            };
            let served = catch_unwind(AssertUnwindSafe(serve));
            served.unwrap_or_else(|panic| Err(crate::fault::defect(panic.as_ref())))
        };
        let thread = thread.spawn(body);
        let thread = thread.map_err(|e| raised(py, &Error::bug(e)))?;
        loop {
            let heard;
            (heard, listening) = py.detach(|| wait(listening));
            match heard {
                Ok(address) => {
                    return Ok(Self {
                        address,
                        switch,
                        thread: Mutex::new(Some(thread)),
                    });
                }
                Err(RecvTimeoutError::Timeout) => {
                    py.check_signals().inspect_err(|_| switch.stop())?
                }
                Err(RecvTimeoutError::Disconnected) => {
                    let ended = py.detach(|| thread.join());
                    let ended =
                        ended.unwrap_or_else(|panic| Err(crate::fault::defect(panic.as_ref())));
                    let why = ended
                        .err()
                        .unwrap_or_else(|| Error::input("it ended at once"));
                    return Err(raised(py, &why));
                }
            }
        }
    }

    /// Where data users can connect.
    #[getter]
    fn address(&self) -> String {
        self.address.to_string()
    }

    /// Whether it still serves.
    #[getter]
    fn is_running(&self) -> bool {
        let thread = self.thread();
        thread.as_ref().is_some_and(|thread| !thread.is_finished())
    }

    /// Asks it to end and waits for that, at most so many seconds.
    fn stop(&self, py: Python<'_>, seconds: f64) -> PyResult<()> {
        self.switch.stop();
        let began = Instant::now();
        while self.is_running() {
            if began.elapsed().as_secs_f64() > seconds {
                let words = "the provider has not ended yet: a job is under way; call stop again";
                return Err(raised(py, &Error::new(ErrorKind::Resumable, words)));
            }
            py.detach(|| std::thread::sleep(POLL));
            py.check_signals()?;
        }
        let Some(thread) = self.thread().take() else {
            return Ok(());
        };
        let ended = thread.join();
        let ended = ended.unwrap_or_else(|panic| Err(crate::fault::defect(panic.as_ref())));
        ended.map_err(|failure| raised(py, &failure))
    }
}

impl Daemon {
    fn thread(&self) -> std::sync::MutexGuard<'_, Option<JoinHandle<Result<(), Error>>>> {
        // The handle is good, whatever happened to who held it.
        self.thread.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Daemon {
    /// A provider that nobody holds any more ends by itself.
    fn drop(&mut self) {
        self.switch.stop();
    }
}

fn wait<T>(receiver: Receiver<T>) -> (Result<T, RecvTimeoutError>, Receiver<T>) {
    (receiver.recv_timeout(POLL), receiver)
}

fn json(value: &impl serde::Serialize) -> Result<String, Error> {
    serde_json::to_string(value).map_err(Error::bug)
}

/// What is right and wrong with a configuration, as JSON.
#[pyfunction]
pub(crate) fn check(py: Python<'_>, config: PathBuf) -> PyResult<String> {
    let found = || json(&provider::check(&provider::load(&config)?));
    guarded(py, || py.detach(found))
}

/// What a job would cost and reveal, and why it would be refused.
#[pyfunction]
pub(crate) fn preview(
    py: Python<'_>,
    config: PathBuf,
    job: PathBuf,
    peer: &str,
) -> PyResult<(String, Option<String>)> {
    let preview = || provider::preview(&provider::load(&config)?, &job, None, peer);
    let preview = guarded(py, || py.detach(preview))?;
    let refusal = preview.refusal.map(|refusal| refusal.to_string());
    Ok((preview.words, refusal))
}

/// Jobs and refusals in a provider's ledger, as JSON.
#[pyfunction]
pub(crate) fn status(py: Python<'_>, config: PathBuf) -> PyResult<String> {
    let read = || json(&provider::status(&provider::load(&config)?)?);
    guarded(py, || py.detach(read))
}

/// Releases and budget in a provider's ledger, as JSON.
#[pyfunction]
pub(crate) fn budget(py: Python<'_>, config: PathBuf) -> PyResult<String> {
    let read = || json(&provider::budget(&provider::load(&config)?)?);
    guarded(py, || py.detach(read))
}

/// Makes key and certificate in a folder; the fingerprint is for peers.
#[pyfunction]
#[pyo3(signature = (name, folder, days=identity::DAYS))]
pub(crate) fn create_identity(
    py: Python<'_>,
    name: &str,
    folder: PathBuf,
    days: u32,
) -> PyResult<String> {
    guarded(py, || {
        let made = identity::create(name, &folder, days)?;
        Ok(made.fingerprint().to_string())
    })
}

/// Scores the features of encoded rows, as JSON.
#[pyfunction]
pub(crate) fn score(
    py: Python<'_>,
    rows: &Rows,
    name: String,
    method: &str,
    seed: u64,
) -> PyResult<String> {
    let data = &rows.data;
    let score = || {
        let method: Score = method.parse().map_err(Error::input)?;
        json(&ScoreReport::new(name, data, method, seed)?)
    };
    guarded(py, || py.detach(score))
}
