//! What a data user gets that chooses at will: of every row at most a one, in one place of its class, or
//! among the right predictions.

use super::*;
use crate::engine::resident::shape::TreeNumbers;
use crate::engine::resident::tests::counting_pair;
use crate::histogram::{DECISION_EDGE, EDGES, PRIVATE_EDGES};
use crate::rounds::Tally;
use heda_crypto::random::Randomness;
use heda_learn::resident::Resolution;

/// A one, in units.
const UNIT: u64 = 256;

/// The counts of one row, read honestly or at an entry of one's own choice.
fn counted(edges: &'static [f64], tally: Tally, label: u32, own: Option<u16>) -> Vec<u64> {
    let resolution = Resolution::new(10, 4, 8, 4, 4).unwrap();
    let mut pair = counting_pair(resolution, 1, 3);
    pair.shape.edges = edges;
    pair.shape.row_bits = 32;
    pair.shape.unit = UNIT;
    pair.shape.tally = tally;
    let shape = pair.shape.clone();
    let batch = pair.rows.batch(0..1, pair.grid.1[0] ^ label);
    let rng = |what: &str| Randomness::seeded(9).fork(what, 0).unwrap();
    let numbers = TreeNumbers::Evaluation { number: 0 };
    let preprocess = pair.user.preprocess(&shape, 1, numbers, &mut rng("places"));
    let (preprocess, user) = preprocess.unwrap();
    let ready = pair
        .provider
        .ready(&shape, batch, &preprocess, numbers, &mut rng("trees"));
    let (columns, provider) = ready.unwrap();
    let user = user.open(&shape, 1, &columns).unwrap();
    let weights = Weights {
        constant: 0,
        columns: vec![7, -3, 0, 1, 2, 5],
        shrunk: 1.0,
    };
    let (question, user) = user.ask_borrow(&shape, &weights, 1).unwrap();
    let answered = provider.borrow(&shape, batch, &question, &mut rng("borrows"));
    let (borrows, provider) = answered.unwrap();
    let (question, user) = user.ask_lane(&shape, &borrows).unwrap();
    let (lanes, provider) = provider
        .lanes(&shape, &question, &mut rng("lanes"))
        .unwrap();
    let (choices, user) = match own {
        None => user.choose(&shape, &lanes).unwrap(),
        Some(entry) => {
            let bits: Vec<bool> = (0..LANE_BITS)
                .map(|level| entry >> level & 1 == 1)
                .collect();
            let (corrections, chosen) = user.payload.correct(&bits).unwrap();
            let lanes = Zeroizing::new(vec![entry]);
            (corrections.to_bytes(), UserCounting { lanes, chosen })
        }
    };
    let mut sum = OpenSum::of_test(shape.counts());
    let counted = provider.count(&shape, batch, &choices, &mut sum, &mut rng("counts"));
    let mut payload = counted.unwrap();
    let zeros = vec![0; shape.counts()];
    payload.extend(write_counts(&shape, &sum.under(&zeros)));
    let counts = user.counts(&shape, &payload).unwrap();
    let rows = counts.iter().map(|count| {
        let units = count & 0xffff_ffff;
        assert_eq!(units % UNIT, 0, "{counts:?}");
        units / UNIT
    });
    rows.collect()
}

#[test]
fn a_row_adds_a_one_in_one_place_of_its_class_or_nothing_whatever_is_chosen() {
    for edges in [&EDGES[..], &PRIVATE_EDGES, &DECISION_EDGE] {
        let lanes = edges.len() + 1;
        for label in [0, 1] {
            let honest = counted(edges, Tally::Table, label, None);
            assert_eq!(honest.iter().sum::<u64>(), 1);
            let mut hits = vec![0; 2 * lanes];
            for entry in 0..ENTRIES as u16 {
                let counts = counted(edges, Tally::Table, label, Some(entry));
                assert_eq!(counts.len(), 2 * lanes);
                assert!(counts.iter().sum::<u64>() <= 1, "{counts:?}");
                for (hit, count) in hits.iter_mut().zip(&counts) {
                    *hit += count;
                }
            }
            // Every range of its class by one entry, and no other place by any.
            let own = hits.iter().filter(|hit| **hit == 1).count();
            assert_eq!((own, hits.iter().sum::<u64>()), (lanes, lanes as u64));
            let (negative, positive) = hits.split_at(lanes);
            assert!(negative.iter().all(|h| *h == 0) || positive.iter().all(|h| *h == 0));
        }
    }
}

/// The number of right predictions is the sum of the table's right places, and whatever is chosen a row
/// adds a one or nothing to it.
#[test]
fn a_row_adds_a_one_or_nothing_to_the_right_predictions_whatever_is_chosen() {
    for edges in [&PRIVATE_EDGES[..], &DECISION_EDGE] {
        let lanes = edges.len() + 1;
        for label in [0, 1] {
            let table = counted(edges, Tally::Table, label, None);
            let right = table[..lanes / 2].iter().chain(&table[lanes + lanes / 2..]);
            let right: u64 = right.sum();
            assert_eq!(counted(edges, Tally::Right, label, None), [right]);
            let all =
                (0..ENTRIES as u16).map(|entry| counted(edges, Tally::Right, label, Some(entry)));
            let all: Vec<u64> = all.flatten().collect();
            assert!(all.iter().all(|count| *count <= 1), "{all:?}");
            assert_eq!(all.iter().sum::<u64>(), lanes as u64 / 2);
        }
    }
}
