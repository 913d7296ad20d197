//! Structured logs on stderr. What is logged is chosen where it is logged: never a private value.

use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

/// The library below us would log records at finer levels.
const USUAL: &str = "info,rustls=warn";

/// How log lines look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object a line, for machines.
    Json,
}

/// Starts logging to stderr; `HEDA_LOG` changes what is shown. Called once, by the program.
pub fn start(format: LogFormat) {
    let asked = std::env::var("HEDA_LOG").ok();
    let asked = asked.and_then(|words| words.parse::<Targets>().ok());
    let shown = asked.unwrap_or_else(|| USUAL.parse().unwrap_or_default());
    let lines = fmt::layer().with_writer(std::io::stderr);
    let logs = tracing_subscriber::registry().with(shown);
    // A second start in one process changes nothing.
    let _ = match format {
        LogFormat::Text => logs.with(lines.with_ansi(false)).try_init(),
        LogFormat::Json => logs.with(lines.json()).try_init(),
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use tracing_subscriber::filter::LevelFilter;

    #[test]
    fn what_is_usual_can_be_read() {
        let usual: Targets = USUAL.parse().unwrap();
        assert!(usual.would_enable("heda_node::daemon", &tracing::Level::INFO));
        assert!(!usual.would_enable("heda_node::daemon", &tracing::Level::DEBUG));
        assert!(!usual.would_enable("rustls::conn", &tracing::Level::INFO));
        assert_eq!(usual.default_level(), Some(LevelFilter::INFO));
    }
}
