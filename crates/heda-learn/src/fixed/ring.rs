//! The ring Z_{2^48}: elements are `u64` below 2^48, signed readings are in [−2^47, 2^47).

/// Bits of a ring element.
pub const BITS: u32 = 48;
/// The largest element, and the mask that reduces.
pub const MASK: u64 = (1 << BITS) - 1;

/// Brings any integer into the ring.
pub fn reduce(value: u64) -> u64 {
    value & MASK
}

/// A signed number as an element.
pub fn from_signed(value: i64) -> u64 {
    reduce(value as u64)
}

/// An element read as a signed number.
pub fn signed(element: u64) -> i64 {
    let shift = u64::BITS - BITS;
    ((element << shift) as i64) >> shift
}

/// Sum of two elements.
pub fn add(a: u64, b: u64) -> u64 {
    reduce(a.wrapping_add(b))
}

/// The lowest `bits` (at most 32) of a number, read as signed.
pub fn signed_bits(value: u64, bits: u32) -> i32 {
    let shift = u64::BITS - bits;
    (((value << shift) as i64) >> shift) as i32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signed_readings_round_trip_and_sums_wrap() {
        for value in [0, 1, -1, (1 << 47) - 1, -(1 << 47)] {
            assert_eq!(signed(from_signed(value)), value);
        }
        assert_eq!(signed(add(from_signed((1 << 47) - 1), 1)), -(1 << 47));
        assert_eq!(add(from_signed(-5), from_signed(7)), 2);
        assert_eq!((signed_bits(0x80, 8), signed_bits(0x7f, 8)), (-128, 127));
    }
}
