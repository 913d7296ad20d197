//! A hostile data user: it has a key that the provider allows, knows the protocol, and sends a
//! recorded job with one message changed, as fast as it can.

use crate::chance::Chance;
use crate::relay::Recording;
use crate::tls::{raw_frame, read_frame, session};
use heda_node::wire::frame::FrameKind;
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// Tags of `docs/protocols.md`.
const PROPOSAL: u8 = 0x01;
const ACCEPTANCE: u8 = 0x02;
const ANNOUNCEMENTS: u8 = 0x03;
pub(crate) const SCORES: u8 = 0x04;

/// How long an answer is waited for.
const PATIENCE: Duration = Duration::from_millis(150);

/// What one visit does.
pub(crate) struct Visit<'a> {
    pub(crate) connector: &'a TlsConnector,
    pub(crate) port: u16,
    pub(crate) job: &'a Recording,
    /// Which message is changed, if any; the visit ends after it.
    pub(crate) changed: Option<usize>,
    /// A name for the job, in hexadecimal; the recorded one if none is given.
    pub(crate) name: Option<String>,
}

impl Visit<'_> {
    /// Plays the job until the changed message; tags of what the provider answered.
    pub(crate) async fn run(&self, chance: &mut Chance) -> std::io::Result<Vec<u8>> {
        let (mut stream, mut tags) = self.play(usize::MAX, chance).await?;
        // Whatever it says or does, but not for ever; a peer that leaves must not matter either.
        hear(&mut stream, &mut tags, u8::MAX).await;
        Ok(tags)
    }

    /// Sends so many messages of the job at most.
    pub(crate) async fn play(
        &self,
        most: usize,
        chance: &mut Chance,
    ) -> std::io::Result<(TlsStream<TcpStream>, Vec<u8>)> {
        let mut stream = session(self.connector, self.port).await?;
        let mut tags = Vec::new();
        // The greeting was sent already.
        for (number, (kind, payload)) in self.job.iter().skip(1).take(most).enumerate() {
            let mut payload = payload.clone();
            match payload.first() {
                Some(&PROPOSAL) => self.rename(&mut payload),
                Some(&ANNOUNCEMENTS) if number < 3 => {
                    let Some(answer) = hear(&mut stream, &mut tags, ACCEPTANCE).await else {
                        break;
                    };
                    payload = [&[ANNOUNCEMENTS][..], &announcement(&answer)].concat();
                }
                _ => {}
            }
            let last = self.changed == Some(number);
            if last {
                chance.mutate(&mut payload);
            }
            stream.write_all(&raw_frame(*kind, &payload)).await?;
            if last {
                break;
            }
        }
        stream.flush().await?;
        Ok((stream, tags))
    }

    fn rename(&self, payload: &mut Vec<u8>) {
        let (Some(name), Ok(mut proposal)) = (
            &self.name,
            serde_json::from_slice::<serde_json::Value>(&payload[1..]),
        ) else {
            return;
        };
        proposal["id"] = name.clone().into();
        *payload = [&[PROPOSAL][..], proposal.to_string().as_bytes()].concat();
    }
}

/// Reads until a message with this tag, the end, or the end of patience.
async fn hear<R>(stream: &mut R, tags: &mut Vec<u8>, tag: u8) -> Option<Vec<u8>>
where
    R: tokio::io::AsyncRead + Unpin,
{
    loop {
        let read = tokio::time::timeout(PATIENCE, read_frame(stream)).await;
        let (kind, payload) = read.ok()?.ok()??;
        let first = *payload.first()?;
        if matches!(kind, FrameKind::Piece | FrameKind::LastPiece) {
            tags.push(first);
        }
        if first == tag {
            return Some(payload);
        }
    }
}

/// The provider's signed keys out of its acceptance: with one provider these are all.
fn announcement(acceptance: &[u8]) -> Vec<u8> {
    let value: serde_json::Value = serde_json::from_slice(&acceptance[1..]).unwrap_or_default();
    let digits = value["announcement"]
        .as_str()
        .unwrap_or_default()
        .as_bytes();
    let pairs = digits
        .chunks(2)
        .filter_map(|pair| std::str::from_utf8(pair).ok());
    pairs
        .filter_map(|pair| u8::from_str_radix(pair, 16).ok())
        .collect()
}
