//! Steps 2 and 3 put together: noisy gradients as an engine computes them, in the clear.

use super::{ONE, Passes, PrivatePlan, PrivateRows, Unbanded};
use crate::gradient::{Batch, Gradient, GradientSource};
use crate::resident::{CodeTable, Coins, Position, Resolution, RowCoins, Weights};
use std::convert::Infallible;

/// Where noise comes from: a generator, or an engine's own noise in a test.
pub trait Noise {
    /// The noise of all providers together in one gradient, a number a column.
    fn noise(&mut self, iteration: u32, width: usize) -> Vec<i64>;
}

impl<F: FnMut(u32, usize) -> Vec<i64>> Noise for F {
    fn noise(&mut self, iteration: u32, width: usize) -> Vec<i64> {
        self(iteration, width)
    }
}

/// Gradients on integers with noise, from rows of several providers in the clear.
#[derive(Debug)]
pub struct PrivateSource<'a, C, N> {
    resolution: Resolution,
    table: CodeTable,
    passes: Passes,
    providers: &'a [PrivateRows],
    coins: C,
    noise: N,
    iteration: u32,
    /// Exact sums of earlier steps, as far as later ones have them in.
    before: Vec<(u32, Vec<i64>)>,
    estimates: Unbanded,
}

impl<'a, C: Coins, N: Noise> PrivateSource<'a, C, N> {
    /// All rows of all providers; they have the same columns.
    pub fn new(plan: &PrivatePlan, providers: &'a [PrivateRows], coins: C, noise: N) -> Self {
        let resolution = PrivatePlan::resolution();
        Self {
            resolution,
            table: CodeTable::new(plan.loss(), resolution),
            passes: plan.passes().clone(),
            providers,
            coins,
            noise,
            iteration: 0,
            before: Vec::new(),
            estimates: Unbanded::default(),
        }
    }

    /// What is opened at the next step, as whole numbers: banded sums, noise included.
    pub fn whole_sums(&mut self, beta: &[f64]) -> Vec<i64> {
        let step = self.iteration;
        let own = self.batch_sums(beta);
        let first = self.passes.first_of_chain(step);
        self.before.push((step, own));
        self.before.retain(|(earlier, _)| *earlier >= first);
        let mut sums = self.noise.noise(step, beta.len());
        for (earlier, known) in &self.before {
            let band = i64::from(self.passes.band(step - earlier));
            sums.iter_mut()
                .zip(known)
                .for_each(|(sum, known)| *sum += band * known);
        }
        self.iteration += 1;
        sums
    }

    /// The next step is skipped, and what was before is forgotten: a job whose answer was lost.
    pub fn lose(&mut self) {
        self.iteration += 1;
        self.before.clear();
        self.estimates = Unbanded::default();
    }

    /// The exact sums over the batch of the next step.
    fn batch_sums(&mut self, beta: &[f64]) -> Vec<i64> {
        let weights = PrivatePlan::weights(beta);
        let batch = self.passes.batch(self.iteration);
        let mut sums = vec![0; beta.len()];
        for provider in 0..self.providers.len() {
            let part = batch.turned(provider);
            for row in part.share(self.providers[provider].rows()) {
                self.add_row(provider, row, &weights, &mut sums);
            }
        }
        sums
    }

    fn add_row(&mut self, provider: usize, row: usize, weights: &Weights, sums: &mut [i64]) {
        let iteration = self.iteration;
        let RowCoins { mask, coin } = self.coins.coins(Position {
            provider,
            iteration,
            row,
        });
        let rows = &self.providers[provider];
        let resolution = self.resolution;
        let share = weights
            .score(rows.score(row), resolution)
            .wrapping_add(mask);
        let place = resolution.top_bits(share);
        let positive = rows.is_positive(row);
        let code = i64::from(self.table.code(place, positive, mask, coin));
        let weight = code - i64::from(self.table.zero(positive));
        if weight != 0 {
            for (sum, &value) in sums.iter_mut().zip(rows.payload(row)) {
                *sum += weight * i64::from(value);
            }
        }
    }

    /// What whole sums stand for.
    pub fn real(&self, sums: &[i64]) -> Vec<f64> {
        let unit = self.table.unit() / f64::from(ONE);
        sums.iter().map(|&sum| sum as f64 * unit).collect()
    }
}

impl<C: Coins, N: Noise> GradientSource for PrivateSource<'_, C, N> {
    type Error = Infallible;

    fn dimension(&self) -> usize {
        self.providers.first().map_or(0, PrivateRows::width)
    }

    fn gradient(&mut self, beta: &[f64], _batch: Batch) -> Result<Gradient, Infallible> {
        let step = self.iteration;
        let opened = self.whole_sums(beta);
        let opened = self.real(&opened);
        let mut sum = self.estimates.estimate(&self.passes, step, opened);
        // Of all rows as of one batch: every row counts alike, whichever batch it is in.
        let batches = f64::from(self.passes.batches());
        sum.iter_mut().for_each(|sum| *sum *= batches);
        Ok(Gradient {
            sum,
            rows: self.providers.iter().map(PrivateRows::rows).sum(),
        })
    }
}
