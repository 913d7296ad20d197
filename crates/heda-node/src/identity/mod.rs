//! Who a party is: an Ed25519 key and a certificate for it.
//!
//! The key proves the identity in TLS, and signs the announcements of masks that providers send
//! each other through the data user. A folder holds `key.pem` (PKCS #8, readable by its owner
//! only), `certificate.pem` (self-signed at first, or the chain that a private authority gave)
//! and `request.pem` (what such an authority needs to sign).

pub(crate) mod dates;
pub mod fingerprint;
pub mod key_exchange;
pub mod trust;

use crate::identity::fingerprint::PeerFingerprint;
use crate::system::clock::Timestamp;
use crate::system::files;
use ed25519_dalek::pkcs8::spki::der::pem::LineEnding;
use ed25519_dalek::pkcs8::{DecodePrivateKey, EncodePrivateKey};
use ed25519_dalek::{Signer, SigningKey};
use rand_core::CryptoRng;
use rcgen::{CertificateParams, DistinguishedName, DnType, PKCS_ED25519};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;
use zeroize::Zeroizing;

/// A key with its certificate.
#[derive(Clone)]
pub struct Identity {
    key: SigningKey,
    chain: Vec<CertificateDer<'static>>,
    fingerprint: PeerFingerprint,
}

/// Why an identity could not be made, stored, read or used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum IdentityError {
    /// The name does not fit into a certificate.
    #[error(
        "`{0}` cannot name a party: use 1 to 63 small letters, digits, `-` and `.`, as in a host name"
    )]
    Name(String),
    /// There is an identity already.
    #[error("{0} exists already and is never overwritten; choose another folder")]
    Exists(PathBuf),
    /// A file could not be read or written.
    #[error("{path}: {cause}")]
    File {
        /// Which file.
        path: PathBuf,
        /// What the system said.
        cause: io::Error,
    },
    /// Others could read the key.
    #[error("{0} can be read by others; run `chmod 600` on it, and make a new key if it was seen")]
    KeyIsOpen(PathBuf),
    /// The key file holds no Ed25519 key.
    #[error("{0} holds no Ed25519 key in PKCS #8 PEM form")]
    Key(PathBuf),
    /// The certificate file holds no certificate.
    #[error("{0} holds no certificate in PEM form")]
    Certificate(PathBuf),
    /// Key and certificate belong to different parties.
    #[error("the certificate in {0} belongs to another key than key.pem beside it")]
    Mismatch(PathBuf),
    /// The certificate could not be made.
    #[error("the certificate could not be made: {0}")]
    Making(#[from] rcgen::Error),
    /// TLS does not take key or certificate.
    #[error("TLS cannot be set up with this identity: {0}")]
    Tls(#[from] rustls::Error),
}

/// Backdating of a new certificate, for peers whose clock is a little behind.
const BACKDATED: Duration = Duration::from_secs(3600);
/// Keys and certificates are a few hundred bytes; chains of an authority a few thousand.
const FILE_LIMIT: u64 = 256 * 1024;

impl Identity {
    /// Makes a key and a self-signed certificate.
    pub fn generate<R: CryptoRng>(
        name: &str,
        now: Timestamp,
        validity: Duration,
        rng: &mut R,
    ) -> Result<Self, IdentityError> {
        Self::self_signed(SigningKey::generate(rng), name, now, validity)
    }

    /// The same key, and so the same fingerprint, with a certificate that starts now.
    pub fn renewed(
        &self,
        name: &str,
        now: Timestamp,
        validity: Duration,
    ) -> Result<Self, IdentityError> {
        Self::self_signed(self.key.clone(), name, now, validity)
    }

    fn self_signed(
        key: SigningKey,
        name: &str,
        now: Timestamp,
        validity: Duration,
    ) -> Result<Self, IdentityError> {
        let mut params = certificate_params(name)?;
        let epoch = rcgen::date_time_ymd(1970, 1, 1);
        let start = Duration::from_secs(now.0).saturating_sub(BACKDATED);
        params.not_before = epoch + start;
        params.not_after = epoch + Duration::from_secs(now.0) + validity;
        let certificate = params.self_signed(&CertificateKey::of(&key))?;
        Self::new(
            key,
            vec![certificate.der().clone()],
            Path::new("certificate"),
        )
    }

    fn new(
        key: SigningKey,
        chain: Vec<CertificateDer<'static>>,
        path: &Path,
    ) -> Result<Self, IdentityError> {
        let certificate = || IdentityError::Certificate(path.to_owned());
        let leaf = chain.first().ok_or_else(certificate)?;
        let fingerprint = PeerFingerprint::of_certificate(leaf).map_err(|_| certificate())?;
        if fingerprint != CertificateKey::of(&key).fingerprint() {
            return Err(IdentityError::Mismatch(path.to_owned()));
        }
        Ok(Self {
            key,
            chain,
            fingerprint,
        })
    }

    /// Stores key, certificate and request in a folder that holds none of them yet.
    pub fn store(&self, name: &str, folder: &Path) -> Result<(), IdentityError> {
        let file = |path: &Path, cause| IdentityError::File {
            path: path.to_owned(),
            cause,
        };
        std::fs::create_dir_all(folder).map_err(|e| file(folder, e))?;
        let paths = [
            key_path(folder),
            certificate_path(folder),
            folder.join("request.pem"),
        ];
        if let Some(path) = paths.iter().find(|path| path.exists()) {
            return Err(IdentityError::Exists(path.clone()));
        }
        let request = certificate_params(name)?
            .serialize_request(&CertificateKey::of(&self.key))?
            .pem()?;
        let [key, certificate, request_path] = &paths;
        files::create_secret(key, self.key_pem(key)?.as_bytes()).map_err(|e| match e.kind() {
            io::ErrorKind::AlreadyExists => IdentityError::Exists(key.clone()),
            _ => file(key, e),
        })?;
        files::create_public(certificate, self.certificate_pem().as_bytes())
            .map_err(|e| file(certificate, e))?;
        files::create_public(request_path, request.as_bytes()).map_err(|e| file(request_path, e))
    }

    /// Replaces the certificate in a folder by this identity's.
    pub fn store_certificate(&self, folder: &Path) -> Result<(), IdentityError> {
        let path = certificate_path(folder);
        files::replace(&path, self.certificate_pem().as_bytes(), 0o644)
            .map_err(|cause| IdentityError::File { path, cause })
    }

    /// Reads the identity of a folder.
    pub fn load(folder: &Path) -> Result<Self, IdentityError> {
        let key = load_key(&key_path(folder))?;
        let path = certificate_path(folder);
        Self::new(key, load_certificates(&path)?, &path)
    }

    fn key_pem(&self, path: &Path) -> Result<Zeroizing<String>, IdentityError> {
        let pem = self.key.to_pkcs8_pem(LineEnding::LF);
        pem.map_err(|_| IdentityError::Key(path.to_owned()))
    }

    fn certificate_pem(&self) -> String {
        self.chain.iter().map(|c| pem_block(c)).collect()
    }

    /// The name by which peers know this party.
    pub fn fingerprint(&self) -> PeerFingerprint {
        self.fingerprint
    }

    /// The key, to sign what other parties must be able to attribute to this one.
    pub fn signing_key(&self) -> &SigningKey {
        &self.key
    }

    /// The certificate and what an authority put behind it.
    pub fn chain(&self) -> &[CertificateDer<'static>] {
        &self.chain
    }

    /// The key in the form that TLS wants.
    pub(crate) fn tls_key(&self) -> Result<PrivateKeyDer<'static>, IdentityError> {
        let der = self.key.to_pkcs8_der();
        let der = der.map_err(|_| IdentityError::Key(PathBuf::from("key.pem")))?;
        Ok(PrivatePkcs8KeyDer::from(der.as_bytes().to_vec()).into())
    }
}

