//! Runs a target on its seeds, its regressions and mutations of the seeds.

use crate::corpus::Corpus;
use crate::mutate::{Mutator, SplitMix};
use peak_alloc::PeakAlloc;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

/// No input makes a decoder take more memory than this. Inputs are shorter than a megabyte.
/// Tests run side by side and share the count, so there is room for several decoders.
const MEMORY_LIMIT: usize = 512 << 20;

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
    /// A target whose seeds must all be accepted. More of them may lie in the corpus.
    pub fn new(seeds: Vec<Vec<u8>>, decode: impl Fn(&[u8]) -> Verdict + 'static) -> Self {
        Self {
            seeds,
            regressions: Vec::new(),
            short_run: 3000,
            decode: Box::new(decode),
        }
    }

    /// Adds what the corpus has for this target.
    pub fn with_corpus(mut self, corpus: Corpus) -> Self {
        self.seeds.extend(corpus.seeds);
        self.regressions.extend(corpus.regressions);
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
    /// The decoder took too much memory; holds the input as hex.
    Greedy(String),
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NoSeeds => f.write_str("the target has no seeds"),
            Self::SeedRejected(hex) => write!(f, "a seed was refused: {hex}"),
            Self::Panicked(hex) => write!(f, "the decoder panicked on: {hex}"),
            Self::Greedy(hex) => write!(f, "the decoder took too much memory for: {hex}"),
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
    let before = MEMORY.current_usage();
    MEMORY.reset_peak_usage();
    let verdict = catch_unwind(AssertUnwindSafe(|| (target.decode)(input)))
        .map_err(|_| Failure::Panicked(to_hex(input)))?;
    match MEMORY.peak_usage().saturating_sub(before) > MEMORY_LIMIT {
        true => Err(Failure::Greedy(to_hex(input))),
        false => Ok(verdict),
    }
}

fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::corpus::from_hex;

    /// A decoder with another bug: it makes room for what is announced.
    fn generous(input: &[u8]) -> Verdict {
        let announced = input.first().map_or(0, |&length| usize::from(length) << 24);
        std::hint::black_box(Vec::<u8>::with_capacity(announced));
        Verdict::Accepted
    }

    #[test]
    fn greed_is_found() {
        let target = Target::new(vec![vec![1]], generous);
        let failure = run(&target, 1, Limit::Iterations(1000)).unwrap_err();
        assert!(matches!(failure, Failure::Greedy(_)), "{failure}");
    }

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
        let corpus = Corpus {
            seeds: Vec::new(),
            regressions: vec![from_hex(&hex).unwrap()],
        };
        let again = Target::new(vec![vec![2, 7, 7]], trusting).with_corpus(corpus);
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
