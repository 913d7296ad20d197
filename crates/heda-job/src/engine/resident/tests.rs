//! The engine against its oracle, in memory: every message as bytes, both roles from seeds.

use super::payload::write_sums;
use super::provider::ProviderSession;
use super::rows::Rows;
use super::shape::{Shape, TreeNumbers};
use super::user::{UserSession, UserSum, whole_sums};
use super::{COUNT_FIELD_BITS, check_held_out, training_field};
use crate::closing::OpenSum;
use crate::engine::{Columns, Part, Terms};
use crate::proposal::testing::proposal;
use heda_crypto::random::Randomness;
use heda_crypto::transfer::{ChooserSetup, FieldBits, SenderSetup};
use heda_learn::gradient::Batch;
use heda_learn::loss::LossKind;
use heda_learn::resident::{
    CodeTable, Encoding, GridRows, PayloadColumn, Position, ResidentSource, Resolution, RowCoins,
    Span, Weights, plain_payload,
};
use rand_core::Rng;
use std::collections::BTreeMap;
use zeroize::Zeroizing;

/// Three numbers, which may be negative, and a category of three levels; the second number may be
/// published.
pub(super) fn encoding() -> Encoding {
    let number = Span::Between {
        low: -1024,
        high: 1024,
    };
    Encoding::new(10, [(3, number), (3, Span::OneHot)]).unwrap()
}

/// The same with a payload of its own.
fn weighted() -> Encoding {
    let column = |largest| PayloadColumn { largest, unit: 0.5 };
    let payload = [9, 2000, 2000, 2000, 40, 40, 40].map(column);
    encoding().with_payload(payload.to_vec()).unwrap()
}

/// Values on the grid: ends, middle, random; labels 0 and 1.
fn grid(rows: usize, seed: u64) -> (Vec<i32>, Vec<u32>) {
    let mut rng = Randomness::seeded(seed).fork("rows", 0).unwrap();
    let mut values = Vec::new();
    for row in 0..rows {
        let shaped = [0, 1024, -1024, 512, -1, 1];
        for column in 0..3 {
            let random = (rng.next_u32() % 2049) as i32 - 1024;
            values.push(*shaped.get(row / 3 + column).unwrap_or(&random));
        }
        let level = rng.next_u32() as usize % 4;
        values.extend((0..3).map(|l| if l == level { 1024 } else { 0 }));
    }
    let labels = (0..rows).map(|_| rng.next_u32() % 2).collect();
    (values, labels)
}

/// The numbers of the first gradient's trees.
pub(super) const FIRST: TreeNumbers = TreeNumbers::Gradient {
    iteration: 0,
    block: 0,
    again: false,
};

pub(super) struct Pair {
    pub(super) shape: Shape,
    pub(super) user: UserSession,
    pub(super) provider: ProviderSession,
    pub(super) rows: Rows,
    pub(super) grid: (Vec<i32>, Vec<u32>),
    payload: Vec<i32>,
}

pub(super) fn pair(resolution: Resolution, hidden: Vec<usize>, rows: usize, seed: u64) -> Pair {
    let (grid, encoding) = (grid(rows, seed), encoding());
    let payload = plain_payload(&encoding, &grid.0);
    pair_with(resolution, hidden, &encoding, grid, payload, seed)
}

/// Payloads that have nothing to do with the values.
fn weighted_pair(resolution: Resolution, hidden: Vec<usize>, rows: usize, seed: u64) -> Pair {
    let (grid, encoding) = (grid(rows, seed), weighted());
    let mut rng = Randomness::seeded(seed).fork("payload", 0).unwrap();
    let mut number = |largest: u32| (rng.next_u32() % (2 * largest + 1)) as i32 - largest as i32;
    let columns = encoding.payload();
    let row = |_| {
        columns
            .iter()
            .map(|c| number(c.largest))
            .collect::<Vec<_>>()
    };
    let payload = (0..rows).flat_map(row).collect();
    pair_with(resolution, hidden, &encoding, grid, payload, seed)
}

fn pair_with(
    resolution: Resolution,
    hidden: Vec<usize>,
    encoding: &Encoding,
    grid: (Vec<i32>, Vec<u32>),
    payload: Vec<i32>,
    seed: u64,
) -> Pair {
    let field = training_field(resolution).unwrap();
    let shape = Shape {
        row_bits: 12,
        ..Shape::new(encoding, resolution, hidden, field)
    };
    pair_of(shape, encoding, grid, payload, seed)
}

