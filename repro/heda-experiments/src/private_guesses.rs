//! What can be guessed of single rows from an honest training, with noise and without: labels of a
//! small group from its first gradient, and which of two rows was trained on from the model.
//!
//! The attacker is given all that could help: every value of every row, and every other label.

use super::attacks::result;
use heda::Error;
use heda_crypto::random::Randomness;
use heda_dp::gaussian::sample;
use heda_dp::gdp::Delta;
use heda_learn::bundled::{Bundle, Coding};
use heda_learn::data::Dataset;
use heda_learn::optimise::Optimiser;
use heda_learn::oracle::{TrainConfig, train};
use heda_learn::private::{PrivateEncoding, PrivatePlan, PrivateRows, PrivateSource};
use heda_learn::resident::{Position, RowCoins};
use rand_core::CryptoRng;
use std::ops::ControlFlow;

/// A level that so few rows have, or fewer, makes a small group.
const FEW: usize = 5;
/// Rows that may or may not have been trained on, and trainings for each.
const CANDIDATES: usize = 10;
const TRAININGS: usize = 40;
/// Trainings with noise of the attacker's own by which it knows what to expect.
const REHEARSALS: usize = 20;

fn bug(error: impl std::fmt::Display) -> Error {
    Error::bug(error.to_string())
}

fn plan_for(rows: usize, width: usize) -> Result<PrivatePlan, Error> {
    let delta = Delta::new(1e-5).map_err(bug)?;
    let one = "1".parse().map_err(bug)?;
    PrivatePlan::new(rows as u64, width, one, delta).map_err(bug)
}

fn remark(noisy: bool) -> &'static str {
    if noisy {
        "epsilon 1 and delta 1e-5"
    } else {
        ""
    }
}

/// The labels of all rows that share a rare level, level by level, from the first gradient.
pub(super) fn small_groups(data: &Dataset, noisy: bool, seed: u64) -> Result<Vec<String>, Error> {
    let encoding = PrivateEncoding::new(&Bundle::Crx.schema(Coding::Natural));
    let rows = [encoding.rows(data, 1).map_err(bug)?];
    let plan = plan_for(data.rows(), encoding.width())?;
    let randomness = Randomness::seeded(seed).party("small groups");
    let mut noise = randomness.fork("noise", 0).map_err(bug)?;
    let mut coins = randomness.fork("coins", 0).map_err(bug)?;
    let first = match noisy {
        true => first_gradient(&plan, &rows, &mut noise, &mut coins),
        false => exact_gradient(&rows[0]),
    };
    let (mut targets, mut right, mut positive) = (0, 0, 0);
    for group in rare_groups(data) {
        let guessed = fitting_labels(&rows[0], &group, &first);
        let truth = group.iter().map(|&row| rows[0].is_positive(row));
        right += truth.clone().zip(&guessed).filter(|(t, g)| t == *g).count();
        positive += truth.filter(|label| *label).count();
        targets += group.len();
    }
    let chance = positive.max(targets - positive) as f64 / targets.max(1) as f64;
    Ok(result(targets, right, chance, remark(noisy)))
}

/// The first sum in clear, where derivatives are not rounded by coins.
fn exact_gradient(rows: &PrivateRows) -> Vec<i64> {
    let mut sum = vec![0; rows.width()];
    (0..rows.rows()).for_each(|row| add_row(&mut sum, rows, row, rows.is_positive(row), 1));
    sum
}

/// The sum that an honest data user of a private job gets first.
fn first_gradient<R: CryptoRng>(
    plan: &PrivatePlan,
    rows: &[PrivateRows],
    noise: &mut R,
    coins: &mut R,
) -> Vec<i64> {
    let toss = |_: Position| toss(coins);
    let draw = |_: u32, width: usize| drawn(plan, width, noise);
    let beta = vec![0.0; rows[0].width()];
    PrivateSource::new(plan, rows, toss, draw).whole_sums(&beta)
}

fn toss<R: CryptoRng>(coins: &mut R) -> RowCoins {
    RowCoins {
        mask: coins.next_u32(),
        coin: coins.next_u32(),
    }
}

fn drawn<R: CryptoRng>(plan: &PrivatePlan, width: usize, noise: &mut R) -> Vec<i64> {
    let draw = |_| sample(plan.variance(), noise);
    (0..width).map(draw).collect()
}

/// Rows that have a level of a category in common with few others.
fn rare_groups(data: &Dataset) -> Vec<Vec<usize>> {
    let features = data.features().iter();
    let levels = features
        .filter(|feature| feature.columns.len() > 1)
        .flat_map(|feature| feature.columns.clone());
    let group = |column: usize| -> Vec<usize> {
        let rows = 0..data.rows();
        rows.filter(|&row| data.row(row)[column] > 0.5).collect()
    };
    let groups = levels.map(group);
    groups
        .filter(|group| (1..=FEW).contains(&group.len()))
        .collect()
}

