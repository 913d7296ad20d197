//! Bytes as hexadecimal digits and back.

/// Two digits a byte.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Exactly N bytes, or nothing.
pub(crate) fn unhex<const N: usize>(text: &str) -> Option<[u8; N]> {
    let digit = |d: u8| char::from(d).to_digit(16).map(|d| d as u8);
    let digits = text.as_bytes();
    if digits.len() != 2 * N {
        return None;
    }
    let mut bytes = [0; N];
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = digit(pair[0])? << 4 | digit(pair[1])?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_round_trip_and_nothing_else_is_read() {
        assert_eq!(hex(&[0, 0xa5, 255]), "00a5ff");
        assert_eq!(unhex("00A5ff"), Some([0, 0xa5, 255]));
        for text in ["", "00a5f", "00a5fg", "00a5ff0", "é0a5ff"] {
            assert_eq!(unhex::<3>(text), None, "{text}");
        }
    }
}
