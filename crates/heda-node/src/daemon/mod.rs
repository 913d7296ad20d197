//! The provider's server: one port for peers, one local port for metrics.

pub(crate) mod breaches;
pub(crate) mod counter;
mod error;
pub mod listener;
pub mod metrics;
pub(crate) mod pending;
pub mod serve;
pub mod session;
pub(crate) mod sessions;

pub use error::DaemonError;

use crate::daemon::listener::{AcceptLoop, ConnectionLimits};
use crate::daemon::metrics::{Metrics, serve_metrics};
use crate::daemon::session::{SessionHandler, SessionLimits};
use crate::daemon::sessions::Sessions;
use crate::identity::Identity;
use crate::identity::trust::{Trust, server_tls};
use crate::system::clock::Clock;
use crate::system::stop::StopSignal;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

/// What a daemon needs to run.
#[derive(Debug)]
pub struct DaemonSettings {
    /// Who this provider is.
    pub identity: Identity,
    /// Who may connect.
    pub trust: Arc<Trust>,
    /// Where the time comes from.
    pub clock: Arc<dyn Clock>,
    /// The port for peers.
    pub listen: SocketAddr,
    /// The port for metrics, if any.
    pub metrics: Option<SocketAddr>,
    /// Bounds on connections.
    pub connections: ConnectionLimits,
    /// Bounds on sessions.
    pub sessions: SessionLimits,
    /// How long sessions may go on after the wish to stop.
    pub stop_grace: Duration,
}

/// A daemon whose ports are bound.
pub struct Daemon {
    settings: DaemonSettings,
    tls: TlsAcceptor,
    listener: TcpListener,
    metrics_listener: Option<TcpListener>,
    metrics: Arc<Metrics>,
}

impl Daemon {
    /// Binds the ports.
    pub async fn bind(
        settings: DaemonSettings,
        metrics: Arc<Metrics>,
    ) -> Result<Self, DaemonError> {
        let tls = server_tls(&settings.identity, &settings.trust, &settings.clock)?;
        let listener = bind(settings.listen).await?;
        let metrics_listener = match settings.metrics {
            Some(address) => Some(bind(address).await?),
            None => None,
        };
        Ok(Self {
            tls: TlsAcceptor::from(Arc::new(tls)),
            settings,
            listener,
            metrics_listener,
            metrics,
        })
    }

    /// The address that peers connect to.
    pub fn address(&self) -> SocketAddr {
        let bound = self.listener.local_addr();
        bound.unwrap_or(self.settings.listen)
    }

    /// The address of the metrics, if there is one.
    pub fn metrics_address(&self) -> Option<SocketAddr> {
        self.metrics_listener.as_ref()?.local_addr().ok()
    }

    /// Serves until the signal, then lets sessions come to a good point.
    pub async fn run(
        self,
        handler: Arc<dyn SessionHandler>,
        stop: StopSignal,
    ) -> Result<(), DaemonError> {
        let metrics = Arc::clone(&self.metrics);
        let grace = self.settings.stop_grace;
        let monitor = self.metrics_listener.map(|listener| {
            let answering = serve_metrics(listener, Arc::clone(&metrics), stop.clone());
            tokio::spawn(answering)
        });
        let accept_loop = Arc::new(AcceptLoop::new(
            self.tls,
            self.settings.trust,
            self.settings.clock,
            self.settings.connections,
            Arc::clone(&metrics),
        ));
        let sessions = Arc::new(Sessions::new(
            handler,
            self.settings.sessions,
            Arc::clone(&metrics),
            stop.clone(),
        ));
        // Nothing is ever sent: the channel closes when the last connection has ended.
        let (open, mut all_ended) = tokio::sync::mpsc::channel(1);
        accept_loop.run(self.listener, sessions, open, stop).await;
        tracing::info!("stopping");
        let _: Result<Option<()>, _> = tokio::time::timeout(grace, all_ended.recv()).await;
        if let Some(monitor) = monitor {
            monitor.abort();
        }
        match metrics.running() {
            0 => Ok(()),
            left => Err(DaemonError::Abandoned(left, grace)),
        }
    }
}

impl std::fmt::Debug for Daemon {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Daemon")
            .field("address", &self.address())
            .finish_non_exhaustive()
    }
}

async fn bind(address: SocketAddr) -> Result<TcpListener, DaemonError> {
    let bound = TcpListener::bind(address).await;
    bound.map_err(|cause| DaemonError::Listen { address, cause })
}
