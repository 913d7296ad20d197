//! Log lines of the library, handed to Python's `logging` by a thread of the package: whoever logs
//! here never waits for the interpreter.

use pyo3::prelude::*;
use std::fmt::Write;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::{Context, SubscriberExt};
use tracing_subscriber::util::SubscriberInitExt;

/// Lines that wait for the package; more are dropped.
const QUEUE: usize = 1024;
/// Longer lines are cut: peers cause some of them.
const LINE_LIMIT: usize = 4096;

type LogLine = (u8, String, String);

static LINES: OnceLock<Mutex<Receiver<LogLine>>> = OnceLock::new();

/// Begins to collect lines; a second call changes nothing.
pub(crate) fn start() {
    LINES.get_or_init(|| {
        let (sender, receiver) = sync_channel(QUEUE);
        let shown: Targets = "debug,rustls=warn".parse().unwrap_or_default();
        let logs = tracing_subscriber::registry().with(shown);
        // Somebody else in this process may collect already: then there is nothing for us.
        let _ = logs.with(Outlet(sender)).try_init();
        Mutex::new(receiver)
    });
}

struct Outlet(SyncSender<LogLine>);

impl<S: Subscriber> Layer<S> for Outlet {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut words = Words(String::new());
        event.record(&mut words);
        let mut words = words.0;
        if words.len() > LINE_LIMIT {
            let end = (0..=LINE_LIMIT)
                .rev()
                .find(|&at| words.is_char_boundary(at));
            words.truncate(end.unwrap_or(0));
        }
        let level = match *event.metadata().level() {
            Level::ERROR => 40,
            Level::WARN => 30,
            Level::INFO => 20,
            _ => 10,
        };
        let target = event.metadata().target().replace("::", ".");
        // A reader that does not read costs lines and nothing else.
        let _ = self.0.try_send((level, target, words));
    }
}

/// The message first, then `name=value`.
struct Words(String);

impl Visit for Words {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        // Writing to a string cannot fail.
        let _ = match field.name() {
            "message" => {
                let rest = std::mem::take(&mut self.0);
                write!(self.0, "{value:?}{rest}")
            }
            name => write!(self.0, " {name}={value:?}"),
        };
    }
}

/// The next line as level of `logging`, target and words; nothing after so many seconds.
#[pyfunction]
pub(crate) fn next_line(py: Python<'_>, seconds: f64) -> Option<LogLine> {
    start();
    py.detach(|| {
        let lines = LINES.get()?.lock().unwrap_or_else(PoisonError::into_inner);
        let patience = Duration::try_from_secs_f64(seconds).unwrap_or_default();
        lines.recv_timeout(patience).ok()
    })
}
