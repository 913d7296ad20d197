//! How this crate's messages become bytes. Lengths are known from context and never read from
//! the wire.

use serde::{Serialize, de::DeserializeOwned};

/// Elements of Z_{2^48} travel as six bytes, little-endian.
pub(crate) const WORD_BYTES: usize = 6;
/// What is wrong with a message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Malformed {
    /// Another length than the protocol gives it.
    #[error("{got} bytes where {expected} were expected")]
    Length {
        /// What arrived.
        got: usize,
        /// What the protocol says.
        expected: usize,
    },
    /// Not the JSON that belongs here.
    #[error("not the expected content: {0}")]
    Content(String),
}

/// Packs elements of Z_{2^48}.
pub(crate) fn words_to_bytes(words: &[u64]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(words.len() * WORD_BYTES);
    words
        .iter()
        .for_each(|word| bytes.extend_from_slice(&word.to_le_bytes()[..WORD_BYTES]));
    bytes
}

/// Unpacks exactly `count` elements of Z_{2^48}.
pub(crate) fn words_from_bytes(bytes: &[u8], count: usize) -> Result<Vec<u64>, Malformed> {
    let expected = count.saturating_mul(WORD_BYTES);
    if bytes.len() != expected {
        return Err(Malformed::Length {
            got: bytes.len(),
            expected,
        });
    }
    Ok(bytes.chunks_exact(WORD_BYTES).map(word).collect())
}

fn word(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .rev()
        .fold(0, |word, &byte| word << 8 | u64::from(byte))
}

/// Bytes as hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Exactly N bytes from hexadecimal digits.
pub(crate) fn unhex<const N: usize>(text: &str) -> Result<[u8; N], Malformed> {
    let digit = |d: u8| char::from(d).to_digit(16).map(|d| d as u8);
    let bad = || Malformed::Content(format!("not {} hexadecimal digits", 2 * N));
    let digits = text.as_bytes();
    if digits.len() != 2 * N {
        return Err(bad());
    }
    let mut bytes = [0; N];
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = digit(pair[0])
            .zip(digit(pair[1]))
            .map(|(h, l)| h << 4 | l)
            .ok_or_else(bad)?;
    }
    Ok(bytes)
}

/// Control messages are JSON.
pub(crate) fn to_json<T: Serialize>(value: &T) -> Result<Vec<u8>, Malformed> {
    serde_json::to_vec(value).map_err(|e| Malformed::Content(e.to_string()))
}

/// Reads a control message.
pub(crate) fn from_json<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Malformed> {
    serde_json::from_slice(bytes).map_err(|e| Malformed::Content(e.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_round_trip_and_wrong_lengths_are_refused() {
        let words = [0, 1, (1 << 48) - 1, 1 << 47, 0x0102_0304_0506];
        let bytes = words_to_bytes(&words);
        assert_eq!(words_from_bytes(&bytes, 5).unwrap(), words);
        let refused = words_from_bytes(&bytes, 4).unwrap_err();
        assert_eq!(
            refused,
            Malformed::Length {
                got: 30,
                expected: 24
            }
        );
    }
}
