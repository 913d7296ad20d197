//! Where randomness comes from.
//!
//! A party holds one [`Randomness`] and forks a generator from it for every purpose. In
//! production each fork is seeded afresh by the operating system. Tests and experiments use a
//! seeded source: then a fork depends only on the seed, the purpose and the index, never on what
//! was drawn before, so a run that is resumed draws what the uninterrupted run would have drawn.

use chacha20::ChaCha20Rng;
use rand_core::SeedableRng;
use sha2::{Digest, Sha256};
use std::fmt;
use zeroize::Zeroizing;

/// A party's source of randomness.
#[derive(Clone)]
pub struct Randomness {
    seed: Option<Zeroizing<[u8; 32]>>,
    /// Purposes of a seeded source that have another seed.
    others: Vec<(String, Zeroizing<[u8; 32]>)>,
}

/// The operating system gave no randomness.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the operating system gave no randomness; nothing secret can be made without it")]
pub struct NoRandomness;

impl Randomness {
    /// Randomness of the operating system: the only source that protects anything.
    pub fn from_os() -> Self {
        Self {
            seed: None,
            others: Vec::new(),
        }
    }

    /// Reproducible randomness for tests and experiments. It protects nothing.
    pub fn seeded(seed: u64) -> Self {
        Self {
            seed: Some(of_number(seed)),
            others: Vec::new(),
        }
    }

    /// The same seeded source but for one purpose, which has another seed: tests see by it that what
    /// serves the purpose is really drawn. A source of the operating system stays as it is.
    pub fn except(mut self, purpose: &str, seed: u64) -> Self {
        if self.is_seeded() {
            self.others.push((purpose.to_owned(), of_number(seed)));
        }
        self
    }

    /// Whether this run can be reproduced, and therefore must be announced as unprotected.
    pub fn is_seeded(&self) -> bool {
        self.seed.is_some()
    }

    /// The source of another party of the same run.
    pub fn party(&self, name: &str) -> Self {
        Self {
            seed: self
                .seed
                .as_ref()
                .map(|seed| derive(seed, "party", name, 0)),
            others: self.others.clone(),
        }
    }

    /// A generator for one purpose and index.
    pub fn fork(&self, purpose: &str, index: u64) -> Result<ChaCha20Rng, NoRandomness> {
        let seed = match &self.seed {
            Some(seed) => {
                let other = self.others.iter().find(|(other, _)| other == purpose);
                let seed = other.map_or(seed, |(_, seed)| seed);
                derive(seed, "fork", purpose, index)
            }
            None => os_seed()?,
        };
        Ok(ChaCha20Rng::from_seed(*seed))
    }
}

fn of_number(seed: u64) -> Zeroizing<[u8; 32]> {
    let digest = Sha256::new()
        .chain_update(b"heda seeded run")
        .chain_update(seed.to_le_bytes());
    Zeroizing::new(digest.finalize().into())
}

fn os_seed() -> Result<Zeroizing<[u8; 32]>, NoRandomness> {
    let mut seed = Zeroizing::new([0u8; 32]);
    getrandom::fill(seed.as_mut()).map_err(|_| NoRandomness)?;
    Ok(seed)
}

fn derive(seed: &[u8; 32], kind: &str, name: &str, index: u64) -> Zeroizing<[u8; 32]> {
    let mut hash = Sha256::new();
    hash.update(seed);
    for part in [kind, name] {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    hash.update(index.to_le_bytes());
    Zeroizing::new(hash.finalize().into())
}

impl fmt::Debug for Randomness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_seeded() {
            "Randomness(seeded)"
        } else {
            "Randomness(os)"
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_core::Rng;

    #[test]
    fn seeded_forks_depend_on_purpose_index_and_party_only() {
        let source = Randomness::seeded(7);
        let draw = |s: &Randomness, p: &str, i| s.fork(p, i).unwrap().next_u64();
        let first = draw(&source, "mask", 3);
        assert_eq!(first, draw(&source, "mask", 3));
        assert_ne!(first, draw(&source, "mask", 4));
        assert_ne!(first, draw(&source, "noise", 3));
        assert_ne!(first, draw(&source.party("p1"), "mask", 3));
        assert_ne!(first, draw(&Randomness::seeded(8), "mask", 3));
    }

    #[test]
    fn one_purpose_may_have_another_seed() {
        let draw = |s: &Randomness, p: &str| s.fork(p, 3).unwrap().next_u64();
        let (source, other) = (
            Randomness::seeded(7),
            Randomness::seeded(7).except("mask", 8),
        );
        assert_ne!(draw(&source, "mask"), draw(&other, "mask"));
        assert_eq!(draw(&source, "noise"), draw(&other, "noise"));
        let [source, other] = [source, other].map(|source| source.party("p"));
        assert_ne!(draw(&source, "mask"), draw(&other, "mask"));
        assert_eq!(draw(&source, "noise"), draw(&other, "noise"));
        assert!(!Randomness::from_os().except("mask", 8).is_seeded());
    }

    #[test]
    fn os_forks_never_repeat_and_debug_hides_the_seed() {
        let source = Randomness::from_os();
        let mut a = source.fork("mask", 0).unwrap();
        let mut b = source.fork("mask", 0).unwrap();
        assert_ne!(a.next_u64(), b.next_u64());
        assert_eq!(format!("{:?}", Randomness::seeded(7)), "Randomness(seeded)");
    }
}
