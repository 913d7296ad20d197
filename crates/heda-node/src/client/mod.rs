//! The data user's side of a session: connect, prove, greet; again after a while if it fails.

pub mod state;
pub mod training;

use crate::daemon::listener::READ_AHEAD;
use crate::daemon::service::SESSION_PATH;
use crate::daemon::{CONNECTION_WINDOW, PING_INTERVAL, PING_PATIENCE, STREAM_WINDOW};
use crate::identity::Identity;
use crate::identity::fingerprint::ed25519_key;
use crate::identity::trust::{TlsSetupError, Trust, TrustError, TrustedPeer, client_tls};
use crate::system::clock::Clock;
use crate::wire::frame::{CHUNK_LIMIT, FRAME_LIMIT, Frame, GreetingError, check_greeting};
use crate::wire::{NetworkWire, WireLimits, words_of};
use ed25519_dalek::VerifyingKey;
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use std::error::Error as _;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, BufReader, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tonic::codegen::tokio_stream::{StreamExt, once, wrappers::ReceiverStream};
use tonic::codegen::{Service, http};
use tonic::transport::Endpoint;
use tonic::{Code, Request, Status, Streaming};
use tonic_prost::ProstCodec;

/// A provider, as the data user's configuration knows it.
#[derive(Debug, Clone)]
pub struct RemoteProvider {
    /// Host name or address, and port: `provider.example:7443`.
    pub address: String,
    /// What it is called and how it is recognised.
    pub peer: TrustedPeer,
}

/// Connects to providers.
#[derive(Debug, Clone)]
pub struct Connector {
    /// Who the data user is.
    pub identity: Identity,
    /// Where the time comes from.
    pub clock: Arc<dyn Clock>,
    /// Bounds of each session.
    pub limits: WireLimits,
    /// How long one try may take.
    pub connect_patience: Duration,
}

/// Why there is no session. Every case names the provider.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The address is not `host:port`.
    #[error("{provider}: `{address}` is not an address of the form host:port")]
    Address {
        /// The provider's name in the job.
        provider: String,
        /// What the job says.
        address: String,
    },
    /// Our own key or trust cannot be used.
    #[error("{provider}: {cause}")]
    Setup {
        /// The provider's name in the job.
        provider: String,
        /// What is wrong.
        cause: String,
    },
    /// Nobody answers there.
    #[error("{provider} cannot be reached at {address}: {cause}")]
    Unreachable {
        /// The provider's name in the job.
        provider: String,
        /// Its address.
        address: String,
        /// What the system said.
        cause: String,
    },
    /// Somebody else answers there.
    #[error("whoever answers at {address} is not {provider}: {cause}")]
    NotThePeer {
        /// The provider's name in the job.
        provider: String,
        /// Its address.
        address: String,
        /// What is wrong with its certificate.
        cause: String,
    },
    /// The provider does not know us, or our certificate is not valid there.
    #[error(
        "{provider} refused our certificate; its operator must allow {fingerprint}, and the \
         certificate must be within its dates: {cause}"
    )]
    NotAllowed {
        /// The provider's name in the job.
        provider: String,
        /// Our fingerprint.
        fingerprint: crate::identity::fingerprint::PeerFingerprint,
        /// What TLS said.
        cause: String,
    },
    /// Another version of the protocol.
    #[error("{provider}: {cause}")]
    Greeting {
        /// The provider's name in the job.
        provider: String,
        /// Both versions.
        cause: String,
    },
    /// The provider is busy or stopping.
    #[error("{provider} takes no session now: {cause}")]
    Busy {
        /// The provider's name in the job.
        provider: String,
        /// Its words.
        cause: String,
    },
}

impl ConnectError {
    /// Whether another try later may succeed without anyone changing a configuration.
    pub fn is_passing(&self) -> bool {
        matches!(self, Self::Unreachable { .. } | Self::Busy { .. })
    }

    /// The name of the provider.
    pub fn provider(&self) -> &str {
        match self {
            Self::Address { provider, .. }
            | Self::Setup { provider, .. }
            | Self::Unreachable { provider, .. }
            | Self::NotThePeer { provider, .. }
            | Self::NotAllowed { provider, .. }
            | Self::Greeting { provider, .. }
            | Self::Busy { provider, .. } => provider,
        }
    }
}

/// A connection after the handshake.
type Secured = TlsStream<BufReader<TcpStream>>;

/// An open session and who is at its other end.
#[derive(Debug)]
pub struct Session {
    /// The session.
    pub wire: NetworkWire,
    /// The key that the provider proved to hold.
    pub identity: VerifyingKey,
}

