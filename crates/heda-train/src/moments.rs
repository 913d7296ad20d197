//! Where the encrypted columns lie and how far they spread, over all providers.
//!
//! Training works in deviations from the mean, so that the result does not depend on how wide the
//! bounds of the schema are. Each provider adds up its training rows: of a number, or a level in
//! ordinal coding, the values and their squares; of a category in one-hot coding the rows of each
//! level. The sums carry masks modulo 2^48 that cancel ([`heda_crypto::masking`]).
//!
//! Who learns what. Data user: the sums over all providers; with a single provider, its sums.
//! Provider: the windows that follow, [`WINDOW_DEVIATIONS`] on both sides of the mean of each number,
//! roughly, because it puts its rows on the grid by them. A schema that states `typical` for all numbers
//! takes the place of the sums; then nothing is read from data.
//!
//! Messages (between J5 and J6): 1. data user → provider: `Scale::Ask`. 2. provider → data user:
//! 6 bytes a sum. 3. data user → provider: `Scale::Told`. Without sums only the last one; a job
//! that is resumed never asks again, for with other providers the difference would be the sums of
//! the one that left.
//!
//! [`WINDOW_DEVIATIONS`]: heda_learn::scaling::WINDOW_DEVIATIONS

use crate::engine::Columns;
use heda_crypto::bits::{pack, packed_bytes, unpack};
use heda_crypto::masking::{MASK_BITS, MaskingError, Masks};
use heda_learn::data::{Dataset, Feature};
use heda_learn::scaling::{Centre, Window};
use heda_learn::schema::Schema;
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

/// The masks of this protocol are drawn for this purpose, round 0: once per job.
const PURPOSE: &str = "moments";
/// Sums are added up modulo 2^48, like the masks.
const MODULUS_MASK: u64 = (1 << MASK_BITS) - 1;
/// Fraction bits of a value, at least and at most.
const LEAST_FRACTION: u32 = 16;
const MOST_FRACTION: u32 = 40;

/// What a data user says about the grid.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) enum Scale {
    /// It wants the sums.
    Ask {
        /// Fraction bits of a value in a sum: as many as the rows of all providers leave.
        fraction_bits: u32,
    },
    /// The windows of all encrypted numbers, in the order of the schema.
    Told {
        /// One for each.
        windows: Vec<Window>,
    },
}

/// Why there are no moments.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MomentsError {
    /// A number of fraction bits that no number of rows asks for.
    #[error(
        "sums with {0} fraction bits: between {LEAST_FRACTION} and {MOST_FRACTION} are possible"
    )]
    Fraction(u32),
    /// More rows than a sum can hold.
    #[error("{0} rows are too many for sums over all providers")]
    Rows(usize),
    /// The sum cannot have come from masks that cancel.
    #[error(
        "the sums of the providers do not add up: a provider used other masks or rows than \
         announced; start the job again"
    )]
    Sum,
    /// Windows that do not belong to the encrypted numbers.
    #[error("{found} windows for {expected} encrypted numbers, each a part of [0, 1]")]
    Windows {
        /// Encrypted numbers.
        expected: usize,
        /// What came.
        found: usize,
    },
    /// A checkpoint of other columns.
    #[error("the checkpoint knows where {found} columns lie, and {expected} are encrypted")]
    Centres {
        /// Encrypted columns.
        expected: usize,
        /// What the checkpoint has.
        found: usize,
    },
    /// There are no masks.
    #[error(transparent)]
    Masking(#[from] MaskingError),
}

/// The encrypted features that take part, with their places among the columns of the job.
pub(crate) fn encrypted(features: &[Feature], columns: &Columns) -> Vec<Feature> {
    let hidden = |feature: &&Feature| columns.hidden.contains(&feature.columns.start);
    features.iter().filter(hidden).cloned().collect()
}

/// Whether a feature is one number, which gets a window.
fn is_number(feature: &Feature) -> bool {
    feature.columns.len() == 1
}

/// Numbers that the sums of these features have.
pub(crate) fn numbers(features: &[Feature]) -> usize {
    let of = |feature: &Feature| match is_number(feature) {
        true => 2,
        false => feature.columns.len(),
    };
    features.iter().map(of).sum()
}

/// Bytes of a provider's sums.
pub(crate) fn sum_bytes(features: &[Feature]) -> usize {
    packed_bytes(numbers(features), MASK_BITS)
}

/// As many fraction bits as so many rows leave.
pub(crate) fn fraction_bits(rows: usize) -> Result<u32, MomentsError> {
    let taken = usize::BITS - rows.leading_zeros() + 1;
    let left = MASK_BITS.saturating_sub(taken);
    match left >= LEAST_FRACTION {
        true => Ok(left.min(MOST_FRACTION)),
        false => Err(MomentsError::Rows(rows)),
    }
}

/// A provider's message: its sums under masks. `data` are its training rows of all columns that
/// take part, `features` the encrypted ones.
pub(crate) fn contribution(
    data: &Dataset,
    features: &[Feature],
    fraction_bits: u32,
    masks: &mut Masks,
) -> Result<Vec<u8>, MomentsError> {
    if !(LEAST_FRACTION..=MOST_FRACTION).contains(&fraction_bits) {
        return Err(MomentsError::Fraction(fraction_bits));
    }
    if data.rows() >> (MASK_BITS - fraction_bits) > 0 {
        return Err(MomentsError::Rows(data.rows()));
    }
    let one = 2f64.powi(fraction_bits as i32);
    let mut sums = Zeroizing::new(vec![0u64; numbers(features)]);
    for row in 0..data.rows() {
        add_row(&mut sums, data.row(row), features, one);
    }
    let masks = masks.stream(PURPOSE, 0, sums.len())?;
    let masked = sums.iter().zip(masks.iter());
    let masked: Vec<u64> = masked.map(|(sum, mask)| sum.wrapping_add(*mask)).collect();
    Ok(pack(&masked, MASK_BITS))
}

