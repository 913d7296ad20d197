//! Rows on the fixed-point grid: how a provider orders and cuts its rows, what it publishes, and
//! how both sides read a release.

use crate::codec::Malformed;
use crate::description::Share;
use crate::engine::Part;
use chacha20::ChaCha20Rng;
use heda_crypto::random::{NoRandomness, Randomness};
use heda_dp::column::ColumnSpec;
use heda_learn::data::{Dataset, Feature};
use heda_learn::grid::Grid;
use heda_learn::split::shuffle;
use rand_core::{Rng, SeedableRng};
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

/// Which rows train and which are held out, in the job's order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RowOrder {
    pub(crate) training: Vec<usize>,
    pub(crate) held_out: Vec<usize>,
}

impl RowOrder {
    /// Shuffles all rows and sets a share apart, rounded down.
    pub(crate) fn draw(rows: usize, share: Share, seed: &RowSeed) -> Self {
        let mut rng = seed.generator();
        let mut order: Vec<usize> = (0..rows).collect();
        shuffle(&mut order, &mut rng);
        let held = share.of(rows as u64) as usize;
        let training = order.split_off(held);
        Self {
            training,
            held_out: order,
        }
    }

    /// Shuffles all persons and sets a share of them apart, rounded down, with all of their rows; whose
    /// row each one is, by number. Of a person that is held out one row is counted, which the seed
    /// chooses: so replacing a person moves counts as replacing a row would, whatever number of rows
    /// it has. Its other rows are not used.
    pub(crate) fn draw_persons(persons: &[u32], share: Share, seed: &RowSeed) -> Self {
        let mut rng = seed.generator();
        let mut rows: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
        for (row, person) in persons.iter().enumerate() {
            rows.entry(*person).or_default().push(row);
        }
        let mut order: Vec<Vec<usize>> = rows.into_values().collect();
        shuffle(&mut order, &mut rng);
        let held = share.of(order.len() as u64) as usize;
        let mut training = order.split_off(held).concat();
        shuffle(&mut training, &mut rng);
        let one = |mut rows: Vec<usize>| {
            shuffle(&mut rows, &mut rng);
            rows.first().copied()
        };
        Self {
            training,
            held_out: order.into_iter().filter_map(one).collect(),
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

/// Orders the rows of a job, and says which of them are held out. Who knows it knows to which row a
/// place in a batch belongs.
#[derive(Clone)]
pub struct RowSeed(Zeroizing<[u8; 32]>);

impl RowSeed {
    /// A seed for rows whose order need not outlive the process.
    pub fn fresh(randomness: &Randomness) -> Result<Self, NoRandomness> {
        let mut seed = Zeroizing::new([0; 32]);
        randomness.fork("row order", 0)?.fill_bytes(seed.as_mut());
        Ok(Self(seed))
    }

    fn generator(&self) -> ChaCha20Rng {
        ChaCha20Rng::from_seed(*self.0)
    }
}

impl From<[u8; 32]> for RowSeed {
    fn from(seed: [u8; 32]) -> Self {
        Self(Zeroizing::new(seed))
    }
}

impl PartialEq for RowSeed {
    fn eq(&self, other: &Self) -> bool {
        self.0.ct_eq(&*other.0).into()
    }
}

impl Eq for RowSeed {}

impl fmt::Debug for RowSeed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RowSeed(..)")
    }
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

    /// All rows of a person are on one side, and one of each person that is held out is counted.
    #[test]
    fn persons_are_trained_on_or_held_out() {
        // One to four rows a person.
        let persons: Vec<u32> = (0..20).flat_map(|p| vec![p; p as usize % 4 + 1]).collect();
        let quarter = Share::new(0.25).unwrap();
        let mut counted = std::collections::BTreeSet::new();
        for seed in 0..200 {
            let order = RowOrder::draw_persons(&persons, quarter, &[seed; 32].into());
            assert_eq!(
                order,
                RowOrder::draw_persons(&persons, quarter, &[seed; 32].into())
            );
            let of = |row: &usize| persons[*row];
            let mut held: Vec<u32> = order.held_out.iter().map(of).collect();
            held.sort_unstable();
            held.dedup();
            assert_eq!((held.len(), order.held_out.len()), (5, 5));
            let trained: Vec<u32> = order.training.iter().map(of).collect();
            assert!(held.iter().all(|person| !trained.contains(person)));
            let rows_of_held: usize = held.iter().map(|p| *p as usize % 4 + 1).sum();
            assert_eq!(trained.len() + rows_of_held, persons.len());
            counted.extend(order.held_out);
        }
        // Any row of a person may be the one.
        assert_eq!(counted.len(), persons.len());
    }

    #[test]
    fn debug_output_shows_no_seed() {
        let seed = RowSeed::from([171; 32]);
        assert_eq!(format!("{seed:?}"), "RowSeed(..)");
        assert_eq!(
            (seed == [171; 32].into(), seed == [172; 32].into()),
            (true, false)
        );
    }

    #[test]
    fn every_row_is_used_once_and_the_order_depends_on_the_seed() {
        let quarter = Share::new(0.25).unwrap();
        let order = RowOrder::draw(10, quarter, &[1; 32].into());
        assert_eq!(order.held_out.len(), 2);
        let mut all = [order.training.clone(), order.held_out.clone()].concat();
        all.sort_unstable();
        assert_eq!(all, (0..10).collect::<Vec<_>>());
        assert_eq!(order, RowOrder::draw(10, quarter, &[1; 32].into()));
        assert_ne!(order, RowOrder::draw(10, quarter, &[2; 32].into()));
    }
}