impl Connector {
    /// Opens a session; one try.
    pub async fn open(&self, to: &RemoteProvider) -> Result<Session, ConnectError> {
        let attempt = Attempt {
            connector: self,
            to,
        };
        let opened = tokio::time::timeout(self.connect_patience, attempt.open()).await;
        opened.unwrap_or_else(|_| {
            let patience = self.connect_patience;
            Err(attempt.unreachable(format!("no answer within {patience:?}")))
        })
    }

    /// Opens a session, trying again with growing pauses until `until` is over.
    pub async fn open_patiently(
        &self,
        to: &RemoteProvider,
        until: Duration,
        mut on_retry: impl FnMut(&ConnectError, Duration),
    ) -> Result<Session, ConnectError> {
        let deadline = tokio::time::Instant::now() + until;
        let mut pause = Duration::from_millis(200);
        loop {
            let error = match self.open(to).await {
                Ok(session) => return Ok(session),
                Err(error) => error,
            };
            if !error.is_passing() || tokio::time::Instant::now() + pause > deadline {
                return Err(error);
            }
            on_retry(&error, pause);
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(Duration::from_secs(15));
        }
    }
}

/// One try to reach one provider.
struct Attempt<'a> {
    connector: &'a Connector,
    to: &'a RemoteProvider,
}

impl Attempt<'_> {
    fn provider(&self) -> String {
        self.to.peer.label.clone()
    }

    fn unreachable(&self, cause: impl std::fmt::Display) -> ConnectError {
        ConnectError::Unreachable {
            provider: self.provider(),
            address: self.to.address.clone(),
            cause: cause.to_string(),
        }
    }

    fn setup(&self, cause: impl std::fmt::Display) -> ConnectError {
        ConnectError::Setup {
            provider: self.provider(),
            cause: cause.to_string(),
        }
    }

    async fn open(&self) -> Result<Session, ConnectError> {
        let stream = self.secured().await?;
        let alert = Alert::default();
        let opened = self.session(stream, &alert).await;
        let (wire, identity) = opened.map_err(|error| match alert.words() {
            Some(words) => self.not_allowed(words),
            None => error,
        })?;
        Ok(Session { wire, identity })
    }

    async fn session(
        &self,
        stream: Secured,
        alert: &Alert,
    ) -> Result<(NetworkWire, VerifyingKey), ConnectError> {
        let chain = stream.get_ref().1.peer_certificates();
        let identity = chain.and_then(|chain| ed25519_key(chain.first()?));
        let identity = identity.ok_or_else(|| self.setup("its key is not an Ed25519 key"))?;
        let watched = Watched {
            stream,
            alert: alert.clone(),
        };
        let channel = endpoint()
            .connect_with_connector(Once::new(watched))
            .await
            .map_err(|e| self.unreachable(root_cause(&e)))?;
        let (outbox, outgoing) = NetworkWire::outbox();
        let frames = once(Frame::hello()).chain(ReceiverStream::new(outgoing));
        let mut grpc = tonic::client::Grpc::new(channel).max_decoding_message_size(FRAME_LIMIT);
        let ready = grpc.ready().await;
        ready.map_err(|e| self.unreachable(root_cause(&e)))?;
        let codec = ProstCodec::<Frame, Frame>::default();
        let path = http::uri::PathAndQuery::from_static(SESSION_PATH);
        let response = grpc.streaming(Request::new(frames), path, codec).await;
        let mut incoming = response.map_err(|s| self.refused(&s))?.into_inner();
        self.check(&mut incoming).await?;
        let wire = NetworkWire::new(incoming, outbox, self.connector.limits);
        Ok((wire, identity))
    }

    async fn check(&self, incoming: &mut Streaming<Frame>) -> Result<(), ConnectError> {
        let first = incoming.message().await.map_err(|s| self.refused(&s))?;
        check_greeting(first).map_err(|e: GreetingError| ConnectError::Greeting {
            provider: self.provider(),
            cause: e.to_string(),
        })
    }

    async fn secured(&self) -> Result<Secured, ConnectError> {
        let malformed = || ConnectError::Address {
            provider: self.provider(),
            address: self.to.address.clone(),
        };
        let (host, port) = self.to.address.rsplit_once(':').ok_or_else(malformed)?;
        let host = host.trim_start_matches('[').trim_end_matches(']');
        port.parse::<u16>().map_err(|_| malformed())?;
        let name = ServerName::try_from(host.to_owned()).map_err(|_| malformed())?;
        let tls = self.tls()?;
        let tcp = TcpStream::connect(&self.to.address).await;
        let tcp = tcp.map_err(|e| self.unreachable(e))?;
        let _ = tcp.set_nodelay(true);
        let connected = tls
            .connect(name, BufReader::with_capacity(READ_AHEAD, tcp))
            .await;
        connected.map_err(|e| self.handshake_failed(&e))
    }

    fn tls(&self) -> Result<TlsConnector, ConnectError> {
        let trust = Trust::new(vec![self.to.peer.clone()]);
        let trust = Arc::new(trust.map_err(|e: TrustError| self.setup(e))?);
        let Connector {
            identity, clock, ..
        } = self.connector;
        let config = client_tls(identity, &trust, clock);
        let config = config.map_err(|e: TlsSetupError| self.setup(e))?;
        Ok(TlsConnector::from(Arc::new(config)))
    }

    fn handshake_failed(&self, error: &std::io::Error) -> ConnectError {
        let inner = error.get_ref().and_then(|e| e.downcast_ref());
        match inner {
            Some(rustls::Error::InvalidCertificate(cause)) => ConnectError::NotThePeer {
                provider: self.provider(),
                address: self.to.address.clone(),
                cause: certificate_words(cause),
            },
            Some(rustls::Error::AlertReceived(_)) => self.not_allowed(error.to_string()),
            _ => self.unreachable(error),
        }
    }

    fn not_allowed(&self, cause: String) -> ConnectError {
        ConnectError::NotAllowed {
            provider: self.provider(),
            fingerprint: self.connector.identity.fingerprint(),
            cause,
        }
    }

    fn refused(&self, status: &Status) -> ConnectError {
        let provider = self.provider();
        let cause = words_of(status);
        match status.code() {
            Code::FailedPrecondition | Code::Unimplemented => {
                ConnectError::Greeting { provider, cause }
            }
            Code::ResourceExhausted => ConnectError::Busy { provider, cause },
            Code::Unavailable if status.source().is_none() => {
                ConnectError::Busy { provider, cause }
            }
            _ => self.unreachable(status.source().map_or(cause, root_cause)),
        }
    }
}

