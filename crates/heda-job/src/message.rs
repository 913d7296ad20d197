//! Every message of a job by itself, in wire order: what it holds, its bytes, and the most bytes
//! that it may have. Steps J1 to J11 of `docs/protocols.md`; the engines have messages of their
//! own.

use crate::codec::{Malformed, hex, unhex};
use crate::description::JobFault;
use crate::error::{Defect, PeerProblem};
use crate::guard::LedgerHead;
use crate::moments::Scale;
use crate::parallel::RemoteError;
use crate::proposal::{PROTOCOL_VERSION, Proposal, Split};
use crate::rows::{release_from_bytes, release_length};
use heda_blocks::channel::Channel;
use heda_crypto::masking::ANNOUNCEMENT_BYTES;
use heda_dp::account::Charge;
use heda_learn::data::Feature;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// No message in JSON is longer than this.
pub(crate) const CONTROL_LIMIT: usize = 1 << 20;

/// A message of a job.
pub(crate) trait Message: Sized {
    /// Comes first on the wire.
    const TAG: u8;
    /// What it is called in errors.
    const NAME: &'static str;
    /// What its reader must know; nothing of it is read from the wire.
    type Known: Copy;

    /// The most bytes that it may have.
    fn limit(known: Self::Known) -> usize;

    /// Its bytes.
    fn encode(&self) -> Result<Vec<u8>, Defect>;

    /// Reads it.
    fn decode(bytes: &[u8], known: Self::Known) -> Result<Self, Malformed>;

    /// Sends it.
    fn send(&self, channel: &mut Channel) -> Result<(), RemoteError> {
        Ok(channel.send(Self::TAG, &self.encode()?)?)
    }
}

/// A message from a provider to the data user.
pub(crate) trait FromProvider: Message {
    /// Waits for it.
    fn receive(channel: &mut Channel, known: Self::Known) -> Result<Self, PeerProblem> {
        let bytes = channel.receive(Self::TAG, Self::limit(known))?;
        Self::decode(&bytes, known).map_err(|e| PeerProblem::message(Self::NAME, e))
    }
}

/// A message from the data user that all providers must get alike. It is received by
/// [`crate::agreement::JobMasks::hear`] and in no other way; only proposal and announcements come before
/// there are masks.
pub(crate) trait FromUser: Message {}

/// All messages of the data user that come after the announcements, in one list, so that the tests of
/// [`crate::agreement`] try every one.
macro_rules! heard_alike {
    ($($message:ty),+) => {
        $(impl FromUser for $message {})+

        #[cfg(test)]
        pub(crate) mod testing {
            use super::*;

            /// Tags of the messages that all providers must get alike.
            pub(crate) const HEARD_ALIKE: &[u8] = &[$(<$message as Message>::TAG),+];

            /// Whether a message can be read, and what is wrong with it otherwise.
            pub(crate) fn read(tag: u8, bytes: &[u8]) -> Result<(), String> {
                let read = match tag {
                    Proposal::TAG => Proposal::decode(bytes, ()).map(|_| ()),
                    $(<$message as Message>::TAG => <$message>::decode(bytes, ()).map(|_| ()),)+
                    _ => return Err(format!("no message {tag:#04x}")),
                };
                read.map_err(|e| e.to_string())
            }
        }
    };
}

heard_alike!(Agreement, Split, Scale, Command);
impl FromProvider for Acceptance {}
impl FromProvider for Reserved {}
impl FromProvider for Contribution {}
impl FromProvider for Sums {}
impl FromProvider for Charge {}
impl FromProvider for Account {}

fn to_json<T: Serialize>(message: &'static str, value: &T) -> Result<Vec<u8>, Defect> {
    serde_json::to_vec(value).map_err(|reason| Defect::Message { message, reason })
}

fn from_json<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Malformed> {
    serde_json::from_slice(bytes).map_err(|e| Malformed::Content(e.to_string()))
}

