//! Structured logs on stderr. What is logged is chosen where it is logged: never a private value.
//!
//! A log that cannot be written must not stop the work: a full disk, a closed pipe or a reader that
//! does not read cost lines, which are counted, and nothing else. Peers cause lines and some of
//! their words stand in them, so lines are limited in number and length.

use std::io::Write;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, channel, sync_channel};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

/// What is shown, from the least to the most. TLS would log records at its finer levels.
const LEVELS: [&str; 4] = [
    "warn",
    "info,rustls=warn",
    "debug,rustls=info",
    "trace,rustls=debug",
];
/// Longer lines are cut.
const LINE_LIMIT: usize = 4096;
/// Lines that wait for a reader.
const QUEUE: usize = 1024;
/// Lines in ten seconds, whatever they are about.
const LINES: u32 = 2000;
/// How long the end of the program waits for the last lines to be written.
const FLUSH_PATIENCE: Duration = Duration::from_secs(1);

static DROPPED: AtomicU64 = AtomicU64::new(0);
static OUTLET: OnceLock<SyncSender<LogTask>> = OnceLock::new();
static PACE: Throttle = Throttle::new(LINES);

/// What the writing thread does.
enum LogTask {
    Write(Vec<u8>),
    Flush(std::sync::mpsc::Sender<()>),
}

/// How log lines look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object a line, for machines.
    Json,
}

/// What is shown for this verbosity: 0 is usual, less is warnings only, 1 and 2 are more.
fn shown(verbosity: i8) -> Targets {
    let place = verbosity.clamp(-1, 2) + 1;
    LEVELS[place as usize].parse().unwrap_or_default()
}

/// Starts logging to stderr. `verbosity` is 0 for what is usual, -1 for warnings only, 1 and 2 for
/// more; the variable `HEDA_LOG` takes precedence. Called once, by the program, which calls
/// [`finish`] at its end.
pub fn start(format: LogFormat, verbosity: i8) {
    let asked = std::env::var("HEDA_LOG").ok();
    let asked = asked.and_then(|words| words.parse::<Targets>().ok());
    let shown = asked.unwrap_or_else(|| shown(verbosity));
    OUTLET.get_or_init(|| outlet(std::io::stderr()));
    let lines = fmt::layer().with_writer(EventLine::default);
    let logs = tracing_subscriber::registry().with(shown);
    // A second start in one process changes nothing.
    let _ = match format {
        LogFormat::Text => logs.with(lines.with_ansi(false)).try_init(),
        LogFormat::Json => logs.with(lines.json()).try_init(),
    };
}

/// Waits a moment until what was logged is written.
pub fn finish() {
    let Some(outlet) = OUTLET.get() else { return };
    let (done, written) = channel();
    if outlet.try_send(LogTask::Flush(done)).is_ok() {
        let _ = written.recv_timeout(FLUSH_PATIENCE);
    }
}

/// Lines that could not be written, or were too many.
pub fn dropped() -> u64 {
    DROPPED.load(Relaxed)
}

/// Writes a line for people on stderr; if nobody can read it, that is no failure of ours.
pub fn note(words: impl std::fmt::Display) {
    if writeln!(std::io::stderr().lock(), "{words}").is_err() {
        DROPPED.fetch_add(1, Relaxed);
    }
}

/// A thread that writes, so that nobody else waits for the reader.
fn outlet(mut to: impl Write + Send + 'static) -> SyncSender<LogTask> {
    let (sender, receiver): (_, Receiver<LogTask>) = sync_channel(QUEUE);
    let work = move || {
        for job in receiver {
            match job {
                LogTask::Write(line) => {
                    if to.write_all(&line).and_then(|()| to.flush()).is_err() {
                        DROPPED.fetch_add(1, Relaxed);
                    }
                }
                LogTask::Flush(done) => {
                    let _ = done.send(());
                }
            }
        }
    };
    let thread = std::thread::Builder::new().name("log".into());
    // Without a thread the receiver is gone, and every line is counted as dropped.
    let _ = thread.spawn(work);
    sender
}

/// One event as it is being formatted; it is handed on when it is whole.
#[derive(Default)]
struct EventLine(Vec<u8>);

