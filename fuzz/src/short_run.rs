//! The test of every target: seeds, regressions, and seeds with a few edits made by `proptest`. It
//! needs the stable compiler only. What looks for new paths is libFuzzer: see `README.md`.

use crate::driver::{Target, Verdict};
use peak_alloc::PeakAlloc;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestRng, TestRunner};
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

/// No input makes a decoder take more memory than this. Inputs are shorter than a megabyte.
/// Tests run side by side and share the count, so there is room for several decoders.
const MEMORY_LIMIT: usize = 512 << 20;

/// How often a decoder accepted and refused an edited seed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Summary {
    pub(crate) accepted: u32,
    pub(crate) rejected: u32,
}

/// Runs a target; its failure says what went wrong with which input, as hex.
pub(crate) fn run(target: &Target) -> Result<Summary, String> {
    if target.seeds.is_empty() {
        return Err("the target has no seeds".into());
    }
    for seed in &target.seeds {
        if decode(target, seed)? == Verdict::Rejected {
            return Err(format!("a seed was refused: {}", to_hex(seed)));
        }
    }
    for input in &target.regressions {
        decode(target, input)?;
    }
    let counts = Cell::new(Summary::default());
    let outcome = runner(target.short_run).run(&edited(&target.seeds), |input| {
        let mut now = counts.get();
        match decode(target, &input).map_err(TestCaseError::fail)? {
            Verdict::Accepted => now.accepted += 1,
            Verdict::Rejected => now.rejected += 1,
        }
        counts.set(now);
        Ok(())
    });
    match outcome {
        Ok(()) => Ok(counts.get()),
        Err(failure) => Err(failure.to_string()),
    }
}

/// The same inputs in every run.
fn runner(cases: u32) -> TestRunner {
    let config = Config {
        cases,
        failure_persistence: None,
        ..Config::default()
    };
    let random = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    TestRunner::new_with_rng(config, random)
}

/// A seed in which up to four ranges are replaced by other bytes: flipped and planted bytes, other
/// numbers in text, insertions, cuts.
fn edited(seeds: &[Vec<u8>]) -> impl Strategy<Value = Vec<u8>> + use<> {
    let length = prop_oneof![8 => 0..=8_usize, 1 => Just(usize::MAX)];
    let byte = prop_oneof![
        prop::sample::select(&b"\0\x01\x7f\x80\xff"[..]),
        prop::sample::select(&b"0123456789-.e"[..]),
        any::<u8>(),
    ];
    let edit = (any::<Index>(), length, vec(byte, 0..=8));
    let seed = prop::sample::select(seeds.to_vec());
    (seed, vec(edit, 1..=4)).prop_map(|(mut input, edits)| {
        for (at, length, bytes) in edits {
            let from = at.index(input.len() + 1);
            let to = from.saturating_add(length).min(input.len());
            input.splice(from..to, bytes);
        }
        input
    })
}

fn decode(target: &Target, input: &[u8]) -> Result<Verdict, String> {
    let before = MEMORY.current_usage();
    MEMORY.reset_peak_usage();
    let verdict = catch_unwind(AssertUnwindSafe(|| target.decode(input)))
        .map_err(|_| format!("the decoder panicked on: {}", to_hex(input)))?;
    match MEMORY.peak_usage().saturating_sub(before) > MEMORY_LIMIT {
        true => Err(format!(
            "the decoder took too much memory for: {}",
            to_hex(input)
        )),
        false => Ok(verdict),
    }
}

fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A decoder with a bug: it makes room for what is announced.
fn generous(input: &[u8]) -> Verdict {
    let announced = input.first().map_or(0, |&length| usize::from(length) << 24);
    std::hint::black_box(Vec::<u8>::with_capacity(announced));
    Verdict::Accepted
}

#[test]
fn greed_is_found() {
    let failure = run(&Target::new(vec![vec![1]], generous)).unwrap_err();
    assert!(failure.contains("too much memory"), "{failure}");
}

/// A decoder with another bug: it trusts the length field.
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
    let failure = run(&Target::new(vec![vec![2, 7, 7]], trusting)).unwrap_err();
    let (_, rest) = failure.split_once("the decoder panicked on: ").unwrap();
    let hex = rest.split(|c: char| !c.is_ascii_hexdigit()).next().unwrap();
    let corpus = crate::corpus::Corpus {
        seeds: Vec::new(),
        regressions: vec![crate::corpus::from_hex(hex).unwrap()],
    };
    let again = Target::new(vec![vec![2, 7, 7]], trusting).with_corpus(corpus);
    let second = run(&again.short_run(0)).unwrap_err();
    assert_eq!(second, format!("the decoder panicked on: {hex}"));
}

#[test]
fn missing_and_invalid_seeds_are_told() {
    let refuse = |_: &[u8]| Verdict::Rejected;
    let none = run(&Target::new(vec![], refuse));
    assert_eq!(none, Err("the target has no seeds".into()));
    let bad = run(&Target::new(vec![vec![0xab]], refuse));
    assert_eq!(bad, Err("a seed was refused: ab".into()));
}

#[test]
fn runs_are_deterministic_and_counted() {
    let parity = |input: &[u8]| match input.len() % 2 {
        0 => Verdict::Accepted,
        _ => Verdict::Rejected,
    };
    let target = Target::new(vec![vec![1; 8], vec![2; 40]], parity).short_run(500);
    let first = run(&target).unwrap();
    assert_eq!(first, run(&target).unwrap());
    assert_eq!(first.accepted + first.rejected, 500);
    assert!(first.rejected > 0 && first.accepted > 0);
}

#[test]
fn seeds_are_cut_extended_and_edited_in_place() {
    let strategy = edited(&[b"rows = 17".to_vec(), vec![]]);
    let mut runner = runner(1);
    let mut next = || strategy.new_tree(&mut runner).unwrap().current();
    let inputs: Vec<Vec<u8>> = (0..3000).map(|_| next()).collect();
    let some = |is: &dyn Fn(&[u8]) -> bool| inputs.iter().any(|input| is(input));
    assert!(some(&|input| input.starts_with(b"rows") && input.len() < 8));
    assert!(some(&|input| input.len() > 20));
    assert!(some(
        &|input| input.len() == 9 && input.starts_with(b"rows = ")
    ));
    assert!(some(&|input| input
        .windows(2)
        .any(|pair| pair == [0xff; 2])));
}
