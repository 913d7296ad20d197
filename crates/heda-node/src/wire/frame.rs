//! What travels on a connection: frames of a kind, a length and that many bytes.
//!
//! ```text
//! frame = kind (1 byte) | length (4 bytes, little endian) | payload
//!
//! kind  payload                                        at most
//!  1    greeting: version (4 bytes), software (text)    4 + 64 bytes
//!  2    a piece of a message; more of it follows        1 MiB
//!  3    the last piece of a message                     1 MiB
//!  4    why the sender takes no session (a `Stop`)      1 + 1024 bytes
//!  5    a sign of life                                  nothing
//! ```
//!
//! The first frame each way is a greeting, or a stop in its place. The order of frames needs no
//! numbers: TLS delivers every byte once, in order, or ends the connection.

use super::carrier::SILENCE;
use super::greeting::Greeting;
use heda_blocks::stop::{STOP_LIMIT, Stop};
use heda_job::proposal::PROTOCOL_VERSION;

/// The longest piece of a message that is accepted.
pub const PIECE_LIMIT: usize = 1 << 20;

/// FrameKind and length.
pub(crate) const HEAD_BYTES: usize = 5;

/// The longest piece that is sent. With its head it fills eight TLS records, and it stays in the
/// cache on its way through the layers below.
pub(crate) const PIECE_SENT: usize = (128 << 10) - HEAD_BYTES;

/// What a frame carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FrameKind {
    /// The first frame each way.
    Greeting,
    /// A piece of a message that goes on.
    Piece,
    /// The last piece of a message.
    LastPiece,
    /// Why there is no session.
    Stop,
    /// Nothing but that the sender is there.
    Alive,
}

impl FrameKind {
    const ALL: [Self; 5] = [
        Self::Greeting,
        Self::Piece,
        Self::LastPiece,
        Self::Stop,
        Self::Alive,
    ];

    fn byte(self) -> u8 {
        match self {
            Self::Greeting => 1,
            Self::Piece => 2,
            Self::LastPiece => 3,
            Self::Stop => 4,
            Self::Alive => 5,
        }
    }

    /// The longest payload of this kind.
    pub fn limit(self) -> usize {
        match self {
            Self::Greeting => Greeting::LIMIT,
            Self::Piece | Self::LastPiece => PIECE_LIMIT,
            Self::Stop => STOP_LIMIT,
            Self::Alive => 0,
        }
    }
}

/// What stands before a payload, checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    /// What the payload is.
    pub kind: FrameKind,
    /// How long it is, within the limit of its kind.
    pub length: usize,
}

/// Why no frame was read, or none that is understood.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FrameError {
    /// A kind that does not exist.
    #[error("a frame of kind {0}, which does not exist")]
    FrameKind(u8),
    /// A payload over its limit.
    #[error("a frame of {got} bytes where at most {limit} are allowed ({kind:?})")]
    TooLong {
        /// What it would be.
        kind: FrameKind,
        /// Announced.
        got: u32,
        /// Allowed.
        limit: usize,
    },
    /// The first frame was something else.
    #[error("the peer did not start with a greeting")]
    NoGreeting,
    /// Another version.
    #[error(
        "the peer ({software}) speaks protocol version {theirs}, this program speaks version \
         {PROTOCOL_VERSION}; {}",
        match theirs < &PROTOCOL_VERSION {
            true => "the peer must update",
            false => "update this program",
        }
    )]
    Version {
        /// The peer's version.
        theirs: u32,
        /// The peer's program.
        software: String,
    },
    /// The connection broke.
    #[error("{0}")]
    Broken(#[from] std::io::Error),
    /// It ended in the middle of a frame.
    #[error("the connection ended in the middle of a frame")]
    CutOff,
    /// Not even a sign of life.
    #[error("not a sign of life within {SILENCE:?}")]
    Silent,
}

impl FrameError {
    /// Whether the peer broke the format, rather than that the connection broke.
    pub fn is_format(&self) -> bool {
        !matches!(self, Self::Broken(_) | Self::CutOff | Self::Silent)
    }
}

