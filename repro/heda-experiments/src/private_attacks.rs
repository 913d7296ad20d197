//! Subtracting two jobs that differ in one row, with noise and without.
//!
//! The data user cheats in the choice of bits, which nothing prevents: once it takes the greatest
//! code for every row, once the least. Each sum then consists of payloads of one class, and both
//! together, taken from those of a second job, leave the payload of the row that was replaced, but
//! for one that the attacker knows. It divides by the bias column, which says how much the row was
//! cut, and reads every cell as the nearest grade.

use super::attacks::result;
use heda::Error;
use heda_crypto::random::Randomness;
use heda_dp::gaussian::sample;
use heda_dp::gdp::Delta;
use heda_learn::bundled::{Bundle, Coding};
use heda_learn::data::Dataset;

use heda_learn::private::{PrivateEncoding, PrivatePlan, PrivateRows};
use heda_learn::resident::CodeTable;
use rand_core::CryptoRng;

/// Rows that are attacked, one after the other.
const TARGETS: usize = 20;
/// Grades of a cell, less one.
const GRADES: f64 = 9.0;

fn bug(error: impl std::fmt::Display) -> Error {
    Error::bug(error.to_string())
}

/// Reads the cells of replaced rows; `noisy` jobs keep to ε = 1.
pub(super) fn subtraction(data: &Dataset, noisy: bool, seed: u64) -> Result<Vec<String>, Error> {
    let encoding = PrivateEncoding::new(&Bundle::Bcwd.schema(Coding::Natural));
    let delta = Delta::new(1e-5).map_err(bug)?;
    let one = "1".parse().map_err(bug)?;
    let plan = PrivatePlan::new(data.rows() as u64, encoding.width(), one, delta).map_err(bug)?;
    let mut rng = Randomness::seeded(seed)
        .fork("subtraction", 0)
        .map_err(bug)?;
    let last = data.rows() - 1;
    let mut recovered = 0;
    for target in 0..TARGETS.min(last) {
        let mut order: Vec<usize> = (0..data.rows()).collect();
        let whole = rows(&encoding, data, &order)?;
        order[target] = last;
        let replaced = rows(&encoding, data, &order)?;
        let known = whole.payload(last).iter().map(|&v| i64::from(v));
        let first = payloads(&plan, &whole, noisy, &mut rng);
        let second = payloads(&plan, &replaced, noisy, &mut rng);
        let differences = first.iter().zip(&second).zip(known);
        let estimate: Vec<f64> = differences.map(|((a, b), k)| (a - b + k) as f64).collect();
        let read = grades(&encoding, &estimate);
        let truth = data.row(target).iter().map(|v| (v * GRADES).round());
        recovered += truth.zip(&read).filter(|(t, r)| t == *r).count();
    }
    let cells = TARGETS.min(last) * data.width();
    let remark = if noisy {
        "epsilon 1 and delta 1e-5 each"
    } else {
        ""
    };
    Ok(result(cells, recovered, most_frequent(data), remark))
}

fn rows(encoding: &PrivateEncoding, data: &Dataset, order: &[usize]) -> Result<PrivateRows, Error> {
    encoding.rows(&data.select_rows(order), 1).map_err(bug)
}

/// The sum of all payloads, from two questions of one job.
fn payloads<R: CryptoRng>(
    plan: &PrivatePlan,
    rows: &PrivateRows,
    noisy: bool,
    rng: &mut R,
) -> Vec<i64> {
    let greatest = chosen_sum(plan, rows, 1, noisy, rng);
    let least = chosen_sum(plan, rows, 0, noisy, rng);
    greatest.iter().zip(&least).map(|(a, b)| a - b).collect()
}

/// What a data user gets that takes the same code for every row.
fn chosen_sum<R: CryptoRng>(
    plan: &PrivatePlan,
    rows: &PrivateRows,
    code: i64,
    noisy: bool,
    rng: &mut R,
) -> Vec<i64> {
    let mut draw = || {
        if noisy {
            sample(plan.variance(), rng)
        } else {
            0
        }
    };
    let mut sum: Vec<i64> = (0..rows.width()).map(|_| draw()).collect();
    let table = CodeTable::new(plan.loss(), PrivatePlan::resolution());
    for row in 0..rows.rows() {
        let weight = code - i64::from(table.zero(rows.is_positive(row)));
        let payload = rows.payload(row).iter();
        let cells = sum.iter_mut().zip(payload);
        cells.for_each(|(sum, &v)| *sum += weight * i64::from(v));
    }
    sum
}

/// Cells as the nearest grades: the bias column, 0.4 before it was cut, gives scale and sign.
fn grades(encoding: &PrivateEncoding, estimate: &[f64]) -> Vec<f64> {
    let unit = estimate[0] / 0.4;
    let grade = |column: usize| {
        let mut axis = vec![0.0; estimate.len()];
        axis[column] = 1.0;
        let line = encoding.coefficients(&axis);
        let cell = (estimate[column] / unit - line[0]) / line[column];
        (cell.clamp(0.0, 1.0) * GRADES).round()
    };
    (1..estimate.len()).map(grade).collect()
}

/// How often the most frequent grade of a column is right.
fn most_frequent(data: &Dataset) -> f64 {
    let share = |column: usize| {
        let mut counts = [0usize; GRADES as usize + 1];
        for row in 0..data.rows() {
            counts[(data.row(row)[column] * GRADES).round() as usize] += 1;
        }
        counts.into_iter().max().unwrap_or(0) as f64 / data.rows() as f64
    };
    (0..data.width()).map(share).sum::<f64>() / data.width() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn noise_ends_what_works_without_it() {
        let (data, _) = Bundle::Bcwd.table(Coding::Natural).unwrap();
        let recovered = |noisy| -> f64 {
            let cells = subtraction(&data, noisy, 1).unwrap();
            cells[1].parse::<f64>().unwrap() / cells[0].parse::<f64>().unwrap()
        };
        assert!(recovered(false) > 0.95, "{}", recovered(false));
        assert!(
            recovered(true) < most_frequent(&data),
            "{}",
            recovered(true)
        );
    }
}
