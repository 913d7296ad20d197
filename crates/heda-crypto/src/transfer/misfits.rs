//! Messages, requests and lists that do not belong together, and transfers of several blocks.

use super::tests::{bit_pads, choices, field, index_pads, rng, session};
use super::*;

/// Lists of another length, and requests over another field, are refused and not cut to fit.
#[test]
fn what_does_not_belong_to_the_transfers_is_refused() {
    let (mut chooser, mut sender) = session(6, 13);
    let (request, random) = chooser.extend_bits(20).unwrap();
    let (corrections, _) = random.correct(&[true; 20]).unwrap();
    let keys = sender.accept_bits(&request).unwrap();
    let fewer = corrections.part(0..19).unwrap();
    let refused = keys.pads(&fewer, 16, |_, _, _| ()).unwrap_err();
    assert_eq!(
        refused,
        TransferError::CountMismatch {
            what: "the list of corrections",
            got: 19,
            expected: 20
        }
    );
    let (request, random) = chooser.extend_indices(4).unwrap();
    let keys = sender.accept_indices(&request).unwrap();
    let counts = |refused: TransferError| match refused {
        TransferError::CountMismatch { got, expected, .. } => (got, expected),
        other => panic!("{other:?}"),
    };
    let (first, second) = random.split(2).unwrap();
    assert_eq!(counts(first.correct(&[1; 3]).unwrap_err()), (3, 2));
    let outside = second.correct(&[63, 64]).map(|_| ()).unwrap_err();
    assert_eq!(outside, TransferError::IndexOutOfRange { row: 1 });
    let (first, second) = keys.split(2).unwrap();
    let read = |bits, count, bytes: usize| {
        IndexCorrections::from_bytes(field(bits), count, &vec![0; bytes]).unwrap()
    };
    let refused = first.pads(&read(6, 3, 3), 6, 1, |_, _| ()).unwrap_err();
    assert_eq!(counts(refused), (3, 2));
    assert_eq!(counts(second.split(3).unwrap_err()), (3, 2));
    let (request, random) = chooser.extend_indices(4).unwrap();
    assert_eq!(
        random.split(4).unwrap().1.count(),
        0,
        "all may be split off"
    );
    let keys = sender.accept_indices(&request).unwrap();
    let refused = keys.pads(&read(4, 4, 2), 4, 1, |_, _| ()).unwrap_err();
    assert!(
        matches!(refused, TransferError::OtherField { .. }),
        "{refused:?}"
    );
    let (mut smaller, _) = session(4, 13);
    let (request, _) = smaller.extend_bits(20).unwrap();
    let (_, mut other) = session(6, 13);
    let refused = other.accept_bits(&request).map(|_| ()).unwrap_err();
    assert!(
        matches!(refused, TransferError::OtherField { .. }),
        "{refused:?}"
    );
    assert!(!other.is_poisoned(), "a mistake and no cheat");
    for bytes in [0, 2, 4, 20] {
        let read = IndexCorrections::from_bytes(field(6), 4, &vec![0; bytes]);
        assert_eq!(
            read.unwrap_err(),
            TransferError::WrongLength {
                what: "the corrections",
                got: bytes,
                expected: 3
            }
        );
    }
}

/// Messages of a setup over another field are refused, and so are corrections with bits beyond the last.
#[test]
fn setups_over_other_fields_and_stray_bits_are_refused() {
    let start = |bits, seed| {
        let (chooser, first) = ChooserSetup::start(field(bits), b"test", &mut rng(seed));
        let (sender, second) = SenderSetup::answer(field(bits), b"test", &first, &mut rng(seed));
        (chooser, sender, second)
    };
    let widths = || 2..=8;
    for bits in widths() {
        let (chooser, _, second) = start(bits, 1);
        let (_, third) = chooser.finish(&second, &mut rng(2)).unwrap();
        for other in widths().filter(|other| *other != bits) {
            let (_, sender, _) = start(other, 1);
            assert_eq!(
                sender.finish(&third).map(|_| ()).unwrap_err(),
                TransferError::CountMismatch {
                    what: "the third setup message",
                    got: field(bits).trees(),
                    expected: field(other).trees(),
                }
            );
        }
    }
    let (chooser, _, _) = start(6, 1);
    let (other, sender, second) = start(4, 1);
    let counted = |refused: TransferError| matches!(refused, TransferError::CountMismatch { .. });
    assert!(counted(
        chooser
            .finish(&second, &mut rng(2))
            .map(|_| ())
            .unwrap_err()
    ));
    let (_, third) = other.finish(&second, &mut rng(2)).unwrap();
    assert!(sender.finish(&third).is_ok());
    let stray = IndexCorrections::from_bytes(field(6), 1, &[0x40]).unwrap_err();
    assert!(matches!(stray, TransferError::Padding { .. }), "{stray:?}");
    assert!(IndexCorrections::from_bytes(field(6), 1, &[0x3f]).is_ok());
    assert!(IndexCorrections::from_bytes(field(6), 4, &[0xff; 3]).is_ok());
}