fn add_row(sums: &mut [u64], row: &[f64], features: &[Feature], one: f64) {
    let mut sums = sums.iter_mut();
    let mut add = |value: f64| {
        if let Some(sum) = sums.next() {
            *sum += value.round() as u64;
        }
    };
    for feature in features {
        let values = &row[feature.columns.clone()];
        match values {
            [x] => {
                add(x * one);
                add(x * x * one);
            }
            levels => levels.iter().for_each(|x| add(*x)),
        }
    }
}

/// What the data user makes of everybody's sums: a centre for each encrypted column.
pub(crate) fn combine(
    contributions: &[Vec<u8>],
    features: &[Feature],
    fraction_bits: u32,
    rows: usize,
) -> Result<Vec<Centre>, MomentsError> {
    let mut sums = vec![0u64; numbers(features)];
    for bytes in contributions {
        let decoded = unpack(bytes, sums.len(), MASK_BITS);
        let decoded = decoded.map_err(|_| MomentsError::Sum)?;
        for (sum, number) in sums.iter_mut().zip(decoded) {
            *sum = sum.wrapping_add(number) & MODULUS_MASK;
        }
    }
    let one = 2f64.powi(fraction_bits as i32);
    let rows = rows.max(1) as f64;
    // Each row of each provider was rounded.
    let slack = 1.0 / one;
    let mut sums = sums.into_iter().map(|sum| sum as f64 / rows);
    let mut next = || sums.next().ok_or(MomentsError::Sum);
    let mut centres = Vec::new();
    for feature in features {
        if is_number(feature) {
            let (mean, square) = (next()? / one, next()? / one);
            // Values in [0, 1] have squares below themselves, and above the square of their mean.
            let possible = mean <= 1.0 + slack
                && square <= mean + slack
                && square + 3.0 * slack >= mean * mean;
            possible.then_some(()).ok_or(MomentsError::Sum)?;
            centres.push(Centre::of_moments(mean, square));
        } else {
            let mut whole = 0.0;
            for _ in feature.columns.clone() {
                let share = next()?;
                whole += share;
                centres.push(Centre::of_share(share));
            }
            (whole <= 1.0 + 1e-9)
                .then_some(())
                .ok_or(MomentsError::Sum)?;
        }
    }
    Ok(centres)
}

/// The features of which no column varies.
pub(crate) fn constant(features: &[Feature], centres: &[Centre]) -> Vec<String> {
    let mut centres = centres.iter();
    let varies = |feature: &Feature| {
        let columns = centres.by_ref().take(feature.columns.len());
        columns.filter(|centre| centre.varies()).count() > 0
    };
    let varies: Vec<bool> = features.iter().map(varies).collect();
    let constant = features.iter().zip(varies).filter(|(_, varies)| !varies);
    constant.map(|(feature, _)| feature.name.clone()).collect()
}

/// What a schema says about the encrypted columns, if it says it of every number. Levels in one-hot
/// coding then count as equally frequent: the penalty on a rare level is a little larger than it
/// would be by its own deviation.
pub(crate) fn by_schema(schema: &Schema, features: &[Feature]) -> Option<Vec<Centre>> {
    let encoded = schema.encoded_columns();
    let mut centres = Vec::new();
    for feature in features {
        if is_number(feature) {
            let column = schema
                .columns()
                .iter()
                .position(|c| c.name() == feature.name)?;
            let typical = schema.columns()[column].typical()?;
            let way_back = encoded.iter().find(|e| e.feature == column)?;
            centres.push(Centre {
                mean: (typical.mean - way_back.offset) / way_back.scale,
                deviation: typical.deviation / way_back.scale,
            });
        } else {
            let levels = feature.columns.len();
            let share = 1.0 / levels as f64;
            centres.extend(vec![Centre::of_share(share); levels]);
        }
    }
    Some(centres)
}

/// The windows of the encrypted numbers.
pub(crate) fn windows(features: &[Feature], centres: &[Centre]) -> Vec<Window> {
    let mut start = 0;
    let mut windows = Vec::new();
    for feature in features {
        if is_number(feature) {
            windows.extend(centres.get(start).copied().map(Window::around));
        }
        start += feature.columns.len();
    }
    windows
}

/// A window for each of `width` columns of the job: those of the encrypted numbers, and the whole
/// range elsewhere.
pub(crate) fn by_column(
    features: &[Feature],
    windows: &[Window],
    width: usize,
) -> Result<Vec<Window>, MomentsError> {
    let numbers: Vec<&Feature> = features.iter().filter(|f| is_number(f)).collect();
    let (expected, found) = (numbers.len(), windows.len());
    if expected != found || !windows.iter().all(|window| window.is_sound()) {
        return Err(MomentsError::Windows { expected, found });
    }
    let mut all = vec![Window::WHOLE; width];
    for (feature, window) in numbers.into_iter().zip(windows) {
        all[feature.columns.start] = *window;
    }
    Ok(all)
}

#[cfg(test)]
mod tests;
