//! The default mechanism: exact noise on every value of every row.
//!
//! A number x on the grid 0..=Δ_j becomes x + discrete Laplace noise of rate ε_j/Δ_j, clipped to
//! the grid; clipping is post-processing and costs nothing. A category becomes a k-ary randomised
//! response at ε_j. Nothing is read from the data: Δ_j and k come from the schema.
//!
//! Guarantee: two data sets of equally many rows that differ in one row differ, in column j, in
//! one value by at most Δ_j; the release of column j is ε_j-differentially private, and the
//! columns together are Σ ε_j-differentially private. Rows may be linked to anything: every row is
//! protected by its own noise.

use crate::account::{Charge, Mechanism, Receipt, ReceiptMismatch};
use crate::column::{ColumnSpec, Domain, SpecError};
use crate::epsilon::Epsilon;
use crate::sample::{DiscreteLaplace, RandomisedResponse};
use rand_core::CryptoRng;

/// Columns that may be released once they are paid for.
#[derive(Debug)]
#[must_use = "prepared columns are released with a receipt"]
pub struct Prepared<'a> {
    domains: Vec<Domain>,
    values: &'a [Vec<u32>],
}

/// What left the provider, and what it cost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Released {
    columns: Vec<Vec<u32>>,
    charge: Charge,
}

impl Released {
    /// Noisy values, column by column, on the grids of the specification.
    pub fn columns(&self) -> &[Vec<u32>] {
        &self.columns
    }

    /// Gives the noisy columns away.
    pub fn into_columns(self) -> Vec<Vec<u32>> {
        self.columns
    }

    /// What was paid.
    pub fn charge(&self) -> &Charge {
        &self.charge
    }
}

/// What a release would look like. Nothing was paid for it, so it must not leave the provider: it is
/// made to see what the noise does, on rows that whoever estimates may read anyway.
#[derive(Debug, PartialEq, Eq)]
pub struct Preview {
    columns: Vec<Vec<u32>>,
}

impl Preview {
    /// Noisy values, column by column, on the grids of the specification.
    pub fn columns(&self) -> &[Vec<u32>] {
        &self.columns
    }
}

/// Why columns cannot be released.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PrepareError {
    /// Nothing to release.
    #[error("a release needs at least one column")]
    NoColumns,
    /// No rows.
    #[error("a release needs at least one row")]
    NoRows,
    /// Domains and columns of values are not equally many.
    #[error("{specified} columns are specified, but values are given for {given}")]
    ColumnCount {
        /// How many domains.
        specified: usize,
        /// How many columns of values.
        given: usize,
    },
    /// A column shorter or longer than the first.
    #[error("column {column} has {found} rows, the first one has {expected}")]
    RowCount {
        /// Which column, from 0.
        column: usize,
        /// Rows of the first column.
        expected: usize,
        /// Rows of this one.
        found: usize,
    },
    /// A domain that cannot be released.
    #[error("column {column}: {error}")]
    Spec {
        /// Which column, from 0.
        column: usize,
        /// What is wrong with it.
        error: SpecError,
    },
    /// A value outside its public domain. The value itself is not repeated here.
    #[error(
        "column {column}, row {row}: a value above {largest}, the largest of its public domain; \
         correct the data or the schema, nothing was released"
    )]
    Outside {
        /// Which column, from 0.
        column: usize,
        /// Which row, from 0.
        row: usize,
        /// The largest value allowed.
        largest: u32,
    },
}

/// Checks domains and values (column by column). Do this before spending: a charge is not refunded.
pub fn prepare<'a>(
    columns: &[ColumnSpec],
    values: &'a [Vec<u32>],
) -> Result<Prepared<'a>, PrepareError> {
    if columns.len() != values.len() {
        let (specified, given) = (columns.len(), values.len());
        return Err(PrepareError::ColumnCount { specified, given });
    }
    let expected = values.first().ok_or(PrepareError::NoColumns)?.len();
    if expected == 0 {
        return Err(PrepareError::NoRows);
    }
    let pairs = columns.iter().zip(values).enumerate();
    let domains = pairs.map(|(column, (spec, values))| {
        let found = values.len();
        if found != expected {
            return Err(PrepareError::RowCount {
                column,
                expected,
                found,
            });
        }
        let largest = spec.largest();
        match values.iter().position(|&value| value > largest) {
            Some(row) => Err(PrepareError::Outside {
                column,
                row,
                largest,
            }),
            None => spec
                .check()
                .map_err(|error| PrepareError::Spec { column, error }),
        }
    });
    Ok(Prepared {
        domains: domains.collect::<Result<_, _>>()?,
        values,
    })
}

impl Prepared<'_> {
    /// Adds the noise that the receipt pays for, column by column in its order.
    pub fn release<R: CryptoRng>(
        self,
        receipt: Receipt,
        rng: &mut R,
    ) -> Result<Released, ReceiptMismatch> {
        let charge = receipt.redeem(Mechanism::Laplace, self.domains.len())?;
        let columns = self.noisy_columns(&charge, rng);
        Ok(Released { columns, charge })
    }

    /// The noise that this price would buy, without paying it.
    pub fn preview<R: CryptoRng>(
        self,
        price: &Charge,
        rng: &mut R,
    ) -> Result<Preview, ReceiptMismatch> {
        price.is_for(Mechanism::Laplace, self.domains.len())?;
        let columns = self.noisy_columns(price, rng);
        Ok(Preview { columns })
    }

    fn noisy_columns<R: CryptoRng>(&self, charge: &Charge, rng: &mut R) -> Vec<Vec<u32>> {
        let paid = charge.columns().iter().map(|column| column.epsilon);
        let columns = self.domains.iter().zip(self.values).zip(paid);
        columns
            .map(|((&domain, values), epsilon)| noisy_column(domain, values, epsilon, rng))
            .collect()
    }
}

