//! The provider's port: TLS first, and only trusted peers get any further.
//!
//! A stranger costs one small task until its handshake fails or its time is up; the number of
//! unfinished handshakes is bounded, in all and by address, so that idle connections neither
//! fill memory nor keep the others out.

use crate::daemon::metrics::Metrics;
use crate::identity::trust::{PeerIdentity, Trust};
use crate::system::clock::Clock;
use crate::system::stop::StopSignal;
use std::collections::HashMap;
use std::hash::Hash;
use std::io::{self, IoSlice};
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, BufReader, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc::Sender;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tonic::transport::server::Connected;

/// TLS reads four kilobytes at a time; this much is fetched from the system at once.
pub(crate) const READ_AHEAD: usize = 128 << 10;

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

/// Counts by key; what is counted ends when its [`Counted`] is dropped.
#[derive(Debug)]
pub(crate) struct Counter<K: Eq + Hash + Clone>(Arc<Mutex<HashMap<K, usize>>>);

impl<K: Eq + Hash + Clone> Counter<K> {
    pub(crate) fn new() -> Self {
        Self(Arc::default())
    }

    /// One more for this key, unless there are `limit` already.
    pub(crate) fn enter(&self, key: K, limit: usize) -> Option<Counted<K>> {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let count = counts.entry(key.clone()).or_insert(0);
        if *count >= limit {
            return None;
        }
        *count += 1;
        Some(Counted {
            counts: Arc::clone(&self.0),
            key,
        })
    }
}

/// One that is counted.
#[derive(Debug)]
pub(crate) struct Counted<K: Eq + Hash + Clone> {
    counts: Arc<Mutex<HashMap<K, usize>>>,
    key: K,
}

impl<K: Eq + Hash + Clone> Drop for Counted<K> {
    fn drop(&mut self) {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = counts.get_mut(&self.key) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.key);
            }
        }
    }
}

/// A connection whose peer proved who it is.
#[derive(Debug)]
pub(crate) struct PeerStream {
    stream: TlsStream<BufReader<TcpStream>>,
    peer: PeerIdentity,
    _counted: Counted<[u8; 32]>,
}

impl Connected for PeerStream {
    type ConnectInfo = PeerIdentity;

    fn connect_info(&self) -> PeerIdentity {
        self.peer.clone()
    }
}

impl AsyncRead for PeerStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl AsyncWrite for PeerStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    // Head and body of a frame in one record and one call to the system.
    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, pieces)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
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

    /// Accepts connections until the signal; trusted peers go to `admitted`.
    pub(crate) async fn run(
        self: Arc<Self>,
        listener: TcpListener,
        admitted: Sender<io::Result<PeerStream>>,
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
            let admitted = admitted.clone();
            tokio::spawn(async move {
                let peer = gate.handshake(stream, address).await;
                drop(slots);
                if let Some(peer) = peer {
                    let _ = admitted.send(Ok(peer)).await;
                }
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
                part_politely(stream.into_inner()).await;
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

/// Closing with unread bytes would reset the connection, and the alert that explains the refusal
/// would be lost: reads what is still under way, for a moment.
async fn part_politely(mut stream: TcpStream) {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let _ = stream.shutdown().await;
    let mut rest = [0; 1024];
    let drained = async { while matches!(stream.read(&mut rest).await, Ok(n) if n > 0) {} };
    let _ = tokio::time::timeout(Duration::from_secs(1), drained).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counting_is_bounded_by_key_and_ends_with_the_guard() {
        let counter = Counter::new();
        let first = counter.enter("a", 2);
        let second = counter.enter("a", 2);
        assert!(first.is_some() && second.is_some());
        assert!(counter.enter("a", 2).is_none());
        assert!(counter.enter("b", 2).is_some());
        drop(first);
        assert!(counter.enter("a", 2).is_some());
    }
}