/// Requests of more rows than a block has, which is 8,192.
#[test]
fn transfers_of_several_blocks_open_what_was_chosen() {
    let rows = 2 * 64 * 128 + 77;
    let mut both = session(3, 15);
    let wanted: Vec<bool> = choices(8, rows).iter().map(|byte| byte & 1 == 1).collect();
    let (own, pairs) = bit_pads(&mut both, &wanted, 16);
    assert_eq!((own.len(), pairs.len()), (rows, rows));
    for ((own, pair), wanted) in own.iter().zip(&pairs).zip(&wanted) {
        assert_eq!(own, &pair[usize::from(*wanted)]);
        assert_ne!(own, &pair[usize::from(!*wanted)]);
    }
    let wanted: Vec<u8> = choices(9, rows).iter().map(|byte| byte & 7).collect();
    let (own, tables) = index_pads(&mut both, &wanted, 3, 16);
    for ((own, table), wanted) in own.iter().zip(&tables).zip(&wanted) {
        assert_eq!(*own, table[usize::from(*wanted)]);
    }
}

/// Trees by transfers that are not the first of their request.
#[test]
fn trees_open_behind_other_transfers() {
    let (mut chooser, mut sender) = session(6, 14);
    let (request, random) = chooser.extend_bits(9).unwrap();
    let keys = sender.accept_bits(&request).unwrap();
    let (_, random) = random.split(4).unwrap();
    let (_, keys) = keys.split(4).unwrap();
    let heights = [3, 2];
    let (corrections, chosen) = random.correct(&path_bits(&[5, 2], &heights)).unwrap();
    let labels = [7, 8].map(|number| chooser.tree_label(number));
    let trees = [(0, 1), (1, 2)].map(|(n, seed)| Tree::grow(&labels[n], seed, heights[n]));
    let offers = keys.offer_trees(&corrections, &trees).unwrap();
    let opened = chosen.open_trees(&labels, &heights, &offers).unwrap();
    for ((opened, tree), missing) in opened.iter().zip(&trees).zip([5, 2]) {
        assert_eq!(opened.label(), tree.label());
        for (place, (got, leaf)) in opened.leaves().iter().zip(tree.leaves()).enumerate() {
            assert_eq!(got == leaf, place != missing, "leaf {place}");
        }
    }
}

/// Every list has one entry for each transfer, and every message its length.
#[test]
fn trees_and_wide_indices_of_another_number_are_refused() {
    let counts = |refused: TransferError| match refused {
        TransferError::CountMismatch {
            what,
            got,
            expected,
        } => (what, got, expected),
        other => panic!("{other:?}"),
    };
    let (mut chooser, mut sender) = session(6, 16);
    let heights = [3, 2];
    let labels = [7, 8].map(|number| chooser.tree_label(number));
    let trees = [0, 1].map(|n: usize| Tree::grow(&labels[n], 1, heights[n]));
    let mut ends = || {
        let (request, random) = chooser.extend_bits(5).unwrap();
        let keys = sender.accept_bits(&request).unwrap();
        let path = path_bits(&[5, 2], &heights);
        let (corrections, chosen) = random.correct(&path).unwrap();
        (keys, corrections, chosen)
    };
    let (keys, corrections, chosen) = ends();
    let fewer = keys.offer_trees(&corrections, &trees[..1]).unwrap_err();
    assert_eq!(counts(fewer), ("the list of trees", 3, 5));
    let offers = |levels: usize| TreeOffers::from_bytes(levels, &vec![0; 32 * levels]).unwrap();
    let refused = chosen.open_trees(&labels[..1], &heights, &offers(5));
    assert_eq!(counts(refused.unwrap_err()), ("the list of labels", 1, 2));
    let refused = ends().2.open_trees(&labels, &[3, 3], &offers(5));
    assert_eq!(counts(refused.unwrap_err()), ("the trees' levels", 6, 5));
    let refused = ends().2.open_trees(&labels, &heights, &offers(4));
    assert_eq!(counts(refused.unwrap_err()), ("the trees' sums", 4, 5));
    assert_eq!(
        TreeOffers::from_bytes(5, &[0; 159]).unwrap_err(),
        TransferError::WrongLength {
            what: "the trees' sums",
            got: 159,
            expected: 160
        }
    );
    let index = WideIndex::new(field(6), 9).unwrap();
    let (_, random) = chooser.extend_indices(8).unwrap();
    let refused = random.correct_wide(index, &[1; 3]).map(|_| ());
    assert_eq!(counts(refused.unwrap_err()), ("the list of indices", 6, 8));
    let (_, random) = chooser.extend_indices(8).unwrap();
    let (_, chosen) = random.correct_wide(index, &[1; 4]).unwrap();
    let refused = chosen.wide_pads(index, &[1; 3], 8).map(|_| ());
    assert_eq!(counts(refused.unwrap_err()), ("the list of indices", 6, 8));
}
