//! What each party really sees, from transcripts: a provider's numbers are re-computed from its
//! own secrets, which a seeded run lets a test draw again.

use super::tag;
use super::tests::{dataset, houses_for, spec};
use crate::attacks::nearest_encryptions;
use crate::job::Quiet;
use crate::local::{self, LocalRun};
use heda_blocks::channel::Recorded;
use heda_crypto::lattice::SecretKey;
use heda_crypto::ot::{ChooserSetup, LookupSender};
use heda_crypto::random::Randomness;
use heda_learn::fixed::RING;
use heda_learn::loss::LossKind;

/// Tags of the lookup block's messages.
const ANSWER: u8 = 0x13;
const ITERATIONS: usize = 5;
const ROWS: usize = 320;

fn run(seed: u64) -> LocalRun {
    let mut spec = spec(LossKind::Logistic, 4, 1);
    spec.settings.max_iterations = ITERATIONS as u32;
    let parts = [dataset(400, 1), dataset(400, 2)];
    let randomness = Randomness::seeded(seed);
    let houses = houses_for(&parts, &randomness);
    local::run(&spec, &houses, &randomness, &mut Quiet, None, true).unwrap()
}

fn bodies(view: &[Recorded], tag: u8) -> Vec<&[u8]> {
    view.iter()
        .filter(|m| m.tag == tag && m.phase == "train")
        .map(|m| &m.body[..])
        .collect()
}

/// Masked scores and looked-up values of provider 1, as only it can compute them.
fn provider_numbers(run: &LocalRun, seed: u64) -> (Vec<u64>, Vec<u64>) {
    let own = Randomness::seeded(seed).party("provider-1");
    let user = Randomness::seeded(seed).party("user").party("provider-1");
    let key = SecretKey::generate(&mut own.fork("lattice keys", 0).unwrap()).unwrap();
    let (setup, first) = ChooserSetup::start(&mut own.fork("transfer keys", 0).unwrap());
    let (_, second) =
        LookupSender::setup(&first, &mut user.fork("transfer keys", 0).unwrap()).unwrap();
    let mut chooser = setup.finish(&second).unwrap();
    let view = &run.reports[0].view;
    let (mut scores, mut read) = (Vec::new(), Vec::new());
    for (message, answer) in bodies(view, tag::SCORES)
        .into_iter()
        .zip(bodies(view, ANSWER))
    {
        let masked = key.decrypt_scores(message, ROWS, 6).unwrap();
        let indices: Vec<u16> = masked.iter().map(|a| (a >> 40) as u16).collect();
        let (_, pending) = chooser.request(&indices, 8).unwrap();
        read.extend(pending.finish_u48(answer).unwrap());
        scores.extend(masked);
    }
    (scores, read)
}

/// Chi-square of 256 equally likely cells; with 255 degrees of freedom the mean is 255 and the
/// standard deviation 22.6.
fn chi_square(bytes: impl Iterator<Item = u8>) -> f64 {
    let mut counts = [0f64; 256];
    bytes.for_each(|byte| counts[usize::from(byte)] += 1.0);
    let expected = counts.iter().sum::<f64>() / 256.0;
    counts
        .iter()
        .map(|count| (count - expected).powi(2) / expected)
        .sum()
}

fn assert_uniform(what: &str, numbers: &[u64]) {
    for shift in [0, 8, 20, 32, 40] {
        let statistic = chi_square(numbers.iter().map(|n| (n >> shift) as u8));
        assert!(
            (255.0 - statistic).abs() < 5.0 * 22.6,
            "{what}, bits from {shift}: {statistic}"
        );
    }
}

#[test]
fn a_provider_sees_uniform_numbers_and_the_data_user_only_a_sum() {
    let (mut scores, mut read) = (Vec::new(), Vec::new());
    let mut single = Vec::new();
    let seeds: Vec<u64> = (100..106).collect();
    for &seed in &seeds {
        let run = run(seed);
        let (a, u) = provider_numbers(&run, seed);
        scores.extend(a);
        read.extend(u);
        for first in bodies(&run.outcome.providers[0].view, tag::GRADIENT) {
            let first = RING.decode(first, 7).unwrap();
            single.extend(first);
        }
    }
    assert_eq!(scores.len(), seeds.len() * ITERATIONS * ROWS);
    assert_eq!(read.len(), scores.len());
    assert_uniform("masked scores", &scores);
    assert_uniform("looked-up values", &read);
    // One provider's message is uniform because of its pairwise masks: every bit is a fair coin.
    assert_eq!(single.len(), seeds.len() * ITERATIONS * 7);
    let spread = (single.len() as f64).sqrt() / 2.0;
    for bit in 0..48 {
        let set = single.iter().filter(|n| **n >> bit & 1 == 1).count() as f64;
        assert!(
            (set - single.len() as f64 / 2.0).abs() < 5.0 * spread,
            "bit {bit}: {set}"
        );
    }
}

/// Comparing encryptions finds nothing, although the attacker may have any number encrypted under
/// the provider's key.
#[test]
fn attack_by_dictionary_does_no_better_than_guessing() {
    let seed = 107;
    let run = run(seed);
    let own = Randomness::seeded(seed).party("provider-1");
    let key = SecretKey::generate(&mut own.fork("lattice keys", 0).unwrap()).unwrap();
    let mut rng = Randomness::seeded(seed).fork("oracle", 0).unwrap();
    let view = &run.outcome.providers[0].view;
    let guesses = nearest_encryptions(view, ROWS, 6, 127, |number| {
        key.encrypt_matrix(&[number; 6 * ROWS], ROWS, 6, &mut rng)
    });
    let guesses = guesses.unwrap();
    assert_eq!((guesses.matches, guesses.nearest.len()), (0, 6 * ROWS));
    // Of 128 numbers each is nearest equally often: 15 of 1920 cells expected, deviation 3.9.
    let mut counts = [0i32; 128];
    guesses
        .nearest
        .iter()
        .for_each(|n| counts[*n as usize] += 1);
    assert!(
        counts.iter().all(|count| (0..=40).contains(count)),
        "{counts:?}"
    );
    let statistic = counts
        .iter()
        .map(|count| (f64::from(*count) - 15.0).powi(2) / 15.0);
    assert!(statistic.sum::<f64>() < 127.0 + 5.0 * 16.0);
}
