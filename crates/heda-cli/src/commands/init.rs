//! `heda init`: an identity for this party.

use crate::output::{self, note};
use clap::Args;
use heda::failure::{Failure, Kind};
use heda_crypto::random::Randomness;
use heda_node::identity::fingerprint::PeerFingerprint;
use heda_node::identity::trust::OwnCertificate;
use heda_node::identity::{Identity, IdentityError};
use heda_node::system::clock::{Clock, SystemClock};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Make a key and a certificate, and print the fingerprint that peers need.
#[derive(Debug, Args)]
pub(crate) struct Init {
    /// The party's name in its certificate: small letters, digits, `-` and `.`.
    #[arg(long)]
    name: String,
    /// Folder for key.pem, certificate.pem and request.pem; nothing in it is overwritten.
    #[arg(long)]
    out: PathBuf,
    /// Days until the certificate expires.
    #[arg(long, default_value_t = DAYS, value_parser = clap::value_parser!(u32).range(1..=3650))]
    days: u32,
    /// Keep the key of the folder and replace its certificate by a new one; the fingerprint
    /// stays the same.
    #[arg(long)]
    renew: bool,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

#[derive(serde::Serialize)]
struct Printed {
    name: String,
    folder: PathBuf,
    fingerprint: PeerFingerprint,
}

pub(crate) fn run(arguments: Init) -> Result<(), Failure> {
    let identity = if arguments.renew {
        renew(&arguments)?
    } else {
        create(&arguments)?
    };
    let fingerprint = identity.fingerprint();
    if arguments.json {
        return output::print_json(&Printed {
            name: arguments.name,
            folder: arguments.out,
            fingerprint,
        });
    }
    let done = if arguments.renew { "renewed" } else { "made" };
    note!("{done} {} in {}", arguments.name, arguments.out.display());
    note!("keep key.pem secret; give this fingerprint to your peers:");
    output::print_text(&fingerprint.to_string())
}

/// Days until a certificate expires, if nothing is said.
const DAYS: u32 = 825;

fn validity(arguments: &Init) -> Duration {
    Duration::from_secs(u64::from(arguments.days) * 86_400)
}

/// Makes an identity in a folder.
pub(crate) fn new_identity(name: &str, folder: &Path) -> Result<Identity, Failure> {
    create(&Init {
        name: name.to_owned(),
        out: folder.to_owned(),
        days: DAYS,
        renew: false,
        json: false,
    })
}

fn create(arguments: &Init) -> Result<Identity, Failure> {
    let validity = validity(arguments);
    let mut rng = Randomness::from_os()
        .fork("identity", 0)
        .map_err(|e| Failure::new(Kind::Bug, e))?;
    let now = SystemClock.now();
    let identity = Identity::generate(&arguments.name, now, validity, &mut rng).map_err(failure)?;
    identity
        .store(&arguments.name, &arguments.out)
        .map_err(failure)?;
    Ok(identity)
}

fn renew(arguments: &Init) -> Result<Identity, Failure> {
    let validity = validity(arguments);
    let identity = Identity::load(&arguments.out).map_err(failure)?;
    if OwnCertificate::of(&identity).is_some_and(|own| !own.self_signed) {
        return Err(Failure::input(
            "the certificate was signed by an authority, and peers that trust it would refuse one \
             that is self-signed; have the authority sign request.pem again",
        ));
    }
    let renewed = identity
        .renewed(&arguments.name, SystemClock.now(), validity)
        .map_err(failure)?;
    renewed.store_certificate(&arguments.out).map_err(failure)?;
    Ok(renewed)
}

fn failure(error: IdentityError) -> Failure {
    let kind = match error {
        IdentityError::Making(_) => Kind::Bug,
        _ => Kind::Input,
    };
    Failure::new(kind, error)
}
