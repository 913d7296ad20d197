//! Numbers about the daemon for Prometheus, on a local port of their own.
//!
//! Counts only: no names of jobs or columns, nothing derived from data; data users by the names that
//! the provider's own configuration gives them.

use crate::system::logging;
use crate::system::stop::StopSignal;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// How a session came to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// As the protocol says.
    Finished,
    /// Refused by policy or budget.
    Refused,
    /// By a failure of the peer or the network.
    PeerFailed,
    /// Because the peer broke the protocol.
    Breach,
    /// Because the daemon stops.
    Stopped,
    /// By a failure here.
    Failed,
}

impl Ending {
    const ALL: [Self; 6] = [
        Self::Finished,
        Self::Refused,
        Self::PeerFailed,
        Self::Breach,
        Self::Stopped,
        Self::Failed,
    ];

    fn label(self) -> &'static str {
        match self {
            Self::Finished => "finished",
            Self::Refused => "refused",
            Self::PeerFailed => "peer_failed",
            Self::Breach => "breach",
            Self::Stopped => "stopped",
            Self::Failed => "failed",
        }
    }
}

/// The numbers.
#[derive(Debug, Default)]
pub struct Metrics {
    connections: AtomicU64,
    handshakes_refused: AtomicU64,
    strangers: AtomicU64,
    strangers_sent_away: AtomicU64,
    waiting_bytes: Arc<AtomicU64>,
    sessions_running: AtomicU64,
    sessions_busy: AtomicU64,
    sessions_paused: AtomicU64,
    sessions_ended: [AtomicU64; 6],
    bytes_sent: AtomicU64,
    bytes_received: AtomicU64,
    iterations: AtomicU64,
    budget: RwLock<Option<Budget>>,
    private: RwLock<Option<PrivateBudget>>,
}

/// The privacy budget as far as a float can show it; the ledger has it exactly.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Budget {
    /// ε spent on the data set.
    pub spent: f64,
    /// ε that may be spent in all.
    pub total: f64,
}

/// What private jobs have cost a row for good, as ε at the δ of the configuration.
#[derive(Debug, Clone, PartialEq)]
pub struct PrivateBudget {
    /// The provider's own name for the data set.
    pub data_set: String,
    /// ε that all jobs have reached, rounded up.
    pub spent: f64,
    /// ε that they may reach.
    pub total: f64,
    /// ε that the jobs of one data user may reach.
    pub total_per_user: f64,
    /// By data user: what the configuration calls it, its fingerprint, ε reached.
    pub users: Vec<(String, String, f64)>,
}

impl PrivateBudget {
    /// The lines that Prometheus reads.
    fn render(&self) -> String {
        let data_set = format!("data_set=\"{}\"", escaped(&self.data_set));
        let mut text = String::new();
        for (name, help, value) in [
            (
                "heda_private_epsilon_spent",
                "Epsilon of all private jobs.",
                self.spent,
            ),
            (
                "heda_private_epsilon_total",
                "Epsilon allowed to them.",
                self.total,
            ),
            (
                "heda_private_user_epsilon_total",
                "Epsilon allowed to the private jobs of one data user.",
                self.total_per_user,
            ),
        ] {
            text += &heading(name, help);
            text += &format!("{name}{{{data_set}}} {}\n", number(value));
        }
        let name = "heda_private_user_epsilon_spent";
        text += &heading(name, "Epsilon of private jobs by data user.");
        for (user, fingerprint, spent) in &self.users {
            let (user, spent) = (escaped(user), number(*spent));
            text += &format!(
                "{name}{{{data_set},user=\"{user}\",fingerprint=\"{fingerprint}\"}} {spent}\n"
            );
        }
        text
    }
}

fn heading(name: &str, help: &str) -> String {
    format!("# HELP {name} {help}\n# TYPE {name} gauge\n")
}

/// As Prometheus writes numbers; what is beyond any ε is infinite.
fn number(value: f64) -> String {
    match value.is_finite() {
        true => value.to_string(),
        false => "+Inf".into(),
    }
}

/// A value of a label.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}

impl Metrics {
    pub(crate) fn connection_accepted(&self) {
        self.connections.fetch_add(1, Relaxed);
    }

    pub(crate) fn handshake_refused(&self) {
        self.handshakes_refused.fetch_add(1, Relaxed);
    }