/// Of all labels that the group could have, those whose sum is nearest to what was seen.
fn fitting_labels(rows: &PrivateRows, group: &[usize], seen: &[i64]) -> Vec<bool> {
    let mut left = seen.to_vec();
    let others = (0..rows.rows()).filter(|row| !group.contains(row));
    others.for_each(|row| add_row(&mut left, rows, row, rows.is_positive(row), -1));
    let labels = |choice: u32| (0..group.len()).map(move |place| choice >> place & 1 == 1);
    let off = |choice: u32| {
        let mut left = left.clone();
        for (&row, label) in group.iter().zip(labels(choice)) {
            add_row(&mut left, rows, row, label, -1);
        }
        left.iter().map(|&v| i128::from(v).pow(2)).sum::<i128>()
    };
    let best = (0..1u32 << group.len()).min_by_key(|&choice| off(choice));
    labels(best.unwrap_or(0)).collect()
}

/// Adds what a row contributes at coefficients of nought, so many times.
fn add_row(sum: &mut [i64], rows: &PrivateRows, row: usize, positive: bool, times: i64) {
    let weight = if positive { -times } else { times };
    let payload = sum.iter_mut().zip(rows.payload(row));
    payload.for_each(|(sum, &v)| *sum += weight * i64::from(v));
}

/// Whether a row or another in its place was trained on, by the nearer of the two models.
pub(super) fn membership(data: &Dataset, noisy: bool, seed: u64) -> Result<Vec<String>, Error> {
    let randomness = Randomness::seeded(seed).party("membership");
    let last = data.rows() - 1;
    let encoding = PrivateEncoding::new(&Bundle::Bcwd.schema(Coding::Natural));
    let plan = plan_for(last, encoding.width())?;
    let (mut targets, mut right) = (0, 0);
    for candidate in 0..CANDIDATES.min(last) {
        let with: Vec<usize> = (0..last).collect();
        let mut without = with.clone();
        without[candidate] = last;
        let tables = [with, without].map(|order| data.select_rows(&order));
        let purpose = |name: &str| randomness.fork(name, candidate as u64).map_err(bug);
        let (mut rehearsed, mut real) = (purpose("rehearsed")?, purpose("real")?);
        let mut model = |table: &Dataset, rehearses: bool| match noisy {
            true if rehearses => privately(&plan, &encoding, table, &mut rehearsed),
            true => privately(&plan, &encoding, table, &mut real),
            false => Ok(train(table, 1, &TrainConfig::logistic()).map_err(bug)?.beta),
        };
        let rehearsals = if noisy { REHEARSALS } else { 1 };
        let mut usual = Vec::new();
        for table in &tables {
            let models = (0..rehearsals).map(|_| model(table, true));
            usual.push(mean(&models.collect::<Result<Vec<_>, _>>()?));
        }
        for training in 0..if noisy { TRAININGS } else { 2 } {
            let truth = training % 2;
            let found = model(&tables[truth], false)?;
            let guess = usize::from(distance(&found, &usual[1]) < distance(&found, &usual[0]));
            right += usize::from(guess == truth);
            targets += 1;
        }
    }
    Ok(result(targets, right, 0.5, remark(noisy)))
}

/// The coefficients of a whole private training.
fn privately<R: CryptoRng>(
    plan: &PrivatePlan,
    encoding: &PrivateEncoding,
    table: &Dataset,
    rng: &mut R,
) -> Result<Vec<f64>, Error> {
    let rows = [encoding.rows(table, 1).map_err(bug)?];
    let rng = std::cell::RefCell::new(rng);
    let toss = |_: Position| toss(&mut *rng.borrow_mut());
    let draw = |_: u32, width: usize| drawn(plan, width, &mut *rng.borrow_mut());
    let mut source = PrivateSource::new(plan, &rows, toss, draw);
    let mut optimiser = Optimiser::new(plan.settings(), encoding.width()).map_err(bug)?;
    let finished = optimiser.run(&mut source, |_| ControlFlow::Continue(()));
    finished.map_err(bug)?;
    Ok(optimiser.beta().to_vec())
}

fn mean(models: &[Vec<f64>]) -> Vec<f64> {
    let columns = models.first().map_or(0, Vec::len);
    let of = |column: usize| models.iter().map(|model| model[column]).sum::<f64>();
    let count = models.len() as f64;
    (0..columns).map(|column| of(column) / count).collect()
}

fn distance(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The share of right guesses, and what guessing blindly gives.
    fn shares(cells: &[String]) -> (f64, f64) {
        let number = |place: usize| cells[place].parse::<f64>().unwrap();
        (number(1) / number(0), number(2))
    }

    #[test]
    fn labels_of_small_groups_are_read_without_noise_only() {
        let (data, _) = Bundle::Crx.table(Coding::Natural).unwrap();
        assert_eq!(shares(&small_groups(&data, false, 1).unwrap()).0, 1.0);
        let (right, chance) = shares(&small_groups(&data, true, 1).unwrap());
        assert!(right < chance + 0.15, "{right} {chance}");
    }

    #[test]
    fn a_model_tells_who_was_trained_on_without_noise_only() {
        let (data, _) = Bundle::Bcwd.table(Coding::Natural).unwrap();
        assert_eq!(shares(&membership(&data, false, 1).unwrap()).0, 1.0);
        let (right, _) = shares(&membership(&data, true, 1).unwrap());
        // Φ(μ/2) = 0.553, and three deviations of 400 guesses.
        assert!(right < 0.63, "{right}");
    }
}
