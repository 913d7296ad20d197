//! The engine against its oracle, what it refuses, and how it is broken.

use super::*;
use crate::attacks::{BLINDED, Recording, cells_from_dictionaries, row_from_gradient};
use crate::blocks::power::Exponents;
use heda_blocks::channel::Channel;
use heda_crypto::random::Randomness;
use heda_learn::bundled::{Bundle, Coding};
use heda_learn::gradient::{Batch, GradientSource};
use heda_learn::optimise::{Method, Optimiser, Settings};
use heda_learn::oracle::score;
use rand_core::Rng;
use std::ops::ControlFlow;
use std::time::Duration;

fn settings(key_bits: usize, limit: f64) -> local::Settings {
    local::Settings {
        batches: 2,
        positives: vec![1],
        key_bits,
        limits: Limits {
            spread: limit,
            score: limit,
        },
        record: false,
        insecure_test_keys: true,
    }
}

const OPEN: Column = Column::Published { fraction_bits: 7 };

/// Random rows with the corners of the grid among them.
fn random_rows(columns: &[Column], rows: usize, seed: u64) -> PaperRows {
    let mut rng = Randomness::seeded(seed).fork("rows", 0).unwrap();
    let mut uniform = || f64::from(rng.next_u32() % 101) / 100.0;
    let mut values: Vec<f64> = (0..rows * columns.len()).map(|_| uniform()).collect();
    values[..columns.len()].fill(0.0);
    values[columns.len()..2 * columns.len()].fill(1.0);
    let labels = (0..rows).map(|row| u32::from(row % 3 == 0)).collect();
    PaperRows::new(columns.to_vec(), &values, labels).unwrap()
}

/// Descends for some iterations and compares every gradient with the oracle's.
fn agrees_with_the_oracle(columns: &[Column], key_bits: usize, iterations: u64) {
    let parts = [random_rows(columns, 9, 1), random_rows(columns, 6, 2)];
    let settings = settings(key_bits, 16.0);
    let randomness = Randomness::seeded(5);
    let run = local::run(&parts, &settings, &randomness, |remotes| {
        let mut oracle = ClearPaper::new(&parts, 1);
        let mut beta: Vec<f64> = (0..=columns.len()).map(|j| 1.5 - 1.3 * j as f64).collect();
        let rounding = remotes[0].plan().rounding();
        let mut asked = 0;
        for iteration in 0..iterations {
            let batch = Batch::new(iteration as usize % 2, 2);
            let found = PaperSource::new(remotes, 0, &mut asked).gradient(&beta, batch)?;
            let Ok(expected) = oracle.gradient(&beta, batch);
            assert_eq!(found.rows, expected.rows);
            for (found, expected) in found.sum.iter().zip(&expected.sum) {
                let error = (found - expected).abs();
                assert!(error <= rounding * 8.0, "{found} for {expected}: {error}");
            }
            let step = 0.8 / found.rows as f64;
            beta.iter_mut()
                .zip(&found.sum)
                .for_each(|(b, g)| *b -= step * g);
        }
        for remote in remotes.iter() {
            assert_eq!(
                remote.channel().traffic()["train"].round_trips,
                3 * iterations
            );
        }
        Ok(())
    });
    run.unwrap();
}

#[test]
fn gradients_equal_the_oracle_with_all_columns_encrypted() {
    agrees_with_the_oracle(&[Column::Encrypted; 3], 640, 4);
}

#[test]
fn gradients_equal_the_oracle_with_mixed_rows() {
    agrees_with_the_oracle(&[OPEN, Column::Encrypted, OPEN], 512, 3);
}

#[test]
fn gradients_equal_the_oracle_with_nothing_encrypted() {
    agrees_with_the_oracle(&[OPEN, OPEN], 512, 2);
}

