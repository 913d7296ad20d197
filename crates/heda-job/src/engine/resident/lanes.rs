//! Ranges of scores, and how a score is put into one exactly.
//!
//! A score's share has w bits. Its *first digit* are the top seven, its *second digit* the eight
//! below. With a = z + r, the first digit of z is a₁ − r₁ − [a₂ < r₂], up to what lies below fifteen
//! bits: a sign is wrong only for a score within Z·2^−14 of zero.

use heda_learn::resident::Resolution;

/// Bits of the first digit.
pub(super) const FIRST_BITS: u32 = 7;
/// Bits of the second digit.
pub(super) const SECOND_BITS: u32 = 8;
/// Bits of the number of a lane.
pub(super) const LANE_BITS: u32 = 4;

/// The first digit of a share.
pub(super) fn first_digit(resolution: Resolution, share: u32) -> u8 {
    (resolution.reduce(share) >> (resolution.score_bits() - FIRST_BITS)) as u8
}

/// The second digit of a share.
pub(super) fn second_digit(resolution: Resolution, share: u32) -> u8 {
    let dropped = resolution.score_bits() - FIRST_BITS - SECOND_BITS;
    (resolution.reduce(share) >> dropped) as u8
}

/// The lane of every first digit of a score.
pub(super) fn lane_table(resolution: Resolution, edges: &[f64]) -> [u16; 1 << FIRST_BITS] {
    let step = 2.0 * resolution.bound() / f64::from(1u32 << FIRST_BITS);
    std::array::from_fn(|digit| {
        let signed = ((digit as i32) << (32 - FIRST_BITS)) >> (32 - FIRST_BITS);
        let least = f64::from(signed) * step;
        edges.iter().filter(|edge| **edge <= least).count() as u16
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::histogram::{DECISION_EDGE, EDGES, PRIVATE_EDGES};

    #[test]
    fn lanes_rise_with_the_score_and_change_at_zero() {
        let resolution = Resolution::new(10, 4, 8, 4, 4).unwrap();
        for edges in [&EDGES[..], &PRIVATE_EDGES, &DECISION_EDGE] {
            let lanes = lane_table(resolution, edges);
            assert_eq!(lanes[0] as usize, edges.len().div_ceil(2));
            assert_eq!(lanes[64], 0);
            let signed = (64..128).chain(0..64);
            let all: Vec<u16> = signed.map(|digit| lanes[digit]).collect();
            assert!(all.is_sorted());
            assert!(all[63] < all[64], "the decision is at zero");
        }
    }

    #[test]
    fn digits_and_borrow_give_the_first_digit_of_the_score() {
        let resolution = Resolution::new(10, 4, 8, 4, 4).unwrap();
        let unit = 1u32 << (resolution.score_bits() - FIRST_BITS - SECOND_BITS);
        for z in [0i64, 1, -1, 5, -5, 255, 256, -256, -257, 16_000, -16_000] {
            let z = resolution.reduce((z * i64::from(unit)) as u32);
            for mask in [0u32, 1, 77, 255, 256, 511, 32_767, 32_768, 12_345] {
                let r = resolution.reduce(mask.wrapping_mul(unit));
                let a = resolution.reduce(z.wrapping_add(r));
                let borrow = u8::from(second_digit(resolution, a) < second_digit(resolution, r));
                let first = first_digit(resolution, a)
                    .wrapping_sub(first_digit(resolution, r))
                    .wrapping_sub(borrow);
                assert_eq!(first & 127, first_digit(resolution, z));
            }
        }
    }
}
