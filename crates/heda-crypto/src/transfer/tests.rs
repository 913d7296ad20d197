//! Whole sessions: both sides follow the protocol, and sides that do not.

use super::*;
use crate::random::Randomness;
use proptest::prelude::*;
use rand_core::CryptoRng;

pub(super) fn rng(seed: u64) -> impl CryptoRng {
    Randomness::seeded(seed).fork("transfer", 0).unwrap()
}

pub(super) fn field(bits: u32) -> FieldBits {
    FieldBits::new(bits).unwrap()
}

/// A session in which every message went over the wire.
pub(super) fn session(bits: u32, seed: u64) -> (Chooser, Sender) {
    let (field, rng) = (field(bits), &mut rng(seed));
    let (chooser, first) = ChooserSetup::start(field, b"test", rng);
    let first = SetupFirst::from_bytes(&first.to_bytes()).unwrap();
    let (sender, second) = SenderSetup::answer(field, b"test", &first, rng);
    let second = second.to_bytes();
    assert_eq!(second.len(), SetupSecond::bytes(field));
    let second = SetupSecond::from_bytes(field, &second).unwrap();
    let (chooser, third) = chooser.finish(&second, rng).unwrap();
    let bytes = third.to_bytes();
    assert_eq!(bytes.len(), SetupThird::bytes(field));
    let read = SetupThird::from_bytes(field, &bytes).unwrap();
    assert_eq!(read, third);
    (chooser, sender.finish(&read).unwrap())
}

/// Random bits over the wire, corrected to `wanted`: the chooser's pads, and the sender's pairs.
pub(super) fn bit_pads(
    (chooser, sender): &mut (Chooser, Sender),
    wanted: &[bool],
    pad_bytes: usize,
) -> (Vec<Vec<u8>>, Vec<[Vec<u8>; 2]>) {
    let field = chooser.field();
    let (request, random) = chooser.extend_bits(wanted.len()).unwrap();
    let bytes = request.to_bytes();
    assert_eq!(Ok(bytes.len()), BitRequest::bytes(field, wanted.len()));
    let request = BitRequest::from_bytes(field, wanted.len(), &bytes).unwrap();
    let keys = sender.accept_bits(&request).unwrap();
    assert_eq!((keys.count(), random.count()), (wanted.len(), wanted.len()));
    let (corrections, chosen) = random.correct(wanted).unwrap();
    let bytes = corrections.to_bytes();
    assert_eq!(bytes.len(), BitCorrections::bytes(wanted.len()));
    let corrections = BitCorrections::from_bytes(wanted.len(), &bytes).unwrap();
    let (mut own, mut pairs) = (Vec::new(), Vec::new());
    chosen
        .pads(pad_bytes, |row, pad| {
            assert_eq!(row, own.len());
            own.push(pad.to_vec());
        })
        .unwrap();
    keys.pads(&corrections, pad_bytes, |row, zero, one| {
        assert_eq!(row, pairs.len());
        pairs.push([zero.to_vec(), one.to_vec()]);
    })
    .unwrap();
    (own, pairs)
}

/// Random indices over the wire, corrected to `wanted`: the chooser's pads, and the sender's tables.
pub(super) fn index_pads(
    (chooser, sender): &mut (Chooser, Sender),
    wanted: &[u8],
    index_bits: u32,
    entry_bits: u32,
) -> (Vec<u16>, Vec<Vec<u16>>) {
    let field = chooser.field();
    let (request, random) = chooser.extend_indices(wanted.len()).unwrap();
    let bytes = request.to_bytes();
    assert_eq!(Ok(bytes.len()), IndexRequest::bytes(field, wanted.len()));
    let request = IndexRequest::from_bytes(field, wanted.len(), &bytes).unwrap();
    let keys = sender.accept_indices(&request).unwrap();
    assert_eq!((keys.count(), random.count()), (wanted.len(), wanted.len()));
    let (corrections, chosen) = random.correct(wanted).unwrap();
    let bytes = corrections.to_bytes();
    assert_eq!(bytes.len(), IndexCorrections::bytes(field, wanted.len()));
    let corrections = IndexCorrections::from_bytes(field, wanted.len(), &bytes).unwrap();
    let mut tables = Vec::new();
    keys.pads(&corrections, index_bits, entry_bits, |row, pads| {
        assert_eq!((row, pads.len()), (tables.len(), 1 << index_bits));
        tables.push(pads.to_vec());
    })
    .unwrap();
    (chosen.pads(entry_bits).unwrap(), tables)
}

pub(super) fn choices(seed: u64, count: usize) -> Vec<u8> {
    let mut bytes = vec![0; count];
    rand_core::Rng::fill_bytes(&mut rng(seed), &mut bytes);
    bytes
}

