//! Parties that cheat, and what each party sees: every strategy here is run against the real steps.

use super::payload::write_sums;
use super::provider::{ProviderAnswered, ProviderReady};
use super::rows::{Batch, Rows};
use super::shape::Shape;
use super::tests::{FIRST, Pair, encoding, pair};
use super::user::{UserAsked, UserChosen, UserReady, UserSum, whole_sums};
use super::{StepError, symbols};
use crate::closing::OpenSum;
use heda_crypto::bits::BitReader;
use heda_crypto::random::Randomness;
use heda_crypto::transfer::TransferError;
use heda_learn::loss::LossKind;
use heda_learn::resident::{CodeTable, Resolution, Weights, plain_payload};
use rand_core::Rng;
use zeroize::Zeroizing;

pub(super) const ROWS: usize = 600;
pub(super) const ALL: [usize; 6] = [0, 1, 2, 3, 4, 5];

pub(super) fn resolution(code_bits: u32) -> Resolution {
    // Places of more than eight bits are read by two transfers.
    let index_bits = if code_bits == 1 { 6 } else { 9 };
    Resolution::new(10, 2, index_bits, code_bits, 4).unwrap()
}

/// Rows that are all alike.
pub(super) fn constant_rows(row: [i32; 6], label: u32) -> Rows {
    Rows::plain(&encoding(), row.repeat(ROWS), vec![label; ROWS])
}

/// R6 for a block that is all rows, with masks of nought.
fn paid(
    shape: &Shape,
    table: &CodeTable,
    batch: Batch<'_>,
    provider: ProviderAnswered,
    choices: &[u8],
) -> (Vec<u8>, Vec<u8>) {
    let mut provider_share = OpenSum::of_test(7);
    let payload = provider.pay(shape, table, batch, choices, &mut provider_share);
    (
        payload.unwrap(),
        write_sums(shape, &provider_share.under(&[0; 7])),
    )
}

/// One gradient's states and messages up to R2.
pub(super) fn begun(
    pair: &mut Pair,
    batch: Batch<'_>,
    seed: u64,
) -> (UserReady, ProviderReady, Vec<u8>) {
    let mut user_rng = Randomness::seeded(seed).fork("places", 0).unwrap();
    let mut rng = Randomness::seeded(seed).fork("trees", 0).unwrap();
    let shape = pair.shape.clone();
    let (preprocess, user) = pair
        .user
        .preprocess(&shape, batch.count(), FIRST, &mut user_rng)
        .unwrap();
    let ready = pair
        .provider
        .ready(&shape, batch, &preprocess, FIRST, &mut rng);
    let (columns, provider) = ready.unwrap();
    let user = user.open(&shape, batch.count(), &columns).unwrap();
    (user, provider, columns)
}

/// How far the share of ones is from a half, in standard deviations.
fn bias(bytes: impl Iterator<Item = u8>) -> f64 {
    let (mut ones, mut bits) = (0u64, 0u64);
    for byte in bytes {
        ones += u64::from(byte.count_ones());
        bits += 8;
    }
    (ones as f64 - bits as f64 / 2.0).abs() / (bits as f64 / 4.0).sqrt()
}

pub(super) fn assert_fair(what: &str, bytes: &[u8]) {
    assert!(bytes.len() > 50, "{what}: too little to tell");
    let off = bias(bytes.iter().copied());
    assert!(off < 5.0, "{what}: {off} standard deviations from fair");
    // The same in every place of a byte, so that no single bit is constant.
    for bit in 0..8 {
        let ones = bytes.iter().filter(|byte| *byte >> bit & 1 == 1).count() as f64;
        let (mean, spread) = (bytes.len() as f64 / 2.0, (bytes.len() as f64 / 4.0).sqrt());
        assert!((ones - mean).abs() < 5.5 * spread, "{what}: bit {bit}");
    }
}

