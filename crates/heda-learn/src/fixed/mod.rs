//! Training on integers: the arithmetic that the engine `lookup` carries out under encryption,
//! here in the clear. The engine uses these same functions for the parts that its data user
//! computes in the open, and must match [`FixedSource`] to the last bit.
//!
//! All numbers live in the ring Z_{2^48} ([`RING`]). One gradient is computed in five steps, whose
//! numbers reappear in the code:
//!
//! 1. **Grid.** A value x in [0, 1] is the integer x_int = round(x·2^fx) ([`Precision`]).
//! 2. **Scale.** The data user turns β into integer weights and a constant ([`Scaled`]) so that
//!    every score z_int = constant + Σ weight_j·x_int,j that the public [`Domain`] of the rows
//!    allows stays within ±(2^47 − 2^(48−k)). Nothing wraps, and one step is left at each end.
//! 3. **Mask and round.** With a mask r uniform in the ring, the holder of the row sees
//!    a = z_int + r, keeps the top k bits, v, and both together determine t = v − top_k(r), a
//!    signed number of k bits. Write z_int = q·2^(48−k) + ρ. Then t = q + 1 with probability
//!    ρ/2^(48−k) and q otherwise: t·2^(48−k) is z_int rounded stochastically, and its mean *is*
//!    z_int, with no offset of half a step.
//! 4. **Table.** T\[t\] = round(2^f·derivative(centre + t·step)) ([`LinkTable`]), where centre and
//!    step undo the scaling of step 2. The fraction f is the largest that keeps step 5 in range.
//! 5. **Sum.** Σ_i x_int,ij·(T_i − 2^f·y_i) modulo 2^48, read as a signed number and divided by
//!    2^(f+fx). The bias is a column with x_int = 2^fx.
//!
//! **How far from exact.** On rows that lie on the grid, one derivative is off by at most
//! curvature·step + 2^(−f−1) whatever the mask. Its mean is off by at most step²/8·max|derivative''|
//! (the error of a line between two table points), plus 2^(−f−1).

mod scaled;
mod source;
mod table;
#[cfg(test)]
mod tests;

pub use scaled::{Domain, DomainError, ScaleError, Scaled, Span};
pub use source::{FixedError, FixedRows, FixedSource, Masks, Position, RingGradient};
pub use table::{Layout, LinkTable, TableError, fraction_bits};

use crate::ring::{Grid, Ring};
use serde::{Deserialize, Serialize};

/// Where scores, tables and sums live: Z_{2^48}.
pub const RING: Ring = Ring::of(48);

/// How finely values and scores are cut. Public, the same for all parties of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "UncheckedPrecision")]
pub struct Precision {
    value_bits: u32,
    index_bits: u32,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct UncheckedPrecision {
    value_bits: u32,
    index_bits: u32,
}

/// A precision outside what the engine is built for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PrecisionError {
    /// fx out of range.
    #[error("{0} bits for values: choose between 7 and 10")]
    ValueBits(u32),
    /// k out of range.
    #[error("{0} bits for the table index: choose between 4 and 12")]
    IndexBits(u32),
}

impl Precision {
    /// Values on a grid of 2^−`value_bits`, tables of 2^`index_bits` entries.
    pub fn new(value_bits: u32, index_bits: u32) -> Result<Self, PrecisionError> {
        if !(7..=10).contains(&value_bits) {
            return Err(PrecisionError::ValueBits(value_bits));
        }
        if !(4..=12).contains(&index_bits) {
            return Err(PrecisionError::IndexBits(index_bits));
        }
        Ok(Self {
            value_bits,
            index_bits,
        })
    }

    /// fx: fraction bits of a value.
    pub fn value_bits(self) -> u32 {
        self.value_bits
    }

    /// k: bits of a table index.
    pub fn index_bits(self) -> u32 {
        self.index_bits
    }

    /// The integer that stands for 1: 2^fx. Also the value of the bias column.
    pub fn one(self) -> i32 {
        1 << self.value_bits
    }

    /// Entries of a table by score alone: 2^k.
    pub fn table_len(self) -> usize {
        1 << self.index_bits
    }

    /// The bits of a score below the table index: 48 − k.
    pub fn dropped_bits(self) -> u32 {
        RING.bits() - self.index_bits
    }

    /// The grid of the values.
    pub fn grid(self) -> Grid {
        Grid::of_bits(self.value_bits)
    }

    /// Table indices, which are signed numbers of k bits.
    pub(crate) fn index_ring(self) -> Ring {
        Ring::of(self.index_bits)
    }