#[test]
fn one_of_two_gives_the_chosen_pad_and_not_the_other() {
    for bits in 2..=8 {
        let mut both = session(bits, 1);
        for (count, pad_bytes) in [
            (0, 1),
            (1, 16),
            (127, 49),
            (129, 100),
            (3712, 16),
            (3841, 17),
        ] {
            let wanted: Vec<bool> = choices(2, count).iter().map(|b| b & 1 == 1).collect();
            let (own, pairs) = bit_pads(&mut both, &wanted, pad_bytes);
            assert_eq!((own.len(), pairs.len()), (count, count));
            for ((choice, own), pair) in wanted.iter().zip(&own).zip(&pairs) {
                assert_eq!((own.len(), own), (pad_bytes, &pair[usize::from(*choice)]));
                assert!(pad_bytes < 16 || own != &pair[usize::from(!*choice)]);
            }
        }
    }
}

#[test]
fn one_of_many_gives_the_pad_at_the_index() {
    for bits in 2..=8 {
        let mut both = session(bits, 3);
        for (count, index_bits, entry_bits) in
            [(0, 1, 1), (1, bits, 16), (131, 2, 16), (4000, bits, 9)]
        {
            let mask = (1u8 << (index_bits - 1)) | ((1 << (index_bits - 1)) - 1);
            let wanted: Vec<u8> = choices(4, count).iter().map(|b| b & mask).collect();
            let (own, tables) = index_pads(&mut both, &wanted, index_bits, entry_bits);
            for ((index, own), table) in wanted.iter().zip(&own).zip(&tables) {
                assert_eq!(*own, table[usize::from(*index)]);
                assert!(table.iter().all(|pad| u32::from(*pad) >> entry_bits == 0));
            }
            // Of 16 bits, the other entries agree with the chosen one about once in 65,536.
            let same = wanted
                .iter()
                .zip(own.iter().zip(&tables))
                .map(|(_, (own, table))| table.iter().filter(|pad| *pad == own).count() - 1);
            let same: usize = same.sum();
            let expected = (count << index_bits) >> entry_bits;
            assert!(same <= 2 * expected + 20, "{same} for {expected}");
        }
    }
}

/// The chosen entry is opened; with the same two keys no entry beside it is.
#[test]
fn wide_indices_open_one_entry() {
    for (field, index_bits, entry_bits, count) in [(8, 10, 8, 70), (6, 9, 16, 40), (4, 4, 3, 9)] {
        let (mut chooser, mut sender) = session(field, 11);
        let index = WideIndex::new(FieldBits::new(field).unwrap(), index_bits).unwrap();
        let transfers = count * index.transfers();
        let wanted: Vec<u16> = choices(5, 2 * count)
            .chunks(2)
            .map(|b| (u16::from(b[0]) << 8 | u16::from(b[1])) >> (16 - index_bits))
            .collect();
        let (request, random) = chooser.extend_indices(transfers).unwrap();
        let keys = sender.accept_indices(&request).unwrap();
        let (corrections, chosen) = random.correct_wide(index, &wanted).unwrap();
        let own = chosen.wide_pads(index, &wanted, entry_bits).unwrap();
        let mut tables = Vec::new();
        keys.wide_pads(index, &corrections, entry_bits, |row, pads| {
            assert_eq!(row, tables.len());
            tables.push(pads.to_vec());
        })
        .unwrap();
        assert_eq!((own.len(), tables.len()), (count, count));
        let mut same = 0;
        for ((index, own), table) in wanted.iter().zip(own.iter()).zip(&tables) {
            assert_eq!(table.len(), 1 << index_bits);
            assert_eq!(*own, table[usize::from(*index)]);
            assert!(table.iter().all(|pad| u32::from(*pad) >> entry_bits == 0));
            same += table.iter().filter(|pad| *pad == own).count() - 1;
        }
        let expected = (count << index_bits) >> entry_bits;
        assert!(same <= 2 * expected + 20, "{same} for {expected}");
        // Entries that share one of the two keys are not hidden by the same word.
        if entry_bits == 16 {
            for table in &tables {
                let low = index_bits - field;
                let rows = table.chunks(1 << low);
                let apart: std::collections::BTreeSet<u16> =
                    rows.map(|row| row[0] ^ row[1]).collect();
                assert!(apart.len() > 50, "{} differences", apart.len());
            }
        }
    }
    let field = FieldBits::new(8).unwrap();
    for bits in [0, 12] {
        assert!(WideIndex::new(field, bits).is_err());
    }
}

