//! What a data user gets for choices of its own, with noise and without.

use super::Noise;
use super::cheat_tests::{
    ALL, BETA, Bits, Places, ROWS, Row, ask, assert_fair, begun, choose, constant_rows, resolution,
    sums, symbol_bytes,
};
use super::payload::write_sums;
use super::provider::ProviderSession;
use super::rows::Rows;
use super::shape::{Shape, TreeNumbers};
use super::tests::{counting_pair, encoding, pair};
use super::user::{UserSession, UserSum, whole_sums};
use crate::closing::OpenSum;
use heda_crypto::random::Randomness;
use heda_crypto::transfer::{ChooserSetup, FieldBits, SenderSetup};
use heda_dp::audit::{GaussianFinding, World, audit_gaussian};
use heda_dp::gaussian::Variance;
use heda_dp::gdp::Delta;
use heda_learn::loss::LossKind;
use heda_learn::private::{ONE, PAYLOAD_LENGTH, PrivatePlan, PrivateRows, SCORE_LENGTH};
use heda_learn::resident::{
    CodeTable, Encoding, PayloadColumn, Resolution, Span, Weights, plain_payload,
};

fn table() -> Vec<Row> {
    let row = |n: i32| [n * 25, 500 - n * 20, n * n % 1025, 0, 1024, 0];
    (0..40).map(|n| (row(n), n as u32 % 2)).collect()
}

/// Every bit turned over: each row has the weight that is as far from the other end as its own was.
#[test]
fn flipped_bits_give_the_opposite_weight_and_nothing_else() {
    let rows = table();
    let honest = sums(&rows, &BETA, Places::Honest, Bits::Honest);
    let flipped = sums(&rows, &BETA, Places::Honest, Bits::Flipped);
    assert_ne!(honest, flipped);
    // (code − zero) + (3 − code − zero), row by row, with zero = 3 for positive rows.
    let mut expected = vec![0i64; 7];
    for (row, label) in &rows {
        let weight = 3 - 6 * i64::from(*label);
        for (sum, value) in expected.iter_mut().zip(plain_payload(&encoding(), row)) {
            *sum += weight * i64::from(value);
        }
    }
    let both: Vec<i64> = honest.iter().zip(&flipped).map(|(a, b)| a + b).collect();
    assert_eq!(both, expected);
}

/// Other digits for every provider: the sum of what each would have answered alone, and of one
/// provider nothing, because its mask is missing.
#[test]
fn other_digits_for_each_provider_give_the_sum_of_both_and_no_part_of_it() {
    let loss = LossKind::Logistic;
    let betas = [BETA, [-1.0, 0.5, 0.0, 7.0, 0.0, 1.0, -3.0]];
    let own = |n: usize, masks: &[u64]| {
        let mut pair = pair(resolution(2), ALL.to_vec(), 30 + n, n as u64);
        let (part, _) = pair.gradient(&betas[n], loss, masks);
        (pair.shape, part)
    };
    let masks = [0x5eed_1234_5678u64, 77, u64::MAX / 3, 1 << 40, 5, 6, 7];
    let minus = masks.map(u64::wrapping_neg);
    let (shape, first) = own(0, &masks);
    let (_, second) = own(1, &minus);
    let alone = [0, 1].map(|n| whole_sums(&shape, &[own(n, &[0; 7]).1]));
    let both: Vec<i64> = alone[0].iter().zip(&alone[1]).map(|(a, b)| a + b).collect();
    assert_eq!(whole_sums(&shape, &[first.clone(), second]), both);
    assert_ne!(whole_sums(&shape, &[first]), alone[0]);
}

