//! What the engine says before anything is paid for: every limit at its bound and one beyond.

use super::shape::Shape;
use super::{
    HELD_OUT_LIMIT, NOISY_COUNT_BITS, PROVIDER_ROW_LIMIT, ROW_LIMIT, Resident, count_noise,
    next_batch, private_edges, training_field,
};
use crate::description::RawJob;
use crate::engine::testing::dataset;
use crate::engine::{Columns, Implementation, Part, Terms};
use crate::histogram::{DECISION_EDGE, PRIVATE_EDGES};
use crate::plan::JobPlan;
use crate::proposal::testing::{proposal_of, raw};
use crate::proposal::{Privacy, Proposal};
use heda_crypto::transfer::MAX_PAD_BYTES;
use heda_dp::gdp::Delta;
use heda_learn::gradient::Batch;
use heda_learn::optimise::Method;
use heda_learn::private::evaluation::ROWS_FOR_AREA;
use heda_learn::resident::{Encoding, Resolution};
use std::num::NonZeroU32;

/// Few rows.
const SMALL: Part = Part {
    rows: 10,
    held_out: 2,
};

fn proposal(change: impl FnOnce(&mut RawJob)) -> Proposal {
    let mut raw = raw();
    change(&mut raw);
    proposal_of(raw)
}

/// Why the engine cannot do a job with so many hidden columns, if it cannot.
fn refused(proposal: &Proposal, hidden: usize, part: Part) -> Option<String> {
    let columns = Columns {
        width: hidden,
        hidden: (0..hidden).collect(),
        open: Vec::new(),
    };
    let data = dataset(3, 1);
    let plan = JobPlan::of(proposal, hidden).unwrap();
    let terms = Terms {
        proposal,
        features: data.features(),
        columns: &columns,
        plan: plan.as_ref(),
    };
    Resident.check(&terms, part).err().map(|e| e.to_string())
}

fn in_batches(batches: usize) -> Proposal {
    proposal(|raw| {
        raw.training.settings.method = Method::Descent {
            rate: 0.5,
            minimum_rate: 0.0,
            decay: 0.0,
            batches,
        };
    })
}

#[test]
fn a_batch_has_2_to_the_24_rows_of_a_provider_at_most() {
    for (batches, rows, fits) in [
        (1, ROW_LIMIT, true),
        (1, ROW_LIMIT + 1, false),
        (10, 10 * ROW_LIMIT, true),
        (10, 10 * ROW_LIMIT + 1, false),
        (10, 20 * ROW_LIMIT, false),
    ] {
        let part = Part { rows, ..SMALL };
        match refused(&in_batches(batches), 6, part) {
            None => assert!(fits, "{batches} {rows}"),
            Some(words) => assert!(!fits && words.contains("use batches"), "{words}"),
        }
    }
    // More than any one batch, and so few that sums of columns keep sixteen fraction bits.
    let limits = Resident.limits();
    assert_eq!((limits.rows, limits.held_out), (1 << 30, HELD_OUT_LIMIT));
    assert!(crate::moments::fraction_bits(PROVIDER_ROW_LIMIT).is_ok());
}

#[test]
fn a_provider_holds_2_to_the_18_rows_out_at_most() {
    let of = |held_out| Part { held_out, ..SMALL };
    let job = proposal(|_| {});
    assert_eq!(refused(&job, 6, of(HELD_OUT_LIMIT)), None);
    let words = refused(&job, 6, of(HELD_OUT_LIMIT + 1)).unwrap();
    assert!(words.contains("hold out fewer"), "{words}");
}

/// A pad holds eight bytes for each column and for the bias.
#[test]
fn there_are_no_more_columns_than_a_pad_is_long() {
    let most = MAX_PAD_BYTES / 8 - 1;
    let job = proposal(|_| {});
    assert_eq!(refused(&job, most, SMALL), None);
    for columns in [most + 1, 2 * most] {
        let words = refused(&job, columns, SMALL).unwrap();
        assert!(words.contains(&format!("takes {most}")), "{words}");
    }
}

/// A column of [0, 1] on the grid has ten bits; with 25 for the rows, one for the sign and twelve for a derivative a sum
/// has 48.
#[test]
fn sums_have_48_bits_at_most() {
    let cut = |code_bits| {
        let resolution = Resolution::new(10, 3, 8, code_bits, 4).unwrap();
        refused(
            &proposal(|raw| raw.training.resolution = resolution),
            6,
            SMALL,
        )
    };
    assert_eq!(cut(12), None);
    for (code_bits, bits) in [(13, 49), (16, 52)] {
        let words = cut(code_bits).unwrap();
        assert!(
            words.contains(&format!("would have {bits} bits")),
            "{words}"
        );
    }
}

