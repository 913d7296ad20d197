//! Goodness of fit with fixed seeds, moments, and the exact map from sensitivity to rate.

use super::*;
use chacha20::ChaCha20Rng;
use rand_core::SeedableRng;

fn rng(seed: u8) -> ChaCha20Rng {
    ChaCha20Rng::from_seed([seed; 32])
}

fn epsilon(text: &str) -> Epsilon {
    text.parse().unwrap()
}

fn laplace(sensitivity: u32, e: &str) -> DiscreteLaplace {
    DiscreteLaplace::for_sensitivity(NonZeroU32::new(sensitivity).unwrap(), epsilon(e))
}

/// Pearson's statistic as a normal deviate (Wilson and Hilferty), over (observed, expected).
fn deviate(cells: &[(f64, f64)]) -> f64 {
    assert!(cells.len() > 1 && cells.iter().all(|&(_, expected)| expected >= 5.0));
    let statistic: f64 = cells.iter().map(|(o, e)| (o - e).powi(2) / e).sum();
    let freedom = (cells.len() - 1) as f64;
    let spread = 2.0 / (9.0 * freedom);
    ((statistic / freedom).cbrt() - (1.0 - spread)) / spread.sqrt()
}

/// Cells of at least `fewest` expected draws each, the rest in one cell at either end.
fn cells(noise: &DiscreteLaplace, draws: &[i128], fewest: f64) -> Vec<(f64, f64)> {
    let n = draws.len() as f64;
    let edge = (1..)
        .take_while(|&y| n * noise.probability(y + 1) >= fewest)
        .last()
        .unwrap_or(0);
    // What lies beyond the edge, summed as a geometric series.
    let tail = noise.probability(edge + 1) / (1.0 - (-1.0 / noise.scale()).exp());
    let mut counts = vec![0.0; 2 * edge as usize + 3];
    for &y in draws {
        counts[(y.clamp(-i128::from(edge) - 1, i128::from(edge) + 1) + i128::from(edge) + 1)
            as usize] += 1.0;
    }
    let expected = (-edge - 1..=edge + 1).map(|y| match y.abs() {
        y if y > edge => n * tail,
        y => n * noise.probability(y),
    });
    counts.into_iter().zip(expected).collect()
}

#[test]
fn discrete_laplace_fits_its_distribution_at_several_scales() {
    let scales = [
        (1, "4"),
        (1, "0.5"),
        (10, "1"),
        (128, "2"),
        (1024, "0.3"),
        (7, "0.123456789"),
    ];
    for (seed, (sensitivity, e)) in scales.into_iter().enumerate() {
        let noise = laplace(sensitivity, e);
        let mut rng = rng(seed as u8);
        let draws: Vec<i128> = (0..200_000).map(|_| noise.sample(&mut rng)).collect();
        let cells = cells(&noise, &draws, 20.0);
        let total: f64 = cells.iter().map(|c| c.1).sum();
        assert!(
            (total - 200_000.0).abs() < 1e-3,
            "probabilities sum to one: {total}"
        );
        let z = deviate(&cells);
        assert!(z.abs() < 3.3, "Δ {sensitivity}, ε {e}: deviate {z}");
    }
}

#[test]
fn the_fit_test_notices_a_wrong_scale() {
    let (drawn, claimed) = (laplace(10, "1.03"), laplace(10, "1"));
    let mut rng = rng(9);
    let draws: Vec<i128> = (0..200_000).map(|_| drawn.sample(&mut rng)).collect();
    assert!(deviate(&cells(&claimed, &draws, 20.0)) > 3.3);
}

