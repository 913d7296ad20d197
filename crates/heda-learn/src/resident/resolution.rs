//! The public numbers of a job: how finely everything is cut.

use crate::target;
use serde::{Deserialize, Serialize};

/// Bits of a digit of a weight: the data user chooses one of 32 leaves.
pub(super) const DIGIT_BITS: u32 = 5;

/// More columns than these make scores that need a larger bound.
const MANY_COLUMNS: usize = 40;

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

impl Default for Resolution {
    /// For jobs without noise and few columns.
    fn default() -> Self {
        Self::for_columns(0)
    }
}

impl Resolution {
    /// For private training, where noise is larger than what a finer cut would gain: values to
    /// 2^−10, two digits a weight, tables of 64, one bit a derivative, scores within ±32.
    pub const PRIVATE: Self = Self {
        value_bits: 10,
        digits: 2,
        index_bits: 6,
        code_bits: 1,
        bound_bits: 5,
    };

    /// For jobs without noise on so many columns: weights of 15 bits, 256 nodes, derivatives of six
    /// bits, scores within ±64 or, with many columns, ±128. A model whose scores could be larger is
    /// shrunk ([`Weights`](super::Weights)), a larger bound makes the nodes coarser.
    /// `docs/resident.md` says what each costs, `docs/defaults.md` what it is worth.
    pub const fn for_columns(columns: usize) -> Self {
        Self {
            value_bits: 10,
            digits: 3,
            index_bits: 8,
            code_bits: 6,
            bound_bits: if columns <= MANY_COLUMNS { 6 } else { 7 },
        }
    }

    /// For least squares on a numeric label with so many columns: predictions within ±16
    /// deviations, with many columns ±32, and derivatives of eight bits, because they lie on both
    /// sides of nought.
    pub const fn for_numbers(columns: usize) -> Self {
        let usual = Self::for_columns(columns);
        Self {
            code_bits: 8,
            bound_bits: usual.bound_bits - 2,
            ..usual
        }
    }

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
            ("code_bits", code_bits, 1..=16, "1 to 16"),
            ("bound_bits", bound_bits, 1..=8, "1 to 8"),
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

    /// Z as a power of two.
    pub fn bound_bits(self) -> u32 {
        self.bound_bits
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

    /// The standard deviation of one row's derivative by rounding, roughly and rather too large:
    /// half a step between two nodes where the logistic curve is steepest, and half a code.
    pub fn rounding(self) -> f64 {
        self.node_step() / 8.0 + 0.5 / 2f64.powi(self.code_bits as i32)
    }

    /// The same for a numeric label in deviations: where between two nodes the score lies, and half
    /// a code.
    pub fn rounding_of_numbers(self) -> f64 {
        let code = target::REACH / 2f64.powi(self.code_bits as i32 - 1);
        self.node_step() / 12f64.sqrt() + code / 2.0
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
        self.first_bits(share, self.index_bits)
    }

    /// The top bits of a share, so many.
    pub fn first_bits(self, share: u32, count: u32) -> u32 {
        self.reduce(share) >> (self.score_bits() - count)
    }

    /// The largest |z_int| that rounding cannot carry to the other end: one node less than Z.
    pub fn score_limit(self) -> i64 {
        (1i64 << (self.score_bits() - 1)) - (1i64 << (self.score_bits() - self.index_bits))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolution(digits: u32) -> Resolution {
        Resolution::new(10, digits, 6, 1, 4).unwrap()
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