impl Write for EventLine {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Drop for EventLine {
    fn drop(&mut self) {
        let line = fitted(std::mem::take(&mut self.0));
        let sent = match (PACE.allow(), OUTLET.get()) {
            (Some(_), Some(outlet)) => outlet.try_send(LogTask::Write(line)),
            (_, _) => Err(TrySendError::Full(LogTask::Write(line))),
        };
        if sent.is_err() {
            DROPPED.fetch_add(1, Relaxed);
        }
    }
}

/// One line, of bounded length. A JSON object cannot be cut: it is replaced.
fn fitted(mut line: Vec<u8>) -> Vec<u8> {
    while line.last() == Some(&b'\n') {
        line.pop();
    }
    if line.len() > LINE_LIMIT {
        let length = line.len();
        if line.first() == Some(&b'{') {
            let words = format!("a line of {length} bytes was left out");
            line = format!("{{\"level\":\"WARN\",\"fields\":{{\"message\":\"{words}\"}}}}").into();
        } else {
            let text = String::from_utf8_lossy(&line[..LINE_LIMIT]).into_owned();
            line = format!("{text}... ({length} bytes)").into();
        }
    }
    for byte in &mut line {
        if byte.is_ascii_control() {
            *byte = b' ';
        }
    }
    line.push(b'\n');
    line
}

/// Lets so many things through in ten seconds, and counts the others.
#[derive(Debug)]
pub(crate) struct Throttle {
    most: u32,
    state: Mutex<ThrottleWindow>,
}

#[derive(Debug)]
struct ThrottleWindow {
    began: Option<Instant>,
    let_through: u32,
    held_back: u64,
}

impl Throttle {
    const WINDOW: Duration = Duration::from_secs(10);

    pub(crate) const fn new(most: u32) -> Self {
        Self {
            most,
            state: Mutex::new(ThrottleWindow {
                began: None,
                let_through: 0,
                held_back: 0,
            }),
        }
    }

    /// Whether one more may pass; if so, how many were held back before it.
    pub(crate) fn allow(&self) -> Option<u64> {
        self.allow_at(Instant::now())
    }

    fn allow_at(&self, now: Instant) -> Option<u64> {
        let mut window = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let over = |began| now.saturating_duration_since(began) >= Self::WINDOW;
        if window.began.is_none_or(over) {
            window.began = Some(now);
            window.let_through = 0;
        }
        if window.let_through >= self.most {
            window.held_back += 1;
            return None;
        }
        window.let_through += 1;
        Some(std::mem::take(&mut window.held_back))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tracing_subscriber::filter::LevelFilter;

    #[test]
    fn what_is_usual_can_be_read() {
        let usual = shown(0);
        assert!(usual.would_enable("heda_node::daemon", &tracing::Level::INFO));
        assert!(!usual.would_enable("heda_node::daemon", &tracing::Level::DEBUG));
        assert!(!usual.would_enable("rustls::conn", &tracing::Level::INFO));
        assert_eq!(usual.default_level(), Some(LevelFilter::INFO));
    }

    #[test]
    fn each_level_shows_more_than_the_one_before() {
        let levels = [i8::MIN, -1, 0, 1, 2, i8::MAX].map(|v| shown(v).default_level().unwrap());
        let expected = [
            LevelFilter::WARN,
            LevelFilter::WARN,
            LevelFilter::INFO,
            LevelFilter::DEBUG,
            LevelFilter::TRACE,
            LevelFilter::TRACE,
        ];
        assert_eq!(levels, expected);
    }

    /// A disk without room, or a reader that went away.
    struct Broken;

    impl Write for Broken {
        fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
            Err(std::io::ErrorKind::StorageFull.into())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    /// A reader that does not read.
    struct Stuck;

    impl Write for Stuck {
        fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
            loop {
                std::thread::park();
            }
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn what_cannot_be_written_is_counted_and_holds_nobody_up() {
        let broken = outlet(Broken);
        let before = dropped();
        for _ in 0..3 {
            broken.send(LogTask::Write(b"line\n".to_vec())).unwrap();
        }
        let (done, written) = channel();
        broken.send(LogTask::Flush(done)).unwrap();
        written.recv().unwrap();
        assert!(dropped() >= before + 3);
        let stuck = outlet(Stuck);
        let sent = (0..2 * QUEUE).map(|_| stuck.try_send(LogTask::Write(b"line\n".to_vec())));
        assert!(sent.filter(Result::is_err).count() >= QUEUE - 1);
    }

    #[test]
    fn lines_are_bounded_and_stay_on_their_line() {
        assert_eq!(fitted(b"one\ntwo\x1b[2K\n".to_vec()), b"one two [2K\n");
        let long = fitted(vec![b'x'; 900_000]);
        assert!(long.len() < LINE_LIMIT + 50 && long.ends_with(b"(900000 bytes)\n"));
        let object = fitted([b"{\"a\":\"", vec![b'x'; 9000].as_slice(), b"\"}\n"].concat());
        let object: serde_json::Value = serde_json::from_slice(&object).unwrap();
        assert_eq!(object["level"], "WARN");
    }

    #[test]
    fn a_throttle_lets_some_through_and_counts_the_others() {
        let throttle = Throttle::new(2);
        let start = Instant::now();
        let at = |seconds| throttle.allow_at(start + Duration::from_secs(seconds));
        assert_eq!([at(0), at(1), at(2), at(9)], [Some(0), Some(0), None, None]);
        assert_eq!([at(10), at(11), at(12)], [Some(2), Some(0), None]);
    }
}