#[test]
fn mean_and_variance_match() {
    for (seed, (sensitivity, e)) in [(1, "1"), (1024, "0.5"), (u32::MAX, "0.01")]
        .into_iter()
        .enumerate()
    {
        let noise = laplace(sensitivity, e);
        let mut rng = rng(20 + seed as u8);
        let n = 200_000;
        let draws: Vec<f64> = (0..n).map(|_| noise.sample(&mut rng) as f64).collect();
        let mean = draws.iter().sum::<f64>() / f64::from(n);
        let variance = draws.iter().map(|y| (y - mean).powi(2)).sum::<f64>() / f64::from(n);
        let sd = noise.variance().sqrt();
        assert!(
            (mean / sd).abs() < 4.0 / f64::from(n).sqrt(),
            "mean {mean}, sd {sd}"
        );
        // The fourth moment of a Laplace variable is six variances squared, a little more here.
        let tolerance = 4.0 * (5.5 / f64::from(n)).sqrt();
        assert!(
            (variance / noise.variance() - 1.0).abs() < tolerance,
            "variance {variance}"
        );
    }
}

#[test]
fn the_rate_is_epsilon_over_sensitivity_exactly() {
    assert_eq!(laplace(1, "1").rate(), (1, 1));
    assert_eq!(laplace(128, "0.5").rate(), (1, 256));
    assert_eq!(laplace(3, "0.7").rate(), (7, 30));
    assert_eq!(
        laplace(u32::MAX, "0.000000001").rate(),
        (1, u64::from(u32::MAX) * UNIT)
    );
    // A step of the whole sensitivity changes a probability by exp(ε), and no more.
    for (sensitivity, e) in [(1, "2"), (128, "0.5"), (1000, "1.5")] {
        let noise = laplace(sensitivity, e);
        let ratio = noise.probability(0) / noise.probability(i64::from(sensitivity));
        assert!((ratio.ln() - epsilon(e).to_f64()).abs() < 1e-9);
    }
}

#[test]
fn randomised_response_fits_its_distribution() {
    for (seed, (levels, e, truth)) in [(2, "1", 0), (5, "0.5", 4), (42, "2", 17), (10, "4.25", 3)]
        .into_iter()
        .enumerate()
    {
        let response = RandomisedResponse::new(NonZeroU32::new(levels).unwrap(), epsilon(e));
        let mut rng = rng(40 + seed as u8);
        let n = 200_000.0;
        let mut counts = vec![0.0; levels as usize];
        for _ in 0..200_000 {
            counts[response.sample(truth, &mut rng) as usize] += 1.0;
        }
        let true_share = response.probability_of_truth();
        let other_share = (1.0 - true_share) / f64::from(levels - 1);
        assert!(((true_share / other_share).ln() - epsilon(e).to_f64()).abs() < 1e-9);
        let share = |level: usize| {
            if level as u32 == truth {
                true_share
            } else {
                other_share
            }
        };
        let cells: Vec<_> = counts
            .iter()
            .enumerate()
            .map(|(l, &c)| (c, n * share(l)))
            .collect();
        let z = deviate(&cells);
        assert!(z.abs() < 3.3, "{levels} levels, ε {e}: deviate {z}");
    }
}

#[test]
fn uniform_numbers_are_uniform_for_awkward_bounds() {
    let mut rng = rng(60);
    for bound in [1u64, 2, 3, 7, 100] {
        let mut counts = vec![0.0; bound as usize];
        for _ in 0..50_000 {
            counts[uniform_below(bound, &mut rng) as usize] += 1.0;
        }
        let cells: Vec<_> = counts
            .iter()
            .map(|&c| (c, 50_000.0 / bound as f64))
            .collect();
        assert!(bound == 1 || deviate(&cells).abs() < 3.3, "below {bound}");
    }
    // Three quarters of the largest range: a biased method would put too few in the upper third.
    let bound = 3u64 << 62;
    let high = (0..50_000)
        .filter(|_| uniform_below(bound, &mut rng) >= 1 << 63)
        .count();
    assert!((high as f64 - 50_000.0 / 3.0).abs() < 4.0 * (50_000.0f64 * 2.0 / 9.0).sqrt());
}
