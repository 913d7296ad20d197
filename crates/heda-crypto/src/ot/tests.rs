//! Transfers from setup to result, hostile messages, and statistics of what each side sees.

use super::*;
use crate::random::Randomness;
use rand_core::Rng;

fn session(seed: u64) -> (LookupChooser, LookupSender) {
    let mut rng = Randomness::seeded(seed).fork("session", 0).unwrap();
    let (setup, first) = ChooserSetup::start(&mut rng);
    assert_eq!(first.len(), SETUP_FIRST_BYTES);
    let (sender, second) = LookupSender::setup(&first, &mut rng).unwrap();
    assert_eq!(second.len(), SETUP_SECOND_BYTES);
    (setup.finish(&second).unwrap(), sender)
}

fn random_bytes(seed: u64, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    let mut rng = Randomness::seeded(seed).fork("bytes", 0).unwrap();
    rng.fill_bytes(&mut bytes);
    bytes
}

fn random_indices(seed: u64, rows: usize, bits: u32) -> Vec<u16> {
    let bytes = random_bytes(seed, 2 * rows);
    let wide = bytes
        .chunks_exact(2)
        .map(|b| u16::from_le_bytes([b[0], b[1]]));
    wide.map(|index| index & ((1 << bits) - 1)).collect()
}

#[test]
fn lookups_equal_the_clear_tables() {
    let (mut chooser, mut sender) = session(1);
    let shapes = [
        (0, 8, 6),
        (1, 1, 1),
        (1, 12, 16),
        (5, 12, 7),
        (128, 8, 6),
        (300, 3, 8),
        (1000, 8, 6),
        (257, 1, 16),
    ];
    for (call, (rows, bits, bytes)) in shapes.into_iter().enumerate() {
        let table_bytes = bytes << bits;
        let tables = random_bytes(call as u64, rows * table_bytes);
        let mut indices = random_indices(call as u64, rows, bits);
        indices.iter_mut().take(1).for_each(|index| *index = 0);
        indices
            .iter_mut()
            .skip(1)
            .take(1)
            .for_each(|index| *index = (1 << bits) - 1);
        let (request, pending) = chooser.request(&indices, bits).unwrap();
        assert_eq!(
            request.len(),
            8 + 16 * bits as usize * rows.next_multiple_of(8)
        );
        let fill = |row: usize, table: &mut [u8]| {
            table.copy_from_slice(&tables[row * table_bytes..][..table_bytes]);
        };
        let answer = sender.answer(&request, rows, bits, bytes, fill).unwrap();
        assert_eq!(answer.len(), rows * table_bytes);
        assert_eq!(pending.answer_bytes(bytes), Ok(answer.len()));
        let strings = pending.finish(&answer, bytes).unwrap();
        for (row, index) in indices.iter().enumerate() {
            let entry = row * table_bytes + usize::from(*index) * bytes;
            assert_eq!(strings[row * bytes..][..bytes], tables[entry..][..bytes]);
        }
    }
}

#[test]
fn every_index_of_a_table_reads_its_own_entry() {
    let (mut chooser, mut sender) = session(2);
    let indices: Vec<u16> = (0..256).collect();
    let (request, pending) = chooser.request(&indices, 8).unwrap();
    let number = |row: usize, v: usize| (row as u64) << 40 | (v as u64) << 4 | 1 << 60;
    let fill = |row: usize, table: &mut [u64]| {
        table
            .iter_mut()
            .enumerate()
            .for_each(|(v, entry)| *entry = number(row, v));
    };
    let answer = sender.answer_u48(&request, 256, 8, fill).unwrap();
    let numbers = pending.finish_u48(&answer).unwrap();
    for (row, got) in numbers.iter().enumerate() {
        assert_eq!(*got, number(row, row) & ((1 << 48) - 1));
    }
}

#[test]
fn random_transfers_give_the_chosen_key() {
    let (mut chooser, mut sender) = session(3);
    for count in [0, 1, 127, 128, 129, 1000] {
        let choices: Vec<bool> = random_bytes(7, count).iter().map(|b| b & 1 == 1).collect();
        let (request, chosen) = chooser.random(&choices).unwrap();
        let pairs = sender.random(&request, count).unwrap();
        assert_eq!((chosen.len(), pairs.len()), (count, count));
        for ((choice, key), pair) in choices.iter().zip(&chosen).zip(&pairs) {
            assert_eq!(key.key(), &pair.keys()[usize::from(*choice)]);
            assert_ne!(key.key(), &pair.keys()[usize::from(!*choice)]);
        }
    }
}

