//! Goodness of fit at several scales, of single draws and of sums of shares, with fixed seeds.

use super::*;
use chacha20::ChaCha20Rng;
use rand_core::SeedableRng;
use std::num::NonZeroU32;

const DRAWS: usize = 200_000;

fn rng(seed: u64) -> ChaCha20Rng {
    ChaCha20Rng::seed_from_u64(seed)
}

fn variance(squared: u64) -> Variance {
    Variance::new(squared).unwrap()
}

fn draws(squared: u64, seed: u64) -> Vec<i64> {
    let mut rng = rng(seed);
    (0..DRAWS)
        .map(|_| sample(variance(squared), &mut rng))
        .collect()
}

/// Pearson's statistic as a normal deviate (Wilson and Hilferty): draws against the discrete
/// Gaussian, in cells of one `width`, the rest in one cell at either end.
fn deviate(draws: &[i64], squared: u64, width: i64) -> f64 {
    let density = |y: i64| (-(y as f64).powi(2) / (2.0 * squared as f64)).exp();
    let reach = (12.0 * (squared as f64).sqrt()) as i64;
    let whole: f64 = (-reach..=reach).map(density).sum();
    let cell = |y: i64| y.div_euclid(width);
    let edge = ((3.2 * (squared as f64).sqrt()) as i64 / width).max(3);
    let cells = (2 * edge + 1) as usize;
    let place = |y: i64| (cell(y).clamp(-edge, edge) + edge) as usize;
    let (mut expected, mut observed) = (vec![0.0; cells], vec![0.0; cells]);
    for y in -reach..=reach {
        expected[place(y)] += draws.len() as f64 * density(y) / whole;
    }
    draws.iter().for_each(|&y| observed[place(y)] += 1.0);
    assert!(expected.iter().all(|&e| e >= 5.0), "cells are too small");
    let terms = observed.iter().zip(&expected);
    let statistic: f64 = terms.map(|(o, e)| (o - e).powi(2) / e).sum();
    let freedom = (cells - 1) as f64;
    let spread = 2.0 / (9.0 * freedom);
    ((statistic / freedom).cbrt() - (1.0 - spread)) / spread.sqrt()
}

#[test]
fn draws_fit_the_distribution_at_several_scales() {
    for (seed, (squared, width)) in [
        (18, 1),
        (47, 1),
        (1_000, 3),
        (99_999, 25),
        (10_000_019, 250),
    ]
    .into_iter()
    .enumerate()
    {
        let z = deviate(&draws(squared, seed as u64), squared, width);
        assert!(z.abs() < 3.3, "σ² {squared}: deviate {z}");
    }
}

#[test]
fn the_fit_test_notices_a_wrong_scale_and_a_shift() {
    let drawn = draws(1_000, 10);
    assert!(deviate(&drawn, 1_040, 3) > 3.3);
    let shifted: Vec<i64> = drawn.iter().map(|y| y + 1).collect();
    assert!(deviate(&shifted, 1_000, 3) > 3.3);
}

#[test]
fn sums_of_shares_fit_one_gaussian_of_the_summed_variance() {
    for (seed, shares) in [vec![18, 18], vec![18, 1_000], vec![400; 5]]
        .iter()
        .enumerate()
    {
        let mut rng = rng(20 + seed as u64);
        let sum = |_| {
            let parts = shares.iter();
            parts.map(|&s| sample(variance(s), &mut rng)).sum()
        };
        let drawn: Vec<i64> = (0..DRAWS).map(sum).collect();
        let total = Variance::sum(shares.iter().map(|&s| variance(s))).unwrap();
        let z = deviate(&drawn, total.get(), 1 + total.deviation() as i64 / 12);
        assert!(z.abs() < 3.3, "shares {shares:?}: deviate {z}");
    }
}

#[test]
fn moments_match_up_to_the_largest_variance() {
    for (seed, squared) in [18, 1 << 30, (1 << 45) + 12_345, Variance::MOST]
        .into_iter()
        .enumerate()
    {
        let n = DRAWS as f64;
        let sd = (squared as f64).sqrt();
        let scaled: Vec<f64> = draws(squared, 30 + seed as u64)
            .iter()
            .map(|&y| y as f64 / sd)
            .collect();
        let moment = |power| scaled.iter().map(|y| y.powi(power)).sum::<f64>() / n;
        // Standard errors of the first, second and fourth moment of a normal variable.
        assert!(moment(1).abs() < 4.0 / n.sqrt(), "mean at {squared}");
        assert!((moment(2) - 1.0).abs() < 4.0 * (2.0 / n).sqrt());
        assert!((moment(4) - 3.0).abs() < 4.0 * (96.0 / n).sqrt());
    }
}

/// Parts 1 to 3 of the argument, in numbers: how constant Σ_k exp(−(k − c)²/2r²) is.
#[test]
fn sums_over_shifted_integers_are_constant_from_width_three_on() {
    let sum = |c: f64, r: f64| -> f64 {
        let terms = (-200..=200).map(|k| (-(f64::from(k) - c).powi(2) / (2.0 * r * r)).exp());
        terms.sum::<f64>() / (r * (2.0 * std::f64::consts::PI).sqrt())
    };
    for c in [0.0, 0.1, 0.25, 0.5, 0.9] {
        assert!((sum(c, 3.0) - 1.0).abs() < 1e-14);
        assert!((sum(c, 4.5) - 1.0).abs() < 1e-14);
    }
    // The same numbers show the wave where the width is small, so they could have shown it.
    assert!((sum(0.0, 0.5) - sum(0.5, 0.5)).abs() > 0.02);
}

#[test]
fn only_usable_variances_exist() {
    assert_eq!(Variance::new(17), Err(ParameterError::VarianceTooSmall(17)));
    assert!(Variance::new((1 << 60) + 1).is_err());
    for bad in [0.0, -1.0, f64::NAN, f64::INFINITY, 1.2e18] {
        assert!(Variance::at_least(bad).is_err(), "{bad}");
    }
    assert_eq!(Variance::at_least(0.5), Variance::new(18));
    assert_eq!(Variance::at_least(100.25), Variance::new(101));
    let most = Variance::MOST;
    assert_eq!(Variance::at_least(most as f64), Ok(variance(most)));
    // The next number that a computation can give.
    assert!(Variance::at_least((most + (1 << 8)) as f64).is_err());
    assert_eq!(variance(101).accounted(), 92);
    let third = variance(1_000).share(NonZeroU32::new(3).unwrap());
    assert_eq!(third, variance(334));
    assert!(serde_json::from_str::<Variance>("17").is_err());
    assert_eq!(
        serde_json::from_str::<Variance>("18").unwrap(),
        variance(18)
    );
    assert!(Variance::sum([]).is_err());
    assert!(Variance::sum([variance(Variance::MOST); 2]).is_err());
}

#[test]
fn variances_and_deviations_are_what_they_were_made_of() {
    assert_eq!(variance(49).deviation(), 7.0);
    assert_eq!(u64::from(variance(49)), 49);
}
