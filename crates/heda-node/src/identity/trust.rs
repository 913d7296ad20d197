//! Whom a party talks to: peers pinned by fingerprint, or named by a private authority.
//!
//! The decision is made inside the TLS handshake, before a byte of any other protocol is read.
//! A pinned peer shows a self-signed certificate that is within its dates. A certified peer shows a certificate that chains to the authority, is within its dates
//! and carries the expected name. That the peer holds the key is proved by its signature over
//! the handshake, which rustls verifies with the algorithms of its provider.

use crate::identity::dates::validity;
use crate::identity::fingerprint::PeerFingerprint;
use crate::identity::key_exchange;
use crate::identity::{Identity, IdentityError};
use crate::system::clock::{Clock, Timestamp};
use crate::wire::greeting::ALPN;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{verify_server_cert_signed_by_trust_anchor, verify_server_name};
use rustls::crypto::{CryptoProvider, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::server::{ParsedCertificate, WebPkiClientVerifier};
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, DistinguishedName, OtherError,
    RootCertStore, ServerConfig, SignatureScheme,
};
use std::sync::Arc;
use std::time::Duration;

/// How one peer is recognised.
#[derive(Debug, Clone)]
pub enum Recognition {
    /// By its public key.
    Fingerprint(PeerFingerprint),
    /// By a certificate of this authority for this name.
    Certified {
        /// The authority's certificate.
        authority: CertificateDer<'static>,
        /// The name in the peer's certificate.
        name: String,
    },
}

/// A peer that may connect.
#[derive(Debug, Clone)]
pub struct TrustedPeer {
    /// What the configuration calls it.
    pub label: String,
    /// How it is recognised.
    pub recognition: Recognition,
}

/// A peer that proved in the handshake who it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PeerIdentity {
    /// What the configuration calls it.
    pub label: String,
    /// Its key.
    pub fingerprint: PeerFingerprint,
}

/// Why a peer is not recognised.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum TrustError {
    /// It is no certificate.
    #[error("the certificate cannot be read: {0}")]
    Unreadable(rustls::Error),
    /// Nobody in the configuration has this key or certificate.
    #[error("{0} is not among the peers of this configuration")]
    Stranger(PeerFingerprint),
    /// A known peer whose certificate is not valid.
    #[error("the certificate of {label} ({fingerprint}) is not valid: {cause}")]
    Invalid {
        /// What the configuration calls the peer.
        label: String,
        /// Its key.
        fingerprint: PeerFingerprint,
        /// What is wrong with it, such as its dates.
        cause: rustls::Error,
    },
    /// The authority's certificate cannot be used.
    #[error("the certificate of the authority for {label} cannot be used: {cause}")]
    Authority {
        /// The peer whose authority this is.
        label: String,
        /// What is wrong with it.
        cause: rustls::Error,
    },
    /// What an authority is to certify is not a host name.
    #[error(
        "the certificate of the authority for {label} cannot be used: `{name}` is not a host name"
    )]
    AuthorityName {
        /// The peer whose authority this is.
        label: String,
        /// What it is to certify.
        name: String,
    },
    /// A text that is not a fingerprint.
    #[error("a fingerprint is `sha256:` and 64 hexadecimal digits, as `heda init` prints it")]
    NotAFingerprint,
}

/// The side that a certificate is shown by.
#[derive(Debug, Clone, Copy)]
enum ShownBy {
    Server,
    Client,
}

/// The peers that may connect, or be connected to.
#[derive(Debug)]
pub struct Trust {
    peers: Vec<(TrustedPeer, Option<Arc<RootCertStore>>)>,
    provider: Arc<CryptoProvider>,
}

impl Trust {
    /// Trust in these peers and nobody else.
    pub fn new(peers: Vec<TrustedPeer>) -> Result<Self, TrustError> {
        let prepared = peers.into_iter().map(|peer| {
            let roots = match &peer.recognition {
                Recognition::Fingerprint(_) => None,
                Recognition::Certified { authority, name } => {
                    Some(authority_roots(&peer.label, authority, name)?)
                }
            };
            Ok((peer, roots))
        });
        Ok(Self {
            peers: prepared.collect::<Result<_, _>>()?,
            provider: Arc::new(key_exchange::provider()),
        })
    }