/// The limit that the documents state: without noise two answers that differ in the place of one row
/// differ by a multiple of that row. Whoever lets such jobs run trusts the data user.
#[test]
fn without_noise_two_answers_open_a_row() {
    let rows = table();
    // At coefficients of nought the places of scores are known; then from far below or far above.
    let below = Places::Moved(|_| 34);
    let one_above = Places::Moved(|row| if row == 17 { 30 } else { 34 });
    let [low, high] = [below, one_above].map(|places| sums(&rows, &[0.0; 7], places, Bits::Honest));
    let apart: Vec<i64> = high.iter().zip(&low).map(|(h, l)| h - l).collect();
    let payload = plain_payload(&encoding(), &rows[17].0);
    let row: Vec<i64> = payload.iter().map(|value| 3 * i64::from(*value)).collect();
    assert_eq!(apart, row);
}

/// Held-out rows that are all alike: what the data user reads before the counts is uniform, the
/// hidden borrow and the hidden range.
#[test]
fn what_the_data_user_reads_of_held_out_rows_is_uniform() {
    let resolution = Resolution::new(10, 4, 8, 4, 4).unwrap();
    let mut pair = counting_pair(resolution, ROWS, 31);
    let shape = pair.shape.clone();
    let rows = constant_rows([1024, 0, 0, 0, 1024, 0], 1);
    let batch = rows.batch(0..ROWS, 1);
    let weights = Weights::new(&BETA, &encoding(), resolution).unwrap();
    let mut rng = Randomness::seeded(2).fork("hides", 0).unwrap();
    let (user, provider, _) = begun(&mut pair, batch, 1);
    let (question, user) = user.ask_borrow(&shape, &weights, ROWS).unwrap();
    let borrowed = provider.borrow(&shape, batch, &question, &mut rng);
    let (borrows, provider) = borrowed.unwrap();
    let (question, user) = user.ask_lane(&shape, &borrows).unwrap();
    let borrows: Vec<u16> = user
        .places
        .iter()
        .map(|place| u16::from(place & 1))
        .collect();
    assert_fair("borrows", &symbol_bytes(&borrows, 1));
    let (lanes, _) = provider.lanes(&shape, &question, &mut rng).unwrap();
    let (_, user) = user.choose(&shape, &lanes).unwrap();
    assert_fair("lanes", &symbol_bytes(&user.lanes, 4));
}

const WIDTH: usize = 2;
const PRIVATE_ROWS: usize = 6;
const RUNS: usize = 800;

/// A session of both parties in which a private gradient is asked for again and again.
struct Private {
    shape: Shape,
    table: CodeTable,
    weights: Weights,
    noise: Noise,
    user: UserSession,
    provider: ProviderSession,
    worlds: [Rows; 2],
    number: u32,
}

/// One row as long as allowed, positive or not, and empty ones.
fn world(encoding: &Encoding, positive: bool) -> Rows {
    let mut rows = PrivateRows::empty(WIDTH);
    let telling = [PAYLOAD_LENGTH, 0];
    rows.push(&telling, &telling, positive).unwrap();
    for _ in 1..PRIVATE_ROWS {
        rows.push(&[0; WIDTH], &[0; WIDTH], false).unwrap();
    }
    let mut labels = vec![0; PRIVATE_ROWS];
    labels[0] = u32::from(positive);
    Rows::of_private(encoding, &rows, labels)
}

impl Private {
    fn new(variance: Variance) -> Self {
        let (low, high) = (-SCORE_LENGTH, SCORE_LENGTH);
        let payload = PayloadColumn {
            largest: PAYLOAD_LENGTH.unsigned_abs(),
            unit: 1.0 / f64::from(ONE),
        };
        let encoding = Encoding::new(10, [(WIDTH, Span::Between { low, high })]).unwrap();
        let encoding = encoding.with_payload(vec![payload; WIDTH]).unwrap();
        let noise = Noise {
            share: variance,
            providers: 1,
        };
        let resolution = Resolution::PRIVATE;
        let field = FieldBits::new(6).unwrap();
        let shape = Shape {
            row_bits: 3,
            noise_bits: noise.bits(),
            ..Shape::new(&encoding, resolution, (0..WIDTH).collect(), field)
        };
        let mut rng = Randomness::seeded(3).fork("setup", 0).unwrap();
        let (chooser, first) = ChooserSetup::start(field, b"audit", &mut rng);
        let (sender, second) = SenderSetup::answer(field, b"audit", &first, &mut rng);
        let (chooser, third) = chooser.finish(&second, &mut rng).unwrap();
        Self {
            table: CodeTable::new(LossKind::BoundedLogistic, resolution),
            weights: Weights::new(&[0.0; WIDTH + 1], &encoding, resolution).unwrap(),
            shape,
            noise,
            user: UserSession::new(chooser),
            provider: ProviderSession::new(sender.finish(&third).unwrap()),
            worlds: [false, true].map(|positive| world(&encoding, positive)),
            number: 0,
        }
    }