#[test]
fn gradients_equal_the_oracle_at_2048_bits() {
    let parts = [random_rows(&[Column::Encrypted; 4], 4, 3)];
    let settings = local::Settings {
        batches: 1,
        limits: Limits::default(),
        insecure_test_keys: false,
        ..settings(2048, 64.0)
    };
    let run = local::run(&parts, &settings, &Randomness::seeded(6), |remotes| {
        let beta = [0.5, -18.0, 18.28, 7.0, 1.0 / 128.0];
        let found = PaperSource::new(remotes, 0, &mut 0).gradient(&beta, Batch::FULL)?;
        let Ok(expected) = ClearPaper::new(&parts, 1).gradient(&beta, Batch::FULL);
        for (found, expected) in found.sum.iter().zip(&expected.sum) {
            assert!((found - expected).abs() <= 4.0 * remotes[0].plan().rounding());
        }
        Ok(())
    });
    run.unwrap();
}

#[test]
fn coefficients_beyond_the_plan_are_refused_before_anything_is_sent() {
    let parts = [random_rows(&[Column::Encrypted], 6, 4)];
    let run = local::run(
        &parts,
        &settings(512, 8.0),
        &Randomness::seeded(7),
        |remotes| {
            let before = remotes[0].channel().total_traffic().bytes_sent;
            for beta in [
                [9.0, 0.0],
                [0.0, -9.0],
                [0.0, f64::NAN],
                [f64::INFINITY, 0.0],
                [0.0, 7.9],
            ] {
                let refused =
                    PaperSource::new(remotes, 0, &mut 0).gradient(&beta, Batch::new(0, 2));
                let refused = refused.unwrap_err();
                assert!(
                    matches!(refused, PaperError::Range { .. }),
                    "{beta:?}: {refused}"
                );
                assert!(!refused.blames_peer());
            }
            assert_eq!(remotes[0].channel().total_traffic().bytes_sent, before);
            Ok(())
        },
    );
    run.unwrap();
}

#[test]
fn jobs_that_do_not_fit_are_refused_before_a_key_is_made() {
    let wide = [random_rows(&[Column::Encrypted; 60], 8, 5)];
    let settings = local::Settings {
        insecure_test_keys: false,
        ..settings(2048, 64.0)
    };
    let refused = local::run(&wide, &settings, &Randomness::seeded(8), |_| Ok(()));
    assert!(matches!(
        refused.unwrap_err(),
        PaperError::Capacity(CapacityError::Encrypted { iota: 60, .. })
    ));
    let single = local::Settings {
        batches: 8,
        ..settings
    };
    let rows = [random_rows(&[Column::Encrypted], 8, 5)];
    let refused = local::run(&rows, &single, &Randomness::seeded(8), |_| Ok(()));
    assert!(matches!(
        refused.unwrap_err(),
        PaperError::Capacity(CapacityError::Batch { rows: 1 })
    ));
}

/// BCWD in three parts, and the rows that are held out.
fn bcwd() -> (Vec<PaperRows>, Vec<(Vec<f64>, u32)>) {
    let (data, _) = Bundle::Bcwd.table(Coding::Paper).unwrap();
    let part = |offset: usize| {
        let rows: Vec<usize> = (offset..data.rows()).step_by(5).collect();
        let values: Vec<f64> = rows
            .iter()
            .flat_map(|row| data.row(*row).to_vec())
            .collect();
        let labels = rows.iter().map(|row| data.labels()[*row]).collect();
        PaperRows::new(vec![Column::Encrypted; data.width()], &values, labels).unwrap()
    };
    let held_out = (4..data.rows()).step_by(5);
    let held_out = held_out.map(|row| (data.row(row).to_vec(), data.labels()[row]));
    ((0..3).map(part).collect(), held_out.collect())
}

fn accuracy(beta: &[f64], rows: &[(Vec<f64>, u32)]) -> f64 {
    let right = rows
        .iter()
        .filter(|(x, y)| (score(beta, x) > 0.0) == (*y == 1))
        .count();
    right as f64 / rows.len() as f64
}