    /// Who shows this certificate, if it is one of the peers and the certificate is valid.
    fn identify(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
        shown_by: ShownBy,
    ) -> Result<PeerIdentity, TrustError> {
        let parsed = ParsedCertificate::try_from(certificate).map_err(TrustError::Unreadable)?;
        let fingerprint = PeerFingerprint::of_key(&parsed.subject_public_key_info());
        for (peer, roots) in &self.peers {
            let valid = match (&peer.recognition, roots) {
                (Recognition::Fingerprint(pinned), _) if *pinned == fingerprint => {
                    self.self_signed_and_current(&parsed, certificate, now)
                }
                (Recognition::Certified { name, .. }, Some(roots)) if carries(&parsed, name) => {
                    self.chains_to(roots, certificate, intermediates, now, shown_by)
                }
                _ => continue,
            };
            let label = peer.label.clone();
            return match valid {
                Ok(()) => Ok(PeerIdentity { label, fingerprint }),
                Err(cause) => Err(TrustError::Invalid {
                    label,
                    fingerprint,
                    cause,
                }),
            };
        }
        Err(TrustError::Stranger(fingerprint))
    }

    /// A self-signed certificate is its own authority: checks its signature and its dates.
    fn self_signed_and_current(
        &self,
        parsed: &ParsedCertificate<'_>,
        certificate: &CertificateDer<'_>,
        now: UnixTime,
    ) -> Result<(), rustls::Error> {
        let mut own = RootCertStore::empty();
        own.add(certificate.clone().into_owned())?;
        let algorithms = self.provider.signature_verification_algorithms.all;
        verify_server_cert_signed_by_trust_anchor(parsed, &own, &[], now, algorithms)
    }

    fn chains_to(
        &self,
        roots: &Arc<RootCertStore>,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
        shown_by: ShownBy,
    ) -> Result<(), rustls::Error> {
        match shown_by {
            ShownBy::Server => {
                let parsed = ParsedCertificate::try_from(certificate)?;
                let algorithms = self.provider.signature_verification_algorithms.all;
                verify_server_cert_signed_by_trust_anchor(
                    &parsed,
                    roots,
                    intermediates,
                    now,
                    algorithms,
                )
            }
            ShownBy::Client => {
                let provider = Arc::clone(&self.provider);
                WebPkiClientVerifier::builder_with_provider(Arc::clone(roots), provider)
                    .build()
                    .map_err(|e| rustls::Error::General(e.to_string()))?
                    .verify_client_cert(certificate, intermediates, now)
                    .map(|_| ())
            }
        }
    }

    /// Who is at the other end of a finished handshake, as the provider sees it.
    pub(crate) fn peer_of(
        &self,
        chain: Option<&[CertificateDer<'_>]>,
        now: Timestamp,
    ) -> Option<PeerIdentity> {
        let (leaf, rest) = chain?.split_first()?;
        let now = UnixTime::since_unix_epoch(Duration::from_secs(now.0));
        self.identify(leaf, rest, now, ShownBy::Client).ok()
    }
}

fn authority_roots(
    label: &str,
    authority: &CertificateDer<'static>,
    name: &str,
) -> Result<Arc<RootCertStore>, TrustError> {
    ServerName::try_from(name).map_err(|_| TrustError::AuthorityName {
        label: label.to_owned(),
        name: name.to_owned(),
    })?;
    let mut roots = RootCertStore::empty();
    let added = roots.add(authority.clone());
    added.map_err(|cause| TrustError::Authority {
        label: label.to_owned(),
        cause,
    })?;
    Ok(Arc::new(roots))
}

fn carries(certificate: &ParsedCertificate<'_>, name: &str) -> bool {
    ServerName::try_from(name).is_ok_and(|name| verify_server_name(certificate, &name).is_ok())
}

/// What a party should know about its own certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OwnCertificate {
    /// First second of its validity.
    pub begins: Timestamp,
    /// Last second of its validity.
    pub ends: Timestamp,
    /// Whether it is its own issuer: then we can renew it ourselves, and only then do peers that
    /// have our fingerprint accept it.
    pub self_signed: bool,
}

