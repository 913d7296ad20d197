//! Where the encrypted columns lie and how far they spread, over all providers.
//!
//! Training works in deviations from the mean, so that the result does not depend on how wide the
//! bounds of the schema are. Each provider adds up its training rows: of a number, or a level in
//! ordinal coding, the values and their squares, and as many times as it has rows the deviation that
//! the other encrypted columns leave unexplained ([`heda_learn::collinear`]); of a category in one-hot
//! coding the rows of each level. Of a numeric label it adds up the numbers and their squares as well, and of classes that are
//! to be balanced the rows of each. The sums carry masks modulo 2^48 that cancel ([`heda_crypto::masking`]).
//!
//! Who learns what. Data user: the sums over all providers; with a single provider, its sums.
//! Provider: the windows that follow, [`WINDOW_DEVIATIONS`] on both sides of the mean of each number,
//! roughly, because it puts its rows on the grid by them; middle and unit of a numeric label, rounded
//! to a deviation; weights of balanced classes, rounded. A schema that states `typical` for all numbers,
//! a numeric label among them, takes the place of the sums; then nothing is read from data.
//!
//! Messages (between J5 and J6): 1. data user → provider: `Scale::Ask`. 2. provider → data user:
//! 6 bytes a sum. 3. data user → provider: `Scale::Told`. Without sums only the last one; a job
//! that is resumed never asks again, for with other providers the difference would be the sums of
//! the one that left.
//!
//! [`WINDOW_DEVIATIONS`]: heda_learn::scaling::WINDOW_DEVIATIONS

mod combined;
mod private;

pub(crate) use combined::combine;
pub(crate) use private::{NOISY_PURPOSE, noisy_bytes, noisy_sums};

use crate::class_weights::ClassWeight;
use crate::closing::OpenSum;
use crate::description::{Job, JobFault};
use crate::engine::Columns;
use heda_crypto::bits::packed_bytes;
use heda_crypto::masking::MASK_BITS;
use heda_learn::collinear::unexplained;
use heda_learn::data::{Dataset, Feature};
use heda_learn::scaling::{Centre, Window};
use heda_learn::schema::Schema;
use heda_learn::target::{self, TargetScale};
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

/// The masks of this protocol are drawn for this purpose, once a session.
pub(crate) const PURPOSE: &str = "moments";
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
    /// What follows from them.
    Told {
        /// The window of each encrypted number, in the order of the schema.
        windows: Vec<Window>,
        /// Middle and unit of a numeric label.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        label: Option<TargetScale>,
        /// For each model what rows of the rest and of its own class count, if classes are balanced.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        weights: Vec<[f64; 2]>,
    },
    /// It buys sums with noise: a private job.
    AskNoisy {
        /// The number of the answer.
        step: u32,
    },
    /// Where the numbers lie that a private job has bought sums of, in the order of the schema.
    Centres {
        /// One for each.
        centres: Vec<Centre>,
    },
}

/// What is added up of the labels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OfLabels {
    /// Nothing.
    Nothing,
    /// A number and its square.
    Number,
    /// Rows of each of so many classes.
    Counts(usize),
}

impl OfLabels {
    /// What a job asks for.
    pub(crate) fn asked(job: &Job, classes: usize) -> Self {
        match job.class_weight() {
            _ if job.is_numeric() => Self::Number,
            Some(ClassWeight::Balanced) => Self::Counts(classes),
            _ => Self::Nothing,
        }
    }

    fn numbers(self) -> usize {
        match self {
            Self::Nothing => 0,
            Self::Number => 2,
            Self::Counts(classes) => classes,
        }
    }
}

