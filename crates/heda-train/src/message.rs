//! Every message of a job by itself, in wire order: what it holds, its bytes, and the most bytes
//! that it may have. Steps J1 to J11 of `docs/protocols.md`; the engines have messages of their
//! own.

use crate::codec::{Malformed, hex, unhex};
use crate::error::PeerProblem;
use crate::house::LedgerHead;
use crate::moments::Scale;
use crate::proposal::{BadProposal, PROTOCOL_VERSION, Proposal, Split};
use crate::rows::{release_from_bytes, release_length};
use heda_blocks::channel::{Channel, ChannelError};
use heda_crypto::masking::ANNOUNCEMENT_BYTES;
use heda_dp::account::Charge;
use heda_learn::data::Feature;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// No message in JSON is longer than this.
pub(crate) const CONTROL_LIMIT: usize = 1 << 20;

/// A message that we made cannot be written: a defect of ours, whoever the peer is.
#[derive(Debug, thiserror::Error)]
#[error("the message \"{message}\" cannot be written: {reason}")]
pub struct Unwritable {
    message: &'static str,
    reason: String,
}

/// Why a message was not sent.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SendError {
    /// The conversation broke.
    #[error(transparent)]
    Channel(#[from] ChannelError),
    /// A defect of ours.
    #[error(transparent)]
    Unwritable(#[from] Unwritable),
}

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
    fn encode(&self) -> Result<Vec<u8>, Unwritable>;

    /// Reads it.
    fn decode(bytes: &[u8], known: Self::Known) -> Result<Self, Malformed>;

    /// Sends it.
    fn send(&self, channel: &mut Channel) -> Result<(), SendError> {
        Ok(channel.send(Self::TAG, &self.encode()?)?)
    }

    /// Waits for it.
    fn receive(channel: &mut Channel, known: Self::Known) -> Result<Self, PeerProblem> {
        let bytes = channel.receive(Self::TAG, Self::limit(known))?;
        Self::decode(&bytes, known).map_err(|e| PeerProblem::message(Self::NAME, e))
    }
}

