//! What accuracy a private job can be expected to reach: on simulated rows, before anything is spent.
//!
//! Rows are drawn as the schema calls them typical (evenly where it says nothing), every column
//! counts by a weight that is drawn too, and labels follow the sum by chance. On such rows the job's
//! plan is run in the integer oracle, in which every number is as in a job, with the noise of all its
//! providers, and compared with training in clear. Real rows are not like that: what it shows is what
//! so much noise does to so many columns and rows.
//!
//! A job with very many rows is simulated with fewer and as much less noise.

use crate::error::Error;
use heda_crypto::random::Randomness;
use heda_dp::gaussian::{Variance, sample};
use heda_job::proposal::Privacy;
use heda_learn::clip_range::{ClipRange, score_within};
use heda_learn::data::Dataset;
use heda_learn::optimise::Optimiser;
use heda_learn::oracle::{TrainConfig, train};
use heda_learn::private::{PrivateEncoding, PrivatePlan, PrivateSource};
use heda_learn::resident::{Position, RowCoins};
use heda_learn::schema::{Column, Kind as ColumnKind, Schema};
use rand_core::{CryptoRng, Rng};
use serde::Serialize;
use std::ops::ControlFlow;

/// Other rows, other weights and other noise so many times.
const RUNS: u64 = 5;
/// Most rows of a run.
const MOST_ROWS: usize = 20_000;
/// Rows that accuracy is counted on.
const COUNTED_ROWS: usize = 4_000;
/// How much the logarithm of the odds varies: a model in clear is then right in five of six.
const STRENGTH: f64 = 3.0;

/// What came out of all runs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Expected {
    /// How many runs.
    pub runs: u64,
    /// Mean accuracy of training in clear on the simulated rows.
    pub clear: f64,
    /// The worst and the best private model's accuracy.
    pub private: [f64; 2],
    /// By how much the private model was worse, in the mean.
    pub lost: f64,
}

/// Simulates a private job with so many training rows of so many providers.
///
/// # Errors
/// If there is no plan for it.
pub fn expect(
    schema: &Schema,
    privacy: &Privacy,
    providers: usize,
    rows: usize,
    randomness: &Randomness,
) -> Result<Expected, Error> {
    let plan = privacy.plan(schema.width() + 1).map_err(Error::input)?;
    let drawn = rows.clamp(1, MOST_ROWS);
    let needed = privacy.share(plan.variance(), providers).get() as f64 * providers as f64;
    let smaller = drawn as f64 / rows.max(1) as f64;
    let variance = Variance::at_least(needed * smaller * smaller).map_err(Error::bug)?;
    let runs: Vec<[f64; 2]> = (0..RUNS)
        .map(|run| {
            let mut rng = randomness.fork("expectation", run).map_err(Error::bug)?;
            let all = planted(schema, drawn + COUNTED_ROWS, &mut rng)?;
            let rows = |from: usize, to: usize| all.select_rows(&(from..to).collect::<Vec<_>>());
            let (training, counted) = (rows(0, drawn), rows(drawn, all.rows()));
            let fit = train(&training, 1, &TrainConfig::logistic()).map_err(Error::bug)?;
            let (private, reach) = privately(schema, &plan, variance, &training, &mut rng)?;
            Ok([
                accuracy(&fit.beta, &counted, None),
                accuracy(&private, &counted, Some(&reach)),
            ])
        })
        .collect::<Result<_, Error>>()?;
    let mean = |place: usize| runs.iter().map(|run| run[place]).sum::<f64>() / RUNS as f64;
    let private = || runs.iter().map(|run| run[1]);
    Ok(Expected {
        runs: RUNS,
        clear: mean(0),
        private: [private().fold(1.0, f64::min), private().fold(0.0, f64::max)],
        lost: mean(0) - mean(1),
    })
}

/// The job's plan in the integer oracle; coefficients of the schema's columns, and how far those reach.
fn privately(
    schema: &Schema,
    plan: &PrivatePlan,
    variance: Variance,
    training: &Dataset,
    rng: &mut impl CryptoRng,
) -> Result<(Vec<f64>, ClipRange), Error> {
    let encoding = PrivateEncoding::new(schema);
    let rows = [encoding.rows(training, 1).map_err(Error::bug)?];
    let rng = std::cell::RefCell::new(rng);
    let toss = |_: Position| {
        let mut rng = rng.borrow_mut();
        RowCoins {
            mask: rng.next_u32(),
            coin: rng.next_u32(),
        }
    };
    let draw = |_: u32, width: usize| -> Vec<i64> {
        let mut rng = rng.borrow_mut();
        (0..width).map(|_| sample(variance, &mut **rng)).collect()
    };
    let mut source = PrivateSource::new(plan, &rows, toss, draw);
    let mut optimiser = Optimiser::new(plan.settings(), encoding.width()).map_err(Error::bug)?;
    let run = optimiser.run(&mut source, |_| ControlFlow::Continue(()));
    run.map_err(Error::bug)?;
    Ok((encoding.coefficients(optimiser.beta()), encoding.reach()))
}