/// No pad serves two columns of a row: in rows of noughts equal pads would give equal words.
fn assert_words_differ(shape: &Shape, payload: &[u8]) {
    let (widths, levels) = (shape.sum_bits(), shape.levels() as u32);
    let mut reader = BitReader::new(payload);
    let mut repeated = 0;
    for level in (0..ROWS).flat_map(|_| 0..levels) {
        let words: Vec<u64> = widths.iter().map(|w| reader.next(w - level)).collect();
        // The numbers have the widest words.
        repeated += usize::from(words[1] == words[2]) + usize::from(words[2] == words[3]);
    }
    assert!(repeated < 3, "{repeated} pairs of equal words");
}

/// U's symbols as bytes, full ones only if a symbol has eight bits.
pub(super) fn symbol_bytes(symbols: &[u16], code_bits: u32) -> Vec<u8> {
    let bits: Vec<u8> = symbols
        .iter()
        .flat_map(|symbol| (0..code_bits).map(move |level| (symbol >> level & 1) as u8))
        .collect();
    bits.chunks_exact(8)
        .map(|bits| bits.iter().rev().fold(0, |byte, bit| byte << 1 | bit))
        .collect()
}

/// All rows alike, at either end of what a row may hold: what U receives before Q, and what it
/// reads in R4 and opens in R6, is uniform. Without σ the symbols would all be one code.
#[test]
fn what_the_data_user_sees_before_q_is_uniform() {
    for (code_bits, row, label) in [(1, [0; 6], 0), (8, [1024, -1024, 1024, 1024, 0, 0], 1)] {
        let mut pair = pair(resolution(code_bits), ALL.to_vec(), ROWS, 31);
        let shape = pair.shape.clone();
        let rows = constant_rows(row, label);
        let batch = rows.batch(0..ROWS, 1);
        let table = CodeTable::new(LossKind::Logistic, shape.resolution);
        let (user, provider, columns) = begun(&mut pair, batch, 1);
        assert_fair("R1 and R2", &columns);
        let beta = [0.0, 9.0, 0.0, 0.0, 0.0, 0.0, 0.0];
        let weights = Weights::new(&beta, &encoding(), shape.resolution).unwrap();
        let known = Zeroizing::new(vec![weights.constant as u32; ROWS]);
        let (question, user) = user.ask(&shape, &weights, known).unwrap();
        let mut rng = Randomness::seeded(2).fork("coins", 0).unwrap();
        let answered = provider.answer(&shape, &table, batch, &question, &mut rng);
        let (message, provider) = answered.unwrap();
        assert_fair("R4", &message);
        let (choices, user) = user.choose(&shape, &message).unwrap();
        assert_fair("symbols", &symbol_bytes(&user.symbols, code_bits));
        let (payload, _) = paid(&shape, &table, batch, provider, &choices);
        assert_fair("R6", &payload);
        assert_words_differ(&shape, &payload);
        let mut opened = UserSum::new(&shape);
        user.open(&shape, &payload, &mut opened).unwrap();
    }
}

/// Whatever β is, what P receives is uniform: corrections, corrections of indices, choices.
#[test]
fn what_the_provider_sees_is_uniform() {
    for beta in [[0.0; 7], [3.0, 12.0, -12.0, 1.0, 0.0, 0.0, 0.0]] {
        let (mut corrections, mut indices, mut choices) = (Vec::new(), Vec::new(), Vec::new());
        let mut pair = pair(resolution(2), ALL.to_vec(), ROWS, 41);
        let shape = pair.shape.clone();
        let rows = constant_rows([512, 0, 1024, 0, 0, 1024], 0);
        let batch = rows.batch(0..ROWS, 1);
        let table = CodeTable::new(LossKind::Logistic, shape.resolution);
        let weights = Weights::new(&beta, &encoding(), shape.resolution).unwrap();
        for seed in 0..50 {
            let (user, provider, _) = begun(&mut pair, batch, seed);
            let known = Zeroizing::new(vec![weights.constant as u32; ROWS]);
            let (question, user) = user.ask(&shape, &weights, known).unwrap();
            let [first, _] = shape.question_bytes(ROWS).unwrap();
            corrections.extend(&question[..first - 1]);
            indices.extend(&question[first..]);
            let mut rng = Randomness::seeded(seed).fork("coins", 0).unwrap();
            let answered = provider.answer(&shape, &table, batch, &question, &mut rng);
            let (symbols, _) = answered.unwrap();
            choices.extend(user.choose(&shape, &symbols).unwrap().0);
        }
        assert_fair("digit corrections", &corrections);
        assert_fair("indices", &indices);
        assert_fair("choices", &choices);
    }
}

