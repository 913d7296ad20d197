//! Why a party stops: a code by which the peer's program decides, and words for people.
//!
//! Both travel together, as one byte and UTF-8 text. A code that this program does not know is
//! [`StopCode::Unknown`]: it is shown, and nobody tries again because of it.

use std::fmt;

/// Words longer than this are cut.
pub const STOP_WORDS_LIMIT: usize = 1024;

/// Longest encoded [`Stop`].
pub const STOP_LIMIT: usize = 1 + STOP_WORDS_LIMIT;

/// What kind of stop it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum StopCode {
    /// The sender's rules or limits do not allow what was asked; the words say what would do.
    Refused,
    /// The sender shuts down and will be back.
    Stopping,
    /// The sender cannot write its books, so nothing may leave until its operator mended that.
    StoreFailed,
    /// The sender has as many sessions as it may have.
    Busy,
    /// The sender speaks another version of the protocol.
    Version,
    /// A message of the receiver was unusable.
    Protocol,
    /// The sender failed otherwise; its operator finds why in its log.
    Failed,
    /// A code of a later version.
    Unknown,
}

impl StopCode {
    /// Every code but [`StopCode::Unknown`], with its byte.
    const BYTES: [(Self, u8); 7] = [
        (Self::Refused, 1),
        (Self::Stopping, 2),
        (Self::StoreFailed, 3),
        (Self::Busy, 4),
        (Self::Version, 5),
        (Self::Protocol, 6),
        (Self::Failed, 7),
    ];

    /// Whether the same request may succeed later without anyone changing it.
    pub fn may_pass(self) -> bool {
        matches!(self, Self::Stopping | Self::StoreFailed | Self::Busy)
    }

    fn byte(self) -> u8 {
        let known = Self::BYTES.iter().find(|(code, _)| *code == self);
        known.map_or(0, |(_, byte)| *byte)
    }

    fn of(byte: u8) -> Self {
        let known = Self::BYTES.iter().find(|(_, known)| *known == byte);
        known.map_or(Self::Unknown, |(code, _)| *code)
    }
}

/// Why a party stops.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stop {
    /// For the peer's program.
    pub code: StopCode,
    /// For people. Never a private value.
    pub words: String,
}

impl Stop {
    /// A stop with these words, cut to their limit.
    pub fn new(code: StopCode, words: impl fmt::Display) -> Self {
        let mut words = words.to_string();
        words.truncate(words.floor_char_boundary(STOP_WORDS_LIMIT));
        Self { code, words }
    }

    /// On the wire.
    pub fn to_bytes(&self) -> Vec<u8> {
        let words = &self.words[..self.words.floor_char_boundary(STOP_WORDS_LIMIT)];
        [&[self.code.byte()], words.as_bytes()].concat()
    }

    /// From the wire. Whatever a peer sends gives a stop that fits on a line: its words are
    /// bounded and hold no control characters.
    pub fn from_bytes(bytes: &[u8]) -> Self {
        let (code, words) = bytes.split_first().unwrap_or((&0, &[]));
        let words = String::from_utf8_lossy(&words[..words.len().min(STOP_WORDS_LIMIT)]);
        Self::new(StopCode::of(*code), words.replace(char::is_control, " "))
    }
}

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.words)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_round_trips_and_has_its_own_byte() {
        for (place, (code, byte)) in StopCode::BYTES.into_iter().enumerate() {
            let stop = Stop::new(code, "no way");
            assert_eq!(stop.to_bytes(), [&[byte], "no way".as_bytes()].concat());
            assert_eq!(Stop::from_bytes(&stop.to_bytes()), stop);
            let later = &StopCode::BYTES[place + 1..];
            assert!(later.iter().all(|(_, other)| *other != byte));
        }
    }

    #[test]
    fn whatever_arrives_is_bounded_and_printable() {
        assert_eq!(Stop::from_bytes(b""), Stop::new(StopCode::Unknown, ""));
        let strange = Stop::from_bytes(b"\xc8a\nb\xff\x07");
        assert_eq!(strange, Stop::new(StopCode::Unknown, "a b\u{fffd} "));
        assert!(!strange.code.may_pass());
        let long = Stop::from_bytes(&[b'x'; 5000]);
        assert_eq!(long.words.len(), STOP_WORDS_LIMIT);
        // Unreadable bytes become three each; the words stay bounded.
        let unreadable = Stop::from_bytes(&[0xff; 1500]);
        assert!(unreadable.words.len() <= STOP_WORDS_LIMIT);
        let own = Stop::new(StopCode::Refused, "é".repeat(1000));
        assert!(own.to_bytes().len() <= STOP_LIMIT);
    }
}