/// Messages in JSON need no knowledge to be read.
macro_rules! control {
    ($($message:ty, $tag:literal, $name:literal;)+) => {
        $(impl Message for $message {
            const TAG: u8 = $tag;
            const NAME: &'static str = $name;
            type Known = ();

            fn limit((): ()) -> usize {
                CONTROL_LIMIT
            }

            fn encode(&self) -> Result<Vec<u8>, Defect> {
                to_json(Self::NAME, self)
            }

            fn decode(bytes: &[u8], (): ()) -> Result<Self, Malformed> {
                from_json(bytes)
            }
        })+
    };
}

control! {
    Acceptance, 0x02, "acceptance";
    Split, 0x05, "split";
    Scale, 0x06, "scale";
    Charge, 0x08, "charge";
    Agreement, 0x0a, "agreement";
    Reserved, 0x0b, "reservation";
    Command, 0x20, "command";
    Account, 0x21, "account";
}

impl Proposal {
    /// J1: waits for it. Its bytes are what providers sign with their mask keys.
    pub(crate) fn receive(channel: &mut Channel) -> Result<(Self, Vec<u8>), PeerProblem> {
        let bytes = channel.receive(Self::TAG, Self::limit(()))?;
        let proposal = Self::decode(&bytes, ());
        let proposal = proposal.map_err(|e| PeerProblem::message(Self::NAME, e))?;
        Ok((proposal, bytes))
    }
}

/// J1. Whoever speaks another version may mean something else by every other field, so the version
/// is read first and by itself.
impl Message for Proposal {
    const TAG: u8 = 0x01;
    const NAME: &'static str = "proposal";
    type Known = ();

    fn limit((): ()) -> usize {
        CONTROL_LIMIT
    }

    fn encode(&self) -> Result<Vec<u8>, Defect> {
        to_json(Self::NAME, self)
    }

    fn decode(bytes: &[u8], (): ()) -> Result<Self, Malformed> {
        #[derive(Deserialize)]
        struct Versioned {
            version: u32,
        }
        let Versioned { version } = from_json(bytes)?;
        if version != PROTOCOL_VERSION {
            return Err(Malformed::Content(JobFault::version(version).to_string()));
        }
        from_json(bytes)
    }
}

/// J2: what a provider brings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Acceptance {
    /// Rows for training.
    pub(crate) rows: usize,
    /// Rows held out.
    pub(crate) held_out: usize,
    /// The signed key announcement.
    pub(crate) announcement: Announcement,
    /// How far the provider's books have come, if it keeps any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) ledger: Option<LedgerHead>,
    /// The first number of an answer that it has not given yet in this job.
    pub(crate) next_step: u32,
    /// On how many others' noise it lets a private job count.
    pub(crate) trusted_most: u32,
    /// Whether it protects persons and not rows.
    pub(crate) persons: bool,
}

/// J3a: what follows from everybody's acceptance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Agreement {
    /// On how many others' noise each provider counts besides its own: no more than any of them
    /// allows.
    pub(crate) trusted: u32,
    /// Whether a provider protects persons, so that their number is bought and not that of rows used.
    pub(crate) persons: bool,
    /// No answer below this number is asked for: some provider has given it before.
    pub(crate) first_step: u32,
}

/// J3a of a private job: what it costs is set aside.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Reserved {}

/// J11: what a provider has charged a private job for.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Account {
    /// What the job has cost a row, in 10⁻¹⁵ of μ².
    pub(crate) charged: u64,
    /// ε that further jobs may have, if the provider tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) left: Option<f64>,
}

/// A provider's signed mask keys, hexadecimal in JSON.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Announcement(pub(crate) Vec<u8>);

impl Serialize for Announcement {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&hex(&self.0))
    }
}

impl<'de> Deserialize<'de> for Announcement {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let bytes = unhex::<ANNOUNCEMENT_BYTES>(&text).map_err(serde::de::Error::custom)?;
        Ok(Self(bytes.to_vec()))
    }
}

/// J3: the announcements of all providers, in their order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Announcements(pub(crate) Vec<u8>);

impl Announcements {
    /// Waits for those of so many providers.
    pub(crate) fn receive(channel: &mut Channel, providers: usize) -> Result<Self, PeerProblem> {
        let bytes = channel.receive(Self::TAG, Self::limit(providers))?;
        Self::decode(&bytes, providers).map_err(|e| PeerProblem::message(Self::NAME, e))
    }
}