#[test]
fn the_same_randomness_gives_the_same_messages() {
    let run = || {
        let (mut chooser, mut sender) = session(4);
        let (request, _) = chooser.request(&random_indices(4, 300, 8), 8).unwrap();
        let answer = sender
            .answer(&request, 300, 8, 6, |_, table| table.fill(1))
            .unwrap();
        (request, answer)
    };
    assert_eq!(run(), run());
}

#[test]
fn nothing_repeats_from_call_to_call() {
    let (mut chooser, mut sender) = session(5);
    let mut seen = Vec::new();
    for _ in 0..3 {
        let (request, _) = chooser.request(&[9; 256], 8).unwrap();
        let answer = sender.answer(&request, 256, 8, 16, |_, _| ()).unwrap();
        seen.push((request, answer));
    }
    for (n, (request, answer)) in seen.iter().enumerate() {
        for (later_request, later_answer) in &seen[n + 1..] {
            assert!(
                request[8..]
                    .chunks(16)
                    .zip(later_request[8..].chunks(16))
                    .all(|(a, b)| a != b)
            );
            assert!(
                answer
                    .chunks(16)
                    .zip(later_answer.chunks(16))
                    .all(|(a, b)| a != b)
            );
        }
    }
    // An answer that masks zeros is the pads: all of them differ, within a row and across rows.
    let pads: std::collections::BTreeSet<&[u8]> = seen
        .iter()
        .flat_map(|(_, answer)| answer.chunks(16))
        .collect();
    assert_eq!(pads.len(), 3 * 256 * 256);
}

/// Standard deviations by which the number of ones is off a half.
fn bias(bytes: impl IntoIterator<Item = u8>) -> f64 {
    let (mut ones, mut bits) = (0u64, 0u64);
    for byte in bytes {
        ones += u64::from(byte.count_ones());
        bits += 8;
    }
    (ones as f64 - bits as f64 / 2.0).abs() / (bits as f64 / 4.0).sqrt()
}

#[test]
fn unchosen_strings_look_random_to_the_chooser() {
    let (mut chooser, mut sender) = session(6);
    let indices = random_indices(6, 512, 8);
    let (request, _) = chooser.request(&indices, 8).unwrap();
    let answer = sender
        .answer(&request, 512, 8, 6, |_, table| table.fill(0x5a))
        .unwrap();
    // What remains when the chooser removes the pad of the chosen entry from its neighbours,
    // which differ in one index bit, is the difference of two pads.
    let mut differences = Vec::new();
    for (table, index) in answer.chunks_exact(6 * 256).zip(&indices) {
        let entry = |v: u16| &table[6 * usize::from(v)..][..6];
        for bit in 0..8 {
            let pair = entry(*index).iter().zip(entry(index ^ 1 << bit));
            differences.extend(pair.map(|(a, b)| a ^ b));
        }
    }
    assert!(bias(differences.iter().copied()) < 4.5);
    assert!(bias(answer.iter().copied()) < 4.5);
    let mut counts = [0u32; 256];
    answer
        .iter()
        .for_each(|byte| counts[usize::from(*byte)] += 1);
    let expected = answer.len() as f64 / 256.0;
    let square = |count: &u32| (f64::from(*count) - expected).powi(2) / expected;
    let chi_square: f64 = counts.iter().map(square).sum();
    // 255 degrees of freedom: mean 255, deviation 22.6.
    assert!((140.0..370.0).contains(&chi_square), "{chi_square}");
}

#[test]
fn choices_do_not_show_in_the_request() {
    let (mut chooser, _) = session(7);
    let indices = random_indices(8, 4096, 8);
    let (request, _) = chooser.request(&indices, 8).unwrap();
    assert!(bias(request[8..].iter().copied()) < 4.5);
    // Column c of a strip covers bits 0..8 of 128 rows: it must agree with the choices on half.
    let mut agreement = vec![Vec::new(); 128];
    for (strip, indices) in request[8..]
        .chunks_exact(128 * 128)
        .zip(indices.chunks(128))
    {
        for (column, bytes) in strip.chunks_exact(128).enumerate() {
            for (bit, word) in bytes.chunks_exact(16).enumerate() {
                for (byte, indices) in word.iter().zip(indices.chunks(8)) {
                    let choice = |(n, v): (usize, &u16)| ((v >> bit & 1) as u8) << n;
                    let choices: u8 = indices.iter().enumerate().map(choice).sum();
                    agreement[column].push(byte ^ choices);
                }
            }
        }
    }
    assert_eq!(
        agreement.iter().map(Vec::len).sum::<usize>(),
        request.len() - 8
    );
    for column in agreement {
        assert!(bias(column) < 5.0);
    }
    let (zeros, _) = chooser.request(&[0; 4096], 8).unwrap();
    assert!(bias(zeros[8..].iter().copied()) < 4.5);
}

