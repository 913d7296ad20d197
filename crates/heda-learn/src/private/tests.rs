//! The claims of the module: lengths, sensitivity, costs, and that it learns.

use super::*;
use crate::bundled::{Bundle, Coding};
use crate::data::{Dataset, RowsError};
use crate::gradient::{Batch, GradientSource};
use crate::loss::LossKind;
use crate::optimise::Optimiser;
use crate::resident::Position;
use crate::resident::RowCoins;
use crate::schema::Schema;
use crate::split::Split;
use chacha20::ChaCha8Rng;
use heda_dp::epsilon::Epsilon;
use heda_dp::gaussian::sample;
use heda_dp::gdp::Delta;
use proptest::prelude::*;
use rand_core::{Rng, SeedableRng};
use std::cell::RefCell;
use std::ops::ControlFlow;

pub(super) fn epsilon(text: &str) -> Epsilon {
    text.parse().unwrap()
}

pub(super) fn delta() -> Delta {
    Delta::new(1e-5).unwrap()
}

pub(super) const SMALL: &str = r#"
        format = 1
        name = "small"
        [label]
        column = "y"
        classes = ["no", "yes"]
        positive = "yes"
        [[column]]
        name = "age"
        kind = "numeric"
        bounds = [0, 100]
        typical = { mean = 40, deviation = 10 }
        [[column]]
        name = "size"
        kind = "numeric"
        bounds = [-2, 2]
        [[column]]
        name = "grade"
        kind = "ordinal"
        levels = ["a", "b", "c"]
        [[column]]
        name = "town"
        kind = "categorical"
        levels = ["x", "y", "z", "w"]
        coding = "onehot"
    "#;

fn schema() -> Schema {
    Schema::parse(SMALL, "small.toml").unwrap()
}

fn dataset(values: Vec<f64>) -> Dataset {
    let schema = schema();
    let rows = values.len() / schema.width();
    let labels = (0..rows as u32).map(|row| row % 2).collect();
    Dataset::new(schema.features(), values, labels, schema.label().classes()).unwrap()
}

/// The model, on rows within its reach, is what was trained and what is evaluated under encryption.
#[test]
fn the_model_sees_rows_as_they_were_trained_on() {
    let encoding = PrivateEncoding::new(&schema());
    let reach = encoding.reach();
    assert_eq!(
        reach.ends()[0].map(|end| (end * 100.0).round()),
        [10.0, 70.0]
    );
    assert!(reach.ends()[1..].iter().all(|ends| *ends == [0.0, 1.0]));
    let beta = [0.5, -3.0, 2.0, 1.0, 4.0, -1.0, 0.25, -2.0];
    let coefficients = encoding.coefficients(&beta);
    for age in [0.0, 0.09, 0.1, 0.4, 0.69, 0.71, 1.0] {
        let row = [age, 0.3, 1.0, 0.0, 0.0, 1.0, 0.0];
        let trained = encoding.rows(&dataset(row.to_vec()), 1).unwrap();
        // Cutting to a length does not change the sign: undone by the bias, which is 0.4.
        let cut = trained.score(0);
        let factor = 0.4 / f64::from(cut[0]);
        let score = cut
            .iter()
            .zip(beta)
            .map(|(x, b)| f64::from(*x) * factor * b);
        let (trained, seen) = (
            score.sum::<f64>(),
            crate::oracle::score(&coefficients, &reach.within(&row)),
        );
        assert!((trained - seen).abs() < 0.02, "{age}: {trained} {seen}");
    }
    let beyond = crate::oracle::score(&coefficients, &[1.0, 0.3, 1.0, 0.0, 0.0, 1.0, 0.0]);
    let seen = crate::oracle::score(
        &coefficients,
        &reach.within(&[1.0, 0.3, 1.0, 0.0, 0.0, 1.0, 0.0]),
    );
    assert!((beyond - seen).abs() > 1.0, "the reach makes no difference");
}

