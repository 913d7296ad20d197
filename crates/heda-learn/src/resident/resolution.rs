//! Steps 1 to 3: the public numbers of a job, and coefficients on their grid.

use crate::fixed::{Domain, Precision};
use serde::{Deserialize, Serialize};

/// Bits of a digit of a weight: the data user chooses one of 32 leaves.
pub(super) const DIGIT_BITS: u32 = 5;

/// How finely values, weights, scores and derivatives are cut. Public, fixed before the job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "Unchecked")]
pub struct Resolution {
    value_bits: u32,
    digits: u32,
    index_bits: u32,
    code_bits: u32,
    bound_bits: u32,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Unchecked {
    value_bits: u32,
    digits: u32,
    index_bits: u32,
    code_bits: u32,
    bound_bits: u32,
}

/// A number outside what the engine is built for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{what} is {got}; choose {allowed}")]
pub struct ResolutionError {
    /// Which number.
    pub what: &'static str,
    /// What was asked for.
    pub got: u32,
    /// What is possible.
    pub allowed: &'static str,
}

impl TryFrom<Unchecked> for Resolution {
    type Error = ResolutionError;

    fn try_from(raw: Unchecked) -> Result<Self, ResolutionError> {
        Self::new(
            raw.value_bits,
            raw.digits,
            raw.index_bits,
            raw.code_bits,
            raw.bound_bits,
        )
    }
}

impl Resolution {
    /// For private training, where noise is larger than what a finer cut would gain: values to
    /// 2^−10, two digits a weight, tables of 64, one bit a derivative, scores within ±16.
    pub const PRIVATE: Self = Self {
        value_bits: 10,
        digits: 2,
        index_bits: 6,
        code_bits: 1,
        bound_bits: 4,
    };

    /// Values on a grid of 2^−`value_bits`, weights of `digits` digits of five bits, table indices
    /// of `index_bits`, derivatives of `code_bits`, and scores within ±2^`bound_bits`.
    pub fn new(
        value_bits: u32,
        digits: u32,
        index_bits: u32,
        code_bits: u32,
        bound_bits: u32,
    ) -> Result<Self, ResolutionError> {
        let rules = [
            ("value_bits", value_bits, 7..=10, "7 to 10"),
            ("digits", digits, 1..=4, "1 to 4"),
            ("index_bits", index_bits, 4..=8, "4 to 8"),
            ("code_bits", code_bits, 1..=12, "1 to 12"),
            ("bound_bits", bound_bits, 1..=6, "1 to 6"),
        ];
        for (what, got, range, allowed) in rules {
            if !range.contains(&got) {
                return Err(ResolutionError { what, got, allowed });
            }
        }
        Ok(Self {
            value_bits,
            digits,
            index_bits,
            code_bits,
            bound_bits,
        })
    }

    /// f_x: fraction bits of a value.
    pub fn value_bits(self) -> u32 {
        self.value_bits
    }

    /// Digits of a weight.
    pub fn digits(self) -> u32 {
        self.digits
    }

    /// k: bits of a table index.
    pub fn index_bits(self) -> u32 {
        self.index_bits
    }

    /// b: bits of a derivative.
    pub fn code_bits(self) -> u32 {
        self.code_bits
    }

    /// Z: no score is larger.
    pub fn bound(self) -> f64 {
        f64::from(1u32 << self.bound_bits)
    }

    /// The same with another number of bits for indices and codes, as evaluations need them.
    pub fn reading(self, index_bits: u32, code_bits: u32) -> Self {
        Self {
            index_bits,
            code_bits,
            ..self
        }
    }

    /// w: bits of a score. The range ±Z fills them.
    pub fn score_bits(self) -> u32 {
        DIGIT_BITS * self.digits + self.value_bits
    }

    /// The real score that the integer 1 stands for.
    pub fn score_unit(self) -> f64 {
        2.0 * self.bound() / 2f64.powi(self.score_bits() as i32)
    }

    /// The distance of two weights of the grid.
    pub fn weight_unit(self) -> f64 {
        self.score_unit() * 2f64.powi(self.value_bits as i32)
    }

