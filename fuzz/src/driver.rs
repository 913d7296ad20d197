//! Runs a target on its seeds, its regressions and mutations of the seeds.

use crate::mutate::{Mutator, SplitMix};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

/// What a decoder said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The input was decoded.
    Accepted,
    /// The input was refused with an error.
    Rejected,
}

impl<T, E> From<Result<T, E>> for Verdict {
    fn from(result: Result<T, E>) -> Self {
        match result {
            Ok(_) => Self::Accepted,
            Err(_) => Self::Rejected,
        }
    }
}

type Decoder = Box<dyn Fn(&[u8]) -> Verdict>;

/// A decoder with valid encodings to start from.
pub struct Target {
    seeds: Vec<Vec<u8>>,
    regressions: Vec<Vec<u8>>,
    short_run: u64,
    decode: Decoder,
}

impl Target {
    /// A target whose seeds must all be accepted.
    pub fn new(seeds: Vec<Vec<u8>>, decode: impl Fn(&[u8]) -> Verdict + 'static) -> Self {
        Self {
            seeds,
            regressions: Vec::new(),
            short_run: 3000,
            decode: Box::new(decode),
        }
    }

    /// Adds an input, as hex, that once made the decoder panic.
    pub fn regression(mut self, hex: &str) -> Self {
        self.regressions.push(from_hex(hex));
        self
    }

    /// How many mutations the test tries; less than the usual 3000 for a slow decoder.
    pub fn short_run(mut self, iterations: u64) -> Self {
        self.short_run = iterations;
        self
    }

    /// The number of mutations that the test tries.
    pub fn short_run_length(&self) -> u64 {
        self.short_run
    }
}

/// When to stop mutating.
#[derive(Debug, Clone, Copy)]
pub enum Limit {
    /// After this many mutations.
    Iterations(u64),
    /// After this time.
    Time(Duration),
}

/// What a run did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Summary {
    /// Seeds, regressions and mutations together.
    pub executed: u64,
    /// Mutations that the decoder took.
    pub accepted: u64,
    /// Mutations that the decoder refused.
    pub rejected: u64,
}

/// Why a run failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    /// The target has nothing to mutate.
    NoSeeds,
    /// A valid encoding was refused; holds it as hex.
    SeedRejected(String),
    /// The decoder panicked; holds the input as hex.
    Panicked(String),
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NoSeeds => f.write_str("the target has no seeds"),
            Self::SeedRejected(hex) => write!(f, "a seed was refused: {hex}"),
            Self::Panicked(hex) => write!(f, "the decoder panicked on: {hex}"),
        }
    }
}

impl std::error::Error for Failure {}

/// Runs `target`; the same `seed` gives the same inputs.
pub fn run(target: &Target, seed: u64, limit: Limit) -> Result<Summary, Failure> {
    if target.seeds.is_empty() {
        return Err(Failure::NoSeeds);
    }
    let mut summary = Summary::default();
    for input in &target.seeds {
        summary.executed += 1;
        if decode(target, input)? == Verdict::Rejected {
            return Err(Failure::SeedRejected(to_hex(input)));
        }
    }
    for input in &target.regressions {
        summary.executed += 1;
        decode(target, input)?;
    }
    mutations(target, seed, limit, &mut summary)?;
    Ok(summary)
}

fn mutations(
    target: &Target,
    seed: u64,
    limit: Limit,
    summary: &mut Summary,
) -> Result<(), Failure> {
    let mut mutator = Mutator::new(&target.seeds, SplitMix::new(seed));
    let start = Instant::now();
    let mut done = 0;
    while match limit {
        Limit::Iterations(count) => done < count,
        Limit::Time(duration) => start.elapsed() < duration,
    } {
        match decode(target, &mutator.next_input())? {
            Verdict::Accepted => summary.accepted += 1,
            Verdict::Rejected => summary.rejected += 1,
        }
        done += 1;
    }
    summary.executed += done;
    Ok(())
}

fn decode(target: &Target, input: &[u8]) -> Result<Verdict, Failure> {
    catch_unwind(AssertUnwindSafe(|| (target.decode)(input)))
        .map_err(|_| Failure::Panicked(to_hex(input)))
}

fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn from_hex(hex: &str) -> Vec<u8> {
    let digit = |c: u8| {
        (c as char)
            .to_digit(16)
            .expect("a regression is written in hex") as u8
    };
    hex.as_bytes()
        .chunks_exact(2)
        .map(|pair| digit(pair[0]) << 4 | digit(pair[1]))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A decoder with a bug: it trusts the length field.
    fn trusting(input: &[u8]) -> Verdict {
        match input.first() {
            None => Verdict::Rejected,
            Some(&length) => {
                std::hint::black_box(input[1..][..usize::from(length)].len());
                Verdict::Accepted
            }
        }
    }

    #[test]
    fn a_bug_is_found_and_its_input_reproduces_it() {
        let target = Target::new(vec![vec![2, 7, 7]], trusting);
        let failure = run(&target, 1, Limit::Iterations(1000)).unwrap_err();
        let Failure::Panicked(hex) = failure else {
            panic!("the bug was not found: {failure}")
        };
        let again = Target::new(vec![vec![2, 7, 7]], trusting).regression(&hex);
        let second = run(&again, 1, Limit::Iterations(0)).unwrap_err();
        assert_eq!(second, Failure::Panicked(hex));
    }

    #[test]
    fn missing_and_invalid_seeds_are_told() {
        let refuse = |_: &[u8]| Verdict::Rejected;
        let none = run(&Target::new(vec![], refuse), 1, Limit::Iterations(1));
        assert_eq!(none, Err(Failure::NoSeeds));
        let bad = run(
            &Target::new(vec![vec![0xab]], refuse),
            1,
            Limit::Iterations(1),
        );
        assert_eq!(bad, Err(Failure::SeedRejected("ab".into())));
    }

    #[test]
    fn runs_are_deterministic_and_counted() {
        let parity = |input: &[u8]| match input.len() % 2 {
            0 => Verdict::Accepted,
            _ => Verdict::Rejected,
        };
        let target = Target::new(vec![vec![1; 8], vec![2; 40]], parity);
        let first = run(&target, 5, Limit::Iterations(500)).unwrap();
        assert_eq!(first, run(&target, 5, Limit::Iterations(500)).unwrap());
        assert_eq!(first.executed, 502);
        assert!(first.rejected > 0 && first.accepted > 0);
    }
}