impl Message for Announcements {
    const TAG: u8 = 0x03;
    const NAME: &'static str = "announcements";
    /// How many providers there are.
    type Known = usize;

    fn limit(providers: usize) -> usize {
        providers.saturating_mul(ANNOUNCEMENT_BYTES)
    }

    fn encode(&self) -> Result<Vec<u8>, Defect> {
        Ok(self.0.clone())
    }

    fn decode(bytes: &[u8], providers: usize) -> Result<Self, Malformed> {
        exactly(bytes, Self::limit(providers)).map(Self)
    }
}

/// J4: a provider's masked scores, or its order of the features. What is in it is checked by
/// [`crate::negotiation`], which knows whom to blame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Contribution(pub(crate) Vec<u8>);

impl Message for Contribution {
    const TAG: u8 = 0x04;
    const NAME: &'static str = "scores";
    /// Its length by the question.
    type Known = usize;

    fn limit(length: usize) -> usize {
        length
    }

    fn encode(&self) -> Result<Vec<u8>, Defect> {
        Ok(self.0.clone())
    }

    fn decode(bytes: &[u8], _: usize) -> Result<Self, Malformed> {
        Ok(Self(bytes.to_vec()))
    }
}

/// Between J5 and J6: a provider's masked sums of the encrypted columns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Sums(pub(crate) Vec<u8>);

impl Message for Sums {
    const TAG: u8 = 0x07;
    const NAME: &'static str = "sums of columns";
    /// Its length by the encrypted columns.
    type Known = usize;

    fn limit(length: usize) -> usize {
        length
    }

    fn encode(&self) -> Result<Vec<u8>, Defect> {
        Ok(self.0.clone())
    }

    fn decode(bytes: &[u8], length: usize) -> Result<Self, Malformed> {
        exactly(bytes, length).map(Self)
    }
}

/// J6: the published columns on the grid, row by row. A provider keeps and sends its bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Release {
    pub(crate) cells: Vec<u32>,
}

/// What a release is about.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Published<'a> {
    pub(crate) features: &'a [&'a Feature],
    pub(crate) rows: usize,
    pub(crate) value_bits: u32,
}

impl Release {
    pub(crate) const TAG: u8 = 0x09;

    /// Waits for it.
    pub(crate) fn receive(
        channel: &mut Channel,
        known: Published<'_>,
    ) -> Result<Self, PeerProblem> {
        let limit = release_length(known.features.len(), known.rows);
        let bytes = channel.receive(Self::TAG, limit)?;
        Self::decode(&bytes, known).map_err(|e| PeerProblem::message("release", e))
    }

    /// Reads it.
    pub(crate) fn decode(bytes: &[u8], known: Published<'_>) -> Result<Self, Malformed> {
        let Published {
            features,
            rows,
            value_bits,
        } = known;
        let cells = release_from_bytes(bytes, features, rows, value_bits)?;
        Ok(Self { cells })
    }
}

/// What the data user asks for next (steps G2, E1, J11).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) enum Command {
    /// A gradient.
    Gradient {
        /// The number of the answer: it grows over the whole job, and none is given twice.
        step: u32,
        /// Which gradient of the job it is. A private job has one answer for each; an exact one asks
        /// for a gradient that was lost again, under another number.
        iteration: u32,
        /// Index into the proposal's classes.
        class: u32,
        /// Which batch.
        batch: u32,
        /// All providers together have fewer than 2^`row_bits` rows in the batch: sets the width of
        /// the sums. Zero with engines that do not mask their sums.
        row_bits: u32,
    },
    /// An evaluation on the held-out rows.
    Evaluate {
        /// The number of the answer.
        step: u32,
        /// Which one, as [`crate::rounds`] counts them: without a path of penalties an index into
        /// the proposal's classes.
        #[serde(rename = "class")]
        number: u32,
    },
    /// The job is done.
    Finish,
}

fn exactly(bytes: &[u8], expected: usize) -> Result<Vec<u8>, Malformed> {
    match bytes.len() == expected {
        true => Ok(bytes.to_vec()),
        false => Err(Malformed::Length {
            got: bytes.len(),
            expected,
        }),
    }
}

#[cfg(test)]
mod tests;
