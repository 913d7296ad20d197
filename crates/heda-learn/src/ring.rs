//! Integers modulo 2^w, and real numbers rounded onto a grid: the one place that knows widths,
//! reduction, bytes and rounding.
//!
//! ```
//! use heda_learn::ring::{Grid, Ring};
//!
//! let ring = Ring::of(28);
//! let word = ring.subtract(3, 5);
//! assert_eq!(ring.signed(word), -2);
//! let bytes = ring.encode(&[word, 1]);
//! assert_eq!(bytes.len(), 7);
//! assert_eq!(ring.decode(&bytes, 2)?, [word, 1]);
//!
//! let grid = Grid::of_bits(10);
//! assert_eq!(grid.point(0.3), 307);
//! # Ok::<(), heda_learn::ring::RingError>(())
//! ```

/// The ring Z_{2^w} with w from 1 to 64. Elements are `u64` below 2^w; read as signed they lie in
/// [−2^(w−1), 2^(w−1)).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Ring {
    bits: u32,
}

/// Bytes that are not so many elements of a ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RingError {
    /// Another length than so many elements have.
    #[error("{got} bytes where {expected} were expected")]
    Length {
        /// What arrived.
        got: usize,
        /// What so many elements take.
        expected: usize,
    },
    /// Bits after the last element.
    #[error("bits are set after the last number")]
    Padding,
}

impl Ring {
    /// The ring with elements of so many bits, if there is one.
    pub const fn new(bits: u32) -> Option<Self> {
        match bits {
            1..=64 => Some(Self { bits }),
            _ => None,
        }
    }

    /// The ring with elements of so many bits, which must be 1 to 64. For constants.
    pub const fn of(bits: u32) -> Self {
        match Self::new(bits) {
            Some(ring) => ring,
            None => panic!("a ring has 1 to 64 bits"),
        }
    }

    /// w.
    pub const fn bits(self) -> u32 {
        self.bits
    }

    /// The largest element, 2^w − 1.
    pub const fn mask(self) -> u64 {
        u64::MAX >> (u64::BITS - self.bits)
    }

    /// Brings any integer into the ring.
    pub const fn reduce(self, value: u64) -> u64 {
        value & self.mask()
    }

    /// A signed number as an element.
    pub const fn from_signed(self, value: i64) -> u64 {
        self.reduce(value as u64)
    }

    /// The lowest w bits of a number, read as signed.
    pub const fn signed(self, element: u64) -> i64 {
        let shift = u64::BITS - self.bits;
        ((element << shift) as i64) >> shift
    }

    /// Sum of two elements.
    pub const fn add(self, a: u64, b: u64) -> u64 {
        self.reduce(a.wrapping_add(b))
    }

    /// Difference of two elements.
    pub const fn subtract(self, a: u64, b: u64) -> u64 {
        self.reduce(a.wrapping_sub(b))
    }

    /// Bytes of so many elements: w bits each, one after the other, filled up with zero bits. More
    /// than a machine can address is the largest number.
    pub const fn encoded_length(self, count: usize) -> usize {
        let bits = count as u128 * self.bits as u128;
        let bytes = bits.div_ceil(8);
        match bytes > usize::MAX as u128 {
            true => usize::MAX,
            false => bytes as usize,
        }
    }

    /// Elements as bytes, least significant bit first. Whatever is above w bits is cut off.
    pub fn encode(self, elements: &[u64]) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.encoded_length(elements.len()));
        let (mut waiting, mut held) = (0u128, 0u32);
        for element in elements {
            waiting |= u128::from(self.reduce(*element)) << held;
            held += self.bits;
            while held >= 8 {
                bytes.push(waiting as u8);
                waiting >>= 8;
                held -= 8;
            }
        }
        if held > 0 {
            bytes.push(waiting as u8);
        }
        bytes
    }

    /// Exactly `count` elements from bytes.
    pub fn decode(self, bytes: &[u8], count: usize) -> Result<Vec<u64>, RingError> {
        let (got, expected) = (bytes.len(), self.encoded_length(count));
        if got != expected {
            return Err(RingError::Length { got, expected });
        }
        let mut elements = Vec::with_capacity(count);
        let (mut waiting, mut held) = (0u128, 0u32);
        for byte in bytes {
            waiting |= u128::from(*byte) << held;
            held += 8;
            while held >= self.bits && elements.len() < count {
                elements.push(self.reduce(waiting as u64));
                waiting >>= self.bits;
                held -= self.bits;
            }
        }
        match waiting {
            0 => Ok(elements),
            _ => Err(RingError::Padding),
        }
    }
}

