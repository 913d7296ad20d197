//! Transposes a square of 128 × 128 bits.

/// Side of the square.
pub(crate) const SIDE: usize = 128;

/// Bit j of word i becomes bit i of word j.
///
/// Swaps the off-diagonal halves of ever smaller squares (Warren, "Hacker's Delight", 7-3); no
/// step depends on the data.
pub(crate) fn transpose(square: &mut [u128; SIDE]) {
    let mut half = SIDE / 2;
    let mut mask = u128::MAX >> half;
    while half > 0 {
        for start in (0..SIDE).step_by(2 * half) {
            let (low, high) = square[start..start + 2 * half].split_at_mut(half);
            for (low, high) in low.iter_mut().zip(high) {
                let swap = (*low >> half ^ *high) & mask;
                *low ^= swap << half;
                *high ^= swap;
            }
        }
        half /= 2;
        mask ^= mask << half;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Randomness;
    use rand_core::Rng;

    #[test]
    fn equals_the_definition() {
        let mut rng = Randomness::seeded(1).fork("square", 0).unwrap();
        let mut square = [0u128; SIDE];
        let mut bytes = [0; 16];
        for word in &mut square {
            rng.fill_bytes(&mut bytes);
            *word = u128::from_le_bytes(bytes);
        }
        let before = square;
        transpose(&mut square);
        for (i, row) in before.iter().enumerate() {
            for (j, column) in square.iter().enumerate() {
                assert_eq!(row >> j & 1, column >> i & 1);
            }
        }
        transpose(&mut square);
        assert_eq!(square, before);
    }
}
