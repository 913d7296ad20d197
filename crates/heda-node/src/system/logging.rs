//! Structured logs on stderr. What is logged is chosen where it is logged: never a private value.

use tracing_subscriber::EnvFilter;

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
    // The libraries below us would log frames and headers at finer levels.
    let filter = EnvFilter::try_from_env("HEDA_LOG")
        .unwrap_or_else(|_| EnvFilter::new("info,h2=warn,hyper=warn,tonic=warn,rustls=warn"));
    let lines = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr);
    // A second start in one process changes nothing.
    let _ = match format {
        LogFormat::Text => lines.with_ansi(false).try_init(),
        LogFormat::Json => lines.json().try_init(),
    };
}