fn accuracy(beta: &[f64], rows: &Dataset, reach: Option<&ClipRange>) -> f64 {
    let right = (0..rows.rows()).filter(|&row| {
        let positive = score_within(beta, rows.row(row), reach) > 0.0;
        positive == (rows.labels()[row] == 1)
    });
    right.count() as f64 / rows.rows() as f64
}

/// Rows of the schema whose labels follow weights that are drawn.
fn planted(schema: &Schema, rows: usize, rng: &mut impl CryptoRng) -> Result<Dataset, Error> {
    let mut values = Vec::with_capacity(rows * schema.width());
    for _ in 0..rows {
        for column in schema.columns() {
            draw_cells(column, rng, &mut values);
        }
    }
    let sums = weighed(&values, schema.width(), rng);
    let labels = sums
        .iter()
        .map(|z| u32::from(uniform(rng) < 1.0 / (1.0 + (-STRENGTH * z).exp())))
        .collect();
    let classes = schema.label().classes();
    Dataset::new(schema.features(), values, labels, classes).map_err(Error::bug)
}

/// A cell as the schema calls it typical, in encoded columns.
fn draw_cells(column: &Column, rng: &mut impl CryptoRng, values: &mut Vec<f64>) {
    let width = column.width();
    if width > 1 {
        let level = (rng.next_u32() as usize) % width;
        values.extend((0..width).map(|place| f64::from(u8::from(place == level))));
        return;
    }
    let (lower, range, steps) = match column.kind() {
        ColumnKind::Numeric { bounds, .. } => (bounds.lower(), bounds.range(), None),
        ColumnKind::Levels { levels, .. } => {
            let steps = levels.len().saturating_sub(1).max(1) as f64;
            (0.0, steps, Some(steps))
        }
    };
    let value = match column.typical() {
        Some(typical) => (typical.mean + typical.deviation * normal(rng) - lower) / range,
        None => uniform(rng),
    };
    let value = value.clamp(0.0, 1.0);
    values.push(steps.map_or(value, |steps| (value * steps).round() / steps));
}

/// Every row's sum of columns in deviations times weights that are drawn, itself in deviations.
fn weighed(values: &[f64], width: usize, rng: &mut impl CryptoRng) -> Vec<f64> {
    let mut sums = vec![0.0; values.len() / width];
    for column in 0..width {
        let weight = normal(rng);
        let cells: Vec<f64> = values.iter().skip(column).step_by(width).copied().collect();
        let cells = in_deviations(cells).into_iter();
        sums.iter_mut()
            .zip(cells)
            .for_each(|(s, x)| *s += weight * x);
    }
    in_deviations(sums)
}

fn in_deviations(mut values: Vec<f64>) -> Vec<f64> {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let squares = values.iter().map(|v| (v - mean) * (v - mean));
    let deviation = (squares.sum::<f64>() / count).sqrt().max(f64::MIN_POSITIVE);
    values.iter_mut().for_each(|v| *v = (*v - mean) / deviation);
    values
}

/// Within (0, 1).
fn uniform(rng: &mut impl CryptoRng) -> f64 {
    (f64::from(rng.next_u32()) + 0.5) / 2f64.powi(32)
}

/// By Box and Muller: good enough for rows that nobody has.
fn normal(rng: &mut impl CryptoRng) -> f64 {
    let (radius, angle) = (uniform(rng), uniform(rng));
    (-2.0 * radius.ln()).sqrt() * (std::f64::consts::TAU * angle).cos()
}

#[cfg(test)]
mod tests {
    use super::*;
    use heda_dp::gdp::Delta;
    use heda_learn::bundled::{Bundle, Coding};

    fn expected(epsilon: &str, rows: usize) -> Expected {
        let schema = Bundle::Bcwd.schema(Coding::Natural);
        let delta = Delta::default_for(rows as u64);
        let privacy = Privacy::new(epsilon.parse().unwrap(), delta, rows as u64);
        expect(&schema, &privacy, 3, rows, &Randomness::seeded(1)).unwrap()
    }

    #[test]
    fn more_rows_and_a_larger_epsilon_lose_less() {
        let (few, many) = (expected("1", 500), expected("1", 100_000));
        assert!((0.75..0.9).contains(&few.clear), "{few:?}");
        assert!(few.lost > 0.005, "{few:?}");
        assert!(many.lost < 0.01 && many.lost < few.lost, "{many:?}");
        let strict = expected("0.1", 500);
        assert!(strict.lost > 2.0 * few.lost, "{strict:?}");
        assert!(strict.private[0] < strict.private[1]);
    }
}