/// What a data user says of the number of all rows is believed if it can be true.
#[test]
fn all_rows_are_no_fewer_than_ones_own_and_no_more_than_sums_hold() {
    let resolution = Resolution::new(10, 3, 8, 6, 4).unwrap();
    let encoding = Encoding::of_features(dataset(3, 1).features(), 10).unwrap();
    let field = training_field(resolution).unwrap();
    let shape = Shape::new(&encoding, resolution, (0..6).collect(), field);
    for (row_bits, own, possible) in [
        (2, 4, false),
        (2, 3, true),
        (3, 4, true),
        (3, 7, true),
        (3, 8, false),
        (31, 8, true),
        (32, 8, false),
        (48, 8, false),
        (u32::MAX, 8, false),
    ] {
        let found = shape.of_all_rows(row_bits, own);
        assert_eq!(found.is_some(), possible, "{row_bits} {own}");
        assert!(found.is_none_or(|shape| shape.row_bits == row_bits));
    }
}

fn private(epsilon: &str, delta: f64, rows: u64) -> Privacy {
    Privacy::new(epsilon.parse().unwrap(), Delta::new(delta).unwrap(), rows)
}

/// The ranges of scores are told apart where there are rows enough, as the proposal states them.
#[test]
fn a_table_of_a_thousand_rows_has_ranges_of_scores() {
    let edges = |rows| {
        let job = proposal(|raw| {
            raw.held_out = 0.5;
            raw.privacy = Some(private("1", 1e-5, rows));
        });
        assert_eq!(job.held_out_rows(), rows);
        private_edges(&job)
    };
    assert_eq!(edges(ROWS_FOR_AREA - 1), DECISION_EDGE);
    assert_eq!(edges(ROWS_FOR_AREA), PRIVATE_EDGES);
}

/// The least promises for which there is a plan, with as many providers as there may be and none that counts on
/// others: the noise of their counts is the largest that a word ever holds.
#[test]
fn the_noise_of_counts_fits_their_words_for_every_plan() {
    let columns = Columns {
        width: 6,
        hidden: (0..6).collect(),
        open: Vec::new(),
    };
    let bits = |models: u32, delta: f64| {
        let mut job = proposal(|raw| {
            raw.positives = (0..models).collect();
            raw.privacy = Some(Privacy {
                models: NonZeroU32::new(models).unwrap(),
                trusted: Some(0),
                ..private("0.000001", delta, 1)
            });
        });
        job.parties.identities = vec!["00".repeat(32); 1024];
        let plan = JobPlan::of(&job, columns.width).ok().flatten()?;
        let terms = Terms {
            proposal: &job,
            features: &[],
            columns: &columns,
            plan: Some(&plan),
        };
        let noise = count_noise(&terms)?;
        Some(noise.right.bits().max(noise.table.bits()))
    };
    for models in [1, 3, 256] {
        let deltas = (0..400).map(|step| 10f64.powf(-3.0 - f64::from(step) / 40.0));
        let all: Vec<Option<u32>> = deltas.map(|delta| bits(models, delta)).collect();
        let most = all.iter().flatten().max().unwrap();
        assert!(most + 2 <= NOISY_COUNT_BITS, "{models}: {most}");
        assert!(
            *most > 34,
            "{models}: the largest noise is among them: {most}"
        );
        assert_eq!(all.last(), Some(&None), "smaller promises have no plan");
    }
}

#[test]
fn the_batch_that_is_prepared_is_the_next_one_in_turn() {
    for (index, next) in [(0, 1), (1, 2), (2, 0)] {
        assert_eq!(next_batch(Batch::new(index, 3)), Batch::new(next, 3));
    }
    assert_eq!(next_batch(Batch::FULL), Batch::FULL);
}

#[test]
fn a_batch_is_cut_into_blocks_that_follow_one_another() {
    let resolution = Resolution::default();
    let encoding = Encoding::of_features(dataset(3, 1).features(), 10).unwrap();
    let field = training_field(resolution).unwrap();
    let usual = Shape::new(&encoding, resolution, (0..6).collect(), field);
    let shape = Shape {
        block_rows: 4,
        ..usual.clone()
    };
    assert_eq!(shape.blocks(0..8), [0..4, 4..8]);
    assert_eq!(shape.blocks(3..12), [3..7, 7..11, 11..12]);
    assert_eq!(shape.blocks(3..3), []);
    assert_eq!(usual.blocks(5..70_000).len(), 3);
}

/// A finer cut of derivatives rounds less; the training stops asking for more where this is all that is left.
#[test]
fn the_rounding_of_a_derivative_is_that_of_its_cut() {
    let cut = |code_bits| Resolution::new(10, 3, 8, code_bits, 4).unwrap();
    let [coarse, fine] = [3, 8].map(|bits| Resident.rounding(cut(bits)));
    assert_eq!(coarse, cut(3).rounding());
    assert!(
        0.0 < fine && fine < coarse && coarse < 0.5,
        "{fine} {coarse}"
    );
}
