//! Steps J1 to J6 by hand, with the tags of `docs/protocols.md`.

use heda_blocks::channel::{Channel, ChannelError};
use heda_job::proposal::{Proposal, Split};
use sha2::{Digest, Sha256};

pub(crate) const PROPOSAL: u8 = 0x01;
pub(crate) const ACCEPTANCE: u8 = 0x02;
pub(crate) const ANNOUNCEMENTS: u8 = 0x03;
pub(crate) const SPLIT: u8 = 0x05;
pub(crate) const CHARGE: u8 = 0x08;
pub(crate) const RELEASE: u8 = 0x09;
pub(crate) const AGREEMENT: u8 = 0x0a;

pub(crate) fn agree(channel: &mut Channel, proposal: &Proposal) -> Result<(), ChannelError> {
    channel.send(PROPOSAL, &serde_json::to_vec(proposal).unwrap())?;
    let accepted = channel.receive(ACCEPTANCE, 1 << 20)?;
    let accepted: serde_json::Value = serde_json::from_slice(&accepted).unwrap();
    let announcement = accepted["announcement"].as_str().unwrap().as_bytes();
    let pairs = announcement
        .chunks(2)
        .map(|pair| std::str::from_utf8(pair).unwrap());
    let bytes: Vec<u8> = pairs
        .map(|pair| u8::from_str_radix(pair, 16).unwrap())
        .collect();
    channel.send(ANNOUNCEMENTS, &bytes)?;
    let agreement = serde_json::json!({
        "trusted": 0,
        "persons": false,
        "first_step": accepted["next_step"],
    });
    channel.send(AGREEMENT, agreement.to_string().as_bytes())
}

/// Five features encrypted, four published.
pub(crate) fn split(channel: &mut Channel) -> Result<(), ChannelError> {
    let split = Split {
        encrypted: (0..5).collect(),
        published: (5..9).collect(),
        dropped: Vec::new(),
    };
    channel.send(SPLIT, &serde_json::to_vec(&split).unwrap())
}

/// SHA-256 of the release, as in the ledger.
pub(crate) fn release(channel: &mut Channel) -> Result<String, ChannelError> {
    channel.receive(CHARGE, 1 << 20)?;
    let content = channel.receive(RELEASE, 1 << 20)?;
    let hash = Sha256::digest(content);
    Ok(hash.iter().map(|byte| format!("{byte:02x}")).collect())
}
