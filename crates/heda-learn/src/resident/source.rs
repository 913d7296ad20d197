//! The five steps put together: gradients as engine `resident` computes them, in the clear.

use super::{CodeTable, Encoding, GridError, GridRows, PayloadColumn, Resolution, Weights};
use crate::gradient::{Batch, Gradient, GradientSource};
use crate::loss::LossKind;
use crate::scaling::Scaling;

/// Which row of which gradient.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Position {
    /// The provider, from 0.
    pub provider: usize,
    /// The gradient, from 0.
    pub iteration: u32,
    /// The provider's row, from 0.
    pub row: usize,
}

/// What is drawn for one row of one gradient.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowCoins {
    /// Step 3: the provider's share of the score is −r; r is uniform modulo 2^w.
    pub mask: u32,
    /// Step 4.
    pub coin: u32,
}

/// Where coins come from: a generator, or an engine's own coins in a test.
pub trait Coins {
    /// The coins of one row.
    fn coins(&mut self, at: Position) -> RowCoins;
}

impl<F: FnMut(Position) -> RowCoins> Coins for F {
    fn coins(&mut self, at: Position) -> RowCoins {
        self(at)
    }
}

/// Gradients on integers, from rows of several providers in the clear.
#[derive(Debug)]
pub struct ResidentSource<C> {
    resolution: Resolution,
    encoding: Encoding,
    /// What rows hold as a rule: scores beyond it are not made room for.
    likely: Encoding,
    table: CodeTable,
    providers: Vec<GridRows>,
    coins: C,
    iteration: u32,
}

impl<C: Coins> ResidentSource<C> {
    /// Checks every row against the encoding.
    pub fn new(
        resolution: Resolution,
        encoding: Encoding,
        loss: LossKind,
        providers: Vec<GridRows>,
        coins: C,
    ) -> Result<Self, GridError> {
        let table = CodeTable::new(loss, resolution);
        Self::by_table(resolution, encoding, table, providers, coins)
    }

    /// The same with another table, as for numeric labels.
    pub fn by_table(
        resolution: Resolution,
        encoding: Encoding,
        table: CodeTable,
        providers: Vec<GridRows>,
        coins: C,
    ) -> Result<Self, GridError> {
        for (provider, rows) in providers.iter().enumerate() {
            let outside = |&row: &usize| !fits(&encoding, rows, row);
            if let Some(row) = (0..rows.rows()).find(outside) {
                return Err(GridError::Row { provider, row });
            }
        }
        Ok(Self {
            resolution,
            table,
            likely: encoding.clone(),
            encoding,
            providers,
            coins,
            iteration: 0,
        })
    }

    /// Makes room for scores of rows near the means of the columns, not for all that are possible.
    pub fn near(self, scaling: &Scaling) -> Self {
        Self {
            likely: self.encoding.likely(scaling),
            ..self
        }
    }

    /// Step 5: the sums as whole numbers, bias first.
    pub fn whole_sums(&mut self, beta: &[f64], batch: Batch) -> Result<Vec<i64>, GridError> {
        let weights = Weights::new(beta, &self.likely, self.resolution)?;
        let mut sums = vec![0i64; self.encoding.payload().len()];
        for provider in 0..self.providers.len() {
            for row in batch.share(self.providers[provider].rows()) {
                self.add_row(provider, row, &weights, &mut sums);
            }
        }
        self.iteration += 1;
        Ok(sums)
    }

    fn add_row(&mut self, provider: usize, row: usize, weights: &Weights, sums: &mut [i64]) {
        let iteration = self.iteration;
        let RowCoins { mask, coin } = self.coins.coins(Position {
            provider,
            iteration,
            row,
        });
        let rows = &self.providers[provider];
        let (values, label) = (rows.values(row), rows.label(row));
        // Steps 2 and 3
        let share = weights.score(values, self.resolution).wrapping_add(mask);
        let place = self.resolution.top_bits(share);
        // Steps 4 and 5
        let code = i64::from(self.table.code(place, label, mask, coin));
        let weight = code - i64::from(self.table.zero(label));
        for (sum, &payload) in sums.iter_mut().zip(rows.payload(row)) {
            *sum += weight * i64::from(payload);
        }
    }

    /// What whole sums stand for.
    pub fn real(&self, sums: &[i64]) -> Vec<f64> {
        let columns = self.encoding.payload().iter();
        let unit = self.table.unit();
        sums.iter()
            .zip(columns)
            .map(|(&sum, column)| sum as f64 * unit * column.unit)
            .collect()
    }
}

/// Whether a row is what the encoding says.
fn fits(encoding: &Encoding, rows: &GridRows, row: usize) -> bool {
    let payload = rows.payload(row).iter().zip(encoding.payload());
    let within = |(value, column): (&i32, &PayloadColumn)| value.unsigned_abs() <= column.largest;
    encoding.contains(rows.values(row)) && payload.into_iter().all(within)
}

impl<C: Coins> GradientSource for ResidentSource<C> {
    type Error = GridError;

    fn dimension(&self) -> usize {
        self.encoding.width() + 1
    }

    fn gradient(&mut self, beta: &[f64], batch: Batch) -> Result<Gradient, GridError> {
        let sums = self.whole_sums(beta, batch)?;
        let rows = self
            .providers
            .iter()
            .map(|provider| batch.share(provider.rows()).len())
            .sum();
        Ok(Gradient {
            sum: self.real(&sums),
            rows,
        })
    }
}
