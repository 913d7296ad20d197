//! Long work on a thread of its own: the interpreter is free meanwhile, signals are heard, and
//! progress is told on the thread that called.

use crate::fault::{defect, raised};
use heda::system::{StopSignal, StopSwitch};
use heda::{Error, Listener, Phases, Progress};
use pyo3::prelude::*;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How often signals are looked at.
const POLL: Duration = Duration::from_millis(50);
/// How long work may take to stop in good order before it is left to end alone.
const GRACE: Duration = Duration::from_millis(600);

/// Work that was asked to stop and has not ended yet: it may still hold a folder or a port.
static LEFT: Mutex<Vec<JoinHandle<()>>> = Mutex::new(Vec::new());

/// What work says while it goes on: `watch(event, words, done, at_most, norm)`.
#[derive(Debug)]
pub(crate) struct News {
    event: &'static str,
    words: String,
    done: u32,
    at_most: u32,
    norm: Option<f64>,
}

enum Told<T> {
    News(News),
    Done(Result<T, Error>),
}

/// What work holds to talk to whoever waits for it.
pub(crate) struct Teller {
    tell: Arc<dyn Fn(News) + Send + Sync>,
    stop: StopSignal,
}

impl Teller {
    /// Turned when the work is to end.
    pub(crate) fn stop(&self) -> StopSignal {
        self.stop.clone()
    }

    /// Passes on what happens in a job of this process, but no phase in which nothing does.
    pub(crate) fn watcher(&self, phases: Phases) -> impl FnMut(Progress) -> ControlFlow<()> + '_ {
        move |progress| {
            tell(&*self.tell, phases, progress);
            match self.stop.is_set() {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        }
    }

    /// Passes on what happens in a job on the network, likewise.
    pub(crate) fn listener(&self, phases: Phases) -> Listener {
        let to = Arc::clone(&self.tell);
        Arc::new(move |progress| tell(&*to, phases, progress))
    }
}

fn tell(to: &dyn Fn(News), phases: Phases, progress: Progress) {
    match progress {
        Progress::Phase(name) if phases.words(name).is_none() => {}
        progress => to(news(progress)),
    }
}

fn news(progress: Progress) -> News {
    match progress {
        Progress::Reached(provider) => said("reached", &provider),
        Progress::Connected => said("connected", ""),
        Progress::Retry {
            provider, cause, ..
        } => said("retry", &format!("{provider}: {cause}")),
        Progress::Seeded(provider) => said("seeded", &provider),
        Progress::Phase(name) => said("phase", name),
        Progress::CountsOn { agreed, asked } => said(
            "counts on",
            &format!("{agreed} other providers of {asked} asked for"),
        ),
        Progress::LostAnswer(_) => said("lost answer", "the job goes on without it"),
        Progress::Split(reason) => said("split", &reason),
        Progress::Iteration {
            done,
            at_most,
            norm,
        } => iteration(done, at_most, norm),
        Progress::Lost { provider, cause } => said("lost", &format!("{provider}: {cause}")),
        Progress::Ledger(words) => said("ledger", &words),
        Progress::LeftBehind(provider) => said("left behind", &provider),
        // What this package does not know yet is told by its own words.
        other => said("progress", &format!("{other:?}")),
    }
}

fn said(event: &'static str, words: &str) -> News {
    News {
        event,
        words: words.to_owned(),
        done: 0,
        at_most: 0,
        norm: None,
    }
}

fn iteration(done: u32, at_most: u32, norm: Option<f64>) -> News {
    News {
        event: "iteration",
        words: String::new(),
        done,
        at_most,
        norm,
    }
}

/// Does `work` on a thread of its own and waits for it. Ctrl-C, or an exception of `watch`, asks it
/// to stop; if that takes too long it is left to end alone.
pub(crate) fn run<T: Send + 'static>(
    py: Python<'_>,
    watch: Option<&Bound<'_, PyAny>>,
    work: impl FnOnce(&Teller) -> Result<T, Error> + Send + 'static,
) -> PyResult<T> {
    let (sender, mut receiver) = channel();
    let (switch, stop) = StopSwitch::new();
    let thread = start(py, sender, stop, work)?;
    let mut ending: Option<(PyErr, Instant)> = None;
    loop {
        let told;
        (told, receiver) = py.detach(|| wait(receiver));
        let wrong = match told {
            Ok(Told::Done(done)) => {
                let _ = py.detach(|| thread.join());
                return match ending {
                    Some((error, _)) => Err(error),
                    None => done.map_err(|failure| raised(py, &failure)),
                };
            }
            Ok(Told::News(news)) if ending.is_none() => show(watch, news),
            // A thread that ends without a word cannot be: its last act is to say what it made.
            Err(RecvTimeoutError::Disconnected) => Err(raised(py, &defect(&"a thread was lost"))),
            _ => Ok(()),
        };
        if ending.is_none()
            && let Err(error) = wrong.and_then(|()| py.check_signals())
        {
            switch.stop();
            ending = Some((error, Instant::now()));
        }
        match ending {
            Some((error, since)) if since.elapsed() > GRACE => {
                left().push(thread);
                return Err(error);
            }
            _ => {}
        }
    }
}

fn start<T: Send + 'static>(
    py: Python<'_>,
    sender: Sender<Told<T>>,
    stop: StopSignal,
    work: impl FnOnce(&Teller) -> Result<T, Error> + Send + 'static,
) -> PyResult<JoinHandle<()>> {
    let thread = std::thread::Builder::new().name("heda".to_owned());
    let body = move || {
        let news = sender.clone();
        let teller = Teller {
            // Whoever waited may have gone.
            tell: Arc::new(move |told| drop(news.send(Told::News(told)))),
            stop,
        };
        let done = catch_unwind(AssertUnwindSafe(|| work(&teller)));
        let done = done.unwrap_or_else(|panic| Err(defect(panic.as_ref())));
        drop(sender.send(Told::Done(done)));
    };
    let started = thread.spawn(body);
    started.map_err(|e| raised(py, &Error::new(heda::ErrorKind::Bug, e)))
}

/// The receiver goes along: it may be with one thread only.
fn wait<T>(receiver: Receiver<Told<T>>) -> (Result<Told<T>, RecvTimeoutError>, Receiver<Told<T>>) {
    (receiver.recv_timeout(POLL), receiver)
}

fn show(watch: Option<&Bound<'_, PyAny>>, news: News) -> PyResult<()> {
    let Some(watch) = watch else { return Ok(()) };
    let News {
        event,
        words,
        done,
        at_most,
        norm,
    } = news;
    watch.call1((event, words, done, at_most, norm)).map(drop)
}

fn left() -> std::sync::MutexGuard<'static, Vec<JoinHandle<()>>> {
    // A list of threads is good, whatever happened to who held it.
    LEFT.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits for work that was interrupted and is still ending.
pub(crate) fn wait_for_left(py: Python<'_>) -> PyResult<()> {
    loop {
        left().retain(|thread| !thread.is_finished());
        if left().is_empty() {
            return Ok(());
        }
        py.detach(|| std::thread::sleep(POLL));
        py.check_signals()?;
    }
}