impl OwnCertificate {
    /// Reads the certificate of an identity; none if it has no dates.
    pub fn of(identity: &Identity) -> Option<Self> {
        let leaf = identity.chain().first()?;
        let (begins, ends) = validity(leaf)?;
        let trust = Trust::new(vec![TrustedPeer {
            label: "self".into(),
            recognition: Recognition::Fingerprint(identity.fingerprint()),
        }]);
        let then = UnixTime::since_unix_epoch(Duration::from_secs(begins.0));
        let identified = trust.ok()?.identify(leaf, &[], then, ShownBy::Server);
        Some(Self {
            begins,
            ends,
            self_signed: identified.is_ok(),
        })
    }
}

fn refusal(error: TrustError) -> rustls::Error {
    CertificateError::Other(OtherError(Arc::new(error))).into()
}

/// The certificate verifier of either side. TLS 1.2 is not spoken, so its signatures never count.
#[derive(Debug)]
struct Verifier(Arc<Trust>);

impl Verifier {
    fn signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signed, algorithms)
    }

    fn schemes(&self) -> Vec<SignatureScheme> {
        let algorithms = &self.0.provider.signature_verification_algorithms;
        algorithms.supported_schemes()
    }
}

const NO_TLS12: rustls::Error =
    rustls::Error::PeerIncompatible(rustls::PeerIncompatible::Tls12NotOffered);

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _address: &ServerName<'_>,
        _ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let peer = (self.0).identify(certificate, intermediates, now, ShownBy::Server);
        peer.map_err(refusal)
            .map(|_| ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _certificate: &CertificateDer<'_>,
        _signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Err(NO_TLS12)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.schemes()
    }
}

impl ClientCertVerifier for Verifier {
    /// No hints: whom a provider talks to is nobody else's business.
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        let peer = (self.0).identify(certificate, intermediates, now, ShownBy::Client);
        peer.map_err(refusal)
            .map(|_| ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _certificate: &CertificateDer<'_>,
        _signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Err(NO_TLS12)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.schemes()
    }
}

/// Our clock in the form that TLS wants.
#[derive(Debug)]
struct TlsClock(Arc<dyn Clock>);

impl rustls::time_provider::TimeProvider for TlsClock {
    fn current_time(&self) -> Option<UnixTime> {
        let now = self.0.now();
        Some(UnixTime::since_unix_epoch(Duration::from_secs(now.0)))
    }
}

/// TLS 1.3 for the provider: every client must prove to be a trusted peer.
pub(crate) fn server_tls(
    identity: &Identity,
    trust: &Arc<Trust>,
    clock: &Arc<dyn Clock>,
) -> Result<ServerConfig, IdentityError> {
    let provider = Arc::clone(&trust.provider);
    let clock = Arc::new(TlsClock(Arc::clone(clock)));
    let mut config = ServerConfig::builder_with_details(provider, clock)
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_client_cert_verifier(Arc::new(Verifier(Arc::clone(trust))))
        .with_single_cert(identity.chain().to_vec(), identity.tls_key()?)?;
    config.alpn_protocols = vec![ALPN.to_vec()];
    // A resumed session would skip the check of dates; sessions are long and few.
    config.session_storage = Arc::new(rustls::server::NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    Ok(config)
}

/// TLS 1.3 for the data user: the server must prove to be a trusted peer.
pub(crate) fn client_tls(
    identity: &Identity,
    trust: &Arc<Trust>,
    clock: &Arc<dyn Clock>,
) -> Result<ClientConfig, IdentityError> {
    let provider = Arc::clone(&trust.provider);
    let clock = Arc::new(TlsClock(Arc::clone(clock)));
    let mut config = ClientConfig::builder_with_details(provider, clock)
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Verifier(Arc::clone(trust))))
        .with_client_auth_cert(identity.chain().to_vec(), identity.tls_key()?)?;
    config.alpn_protocols = vec![ALPN.to_vec()];
    config.resumption = rustls::client::Resumption::disabled();
    Ok(config)
}
