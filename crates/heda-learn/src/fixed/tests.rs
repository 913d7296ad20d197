use super::*;
use crate::data::{Dataset, Feature};
use crate::gradient::{Batch, GradientSource};
use crate::loss::LossKind;
use crate::optimise::{Method, Optimiser, Settings};
use crate::oracle::{ClearSource, TrainConfig, train};
use crate::samples;
use chacha20::ChaCha8Rng;
use proptest::prelude::*;
use rand_core::{Rng, SeedableRng};
use std::ops::ControlFlow;

const LOSSES: [LossKind; 3] = [LossKind::Logistic, LossKind::SquaredHinge, LossKind::Ridge];

fn masks(seed: u64) -> impl FnMut(Position) -> u64 {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    move |_| RING.reduce(rng.next_u64())
}

/// The same rows with every value moved to the grid, so that only scores are rounded.
fn on_grid(data: &Dataset, precision: Precision) -> Dataset {
    let values = data
        .values()
        .iter()
        .map(|&x| precision.decode(precision.encode(x)))
        .collect();
    let (features, classes) = (data.features().to_vec(), data.classes().to_vec());
    Dataset::new(features, values, data.labels().to_vec(), classes).unwrap()
}

fn fixed(
    data: &Dataset,
    loss: LossKind,
    precision: Precision,
    seed: u64,
) -> FixedSource<impl FnMut(Position) -> u64> {
    let domain = Domain::of_features(data.features(), precision).unwrap();
    let rows = FixedRows::of_dataset(data, 1, precision);
    FixedSource::new(precision, domain, loss, vec![rows], masks(seed)).unwrap()
}

/// Coefficients of every size: zero, tiny, usual, huge, and one that dwarfs the others.
fn shaped_betas() -> Vec<Vec<f64>> {
    vec![
        vec![0.0; 4],
        vec![1e-300, 0.0, -1e-300, 1e-300],
        vec![0.1, -1.0, 2.0, 0.5],
        vec![-50.0, 30.0, 30.0, 30.0],
        vec![1e6, -1e6, 1e6, 1e6],
        vec![0.0, 1e100, 1.0, -1e-100],
    ]
}

#[test]
fn one_gradient_is_within_the_stated_bound_of_the_exact_one() {
    for (bits, seed) in [(6, 1), (8, 2), (12, 3)] {
        let precision = Precision::new(10, bits).unwrap();
        let data = on_grid(&samples::noisy_line(500, 3, seed), precision);
        for loss in LOSSES {
            for beta in [
                vec![0.0; 4],
                vec![0.1, -1.0, 2.0, 0.5],
                vec![-9.0, 6.0, 5.0, 4.0],
            ] {
                let mut source = fixed(&data, loss, precision, seed);
                let ring = source.ring_gradient(&beta, Batch::FULL).unwrap();
                let domain = Domain::of_features(data.features(), precision).unwrap();
                let step = Scaled::new(&beta, &domain, precision).unwrap().step;
                let half_unit = 2f64.powi(-1 - ring.table.fraction_bits() as i32);
                // 1e-9 a row for the rounding of weights, which is below 2^-37 of the range.
                let bound = 500.0 * (loss.loss().curvature() * step + half_unit + 1e-9);
                let found = ring.table.gradient(&ring.sums, ring.rows);
                let exact = ClearSource::new(&data, 1, loss)
                    .gradient(&beta, Batch::FULL)
                    .unwrap();
                for (f, e) in found.sum.iter().zip(&exact.sum) {
                    assert!((f - e).abs() <= bound, "{loss}: {f} and {e}, bound {bound}");
                }
            }
        }
    }
}

