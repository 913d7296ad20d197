//! The data user's side of the moments: everybody's sums, from which the masks are gone, and what follows
//! from them. Sums that no rows have are refused: masks were left over, or a provider had other rows than it
//! announced.

use super::{MODULUS_MASK, Moments, MomentsError, OfLabels, is_number, numbers};
use heda_crypto::bits::unpack;
use heda_crypto::masking::MASK_BITS;
use heda_learn::data::Feature;
use heda_learn::scaling::Centre;

/// What the data user makes of everybody's sums: a centre for each encrypted column.
pub(crate) fn combine(
    contributions: &[Vec<u8>],
    features: &[Feature],
    labels: OfLabels,
    fraction_bits: u32,
    rows: usize,
) -> Result<Moments, MomentsError> {
    let mut sums = added(contributions, numbers(features, labels))?;
    let of_labels = sums.split_off(sums.len() - labels.numbers());
    let total = Total {
        rows: rows as u64,
        one: 2f64.powi(fraction_bits as i32),
    };
    let mut sums = &sums[..];
    let (mut centres, mut left) = (Vec::new(), Vec::new());
    for feature in features {
        if is_number(feature) {
            let [sum, squares, unexplained] = *next(&mut sums)?;
            let centre = total.centre(sum, squares)?;
            left.push(share_left(total.mean(unexplained), centre)?);
            centres.push(centre);
        } else {
            let levels = sums.split_off(..feature.columns.len());
            let levels = levels.ok_or(MomentsError::Sum)?;
            left.extend(levels.iter().map(|_| 1.0));
            centres.extend(total.shares(levels)?);
        }
    }
    let (mut number, mut counts) = (None, Vec::new());
    match (labels, &of_labels[..]) {
        (OfLabels::Number, [sum, squares]) => number = Some(total.centre(*sum, *squares)?),
        (OfLabels::Counts(_), found) => {
            let everybody = sum_of(found) == total.rows;
            counts = everybody.then(|| found.to_vec()).ok_or(MomentsError::Sum)?;
        }
        _ => {}
    }
    Ok(Moments {
        centres,
        number,
        counts,
        left,
    })
}

/// Everybody's numbers added up, modulo 2^48: the masks are gone.
fn added(contributions: &[Vec<u8>], numbers: usize) -> Result<Vec<u64>, MomentsError> {
    let mut sums = vec![0u64; numbers];
    for bytes in contributions {
        let decoded = unpack(bytes, numbers, MASK_BITS);
        let decoded = decoded.map_err(|_| MomentsError::Sum)?;
        for (sum, number) in sums.iter_mut().zip(decoded) {
            *sum = sum.wrapping_add(number) & MODULUS_MASK;
        }
    }
    Ok(sums)
}

/// The sums that come next.
fn next<'a, const N: usize>(sums: &mut &'a [u64]) -> Result<&'a [u64; N], MomentsError> {
    let (first, rest) = sums.split_first_chunk().ok_or(MomentsError::Sum)?;
    *sums = rest;
    Ok(first)
}

/// A sum that no masks left over make small again.
fn sum_of(counts: &[u64]) -> u64 {
    counts.iter().fold(0, |sum, n| sum.saturating_add(*n))
}

/// What sums are over.
struct Total {
    /// Rows of all providers.
    rows: u64,
    /// What a value of 1 counts.
    one: f64,
}

impl Total {
    /// The mean of values in [0, 1].
    fn mean(&self, sum: u64) -> f64 {
        sum as f64 / self.rows.max(1) as f64 / self.one
    }

    /// Mean and deviation of a column, if its sums can be those of values in [0, 1]: their squares are below
    /// themselves, and above the square of their mean. Each row of each provider was rounded.
    fn centre(&self, sum: u64, squares: u64) -> Result<Centre, MomentsError> {
        let (mean, square) = (self.mean(sum), self.mean(squares));
        let slack = 1.0 / self.one;
        let possible =
            mean <= 1.0 + slack && square <= mean + slack && square + 3.0 * slack >= mean * mean;
        let centre = possible.then(|| Centre::of_moments(mean, square));
        centre.ok_or(MomentsError::Sum)
    }

    /// The centres of the levels of a category, if no row has two.
    fn shares(&self, levels: &[u64]) -> Result<Vec<Centre>, MomentsError> {
        if sum_of(levels) > self.rows {
            return Err(MomentsError::Sum);
        }
        let rows = self.rows.max(1) as f64;
        let share = |count: &u64| Centre::of_share(*count as f64 / rows);
        Ok(levels.iter().map(share).collect())
    }
}

