//! `heda init`: an identity for this party.

use crate::output::{self, note};
use clap::Args;
use heda::Error;
use heda::identity::{self, PeerFingerprint};
use std::path::PathBuf;

/// Make a key and a certificate, and print the fingerprint that peers need
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  heda init --name university --out identity
  heda init --name university --out identity --renew --days 365")]
pub(crate) struct Init {
    /// The party's name in its certificate: small letters, digits, `-` and `.`
    #[arg(long, value_name = "NAME")]
    name: String,
    /// Folder for key.pem, certificate.pem and request.pem; nothing in it is overwritten
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Days until the certificate expires
    #[arg(long, value_name = "DAYS", default_value_t = identity::DAYS, value_parser = clap::value_parser!(u32).range(1..=3650))]
    days: u32,
    /// Keep the key of the folder and replace its certificate by a new one; the fingerprint
    /// stays the same
    #[arg(long)]
    renew: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(serde::Serialize)]
struct SchemaWritten {
    name: String,
    folder: PathBuf,
    fingerprint: PeerFingerprint,
}

pub(crate) fn run(arguments: Init) -> Result<(), Error> {
    let make = match arguments.renew {
        true => identity::renew,
        false => identity::create,
    };
    let made = make(&arguments.name, &arguments.out, arguments.days)?;
    let fingerprint = made.fingerprint();
    if arguments.json {
        return output::print_json(&SchemaWritten {
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