/// Both roles as they are for held-out rows: two tables a row, in one transfer each.
pub(super) fn counting_pair(resolution: Resolution, rows: usize, seed: u64) -> Pair {
    let (grid, encoding) = (grid(rows, seed), encoding());
    let payload = plain_payload(&encoding, &grid.0);
    let field = FieldBits::new(COUNT_FIELD_BITS).unwrap();
    let shape = Shape {
        row_bits: 12,
        tables: 2,
        ..Shape::new(&encoding, resolution, (0..6).collect(), field)
    };
    pair_of(shape, &encoding, grid, payload, seed)
}

fn pair_of(
    shape: Shape,
    encoding: &Encoding,
    grid: (Vec<i32>, Vec<u32>),
    payload: Vec<i32>,
    seed: u64,
) -> Pair {
    let field = shape.field;
    let mut user_rng = Randomness::seeded(seed).fork("user", 0).unwrap();
    let mut rng = Randomness::seeded(seed).fork("provider", 0).unwrap();
    let (chooser, first) = ChooserSetup::start(field, b"test", &mut user_rng);
    let (sender, second) = SenderSetup::answer(field, b"test", &first, &mut rng);
    let (chooser, third) = chooser.finish(&second, &mut user_rng).unwrap();
    let sender = sender.finish(&third).unwrap();
    Pair {
        user: UserSession::new(chooser),
        provider: ProviderSession::new(sender),
        rows: Rows::new(encoding, grid.0.clone(), payload.clone(), grid.1.clone()),
        shape,
        grid,
        payload,
    }
}

impl Pair {
    /// What U knows of the scores: the constant and the published columns.
    pub(super) fn known(&self, weights: &Weights) -> Zeroizing<Vec<u32>> {
        let rows = self.grid.0.chunks_exact(6);
        let known = rows.map(|row| {
            let open = (0..6).filter(|column| !self.shape.hidden.contains(column));
            let sum = open.fold(weights.constant, |sum, column| {
                sum + weights.columns[column] * i64::from(row[column])
            });
            sum as u32
        });
        Zeroizing::new(known.collect())
    }

    /// One gradient; the provider's part of the sums, and what it drew.
    pub(super) fn gradient(
        &mut self,
        beta: &[f64],
        loss: LossKind,
        masks: &[u64],
    ) -> (Vec<u64>, Vec<RowCoins>) {
        let table = CodeTable::new(loss, self.shape.resolution);
        self.gradient_by(beta, &table, masks)
    }

    /// The same with any table.
    pub(super) fn gradient_by(
        &mut self,
        beta: &[f64],
        table: &CodeTable,
        masks: &[u64],
    ) -> (Vec<u64>, Vec<RowCoins>) {
        let mut rng = Randomness::seeded(7).fork("coins", 0).unwrap();
        let (shape, count) = (&self.shape.clone(), self.rows.count());
        let weights = Weights::new(beta, &encoding(), shape.resolution).unwrap();
        let known = self.known(&weights);
        let batch = self.rows.batch(0..count, 1);
        let (preprocess, user) = self.user.preprocess(shape, count, FIRST, &mut rng).unwrap();
        let (columns, provider) = self
            .provider
            .ready(shape, batch, &preprocess, FIRST, &mut rng)
            .unwrap();
        let user = user.open(shape, count, &columns).unwrap();
        let (question, user) = user.ask(shape, &weights, known).unwrap();
        let answered = provider.answer(shape, table, batch, &question, &mut rng);
        let (symbols, provider) = answered.unwrap();
        let (choices, user) = user.choose(shape, &symbols).unwrap();
        let drawn = provider.drawn.clone();
        let mut provider_share = OpenSum::of_test(shape.largest.len());
        let mut sum = UserSum::new(shape);
        let paid = provider.pay(shape, table, batch, &choices, &mut provider_share);
        user.open(shape, &paid.unwrap(), &mut sum).unwrap();
        (
            sum.close(shape, &write_sums(shape, &provider_share.under(masks)))
                .unwrap(),
            drawn,
        )
    }

    fn grid_rows(&self) -> GridRows {
        let positive = self.grid.1.iter().map(|&l| l == 1).collect();
        GridRows::new(
            &encoding(),
            self.grid.0.clone(),
            self.payload.clone(),
            positive,
        )
        .unwrap()
    }
}

