//! The fixed parameters and the noise they must bear.
//!
//! Security: ring degree 8192 with a modulus of 186 bits, ternary secrets and errors of standard
//! deviation above 3.2. The Homomorphic Encryption Standard (Albrecht et al., 2018, table 1)
//! allows 218 bits at this degree for 128-bit security.
//!
//! [`check`] recomputes every bound from the constants below; nothing runs when it fails.

use super::error::LatticeError;

/// Everything that is computed lives in the integers modulo 2^48.
pub const MODULUS_BITS: u32 = 48;
/// The most rows a matrix may have.
pub const ROW_LIMIT: usize = 1 << 20;
/// The most columns a matrix may have.
pub const COLUMN_LIMIT: usize = 1 << 10;

pub(super) const PLAINTEXT_MODULUS: u64 = 1 << MODULUS_BITS;
pub(super) const DEGREE_LOG: u8 = 13;
pub(super) const DEGREE: usize = 1 << DEGREE_LOG;
/// The three largest primes below 2^62 that are 1 modulo 2·8192, falling: switching relies on it.
pub(super) const PRIMES: [u64; 3] = [
    4_611_686_018_427_322_369,
    4_611_686_018_427_289_601,
    4_611_686_018_426_454_017,
];
pub(super) const PRIME_BITS: u32 = 62;
/// Errors are a difference of two sums of this many bits: variance 10.5, never above 21.
pub(super) const ERROR_BOUND: u32 = 21;
/// Flooding noise is uniform in [−2^135, 2^135).
pub(super) const FLOOD_BITS: u32 = 135;
/// A whole answer may differ from its simulation by at most 2^−40 in statistical distance.
const STATISTICAL_BITS: f64 = 40.0;
/// What the Homomorphic Encryption Standard allows at degree 8192 for 128-bit security.
const MODULUS_BITS_LIMIT: f64 = 218.0;

/// The largest weight after centring is 2^47 in absolute value.
const WEIGHT_BOUND: f64 = (PLAINTEXT_MODULUS / 2) as f64;

/// Worst case of what a linear combination of `terms` encrypted numbers leaves in one
/// coefficient, before flooding: every error and every encoding remainder at its bound with the
/// worst sign, the zero-encryption u·e + e'·s with ternary u and s, and the remainder of the mask.
pub(super) fn combination_noise(terms: usize) -> f64 {
    let error = f64::from(ERROR_BOUND);
    let products = terms as f64 * WEIGHT_BOUND * (error + 0.5);
    let zero_encryption = 2.0 * DEGREE as f64 * error;
    products + zero_encryption + 0.5
}

/// Statistical distance, as a power of two, between an answer and one whose noise is the flooding
/// alone: each sent coefficient adds at most its shift divided by the width of the flooding.
pub(super) fn distance_log2(terms: usize, coefficients: usize) -> f64 {
    let per_coefficient = combination_noise(terms).log2() - f64::from(FLOOD_BITS + 1);
    per_coefficient + (coefficients as f64).log2()
}

/// Worst noise of an answer under the last modulus, as a share of what decryption tolerates.
pub(super) fn answer_noise_share(terms: usize) -> f64 {
    let full: f64 = PRIMES.iter().map(|&p| p as f64).product();
    let last = PRIMES[0] as f64;
    let flooded = (combination_noise(terms) + (f64::from(FLOOD_BITS)).exp2()) / full * last;
    // Both components are rounded, the second one is multiplied by a ternary secret; the second
    // of the two roundings comes on top of the first one divided by a prime.
    let rounding = (1.0 + DEGREE as f64) * (0.5 + 1.0 / last);
    let tolerated = last / (2.0 * PLAINTEXT_MODULUS as f64);
    // Decoding multiplies by a rounded reciprocal: an error of 2^-15 of a step at most.
    (flooded + rounding) / tolerated + 2.0 * (-15f64).exp2()
}

/// Refuses parameters whose largest allowed matrix is not private or not exact.
pub(super) fn check() -> Result<(), LatticeError> {
    let modulus_bits: f64 = PRIMES.iter().map(|&p| (p as f64).log2()).sum();
    if modulus_bits > MODULUS_BITS_LIMIT {
        return Err(LatticeError::UnsoundParameters("modulus above 218 bits"));
    }
    if !PRIMES.iter().all(|p| *p >> (PRIME_BITS - 1) == 1) || !PRIMES.is_sorted_by(|a, b| a > b) {
        return Err(LatticeError::UnsoundParameters("primes out of order"));
    }
    for (terms, coefficients) in [(COLUMN_LIMIT, ROW_LIMIT), (ROW_LIMIT, COLUMN_LIMIT)] {
        if answer_noise_share(terms) >= 1.0 {
            return Err(LatticeError::UnsoundParameters("noise reaches the limit"));
        }
        if distance_log2(terms, coefficients) > -STATISTICAL_BITS {
            return Err(LatticeError::UnsoundParameters("flooding is too narrow"));
        }
    }
    Ok(())
}

/// Refuses shapes that the noise budget was not computed for.
pub(super) fn check_shape(rows: usize, columns: usize) -> Result<(), LatticeError> {
    if rows == 0 || columns == 0 {
        return Err(LatticeError::EmptyMatrix { rows, columns });
    }
    if rows > ROW_LIMIT {
        return Err(LatticeError::TooManyRows { rows });
    }
    if columns > COLUMN_LIMIT {
        return Err(LatticeError::TooManyColumns { columns });
    }
    Ok(())
}

/// Refuses a vector of the wrong length or with numbers outside of the ring.
pub(super) fn check_vector(
    what: &'static str,
    values: &[u64],
    expected: usize,
) -> Result<(), LatticeError> {
    if values.len() != expected {
        let found = values.len();
        return Err(LatticeError::WrongCount {
            what,
            expected,
            found,
        });
    }
    match values.iter().position(|v| *v >= PLAINTEXT_MODULUS) {
        Some(index) => Err(LatticeError::NotReduced { what, index }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_pass_their_check() {
        check().unwrap();
        // The largest answers stay well below what the check demands.
        assert!(distance_log2(ROW_LIMIT, COLUMN_LIMIT) < -54.0);
        assert!(distance_log2(COLUMN_LIMIT, ROW_LIMIT) < -54.0);
        assert!(answer_noise_share(ROW_LIMIT) < 0.76);
    }

    #[test]
    fn sizes_beyond_the_bound_are_refused_by_name() {
        assert_eq!(check_shape(ROW_LIMIT, COLUMN_LIMIT), Ok(()));
        assert_eq!(
            check_shape(ROW_LIMIT + 1, 1),
            Err(LatticeError::TooManyRows {
                rows: ROW_LIMIT + 1
            })
        );
        assert_eq!(
            check_shape(1, COLUMN_LIMIT + 1),
            Err(LatticeError::TooManyColumns {
                columns: COLUMN_LIMIT + 1
            })
        );
        assert_eq!(
            check_shape(0, 3),
            Err(LatticeError::EmptyMatrix {
                rows: 0,
                columns: 3
            })
        );
    }
}
