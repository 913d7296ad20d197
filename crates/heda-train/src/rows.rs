//! Rows on the fixed-point grid: how a provider orders and cuts its rows, what it publishes, and
//! how both sides read a release.

use crate::codec::Malformed;
use crate::engine::Part;
use heda_crypto::random::Randomness;
use heda_dp::column::ColumnSpec;
use heda_learn::data::{Dataset, Feature};
use heda_learn::grid::Grid;
use heda_learn::split::shuffle;
use rand_core::{Rng, SeedableRng};
use std::ops::Range;

/// Which rows train and which are held out, in the job's order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RowOrder {
    pub(crate) training: Vec<usize>,
    pub(crate) held_out: Vec<usize>,
}

impl RowOrder {
    /// Shuffles all rows and sets a share apart, rounded down.
    pub(crate) fn draw(rows: usize, holdout_permille: u32, seed: &[u8; 32]) -> Self {
        let mut rng = chacha20::ChaCha20Rng::from_seed(*seed);
        let mut order: Vec<usize> = (0..rows).collect();
        shuffle(&mut order, &mut rng);
        let held = (rows as u64 * u64::from(holdout_permille) / 1000) as usize;
        let training = order.split_off(held);
        Self {
            training,
            held_out: order,
        }
    }

    /// How many rows train and how many are held out.
    pub(crate) fn part(&self) -> Part {
        Part {
            rows: self.training.len(),
            held_out: self.held_out.len(),
        }
    }

    /// Training rows and held-out rows.
    pub(crate) fn cut(&self, data: &Dataset) -> (Dataset, Dataset) {
        (
            data.select_rows(&self.training),
            data.select_rows(&self.held_out),
        )
    }
}

/// A seed for the order of a job's rows when the rows' order need not outlive the process.
pub fn fresh_row_seed(
    randomness: &Randomness,
) -> Result<zeroize::Zeroizing<[u8; 32]>, heda_crypto::random::NoRandomness> {
    let mut seed = zeroize::Zeroizing::new([0; 32]);
    randomness.fork("row order", 0)?.fill_bytes(seed.as_mut());
    Ok(seed)
}

/// Values on the grid of 2^`bits` steps.
pub(crate) fn on_grid(values: &[f64], bits: u32) -> Vec<u32> {
    let grid = Grid::of_bits(bits);
    values.iter().map(|value| grid.point(*value)).collect()
}

/// The public domain of a feature as it is published: a category in one-hot coding by its level,
/// anything else on the grid.
pub(crate) fn domain(feature: &Feature, bits: u32) -> ColumnSpec {
    if feature.columns.len() > 1 {
        ColumnSpec::Levels {
            count: feature.columns.len() as u32,
        }
    } else {
        ColumnSpec::Grid { steps: 1 << bits }
    }
}

/// What is published of a feature, from grid values row by row: a grid value or a level.
pub(crate) fn to_publish(grid: &[u32], width: usize, columns: &Range<usize>) -> Vec<u32> {
    let rows = grid.chunks_exact(width);
    if columns.len() == 1 {
        return rows.map(|row| row[columns.start]).collect();
    }
    let level = |row: &[u32]| {
        let hot = row[columns.clone()]
            .iter()
            .enumerate()
            .max_by_key(|(_, value)| **value);
        hot.map_or(0, |(level, _)| level as u32)
    };
    rows.map(level).collect()
}

/// A release on the wire: two bytes a value, feature by feature.
pub(crate) fn release_to_bytes(columns: &[Vec<u32>]) -> Vec<u8> {
    columns
        .iter()
        .flatten()
        .flat_map(|&value| (value as u16).to_le_bytes())
        .collect()
}

/// Length of a release on the wire.
pub(crate) fn release_length(features: usize, rows: usize) -> usize {
    features.saturating_mul(rows).saturating_mul(2)
}

/// Reads a release back into encoded grid columns: for every row the columns of the published
/// features, in their order.
pub(crate) fn release_from_bytes(
    bytes: &[u8],
    features: &[&Feature],
    rows: usize,
    bits: u32,
) -> Result<Vec<u32>, Malformed> {
    let expected = release_length(features.len(), rows);
    if bytes.len() != expected {
        return Err(Malformed::Length {
            got: bytes.len(),
            expected,
        });
    }
    let width: usize = features.iter().map(|feature| feature.columns.len()).sum();
    let mut encoded = vec![0; rows * width];
    let mut offset = 0;
    let per_feature = features.iter().zip(bytes.chunks_exact((rows * 2).max(1)));
    for (feature, values) in per_feature {
        let largest = domain(feature, bits).largest();
        for (row, value) in values.chunks_exact(2).enumerate() {
            let value = u32::from(u16::from_le_bytes([value[0], value[1]]));
            if value > largest {
                let name = &feature.name;
                return Err(Malformed::Content(format!(
                    "{name}, row {row}: outside its domain"
                )));
            }
            let cells = &mut encoded[row * width + offset..][..feature.columns.len()];
            match cells {
                [cell] => *cell = value,
                levels => levels[value as usize] = 1 << bits,
            }
        }
        offset += feature.columns.len();
    }
    Ok(encoded)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn features() -> Vec<Feature> {
        let feature = |name: &str, columns, levels| Feature {
            name: String::from(name),
            columns,
            levels,
        };
        vec![feature("a", 0..1, None), feature("b", 1..4, Some(3))]
    }

    #[test]
    fn a_release_without_noise_reads_back_as_the_grid() {
        let grid = vec![7, 0, 256, 0, 256, 0, 0, 256];
        let features = features();
        let parts: Vec<_> = features
            .iter()
            .map(|f| to_publish(&grid, 4, &f.columns))
            .collect();
        assert_eq!(parts, [vec![7, 256], vec![1, 2]]);
        let chosen: Vec<&Feature> = features.iter().collect();
        let bytes = release_to_bytes(&parts);
        assert_eq!(release_from_bytes(&bytes, &chosen, 2, 8).unwrap(), grid);
    }

    #[test]
    fn values_outside_their_domain_are_refused() {
        let features = features();
        let chosen = [&features[1]];
        let outside = release_to_bytes(&[vec![3]]);
        assert!(matches!(
            release_from_bytes(&outside, &chosen, 1, 8),
            Err(Malformed::Content(_))
        ));
        assert!(matches!(
            release_from_bytes(&outside, &chosen, 2, 8),
            Err(Malformed::Length {
                got: 2,
                expected: 4
            })
        ));
    }

    #[test]
    fn every_row_is_used_once_and_the_order_depends_on_the_seed() {
        let order = RowOrder::draw(10, 250, &[1; 32]);
        assert_eq!(order.held_out.len(), 2);
        let mut all = [order.training.clone(), order.held_out.clone()].concat();
        all.sort_unstable();
        assert_eq!(all, (0..10).collect::<Vec<_>>());
        assert_eq!(order, RowOrder::draw(10, 250, &[1; 32]));
        assert_ne!(order, RowOrder::draw(10, 250, &[2; 32]));
    }
}