impl std::fmt::Debug for Identity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Identity")
            .field("fingerprint", &self.fingerprint)
            .finish_non_exhaustive()
    }
}

fn key_path(folder: &Path) -> PathBuf {
    folder.join("key.pem")
}

fn certificate_path(folder: &Path) -> PathBuf {
    folder.join("certificate.pem")
}

fn load_key(path: &Path) -> Result<SigningKey, IdentityError> {
    let file = |cause| IdentityError::File {
        path: path.to_owned(),
        cause,
    };
    if !files::is_private(path).map_err(file)? {
        return Err(IdentityError::KeyIsOpen(path.to_owned()));
    }
    let pem = Zeroizing::new(files::read_bounded(path, FILE_LIMIT).map_err(file)?);
    let text = std::str::from_utf8(&pem).map_err(|_| IdentityError::Key(path.to_owned()))?;
    SigningKey::from_pkcs8_pem(text).map_err(|_| IdentityError::Key(path.to_owned()))
}

/// Reads all certificates of a PEM file.
pub(crate) fn load_certificates(
    path: &Path,
) -> Result<Vec<CertificateDer<'static>>, IdentityError> {
    let pem = files::read_bounded(path, FILE_LIMIT).map_err(|cause| IdentityError::File {
        path: path.to_owned(),
        cause,
    })?;
    let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&pem).collect();
    certificates
        .ok()
        .filter(|c| !c.is_empty())
        .ok_or_else(|| IdentityError::Certificate(path.to_owned()))
}

fn certificate_params(name: &str) -> Result<CertificateParams, IdentityError> {
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '.';
    let edge = |c: char| c == '-' || c == '.';
    if name.is_empty()
        || name.len() > 63
        || !name.chars().all(fits)
        || name.starts_with(edge)
        || name.ends_with(edge)
        || name.contains("..")
    {
        return Err(IdentityError::Name(name.chars().take(80).collect()));
    }
    let mut params = CertificateParams::new(vec![name.to_owned()])?;
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    Ok(params)
}

