//! Table 3a: the time of each building block at the paper's key length.
//!
//! Each block runs with both of its roles over a channel in memory, on a vector as long as one
//! mini-batch, one party after the other, again and again for a while; what counts is processor
//! time, which does not depend on what else the machine does. Inputs are encrypted in every call; or
//! they lie encrypted with whoever computes, as in training, and only what is done with them is
//! timed. The paper prints sums over a whole training run, of which
//! it does not say how many calls they are; here a run is as many batches as its table 3b counts
//! iterations.

use super::Options;
use super::clock::processor_seconds;
use super::sheet::{Sheet, SheetLayout};
use super::training::printed_iterations;
use heda::Error;
use heda_blocks::channel::Channel;
use heda_crypto::random::Randomness;
use heda_learn::bundled::{Bundle, Coding};
use heda_paper::blocks::exchange_rsa_to_paillier::Terms;
use heda_paper::blocks::power::PowerGrid;
use heda_paper::blocks::{
    BlockError, InputBits, addition, dot_product, exchange_keys, exchange_rsa_to_paillier,
    multiplication, power, subtraction,
};
use heda_paper::engine::{BATCH_ROWS, KEY_BITS};
use heda_paper::hazmat_rsa::RsaPrivateKey;
use heda_paper::integer::{Integer, Natural};
use heda_paper::paillier::{Ciphertext, KeySize, PrivateKey};
use rand_core::{CryptoRng, Rng};
use std::time::{Duration, Instant};