    pub(crate) fn strangers_now(&self, count: usize) {
        self.strangers.store(count as u64, Relaxed);
    }

    pub(crate) fn stranger_sent_away(&self) {
        self.strangers_sent_away.fetch_add(1, Relaxed);
    }

    /// What has arrived in all sessions and was not read yet.
    pub(crate) fn waiting_bytes(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.waiting_bytes)
    }

    pub(crate) fn session_refused_busy(&self) {
        self.sessions_busy.fetch_add(1, Relaxed);
    }

    pub(crate) fn session_refused_paused(&self) {
        self.sessions_paused.fetch_add(1, Relaxed);
    }

    pub(crate) fn session_started(&self) {
        self.sessions_running.fetch_add(1, Relaxed);
    }

    pub(crate) fn session_ended(&self, ending: Ending, sent: u64, received: u64) {
        self.sessions_running.fetch_sub(1, Relaxed);
        let place = Ending::ALL.iter().position(|e| *e == ending);
        self.sessions_ended[place.unwrap_or_default()].fetch_add(1, Relaxed);
        self.bytes_sent.fetch_add(sent, Relaxed);
        self.bytes_received.fetch_add(received, Relaxed);
    }

    /// Counts one finished iteration of any job.
    pub fn iteration_finished(&self) {
        self.iterations.fetch_add(1, Relaxed);
    }

    /// Shows the budget as it is now.
    pub fn show_budget(&self, budget: Budget) {
        *self.budget.write().unwrap_or_else(PoisonError::into_inner) = Some(budget);
    }

    /// Shows what private jobs have cost as it is now.
    pub fn show_private(&self, budget: PrivateBudget) {
        *self.private.write().unwrap_or_else(PoisonError::into_inner) = Some(budget);
    }

    /// Sessions that run now.
    pub fn running(&self) -> u64 {
        self.sessions_running.load(Relaxed)
    }

    /// The text that Prometheus reads.
    pub fn render(&self) -> String {
        let mut text = String::new();
        let mut single = |name: &str, kind: &str, help: &str, value: &dyn std::fmt::Display| {
            let _ = write!(
                text,
                "# HELP {name} {help}\n# TYPE {name} {kind}\n{name} {value}\n"
            );
        };
        let counters = [
            (
                "heda_connections_total",
                "Connections of trusted peers.",
                &self.connections,
            ),
            (
                "heda_handshakes_refused_total",
                "Connections refused in TLS.",
                &self.handshakes_refused,
            ),
            (
                "heda_strangers_sent_away_total",
                "Connections closed because there were too many unknown ones.",
                &self.strangers_sent_away,
            ),
            (
                "heda_sessions_refused_busy_total",
                "Sessions over the limits.",
                &self.sessions_busy,
            ),
            (
                "heda_sessions_refused_paused_total",
                "Sessions of peers that have to wait after they broke the protocol.",
                &self.sessions_paused,
            ),
            (
                "heda_iterations_total",
                "Training iterations served.",
                &self.iterations,
            ),
            (
                "heda_sent_bytes_total",
                "Bytes sent in ended sessions.",
                &self.bytes_sent,
            ),
            (
                "heda_received_bytes_total",
                "Bytes received in ended sessions.",
                &self.bytes_received,
            ),
        ];
        for (name, help, counter) in counters {
            single(name, "counter", help, &counter.load(Relaxed));
        }
        let dropped = logging::dropped();
        single(
            "heda_log_lines_dropped_total",
            "counter",
            "Log lines that could not be written or were too many.",
            &dropped,
        );
        let gauges = [
            (
                "heda_sessions_running",
                "Sessions now.",
                &self.sessions_running,
            ),
            (
                "heda_strangers",
                "Connections that have not proved who they are.",
                &self.strangers,
            ),
            (
                "heda_waiting_bytes",
                "Memory for what arrived and was not read yet.",
                &self.waiting_bytes,
            ),
        ];
        for (name, help, gauge) in gauges {
            single(name, "gauge", help, &gauge.load(Relaxed));
        }
        if let Some(budget) = *self.budget.read().unwrap_or_else(PoisonError::into_inner) {
            single(
                "heda_epsilon_spent",
                "gauge",
                "Epsilon spent.",
                &budget.spent,
            );
            single(
                "heda_epsilon_total",
                "gauge",
                "Epsilon allowed.",
                &budget.total,
            );
        }
        let private = self.private.read().unwrap_or_else(PoisonError::into_inner);
        text += &private
            .as_ref()
            .map_or(String::new(), PrivateBudget::render);
        let name = "heda_sessions_ended_total";
        let _ = write!(
            text,
            "# HELP {name} Sessions by ending.\n# TYPE {name} counter\n"
        );
        for (ending, count) in Ending::ALL.iter().zip(&self.sessions_ended) {
            let label = ending.label();
            let _ = writeln!(text, "{name}{{ending=\"{label}\"}} {}", count.load(Relaxed));
        }
        text
    }
}

