//! Random splits into rows to train on and rows to test on.

use chacha20::ChaCha20Rng;
use rand_core::{Rng, SeedableRng};

/// Row numbers of both parts, in random order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Split {
    /// Rows to train on.
    pub train: Vec<usize>,
    /// Rows held out.
    pub test: Vec<usize>,
}

impl Split {
    /// Holds out `share` of the rows (rounded, at least one on each side if there are two rows).
    pub fn random(rows: usize, share: f64, rng: &mut impl Rng) -> Self {
        let mut train: Vec<usize> = (0..rows).collect();
        shuffle(&mut train, rng);
        let wanted = (rows as f64 * share.clamp(0.0, 1.0)).round() as usize;
        let held = wanted.clamp(1.min(rows / 2), rows - 1.min(rows / 2));
        let test = train.split_off(rows - held);
        Self { train, test }
    }

    /// Split number `repeat` of an experiment with this seed. Every repeat can be made alone.
    pub fn seeded(rows: usize, share: f64, seed: u64, repeat: u64) -> Self {
        let mut rng = ChaCha20Rng::seed_from_u64(seed);
        rng.set_stream(repeat);
        Self::random(rows, share, &mut rng)
    }
}

/// Puts items in uniformly random order (Fisher and Yates).
pub fn shuffle<T>(items: &mut [T], rng: &mut impl Rng) {
    for end in (1..items.len()).rev() {
        items.swap(end, below(end as u64 + 1, rng) as usize);
    }
}

/// Uniform below `limit` (at least 1), by refusing the few values that would favour some results.
fn below(limit: u64, rng: &mut impl Rng) -> u64 {
    let unfair = limit.wrapping_neg() % limit;
    loop {
        let value = rng.next_u64();
        if value >= unfair {
            return value % limit;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_on_exactly_one_side() {
        for (rows, held) in [(699, 140), (10, 2), (2, 1), (3, 1), (1, 0), (0, 0)] {
            let Split { train, test } = Split::seeded(rows, 0.2, 1, 0);
            assert_eq!(test.len(), held, "of {rows}");
            let mut all = [train, test].concat();
            all.sort_unstable();
            assert_eq!(all, (0..rows).collect::<Vec<_>>());
        }
    }

    #[test]
    fn seeds_and_repeats_determine_the_split() {
        let split = |seed, repeat| Split::seeded(100, 0.2, seed, repeat);
        assert_eq!(split(1, 0), split(1, 0));
        assert_ne!(split(1, 0), split(1, 1));
        assert_ne!(split(1, 0), split(2, 0));
    }

    #[test]
    fn every_order_is_equally_likely() {
        let mut rng = ChaCha20Rng::seed_from_u64(3);
        let mut counts = std::collections::BTreeMap::new();
        for _ in 0..6000 {
            let mut items = [0, 1, 2];
            shuffle(&mut items, &mut rng);
            *counts.entry(items).or_insert(0u32) += 1;
        }
        // 1000 expected, deviation 29.
        assert_eq!(counts.len(), 6);
        assert!(
            counts.values().all(|c| c.abs_diff(1000) < 150),
            "{counts:?}"
        );
    }
}