fn pem_block(certificate: &CertificateDer<'_>) -> String {
    use ed25519_dalek::pkcs8::spki::der::pem;
    // Encoding to memory fails only for labels that are not ASCII.
    pem::encode_string("CERTIFICATE", LineEnding::LF, certificate).unwrap_or_default()
}

/// The key as a signer of certificates, without giving a copy of it away.
struct CertificateKey<'a> {
    key: &'a SigningKey,
    public: [u8; 32],
}

impl<'a> CertificateKey<'a> {
    fn of(key: &'a SigningKey) -> Self {
        let public = key.verifying_key().to_bytes();
        Self { key, public }
    }

    fn fingerprint(&self) -> PeerFingerprint {
        let key = rcgen::PublicKeyData::subject_public_key_info(self);
        PeerFingerprint::of_key(&key.into())
    }
}

impl rcgen::PublicKeyData for CertificateKey<'_> {
    fn der_bytes(&self) -> &[u8] {
        &self.public
    }

    fn algorithm(&self) -> &'static rcgen::SignatureAlgorithm {
        &PKCS_ED25519
    }
}

impl rcgen::SigningKey for CertificateKey<'_> {
    fn sign(&self, message: &[u8]) -> Result<Vec<u8>, rcgen::Error> {
        Ok(self.key.sign(message).to_bytes().to_vec())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use heda_crypto::random::Randomness;
    use std::os::unix::fs::PermissionsExt;

    const YEAR: Duration = Duration::from_secs(365 * 86_400);

    fn identity(name: &str) -> Result<Identity, IdentityError> {
        let mut rng = Randomness::seeded(1).fork(name, 0).unwrap();
        Identity::generate(name, Timestamp(1_800_000_000), YEAR, &mut rng)
    }

    #[test]
    fn is_stored_privately_and_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let made = identity("hospital-a").unwrap();
        made.store("hospital-a", folder.path()).unwrap();
        assert!(files::is_private(&key_path(folder.path())).unwrap());
        let read = Identity::load(folder.path()).unwrap();
        assert_eq!(read.fingerprint(), made.fingerprint());
        assert_eq!(read.signing_key().to_bytes(), made.key.to_bytes());
        let key = made.key.verifying_key();
        assert_eq!(PeerFingerprint::of_identity(&key), made.fingerprint());
        assert_eq!(
            crate::identity::fingerprint::ed25519_key(&made.chain()[0]),
            Some(key)
        );
        assert_eq!(read.chain(), made.chain());
    }

    #[test]
    fn is_never_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        identity("a").unwrap().store("a", folder.path()).unwrap();
        let before = std::fs::read(key_path(folder.path())).unwrap();
        let again = identity("b").unwrap().store("b", folder.path());
        assert!(matches!(again, Err(IdentityError::Exists(_))));
        assert_eq!(std::fs::read(key_path(folder.path())).unwrap(), before);
    }

    #[test]
    fn renewal_keeps_the_fingerprint() {
        let folder = tempfile::tempdir().unwrap();
        let first = identity("a").unwrap();
        first.store("a", folder.path()).unwrap();
        let second = first.renewed("a", Timestamp(1_900_000_000), YEAR).unwrap();
        second.store_certificate(folder.path()).unwrap();
        let read = Identity::load(folder.path()).unwrap();
        assert_eq!(read.fingerprint(), first.fingerprint());
        assert_ne!(read.chain(), first.chain());
    }

    #[test]
    fn open_keys_strange_files_and_foreign_certificates_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        identity("a").unwrap().store("a", folder.path()).unwrap();
        let key = key_path(folder.path());
        std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o640)).unwrap();
        let open = Identity::load(folder.path());
        assert!(matches!(open, Err(IdentityError::KeyIsOpen(_))));
        std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o600)).unwrap();
        identity("b")
            .unwrap()
            .store_certificate(folder.path())
            .unwrap();
        let foreign = Identity::load(folder.path());
        assert!(matches!(foreign, Err(IdentityError::Mismatch(_))));
        std::fs::write(certificate_path(folder.path()), "nonsense").unwrap();
        let nonsense = Identity::load(folder.path());
        assert!(matches!(nonsense, Err(IdentityError::Certificate(_))));
        std::fs::write(&key, "nonsense").unwrap();
        assert!(matches!(
            Identity::load(folder.path()),
            Err(IdentityError::Key(_))
        ));
    }

    #[test]
    fn names_are_host_names() {
        for bad in ["", "A", "a b", "-a", "a.", "a..b", "ä", &"a".repeat(64)] {
            assert!(
                matches!(identity(bad), Err(IdentityError::Name(_))),
                "{bad}"
            );
        }
        identity("ward-3.hospital.example").unwrap();
    }

    #[test]
    fn debug_shows_no_key() {
        let text = format!("{:?}", identity("a").unwrap());
        assert!(text.contains("sha256:") && text.len() < 120, "{text}");
    }
}