/// Which places a data user reads in R3, from its shares.
#[derive(Debug, Clone, Copy)]
pub(super) enum Places {
    /// Those of the scores.
    Honest,
    /// Any.
    Any,
    /// So many 64ths of the table away from the score's, row by row.
    Moved(fn(usize) -> u8),
}

/// Which bits a data user chooses in R5.
#[derive(Debug, Clone, Copy)]
pub(super) enum Bits {
    /// Those that it read.
    Honest,
    /// Any.
    Any,
    /// The others.
    Flipped,
}

fn random_bytes(count: usize, modulus: u8, seed: u64) -> Zeroizing<Vec<u8>> {
    let mut rng = Randomness::seeded(seed).fork("cheat", 0).unwrap();
    let mut bytes = Zeroizing::new(vec![0; count]);
    rng.fill_bytes(&mut bytes);
    bytes.iter_mut().for_each(|byte| *byte %= modulus);
    bytes
}

/// R3 at places of its choice.
pub(super) fn ask(
    ready: UserReady,
    shape: &Shape,
    weights: &Weights,
    how: Places,
) -> (Vec<u8>, UserAsked) {
    let index = shape.index().unwrap();
    let rows = ready.indices.count() / index.transfers();
    let nodes = 1u16 << shape.resolution.index_bits();
    let known = Zeroizing::new(vec![weights.constant as u32; rows]);
    let (mut message, shares) = ready.columns.shares(shape, weights, known);
    let own = |share: &u32| shape.resolution.top_bits(*share) as u16;
    let places: Zeroizing<Vec<u16>> = Zeroizing::new(match how {
        Places::Honest => shares.iter().map(own).collect(),
        Places::Any => {
            let pairs = random_bytes(2 * rows, u8::MAX, 5);
            let place = |pair: &[u8]| u16::from_le_bytes([pair[0], pair[1]]) % nodes;
            pairs.chunks_exact(2).map(place).collect()
        }
        Places::Moved(by) => {
            let part = |row| u16::from(by(row)) * (nodes / 64);
            let moved = |(row, share)| own(share).wrapping_add(part(row)) % nodes;
            shares.iter().enumerate().map(moved).collect()
        }
    });
    let (corrections, indices) = ready.indices.correct_wide(index, &places).unwrap();
    message.extend(corrections.to_bytes());
    let payload = ready.payload;
    (
        message,
        UserAsked {
            places,
            indices,
            payload,
        },
    )
}

/// R5 with bits of its choice.
pub(super) fn choose(
    asked: UserAsked,
    shape: &Shape,
    message: &[u8],
    how: Bits,
) -> (Vec<u8>, UserChosen) {
    let (k, b) = (shape.resolution.index_bits(), shape.resolution.code_bits());
    let index = shape.index().unwrap();
    let pads = asked.indices.wide_pads(index, &asked.places, b).unwrap();
    let read = symbols::read(message, k, b, &asked.places, &pads);
    let random = random_bytes(read.len(), 1 << b, 6);
    let chosen = |(read, random): (&u16, &u8)| match how {
        Bits::Honest => *read,
        Bits::Any => u16::from(*random),
        Bits::Flipped => read ^ ((1 << b) - 1),
    };
    let symbols: Vec<u16> = read.iter().zip(random.iter()).map(chosen).collect();
    let bits: Vec<bool> = symbols
        .iter()
        .flat_map(|symbol| (0..b).map(move |level| symbol >> level & 1 == 1))
        .collect();
    let (corrections, payload) = asked.payload.correct(&bits).unwrap();
    let symbols = Zeroizing::new(symbols);
    (corrections.to_bytes(), UserChosen { symbols, payload })
}