#[test]
fn the_mean_over_masks_is_within_the_bound_of_interpolation() {
    let precision = Precision::default();
    let data = on_grid(&samples::noisy_line(200, 3, 4), precision);
    let beta = [-9.0, 8.0, 7.0, 6.0];
    let mut source = fixed(&data, LossKind::Logistic, precision, 5);
    let runs = 400;
    let mut mean = [0.0; 4];
    for _ in 0..runs {
        let gradient = source.gradient(&beta, Batch::FULL).unwrap();
        mean.iter_mut()
            .zip(gradient.sum)
            .for_each(|(m, g)| *m += g / f64::from(runs));
    }
    let exact = ClearSource::new(&data, 1, LossKind::Logistic)
        .gradient(&beta, Batch::FULL)
        .unwrap();
    let domain = Domain::of_features(data.features(), precision).unwrap();
    let step = Scaled::new(&beta, &domain, precision).unwrap().step;
    // The third derivative of the logistic loss is at most 1/(6·√3). A sum of 200 roundings, each
    // with deviation at most curvature·step/2, averaged over the runs: six deviations.
    let interpolation = 200.0 * step * step / 8.0 / (6.0 * 3f64.sqrt());
    let chance = 6.0 * 0.25 * step / 2.0 * (200.0 / f64::from(runs)).sqrt();
    for (m, e) in mean.iter().zip(&exact.sum) {
        assert!((m - e).abs() <= interpolation + chance, "{m} and {e}");
    }
}

#[test]
fn scores_never_wrap_however_large_the_coefficients() {
    for bits in [4, 8, 12] {
        let precision = Precision::new(10, bits).unwrap();
        let limit = (1i64 << 47) - (1 << precision.dropped_bits());
        let unit = Span::Between {
            low: 0,
            high: precision.one(),
        };
        let domain = Domain::new(vec![(3, unit)]).unwrap();
        for beta in shaped_betas() {
            let scaled = Scaled::new(&beta, &domain, precision).unwrap();
            for corner in 0..8 {
                let row = [0, 1, 2].map(|j| precision.one() * (corner >> j & 1));
                let z = RING.signed(scaled.score(&row));
                assert!(z.abs() <= limit, "{beta:?} at {row:?}: {z}");
            }
        }
    }
}

#[test]
fn the_centred_range_fills_the_ring_and_stands_for_the_real_scores() {
    let precision = Precision::default();
    let unit = Span::Between {
        low: 0,
        high: precision.one(),
    };
    let domain = Domain::new(vec![(2, unit), (3, Span::OneHot)]).unwrap();
    let beta = [5.0, 2.0, -1.0, 4.0, 1.0, -3.0];
    let scaled = Scaled::new(&beta, &domain, precision).unwrap();
    let one = precision.one();
    for row in [
        [one, 0, one, 0, 0],
        [0, one, 0, 0, one],
        [512, 100, 0, 0, 0],
    ] {
        let z = RING.signed(scaled.score(&row)) as f64;
        let real = scaled.centre + z / (1u64 << precision.dropped_bits()) as f64 * scaled.step;
        let exact: f64 = beta[1..]
            .iter()
            .zip(row)
            .map(|(b, x)| b * precision.decode(x))
            .sum();
        assert!((real - 5.0 - exact).abs() < 1e-6);
    }
    let most = RING.signed(scaled.score(&[one, 0, one, 0, 0]));
    let limit = (1i64 << 47) - (1 << precision.dropped_bits());
    assert!(
        (limit - 4096..=limit).contains(&most),
        "the range is used: {most}"
    );
    // Half-width (2 + 1 + 4 + 3)/2 over 127 steps.
    assert!((scaled.step - 5.0 / 127.0).abs() < 1e-6);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn scores_of_any_domain_stay_in_range(
        beta in prop::collection::vec(-1e4f64..1e4, 7),
        low in -3000i32..0, high in 1i32..3000,
        row in prop::collection::vec(0u32..=1000, 3), hot in 0usize..4,
    ) {
        let precision = Precision::default();
        let domain = Domain::new(vec![(3, Span::Between { low, high }), (3, Span::OneHot)]).unwrap();
        let scaled = Scaled::new(&beta, &domain, precision).unwrap();
        let share = |&r: &u32| low + ((high - low) as i64 * r as i64 / 1000) as i32;
        let mut x: Vec<i32> = row.iter().map(share).collect();
        x.extend((0..3).map(|j| if j == hot { precision.one() } else { 0 }));
        prop_assert!(domain.contains(&x, precision));
        let z = RING.signed(scaled.score(&x));
        prop_assert!(z.abs() <= (1 << 47) - (1 << precision.dropped_bits()));
        let real: f64 = beta[0]
            + beta[1..].iter().zip(&x).map(|(b, &x)| b * precision.decode(x)).sum::<f64>();
        let read = scaled.centre + z as f64 / (1u64 << precision.dropped_bits()) as f64 * scaled.step;
        prop_assert!((real - read).abs() <= 1e-6 * (1.0 + real.abs()), "{} {}", real, read);
    }
}

