//! What publishing buys: the clear-text oracle with all features, with the noisy ones, and without
//! them. Computed at home, on rows held back; nothing of it leaves.

use crate::error::Error;
use heda_crypto::random::Randomness;
use heda_learn::data::Dataset;
use heda_learn::metrics::Summary;
use heda_learn::oracle::{Fit, TrainConfig, score, train, train_one_vs_rest};
use rand_core::Rng;
use serde::Serialize;

/// Random splits that are averaged, each with noise of its own.
const SPLITS: u64 = 20;
/// More rows than this make an estimate slower and hardly better.
const ROWS: usize = 8192;
/// A gain counts if it is this many standard errors above nothing.
const SURE: f64 = 2.0;

/// Mean accuracies on a fifth of the rows, unperturbed, after training on the rest. From 0 to 1.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Worth {
    /// All features in the clear.
    pub all: f64,
    /// The published features with their noise, the others in the clear.
    pub published: f64,
    /// Without the published features.
    pub dropped: f64,
    /// Always the most frequent class.
    pub majority: f64,
    /// What publishing gains over dropping, from split to split: the standard error of the mean.
    pub gain_error: f64,
}

impl Worth {
    /// Trains on `data`, on `noisy` and on the features `kept` of `data`.
    pub(super) fn estimate(
        data: &Dataset,
        mut noisy: impl FnMut(u64) -> Result<Dataset, Error>,
        kept: &[usize],
    ) -> Result<Self, Error> {
        if data.is_numeric() {
            return Err(Error::input(
                "the label is a number: what publishing is worth is estimated for classes only",
            ));
        }
        let without = (!kept.is_empty()).then(|| data.select_features(kept));
        let mut sums = [0.0; 4];
        let mut gains = Vec::new();
        for split in 0..SPLITS {
            let (learn, test) = split_rows(data.rows(), split)?;
            let majority = majority(data, &learn, &test);
            let dropped = match &without {
                Some(without) => accuracy(without, without, &learn, &test)?,
                None => majority,
            };
            let all = accuracy(data, data, &learn, &test)?;
            let published = accuracy(&noisy(split)?, data, &learn, &test)?;
            gains.push(published - dropped);
            let parts = [all, published, dropped, majority];
            sums.iter_mut()
                .zip(parts)
                .for_each(|(sum, part)| *sum += part);
        }
        let [all, published, dropped, majority] = sums.map(|sum| sum / SPLITS as f64);
        Ok(Self {
            all,
            published,
            dropped,
            majority,
            gain_error: Summary::new(&gains)
                .map_or(0.0, |gains| gains.deviation / (SPLITS as f64).sqrt()),
        })
    }

    /// Advice in words.
    pub fn advice(&self) -> &'static str {
        match self.published - self.dropped {
            gain if gain > SURE * self.gain_error => {
                "publishing buys accuracy over leaving these features out"
            }
            _ => "publishing buys nothing over leaving these features out: do not publish them",
        }
    }
}

/// Four fifths to learn from and one to test on. The split is no secret, so it may be seeded.
fn split_rows(rows: usize, split: u64) -> Result<(Vec<usize>, Vec<usize>), Error> {
    let mut rng = Randomness::seeded(split)
        .fork("split", 0)
        .map_err(Error::bug)?;
    let mut order: Vec<usize> = (0..rows).collect();
    for last in (1..rows).rev() {
        order.swap(last, (rng.next_u64() % (last as u64 + 1)) as usize);
    }
    order.truncate(ROWS);
    let test = order.split_off(order.len() - order.len() / 5);
    match test.is_empty() {
        true => Err(Error::input(
            "fewer than five rows: too few to estimate anything",
        )),
        false => Ok((order, test)),
    }
}

fn accuracy(
    learn_from: &Dataset,
    test_on: &Dataset,
    learn: &[usize],
    test: &[usize],
) -> Result<f64, Error> {
    let rows = learn_from.select_rows(learn);
    let config = TrainConfig::logistic();
    let fits = match rows.classes().len() {
        2 => train(&rows, 1, &config).map(|fit| vec![fit]),
        _ => train_one_vs_rest(&rows, &config),
    };
    let fits = fits.map_err(|e| Error::input(format!("cannot estimate accuracy: {e}")))?;
    let right = |&&row: &&usize| predict(&fits, test_on.row(row)) == test_on.labels()[row];
    Ok(test.iter().filter(right).count() as f64 / test.len() as f64)
}

fn predict(fits: &[Fit], row: &[f64]) -> u32 {
    let scores = fits.iter().map(|fit| score(&fit.beta, row));
    match fits.len() {
        1 => u32::from(scores.sum::<f64>() > 0.0),
        _ => scores
            .zip(0..)
            .max_by(|a, b| a.0.total_cmp(&b.0))
            .map_or(0, |(_, class)| class),
    }
}

fn majority(data: &Dataset, learn: &[usize], test: &[usize]) -> f64 {
    let mut counts = vec![0usize; data.classes().len()];
    learn
        .iter()
        .for_each(|&row| counts[data.labels()[row] as usize] += 1);
    let best = counts.iter().zip(0..).max().map_or(0, |(_, class)| class);
    let hits = test
        .iter()
        .filter(|&&row| data.labels()[row] == best)
        .count();
    hits as f64 / test.len() as f64
}