#[test]
fn training_reaches_the_accuracy_of_the_oracle() {
    let (parts, held_out) = bcwd();
    let dimension = parts[0].columns().len() + 1;
    let batches = 13;
    let method = Method::Descent {
        rate: 3.0,
        minimum_rate: 0.0,
        decay: 0.0,
        batches,
    };
    let optimise = Settings {
        method,
        c: None,
        tolerance: 0.0,
        max_iterations: 8,
    };
    let settings = local::Settings {
        batches,
        ..settings(1024, 24.0)
    };
    let go_on = |_: &Optimiser| ControlFlow::Continue(());
    let run = local::run(&parts, &settings, &Randomness::seeded(9), |remotes| {
        let mut optimiser = Optimiser::new(optimise.clone(), dimension).unwrap();
        let mut asked = 0;
        optimiser
            .run(&mut PaperSource::new(remotes, 0, &mut asked), go_on)
            .unwrap();
        Ok(optimiser.beta().to_vec())
    });
    let mut oracle = Optimiser::new(optimise.clone(), dimension).unwrap();
    oracle.run(&mut ClearPaper::new(&parts, 1), go_on).unwrap();
    let found = accuracy(&run.unwrap().result, &held_out);
    let expected = accuracy(oracle.beta(), &held_out);
    assert!((found - expected).abs() <= 0.01, "{found} for {expected}");
    assert!(expected > 0.85, "{expected}");
}

const BETA: [f64; 4] = [0.5, 1.25, -2.5, 0.75];

fn record(common_blinding: bool) -> (PaperRows, Recording) {
    let rows = random_rows(&[Column::Encrypted; 3], 12, 6);
    let settings = local::Settings {
        batches: 1,
        record: true,
        ..settings(640, 16.0)
    };
    let randomness = Randomness::seeded(10);
    let recording = Recording::new(&rows, &BETA, &settings, &randomness, common_blinding);
    (rows, recording.unwrap())
}

/// Why the default engine exists, first reason: the data user reads every encrypted cell.
#[test]
fn attack_the_data_user_reads_every_cell_from_the_dictionary() {
    let (rows, recording) = record(false);
    let view = recording.users_view();
    let found = cells_from_dictionaries(view, rows.len(), recording.plan().grid).unwrap();
    assert_eq!(found.len(), 3);
    for (column, found) in found.iter().enumerate() {
        let truth = (0..rows.len()).map(|row| Some(rows.row(row)[column]));
        assert_eq!(*found, truth.collect::<Vec<_>>());
    }
}

/// Second reason: with one blinding factor a batch, d + 1 rows give the coefficients away.
#[test]
fn attack_a_provider_solves_for_the_coefficients_if_blinding_is_common() {
    let found = record(true).1.coefficients_by_ratios().unwrap();
    for (found, truth) in found.iter().zip(&BETA[1..]) {
        assert!((found - truth).abs() < 1e-4, "{found} for {truth}");
    }
}

#[test]
fn fresh_blinding_defeats_the_attack_by_ratios() {
    let found = record(false).1.coefficients_by_ratios().unwrap();
    let errors = found.iter().zip(&BETA[1..]);
    let errors = errors.map(|(found, truth)| (found - truth).abs());
    assert!(errors.fold(0.0, f64::max) > 5.0, "{found:?}");
}

/// Third reason, and one that fresh blinding does not help against: a blinded product is divisible
/// by the factors that the provider made itself, and which ones they are spells the coefficients.
#[test]
fn attack_a_provider_reads_the_coefficients_from_divisors() {
    let (_, recording) = record(false);
    let exponents: Vec<f64> = BETA[1..].iter().map(|b| -b).collect();
    let written = Exponents::new(recording.plan().grid, &exponents).unwrap();
    let found = recording.coefficients_by_divisors().unwrap();
    assert_eq!(found.len(), 3);
    for (column, found) in found.iter().enumerate() {
        assert_eq!(*found, written.chosen(column).collect::<Vec<_>>());
    }
}

