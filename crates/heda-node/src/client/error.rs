//! Why there is no session with a provider: who is at fault, and whether it may pass.

use crate::identity::IdentityError;
use crate::identity::fingerprint::PeerFingerprint;
use crate::identity::trust::TrustError;
use crate::wire::frame::FrameError;
use heda_blocks::stop::Stop;
use heda_job::proposal::PROTOCOL_VERSION;
use std::time::Duration;

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
    /// Our own key, our trust, or the provider's kind of key cannot be used.
    #[error("{provider}: {cause}")]
    Setup {
        /// The provider's name in the job.
        provider: String,
        /// What is wrong.
        cause: Box<NoSession>,
    },
    /// Nobody answers there.
    #[error("{provider} cannot be reached at {address}: {cause}")]
    Unreachable {
        /// The provider's name in the job.
        provider: String,
        /// Its address.
        address: String,
        /// What happened instead.
        cause: Box<NoSession>,
    },
    /// Somebody else answers there.
    #[error("whoever answers at {address} is not {provider}: {cause}")]
    NotThePeer {
        /// The provider's name in the job.
        provider: String,
        /// Its address.
        address: String,
        /// What is wrong with its certificate.
        cause: Box<NoSession>,
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
        fingerprint: PeerFingerprint,
        /// What TLS said.
        cause: std::io::Error,
    },
    /// Another version of the protocol.
    #[error("{provider}: {cause}")]
    Greeting {
        /// The provider's name in the job.
        provider: String,
        /// Both versions.
        cause: Box<NoSession>,
    },
    /// The provider says no, for a reason that does not pass.
    #[error("{provider} refuses the session: {stop}")]
    Refused {
        /// The provider's name in the job.
        provider: String,
        /// Its code and its words.
        stop: Stop,
    },
    /// The provider is busy or stopping.
    #[error("{provider} takes no session now: {stop}")]
    Busy {
        /// The provider's name in the job.
        provider: String,
        /// Its code and its words.
        stop: Stop,
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
            | Self::Refused { provider, .. }
            | Self::Busy { provider, .. } => provider,
        }
    }
}

/// What went wrong where a session was to begin.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NoSession {
    /// The job's way of recognising the provider does not serve.
    #[error(transparent)]
    Trust(#[from] TrustError),
    /// Our own key or certificate does not serve.
    #[error(transparent)]
    Identity(#[from] IdentityError),
    /// Identities are Ed25519 keys.
    #[error("its key is not an Ed25519 key; its operator makes one with `heda init`")]
    OtherKey,
    /// Its certificate is not the one that was expected, or not valid.
    #[error("{}", certificate_words(.0))]
    Certificate(rustls::CertificateError),
    /// Its greeting does not fit, or is no frame.
    #[error(transparent)]
    Frame(#[from] FrameError),
    /// The provider knows no protocol of this name.
    #[error("it does not speak the protocol of Heda; the address belongs to another program")]
    OtherProtocol,
    /// The provider has no key exchange in common with us.
    #[error(
        "it does not know the key exchange X25519MLKEM768, which this program (protocol version \
         {PROTOCOL_VERSION}) requires; the provider must update"
    )]
    KeyExchange,
    /// The provider says so.
    #[error("{0}")]
    Told(Stop),
    /// Nothing.
    #[error("no answer within {0:?}")]
    Silence(Duration),
    /// The system or the network failed.
    #[error(transparent)]
    System(std::io::Error),
    /// What arrived is not what was sent.
    #[error("the handshake was damaged on the way: {0}")]
    Damaged(std::io::Error),
    /// The connection ended in good order.
    #[error("it ended the connection")]
    Ended,
    /// The connection ended in the middle of a frame, or was silent in it.
    #[error("it stopped in the middle of its greeting")]
    CutOff,
}

/// What is wrong with a certificate, in words for people.
fn certificate_words(error: &rustls::CertificateError) -> String {
    match error {
        // What our own verifier said.
        rustls::CertificateError::Other(other) => other.0.to_string(),
        other => format!("{other:?}"),
    }
}
