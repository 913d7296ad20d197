//! Table 3a: the time of each building block at the paper's key length.
//!
//! Each block runs with both of its roles over a channel in memory, on a vector as long as one
//! mini-batch, one party after the other, again and again for a while; what counts is processor
//! time, which does not depend on what else the machine does. The paper prints sums over a whole training run, of which
//! it does not say how many calls they are; here a run is as many batches as its table 3b counts
//! iterations.

use super::Options;
use super::clock::processor_seconds;
use super::sheet::{Sheet, SheetLayout};
use super::training::{KEY_BITS, printed_iterations};
use heda::failure::{Failure, Kind};
use heda::local_job::PAPER_BATCH_ROWS as BATCH_ROWS;
use heda_blocks::channel::Channel;
use heda_crypto::random::Randomness;
use heda_learn::bundled::{Bundle, Coding};
use heda_paper::blocks::exchange_rsa_to_paillier::Terms;
use heda_paper::blocks::power::PowerGrid;
use heda_paper::blocks::{
    BlockError, InputBits, addition, dot_product, exchange_keys, exchange_rsa_to_paillier,
    multiplication, power, subtraction,
};
use heda_paper::hazmat_rsa::RsaPrivateKey;
use heda_paper::integer::{Integer, Natural};
use heda_paper::paillier::{KeySize, PrivateKey};
use rand_core::{CryptoRng, Rng};
use std::time::{Duration, Instant};

pub(super) static LAYOUT: SheetLayout = SheetLayout {
    name: "table3a",
    columns: &[
        "dataset",
        "block",
        "key_bits",
        "repeat",
        "features",
        "batch_rows",
        "iterations",
        "calls",
        "processor_milliseconds_batch",
    ],
};

/// The blocks in the order of the paper's table.
pub(super) const BLOCKS: [&str; 7] = [
    "addition",
    "subtraction",
    "dot product",
    "multiplication",
    "power function",
    "exchange 1",
    "exchange 2",
];

/// Bits of the numbers that are added and multiplied.
const BITS: InputBits = InputBits { alice: 64, bob: 64 };
const PATIENCE: Duration = Duration::from_secs(60);
/// Seconds that a block is repeated for.
const ENOUGH: f64 = 0.5;

fn bug(error: impl std::fmt::Display) -> Failure {
    Failure::new(Kind::Bug, error)
}

/// Measures what is missing.
pub(super) fn run(options: &Options) -> Result<(), Failure> {
    let mut sheet = Sheet::open(&options.out, &LAYOUT)?;
    let mut bench = None;
    let repeats = if options.quick { 1 } else { 3 };
    for repeat in 0..repeats {
        for bundle in Bundle::ALL {
            for block in BLOCKS {
                let key = [
                    bundle.name().to_owned(),
                    block.to_owned(),
                    KEY_BITS.to_string(),
                    repeat.to_string(),
                ];
                sheet.complete(options.seed, &key, || {
                    let bench = match &mut bench {
                        Some(bench) => bench,
                        none => none.insert(Bench::new(options.seed)?),
                    };
                    let features = bundle.schema(Coding::Paper).columns().len();
                    let (calls, took) = bench.time(block, features)?;
                    Ok(vec![
                        features.to_string(),
                        BATCH_ROWS.to_string(),
                        printed_iterations(bundle).to_string(),
                        calls.to_string(),
                        format!("{:.3}", 1000.0 * took.as_secs_f64()),
                    ])
                })?;
            }
        }
    }
    Ok(())
}

/// The keys of both parties.
struct Bench {
    alice: PrivateKey,
    bob: PrivateKey,
    rsa: RsaPrivateKey,
    randomness: Randomness,
}

impl Bench {
    fn new(seed: u64) -> Result<Self, Failure> {
        let randomness = Randomness::seeded(seed).party("building blocks");
        let mut rng = randomness.fork("keys", 0).map_err(bug)?;
        let bench = Self {
            alice: PrivateKey::generate(KeySize::Bits2048, &mut rng).map_err(bug)?,
            bob: PrivateKey::generate(KeySize::Bits2048, &mut rng).map_err(bug)?,
            rsa: RsaPrivateKey::generate(KeySize::Bits2048, &mut rng).map_err(bug)?,
            randomness,
        };
        // Tables of powers are made with the first number, before the clock runs.
        for key in [&bench.alice, &bench.bob] {
            let one = key.public().plaintext(1i64).map_err(bug)?;
            key.encrypt(&one, &mut rng).map_err(bug)?;
            key.public().encrypt(&one, &mut rng).map_err(bug)?;
        }
        Ok(bench)
    }