/// Equal steps from 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Grid {
    steps: u32,
}

impl Grid {
    /// A grid with so many steps, at least one.
    pub const fn of_steps(steps: u32) -> Self {
        match steps {
            0 => Self { steps: 1 },
            _ => Self { steps },
        }
    }

    /// A grid with 2^`bits` steps; at most 31 bits.
    pub const fn of_bits(bits: u32) -> Self {
        Self {
            steps: match bits {
                0..=31 => 1 << bits,
                _ => 1 << 31,
            },
        }
    }

    /// How many steps there are from 0 to 1.
    pub const fn steps(self) -> u32 {
        self.steps
    }

    /// The point nearest to a number; halves go away from zero. What is below 0 or not a number is
    /// the point 0.
    pub fn point(self, value: f64) -> u32 {
        self.rounded(value) as u32
    }

    /// The same below 0 as above it.
    pub fn signed_point(self, value: f64) -> i32 {
        self.rounded(value) as i32
    }

    fn rounded(self, value: f64) -> f64 {
        (value * f64::from(self.steps)).round()
    }

    /// The number that a point stands for.
    pub fn value(self, point: u32) -> f64 {
        f64::from(point) / f64::from(self.steps)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signed_readings_round_trip_and_sums_wrap_at_every_width() {
        for bits in 1..=64 {
            let ring = Ring::of(bits);
            let least = (-1i64) << (bits - 1);
            for value in [0, -1, least, -1 - least] {
                assert_eq!(ring.signed(ring.from_signed(value)), value, "{bits} bits");
            }
            let most = ring.from_signed(-1 - least);
            assert_eq!(ring.signed(ring.add(most, 1)), least);
            assert_eq!(ring.add(ring.subtract(0, 1), 1), 0);
            assert_eq!(ring.mask(), ring.from_signed(-1));
        }
        assert_eq!((Ring::new(0), Ring::new(65)), (None, None));
    }

    #[test]
    fn elements_of_every_width_round_trip_in_as_few_bytes_as_possible() {
        for bits in 1..=64 {
            let ring = Ring::of(bits);
            for count in [0u64, 1, 2, 7, 8, 9, 65] {
                let elements: Vec<u64> = (1..=count)
                    .map(|n| ring.reduce(n.wrapping_mul(0x9e37_79b9_7f4a_7c15)))
                    .collect();
                let bytes = ring.encode(&elements);
                assert_eq!(bytes.len(), (count as usize * bits as usize).div_ceil(8));
                assert_eq!(ring.decode(&bytes, count as usize).unwrap(), elements);
            }
        }
        // Whole bytes are the least significant ones, in order.
        assert_eq!(Ring::of(24).encode(&[0x0403_0201, 5]), [1, 2, 3, 5, 0, 0]);
        assert_eq!(Ring::of(64).encoded_length(usize::MAX), usize::MAX);
    }

    #[test]
    fn other_lengths_and_stray_bits_are_refused() {
        let ring = Ring::of(12);
        let bytes = ring.encode(&[1, 2, 3]);
        let (got, expected) = (5, 3);
        assert_eq!(
            ring.decode(&bytes, 2),
            Err(RingError::Length { got, expected })
        );
        let mut stray = bytes;
        stray[4] |= 0x10;
        assert_eq!(ring.decode(&stray, 3), Err(RingError::Padding));
    }

    #[test]
    fn points_are_the_nearest_ones() {
        for grid in [Grid::of_bits(10), Grid::of_steps(100), Grid::of_bits(7)] {
            let steps = grid.steps();
            for n in 0..=1000u32 {
                let value = f64::from(n) / 1000.0;
                let point = grid.point(value);
                // Exactly: |2·n·steps − 2·1000·point| is at most 1000.
                let (exact, found) = (2 * n * steps, 2000 * point);
                assert!(exact.abs_diff(found) <= 1000, "{value} on {steps} steps");
            }
            assert_eq!((grid.point(0.0), grid.point(1.0)), (0, steps));
            assert_eq!(grid.value(steps), 1.0);
        }
        let grid = Grid::of_steps(100);
        assert_eq!((grid.point(f64::NAN), grid.point(-1.0)), (0, 0));
        assert_eq!(
            (grid.signed_point(-0.25), grid.signed_point(0.25)),
            (-25, 25)
        );
    }
}