/// A row on the grid, and its label.
pub(super) type Row = ([i32; 6], u32);

pub(super) const BETA: [f64; 7] = [0.4, 3.0, -5.0, 1.0, 0.5, -0.5, 2.0];

/// Whole sums over a table, with the same coins of both parties whatever the table is.
pub(super) fn sums(rows: &[Row], beta: &[f64], places: Places, bits: Bits) -> Vec<i64> {
    let mut pair = pair(resolution(2), ALL.to_vec(), 1, 77);
    let shape = pair.shape.clone();
    let grid = rows.iter().flat_map(|(row, _)| *row).collect();
    let labels = rows.iter().map(|(_, label)| *label).collect();
    let own = Rows::plain(&encoding(), grid, labels);
    let batch = own.batch(0..rows.len(), 1);
    let table = CodeTable::new(LossKind::Logistic, shape.resolution);
    let weights = Weights::new(beta, &encoding(), shape.resolution).unwrap();
    let (user, provider, _) = begun(&mut pair, batch, 9);
    let (question, user) = ask(user, &shape, &weights, places);
    let mut rng = Randomness::seeded(9).fork("coins", 0).unwrap();
    let answered: Result<(Vec<u8>, ProviderAnswered), StepError> =
        provider.answer(&shape, &table, batch, &question, &mut rng);
    let (message, provider) = answered.unwrap();
    let (choices, user) = choose(user, &shape, &message, bits);
    let (payload, provider_share) = paid(&shape, &table, batch, provider, &choices);
    let mut sum = UserSum::new(&shape);
    user.open(&shape, &payload, &mut sum).unwrap();
    whole_sums(&shape, &[sum.close(&shape, &provider_share).unwrap()])
}

/// Two tables that differ in one row: for every strategy the sums differ by that row's old and new
/// part alone, each with a weight between the least and the greatest derivative. The weight of row
/// i is a function of row i, U's messages and P's coins.
#[test]
fn a_changed_row_changes_its_own_part_only_whatever_the_data_user_sends() {
    let common: Vec<Row> = (0..40i32)
        .map(|n| {
            (
                [n * 25, 500 - n * 20, n * n % 1025, 0, 1024, 0],
                n as u32 % 2,
            )
        })
        .collect();
    let old = ([1000, -3, 700, 1024, 0, 0], 1);
    let new = ([7, 900, 11, 0, 0, 1024], 0);
    for (places, bits) in [
        (Places::Honest, Bits::Honest),
        (Places::Any, Bits::Honest),
        (Places::Honest, Bits::Any),
        (Places::Any, Bits::Any),
        (Places::Moved(|row| row as u8), Bits::Flipped),
    ] {
        let with = |row| {
            let mut rows = common.clone();
            rows.insert(17, row);
            sums(&rows, &BETA, places, bits)
        };
        let apart: Vec<i64> = with(new)
            .iter()
            .zip(with(old))
            .map(|(new, old)| new - old)
            .collect();
        let part = |(row, label): Row, code: i64| -> Vec<i64> {
            let weight = code - 3 * i64::from(label);
            let payload = plain_payload(&encoding(), &row);
            payload
                .iter()
                .map(|value| weight * i64::from(*value))
                .collect()
        };
        let explained = (0..4).any(|a| {
            (0..4).any(|b| {
                let (new, old) = (part(new, a), part(old, b));
                let difference = new.iter().zip(&old).map(|(new, old)| new - old);
                difference.eq(apart.iter().copied())
            })
        });
        assert!(explained, "{places:?} {bits:?}: {apart:?}");
    }
}