    /// How many calls a batch makes, and how long they take.
    fn time(&self, block: &str, features: usize) -> Result<(usize, Duration), Failure> {
        let rng = self.randomness.fork(block, features as u64);
        let mut rng = rng.map_err(bug)?;
        let timed = match block {
            "addition" => self.addition(&mut rng),
            "subtraction" => self.subtraction(&mut rng),
            "dot product" => self.dot_product(features, &mut rng),
            "multiplication" => self.multiplication(&mut rng),
            "power function" => self.power(features, &mut rng),
            "exchange 1" => self.exchange_cryptosystems(&mut rng),
            _ => self.exchange_keys(&mut rng),
        };
        timed.map_err(bug)
    }

    fn addition(&self, rng: &mut impl CryptoRng) -> Result<(usize, Duration), BlockError> {
        let (a, b) = (integers(BATCH_ROWS, rng), integers(BATCH_ROWS, rng));
        let b = self.encrypted(&b, rng)?;
        let alice = addition::Alice::new(&self.alice, BITS)?;
        let bob = addition::Bob::new(self.alice.public(), BITS)?;
        timed(BATCH_ROWS, |to_bob, to_alice| {
            alice.vector(to_bob, &a, rng)?;
            bob.vector_encrypted(to_alice, &b).map(drop)
        })
    }

    fn subtraction(&self, rng: &mut impl CryptoRng) -> Result<(usize, Duration), BlockError> {
        let (a, b) = (integers(BATCH_ROWS, rng), integers(BATCH_ROWS, rng));
        let b = self.encrypted(&b, rng)?;
        let alice = subtraction::Alice::new(&self.alice, BITS)?;
        let bob = subtraction::Bob::new(self.alice.public(), BITS)?;
        timed(BATCH_ROWS, |to_bob, to_alice| {
            alice.vector(to_bob, &a, rng)?;
            bob.vector_encrypted(to_alice, &b).map(drop)
        })
    }

    /// One product of a row and the coefficients for every row.
    fn dot_product(
        &self,
        features: usize,
        rng: &mut impl CryptoRng,
    ) -> Result<(usize, Duration), BlockError> {
        let (a, b) = (integers(features, rng), integers(features, rng));
        let alice = dot_product::Alice::new(&self.alice, BITS, features)?;
        let bob = dot_product::Bob::new(self.alice.public(), BITS, features)?;
        timed(BATCH_ROWS, |to_bob, to_alice| {
            for _ in 0..BATCH_ROWS {
                alice.vector(to_bob, &a, rng)?;
                bob.vector(to_alice, &b)?;
            }
            Ok(())
        })
    }

    fn multiplication(&self, rng: &mut impl CryptoRng) -> Result<(usize, Duration), BlockError> {
        let (a, b) = (naturals(BATCH_ROWS, rng), naturals(BATCH_ROWS, rng));
        let key = self.rsa.public();
        let b = key.encrypt_batch(&b)?;
        let alice = multiplication::Alice::new(key, BITS)?;
        let bob = multiplication::Bob::new(key, BITS)?;
        timed(BATCH_ROWS, |to_bob, to_alice| {
            alice.vector(to_bob, &a)?;
            bob.vector(to_alice, &b).map(drop)
        })
    }

    /// e^{β·x} for every row: all features in one call.
    fn power(
        &self,
        features: usize,
        rng: &mut impl CryptoRng,
    ) -> Result<(usize, Duration), BlockError> {
        let grid = PowerGrid::new(24, 0.0, 1.0)?;
        let mut share = || f64::from(rng.next_u32() % 101) / 100.0;
        let bases: Vec<f64> = (0..features).map(|_| share()).collect();
        let exponents: Vec<f64> = (0..features).map(|_| 4.0 * share() - 2.0).collect();
        let alice = power::Alice::new(self.rsa.public(), grid);
        let bob = power::Bob::new(self.rsa.public(), grid);
        timed(BATCH_ROWS, |to_bob, to_alice| {
            for _ in 0..BATCH_ROWS {
                alice.vector(to_bob, &bases)?;
                bob.vector(to_alice, &exponents)?;
            }
            Ok(())
        })
    }