/// The pads of wide indices by their definition, with the crate `aes`: the counter has the number of the
/// second transfer, so that no two rows have a block in common even if they had the same key.
#[test]
fn pads_of_wide_indices_are_two_words_xored() {
    use aes::cipher::{BlockCipherEncrypt, KeyInit};
    let (index, rows) = (WideIndex::new(field(6), 9).unwrap(), 5);
    let made = || {
        let (mut chooser, mut sender) = session(6, 12);
        // So that the transfers of interest are not the first.
        let (skipped, _) = chooser.extend_bits(3).unwrap();
        sender.accept_bits(&skipped).unwrap();
        let (request, random) = chooser.extend_indices(2 * rows).unwrap();
        let keys = sender.accept_indices(&request).unwrap();
        let wanted: Vec<u16> = (0..rows as u16).map(|row| row * 99 + 7).collect();
        (keys, random.correct_wide(index, &wanted).unwrap().0)
    };
    let (keys, corrections) = made();
    let (first, second) = keys.split(rows).unwrap();
    let (hash, transfers) = second.numbers();
    assert_eq!(transfers, 3 + rows as u64..3 + 2 * rows as u64);
    let whole = |keys: IndexKeys, corrections, bits| {
        let mut all = Vec::new();
        let each = |_, keys: &[u128]| all.push(keys.to_vec());
        keys.keys(&corrections, bits, each).unwrap();
        all
    };
    let high = whole(first, corrections.part(0..rows).unwrap(), 6);
    let low = whole(second, corrections.part(rows..2 * rows).unwrap(), 3);
    let (keys, corrections) = made();
    let check = |row: usize, pads: &[u16]| {
        for (place, pad) in pads.iter().enumerate() {
            let (h, l) = (place >> 3, place & 7);
            let counter = hash.counter(0, 0) ^ u128::from(transfers.start + row as u64);
            let mut block = (counter ^ (h as u128 / 8) << 64).to_le_bytes().into();
            aes::Aes128Enc::new(&low[row][l].to_le_bytes().into()).encrypt_block(&mut block);
            let stream = u16::from_le_bytes([block[h % 8 * 2], block[h % 8 * 2 + 1]]);
            assert_eq!(
                *pad,
                (high[row][h] >> (16 * l)) as u16 ^ stream,
                "{row} {place}"
            );
        }
    };
    keys.wide_pads(index, &corrections, 16, check).unwrap();
}

#[test]
fn pads_look_random() {
    let mut both = session(6, 5);
    let (_, tables) = index_pads(
        &mut both,
        &choices(6, 4096).iter().map(|b| b & 63).collect::<Vec<_>>(),
        6,
        16,
    );
    let ones: u32 = tables.iter().flatten().map(|pad| pad.count_ones()).sum();
    // 2^22 bits: mean 2^21, deviation 1024.
    assert!(ones.abs_diff(1 << 21) < 4608, "{ones}");
    let (_, pairs) = bit_pads(&mut both, &[false; 4096], 64);
    let ones: u32 = pairs
        .iter()
        .flatten()
        .flatten()
        .map(|byte| byte.count_ones())
        .sum();
    assert!(ones.abs_diff(1 << 21) < 4608, "{ones}");
    let words = pairs.iter().flatten().flat_map(|pad| pad.chunks(16));
    let distinct: std::collections::BTreeSet<_> = words.collect();
    assert_eq!(distinct.len(), 4096 * 8);
}

#[test]
fn trees_open_at_the_wanted_index() {
    let mut both = session(6, 7);
    for heights in [vec![5; 28], vec![1; 3], vec![8; 2], vec![4, 3, 3, 5, 1]] {
        let trees = heights.len();
        let levels = heights.iter().sum();
        let drawn = choices(8, trees);
        let cut = drawn.iter().zip(&heights);
        let wanted: Vec<u8> = cut.map(|(b, height)| b >> (8 - height)).collect();
        let path = path_bits(&wanted, &heights);
        let (chooser, sender) = &mut both;
        let (request, random) = chooser.extend_bits(path.len()).unwrap();
        let keys = sender.accept_bits(&request).unwrap();
        let (corrections, chosen) = random.correct(&path).unwrap();
        let labels = |n: u64| (chooser.tree_label(n), sender.tree_label(n));
        let (own, theirs): (Vec<_>, Vec<_>) = (0..trees as u64).map(labels).unzip();
        let grow = |(label, &height): (&TreeLabel, &usize)| Tree::grow(label, 7, height);
        let grown: Vec<Tree> = theirs.iter().zip(&heights).map(grow).collect();
        let offers = keys.offer_trees(&corrections, &grown).unwrap().to_bytes();
        assert_eq!(offers.len(), TreeOffers::bytes(levels));
        let offers = TreeOffers::from_bytes(levels, &offers).unwrap();
        let opened = chosen.open_trees(&own, &heights, &offers).unwrap();
        assert_eq!(opened.len(), trees);
        for ((tree, opened), index) in grown.iter().zip(&opened).zip(&wanted) {
            let leaves = tree.leaves().iter().zip(opened.leaves()).enumerate();
            for (place, (leaf, got)) in leaves {
                let missing = place == usize::from(*index);
                assert_eq!(*got, if missing { 0 } else { *leaf });
            }
        }
    }
}

