//! What noisy counts of held-out rows say about a model: how many rows it predicts right, and
//! between which bounds its accuracy lies.
//!
//! **Two answers for each model.** The *right predictions* are one number, which replacing a row
//! moves by at most one row. The *table* counts rows by class and range of score, and replacing a row
//! moves it by √2 rows. The first gets [`RIGHT_SHARE`] of what the evaluation may cost, because the
//! accuracy is what people ask for. The table pays for itself: it knows the number of right
//! predictions too, with more noise, and both are combined.
//!
//! **Units.** A row counts as [`ROW_UNITS`] whole units. Every provider's share of the noise has a
//! variance of at least 18 in whole numbers, which would be a floor under the noise of a count of
//! rows; counted in units it is below a tenth of a row.
//!
//! **Estimates have no bias.** Answers are combined by least squares, weighed by their noise, with the
//! number of rows known. Nothing is moved to where counts can be; what is shown is cut to 0 to 100 %.
//!
//! **Intervals** are exact for the model Y = X + noise, X binomial of the true accuracy, the noise
//! normal ([`RightRows::interval`]): they hold the accuracy on new rows in at least 95 % of all jobs,
//! whatever the number of rows and the noise. `heda-repro experiment intervals` draws them.

use heda_dp::normal::tail;
use serde::{Deserialize, Serialize};

/// Units that a held-out row adds to a count.
pub const ROW_UNITS: u32 = 256;
/// By how much one row can move the number of right predictions, squared, in units.
pub const RIGHT_SENSITIVITY_SQUARED: u64 = (ROW_UNITS as u64) * (ROW_UNITS as u64);
/// By how much one row can move a table of counts, squared, in units: it leaves one count and enters
/// another.
pub const TABLE_SENSITIVITY_SQUARED: u64 = 2 * RIGHT_SENSITIVITY_SQUARED;
/// The part of an evaluation's budget that the number of right predictions gets; the table has the
/// rest. With four counts in the table both together know the accuracy as well as nine tenths of
/// the budget would, with eight as well as 0.85 of it.
pub const RIGHT_SHARE: f64 = 0.8;
/// Held-out rows from which on the ranges of scores are fine enough for an area under the curve.
/// With fewer the noise would hide it, so the table has one number for each class and prediction.
pub const ROWS_FOR_AREA: u64 = 1000;
/// Half of an interval that is wider than this says little, as a share of rows.
pub const WIDE: f64 = 0.05;

/// What an interval leaves out at either end.
const OUTSIDE: f64 = 0.025;
/// Standard deviations of the noise beyond which it is taken for impossible: 10⁻¹².
const FAR: f64 = 7.0;
/// Probabilities below this do not count.
const NEGLIGIBLE: f64 = 1e-15;
/// How often the range of a bound is halved: it is found to 10⁻⁹.
const HALVINGS: u32 = 30;

/// How many held-out rows a model predicts right, as far as noisy counts tell.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct RightRows {
    /// Without bias: below zero or above the number of rows where the noise has it so.
    pub estimate: f64,
    /// Standard deviation of the noise in it.
    pub deviation: f64,
    /// Held-out rows, which are known.
    pub rows: u64,
}

/// A table of counts with noise.
#[derive(Debug, Clone, PartialEq)]
pub struct NoisyTable {
    /// Rows by class and range of score: those of the negative class first, ranges in ascending
    /// order. The upper half of the ranges is predicted positive.
    pub counts: Vec<f64>,
    /// Standard deviation of the noise in each.
    pub deviation: f64,
}

impl NoisyTable {
    /// Whether a place of the table holds right predictions.
    pub fn is_right(&self, place: usize) -> bool {
        let lanes = self.counts.len() / 2;
        (place >= lanes) == (place % lanes.max(1) >= lanes / 2)
    }

    /// The same with what is missing in all counts together spread over them.
    fn of_rows(&self, rows: u64) -> Self {
        let missing = rows as f64 - self.counts.iter().sum::<f64>();
        let each = missing / self.counts.len().max(1) as f64;
        Self {
            counts: self.counts.iter().map(|count| count + each).collect(),
            deviation: self.deviation,
        }
    }

