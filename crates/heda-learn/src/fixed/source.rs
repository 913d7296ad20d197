//! The five steps put together: gradients as the engine `lookup` computes them, in the clear.

use super::{Domain, LinkTable, Precision, RING, ScaleError, Scaled, TableError};
use crate::data::Dataset;
use crate::gradient::{Batch, Gradient, GradientSource};
use crate::loss::LossKind;

/// The rows of one provider on the grid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FixedRows {
    width: usize,
    values: Vec<i32>,
    positive: Vec<bool>,
}

impl FixedRows {
    /// Rows of `width` integers each, one label a row.
    pub fn new(width: usize, values: Vec<i32>, positive: Vec<bool>) -> Result<Self, FixedError> {
        if values.len() != width * positive.len() {
            return Err(FixedError::Shape {
                values: values.len(),
                rows: positive.len(),
                width,
            });
        }
        Ok(Self {
            width,
            values,
            positive,
        })
    }

    /// Step 1 for a whole data set, class `positive` against the rest.
    pub fn of_dataset(data: &Dataset, positive: u32, precision: Precision) -> Self {
        Self {
            width: data.width(),
            values: data.values().iter().map(|&x| precision.encode(x)).collect(),
            positive: data.labels().iter().map(|&l| l == positive).collect(),
        }
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.positive.len()
    }

    /// One row.
    pub fn row(&self, row: usize) -> &[i32] {
        &self.values[row * self.width..][..self.width]
    }

    /// Whether a row is positive.
    pub fn is_positive(&self, row: usize) -> bool {
        self.positive[row]
    }
}

/// Which score a mask is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Position {
    /// The provider, from 0.
    pub provider: usize,
    /// The gradient, from 0.
    pub iteration: u32,
    /// The provider's row, from 0.
    pub row: usize,
}

/// Where masks come from: a generator, or an engine's own masks in a test.
pub trait Masks {
    /// The mask, uniform in the ring, for one score.
    fn mask(&mut self, at: Position) -> u64;
}

impl<F: FnMut(Position) -> u64> Masks for F {
    fn mask(&mut self, at: Position) -> u64 {
        self(at)
    }
}

/// What can go wrong on the grid.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum FixedError {
    /// Values do not fill the rows.
    #[error("{values} values do not fill {rows} rows of {width} columns")]
    Shape {
        /// How many values there are.
        values: usize,
        /// How many labels there are.
        rows: usize,
        /// Columns of a row.
        width: usize,
    },
    /// A row holds what the domain excludes.
    #[error("provider {provider}, row {row}: a value outside the agreed domain")]
    Domain {
        /// The provider, from 0.
        provider: usize,
        /// The row, from 0.
        row: usize,
    },
    /// The coefficients cannot be scaled.
    #[error(transparent)]
    Scale(#[from] ScaleError),
    /// The table cannot be made.
    #[error(transparent)]
    Table(#[from] TableError),
}

/// Sums in the ring, and the table that gives them their unit.
#[derive(Debug, Clone, PartialEq)]
pub struct RingGradient {
    /// Bias first, then one sum a column.
    pub sums: Vec<u64>,
    /// Over how many rows.
    pub rows: usize,
    /// The table used.
    pub table: LinkTable,
}

/// Gradients on integers, from rows of several providers in the clear.
#[derive(Debug)]
pub struct FixedSource<M> {
    precision: Precision,
    domain: Domain,
    loss: LossKind,
    providers: Vec<FixedRows>,
    masks: M,
    iteration: u32,
}

impl<M: Masks> FixedSource<M> {
    /// Checks every row against the domain.
    pub fn new(
        precision: Precision,
        domain: Domain,
        loss: LossKind,
        providers: Vec<FixedRows>,
        masks: M,
    ) -> Result<Self, FixedError> {
        for (provider, rows) in providers.iter().enumerate() {
            let outside = |&row: &usize| !domain.contains(rows.row(row), precision);
            if let Some(row) = (0..rows.rows()).find(outside) {
                return Err(FixedError::Domain { provider, row });
            }
        }
        Ok(Self {
            precision,
            domain,
            loss,
            providers,
            masks,
            iteration: 0,
        })
    }

    /// One gradient, still in the ring.
    pub fn ring_gradient(
        &mut self,
        beta: &[f64],
        batch: Batch,
    ) -> Result<RingGradient, FixedError> {
        let shares: Vec<_> = self
            .providers
            .iter()
            .map(|p| batch.share(p.rows()))
            .collect();
        let rows = shares.iter().map(|share| share.len()).sum();
        let scaled = Scaled::new(beta, &self.domain, self.precision)?;
        let largest = self.domain.largest(self.precision);
        let table = LinkTable::of_loss(self.loss, &scaled, self.precision, rows, largest)?;
        let mut sums = vec![0u64; beta.len()];
        for (provider, share) in shares.into_iter().enumerate() {
            for row in share {
                self.add_row(provider, row, &scaled, &table, &mut sums);
            }
        }
        self.iteration += 1;
        Ok(RingGradient { sums, rows, table })
    }

    fn add_row(
        &mut self,
        provider: usize,
        row: usize,
        scaled: &Scaled,
        table: &LinkTable,
        sums: &mut [u64],
    ) {
        let iteration = self.iteration;
        let mask = self.masks.mask(Position {
            provider,
            iteration,
            row,
        });
        let rows = &self.providers[provider];
        let (values, positive) = (rows.row(row), rows.is_positive(row));
        // Step 3: the score, masked, rounded by dropping bits, and unmasked as an index.
        let v = self
            .precision
            .top_bits(RING.add(scaled.score(values), mask));
        let t = self
            .precision
            .unmask_index(v, self.precision.top_bits(mask));
        // Step 4: the entry, less the label where the table does not know it.
        let label = i64::from(positive) * table.layout().label_term(table.fraction_bits());
        let slope = table.entry(t, positive) - label;
        // Step 5: the sums, bias first.
        let columns = std::iter::once(self.precision.one()).chain(values.iter().copied());
        for (sum, x) in sums.iter_mut().zip(columns) {
            *sum = RING.add(*sum, RING.from_signed(slope.wrapping_mul(i64::from(x))));
        }
    }
}

impl<M: Masks> GradientSource for FixedSource<M> {
    type Error = FixedError;

    fn dimension(&self) -> usize {
        self.domain.width() + 1
    }

    fn gradient(&mut self, beta: &[f64], batch: Batch) -> Result<Gradient, FixedError> {
        let RingGradient { sums, rows, table } = self.ring_gradient(beta, batch)?;
        Ok(table.gradient(&sums, rows))
    }
}