/// A request that was tampered with is refused before anything leaves, and nothing is answered
/// after it; one that was answered is not answered again.
#[test]
fn inconsistent_and_repeated_requests_end_the_session() {
    let rows = 50;
    let mut rng = Randomness::seeded(4).fork("rng", 0).unwrap();
    let cheat = |change: fn(&mut Vec<u8>)| {
        let mut pair = pair(resolution(1), ALL.to_vec(), rows, 51);
        let shape = pair.shape.clone();
        let mut rng = Randomness::seeded(4).fork("ahead", 0).unwrap();
        let (mut preprocess, _) = pair.user.preprocess(&shape, rows, FIRST, &mut rng).unwrap();
        change(&mut preprocess);
        (pair, preprocess)
    };
    let changes: [fn(&mut Vec<u8>); 3] = [
        |preprocess| preprocess[40] ^= 1,
        |preprocess| preprocess[400] ^= 0x80,
        |preprocess| {
            let middle = preprocess.len() / 2;
            preprocess[middle] ^= 4;
        },
    ];
    for change in changes {
        let (mut pair, preprocess) = cheat(change);
        let shape = pair.shape.clone();
        let batch = pair.rows.batch(0..rows, 1);
        let failed = pair
            .provider
            .ready(&shape, batch, &preprocess, FIRST, &mut rng);
        let Err(StepError::Transfer(error)) = failed else {
            panic!("a tampered request was answered");
        };
        assert!(error.is_cheating(), "{error}");
        let (honest, _) = pair.user.preprocess(&shape, rows, FIRST, &mut rng).unwrap();
        let again = pair.provider.ready(&shape, batch, &honest, FIRST, &mut rng);
        assert!(matches!(
            again.err(),
            Some(StepError::Transfer(TransferError::Poisoned))
        ));
    }
    let (mut pair, preprocess) = cheat(|_| {});
    let shape = pair.shape.clone();
    let batch = pair.rows.batch(0..rows, 1);
    assert!(
        pair.provider
            .ready(&shape, batch, &preprocess, FIRST, &mut rng)
            .is_ok()
    );
    let again = pair
        .provider
        .ready(&shape, batch, &preprocess, FIRST, &mut rng);
    assert!(matches!(
        again.err(),
        Some(StepError::Transfer(TransferError::OutOfStep { .. }))
    ));
    let short = pair
        .provider
        .ready(&shape, batch, &preprocess[1..], FIRST, &mut rng);
    assert!(matches!(short.err(), Some(StepError::Length { .. })));
}

/// A provider sends noise in place of every message: the data user goes on to the end, and its own
/// messages have the lengths that they always have.
#[test]
fn garbage_of_a_provider_draws_no_reaction() {
    let rows = 64;
    let noise = |count: usize, seed: u64| random_bytes(count, u8::MAX, seed).to_vec();
    let mut pair = pair(resolution(3), ALL.to_vec(), rows, 61);
    let shape = pair.shape.clone();
    let beta = [0.4, 3.0, -5.0, 1.0, 0.5, -0.5, 2.0];
    let weights = Weights::new(&beta, &encoding(), shape.resolution).unwrap();
    let mut rng = Randomness::seeded(4).fork("rng", 0).unwrap();
    for seed in 0..20 {
        let (preprocess, user) = pair.user.preprocess(&shape, rows, FIRST, &mut rng).unwrap();
        let expected: usize = shape.preprocess_bytes(rows).unwrap().iter().sum();
        assert_eq!(preprocess.len(), expected);
        let columns = noise(shape.column_bytes(rows).iter().sum(), seed);
        let user = user.open(&shape, rows, &columns).unwrap();
        let known = pair.known(&weights);
        let (question, user) = user.ask(&shape, &weights, known).unwrap();
        assert_eq!(
            question.len(),
            shape.question_bytes(rows).unwrap().iter().sum::<usize>()
        );
        let symbols = noise(shape.symbol_bytes(rows), seed + 100);
        let (choices, user) = user.choose(&shape, &symbols).unwrap();
        assert_eq!(choices.len(), shape.choice_bytes(rows));
        let payload = noise(shape.payload_bytes(rows), seed + 200);
        let mut sum = UserSum::new(&shape);
        user.open(&shape, &payload, &mut sum).unwrap();
        let provider_share = noise(shape.sum_bytes(), seed + 300);
        assert_eq!(sum.close(&shape, &provider_share).unwrap().len(), 7);
    }
}