    /// Right predictions by this table alone. Half of its counts are of right ones, and the number of
    /// rows is known.
    fn right(&self, rows: u64) -> RightRows {
        let fitted = self.of_rows(rows);
        let counts = fitted.counts.iter().enumerate();
        RightRows {
            estimate: (counts.filter(|(place, _)| self.is_right(*place)))
                .map(|(_, count)| count)
                .sum(),
            deviation: right_in_table(self.counts.len(), self.deviation),
            rows,
        }
    }
}

/// The noise in the right predictions of a table of so many counts whose sum is known.
pub fn right_in_table(counts: usize, deviation: f64) -> f64 {
    deviation * (counts as f64).sqrt() / 2.0
}

/// The noise of two independent answers to the same question, weighed as is best.
pub fn both(one: f64, other: f64) -> f64 {
    match one.hypot(other) {
        0.0 => 0.0,
        both => one * other / both,
    }
}

/// What the answers that arrived say together: right predictions, and the table in whose right
/// places there are as many. `None` if neither arrived.
pub fn combine(
    right: Option<RightRows>,
    table: Option<&NoisyTable>,
    rows: u64,
) -> Option<(RightRows, Option<NoisyTable>)> {
    let Some(table) = table else {
        return right.map(|right| (right, None));
    };
    let by_table = table.right(rows);
    let all = match right {
        None => by_table,
        Some(right) => weighed(right, by_table),
    };
    let more = (all.estimate - by_table.estimate) / (table.counts.len() / 2).max(1) as f64;
    let fitted = table.of_rows(rows).counts.into_iter().enumerate();
    let moved = fitted.map(|(place, count)| match table.is_right(place) {
        true => count + more,
        false => count - more,
    });
    let table = NoisyTable {
        counts: moved.collect(),
        deviation: table.deviation,
    };
    Some((all, Some(table)))
}

fn weighed(one: RightRows, other: RightRows) -> RightRows {
    let (a, b) = (one.deviation.powi(2), other.deviation.powi(2));
    let estimate = match a + b {
        0.0 => one.estimate,
        sum => (one.estimate * b + other.estimate * a) / sum,
    };
    RightRows {
        estimate,
        deviation: both(one.deviation, other.deviation),
        rows: one.rows,
    }
}

impl RightRows {
    /// The share of right predictions, between 0 and 1; `None` without rows.
    pub fn accuracy(&self) -> Option<f64> {
        let rows = self.rows as f64;
        (self.rows > 0).then(|| (self.estimate / rows).clamp(0.0, 1.0))
    }

    /// Bounds that hold the model's accuracy on new rows in at least 95 % of all jobs; `None` without
    /// rows. The lower bound is the accuracy with which so many right predictions or more are found
    /// in 2.5 % of all jobs, the upper one likewise: Clopper and Pearson's interval, for a binomial
    /// number with normal noise. The number is continuous, so that without the next sentence 95 % would
    /// be exact. More right predictions than rows count as all rows where the lower bound is sought,
    /// and fewer than none as none for the upper one, so that no interval is empty.
    pub fn interval(&self) -> Option<[f64; 2]> {
        Some([
            self.at_least(OUTSIDE)?,
            1.0 - self.wrong().at_least(OUTSIDE)?,
        ])
    }

    /// Half of the interval's width.
    pub fn half_width(&self) -> Option<f64> {
        self.interval().map(|[low, high]| (high - low) / 2.0)
    }

    /// The wrong predictions.
    fn wrong(&self) -> Self {
        Self {
            estimate: self.rows as f64 - self.estimate,
            ..*self
        }
    }

    /// The accuracy that is exceeded with all but this probability.
    fn at_least(&self, outside: f64) -> Option<f64> {
        if self.rows == 0 {
            return None;
        }
        Some(Found::new(self).share_with(outside))
    }
}

/// What the accuracy of several models, each of which tells one class from the rest, says about the
/// class with the highest score.
///
/// If every model is right about a row, then so is the highest score. So the rows on which the
/// highest score is wrong are no more than the wrong predictions of all models together.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Overall {
    /// The highest score is right for at least this share of the held-out rows, as estimated.
    pub at_least: f64,
    /// With 95 % confidence it is right for at least this share of new rows.
    pub confident: f64,
}