fn noisy_column<R: CryptoRng>(
    domain: Domain,
    values: &[u32],
    epsilon: Epsilon,
    rng: &mut R,
) -> Vec<u32> {
    match domain {
        Domain::Grid(steps) => {
            let noise = DiscreteLaplace::for_sensitivity(steps, epsilon);
            let clipped = |y: i128| y.clamp(0, i128::from(steps.get())) as u32;
            let values = values.iter();
            values
                .map(|&x| clipped(i128::from(x) + noise.sample(rng)))
                .collect()
        }
        Domain::Levels(count) => {
            let response = RandomisedResponse::new(count, epsilon);
            values
                .iter()
                .map(|&truth| response.sample(truth, rng))
                .collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::account::{Accountant, ColumnCharge, Spend};
    use chacha20::ChaCha20Rng;
    use rand_core::SeedableRng;

    fn receipt(epsilons: &[&str]) -> Receipt {
        let columns = epsilons.iter().enumerate().map(|(j, e)| ColumnCharge {
            name: format!("c{j}"),
            epsilon: e.parse().unwrap(),
        });
        let charge = Charge::new(Mechanism::Laplace, columns.collect()).unwrap();
        Accountant::new("1000".parse().unwrap())
            .spend(charge)
            .unwrap()
    }

    fn rng() -> ChaCha20Rng {
        ChaCha20Rng::from_seed([3; 32])
    }

    const COLUMNS: [ColumnSpec; 2] = [
        ColumnSpec::Grid { steps: 8 },
        ColumnSpec::Levels { count: 3 },
    ];

    #[test]
    fn releases_stay_on_their_grids_and_keep_the_charge() {
        let values = [vec![0, 8, 4, 8], vec![0, 1, 2, 2]];
        let prepared = prepare(&COLUMNS, &values).unwrap();
        let released = prepared
            .release(receipt(&["0.1", "0.2"]), &mut rng())
            .unwrap();
        assert_eq!(released.charge().total(), "0.3".parse().unwrap());
        assert!(released.columns()[0].iter().all(|&x| x <= 8));
        assert!(released.columns()[1].iter().all(|&x| x < 3));
        assert_eq!(released.columns()[0].len(), 4);
    }

    #[test]
    fn nearly_no_noise_at_a_huge_epsilon_and_much_at_a_small_one() {
        let values = [vec![4; 1000], vec![1; 1000]];
        let kept = |e: &str| {
            let prepared = prepare(&COLUMNS, &values).unwrap();
            let released = prepared.release(receipt(&[e, e]), &mut rng()).unwrap();
            let same = |j: usize, x: u32| released.columns()[j].iter().filter(|&&y| y == x).count();
            (same(0, 4), same(1, 1))
        };
        assert_eq!(kept("400"), (1000, 1000));
        let (numbers, levels) = kept("0.01");
        assert!(
            numbers < 50,
            "at this scale nearly everything is clipped to an end"
        );
        assert!(
            (250..420).contains(&levels),
            "about a third answers truly by chance"
        );
    }

    #[test]
    fn bad_input_has_its_own_errors() {
        let grid = [ColumnSpec::Grid { steps: 8 }];
        assert_eq!(prepare(&[], &[]).unwrap_err(), PrepareError::NoColumns);
        assert_eq!(prepare(&grid, &[vec![]]).unwrap_err(), PrepareError::NoRows);
        let count = PrepareError::ColumnCount {
            specified: 1,
            given: 0,
        };
        assert_eq!(prepare(&grid, &[]).unwrap_err(), count);
        let rows = PrepareError::RowCount {
            column: 1,
            expected: 2,
            found: 1,
        };
        assert_eq!(prepare(&COLUMNS, &[vec![0, 1], vec![0]]).unwrap_err(), rows);
        let outside = PrepareError::Outside {
            column: 1,
            row: 1,
            largest: 2,
        };
        assert_eq!(
            prepare(&COLUMNS, &[vec![0, 8], vec![0, 3]]).unwrap_err(),
            outside
        );
        let none = [ColumnSpec::Grid { steps: 0 }];
        let spec = PrepareError::Spec {
            column: 0,
            error: SpecError::NoSteps,
        };
        assert_eq!(prepare(&none, &[vec![0]]).unwrap_err(), spec);
    }

    #[test]
    fn a_preview_is_what_the_release_would_be_with_the_same_noise() {
        let values = [vec![0, 8, 4, 8], vec![0, 1, 2, 2]];
        let receipt = receipt(&["0.1", "0.2"]);
        let price = receipt.charge().clone();
        let previewed = prepare(&COLUMNS, &values).unwrap();
        let previewed = previewed.preview(&price, &mut rng()).unwrap();
        let released = prepare(&COLUMNS, &values).unwrap();
        let released = released.release(receipt, &mut rng()).unwrap();
        assert_eq!(previewed.columns(), released.columns());
        let narrow = prepare(&COLUMNS[..1], &values[..1]).unwrap();
        assert!(narrow.preview(&price, &mut rng()).is_err());
    }

    #[test]
    fn a_receipt_for_something_else_releases_nothing() {
        let values = [vec![0], vec![1]];
        let prepared = prepare(&COLUMNS, &values).unwrap();
        assert!(prepared.release(receipt(&["1"]), &mut rng()).is_err());
    }
}