fn to_json<T: Serialize>(message: &'static str, value: &T) -> Result<Vec<u8>, Unwritable> {
    serde_json::to_vec(value).map_err(|e| Unwritable {
        message,
        reason: e.to_string(),
    })
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

            fn encode(&self) -> Result<Vec<u8>, Unwritable> {
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
    Command, 0x20, "command";
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

    fn encode(&self) -> Result<Vec<u8>, Unwritable> {
        to_json(Self::NAME, self)
    }

    fn decode(bytes: &[u8], (): ()) -> Result<Self, Malformed> {
        #[derive(Deserialize)]
        struct Versioned {
            version: u32,
        }
        let Versioned { version } = from_json(bytes)?;
        if version != PROTOCOL_VERSION {
            return Err(Malformed::Content(
                BadProposal::version(version).to_string(),
            ));
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

impl Message for Announcements {
    const TAG: u8 = 0x03;
    const NAME: &'static str = "announcements";
    /// How many providers there are.
    type Known = usize;

    fn limit(providers: usize) -> usize {
        providers.saturating_mul(ANNOUNCEMENT_BYTES)
    }

    fn encode(&self) -> Result<Vec<u8>, Unwritable> {
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

    fn encode(&self) -> Result<Vec<u8>, Unwritable> {
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

    fn encode(&self) -> Result<Vec<u8>, Unwritable> {
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
        /// Counts up by one over the whole job.
        iteration: u32,
        /// Index into the proposal's classes.
        class: u32,
        /// Which batch.
        batch: u32,
        /// All providers together have fewer than 2^`row_bits` rows in the batch: sets the width of
        /// the sums. Zero with engine `paper`.
        row_bits: u32,
    },
    /// An evaluation on the held-out rows.
    Evaluate {
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
mod tests {
    use super::*;
    use crate::proposal::testing::proposal;
    use heda_learn::scaling::{Centre, Window};
    use heda_learn::target::TargetScale;

    fn round_trip<M: Message + PartialEq + std::fmt::Debug>(message: M, known: M::Known) {
        let bytes = message.encode().unwrap();
        assert!(bytes.len() <= M::limit(known), "{}", M::NAME);
        assert_eq!(M::decode(&bytes, known).unwrap(), message);
    }

    #[test]
    fn every_message_round_trips_within_its_limit() {
        round_trip(proposal(), ());
        let announcement = Announcement(vec![7; ANNOUNCEMENT_BYTES]);
        let acceptance = Acceptance {
            rows: 3,
            held_out: 1,
            announcement,
            ledger: Some(LedgerHead {
                epoch: "ab".repeat(16),
                entry: 7,
                hash: "cd".repeat(32),
            }),
        };
        round_trip(acceptance, ());
        round_trip(Announcements(vec![1; 2 * ANNOUNCEMENT_BYTES]), 2);
        round_trip(Contribution(vec![1, 2, 3]), 3);
        let split = Split {
            encrypted: vec![1],
            published: vec![0],
            dropped: vec![2],
        };
        round_trip(split, ());
        round_trip(Scale::Ask { fraction_bits: 30 }, ());
        let windows = vec![
            Window::WHOLE,
            Window {
                low: 0.1,
                high: 0.3,
            },
        ];
        let told = |label, weights| Scale::Told {
            windows: windows.clone(),
            label,
            weights,
        };
        round_trip(told(None, Vec::new()), ());
        let label = TargetScale::of(&[1, 5, 9]);
        round_trip(told(label, vec![[0.5, 3.0]]), ());
        round_trip(Scale::AskNoisy, ());
        let centres = vec![Centre {
            mean: 0.1,
            deviation: 0.3,
        }];
        round_trip(Scale::Centres { centres }, ());
        round_trip(Sums(vec![1, 2, 3]), 3);
        for command in [
            Command::Finish,
            Command::Evaluate { number: 1 },
            Command::Gradient {
                iteration: 1,
                class: 2,
                batch: 3,
                row_bits: 4,
            },
        ] {
            round_trip(command, ());
        }
    }

    #[test]
    fn nonsense_is_refused_and_tags_are_told_apart() {
        assert!(
            Acceptance::decode(
                b"{\"rows\": 1, \"held_out\": 0, \"announcement\": \"zz\"}",
                ()
            )
            .is_err()
        );
        assert!(Command::decode(b"\"begin\"", ()).is_err());
        assert!(Split::decode(b"{\"encrypted\": [-1]}", ()).is_err());
        assert!(Announcements::decode(&[0; 5], 1).is_err());
        assert!(Scale::decode(b"{\"ask\": {}}", ()).is_err());
        assert!(Sums::decode(&[0; 5], 6).is_err());
        let tags = [
            Proposal::TAG,
            Acceptance::TAG,
            Announcements::TAG,
            Contribution::TAG,
            Split::TAG,
            Scale::TAG,
            Sums::TAG,
            Charge::TAG,
            Release::TAG,
            Command::TAG,
        ];
        let mut sorted = tags.to_vec();
        sorted.dedup();
        assert_eq!(sorted.len(), tags.len());
        assert!(tags.is_sorted(), "in wire order");
    }

    #[test]
    fn a_peer_of_another_version_is_told_which_one_it_needs_whatever_its_fields_are() {
        let other = PROTOCOL_VERSION + 1;
        let later = format!("{{\"version\": {other}, \"shape\": \"unheard of\"}}");
        for proposal in [later, "{\"version\": 0}".to_owned()] {
            let refused = Proposal::decode(proposal.as_bytes(), ()).unwrap_err();
            let words = refused.to_string();
            let ours = format!("this provider {PROTOCOL_VERSION}");
            assert!(
                words.contains(&ours) && words.contains("upgrade"),
                "{words}"
            );
        }
        assert!(Proposal::decode(b"{}", ()).is_err());
    }
}