    /// Step 1: round(x·2^fx).
    pub fn encode(self, x: f64) -> i32 {
        self.grid().signed_point(x)
    }

    /// The value that an integer of the grid stands for.
    pub fn decode(self, x: i32) -> f64 {
        f64::from(x) / f64::from(self.one())
    }

    /// Step 3, by whoever holds a masked score or a mask: its top k bits.
    pub fn top_bits(self, masked: u64) -> u32 {
        (RING.reduce(masked) >> self.dropped_bits()) as u32
    }

    /// Step 3: the table index t, not yet read as signed, from v and the top bits of the mask.
    pub fn unmask_index(self, v: u32, mask_top: u32) -> u32 {
        v.wrapping_sub(mask_top) & (self.table_len() as u32 - 1)
    }
}

impl Default for Precision {
    /// fx = 10, k = 8.
    fn default() -> Self {
        Self {
            value_bits: 10,
            index_bits: 8,
        }
    }
}

impl TryFrom<UncheckedPrecision> for Precision {
    type Error = PrecisionError;

    fn try_from(unchecked: UncheckedPrecision) -> Result<Self, PrecisionError> {
        Self::new(unchecked.value_bits, unchecked.index_bits)
    }
}

#[cfg(test)]
mod rounding_tests {
    use super::*;
    use chacha20::ChaCha8Rng;
    use rand_core::{Rng, SeedableRng};

    fn rounded(precision: Precision, z: i64, mask: u64) -> i64 {
        let a = RING.add(RING.from_signed(z), mask);
        let t = precision.unmask_index(precision.top_bits(a), precision.top_bits(mask));
        precision.index_ring().signed(u64::from(t))
    }

    /// Shaped scores: both ends of the allowed range, around zero, on and beside table points.
    fn scores(precision: Precision) -> Vec<i64> {
        let step = 1i64 << precision.dropped_bits();
        let end = (1i64 << 47) - step;
        vec![
            -end,
            1 - end,
            -step - 1,
            -step,
            -1,
            0,
            1,
            step / 3,
            step - 1,
            step,
            end - 1,
            end,
        ]
    }

    #[test]
    fn rounding_goes_to_a_neighbour_and_never_wraps() {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        for precision in [(7, 4), (10, 8), (10, 12)].map(|(x, k)| Precision::new(x, k).unwrap()) {
            let step = 1i64 << precision.dropped_bits();
            for z in scores(precision) {
                let masks = (0..200).map(|_| rng.next_u64() >> 16);
                for mask in masks.chain([0, 1, RING.mask(), RING.mask() - 1, 1 << 47]) {
                    let error = rounded(precision, z, mask) * step - z;
                    assert!(error.abs() < step, "{z} with mask {mask} moved by {error}");
                }
            }
        }
    }

    /// Over *all* low parts of the mask the mean is exactly z, so it is checked without chance:
    /// the low part only matters by its carry, which rises for ρ of the 2^(48−k) low parts.
    #[test]
    fn rounding_is_unbiased() {
        let precision = Precision::new(10, 12).unwrap();
        let low = 1u64 << precision.dropped_bits();
        for z in scores(precision) {
            let (down, part) = (z.div_euclid(low as i64), z.rem_euclid(low as i64) as u64);
            for high in [0u64, 1, 2047, 4095] {
                let at = |s: u64| rounded(precision, z, high * low + s) - down;
                // The carry is a step function of s, zero below low − part and one from there on.
                let probes = [0, 1, low / 2, low - 1];
                for s in probes
                    .into_iter()
                    .chain([low - part - 1, (low - part) % low])
                {
                    assert_eq!(at(s), i64::from(s + part >= low), "z {z}, low part {s}");
                }
            }
        }
    }

    #[test]
    fn values_land_on_the_nearest_point_of_the_grid() {
        let precision = Precision::default();
        for (x, expected) in [
            (0.0, 0),
            (1.0, 1024),
            (0.5, 512),
            (1.0 / 3.0, 341),
            (-0.25, -256),
        ] {
            assert_eq!(precision.encode(x), expected);
            assert!((precision.decode(expected) - x).abs() <= 0.5 / 1024.0);
        }
    }

    #[test]
    fn refuses_other_precisions_from_files_too() {
        assert_eq!(Precision::new(6, 8), Err(PrecisionError::ValueBits(6)));
        assert_eq!(Precision::new(10, 13), Err(PrecisionError::IndexBits(13)));
        let read = |text: &str| serde_json::from_str::<Precision>(text);
        assert!(read(r#"{"value_bits":10,"index_bits":8}"#).is_ok());
        assert!(read(r#"{"value_bits":10,"index_bits":40}"#).is_err());
    }
}