impl Overall {
    /// Of all models; `None` without any.
    ///
    /// A row's wrong predictions, divided by the number of models, lie between 0 and 1. No such
    /// numbers vary more than those that are 0 or 1 (all models wrong at once), so the binomial
    /// interval of their mean is wide enough.
    pub fn of(models: &[RightRows]) -> Option<Self> {
        let count = models.len() as f64;
        let rows = models.first()?.rows;
        let squares = models.iter().map(|model| model.deviation.powi(2));
        let mean = RightRows {
            estimate: models.iter().map(|model| model.estimate).sum::<f64>() / count,
            deviation: squares.sum::<f64>().sqrt() / count,
            rows,
        };
        let wrong = |right: f64| (1.0 - count * (1.0 - right)).max(0.0);
        Some(Self {
            at_least: wrong(mean.accuracy()?),
            confident: wrong(mean.at_least(2.0 * OUTSIDE)?),
        })
    }
}

/// A noisy number that was found, and how likely it is.
struct Found {
    rows: u64,
    /// The first number of rows with which it is not impossible.
    first: u64,
    /// The probability of finding so much or more with so many rows, from the first on; beyond these it is
    /// certain.
    chances: Vec<f64>,
    logarithms: f64,
}

impl Found {
    fn new(right: &RightRows) -> Self {
        let rows = right.rows;
        let found = right.estimate.min(rows as f64);
        let reach = FAR * right.deviation;
        let first = (found - reach).ceil().clamp(0.0, rows as f64) as u64;
        let last = (found + reach).floor().clamp(0.0, rows as f64) as u64;
        let chance = |count: u64| match right.deviation > 0.0 {
            true => tail((found - count as f64) / right.deviation),
            false => f64::from(u8::from(count as f64 >= found)),
        };
        Self {
            rows,
            first,
            chances: (first..=last).map(chance).collect(),
            logarithms: ln_factorial(rows),
        }
    }

    /// The probability of it with so many rows that are right.
    fn with(&self, count: u64) -> f64 {
        match count.checked_sub(self.first) {
            None => 0.0,
            Some(place) => self.chances.get(place as usize).copied().unwrap_or(1.0),
        }
    }

    /// The probability of finding so much or more if a row is right with probability `share`, between 0 and 1.
    /// The mean is among the likeliest numbers, and the others are rarer the further from it they are.
    fn or_more(&self, share: f64) -> f64 {
        let mean = (self.rows as f64 * share) as u64;
        let likely = self.probability(mean, share);
        let odds = share / (1.0 - share);
        let mut sum = likely * self.with(mean);
        let mut here = likely;
        for count in mean + 1..=self.rows {
            here *= odds * (self.rows - count + 1) as f64 / count as f64;
            if here < NEGLIGIBLE {
                break;
            }
            sum += here * self.with(count);
        }
        here = likely;
        for count in (0..mean).rev() {
            here *= (count + 1) as f64 / (odds * (self.rows - count) as f64);
            if here < NEGLIGIBLE {
                break;
            }
            sum += here * self.with(count);
        }
        sum
    }

    /// The binomial probability of one number.
    fn probability(&self, count: u64, share: f64) -> f64 {
        let other = self.rows - count;
        let ways = self.logarithms - ln_factorial(count) - ln_factorial(other);
        (ways + count as f64 * share.ln() + other as f64 * (-share).ln_1p()).exp()
    }

    /// The largest share with which so much or more is found with at most this probability, which grows
    /// with the share; 0 if it is larger with every share. Never above the exact one.
    fn share_with(&self, wanted: f64) -> f64 {
        let (mut low, mut high) = (0.0, 1.0);
        for _ in 0..HALVINGS {
            let middle = 0.5 * (low + high);
            *(if self.or_more(middle) <= wanted {
                &mut low
            } else {
                &mut high
            }) = middle;
        }
        low
    }
}

/// ln n!, by Stirling's series from 32 on, to fifteen digits.
fn ln_factorial(n: u64) -> f64 {
    if n < 32 {
        return (2..=n).map(|k| (k as f64).ln()).sum();
    }
    let x = n as f64;
    let square = x * x;
    let series = (1.0 / 12.0 - (1.0 / 360.0 - 1.0 / (1260.0 * square)) / square) / x;
    (x + 0.5) * x.ln() - x + 0.5 * std::f64::consts::TAU.ln() + series
}

#[cfg(test)]
mod tests;
