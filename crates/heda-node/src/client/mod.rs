//! The data user's side of a session: connect, prove, greet; again after a while if it fails.

mod error;
pub mod reached;
pub mod state;
pub mod training;

pub use error::{ConnectError, NoSession};

use crate::identity::Identity;
use crate::identity::fingerprint::ed25519_key;
use crate::identity::trust::{Trust, TrustedPeer, client_tls};
use crate::system::clock::Clock;
use crate::wire::carrier::{read_frame, write_frame};
use crate::wire::frame::{Frame, FrameError, FrameKind};
use crate::wire::greeting::Greeting;
use crate::wire::read_ahead::ReadAhead;
use crate::wire::{NetworkWire, Surroundings, WireLimits};
use ed25519_dalek::VerifyingKey;
use heda_blocks::stop::{Stop, StopCode};
use rustls::AlertDescription;
use rustls::pki_types::ServerName;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// A provider, as the data user's configuration knows it.
#[derive(Debug, Clone)]
pub struct RemoteProvider {
    /// Host name or address, and port: `provider.example:7443`.
    pub address: String,
    /// What it is called and how it is recognised.
    pub peer: TrustedPeer,
}

impl RemoteProvider {
    /// The host of an address with a port.
    fn server_name(&self) -> Option<ServerName<'static>> {
        let (host, port) = self.address.rsplit_once(':')?;
        let host = host.trim_start_matches('[').trim_end_matches(']');
        port.parse::<u16>().ok()?;
        ServerName::try_from(host.to_owned()).ok()
    }

    /// What can be known to be wrong before anyone is connected to.
    ///
    /// # Errors
    /// If the address is not of the form host:port.
    pub fn check(&self) -> Result<(), ConnectError> {
        match self.server_name() {
            Some(_) => Ok(()),
            None => Err(ConnectError::Address {
                provider: self.peer.label.clone(),
                address: self.address.clone(),
            }),
        }
    }
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

/// A connection after the handshake.
type Secured = TlsStream<ReadAhead<TcpStream>>;

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
            Err(attempt.unreachable(NoSession::Silence(patience)))
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

    fn unreachable(&self, cause: NoSession) -> ConnectError {
        ConnectError::Unreachable {
            provider: self.provider(),
            address: self.to.address.clone(),
            cause: Box::new(cause),
        }
    }

    fn setup(&self, cause: impl Into<NoSession>) -> ConnectError {
        ConnectError::Setup {
            provider: self.provider(),
            cause: Box::new(cause.into()),
        }
    }

    async fn open(&self) -> Result<Session, ConnectError> {
        let mut stream = self.secured().await?;
        let chain = stream.get_ref().1.peer_certificates();
        let identity = chain.and_then(|chain| ed25519_key(chain.first()?));
        let identity = identity.ok_or_else(|| self.setup(NoSession::OtherKey))?;
        // A provider that refuses us may be gone before it reads this; its reason is still there.
        let _ = write_frame(&mut stream, &Frame::greeting()).await;
        match read_frame(&mut stream).await {
            Ok(Some((FrameKind::Greeting, payload))) => self.check(&payload)?,
            Ok(Some((FrameKind::Stop, payload))) => {
                return Err(self.refused(Stop::from_bytes(&payload)));
            }
            Ok(Some(_)) => return Err(self.greeting(FrameError::NoGreeting)),
            Ok(None) => return Err(self.unreachable(NoSession::Ended)),
            Err(FrameError::Broken(error)) => return Err(self.handshake_failed(error)),
            Err(FrameError::CutOff | FrameError::Silent) => {
                return Err(self.unreachable(NoSession::CutOff));
            }
            Err(error) => return Err(self.greeting(error)),
        }
        let wire = NetworkWire::new(stream, self.connector.limits, Surroundings::default());
        Ok(Session { wire, identity })
    }

    fn check(&self, greeting: &[u8]) -> Result<(), ConnectError> {
        let checked = Greeting::from_bytes(greeting).and_then(Greeting::check);
        checked.map_err(|e| self.greeting(e))
    }

    fn greeting(&self, cause: impl Into<NoSession>) -> ConnectError {
        ConnectError::Greeting {
            provider: self.provider(),
            cause: Box::new(cause.into()),
        }
    }

    async fn secured(&self) -> Result<Secured, ConnectError> {
        let malformed = || ConnectError::Address {
            provider: self.provider(),
            address: self.to.address.clone(),
        };
        let name = self.to.server_name().ok_or_else(malformed)?;
        let tls = self.tls()?;
        let tcp = TcpStream::connect(&self.to.address).await;
        let tcp = tcp.map_err(|e| self.unreachable(NoSession::System(e)))?;
        let _ = tcp.set_nodelay(true);
        let mut stream = ReadAhead::new(tcp);
        stream.begin();
        let connected = tls.connect(name, stream).await;
        connected.map_err(|e| self.handshake_failed(e))
    }

    fn tls(&self) -> Result<TlsConnector, ConnectError> {
        let trust = Trust::new(vec![self.to.peer.clone()]);
        let trust = Arc::new(trust.map_err(|e| self.setup(e))?);
        let Connector {
            identity, clock, ..
        } = self.connector;
        let config = client_tls(identity, &trust, clock);
        let config = config.map_err(|e| self.setup(e))?;
        Ok(TlsConnector::from(Arc::new(config)))
    }

    fn handshake_failed(&self, error: std::io::Error) -> ConnectError {
        let inner = error.get_ref().and_then(|e| e.downcast_ref());
        match inner {
            Some(rustls::Error::InvalidCertificate(cause)) => ConnectError::NotThePeer {
                provider: self.provider(),
                address: self.to.address.clone(),
                cause: Box::new(NoSession::Certificate(cause.clone())),
            },
            Some(rustls::Error::AlertReceived(AlertDescription::NoApplicationProtocol)) => {
                self.greeting(NoSession::OtherProtocol)
            }
            Some(rustls::Error::AlertReceived(AlertDescription::HandshakeFailure)) => {
                self.greeting(NoSession::KeyExchange)
            }
            Some(rustls::Error::AlertReceived(alert)) if is_about_certificates(*alert) => {
                ConnectError::NotAllowed {
                    provider: self.provider(),
                    fingerprint: self.connector.identity.fingerprint(),
                    cause: error,
                }
            }
            Some(_) => self.unreachable(NoSession::Damaged(error)),
            None => self.unreachable(NoSession::System(error)),
        }
    }

    fn refused(&self, stop: Stop) -> ConnectError {
        let provider = self.provider();
        match stop.code {
            StopCode::Version | StopCode::Protocol => self.greeting(NoSession::Told(stop)),
            code if code.may_pass() => ConnectError::Busy { provider, stop },
            _ => ConnectError::Refused { provider, stop },
        }
    }
}

/// Other alerts say that bytes did not arrive as they were sent.
fn is_about_certificates(alert: AlertDescription) -> bool {
    matches!(
        alert,
        AlertDescription::BadCertificate
            | AlertDescription::UnsupportedCertificate
            | AlertDescription::CertificateRevoked
            | AlertDescription::CertificateExpired
            | AlertDescription::CertificateUnknown
            | AlertDescription::UnknownCA
            | AlertDescription::AccessDenied
            | AlertDescription::CertificateRequired
    )
}