fn certificate_words(error: &rustls::CertificateError) -> String {
    match error {
        rustls::CertificateError::Other(other) => other.0.to_string(),
        other => format!("{other:?}"),
    }
}

/// The innermost cause says most.
fn root_cause(error: &(dyn std::error::Error + 'static)) -> String {
    let mut cause = error;
    while let Some(next) = cause.source() {
        cause = next;
    }
    cause.to_string()
}

/// The authority part of the address is not used: TLS is done before.
fn endpoint() -> Endpoint {
    Endpoint::from_static("http://provider")
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_frame_size(CHUNK_LIMIT as u32)
        .http2_keep_alive_interval(PING_INTERVAL)
        .keep_alive_timeout(PING_PATIENCE)
}

/// The alert by which the peer ended the connection, if it did.
///
/// In TLS 1.3 the server judges our certificate after our side of the handshake is done: its
/// refusal arrives on a connection that seemed to be good, and the layers above would only say
/// that the connection broke.
#[derive(Debug, Clone, Default)]
struct Alert(Arc<Mutex<Option<String>>>);

impl Alert {
    fn words(&self) -> Option<String> {
        let words = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        words.clone()
    }

    fn note(&self, error: &std::io::Error) {
        let inner = error.get_ref().and_then(|e| e.downcast_ref());
        if let Some(alert @ rustls::Error::AlertReceived(_)) = inner {
            let mut words = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            words.get_or_insert_with(|| alert.to_string());
        }
    }
}

/// A connection whose alert is noted.
struct Watched {
    stream: Secured,
    alert: Alert,
}

impl AsyncRead for Watched {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        let read = Pin::new(&mut self.stream).poll_read(cx, buffer);
        if let Poll::Ready(Err(error)) = &read {
            self.alert.note(error);
        }
        read
    }
}

impl AsyncWrite for Watched {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<std::io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    // Head and body of a frame in one record and one call to the system.
    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[std::io::IoSlice<'_>],
    ) -> Poll<std::io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, pieces)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

/// A connector that hands out a connection which is there already, once.
struct Once(Option<Watched>);

impl Once {
    fn new(stream: Watched) -> Self {
        Self(Some(stream))
    }
}

impl Service<http::Uri> for Once {
    type Response = TokioIo<Watched>;
    type Error = std::io::Error;
    type Future = std::future::Ready<std::io::Result<Self::Response>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: http::Uri) -> Self::Future {
        let gone = || std::io::Error::other("the connection is over");
        std::future::ready(self.0.take().map(TokioIo::new).ok_or_else(gone))
    }
}