/// A mean of deviations as a share of the column's. No deviation of values in [0, 1] exceeds ½.
fn share_left(deviation: f64, centre: Centre) -> Result<f64, MomentsError> {
    match (deviation <= 0.5 + 1e-6, centre.varies()) {
        (false, _) => Err(MomentsError::Sum),
        (true, true) => Ok((deviation / centre.deviation).min(1.0)),
        (true, false) => Ok(1.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use heda_crypto::bits::pack;

    /// A grid on which every bound below lies exactly.
    const BITS: u32 = 20;
    const ONE: u64 = 1 << BITS;
    const EPSILON: f64 = 1e-6;

    fn feature(columns: std::ops::Range<usize>) -> Feature {
        let levels = (columns.len() > 1).then_some(columns.len());
        Feature {
            name: "x".into(),
            columns,
            levels,
        }
    }

    /// What follows from these numbers of one provider with so many rows.
    fn of(
        numbers: &[u64],
        feature: Feature,
        labels: OfLabels,
        rows: usize,
    ) -> Result<Moments, MomentsError> {
        combine(&[pack(numbers, MASK_BITS)], &[feature], labels, BITS, rows)
    }

    /// Sums of one row: a value and its square are no values in [0, 1] beyond what rounding explains.
    #[test]
    fn a_mean_and_a_mean_square_are_those_of_values_between_nought_and_one() {
        // The square of this mean is 1024 steps.
        let mean = ONE >> 5;
        for (sum, squares, possible) in [
            (ONE + 1, ONE + 1, true),
            (ONE + 2, ONE + 2, false),
            (100, 101, true),
            (100, 102, false),
            (mean, 1021, true),
            (mean, 1020, false),
            (0, 0, true),
        ] {
            let found = of(&[sum, squares, 0], feature(0..1), OfLabels::Nothing, 1);
            assert_eq!(found.is_ok(), possible, "{sum} {squares}");
            if let Ok(found) = found {
                let centre =
                    Centre::of_moments(sum as f64 / ONE as f64, squares as f64 / ONE as f64);
                assert_eq!(found.centres, [centre]);
            }
            // A numeric label is a number like the others.
            let number = OfLabels::Number;
            let found = of(&[0, 0, 0, sum, squares], feature(0..1), number, 1);
            assert_eq!(found.is_ok(), possible, "{sum} {squares}");
        }
    }

    #[test]
    fn no_row_has_two_levels_of_a_category() {
        for (counts, possible) in [
            ([2, 1, 2], true),
            ([0, 0, 5], true),
            // A row without a level that the schema knows.
            ([1, 1, 1], true),
            ([2, 2, 2], false),
            ([5, 1, 0], false),
            ([1, 0, (1 << MASK_BITS) - 1], false),
        ] {
            let found = of(&counts, feature(0..3), OfLabels::Nothing, 5);
            assert_eq!(found.is_ok(), possible, "{counts:?}");
            if let Ok(found) = found {
                let shares = counts.map(|count| Centre::of_share(count as f64 / 5.0));
                assert_eq!(found.centres, shares);
                assert_eq!(found.left, [1.0; 3]);
            }
        }
    }

    #[test]
    fn every_row_has_one_class() {
        for (counts, possible) in [
            ([2, 3], true),
            ([5, 0], true),
            ([2, 2], false),
            ([3, 3], false),
        ] {
            let labels = OfLabels::Counts(2);
            let found = of(&[0, 0, 0, counts[0], counts[1]], feature(0..1), labels, 5);
            assert_eq!(found.is_ok(), possible, "{counts:?}");
            assert!(found.is_err() || found.unwrap().counts == counts);
        }
    }

    /// The largest deviation of values in [0, 1] is that of as many noughts as ones.
    #[test]
    fn what_is_left_of_a_column_is_a_share_of_its_deviation() {
        let half = Centre::of_moments(0.5, 0.5);
        let still = Centre::of_moments(0.5, 0.25);
        assert_eq!((half.deviation, still.varies()), (0.5, false));
        for (deviation, centre, share) in [
            (0.0, half, Some(0.0)),
            (0.125, half, Some(0.25)),
            (0.5, half, Some(1.0)),
            (0.5 + EPSILON, half, Some(1.0)),
            (0.5 + 2.0 * EPSILON, half, None),
            (0.25, still, Some(1.0)),
            (0.6, still, None),
        ] {
            assert_eq!(share_left(deviation, centre).ok(), share, "{deviation}");
        }
        // In the units of the sums: half of what the column deviates, in the mean of four rows.
        let sums = [2 * ONE, 2 * ONE, ONE];
        let found = of(&sums, feature(0..1), OfLabels::Nothing, 4).unwrap();
        assert_eq!((found.centres, found.left), (vec![half], vec![0.5]));
    }
}
