//! The public numbers of a job: how finely everything is cut.

use super::GridError;
use crate::target;
use serde::{Deserialize, Serialize};

/// Weights have a multiple of so many bits.
const DIGIT_BITS: u32 = 5;

/// More columns than these make scores that need a larger bound.
const MANY_COLUMNS: usize = 40;

/// A batch belongs to the first of these that its number of rows, below 2^this, does not exceed, or comes after the
/// last. Few rows are cut more finely than usual: there rounding does not average out, and bytes are few. Many are
/// cut more coarsely.
const ROW_BITS: [u32; CUTS - 1] = [10, 13, 14, 18];
const CUTS: usize = 5;
/// Bits of a table index, from few rows to many.
const INDEX_BITS: [u32; CUTS] = [10, 8, 7, 7, 7];

/// How finely values, weights, scores and derivatives are cut. Public, fixed before the job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "RawResolution")]
pub struct Resolution {
    value_bits: u32,
    digits: u32,
    index_bits: u32,
    code_bits: u32,
    bound_bits: u32,
    /// What `index_bits` and `code_bits` become with the rows of a batch; themselves if `None`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    by_rows: Option<ByRows>,
}

/// What a job learns that is cut by the number of its rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum ByRows {
    Classes,
    Number,
}

impl ByRows {
    /// Bits of a derivative, from few rows to many. A number's derivative lies on both sides of
    /// nought and reaches further.
    const fn code_bits(self) -> [u32; CUTS] {
        match self {
            Self::Classes => [8, 6, 3, 2, 1],
            Self::Number => [10, 8, 7, 7, 7],
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawResolution {
    value_bits: u32,
    digits: u32,
    index_bits: u32,
    code_bits: u32,
    bound_bits: u32,
    #[serde(default)]
    by_rows: Option<ByRows>,
}

impl TryFrom<RawResolution> for Resolution {
    type Error = GridError;

    fn try_from(raw: RawResolution) -> Result<Self, GridError> {
        let fixed = Self::new(
            raw.value_bits,
            raw.digits,
            raw.index_bits,
            raw.code_bits,
            raw.bound_bits,
        )?;
        let by_rows = raw.by_rows;
        Ok(Self { by_rows, ..fixed })
    }
}

impl Default for Resolution {
    /// For jobs without noise, few columns and neither few nor many rows.
    fn default() -> Self {
        Self::for_columns(0).whatever_rows()
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
        by_rows: None,
    };

    /// For jobs without noise on so many columns: weights of 15 bits, 256 nodes, derivatives of six
    /// bits, scores within ±64 or, with many columns, ±128; nodes and derivatives follow from the
    /// number of rows. A model whose scores could be larger is
    /// shrunk ([`Weights`](super::Weights)), a larger bound makes the nodes coarser.
    /// `docs/resident.md` says what each costs, `docs/defaults.md` what it is worth.
    pub const fn for_columns(columns: usize) -> Self {
        Self {
            value_bits: 10,
            digits: 3,
            index_bits: 8,
            code_bits: 6,
            bound_bits: if columns <= MANY_COLUMNS { 6 } else { 7 },
            by_rows: Some(ByRows::Classes),
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
            by_rows: Some(ByRows::Number),
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
    ) -> Result<Self, GridError> {
        let rules = [
            ("value_bits", value_bits, 7..=10, "7 to 10"),
            ("digits", digits, 1..=4, "1 to 4"),
            ("index_bits", index_bits, 4..=10, "4 to 10"),
            ("code_bits", code_bits, 1..=16, "1 to 16"),
            ("bound_bits", bound_bits, 1..=8, "1 to 8"),
        ];
        for (what, got, range, allowed) in rules {
            if !range.contains(&got) {
                return Err(GridError::Resolution { what, got, allowed });
            }
        }
        Ok(Self {
            value_bits,
            digits,
            index_bits,
            code_bits,
            bound_bits,
            by_rows: None,
        })
    }

    /// The same for any number of rows.
    pub fn whatever_rows(self) -> Self {
        Self {
            by_rows: None,
            ..self
        }
    }

    /// What it is for batches of so many rows.
    pub fn of_count(self, rows: usize) -> Self {
        self.of_rows(usize::BITS - rows.leading_zeros())
    }

    /// What it is for batches of fewer than 2^`row_bits` rows of all providers, a number that all
    /// parties know. Rounding moves a sum by the root of the number of rows, and every bit costs
    /// for each row; `docs/resident.md` has the figures.
    pub fn of_rows(self, row_bits: u32) -> Self {
        let Some(by_rows) = self.by_rows else {
            return self;
        };
        let fits = |most: &u32| row_bits <= *most;
        let which = ROW_BITS.iter().position(fits).unwrap_or(CUTS - 1);
        Self {
            index_bits: INDEX_BITS[which],
            code_bits: by_rows.code_bits()[which],
            ..self.whatever_rows()
        }
    }

    /// Whether it is cut by the number of rows.
    pub fn is_by_rows(self) -> bool {
        self.by_rows.is_some()
    }

    /// f_x: fraction bits of a value.
    pub fn value_bits(self) -> u32 {
        self.value_bits
    }

    /// Bits of a weight: five for each digit.
    pub fn weight_bits(self) -> u32 {
        DIGIT_BITS * self.digits
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
        self.weight_bits() + self.value_bits
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
        self.node_step() / 8.0 + 0.5 / (2f64.powi(self.code_bits as i32) - 1.0)
    }

    /// The same for a numeric label in deviations: where between two nodes the score lies, and half
    /// a code.
    pub fn rounding_of_numbers(self) -> f64 {
        let code = target::REACH / 2f64.powi(self.code_bits as i32 - 1);
        self.node_step() / 12f64.sqrt() + code / 2.0
    }

    /// What is added to a weight so that it is not negative: half of what its bits hold.
    pub fn weight_offset(self) -> i64 {
        1i64 << (self.weight_bits() - 1)
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
    fn fewer_rows_are_cut_more_finely() {
        let usual = Resolution::for_columns(9);
        let cut = |row_bits: u32| {
            let cut = usual.of_rows(row_bits);
            assert_eq!(cut.of_rows(30), cut);
            (cut.index_bits(), cut.code_bits())
        };
        let found = [9, 10, 11, 13, 14, 15, 18, 19, 30].map(cut);
        let expected = [(10, 8), (10, 8), (8, 6), (8, 6), (7, 3), (7, 2), (7, 2)];
        assert_eq!(found[..7], expected);
        assert_eq!(found[7..], [(7, 1); 2]);
        assert_eq!(usual.of_rows(13), Resolution::default());
        let fixed = resolution(2);
        assert_eq!(fixed.of_rows(5), fixed);
        for kept in [usual, Resolution::for_numbers(50)] {
            let text = serde_json::to_string(&kept).unwrap();
            assert_eq!(serde_json::from_str::<Resolution>(&text).unwrap(), kept);
        }
    }

    #[test]
    fn other_numbers_are_refused_from_files_too() {
        assert!(Resolution::new(10, 5, 6, 1, 4).is_err());
        assert!(Resolution::new(10, 2, 11, 1, 4).is_err());
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