pub(super) static LAYOUT: SheetLayout = SheetLayout {
    name: "table3a",
    columns: &[
        "dataset",
        "block",
        "inputs",
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

/// Whether inputs are encrypted in every call, or before.
pub(super) const FRESH: &str = "fresh";
pub(super) const ENCRYPTED: &str = "encrypted";

/// Bits of the numbers that are added and multiplied.
const BITS: InputBits = InputBits { alice: 64, bob: 64 };
/// Bits of the weights in a dot product of encrypted numbers: the paper's numbers have 32 ("the length of
/// each dimension is 32 bits"), of which it keeps two decimal places.
const WEIGHTS: InputBits = InputBits { alice: 64, bob: 32 };
const PATIENCE: Duration = Duration::from_secs(60);
/// Seconds that a block is repeated for.
const ENOUGH: f64 = 0.5;

fn bug(error: impl std::fmt::Display) -> Error {
    Error::bug(error.to_string())
}

/// Measures what is missing.
pub(super) fn run(options: &Options) -> Result<(), Error> {
    let mut sheet = Sheet::open(&options.out, &LAYOUT)?;
    let mut bench = None;
    let repeats = if options.quick { 1 } else { 3 };
    for repeat in 0..repeats {
        for bundle in Bundle::ALL {
            for (block, inputs) in BLOCKS.iter().flat_map(|b| [(*b, FRESH), (*b, ENCRYPTED)]) {
                let key = [
                    bundle.name().to_owned(),
                    block.to_owned(),
                    inputs.to_owned(),
                    KEY_BITS.to_string(),
                    repeat.to_string(),
                ];
                sheet.complete(options.seed, &key, || {
                    let bench = match &mut bench {
                        Some(bench) => bench,
                        none => none.insert(Bench::new(options.seed)?),
                    };
                    let features = bundle.schema(Coding::Paper).columns().len();
                    let (calls, took) = bench.time(block, inputs, features)?;
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

/// How many calls a batch makes, and how long they take.
type Timed = Result<(usize, Duration), BlockError>;

/// The keys of both parties.
struct Bench {
    alice: PrivateKey,
    bob: PrivateKey,
    rsa: RsaPrivateKey,
    randomness: Randomness,
}

impl Bench {
    fn new(seed: u64) -> Result<Self, Error> {
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
    fn time(&self, block: &str, inputs: &str, features: usize) -> Result<(usize, Duration), Error> {
        let rng = self.randomness.fork(block, features as u64);
        let mut rng = rng.map_err(bug)?;
        let timed = match (block, inputs) {
            ("addition", FRESH) => self.addition(&mut rng),
            ("addition", _) => self.addition_of_encrypted(&mut rng),
            ("subtraction", FRESH) => self.subtraction(&mut rng),
            ("subtraction", _) => self.subtraction_of_encrypted(&mut rng),
            ("dot product", FRESH) => self.dot_product(features, &mut rng),
            ("dot product", _) => self.dot_product_of_encrypted(&mut rng),
            ("multiplication", FRESH) => self.multiplication(&mut rng),
            ("multiplication", _) => self.multiplication_of_encrypted(&mut rng),
            ("power function", FRESH) => self.power(features, &mut rng),
            ("power function", _) => self.power_of_encrypted(features, &mut rng),
            // Both exchanges begin with numbers that are encrypted.
            ("exchange 1", _) => self.exchange_cryptosystems(&mut rng),
            _ => self.exchange_keys(&mut rng),
        };
        timed.map_err(bug)
    }

    fn addition(&self, rng: &mut impl CryptoRng) -> Timed {
        let (a, b) = (integers(BATCH_ROWS, rng), integers(BATCH_ROWS, rng));
        let b = self.encrypted(&b, rng)?;
        let alice = addition::Alice::new(&self.alice, BITS)?;
        let bob = addition::Bob::new(self.alice.public(), BITS)?;
        timed(BATCH_ROWS, |to_bob, to_alice| {
            alice.vector(to_bob, &a, rng)?;
            bob.vector_encrypted(to_alice, &b).map(drop)
        })
    }

    fn subtraction(&self, rng: &mut impl CryptoRng) -> Timed {
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
    fn dot_product(&self, features: usize, rng: &mut impl CryptoRng) -> Timed {
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

    fn multiplication(&self, rng: &mut impl CryptoRng) -> Timed {
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
    fn power(&self, features: usize, rng: &mut impl CryptoRng) -> Timed {
        let grid = PowerGrid::new(24, 0.0, 1.0)?;
        let (bases, exponents) = bases_and_exponents(features, rng);
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

    fn exchange_cryptosystems(&self, rng: &mut impl CryptoRng) -> Timed {
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
    fn exchange_keys(&self, rng: &mut impl CryptoRng) -> Timed {
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

    fn addition_of_encrypted(&self, rng: &mut impl CryptoRng) -> Timed {
        let [a, b] = self.encrypted_pairs(rng)?;
        let bob = addition::Bob::new(self.alice.public(), BITS)?;
        timed(BATCH_ROWS, |_, _| bob.combine(&a, &b).map(drop))
    }

    fn subtraction_of_encrypted(&self, rng: &mut impl CryptoRng) -> Timed {
        let [a, b] = self.encrypted_pairs(rng)?;
        let bob = subtraction::Bob::new(self.alice.public(), BITS)?;
        timed(BATCH_ROWS, |_, _| bob.combine(&a, &b).map(drop))
    }

    /// One product a batch, as in training: every row's encrypted quotient times its blinding, summed.
    fn dot_product_of_encrypted(&self, rng: &mut impl CryptoRng) -> Timed {
        let [a, _] = self.encrypted_pairs(rng)?;
        let weight = |_| Integer::from(Natural::from(u64::from(rng.next_u32())));
        let b: Vec<Integer> = (0..BATCH_ROWS).map(weight).collect();
        let bob = dot_product::Bob::new(self.alice.public(), WEIGHTS, BATCH_ROWS)?;
        timed(1, |_, _| bob.combine(&a, &b).map(drop))
    }

    fn multiplication_of_encrypted(&self, rng: &mut impl CryptoRng) -> Timed {
        let key = self.rsa.public();
        let a = key.encrypt_batch(&naturals(BATCH_ROWS, rng))?;
        let b = key.encrypt_batch(&naturals(BATCH_ROWS, rng))?;
        let bob = multiplication::Bob::new(key, BITS)?;
        timed(BATCH_ROWS, |_, _| bob.combine(&a, &b).map(drop))
    }

    fn power_of_encrypted(&self, features: usize, rng: &mut impl CryptoRng) -> Timed {
        let grid = PowerGrid::new(24, 0.0, 1.0)?;
        let (bases, exponents) = bases_and_exponents(features, rng);
        let factors = bases.iter().map(|&base| grid.factors(base));
        let factors = factors.collect::<Result<Vec<_>, _>>()?.concat();
        let factors = self.rsa.public().encrypt_batch(&factors)?;
        let bob = power::Bob::new(self.rsa.public(), grid);
        timed(BATCH_ROWS, |_, _| {
            (0..BATCH_ROWS).try_for_each(|_| bob.combine(&factors, &exponents).map(drop))
        })
    }

    /// Encrypted numbers of both parties.
    fn encrypted_pairs(
        &self,
        rng: &mut impl CryptoRng,
    ) -> Result<[Vec<Ciphertext>; 2], BlockError> {
        let (a, b) = (integers(BATCH_ROWS, rng), integers(BATCH_ROWS, rng));
        Ok([self.encrypted(&a, rng)?, self.encrypted(&b, rng)?])
    }

    fn encrypted(
        &self,
        numbers: &[Integer],
        rng: &mut impl CryptoRng,
    ) -> Result<Vec<Ciphertext>, BlockError> {
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
) -> Timed {
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

/// Columns of a row between 0 and 1, and coefficients between −2 and 2.
fn bases_and_exponents(features: usize, rng: &mut impl Rng) -> (Vec<f64>, Vec<f64>) {
    let mut share = || f64::from(rng.next_u32() % 101) / 100.0;
    let bases = (0..features).map(|_| share()).collect();
    let exponents = (0..features).map(|_| 4.0 * share() - 2.0).collect();
    (bases, exponents)
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
            for inputs in [FRESH, ENCRYPTED] {
                let (calls, took) = bench.time(block, inputs, 3).unwrap();
                let expected = match (block, inputs) {
                    ("exchange 2", _) | ("dot product", ENCRYPTED) => 1,
                    _ => BATCH_ROWS,
                };
                assert_eq!(calls, expected, "{block}, {inputs}");
                assert!(took > Duration::ZERO);
            }
        }
    }
}