/// Requests at once on the metrics port.
const REQUESTS_AT_ONCE: usize = 8;
const REQUEST_LIMIT: usize = 4096;
const REQUEST_PATIENCE: Duration = Duration::from_secs(5);

/// Answers `GET /metrics` and `GET /health`, also while the daemon stops. HTTP/1.0, one request a
/// connection.
pub(crate) async fn serve_metrics(listener: TcpListener, metrics: Arc<Metrics>, stop: StopSignal) {
    let slots = Arc::new(tokio::sync::Semaphore::new(REQUESTS_AT_ONCE));
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        };
        let Ok(slot) = Arc::clone(&slots).try_acquire_owned() else {
            continue;
        };
        let (metrics, stop) = (Arc::clone(&metrics), stop.clone());
        tokio::spawn(async move {
            let _ = tokio::time::timeout(REQUEST_PATIENCE, answer(stream, &metrics, &stop)).await;
            drop(slot);
        });
    }
}

async fn answer(
    mut stream: TcpStream,
    metrics: &Metrics,
    stop: &StopSignal,
) -> std::io::Result<()> {
    let mut request = Vec::new();
    let mut buffer = [0; 512];
    while !request.windows(4).any(|w| w == b"\r\n\r\n") && request.len() < REQUEST_LIMIT {
        match stream.read(&mut buffer).await? {
            0 => break,
            n => request.extend_from_slice(&buffer[..n]),
        }
    }
    let (status, body) = match request.as_slice() {
        [b'G', b'E', b'T', b' ', path @ ..] if path.starts_with(b"/metrics ") => {
            ("200 OK", metrics.render())
        }
        [b'G', b'E', b'T', b' ', path @ ..] if path.starts_with(b"/health ") => {
            match stop.is_set() {
                false => ("200 OK", "serving\n".into()),
                true => ("503 Service Unavailable", "stopping\n".into()),
            }
        }
        _ => (
            "404 Not Found",
            "only GET /metrics and GET /health\n".into(),
        ),
    };
    let length = body.len();
    let head = format!(
        "HTTP/1.0 {status}\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: {length}\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(body.as_bytes()).await?;
    stream.shutdown().await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_is_a_comment_or_a_number() {
        let metrics = Metrics::default();
        metrics.session_started();
        metrics.session_ended(Ending::Refused, 5, 7);
        metrics.show_budget(Budget {
            spent: 0.5,
            total: 2.0,
        });
        metrics.show_private(PrivateBudget {
            data_set: "ward".into(),
            spent: 1.25,
            total: 2.0,
            total_per_user: 1.0,
            users: vec![("a \"b\"".into(), "sha256:aa".into(), f64::INFINITY)],
        });
        let text = metrics.render();
        for line in text.lines().filter(|line| !line.starts_with("# ")) {
            let (_, value) = line.rsplit_once(' ').unwrap();
            value.parse::<f64>().unwrap();
        }
        assert!(text.contains("heda_sessions_ended_total{ending=\"refused\"} 1\n"));
        assert!(text.contains("heda_sent_bytes_total 5\n"));
        assert!(text.contains("heda_epsilon_spent 0.5\n"));
        assert!(text.contains("heda_sessions_running 0\n"));
        assert!(text.contains("heda_private_epsilon_spent{data_set=\"ward\"} 1.25\n"));
        let user = "{data_set=\"ward\",user=\"a \\\"b\\\"\",fingerprint=\"sha256:aa\"} +Inf\n";
        assert!(text.contains(user), "{text}");
    }
}
