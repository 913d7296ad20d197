//! Bytes as text, and what can be wrong with bytes. Lengths are known from context and never read
//! from the wire.

/// What is wrong with a message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Malformed {
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
