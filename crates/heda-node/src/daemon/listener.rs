//! The provider's port: TLS first, and only trusted peers get any further.
//!
//! A stranger costs one small task until its handshake fails or its time is up; the number of
//! unfinished handshakes is bounded, in all and by address, so that idle connections neither
//! fill memory nor keep the others out.

use crate::daemon::counter::{Counted, Counter};
use crate::daemon::metrics::Metrics;
use crate::daemon::reception::{Reception, part_politely};
use crate::identity::trust::{PeerIdentity, Trust};
use crate::system::clock::Clock;
use crate::system::stop::StopSignal;
use crate::wire::READ_AHEAD;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::BufReader;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc::Sender;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// Bounds on connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConnectionLimits {
    /// How long a handshake may take.
    pub handshake_patience: Duration,
    /// Unfinished handshakes at once.
    pub handshakes: usize,
    /// Unfinished handshakes at once from one address.
    pub handshakes_per_address: usize,
    /// Connections at once of one trusted peer.
    pub connections_per_peer: usize,
}

impl Default for ConnectionLimits {
    fn default() -> Self {
        Self {
            handshake_patience: Duration::from_secs(10),
            handshakes: 1024,
            handshakes_per_address: 256,
            connections_per_peer: 32,
        }
    }
}

/// A connection whose peer proved who it is.
#[derive(Debug)]
pub(crate) struct PeerStream {
    pub(crate) stream: TlsStream<BufReader<TcpStream>>,
    pub(crate) peer: PeerIdentity,
    pub(crate) _counted: Counted<[u8; 32]>,
}

/// Everything that the accept loop needs.
pub(crate) struct Gate {
    pub(crate) acceptor: TlsAcceptor,
    pub(crate) trust: Arc<Trust>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) limits: ConnectionLimits,
    pub(crate) metrics: Arc<Metrics>,
    peers: Counter<[u8; 32]>,
}

impl Gate {
    pub(crate) fn new(
        acceptor: TlsAcceptor,
        trust: Arc<Trust>,
        clock: Arc<dyn Clock>,
        limits: ConnectionLimits,
        metrics: Arc<Metrics>,
    ) -> Self {
        Self {
            acceptor,
            trust,
            clock,
            limits,
            metrics,
            peers: Counter::new(),
        }
    }

    /// Accepts connections until the signal; trusted peers go to the reception. Every connection
    /// holds a clone of `open` until it has ended.
    pub(crate) async fn run(
        self: Arc<Self>,
        listener: TcpListener,
        reception: Arc<Reception>,
        open: Sender<()>,
        mut stop: StopSignal,
    ) {
        let all: Counter<()> = Counter::new();
        let by_address: Counter<IpAddr> = Counter::new();
        loop {
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                () = stop.wait() => return,
            };
            let Ok((stream, address)) = accepted else {
                // Out of file descriptors, most likely: some will be free again soon.
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            };
            let limits = &self.limits;
            let slots = by_address
                .enter(address.ip(), limits.handshakes_per_address)
                .zip(all.enter((), limits.handshakes));
            let Some(slots) = slots else {
                self.metrics.handshake_refused();
                continue;
            };
            let gate = Arc::clone(&self);
            let (reception, open) = (Arc::clone(&reception), open.clone());
            tokio::spawn(async move {
                let peer = gate.handshake(stream, address).await;
                drop(slots);
                if let Some(peer) = peer {
                    reception.receive(peer).await;
                }
                drop(open);
            });
        }
    }

    async fn handshake(&self, stream: TcpStream, address: SocketAddr) -> Option<PeerStream> {
        let _ = stream.set_nodelay(true);
        let stream = BufReader::with_capacity(READ_AHEAD, stream);
        let accepted = self.acceptor.accept(stream).into_fallible();
        let outcome = tokio::time::timeout(self.limits.handshake_patience, accepted).await;
        let refused = |cause: String| {
            self.metrics.handshake_refused();
            tracing::warn!(%address, cause, "connection refused");
        };
        let stream = match outcome {
            Ok(Ok(stream)) => stream,
            Ok(Err((cause, stream))) => {
                refused(cause.to_string());
                part_politely(&mut stream.into_inner()).await;
                return None;
            }
            Err(_) => {
                refused("no handshake in time".into());
                return None;
            }
        };
        let chain = stream.get_ref().1.peer_certificates();
        let Some(peer) = self.trust.peer_of(chain, self.clock.now()) else {
            refused("no valid certificate".into());
            return None;
        };
        let limit = self.limits.connections_per_peer;
        let Some(counted) = self.peers.enter(*peer.fingerprint.as_bytes(), limit) else {
            refused(format!("{} has {limit} connections already", peer.label));
            return None;
        };
        self.metrics.connection_accepted();
        tracing::info!(%address, peer = peer.label, "connected");
        Some(PeerStream {
            stream,
            peer,
            _counted: counted,
        })
    }
}
