//! Numeric labels and weights of classes against the oracle: every message as bytes.

use super::tests::{BETAS, Pair, encoding, pair};
use super::user::whole_sums;
use crate::class_weights::ClassWeights;
use crate::engine::label_encoding::LabelEncoding;
use heda_learn::gradient::Batch;
use heda_learn::loss::LossKind;
use heda_learn::resident::{CodeTable, GridRows, Measure, Position, ResidentSource, Resolution};
use heda_learn::target::{RowLabel, STEPS, TargetScale};

const HIDDEN: [usize; 6] = [0, 1, 2, 3, 4, 5];

/// Labels between the bounds, at both of them, and far from the others.
fn numbers(rows: usize) -> Vec<u32> {
    let spread = |row: usize| 500_000 + (row * 7919 % 60_000) as u32;
    let mut labels: Vec<u32> = (0..rows).map(spread).collect();
    labels[..2].copy_from_slice(&[0, STEPS]);
    labels
}

/// A pair whose rows have these labels, read so.
fn labelled(resolution: Resolution, labels: Vec<u32>, labels_as: &LabelEncoding) -> Pair {
    let mut pair = pair(resolution, HIDDEN.to_vec(), labels.len(), 9);
    let grid = pair.grid.0.clone();
    pair.rows = super::rows::Rows::plain(&encoding(), grid, labels.clone()).read_as(labels_as);
    pair.grid.1 = labels;
    pair
}

fn compare(mut pair: Pair, labels_as: &LabelEncoding, positive: u32, table: &CodeTable) {
    for beta in BETAS {
        let masks = vec![0; pair.shape.largest.len()];
        let (part, drawn) = pair.gradient_by(&beta, table, &masks);
        let sums = whole_sums(&pair.shape, &[part]);
        let labels = pair.grid.1.iter();
        let labels: Vec<RowLabel> = labels.map(|l| labels_as.label(*l, positive)).collect();
        let rows = GridRows::plain(&encoding(), pair.grid.0.clone(), labels).unwrap();
        let coins = |at: Position| drawn[at.row];
        let resolution = pair.shape.resolution;
        let oracle =
            ResidentSource::by_table(resolution, encoding(), table.clone(), vec![rows], coins);
        let expected = oracle.unwrap().whole_sums(&beta, Batch::FULL).unwrap();
        assert_eq!(sums, expected[..sums.len()], "{labels_as:?} at {beta:?}");
        assert!(beta == [0.0; 7] || sums.iter().any(|sum| *sum != 0));
    }
}

#[test]
fn gradients_of_numbers_equal_the_oracle() {
    let labels = numbers(61);
    let labels_as = LabelEncoding::Number(TargetScale::of(&labels[2..]).unwrap());
    for (digits, k, b, bound) in [(3, 8, 8, 4), (2, 6, 3, 5), (4, 7, 12, 3)] {
        let resolution = Resolution::new(10, digits, k, b, bound).unwrap();
        let pair = labelled(resolution, labels.clone(), &labels_as);
        compare(pair, &labels_as, 1, &CodeTable::of_numbers(resolution));
    }
}

#[test]
fn errors_of_held_out_rows_equal_the_oracle() {
    let labels = numbers(53);
    let labels_as = LabelEncoding::Number(TargetScale::of(&labels[2..]).unwrap());
    let resolution = Resolution::new(10, 4, 8, 16, 4).unwrap();
    for measure in Measure::ALL {
        let mut pair = labelled(resolution, labels.clone(), &labels_as);
        // As in the evaluation: of each row its error alone.
        pair.shape.largest = vec![1];
        let table = CodeTable::of_errors(measure, resolution);
        compare(pair, &labels_as, 1, &table);
    }
}

#[test]
fn gradients_of_weighed_classes_equal_the_oracle() {
    let resolution = Resolution::new(10, 3, 8, 6, 4).unwrap();
    let labels: Vec<u32> = (0..47).map(|row| row * 5 % 3).collect();
    for class_weights in [
        ClassWeights::Pairs(vec![[0.625, 5.0]]),
        ClassWeights::ByClass(vec![0.5, 1.0, 4.0]),
    ] {
        for loss in [LossKind::Logistic, LossKind::SquaredHinge, LossKind::Ridge] {
            let table = class_weights.table(0, loss, resolution);
            let labels_as = LabelEncoding::Classes(class_weights.clone());
            let pair = labelled(resolution, labels.clone(), &labels_as);
            compare(pair, &labels_as, 1, &table);
        }
    }
}