/// Fourth reason, against any engine that shows gradients: a batch of one row is the row.
#[test]
fn attack_a_gradient_of_one_row_is_the_row() {
    let rows = random_rows(&[Column::Encrypted; 3], 4, 8);
    for row in 0..4 {
        let batch = Batch::new(row, 4);
        let Ok(gradient) = ClearPaper::new(std::slice::from_ref(&rows), 1).gradient(&BETA, batch);
        let found = row_from_gradient(&gradient.sum).unwrap();
        for (found, truth) in found.iter().zip(rows.values(row)) {
            assert!((found - truth).abs() < 1e-12);
        }
    }
    assert!(row_from_gradient(&[0.0, 0.0]).is_none() && row_from_gradient(&[]).is_none());
}

#[test]
fn damaged_messages_blame_the_peer() {
    let rows = random_rows(&[Column::Encrypted], 4, 7);
    let settings = settings(512, 8.0);
    let shape = settings.shape(&rows);
    let randomness = Randomness::seeded(11);
    let mut rng = randomness.fork("keys", 0).unwrap();
    let keys = ProviderKeys::generate(&shape, &mut rng).unwrap();
    let own = PaperRemote::user_key(&shape, &mut rng).unwrap();
    let good_paillier = keys.paillier.public().to_bytes();
    let good_rsa = keys.rsa.public().to_bytes();
    let short = |bytes: &[u8]| bytes[..bytes.len() - 8].to_vec();
    let cells = (0..4).map(|row| rows.row(row)[0]);
    let grid = Plan::new(&shape).unwrap().grid;
    let dictionary = dictionary::encode(cells, grid, keys.rsa.public()).unwrap();
    let mut absent = dictionary.clone();
    absent[1] = 200;
    let mut many = dictionary.clone();
    many[0] = 102;
    let user_cases = [
        vec![(tag::PAILLIER_KEY, short(&good_paillier))],
        vec![
            (tag::PAILLIER_KEY, good_paillier.clone()),
            (tag::RSA_KEY, short(&good_rsa)),
        ],
        vec![(tag::DICTIONARY, absent)],
        vec![(tag::DICTIONARY, many)],
        vec![(tag::DICTIONARY, short(&dictionary))],
        vec![(tag::DICTIONARY, Vec::new())],
        vec![(tag::DICTIONARY, dictionary), (tag::LABELS, vec![1; 40])],
    ];
    for case in user_cases {
        let (mut peer, end) = Channel::pair(Duration::from_millis(200));
        if case[0].0 != tag::PAILLIER_KEY {
            peer.send(tag::PAILLIER_KEY, &good_paillier).unwrap();
            peer.send(tag::RSA_KEY, &good_rsa).unwrap();
        }
        case.iter()
            .for_each(|(tag, body)| peer.send(*tag, body).unwrap());
        let refused = PaperLink::set_up(
            end,
            shape.clone(),
            own.clone(),
            Vec::new(),
            randomness.clone(),
        );
        let refused = refused.unwrap_err();
        assert!(refused.blames_peer(), "{refused}");
    }
    let (mut peer, mut end) = Channel::pair(Duration::from_millis(200));
    peer.send(tag::USER_KEY, &own.public().to_bytes()).unwrap();
    let provider = PaperProvider::set_up(&mut end, shape, rows, keys, randomness.clone()).unwrap();
    for question in [vec![9, 0, 0, 0], vec![1, 0]] {
        peer.send(tag::QUESTION, &question).unwrap();
        let refused = provider.serve(&mut end).unwrap_err();
        assert!(refused.blames_peer(), "{refused}");
    }
    let zeros = vec![0; 17 + 2 * 64];
    peer.send(BLINDED, &zeros).unwrap();
    assert!(provider.gradient(&mut end, 0, 0).unwrap_err().blames_peer());
}

#[test]
fn leaks_are_said_in_sentences() {
    assert!(leaks().len() >= 5);
    assert!(
        leaks()
            .iter()
            .all(|leak| leak.ends_with('.') && !leak.contains("  "))
    );
}
