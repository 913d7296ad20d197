//! What arithmetic on integers costs: models trained by the oracle on integers, which engine
//! `resident` equals to the last bit, against the exact ones. Four data sets, a hundred splits each.

#![allow(clippy::unwrap_used)]

use chacha20::ChaCha20Rng;
use heda_learn::bundled::{Bundle, Coding};
use heda_learn::data::Dataset;
use heda_learn::grid::Grid;
use heda_learn::loss::LossKind;
use heda_learn::optimise::{Basis, Optimiser, Settings};
use heda_learn::oracle::{TrainConfig, score, train};
use heda_learn::resident::{Encoding, GridRows, Position, ResidentSource, Resolution, RowCoins};
use heda_learn::scaling::{Scaling, placed};
use heda_learn::split::Split;
use rand_core::{Rng, SeedableRng};
use std::ops::ControlFlow;

const SPLITS: u64 = 100;

/// Trains as a job does: in windows, on integers, with masks and coins.
fn on_integers(whole: &Dataset, seed: u64, resolution: Resolution) -> Vec<f64> {
    let (windows, scaling) = placed(whole);
    let data = whole.clone().in_windows(&windows);
    let bits = resolution.value_bits();
    let encoding = Encoding::of_features(data.features(), bits).unwrap();
    let grid = Grid::of_bits(bits);
    let values = data.values().iter().map(|&x| grid.signed_point(x));
    let positive = data.labels().iter().map(|&label| label == 1);
    let rows = GridRows::plain(&encoding, values.collect(), positive.collect()).unwrap();
    let mut rng = ChaCha20Rng::seed_from_u64(seed);
    let coins = move |_: Position| RowCoins {
        mask: rng.next_u32(),
        coin: rng.next_u32(),
    };
    let loss = LossKind::Logistic;
    let source = ResidentSource::new(resolution, encoding, loss, vec![rows], coins).unwrap();
    let mut source = source.near(&scaling);
    let settings = Settings {
        max_iterations: 40,
        ..Settings::lbfgs()
    };
    let noise = resolution.rounding();
    let basis = Basis { scaling, noise };
    let mut optimiser = Optimiser::on(basis, settings, data.width() + 1).unwrap();
    optimiser
        .run(&mut source, |_| ControlFlow::Continue(()))
        .unwrap();
    let outside = windows.iter().map(|window| window.centre()).collect();
    Scaling::new(outside).to_values(optimiser.beta())
}

/// Percent of right predictions.
fn accuracy(beta: &[f64], data: &Dataset) -> f64 {
    let right = |row: &usize| u32::from(score(beta, data.row(*row)) > 0.0) == data.labels()[*row];
    let count = (0..data.rows()).filter(right).count();
    100.0 * count as f64 / data.rows() as f64
}

/// ‖a − b‖ / ‖b‖, on deviations from the mean: there every column counts the same.
fn distance(a: &[f64], b: &[f64]) -> f64 {
    let apart: f64 = a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum();
    let norm: f64 = b.iter().map(|b| b.powi(2)).sum();
    (apart / norm).sqrt()
}

/// How far coefficients are apart, in percent, in the mean of some splits and at most; and what accuracy is lost, in points.
struct Apart {
    mean: f64,
    most: f64,
    loss: f64,
}

fn compare(data: &Dataset, resolution: Resolution, splits: u64) -> Apart {
    let (mut loss, mut apart) = (0.0, Vec::new());
    for repeat in 0..splits {
        let split = Split::seeded(data.rows(), 0.2, 1, repeat);
        let training = data.select_rows(&split.train);
        let test = data.select_rows(&split.test);
        let exact = train(&training, 1, &TrainConfig::logistic()).unwrap();
        let beta = on_integers(&training, repeat, resolution);
        loss += (accuracy(&exact.beta, &test) - accuracy(&beta, &test)) / splits as f64;
        let scaling = Scaling::of(&training);
        let [found, wanted] = [&beta, &exact.beta].map(|beta| scaling.to_deviations(beta));
        apart.push(100.0 * distance(&found, &wanted));
    }
    Apart {
        mean: apart.iter().sum::<f64>() / splits as f64,
        most: apart.into_iter().fold(0.0, f64::max),
        loss,
    }
}

#[test]
fn integers_cost_no_accuracy_and_little_of_the_coefficients() {
    for bundle in Bundle::ALL {
        let (data, _) = bundle.table(Coding::Paper).unwrap();
        let trained = data.rows() * 4 / 5;
        let resolution = Resolution::for_columns(data.width()).of_count(trained);
        let Apart { mean, most, loss } = compare(&data, resolution, SPLITS);
        println!(
            "{bundle}: {loss:+.3} points, coefficients {mean:.2} % apart, at most {most:.2} %"
        );
        assert!(loss.abs() < 0.05, "{bundle}: {loss} points");
        // Rows that are few, and hardly a penalty, leave coefficients that rows themselves determine
        // far less closely than this.
        assert!(mean < 2.0, "{bundle}: {mean}");
        assert!(most < 3.0, "{bundle}: {most}");
    }
}

/// Why many rows are cut into two bits, and only ten times as many into one.
#[test]
fn many_rows_need_two_bits_and_no_third() {
    let (data, _) = Bundle::Adult.table(Coding::Paper).unwrap();
    let [one, two, three] = [1, 2, 3].map(|bits| {
        let resolution = Resolution::new(10, 3, 7, bits, 6).unwrap();
        let Apart { mean, most, .. } = compare(&data, resolution, 10);
        println!("adult, {bits} bits: coefficients {mean:.2} % apart, at most {most:.2} %");
        mean
    });
    assert!(two < 1.0, "{two}");
    assert!(three > 0.4 * two && one > 2.0 * two, "{one} {two} {three}");
}
