//! The provider's port: TLS first, and only trusted peers get any further.
//!
//! A stranger costs one small task until it says something, and buffers of TLS only after that.
//! How many there may be is bounded, in all and by address, and when there are too many the idle
//! ones go (`pending`): they neither fill memory nor keep the others out.

use crate::daemon::counter::{CountedPlace, Counter};
use crate::daemon::metrics::Metrics;
use crate::daemon::pending::{PendingConnections, PendingLimits, SentAway, Ticket};
use crate::daemon::sessions::{Sessions, part_politely};
use crate::identity::trust::{PeerIdentity, Trust};
use crate::system::clock::Clock;
use crate::system::logging::Throttle;
use crate::system::memory::GivesBack;
use crate::system::stop::StopSignal;
use crate::wire::read_ahead::ReadAhead;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc::Sender;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// Bounds on connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConnectionLimits {
    /// How long a handshake may take.
    pub handshake_patience: Duration,
    /// Connections at once that have not proved who they are.
    pub strangers: usize,
    /// The same from one address.
    pub strangers_per_address: usize,
    /// Connections at once of one trusted peer.
    pub connections_per_peer: usize,
}

impl Default for ConnectionLimits {
    fn default() -> Self {
        Self {
            handshake_patience: Duration::from_secs(10),
            strangers: 256,
            strangers_per_address: 64,
            connections_per_peer: 16,
        }
    }
}

/// A connection whose peer proved who it is.
#[derive(Debug)]
pub(crate) struct PeerStream {
    pub(crate) stream: TlsStream<ReadAhead<TcpStream>>,
    pub(crate) peer: PeerIdentity,
    pub(crate) _counted: CountedPlace<[u8; 32]>,
}

/// Everything that the accept loop needs.
pub(crate) struct AcceptLoop {
    pub(crate) acceptor: TlsAcceptor,
    pub(crate) trust: Arc<Trust>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) limits: ConnectionLimits,
    pub(crate) metrics: Arc<Metrics>,
    peers: Counter<[u8; 32]>,
    pending: Arc<PendingConnections>,
    /// For lines about strangers, who could fill the log.
    lines: Throttle,
    memory: GivesBack,
}

/// Lines about strangers in ten seconds.
const STRANGER_LINES: u32 = 20;

impl AcceptLoop {
    /// Must be called within a runtime.
    pub(crate) fn new(
        acceptor: TlsAcceptor,
        trust: Arc<Trust>,
        clock: Arc<dyn Clock>,
        limits: ConnectionLimits,
        metrics: Arc<Metrics>,
    ) -> Self {
        let running = Arc::clone(&metrics);
        Self {
            acceptor,
            trust,
            clock,
            pending: PendingConnections::new(PendingLimits {
                in_all: limits.strangers,
                per_address: limits.strangers_per_address,
            }),
            limits,
            metrics,
            peers: Counter::new(),
            lines: Throttle::new(STRANGER_LINES),
            memory: GivesBack::start(move || running.running() > 0),
        }
    }

    /// Accepts connections until the signal; trusted peers go to the sessions. Every connection
    /// holds a clone of `open` until it has ended.
    pub(crate) async fn run(
        self: Arc<Self>,
        listener: TcpListener,
        sessions: Arc<Sessions>,
        open: Sender<()>,
        mut stop: StopSignal,
    ) {
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
            let visitor = self.pending.enter(address.ip());
            self.metrics.strangers_now(self.pending.waiting());
            let accept_loop = Arc::clone(&self);
            let (sessions, open) = (Arc::clone(&sessions), open.clone());
            let stop = stop.clone();
            tokio::spawn(async move {
                let peer = accept_loop.meet(stream, address, visitor, stop).await;
                accept_loop
                    .metrics
                    .strangers_now(accept_loop.pending.waiting());
                if let Some(peer) = peer {
                    sessions.receive(peer).await;
                }
                accept_loop.memory.soon();
                drop(open);
            });
        }
    }

    /// A handshake, unless its place is needed for another, or the daemon stops.
    async fn meet(
        &self,
        stream: TcpStream,
        address: SocketAddr,
        (ticket, sent_away): (Ticket, SentAway),
        mut stop: StopSignal,
    ) -> Option<PeerStream> {
        tokio::select! {
            peer = self.handshake(stream, address, &ticket) => peer,
            () = sent_away.wait() => {
                self.metrics.stranger_sent_away();
                self.refused(address, "too many unknown connections");
                None
            }
            () = stop.wait() => None,
        }
    }

    /// Counts a refusal, and logs it unless there are too many.
    fn refused(&self, address: SocketAddr, cause: &str) {
        self.metrics.handshake_refused();
        if let Some(not_shown) = self.lines.allow() {
            tracing::warn!(%address, cause, not_shown, "connection refused");
        }
    }

    async fn handshake(
        &self,
        stream: TcpStream,
        address: SocketAddr,
        ticket: &Ticket,
    ) -> Option<PeerStream> {
        let _ = stream.set_nodelay(true);
        let accepted = async {
            // Nothing is kept for a stranger that says nothing.
            let _ = stream.readable().await;
            ticket.spoke();
            let accepting = self.acceptor.accept(ReadAhead::new(stream));
            accepting.into_fallible().await
        };
        let outcome = tokio::time::timeout(self.limits.handshake_patience, accepted).await;
        let mut stream = match outcome {
            Ok(Ok(stream)) => stream,
            Ok(Err((cause, stream))) => {
                self.refused(address, &cause.to_string());
                part_politely(&mut stream.into_inner()).await;
                return None;
            }
            Err(_) => {
                self.refused(address, "no handshake in time");
                return None;
            }
        };
        let chain = stream.get_ref().1.peer_certificates();
        let Some(peer) = self.trust.peer_of(chain, self.clock.now()) else {
            self.refused(address, "no valid certificate");
            return None;
        };
        let limit = self.limits.connections_per_peer;
        let Some(counted) = self.peers.enter(*peer.fingerprint.as_bytes(), limit) else {
            let words = format!("{} has {limit} connections already", peer.label);
            self.refused(address, &words);
            return None;
        };
        self.pending.remember(address.ip());
        stream.get_mut().0.begin();
        self.metrics.connection_accepted();
        tracing::info!(%address, peer = peer.label, "connected");
        Some(PeerStream {
            stream,
            peer,
            _counted: counted,
        })
    }
}