/// Where columns and labels lie.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Moments {
    /// Mean and deviation of each encrypted column.
    pub centres: Vec<Centre>,
    /// Those of a numeric label, as a part of the range between its bounds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub number: Option<Centre>,
    /// Rows of each class, if they are balanced.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub counts: Vec<u64>,
    /// Of each encrypted column the share of its deviation that the others leave unexplained, in the
    /// mean of the providers; 1 for levels. None if nothing was asked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left: Vec<f64>,
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
    /// A numeric label without middle or unit.
    #[error("the label is the same in all rows, or nothing was said of where it lies")]
    Label,
    /// Weights that no classes have.
    #[error(transparent)]
    Weights(#[from] JobFault),
    /// A checkpoint of other columns.
    #[error("the checkpoint knows where {found} columns lie, and {expected} are encrypted")]
    Centres {
        /// Encrypted columns.
        expected: usize,
        /// What the checkpoint has.
        found: usize,
    },
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

/// Numbers that the sums of these features and of the labels have.
pub(crate) fn numbers(features: &[Feature], labels: OfLabels) -> usize {
    let of = |feature: &Feature| match is_number(feature) {
        true => 3,
        false => feature.columns.len(),
    };
    features.iter().map(of).sum::<usize>() + labels.numbers()
}

/// Bytes of a provider's sums.
pub(crate) fn sum_bytes(features: &[Feature], labels: OfLabels) -> usize {
    packed_bytes(numbers(features, labels), MASK_BITS)
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

/// Adds what a provider's rows are to the sum over all providers. `data` are its training rows of all
/// columns that take part, `features` the encrypted ones.
pub(crate) fn add_rows(
    data: &Dataset,
    features: &[Feature],
    labels: OfLabels,
    fraction_bits: u32,
    sum: &mut OpenSum,
) -> Result<(), MomentsError> {
    if !(LEAST_FRACTION..=MOST_FRACTION).contains(&fraction_bits) {
        return Err(MomentsError::Fraction(fraction_bits));
    }
    if data.rows() >> (MASK_BITS - fraction_bits) > 0 {
        return Err(MomentsError::Rows(data.rows()));
    }
    let one = 2f64.powi(fraction_bits as i32);
    let mut sums = Zeroizing::new(vec![0u64; numbers(features, labels)]);
    let of_features = sums.len() - labels.numbers();
    for row in 0..data.rows() {
        add_row(&mut sums, data.row(row), features, one);
        add_label(&mut sums[of_features..], data.labels()[row], labels, one);
    }
    add_unexplained(&mut sums, data, features, one);
    sum.add(&sums);
    Ok(())
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
                // What is unexplained follows from all rows.
                add(0.0);
            }
            levels => levels.iter().for_each(|x| add(*x)),
        }
    }
}

/// Puts what the other columns leave of each number, weighed by rows, into its place.
fn add_unexplained(sums: &mut [u64], data: &Dataset, features: &[Feature], one: f64) {
    let mut left = unexplained(data, features).into_iter();
    let mut place = 0;
    for feature in features {
        match is_number(feature) {
            true => {
                let value = left.next().unwrap_or(0.0) * data.rows() as f64;
                if let Some(sum) = sums.get_mut(place + 2) {
                    *sum = (value * one).round() as u64;
                }
                place += 3;
            }
            false => place += feature.columns.len(),
        }
    }
}

fn add_label(sums: &mut [u64], label: u32, labels: OfLabels, one: f64) {
    match (labels, sums) {
        (OfLabels::Number, [sum, squares]) => {
            let y = target::place(label);
            *sum += (y * one).round() as u64;
            *squares += (y * y * one).round() as u64;
        }
        (OfLabels::Counts(_), counts) => {
            if let Some(count) = counts.get_mut(label as usize) {
                *count += 1;
            }
        }
        _ => {}
    }
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

/// What a schema says about the encrypted columns and the label, if it says it of every number and
/// classes need not be counted. Levels in one-hot
/// coding then count as equally frequent: the penalty on a rare level is a little larger than it
/// would be by its own deviation.
pub(crate) fn by_schema(
    schema: &Schema,
    features: &[Feature],
    labels: OfLabels,
) -> Option<Moments> {
    let number = match labels {
        OfLabels::Counts(_) => return None,
        OfLabels::Nothing => None,
        OfLabels::Number => {
            let label = schema.label().number()?;
            let typical = label.typical?;
            Some(Centre {
                mean: (typical.mean - label.bounds.lower()) / label.bounds.range(),
                deviation: typical.deviation / label.bounds.range(),
            })
        }
    };
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
    Some(Moments {
        centres,
        number,
        counts: Vec::new(),
        left: Vec::new(),
    })
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
