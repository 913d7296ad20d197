//! Steps 2 and 3 put together: noisy gradients as an engine computes them, in the clear.

use super::{ONE, PrivatePlan, PrivateRows};
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
    providers: &'a [PrivateRows],
    coins: C,
    noise: N,
    iteration: u32,
}

impl<'a, C: Coins, N: Noise> PrivateSource<'a, C, N> {
    /// All rows of all providers; they have the same columns.
    pub fn new(plan: &PrivatePlan, providers: &'a [PrivateRows], coins: C, noise: N) -> Self {
        let resolution = PrivatePlan::resolution();
        Self {
            resolution,
            table: CodeTable::new(plan.loss(), resolution),
            providers,
            coins,
            noise,
            iteration: 0,
        }
    }

    /// The sums as whole numbers, noise included.
    pub fn whole_sums(&mut self, beta: &[f64]) -> Vec<i64> {
        let weights = PrivatePlan::weights(beta);
        let mut sums = self.noise.noise(self.iteration, beta.len());
        for provider in 0..self.providers.len() {
            for row in 0..self.providers[provider].rows() {
                self.add_row(provider, row, &weights, &mut sums);
            }
        }
        self.iteration += 1;
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
        let sums = self.whole_sums(beta);
        Ok(Gradient {
            sum: self.real(&sums),
            rows: self.providers.iter().map(PrivateRows::rows).sum(),
        })
    }
}