    fn exchange_cryptosystems(
        &self,
        rng: &mut impl CryptoRng,
    ) -> Result<(usize, Duration), BlockError> {
        let terms = Terms {
            lowest_bits: 0,
            highest_bits: 64,
            blinding_bits: 256,
        };
        let numbers = self
            .rsa
            .public()
            .encrypt_batch(&naturals(BATCH_ROWS, rng))?;
        let (rsa, paillier) = (self.rsa.public(), self.alice.public());
        let alice = exchange_rsa_to_paillier::Alice::new(&self.rsa, &self.alice, terms)?;
        let bob = exchange_rsa_to_paillier::Bob::new(rsa, paillier, terms)?;
        timed(BATCH_ROWS, |to_bob, to_alice| {
            let waiting = bob.send(to_alice, &numbers, rng)?;
            alice.answer(to_bob, BATCH_ROWS, rng)?;
            for exchanged in waiting.receive(to_alice)? {
                exchanged.finish(paillier)?;
            }
            Ok(())
        })
    }

    /// One packed gradient a batch, as in training.
    fn exchange_keys(&self, rng: &mut impl CryptoRng) -> Result<(usize, Duration), BlockError> {
        let bits = 1024;
        let numbers = self.encrypted(&integers(1, rng), rng)?;
        let (alices, bobs) = (self.alice.public(), self.bob.public());
        let alice = exchange_keys::Alice::new(&self.alice, bobs, bits)?;
        let bob = exchange_keys::Bob::new(alices, bobs, bits)?;
        timed(1, |to_bob, to_alice| {
            let waiting = bob.send(to_alice, &numbers, rng)?;
            alice.answer(to_bob, 1, rng)?;
            waiting.finish(to_alice).map(drop)
        })
    }

    fn encrypted(
        &self,
        numbers: &[Integer],
        rng: &mut impl CryptoRng,
    ) -> Result<Vec<heda_paper::paillier::Ciphertext>, BlockError> {
        let key = self.alice.public();
        let plain = numbers.iter().map(|n| Ok(key.plaintext(n.clone())?));
        let plain = plain.collect::<Result<Vec<_>, BlockError>>()?;
        Ok(self.alice.encrypt_batch(&plain, rng)?)
    }
}

/// Repeats a batch until the clock, which counts hundredths of a second, has moved far enough.
fn timed(
    calls: usize,
    mut batch: impl FnMut(&mut Channel, &mut Channel) -> Result<(), BlockError>,
) -> Result<(usize, Duration), BlockError> {
    let began = Instant::now();
    // Where processor time is not known, the time that has passed.
    let clock = || processor_seconds().unwrap_or_else(|| began.elapsed().as_secs_f64());
    let start = clock();
    let mut batches = 0;
    while batches == 0 || clock() - start < ENOUGH {
        let (mut to_bob, mut to_alice) = Channel::pair(PATIENCE);
        batch(&mut to_bob, &mut to_alice)?;
        batches += 1;
    }
    let spent = (clock() - start) / f64::from(batches);
    Ok((calls, Duration::from_secs_f64(spent)))
}

fn naturals(count: usize, rng: &mut impl Rng) -> Vec<Natural> {
    (0..count).map(|_| Natural::from(rng.next_u64())).collect()
}

fn integers(count: usize, rng: &mut impl Rng) -> Vec<Integer> {
    naturals(count, rng)
        .into_iter()
        .map(Integer::from)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_block_runs() {
        let mut rng = Randomness::seeded(1).fork("keys", 0).unwrap();
        let bench = Bench {
            alice: PrivateKey::generate_insecure_for_tests(1536, &mut rng).unwrap(),
            bob: PrivateKey::generate_insecure_for_tests(1536, &mut rng).unwrap(),
            rsa: RsaPrivateKey::generate_insecure_for_tests(1536, &mut rng).unwrap(),
            randomness: Randomness::seeded(1),
        };
        for block in BLOCKS {
            let (calls, took) = bench.time(block, 3).unwrap();
            assert_eq!(
                calls,
                if block == "exchange 2" { 1 } else { BATCH_ROWS },
                "{block}"
            );
            assert!(took > Duration::ZERO);
        }
    }
}