    /// What the data user learns about the telling row from one gradient.
    fn evidence(&mut self, world: World, places: Places, bits: Bits) -> f64 {
        let number = self.number;
        self.number += 1;
        let shape = &self.shape;
        let rows = &self.worlds[usize::from(world == World::Right)];
        let batch = rows.batch(0..PRIVATE_ROWS, 1);
        let numbers = TreeNumbers::gradient(number, 0, false);
        let mut rng = Randomness::seeded(8)
            .fork("gradient", number.into())
            .unwrap();
        let (preprocess, user) = (self.user)
            .preprocess(shape, PRIVATE_ROWS, numbers, &mut rng)
            .unwrap();
        let ready = (self.provider).ready(shape, batch, &preprocess, numbers, &mut rng);
        let (columns, provider) = ready.unwrap();
        let user = user.open(shape, PRIVATE_ROWS, &columns).unwrap();
        let (question, user) = ask(user, shape, &self.weights, places);
        let answered = provider.answer(shape, &self.table, batch, &question, &mut rng);
        let (symbols, provider) = answered.unwrap();
        let (choices, user) = choose(user, shape, &symbols, bits);
        let mut provider_share = OpenSum::of_test(WIDTH);
        let paid = provider.pay(shape, &self.table, batch, &choices, &mut provider_share);
        let noise = Randomness::seeded(9).fork("noise", number.into());
        provider_share.add(&self.noise.of_answer(noise.unwrap()).draw(WIDTH));
        let mut sum = UserSum::new(shape);
        user.open(shape, &paid.unwrap(), &mut sum).unwrap();
        let sums = whole_sums(
            shape,
            &[sum
                .close(
                    shape,
                    &write_sums(shape, &provider_share.under(&[0; WIDTH])),
                )
                .unwrap()],
        );
        -(sums[0] as f64)
    }
}

fn audit(weaker: u64, places: Places, bits: Bits) -> GaussianFinding {
    let delta = Delta::new(1e-5).unwrap();
    let plan = PrivatePlan::new(20, WIDTH, "64".parse().unwrap(), delta).unwrap();
    let variance = Variance::new(plan.variance().get() / (weaker * weaker)).unwrap();
    let mut session = Private::new(variance);
    audit_gaussian(plan.cost_of_pass(), RUNS, 0.99, |world| {
        session.evidence(world, places, bits)
    })
    .unwrap()
}

/// The engine's own steps, asked for a gradient thousands of times by a data user that knows all but
/// whether one row is positive: no strategy refutes what the gradient was charged. With half of the
/// noise the strongest one does.
#[test]
fn no_choice_of_places_and_bits_refutes_the_price_of_a_gradient() {
    let strategies = [
        (Places::Honest, Bits::Honest),
        (Places::Honest, Bits::Flipped),
        (Places::Any, Bits::Any),
        (Places::Moved(|_| 16), Bits::Honest),
    ];
    let findings = strategies.map(|(places, bits)| audit(1, places, bits));
    for (finding, strategy) in findings.iter().zip(strategies) {
        assert!(!finding.is_refuted(), "{strategy:?}: {finding:?}");
    }
    // What is charged is not far from what can be proved.
    let [strongest, ..] = findings;
    assert!(
        strongest.mu_at_least > 0.4 * strongest.claimed.mu(),
        "{strongest:?}"
    );
    let (places, bits) = strategies[0];
    let weakened = audit(2, places, bits);
    assert!(weakened.is_refuted(), "{weakened:?}");
}
