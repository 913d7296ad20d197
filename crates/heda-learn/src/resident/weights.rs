//! Step 1: coefficients on their grid, such that no score leaves ±Z.

use super::GridError;
use super::encoding::Encoding;
use super::resolution::Resolution;

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

/// By how much more than needed β is shrunk, try by try. What was shrunk to fit exactly may be rounded
/// beyond the bound again, and by more the more columns there are; the last tries leave room for that.
const SPARE: [f64; 5] = [1e-6, 1e-3, 1e-2, 0.1, 1.0];

impl Weights {
    /// Step 1. A β that is not finite, or beyond the bound, is shrunk and never refused: whether
    /// it fits follows from decoded values, and nobody may see a reaction to those.
    pub fn new(
        beta: &[f64],
        encoding: &Encoding,
        resolution: Resolution,
    ) -> Result<Self, GridError> {
        if beta.len() != encoding.width() + 1 {
            let (width, found) = (encoding.width(), beta.len());
            return Err(GridError::Coefficients { width, found });
        }
        let finite = |b: &f64| if b.is_finite() { *b } else { 0.0 };
        let beta: Vec<f64> = beta.iter().map(finite).collect();
        let mut shrunk = 1.0f64;
        for spare in SPARE {
            let weights = Self::rounded(&beta, shrunk, resolution);
            let excess = weights.excess(encoding, resolution);
            if excess <= 1.0 {
                return Ok(weights);
            }
            shrunk /= excess * (1.0 + spare);
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
    fn excess(&self, encoding: &Encoding, resolution: Resolution) -> f64 {
        let (low, high) = encoding.range(&self.columns);
        let constant = i128::from(self.constant);
        let reach = (low + constant).abs().max((high + constant).abs()) as f64;
        let largest = self.columns.iter().map(|w| w.unsigned_abs()).max();
        let most = resolution.weight_offset() - 1;
        let by_score = reach / resolution.score_limit() as f64;
        by_score.max(largest.unwrap_or(0) as f64 / most as f64)
    }

    /// A column's weight, lifted by the offset so that it is not negative: its digits are bits of
    /// this.
    pub fn lifted(&self, column: usize, resolution: Resolution) -> u32 {
        (self.columns[column] + resolution.weight_offset()) as u32
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
    use super::super::encoding::Span;
    use super::*;

    fn encoding() -> Encoding {
        let plain = Span::Between { low: 0, high: 1024 };
        Encoding::new(10, [(2, plain), (3, Span::OneHot)]).unwrap()
    }

    fn resolution(digits: u32) -> Resolution {
        Resolution::new(10, digits, 6, 1, 4).unwrap()
    }

    #[test]
    fn lifted_weights_fit_their_bits_and_weights_stay_near_beta() {
        for digits in 2..=4 {
            let resolution = resolution(digits);
            let beta = [0.7, -3.2, 5.0, 0.031, -7.9, 1.0];
            let weights = Weights::new(&beta, &encoding(), resolution).unwrap();
            assert_eq!(weights.shrunk, 1.0);
            for (column, &weight) in weights.columns.iter().enumerate() {
                let lifted = weights.lifted(column, resolution);
                assert!(lifted < 1 << resolution.weight_bits());
                assert_eq!(i64::from(lifted) - resolution.weight_offset(), weight);
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
            let weights = Weights::new(&beta, &encoding(), resolution).unwrap();
            assert!(weights.excess(&encoding(), resolution) <= 1.0, "{beta:?}");
        }
        let large = Weights::new(&betas[2], &encoding(), resolution).unwrap();
        assert!(large.shrunk > 0.2 && large.shrunk < 0.4, "{}", large.shrunk);
    }

    /// Many columns, and coefficients that just do not fit: what rounding adds must not end in a model
    /// of nothing.
    #[test]
    fn what_is_too_large_is_shrunk_and_not_lost() {
        let plain = Span::Between { low: 0, high: 1024 };
        let blocks = (0..12).flat_map(|_| [(1, plain.clone()), (9, Span::OneHot)]);
        let encoding = Encoding::new(10, blocks).unwrap();
        let mut state = 1u64;
        let mut next = || {
            state = state
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            (state >> 33) as f64 / 2f64.powi(30) - 1.0
        };
        for trial in 0..500 {
            let size = 3.0 + f64::from(trial % 100);
            let beta: Vec<f64> = (0..=encoding.width()).map(|_| size * next()).collect();
            for digits in [2, 3] {
                let resolution = resolution(digits);
                let all = Weights::rounded(&beta, 1.0, resolution);
                let excess = all.excess(&encoding, resolution).max(1.0);
                let weights = Weights::new(&beta, &encoding, resolution).unwrap();
                let kept = weights.shrunk * excess;
                assert!(kept > 0.85, "{trial}: {kept} of what fits");
                assert!(weights.excess(&encoding, resolution) <= 1.0);
            }
        }
    }
}