impl Head {
    /// Reads and checks a head: nothing is allocated for a payload before this.
    pub fn from_bytes(bytes: [u8; HEAD_BYTES]) -> Result<Self, FrameError> {
        let [kind, length @ ..] = bytes;
        let known = FrameKind::ALL
            .into_iter()
            .find(|known| known.byte() == kind);
        let kind = known.ok_or(FrameError::FrameKind(kind))?;
        let (got, limit) = (u32::from_le_bytes(length), kind.limit());
        match usize::try_from(got) {
            Ok(length) if length <= limit => Ok(Self { kind, length }),
            _ => Err(FrameError::TooLong { kind, got, limit }),
        }
    }
}

/// A frame in the form in which it is sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame(Vec<u8>);

impl Frame {
    /// A payload in parts, which together are within the limit of the kind.
    fn new(kind: FrameKind, parts: &[&[u8]]) -> Self {
        let length: usize = parts.iter().map(|part| part.len()).sum();
        debug_assert!(length <= kind.limit());
        let mut bytes = Vec::with_capacity(HEAD_BYTES + length);
        bytes.push(kind.byte());
        bytes.extend_from_slice(&(length as u32).to_le_bytes());
        parts.iter().for_each(|part| bytes.extend_from_slice(part));
        Self(bytes)
    }

    /// Our greeting.
    pub fn greeting() -> Self {
        Self::new(FrameKind::Greeting, &[&Greeting::ours().to_bytes()])
    }

    /// Why there is no session.
    pub fn stop(stop: &Stop) -> Self {
        Self::new(FrameKind::Stop, &[&stop.to_bytes()])
    }

    /// A sign of life.
    pub(crate) fn alive() -> Self {
        Self::new(FrameKind::Alive, &[])
    }

    /// A piece of a message: what comes before it, and at most [`PIECE_SENT`] bytes in all.
    pub(crate) fn piece(last: bool, before: &[u8], payload: &[u8]) -> Self {
        let kind = if last {
            FrameKind::LastPiece
        } else {
            FrameKind::Piece
        };
        Self::new(kind, &[before, payload])
    }

    /// Head and payload.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use heda_blocks::stop::StopCode;

    #[test]
    fn frames_are_the_documented_bytes() {
        assert_eq!(
            Frame::piece(false, b"", b"ab").as_bytes(),
            b"\x02\x02\0\0\0ab"
        );
        assert_eq!(
            Frame::piece(true, b"t", b"ab").as_bytes(),
            b"\x03\x03\0\0\0tab"
        );
        let stop = Stop::new(StopCode::Busy, "later");
        assert_eq!(Frame::stop(&stop).as_bytes(), b"\x04\x06\0\0\0\x04later");
        assert_eq!(Frame::alive().as_bytes(), b"\x05\0\0\0\0");
    }

    #[test]
    fn heads_are_checked_against_the_limit_of_their_kind() {
        for kind in FrameKind::ALL {
            let head = |length: u32| {
                let [a, b, c, d] = length.to_le_bytes();
                Head::from_bytes([kind.byte(), a, b, c, d])
            };
            let limit = kind.limit() as u32;
            let length = kind.limit();
            assert_eq!(head(limit).unwrap(), Head { kind, length });
            for got in [limit + 1, u32::MAX] {
                let limit = kind.limit();
                let refused = head(got).unwrap_err();
                let FrameError::TooLong {
                    kind: of,
                    got: announced,
                    limit: most,
                } = refused
                else {
                    panic!("{refused}");
                };
                assert_eq!((of, announced, most), (kind, got, limit));
            }
        }
        for kind in [0, 6, 0x16, 0x50, 255] {
            let refused = Head::from_bytes([kind, 0, 0, 0, 0]);
            assert!(matches!(refused, Err(FrameError::FrameKind(found)) if found == kind));
        }
    }
}