#[test]
fn wrong_lengths_and_positions_are_refused_and_change_nothing() {
    let (mut chooser, mut sender) = session(8);
    let (request, pending) = chooser.request(&[1; 10], 4).unwrap();
    let answer =
        |sender: &mut LookupSender, request: &[u8]| sender.answer(request, 10, 4, 6, |_, _| ());
    for spoilt in [&request[1..], &request[..0], &[&request[..], &[0]].concat()] {
        let error = answer(&mut sender, spoilt).unwrap_err();
        assert!(matches!(
            error,
            OtError::WrongLength {
                what: "the request",
                ..
            }
        ));
    }
    let mut moved = request.clone();
    moved[0] ^= 1;
    let error = answer(&mut sender, &moved).unwrap_err();
    assert_eq!(
        error,
        OtError::OutOfStep {
            got: 1,
            expected: 0
        }
    );

    let mut right = answer(&mut sender, &request).unwrap();
    let again = answer(&mut sender, &request).unwrap_err();
    assert_eq!(
        again,
        OtError::OutOfStep {
            got: 0,
            expected: 4
        }
    );
    right.pop();
    let error = pending.finish(&right, 6).unwrap_err();
    assert!(matches!(
        error,
        OtError::WrongLength {
            what: "the answer",
            got: 959,
            ..
        }
    ));
    let error = sender.random(&[0; 23], 1).unwrap_err();
    assert!(matches!(error, OtError::WrongLength { .. }));
}

#[test]
fn impossible_parameters_are_told_apart() {
    let (mut chooser, mut sender) = session(9);
    assert_eq!(chooser.request(&[0], 0).unwrap_err(), OtError::IndexBits(0));
    assert_eq!(
        chooser.request(&[0], 13).unwrap_err(),
        OtError::IndexBits(13)
    );
    let outside = chooser.request(&[255, 256], 8).unwrap_err();
    assert_eq!(outside, OtError::IndexOutOfRange { row: 1 });
    let mut refuse = |rows, bytes| sender.answer(&[], rows, 12, bytes, |_, _| ()).unwrap_err();
    assert_eq!(refuse(1, 0), OtError::EntryBytes(0));
    assert_eq!(refuse(1, 17), OtError::EntryBytes(17));
    assert!(matches!(
        refuse(MAX_ROWS, 16),
        OtError::TooMuchAtOnce { .. }
    ));
    assert!(matches!(
        refuse(MAX_ROWS + 1, 1),
        OtError::TooMuchAtOnce { .. }
    ));
    let (_, pending) = chooser.request(&[1], 8).unwrap();
    assert_eq!(
        pending.finish(&[], 17).unwrap_err(),
        OtError::EntryBytes(17)
    );
}

#[test]
fn a_tampered_answer_changes_only_its_own_row() {
    let (mut chooser, mut sender) = session(10);
    let (request, pending) = chooser.request(&[3; 20], 4).unwrap();
    let mut answer = sender
        .answer(&request, 20, 4, 2, |_, table| table.fill(7))
        .unwrap();
    answer[5 * 32..6 * 32]
        .iter_mut()
        .for_each(|byte| *byte ^= 0x80);
    let strings = pending.finish(&answer, 2).unwrap();
    for (row, string) in strings.chunks(2).enumerate() {
        assert_eq!(string, if row == 5 { [0x87; 2] } else { [7; 2] });
    }
}

#[test]
fn debug_output_shows_no_secret() {
    let (mut chooser, sender) = session(11);
    let (_, pending) = chooser.request(&[5], 4).unwrap();
    let text = format!("{chooser:?} {sender:?} {pending:?}");
    assert!(text.contains("position") && !text.contains("indices") && !text.contains("pads"));
}