#[test]
fn providers_and_batches_add_up() {
    let precision = Precision::default();
    let data = samples::noisy_line(300, 3, 6);
    let domain = Domain::of_features(data.features(), precision).unwrap();
    let rows: Vec<usize> = (0..300).collect();
    let parts = rows.chunks(110).map(|rows| data.select_rows(rows));
    let parts = parts
        .map(|p| FixedRows::of_dataset(&p, 1, precision))
        .collect();
    // A mask that depends on the row of the whole, so both splits round alike.
    let of_row = |row: usize| RING.reduce((row as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let whole = vec![FixedRows::of_dataset(&data, 1, precision)];
    let loss = LossKind::Logistic;
    let mut split = FixedSource::new(precision, domain.clone(), loss, parts, |at: Position| {
        of_row(at.provider * 110 + at.row)
    })
    .unwrap();
    let mut whole = FixedSource::new(precision, domain, loss, whole, |at: Position| {
        of_row(at.row)
    })
    .unwrap();
    let beta = [0.5, -2.0, 1.0, 1.0];
    let a = split.ring_gradient(&beta, Batch::FULL).unwrap();
    assert_eq!(a, whole.ring_gradient(&beta, Batch::FULL).unwrap());
    let batches: usize = (0..4)
        .map(|i| split.gradient(&beta, Batch::new(i, 4)).unwrap().rows)
        .sum();
    assert_eq!(batches, 300);
}

#[test]
fn training_on_integers_comes_to_nearly_the_same_model() {
    let precision = Precision::default();
    let data = samples::noisy_line(1000, 4, 7);
    let config = TrainConfig::logistic(1000);
    let exact = train(&data, 1, &config).unwrap();
    let settings = Settings {
        method: Method::Lbfgs { memory: 10 },
        max_iterations: 40,
        ..config.settings
    };
    let mut source = fixed(&data, LossKind::Logistic, precision, 8);
    let mut optimiser = Optimiser::new(settings, source.dimension()).unwrap();
    optimiser
        .run(&mut source, |_| ControlFlow::Continue(()))
        .unwrap();
    for (a, b) in optimiser.beta().iter().zip(&exact.beta) {
        assert!((a - b).abs() < 0.05 * (1.0 + b.abs()), "{a} and {b}");
    }
}

#[test]
fn refuses_rows_and_bounds_that_do_not_fit() {
    let precision = Precision::default();
    let feature = |width| Feature {
        name: "f".into(),
        columns: 0..width,
        levels: None,
    };
    let domain = |width| Domain::of_features(&[feature(width)], precision).unwrap();
    let build = |width, values: Vec<i32>| {
        let rows = FixedRows::new(width, values, vec![true])?;
        FixedSource::new(
            precision,
            domain(width),
            LossKind::Logistic,
            vec![rows],
            masks(0),
        )
    };
    assert!(build(1, vec![1024]).is_ok());
    let outside = FixedError::Domain {
        provider: 0,
        row: 0,
    };
    assert_eq!(build(1, vec![1025]).err(), Some(outside.clone()));
    assert_eq!(
        build(2, vec![1024, 1024]).err(),
        Some(outside.clone()),
        "two hot columns"
    );
    assert_eq!(build(2, vec![0, 512]).err(), Some(outside), "half hot");
    assert!(matches!(
        build(2, vec![0; 3]),
        Err(FixedError::Shape { .. })
    ));
    let reversed = Domain::new(vec![(1, Span::Between { low: 1, high: 1 })]);
    assert!(matches!(reversed, Err(DomainError::Bounds { .. })));
    let refused = |beta: &[f64]| Scaled::new(beta, &domain(1), precision).unwrap_err();
    assert_eq!(refused(&[0.0, f64::NAN]), ScaleError::NotFinite);
    assert_eq!(refused(&[f64::INFINITY, 0.0]), ScaleError::NotFinite);
    assert!(matches!(refused(&[0.0]), ScaleError::Dimension { .. }));
}