#[test]
fn values_count_in_deviations_from_what_is_typical() {
    let encoding = PrivateEncoding::new(&schema());
    // Age 47, the middle of the size, grade c, town y: 0.7·√4 = 1.4 divides them all.
    let data = dataset(vec![0.47, 0.5, 1.0, 0.0, 1.0, 0.0, 0.0]);
    let rows = encoding.rows(&data, 1).unwrap();
    let grade = 1.0 / (2.0f64 / 3.0).sqrt();
    let expected = [0.4, 0.7 / 1.4, 0.0, grade / 1.4, -0.25 / 1.4, 0.75 / 1.4];
    for (column, value) in expected.iter().enumerate() {
        let found = f64::from(rows.score(0)[column]) / f64::from(ONE);
        assert!((found - value).abs() < 1e-3, "column {column}: {found}");
    }
    // Three deviations are the most; such a row is cut for its score and for its payload.
    let far = encoding.rows(&dataset(vec![1.0; 7]), 1);
    assert!(far.is_ok());
    assert!(!rows.is_positive(0));
}

/// Also in a schema of one column, where an indicator moves a row further than anywhere else.
#[test]
fn indicators_are_never_cut_off() {
    let [head, .., town]: [&str; 5] = SMALL
        .split("[[column]]")
        .collect::<Vec<_>>()
        .try_into()
        .unwrap();
    let alone = format!("{head}[[column]]{town}").replace(r#", "z", "w""#, "");
    let schema = Schema::parse(&alone, "alone.toml").unwrap();
    let encoding = PrivateEncoding::new(&schema);
    assert_eq!(encoding.reach().ends(), [[0.0, 1.0]; 2]);
    let classes = schema.label().classes();
    let data = Dataset::new(schema.features(), vec![1.0, 0.0], vec![0], classes).unwrap();
    let rows = encoding.rows(&data, 1).unwrap();
    let found = rows.score(0).iter().map(|v| f64::from(*v) / f64::from(ONE));
    for (found, exact) in found.zip([0.4, 0.5 / 0.7, -0.5 / 0.7]) {
        assert!((found - exact).abs() < 1e-3, "{found} for {exact}");
    }
}

#[test]
fn coefficients_in_either_coordinates_give_the_same_scores() {
    let encoding = PrivateEncoding::new(&schema());
    let beta = [0.3, -0.7, 1.1, 0.2, 0.5, -0.4, 0.9, -1.3];
    let plain = encoding.coefficients(&beta);
    for values in [
        [0.45, 0.5, 0.5, 1.0, 0.0, 0.0, 0.0],
        [0.3, 0.4, 0.0, 0.0, 0.0, 0.0, 1.0],
    ] {
        let rows = encoding.rows(&dataset(values.to_vec()), 1).unwrap();
        let terms = rows.score(0).iter().zip(beta);
        let trained: f64 = terms.map(|(&x, b)| f64::from(x) / 1024.0 * b).sum();
        let terms = values.iter().zip(&plain[1..]);
        let stored = plain[0] + terms.map(|(x, b)| x * b).sum::<f64>();
        assert!((trained - stored).abs() < 5e-3, "{trained} {stored}");
    }
}

proptest! {
    #[test]
    fn no_row_of_the_schema_is_longer_than_the_noise_allows_for(
        values in proptest::collection::vec(0.0..=1.0f64, 7..=7),
    ) {
        let rows = PrivateEncoding::new(&schema()).rows(&dataset(values), 1).unwrap();
        let squared = |row: &[i32]| row.iter().map(|v| i64::from(*v).pow(2)).sum::<i64>();
        prop_assert!(squared(rows.payload(0)) <= i64::from(PAYLOAD_LENGTH).pow(2));
        prop_assert!(squared(rows.score(0)) <= i64::from(SCORE_LENGTH).pow(2));
    }

    /// Whatever a data user chooses for each row, one replaced row moves the sum no further than
    /// the noise was measured for.
    #[test]
    fn replacing_a_row_moves_any_choice_of_codes_by_no_more_than_the_sensitivity(
        old in proptest::collection::vec(0.0..=1.0f64, 7..=7),
        new in proptest::collection::vec(0.0..=1.0f64, 7..=7),
        codes in proptest::bool::ANY,
        labels in proptest::array::uniform2(proptest::bool::ANY),
    ) {
        let encoding = PrivateEncoding::new(&schema());
        let plan = PrivatePlan::new(100, encoding.width(), epsilon("1"), delta()).unwrap();
        let table = crate::resident::CodeTable::new(plan.loss(), PrivatePlan::resolution());
        let part = |values: &[f64], positive: bool| -> Vec<i64> {
            let rows = encoding.rows(&dataset(values.to_vec()), 1).unwrap();
            let weight = i64::from(codes) - i64::from(table.zero(positive));
            rows.payload(0).iter().map(|&v| weight * i64::from(v)).collect()
        };
        let (before, after) = (part(&old, labels[0]), part(&new, labels[1]));
        let moved: i64 = before.iter().zip(&after).map(|(a, b)| (a - b).pow(2)).sum();
        prop_assert!(moved as u64 <= SENSITIVITY_SQUARED);
    }
}

/// One person with several rows among others moves the sum no further than anybody with one row, for
/// any choice of codes; and whoever has one row counts as before.
#[test]
fn all_rows_of_a_person_together_count_as_one() {
    let encoding = PrivateEncoding::new(&schema());
    let mut rng = ChaCha8Rng::seed_from_u64(8);
    let mut uniform = || f64::from(rng.next_u32()) / f64::from(u32::MAX);
    let values: Vec<f64> = (0..8 * 7).map(|_| uniform().round()).collect();
    let rows: Vec<Dataset> = values.chunks(7).map(|row| dataset(row.to_vec())).collect();
    let all = Dataset::new(
        schema().features(),
        values,
        vec![0, 1, 0, 1, 1, 0, 1, 0],
        schema().label().classes(),
    )
    .unwrap();
    let persons = [4, 7, 4, 4, 9, 7, 4, 4];
    let private = encoding.rows_of_persons(&all, 1, &persons).unwrap();
    let length = |row: &[i32]| {
        row.iter()
            .map(|v| f64::from(*v).powi(2))
            .sum::<f64>()
            .sqrt()
    };
    for person in [4, 7, 9] {
        let own = (0..8).filter(|row| persons[*row] == person);
        let sum: f64 = own.map(|row| length(private.payload(row))).sum();
        assert!(sum <= f64::from(PAYLOAD_LENGTH), "{person}: {sum}");
        assert!(sum > 0.9 * f64::from(PAYLOAD_LENGTH), "{person}: {sum}");
    }
    let alone = encoding.rows(&rows[4], 1).unwrap();
    assert_eq!(private.payload(4), alone.payload(0));
    // Scores are those of the rows.
    for (row, one) in rows.iter().enumerate() {
        assert_eq!(private.score(row), encoding.rows(one, 1).unwrap().score(0));
    }
    assert!(matches!(
        encoding.rows_of_persons(&all, 1, &persons[1..]),
        Err(RowsError::Persons { rows: 8, named: 7 })
    ));
}

#[test]
fn rows_that_are_too_long_are_not_taken() {
    let mut rows = PrivateRows::empty(2);
    rows.push(&[ONE, ONE], &[0, -ONE], true).unwrap();
    for (score, payload) in [
        ([SCORE_LENGTH, 1], [0, 0]),
        ([0, 0], [ONE, 1]),
        ([i32::MIN + 1, 0], [0, 0]),
    ] {
        let refused = rows.push(&score, &payload, true).unwrap_err();
        assert_eq!(refused, RowsError::TooLong { row: 1 });
    }
    assert!(matches!(
        rows.push(&[0], &[0, 0], true),
        Err(RowsError::Width { .. })
    ));
    assert_eq!(rows.rows(), 1);
}

#[test]
fn no_weights_take_a_score_out_of_the_table() {
    let resolution = PrivatePlan::resolution();
    for beta in [
        vec![1e9, -1e9, 3.0],
        vec![f64::NAN, f64::INFINITY, 1.0],
        vec![f64::MAX; 200],
        vec![0.7; 108],
        vec![PrivatePlan::radius(), 0.0],
    ] {
        let weights = PrivatePlan::weights(&beta);
        let squared: i64 = weights.columns.iter().map(|w| w * w).sum();
        let longest = (squared as f64).sqrt() * f64::from(SCORE_LENGTH);
        assert!(longest <= resolution.score_limit() as f64, "{beta:?}");
        let fits = |column| weights.lifted(column, resolution) < 1 << resolution.weight_bits();
        assert!((0..beta.len()).all(fits));
    }
    assert_eq!(PrivatePlan::weights(&[1.0, -0.5]).columns, [16, -8]);
}

fn coins(seed: u64) -> impl FnMut(Position) -> RowCoins {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    move |_| RowCoins {
        mask: rng.next_u32(),
        coin: rng.next_u32(),
    }
}

fn silence(_: u32, width: usize) -> Vec<i64> {
    vec![0; width]
}

#[test]
fn sums_are_those_without_noise_plus_the_noise_and_right_in_the_mean() {
    let (data, _) = Bundle::Bcwd.table(Coding::Natural).unwrap();
    let encoding = PrivateEncoding::new(&Bundle::Bcwd.schema(Coding::Natural));
    let rows = [encoding.rows(&data, 1).unwrap()];
    let plan = PrivatePlan::new(699, encoding.width(), epsilon("1"), delta()).unwrap();
    let beta: Vec<f64> = (0..encoding.width())
        .map(|c| 0.25 * c as f64 - 1.0)
        .collect();
    let quiet = PrivateSource::new(&plan, &rows, coins(1), silence).whole_sums(&beta);
    let steady = |iteration: u32, width: usize| vec![i64::from(iteration) + 7; width];
    let noisy = PrivateSource::new(&plan, &rows, coins(1), steady).whole_sums(&beta);
    assert!(quiet.iter().zip(&noisy).all(|(a, b)| a + 7 == *b));

    let mut source = PrivateSource::new(&plan, &rows, coins(2), silence);
    let times = 400;
    let mut mean = vec![0.0; beta.len()];
    for _ in 0..times {
        let sums = source.whole_sums(&beta);
        let real = source.real(&sums);
        mean.iter_mut()
            .zip(real)
            .for_each(|(m, r)| *m += r / f64::from(times));
    }
    let loss = LossKind::BoundedLogistic.loss();
    let mut exact = vec![0.0; beta.len()];
    for row in 0..rows[0].rows() {
        let terms = rows[0].score(row).iter().zip(&beta);
        let z: f64 = terms.map(|(&x, b)| f64::from(x) / 1024.0 * b).sum();
        let slope = loss.derivative(z, rows[0].is_positive(row));
        let payload = rows[0].payload(row).iter();
        exact
            .iter_mut()
            .zip(payload)
            .for_each(|(e, &x)| *e += slope * f64::from(x) / 1024.0);
    }
    // A coin of one half a row is off by 13 in sum and by 0.7 in the mean of 400, at most; the
    // table of 64 nodes bends a little.
    for (mean, exact) in mean.iter().zip(&exact) {
        assert!((mean - exact).abs() < 3.0, "{mean} for {exact}");
    }
}

/// Every gradient draws its own noise and its own coins, by its number; and it is about all rows of all
/// providers, a number for each column.
#[test]
fn gradients_are_numbered_and_about_all_rows() {
    let encoding = PrivateEncoding::new(&schema());
    let one = encoding.rows(&dataset(vec![0.5; 7]), 1).unwrap();
    let two = encoding.rows(&dataset(vec![0.5; 14]), 1).unwrap();
    assert_eq!((one.width(), one.rows(), two.rows()), (8, 1, 2));
    let providers = [one, two];
    let plan = PrivatePlan::new(3, encoding.width(), epsilon("1"), delta()).unwrap();
    let (drawn, tossed) = (RefCell::new(Vec::new()), RefCell::new(Vec::new()));
    let noise = |iteration: u32, width: usize| {
        drawn.borrow_mut().push((iteration, width));
        silence(iteration, width)
    };
    let mut generator = coins(9);
    let coins = |position: Position| {
        tossed.borrow_mut().push(position);
        generator(position)
    };
    let mut source = PrivateSource::new(&plan, &providers, coins, noise);
    assert_eq!(source.dimension(), 8);
    for _ in 0..3 {
        let gradient = source.gradient(&[0.1; 8], Batch::FULL).unwrap();
        assert_eq!((gradient.sum.len(), gradient.rows), (8, 3));
    }
    assert_eq!(drawn.into_inner(), [(0, 8), (1, 8), (2, 8)]);
    let tossed = tossed.into_inner().into_iter();
    let tossed: Vec<_> = tossed.map(|p| (p.iteration, p.provider, p.row)).collect();
    let of_each = |iteration| [(0, 0), (1, 0), (1, 1)].map(|(p, row)| (iteration, p, row));
    assert_eq!(tossed, [of_each(0), of_each(1), of_each(2)].concat());
}

/// Trains on one split as three providers would, and gives the accuracy on held-out rows.
fn accuracy(bundle: Bundle, asked: &str, split: u64) -> f64 {
    let (data, _) = bundle.table(Coding::Natural).unwrap();
    let encoding = PrivateEncoding::new(&bundle.schema(Coding::Natural));
    let split = Split::seeded(data.rows(), 0.2, 1, split);
    let train = data.select_rows(&split.train);
    let rows = [encoding.rows(&train, 1).unwrap()];
    let count = train.rows() as u64;
    let plan = PrivatePlan::new(count, encoding.width(), epsilon(asked), delta()).unwrap();
    let mut rng = ChaCha8Rng::seed_from_u64(3);
    let noise = move |_: u32, width: usize| {
        let draw = |_| sample(plan.variance(), &mut rng);
        (0..width).map(draw).collect()
    };
    let plan = PrivatePlan::new(count, encoding.width(), epsilon(asked), delta()).unwrap();
    let mut source = PrivateSource::new(&plan, &rows, coins(4), noise);
    let mut optimiser = Optimiser::new(plan.settings(), encoding.width()).unwrap();
    optimiser
        .run(&mut source, |_| ControlFlow::Continue(()))
        .unwrap();
    assert_eq!(optimiser.iterations(), plan.gradients());
    let beta = encoding.coefficients(optimiser.beta());
    let test = data.select_rows(&split.test);
    let right = (0..test.rows()).filter(|&row| {
        let terms = test.row(row).iter().zip(&beta[1..]);
        let z = beta[0] + terms.map(|(x, b)| x * b).sum::<f64>();
        (z > 0.0) == (test.labels()[row] == 1)
    });
    right.count() as f64 / test.rows() as f64
}

#[test]
fn it_learns_at_epsilon_one_and_hardly_at_a_hundredth() {
    let mean = |asked: &str| {
        let runs = (0..8).map(|split| accuracy(Bundle::Bcwd, asked, split));
        runs.sum::<f64>() / 8.0
    };
    let (usual, tiny) = (mean("1"), mean("0.01"));
    assert!(usual > 0.94, "{usual}");
    assert!(tiny < usual - 0.05, "{tiny} against {usual}");
}
