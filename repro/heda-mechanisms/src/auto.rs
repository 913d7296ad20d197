//! Algorithm 1 of the paper: an ε for every attribute, read from the data.
//!
//! ε_j = Δf/Δv · ln((m−1)ρ/(1−ρ)), the upper bound of Lee and Clifton (*How much is enough?
//! Choosing ε for differential privacy*, 2011), where ρ is the share of the most frequent value,
//! Δf = max(A_j) and Δv = max(A_j) − min(A_j).
//!
//! It is advice and a way to reproduce the paper's figures, no more: ε itself then depends on the
//! data, and what protects best by this rule is what protects worst in practice (a nearly
//! constant column gets the largest ε). Rules for what the paper leaves open:
//! - all values distinct: ρ = 1/m gives ε = 0, infinite noise. An error.
//! - a constant column: ρ = 1, ε infinite. An error; such a column says nothing.
//! - largest value not positive: Δf ≤ 0 gives ε ≤ 0. An error; shift or scale the column.
//! - codes: values are taken as they are. Codes from 1 to K give K/(K−1) times the ε of codes from
//!   0 to K−1, and units that do not begin at 0 do the same. Scale to [0, 1] for Δf/Δv = 1.
//! - the result is rounded down to billionths.

use crate::points::Points;
use heda_dp::epsilon::Epsilon;
use heda_dp::error::ParameterError;

/// The automatic ε of every column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Automatic {
    columns: Vec<Epsilon>,
    composed: Epsilon,
}

impl Automatic {
    /// Column by column.
    pub fn columns(&self) -> &[Epsilon] {
        &self.columns
    }

    /// What the paper claims for all columns together: the largest. It would hold if the columns
    /// belonged to different people.
    pub fn claimed(&self) -> Epsilon {
        self.columns
            .iter()
            .copied()
            .fold(self.columns[0], Epsilon::max)
    }

    /// What really holds for a row, whose columns belong to one person: the sum.
    pub fn composed(&self) -> Epsilon {
        self.composed
    }
}

/// Why a column has no automatic ε.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum AutoError {
    /// Fewer than two rows.
    #[error("the automatic epsilon needs at least two rows")]
    TooFewRows,
    /// ρ = 1/m.
    #[error(
        "column {column}: all values are distinct, so the automatic epsilon is zero; \
         give an epsilon or round the column"
    )]
    AllDistinct {
        /// Column, from 0.
        column: usize,
    },
    /// ρ = 1.
    #[error("column {column}: all values are equal, so the automatic epsilon is infinite; drop it")]
    Constant {
        /// Column, from 0.
        column: usize,
    },
    /// Δf ≤ 0.
    #[error(
        "column {column}: the largest value is not positive, so the automatic epsilon is not \
         either; scale the column to [0, 1]"
    )]
    NotPositive {
        /// Column, from 0.
        column: usize,
    },
    /// A result that is no ε.
    #[error("column {column}: {error}")]
    Epsilon {
        /// Column, from 0.
        column: usize,
        /// What is wrong with the number.
        error: ParameterError,
    },
    /// The columns together.
    #[error("all columns together: {0}")]
    Sum(ParameterError),
}

/// Runs Algorithm 1.
pub fn automatic_epsilon(points: &Points) -> Result<Automatic, AutoError> {
    if points.rows() < 2 {
        return Err(AutoError::TooFewRows);
    }
    let columns = 0..points.width();
    let columns: Vec<Epsilon> = columns
        .map(|column| column_epsilon(points, column))
        .collect::<Result<_, _>>()?;
    let composed = Epsilon::sum(columns.iter().copied()).map_err(AutoError::Sum)?;
    Ok(Automatic { columns, composed })
}

fn column_epsilon(points: &Points, column: usize) -> Result<Epsilon, AutoError> {
    let mut sorted: Vec<f64> = points.column(column).collect();
    sorted.sort_unstable_by(f64::total_cmp);
    let (least, largest) = (sorted[0], sorted[sorted.len() - 1]);
    let runs = sorted.chunk_by(|a, b| a == b).map(<[f64]>::len);
    let (count, rows) = (runs.max().unwrap_or(0), sorted.len());
    if count == rows {
        return Err(AutoError::Constant { column });
    }
    if count == 1 {
        return Err(AutoError::AllDistinct { column });
    }
    if largest <= 0.0 {
        return Err(AutoError::NotPositive { column });
    }
    // (m−1)ρ/(1−ρ) with ρ = count/m.
    let odds = (rows - 1) as f64 * count as f64 / (rows - count) as f64;
    let epsilon = largest / (largest - least) * odds.ln();
    Epsilon::at_most(epsilon).map_err(|error| AutoError::Epsilon { column, error })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(values: &[f64]) -> Result<Automatic, AutoError> {
        automatic_epsilon(&Points::new(1, values.to_vec()).unwrap())
    }

    #[test]
    fn the_formula_by_hand() {
        // Three of four values are 1: ρ = 3/4, (m−1)ρ/(1−ρ) = 9, Δf/Δv = 1.
        let epsilon = column(&[1.0, 0.0, 1.0, 1.0]).unwrap().columns()[0];
        assert_eq!(epsilon, Epsilon::at_most(9f64.ln()).unwrap());
    }

    #[test]
    fn codes_from_one_raise_epsilon_by_k_over_k_minus_one() {
        let zero = column(&[0.0, 1.0, 2.0, 2.0]).unwrap().claimed().to_f64();
        let one = column(&[1.0, 2.0, 3.0, 3.0]).unwrap().claimed().to_f64();
        assert!((one / zero - 1.5).abs() < 1e-8);
    }

    #[test]
    fn every_edge_case_has_its_own_error() {
        assert_eq!(column(&[1.0]), Err(AutoError::TooFewRows));
        assert_eq!(
            column(&[1.0, 2.0, 3.0]),
            Err(AutoError::AllDistinct { column: 0 })
        );
        assert_eq!(
            column(&[2.0, 2.0, 2.0]),
            Err(AutoError::Constant { column: 0 })
        );
        assert_eq!(
            column(&[-1.0, -1.0, 0.0]),
            Err(AutoError::NotPositive { column: 0 })
        );
        let narrow = column(&[1e9, 1e9, 1e9 + 1.0]);
        let error = ParameterError::EpsilonTooLarge;
        assert_eq!(narrow, Err(AutoError::Epsilon { column: 0, error }));
    }

    #[test]
    fn both_sums_are_reported() {
        let points = Points::new(2, vec![0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 1.0, 1.0]).unwrap();
        let automatic = automatic_epsilon(&points).unwrap();
        let (a, b) = (automatic.columns()[0], automatic.columns()[1]);
        assert_eq!(automatic.claimed(), a.max(b));
        assert_eq!(automatic.composed(), a.checked_add(b).unwrap());
    }
}
