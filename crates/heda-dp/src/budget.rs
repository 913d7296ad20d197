//! Splitting one ε over the columns of a row.
//!
//! The columns of a row belong to the same person, so what they cost adds up (sequential
//! composition). A split is exact in billionths, and its parts sum to the total.

use crate::epsilon::Epsilon;
use crate::error::ParameterError;

/// Why an ε cannot be split as asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SplitError {
    /// Nothing to split over.
    #[error("there is no column to spend epsilon on")]
    NoColumns,
    /// A column that would get nothing cannot be released.
    #[error("column {column} has weight zero; drop it from the release or give it a weight")]
    ZeroWeight {
        /// Which column, from 0.
        column: usize,
    },
    /// The part of a column is below one billionth.
    #[error("epsilon {total} is too small for column {column} to get a part of it")]
    TooSmall {
        /// What was to be split.
        total: Epsilon,
        /// Which column, from 0.
        column: usize,
    },
}

/// The same part for every column; what does not divide goes to the first columns.
pub fn split_equally(total: Epsilon, columns: usize) -> Result<Vec<Epsilon>, SplitError> {
    split_by_weights(total, &vec![1; columns])
}

/// Parts in proportion to weights, rounded down; the billionths left over go to the first columns,
/// one each, so that the parts sum to the total exactly.
pub fn split_by_weights(total: Epsilon, weights: &[u32]) -> Result<Vec<Epsilon>, SplitError> {
    if weights.is_empty() {
        return Err(SplitError::NoColumns);
    }
    if let Some(column) = weights.iter().position(|&w| w == 0) {
        return Err(SplitError::ZeroWeight { column });
    }
    let all: u128 = weights.iter().map(|&w| u128::from(w)).sum();
    let share = |w: u32| (u128::from(total.billionths()) * u128::from(w) / all) as u64;
    let mut parts: Vec<u64> = weights.iter().map(|&w| share(w)).collect();
    let left = total.billionths() - parts.iter().sum::<u64>();
    parts
        .iter_mut()
        .take(left as usize)
        .for_each(|part| *part += 1);
    let name = |column| move |_: ParameterError| SplitError::TooSmall { total, column };
    let checked = parts.into_iter().enumerate();
    checked
        .map(|(column, part)| Epsilon::from_billionths(part).map_err(name(column)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn epsilon(text: &str) -> Epsilon {
        text.parse().unwrap()
    }

    #[test]
    fn equal_parts_sum_to_the_total() {
        let parts = split_equally(epsilon("1"), 3).unwrap();
        let billionths: Vec<_> = parts.iter().map(|e| e.billionths()).collect();
        assert_eq!(billionths, [333_333_334, 333_333_333, 333_333_333]);
        assert_eq!(split_equally(epsilon("0.5"), 1), Ok(vec![epsilon("0.5")]));
    }

    #[test]
    fn weights_are_kept_exactly() {
        let parts = split_by_weights(epsilon("1"), &[1, 2, 5]).unwrap();
        assert_eq!(parts, [epsilon("0.125"), epsilon("0.25"), epsilon("0.625")]);
    }

    #[test]
    fn bad_splits_have_their_own_errors() {
        let one = epsilon("1");
        assert_eq!(split_equally(one, 0), Err(SplitError::NoColumns));
        assert_eq!(
            split_by_weights(one, &[1, 0]),
            Err(SplitError::ZeroWeight { column: 1 })
        );
        let total = epsilon("0.000000002");
        assert_eq!(
            split_equally(total, 3),
            Err(SplitError::TooSmall { total, column: 2 })
        );
    }

    proptest! {
        #[test]
        fn parts_never_exceed_the_total(
            billionths in 1_000_000u64..1_000_000_000_000,
            weights in proptest::collection::vec(1u32..1000, 1..40),
        ) {
            let total = Epsilon::from_billionths(billionths).unwrap();
            let parts = split_by_weights(total, &weights).unwrap();
            prop_assert_eq!(Epsilon::sum(parts), Ok(total));
        }
    }
}