    /// The distance of two nodes of the table.
    pub fn node_step(self) -> f64 {
        2.0 * self.bound() / 2f64.powi(self.index_bits as i32)
    }

    /// The grid of values, for [`Domain`].
    pub fn grid(self) -> Precision {
        Precision::new(self.value_bits, 8).unwrap_or_default()
    }

    /// What is added to a weight so that its digits are not negative: sixteen in each.
    pub fn digit_offset(self) -> i64 {
        (0..self.digits).map(|g| 16i64 << (DIGIT_BITS * g)).sum()
    }

    /// Reduces a score modulo 2^w.
    pub fn reduce(self, score: u32) -> u32 {
        score & (u32::MAX >> (32 - self.score_bits()))
    }

    /// Step 3: the top k bits of a share.
    pub fn top_bits(self, share: u32) -> u32 {
        self.reduce(share) >> (self.score_bits() - self.index_bits)
    }

    /// The largest |z_int| that rounding cannot carry to the other end: one node less than Z.
    pub fn score_limit(self) -> i64 {
        (1i64 << (self.score_bits() - 1)) - (1i64 << (self.score_bits() - self.index_bits))
    }
}

/// Coefficients on the grid. The data user's secret, like the coefficients.
#[derive(Clone, PartialEq)]
pub struct Weights {
    /// What every score begins with, in units of a score.
    pub constant: i64,
    /// One weight a column.
    pub columns: Vec<i64>,
    /// By what β was multiplied to keep scores within ±Z: 1 if it fitted.
    pub shrunk: f64,
}

impl std::fmt::Debug for Weights {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Weights({} columns)", self.columns.len())
    }
}

/// Why coefficients cannot be put on the grid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WeightError {
    /// Not one coefficient a column and a bias.
    #[error("{found} coefficients for a bias and {width} columns")]
    Dimension {
        /// Columns of the domain.
        width: usize,
        /// Coefficients given.
        found: usize,
    },
}

impl Weights {
    /// Step 1. A β that is not finite, or beyond the bound, is shrunk and never refused: whether
    /// it fits follows from decoded values, and nobody may see a reaction to those.
    pub fn new(beta: &[f64], domain: &Domain, resolution: Resolution) -> Result<Self, WeightError> {
        if beta.len() != domain.width() + 1 {
            let (width, found) = (domain.width(), beta.len());
            return Err(WeightError::Dimension { width, found });
        }
        let finite = |b: &f64| if b.is_finite() { *b } else { 0.0 };
        let beta: Vec<f64> = beta.iter().map(finite).collect();
        let mut shrunk = 1.0f64;
        for _ in 0..4 {
            let weights = Self::rounded(&beta, shrunk, resolution);
            let excess = weights.excess(domain, resolution);
            if excess <= 1.0 {
                return Ok(weights);
            }
            shrunk /= excess * (1.0 + 1e-6);
        }
        Ok(Self::rounded(&beta, 0.0, resolution))
    }

    fn rounded(beta: &[f64], shrunk: f64, resolution: Resolution) -> Self {
        let whole = |value: f64, unit: f64| (value * shrunk / unit).round() as i64;
        let column = |b: &f64| whole(*b, resolution.weight_unit());
        Self {
            constant: whole(beta[0], resolution.score_unit()),
            columns: beta[1..].iter().map(column).collect(),
            shrunk,
        }
    }

    /// How many times too large they are, by scores and by single weights; at most 1 if they fit.
    fn excess(&self, domain: &Domain, resolution: Resolution) -> f64 {
        let wide: Vec<i128> = self.columns.iter().map(|&w| i128::from(w)).collect();
        let (low, high) = domain.integer_range(&wide, resolution.grid());
        let constant = i128::from(self.constant);
        let reach = (low + constant).abs().max((high + constant).abs()) as f64;
        let largest = self.columns.iter().map(|w| w.unsigned_abs()).max();
        let digits_end = (1i64 << (DIGIT_BITS * resolution.digits())) - 1;
        let most = digits_end - resolution.digit_offset();
        let by_score = reach / resolution.score_limit() as f64;
        by_score.max(largest.unwrap_or(0) as f64 / most as f64)
    }

