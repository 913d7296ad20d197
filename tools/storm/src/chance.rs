//! Numbers that look random and come again with the same seed (SplitMix64, Steele and others 2014).

use std::time::Duration;

/// A source of numbers.
#[derive(Debug, Clone)]
pub(crate) struct Chance(u64);

impl Chance {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `limit`.
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        match limit {
            0 => 0,
            limit => (self.next() % limit as u64) as usize,
        }
    }

    /// One of these.
    pub(crate) fn of<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.below(all.len())]
    }

    /// A pause of at most so many milliseconds.
    pub(crate) fn pause(&mut self, most: u64) -> Duration {
        Duration::from_millis(self.next() % most.max(1))
    }

    /// Changes a message: flips, cuts, lengthens, repeats, empties or replaces it.
    pub(crate) fn mutate(&mut self, bytes: &mut Vec<u8>) {
        let place = self.below(bytes.len());
        match self.below(8) {
            0 => bytes.truncate(place),
            1 => bytes.extend_from_within(place..),
            2 => bytes.clear(),
            3 => bytes.insert(place, self.next() as u8),
            4 => *bytes = (0..self.below(5000)).map(|_| self.next() as u8).collect(),
            5 => bytes[place..].fill(0xff),
            6 => bytes.extend(vec![b'9'; self.below(300_000)]),
            _ => {
                for _ in 0..=self.below(4) {
                    let place = self.below(bytes.len());
                    if let Some(byte) = bytes.get_mut(place) {
                        *byte ^= 1 << self.below(8);
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_the_same_numbers_and_every_mutation_ends() {
        let mut a = Chance::new(7);
        let mut b = Chance::new(7);
        for length in [0, 1, 2, 100] {
            for _ in 0..200 {
                let (mut one, mut two) = (vec![b'x'; length], vec![b'x'; length]);
                a.mutate(&mut one);
                b.mutate(&mut two);
                assert_eq!(one, two);
            }
        }
    }
}