#[test]
fn parts_of_a_batch_fit_together() {
    let (mut chooser, mut sender) = session(4, 9);
    let (request, random) = chooser.extend_indices(100).unwrap();
    let keys = sender.accept_indices(&request).unwrap();
    let wanted: Vec<u8> = (0..100).map(|n| n % 16).collect();
    let (first, second) = random.split(33).unwrap();
    let (first_keys, second_keys) = keys.split(33).unwrap();
    for (random, keys, wanted) in [
        (second, second_keys, &wanted[33..]),
        (first, first_keys, &wanted[..33]),
    ] {
        let (corrections, chosen) = random.correct(wanted).unwrap();
        let (a, b) = chosen.split(10).unwrap();
        let (c, d) = keys.split(10).unwrap();
        for (chosen, keys, range) in [(a, c, 0..10), (b, d, 10..wanted.len())] {
            let part = corrections.part(range.clone()).unwrap();
            let own = chosen.pads(16).unwrap();
            let each = |row: usize, pads: &[u16]| {
                assert_eq!(own[row], pads[usize::from(wanted[range.start + row])]);
            };
            keys.pads(&part, 4, 16, each).unwrap();
        }
    }
    let (request, random) = chooser.extend_bits(5).unwrap();
    let keys = sender.accept_bits(&request).unwrap();
    assert!(matches!(
        keys.split(6),
        Err(TransferError::CountMismatch {
            got: 6,
            expected: 5,
            ..
        })
    ));
    assert!(random.correct(&[true; 4]).is_err());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn keys_agree_at_the_choice_and_only_there(
        bits in 2u32..=8,
        seed in any::<u64>(),
        counts in prop::collection::vec((0usize..700, any::<bool>()), 1..4),
    ) {
        let mut both = session(bits, seed);
        for (count, indices) in counts {
            let raw = choices(seed, count);
            if indices {
                let wanted: Vec<u8> = raw.iter().map(|b| b >> (8 - bits)).collect();
                let (own, tables) = index_pads(&mut both, &wanted, bits, 16);
                for ((index, own), table) in wanted.iter().zip(&own).zip(&tables) {
                    prop_assert_eq!(*own, table[usize::from(*index)]);
                }
            } else {
                let wanted: Vec<bool> = raw.iter().map(|b| b & 1 == 1).collect();
                let (own, pairs) = bit_pads(&mut both, &wanted, 16);
                for ((choice, own), pair) in wanted.iter().zip(&own).zip(&pairs) {
                    prop_assert_eq!(own, &pair[usize::from(*choice)]);
                    prop_assert_ne!(own, &pair[usize::from(!*choice)]);
                }
            }
        }
    }
}

#[test]
fn what_the_sender_sees_looks_random_whatever_is_wanted() {
    let (mut chooser, _) = session(6, 13);
    for wanted in [false, true] {
        let (request, random) = chooser.extend_bits(16_384).unwrap();
        let (corrections, _) = random.correct(&[wanted; 16_384]).unwrap();
        let (indices, random) = chooser.extend_indices(16_384).unwrap();
        let (shifts, _) = random.correct(&[u8::from(wanted) * 63; 16_384]).unwrap();
        let seen = [
            request.to_bytes()[8..].to_vec(),
            corrections.to_bytes(),
            indices.to_bytes()[8..].to_vec(),
            shifts.to_bytes(),
        ];
        for bytes in seen {
            let ones: u32 = bytes.iter().map(|byte| byte.count_ones()).sum();
            let bits = 8.0 * bytes.len() as f64;
            let bias = (f64::from(ones) - bits / 2.0) / (bits / 4.0).sqrt();
            assert!(bias.abs() < 4.5, "{bias} deviations in {bits} bits");
        }
    }
}

#[test]
fn the_same_randomness_gives_the_same_messages() {
    let run = || {
        let (mut chooser, _) = session(6, 11);
        let (bits, _) = chooser.extend_bits(300).unwrap();
        let (indices, _) = chooser.extend_indices(300).unwrap();
        [bits.to_bytes(), indices.to_bytes()]
    };
    assert_eq!(run(), run());
}

#[test]
fn debug_output_shows_no_secret() {
    let (mut chooser, mut sender) = session(6, 12);
    let (request, random) = chooser.extend_bits(5).unwrap();
    let keys = sender.accept_bits(&request).unwrap();
    let text = format!("{chooser:?} {sender:?} {request:?} {random:?} {keys:?}");
    assert_eq!(
        text,
        "Chooser(next transfer 5) Sender(next transfer 5) BitRequest(5 transfers) \
         RandomBits(5 transfers) BitKeys(5 transfers)"
    );
}
