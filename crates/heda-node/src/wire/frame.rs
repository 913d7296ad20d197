//! What travels in a session: one greeting each way, then numbered pieces of messages.
//!
//! The messages are protocol buffers, written by hand so that nobody needs `protoc`:
//!
//! ```text
//! service Heda { rpc Session(stream Frame) returns (stream Frame); }   // package heda.v1
//! message Frame { oneof content { Hello hello = 1; Chunk chunk = 2; } }
//! message Hello { uint32 version = 1; string software = 2; }
//! message Chunk { uint64 sequence = 1; bool last = 2; bytes payload = 3; }
//! ```

use prost::bytes::Bytes;

/// The version of the protocol that this program speaks.
pub const PROTOCOL_VERSION: u32 = 1;

/// The longest payload of one chunk that is accepted.
pub const CHUNK_LIMIT: usize = 1 << 20;

/// The longest payload of one chunk that is sent: a piece that stays in the cache on its way
/// through the layers below costs half of one that does not.
pub(crate) const CHUNK_SENT: usize = 128 << 10;

/// The longest encoded frame: a full chunk and the few bytes around it.
pub(crate) const FRAME_LIMIT: usize = CHUNK_LIMIT + 64;

/// One item of the stream.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Frame {
    /// What it carries.
    #[prost(oneof = "Content", tags = "1, 2")]
    pub content: Option<Content>,
}

/// What a frame carries.
#[derive(Clone, PartialEq, prost::Oneof)]
pub enum Content {
    /// The first frame each way.
    #[prost(message, tag = "1")]
    Hello(Hello),
    /// All others.
    #[prost(message, tag = "2")]
    Chunk(Chunk),
}

/// The first frame each way.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Hello {
    /// The version of the protocol that the sender speaks.
    #[prost(uint32, tag = "1")]
    pub version: u32,
    /// Name and version of the sender's program, for messages to people.
    #[prost(string, tag = "2")]
    pub software: String,
}

/// A piece of a message.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Chunk {
    /// Counts the chunks of this direction from zero, without gaps.
    #[prost(uint64, tag = "1")]
    pub sequence: u64,
    /// Whether the message ends with this chunk.
    #[prost(bool, tag = "2")]
    pub last: bool,
    /// At most [`CHUNK_LIMIT`] bytes.
    #[prost(bytes = "bytes", tag = "3")]
    pub payload: Bytes,
}

impl Frame {
    /// Our greeting.
    pub fn hello() -> Self {
        Self::from(Content::Hello(Hello {
            version: PROTOCOL_VERSION,
            software: concat!("heda ", env!("CARGO_PKG_VERSION")).into(),
        }))
    }

    /// A piece of a message.
    pub fn chunk(sequence: u64, last: bool, payload: Bytes) -> Self {
        Self::from(Content::Chunk(Chunk {
            sequence,
            last,
            payload,
        }))
    }
}

impl From<Content> for Frame {
    fn from(content: Content) -> Self {
        Self {
            content: Some(content),
        }
    }
}

/// Why a greeting is not accepted. Both sides' versions are named.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GreetingError {
    /// The first frame was something else.
    #[error("the peer did not start with a greeting")]
    Missing,
    /// Another version.
    #[error("the peer speaks protocol version {theirs}, this program version {ours}")]
    Version {
        /// The peer's.
        theirs: u32,
        /// Ours.
        ours: u32,
    },
}

/// Checks the first frame of a peer.
pub(crate) fn check_greeting(frame: Option<Frame>) -> Result<(), GreetingError> {
    match frame.and_then(|frame| frame.content) {
        Some(Content::Hello(hello)) if hello.version == PROTOCOL_VERSION => Ok(()),
        Some(Content::Hello(hello)) => Err(GreetingError::Version {
            theirs: hello.version,
            ours: PROTOCOL_VERSION,
        }),
        _ => Err(GreetingError::Missing),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use prost::Message;

    #[test]
    fn frames_round_trip_and_fit_the_limit() {
        let largest = Frame::chunk(u64::MAX, true, vec![7; CHUNK_LIMIT].into());
        assert!(largest.encoded_len() <= FRAME_LIMIT);
        for frame in [
            Frame::hello(),
            Frame::chunk(0, false, Bytes::new()),
            largest,
        ] {
            let bytes = frame.encode_to_vec();
            assert_eq!(Frame::decode(bytes.as_slice()).unwrap(), frame);
        }
    }

    #[test]
    fn encoding_is_the_documented_one() {
        let frame = Frame::chunk(1, true, Bytes::from_static(b"ab"));
        assert_eq!(frame.encode_to_vec(), b"\x12\x08\x08\x01\x10\x01\x1a\x02ab");
    }

    #[test]
    fn only_a_greeting_of_our_version_is_accepted() {
        assert_eq!(check_greeting(Some(Frame::hello())), Ok(()));
        assert_eq!(check_greeting(None), Err(GreetingError::Missing));
        let chunk = Frame::chunk(0, true, Bytes::new());
        assert_eq!(check_greeting(Some(chunk)), Err(GreetingError::Missing));
        let other = Frame::from(Content::Hello(Hello {
            version: PROTOCOL_VERSION + 1,
            software: String::new(),
        }));
        let text = check_greeting(Some(other)).unwrap_err().to_string();
        assert!(
            text.contains("version 2") && text.contains("version 1"),
            "{text}"
        );
    }
}
