//! What an optimiser asks for. Optimisers never see rows: the clear-text oracle and the encrypted
//! engines stand behind the same trait.

use std::ops::Range;

/// Part `index` of `count` of everybody's rows. Each holder of rows takes its own share, so a
/// batch means the same to all of them without talking about rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Batch {
    index: usize,
    count: usize,
}

impl Batch {
    /// All rows.
    pub const FULL: Self = Self { index: 0, count: 1 };

    /// Part `index` of `count`.
    ///
    /// # Panics
    /// If `index` is not below `count`: batches are made by our own optimisers.
    pub fn new(index: usize, count: usize) -> Self {
        assert!(index < count, "batch {index} of {count}");
        Self { index, count }
    }

    /// Which part.
    pub fn index(self) -> usize {
        self.index
    }

    /// Of how many.
    pub fn count(self) -> usize {
        self.count
    }

    /// The part that the holder at a place among several takes for this batch: each begins elsewhere, so that
    /// batches have rows even where holders have fewer rows than there are batches.
    pub fn turned(self, place: usize) -> Self {
        let index = (self.index + place % self.count) % self.count;
        Self { index, ..self }
    }

    /// The rows of this batch at a holder of `rows` rows: parts differ by one row at most.
    pub fn share(self, rows: usize) -> Range<usize> {
        let cut = |part: usize| (rows as u128 * part as u128 / self.count as u128) as usize;
        cut(self.index)..cut(self.index + 1)
    }
}

/// The sum of gradients over a batch.
#[derive(Debug, Clone, PartialEq)]
pub struct Gradient {
    /// Σ loss'(z_i, y_i)·(1, x_i) over the rows of the batch: bias first, then a number a column.
    pub sum: Vec<f64>,
    /// Over how many rows.
    pub rows: usize,
}

/// Yields gradients of a loss that it knows, on rows that it does not show.
pub trait GradientSource {
    /// What can go wrong while asking the holders of the rows.
    type Error: std::error::Error + Send + Sync + 'static;

    /// Number of coefficients: the bias and one for each encoded column.
    fn dimension(&self) -> usize;

    /// The summed gradient over a batch at `beta` (bias first).
    fn gradient(&mut self, beta: &[f64], batch: Batch) -> Result<Gradient, Self::Error>;
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A hundred holders of ten rows, 64 batches: untwisted 54 batches would be empty.
    #[test]
    fn batches_of_many_small_holders_have_rows_if_each_begins_elsewhere() {
        let rows_of = |index: usize, turned: bool| -> usize {
            let part = |place| match turned {
                true => Batch::new(index, 64).turned(place),
                false => Batch::new(index, 64),
            };
            (0..100).map(|place| part(place).share(10).len()).sum()
        };
        assert!((0..64).all(|index| (14..=18).contains(&rows_of(index, true))));
        let empty = (0..64).filter(|index| rows_of(*index, false) == 0);
        assert_eq!(empty.count(), 54);
        assert_eq!(
            (0..64).map(|index| rows_of(index, true)).sum::<usize>(),
            1000
        );
        assert_eq!(Batch::FULL.turned(7), Batch::FULL);
    }

    #[test]
    fn batches_partition_the_rows_evenly() {
        for (rows, count) in [(10, 3), (7, 7), (3, 5), (0, 2), (32_561, 1000)] {
            let shares: Vec<_> = (0..count)
                .map(|i| Batch::new(i, count).share(rows))
                .collect();
            assert_eq!(shares[0].start, 0);
            assert_eq!(shares[count - 1].end, rows);
            assert!(shares.windows(2).all(|w| w[0].end == w[1].start));
            let sizes: Vec<_> = shares.iter().map(|s| s.len()).collect();
            assert!(sizes.iter().max().unwrap() - sizes.iter().min().unwrap() <= 1);
        }
    }
}
