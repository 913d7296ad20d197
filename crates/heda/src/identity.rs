//! An identity for a party: a key, a certificate, and the fingerprint that peers need.

use crate::error::{Error, ErrorKind};
use heda_crypto::random::Randomness;
use heda_node::identity::IdentityError;
use heda_node::identity::trust::OwnCertificate;
use heda_node::system::clock::{Clock, SystemClock};
use std::path::Path;
use std::time::Duration;

pub use heda_node::identity::Identity;
pub use heda_node::identity::fingerprint::PeerFingerprint;

/// Days until a certificate expires, if nothing is said.
pub const DAYS: u32 = 825;

/// Makes a key and a certificate in a folder that holds none yet.
///
/// # Errors
/// If the name or the folder cannot be used.
pub fn create(name: &str, folder: &Path, days: u32) -> Result<Identity, Error> {
    let mut rng = Randomness::from_os()
        .fork("identity", 0)
        .map_err(Error::bug)?;
    let now = SystemClock.now();
    let identity = Identity::generate(name, now, validity(days), &mut rng).map_err(failure)?;
    identity.store(name, folder).map_err(failure)?;
    Ok(identity)
}

/// Keeps the key of a folder, and so its fingerprint, and replaces its certificate by a new one.
///
/// # Errors
/// If there is no identity, or an authority has signed it.
pub fn renew(name: &str, folder: &Path, days: u32) -> Result<Identity, Error> {
    let identity = Identity::load(folder).map_err(failure)?;
    if OwnCertificate::of(&identity).is_some_and(|own| !own.self_signed) {
        return Err(Error::input(
            "the certificate was signed by an authority, and peers that trust it would refuse one \
             that is self-signed; have the authority sign request.pem again",
        ));
    }
    let renewed = identity.renewed(name, SystemClock.now(), validity(days));
    let renewed = renewed.map_err(failure)?;
    renewed.store_certificate(folder).map_err(failure)?;
    Ok(renewed)
}

fn validity(days: u32) -> Duration {
    Duration::from_secs(u64::from(days) * 86_400)
}

fn failure(error: IdentityError) -> Error {
    let kind = match error {
        IdentityError::Making(_) => ErrorKind::Bug,
        _ => ErrorKind::Input,
    };
    Error::new(kind, error)
}

/// The identity in a folder, made if there is none.
///
/// # Errors
/// As [`create`], and if the one that is there cannot be used.
pub fn load_or_create(name: &str, folder: &Path) -> Result<Identity, Error> {
    match folder.join("key.pem").exists() {
        true => Identity::load(folder).map_err(failure),
        false => create(name, folder, DAYS),
    }
}