    /// The digits of a column's weight, lowest first, each from 0 to 31.
    pub fn digits(&self, column: usize, resolution: Resolution) -> impl Iterator<Item = u8> {
        let lifted = self.columns[column] + resolution.digit_offset();
        (0..resolution.digits()).map(move |g| (lifted >> (DIGIT_BITS * g)) as u8 & 31)
    }

    /// Step 2 in clear: z_int of a row on the grid, modulo 2^w.
    pub fn score(&self, row: &[i32], resolution: Resolution) -> u32 {
        let terms = self.columns.iter().zip(row);
        let sum = terms.fold(self.constant, |sum, (&w, &x)| {
            sum.wrapping_add(w.wrapping_mul(i64::from(x)))
        });
        resolution.reduce(sum as u32)
    }

    /// The coefficients that are really used, bias first.
    pub fn coefficients(&self, resolution: Resolution) -> Vec<f64> {
        let bias = self.constant as f64 * resolution.score_unit();
        let columns = self.columns.iter();
        std::iter::once(bias)
            .chain(columns.map(|&w| w as f64 * resolution.weight_unit()))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixed::Span;

    fn domain() -> Domain {
        let plain = Span::Between { low: 0, high: 1024 };
        Domain::new(vec![(2, plain), (3, Span::OneHot)]).unwrap()
    }

    fn resolution(digits: u32) -> Resolution {
        Resolution::new(10, digits, 6, 1, 4).unwrap()
    }

    #[test]
    fn digits_add_up_to_the_weight_and_weights_stay_near_beta() {
        for digits in 2..=4 {
            let resolution = resolution(digits);
            let beta = [0.7, -3.2, 5.0, 0.031, -7.9, 1.0];
            let weights = Weights::new(&beta, &domain(), resolution).unwrap();
            assert_eq!(weights.shrunk, 1.0);
            for (column, &weight) in weights.columns.iter().enumerate() {
                let places = weights.digits(column, resolution).enumerate();
                let sum: i64 = places
                    .map(|(g, digit)| (i64::from(digit) - 16) << (5 * g))
                    .sum();
                assert_eq!(sum, weight);
            }
            for (used, wanted) in weights.coefficients(resolution).iter().zip(beta) {
                assert!((used - wanted).abs() <= resolution.weight_unit() / 2.0);
            }
        }
    }

    #[test]
    fn scores_never_reach_the_last_node_whatever_beta_is() {
        let resolution = resolution(2);
        let betas: [[f64; 6]; 5] = [
            [0.0; 6],
            [1e9, -1e9, 1e9, 1e9, -1e9, 0.0],
            [15.0, 15.0, 15.0, 15.0, 15.0, 15.0],
            [f64::NAN, f64::INFINITY, -1.0, 1e300, f64::NEG_INFINITY, 2.0],
            [-40.0, 1e-9, 0.0, 0.0, 0.0, 0.0],
        ];
        for beta in betas {
            let weights = Weights::new(&beta, &domain(), resolution).unwrap();
            assert!(weights.excess(&domain(), resolution) <= 1.0, "{beta:?}");
        }
        let large = Weights::new(&betas[2], &domain(), resolution).unwrap();
        assert!(large.shrunk > 0.2 && large.shrunk < 0.4, "{}", large.shrunk);
    }

    #[test]
    fn other_numbers_are_refused_from_files_too() {
        assert!(Resolution::new(10, 5, 6, 1, 4).is_err());
        assert!(Resolution::new(10, 2, 9, 1, 4).is_err());
        let text = serde_json::to_string(&resolution(3)).unwrap();
        assert_eq!(
            serde_json::from_str::<Resolution>(&text).unwrap(),
            resolution(3)
        );
        let bad = text.replace("\"code_bits\":1", "\"code_bits\":0");
        let refused = serde_json::from_str::<Resolution>(&bad).unwrap_err();
        assert!(refused.to_string().contains("code_bits is 0"), "{refused}");
    }
}