pub(super) const BETAS: [[f64; 7]; 4] = [
    [0.0; 7],
    [0.3, -2.0, 5.5, 0.01, 1.0, -1.0, 3.0],
    [-1.0, 40.0, -40.0, 40.0, 10.0, -10.0, 0.0],
    [0.1, 1e-3, -1e-3, 0.5, 0.0, 0.25, -0.25],
];

type MakePair = fn(Resolution, Vec<usize>, usize, u64) -> Pair;

fn compare(resolution: Resolution, loss: LossKind, hidden: &[usize], providers: usize) {
    for (make, encoding) in [(pair as MakePair, encoding()), (weighted_pair, weighted())] {
        compare_with(make, encoding, resolution, loss, hidden, providers);
    }
}

/// Providers with shares of the rows, masks that cancel, against the oracle with the same coins.
fn compare_with(
    make: MakePair,
    encoding: Encoding,
    resolution: Resolution,
    loss: LossKind,
    hidden: &[usize],
    providers: usize,
) {
    let mut pairs: Vec<Pair> = (0..providers)
        .map(|n| make(resolution, hidden.to_vec(), 37 + 11 * n, 5 + n as u64))
        .collect();
    let mut rng = Randomness::seeded(3).fork("masks", 0).unwrap();
    for beta in BETAS {
        let mut masks: Vec<Vec<u64>> = (1..providers)
            .map(|_| (0..7).map(|_| rng.next_u64()).collect())
            .collect();
        let last = (0..7).map(|j| masks.iter().fold(0u64, |s, m| s.wrapping_sub(m[j])));
        masks.push(last.collect());
        let mut drawn = BTreeMap::new();
        let mut parts = Vec::new();
        for (number, (pair, masks)) in pairs.iter_mut().zip(&masks).enumerate() {
            let (part, coins) = pair.gradient(&beta, loss, masks);
            parts.push(part);
            drawn.insert(number, coins);
        }
        let sums = whole_sums(&pairs[0].shape, &parts);
        let coins = |at: Position| drawn[&at.provider][at.row];
        let rows = pairs.iter().map(Pair::grid_rows).collect();
        let encoding = encoding.clone();
        let mut oracle = ResidentSource::new(resolution, encoding, loss, rows, coins).unwrap();
        let expected = oracle.whole_sums(&beta, Batch::FULL).unwrap();
        assert_eq!(
            sums, expected,
            "{loss} {resolution:?} {hidden:?} at {beta:?}"
        );
    }
}

#[test]
fn equals_the_oracle_for_every_loss_and_resolution() {
    let resolutions = [
        (2, 6, 1, 4),
        (3, 8, 8, 4),
        (4, 5, 3, 2),
        (1, 4, 2, 5),
        (3, 7, 12, 6),
        (2, 9, 2, 4),
        (3, 10, 8, 6),
    ];
    for (digits, k, b, bound) in resolutions {
        for loss in [LossKind::Logistic, LossKind::SquaredHinge, LossKind::Ridge] {
            let resolution = Resolution::new(10, digits, k, b, bound).unwrap();
            compare(resolution, loss, &[0, 1, 2, 3, 4, 5], 1);
        }
    }
}

#[test]
fn equals_the_oracle_with_published_columns_and_several_providers() {
    let resolution = Resolution::new(10, 2, 6, 1, 4).unwrap();
    for hidden in [&[0, 2, 3, 4, 5][..], &[1]] {
        compare(resolution, LossKind::Logistic, hidden, 2);
    }
    let resolution = Resolution::new(10, 3, 8, 8, 4).unwrap();
    compare(resolution, LossKind::Logistic, &[0, 1, 2, 3, 4, 5], 5);
}

#[test]
fn too_many_held_out_rows_are_refused_with_the_remedy() {
    let proposal = proposal();
    let columns = Columns {
        width: 14,
        hidden: (0..14).collect(),
        open: Vec::new(),
    };
    let terms = Terms {
        proposal: &proposal,
        features: &[],
        columns: &columns,
        plan: None,
    };
    let reason = |held_out| {
        let part = Part {
            rows: 1000,
            held_out,
        };
        check_held_out(&terms, part).err().map(|e| e.to_string())
    };
    assert_eq!(reason(6_512), None);
    let many = reason(300_000).unwrap();
    assert!(many.contains("hold out fewer"), "{many}");
}
