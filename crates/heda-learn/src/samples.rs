//! Small made-up data for tests.

use crate::data::{Dataset, Feature};
use crate::scaling::Scaling;
use crate::target;
use chacha20::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};

/// A number in [0, 1).
pub(crate) fn unit(rng: &mut impl Rng) -> f64 {
    (rng.next_u64() >> 11) as f64 / (1u64 << 53) as f64
}

fn numbers(width: usize) -> Vec<Feature> {
    (0..width)
        .map(|column| Feature {
            name: format!("x{column}"),
            columns: column..column + 1,
            levels: None,
        })
        .collect()
}

/// Two classes that a line separates, but for one row in eight.
pub(crate) fn noisy_line(rows: usize, width: usize, seed: u64) -> Dataset {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let values: Vec<f64> = (0..rows * width).map(|_| unit(&mut rng)).collect();
    let labels = values.chunks(width).map(|row| {
        let z: f64 = row
            .iter()
            .enumerate()
            .map(|(j, x)| (j as f64 + 1.0) * (x - 0.45))
            .sum();
        let flipped = unit(&mut rng) < 0.125;
        u32::from((z > 0.0) != flipped)
    });
    let labels = labels.collect();
    let classes = vec!["no".into(), "yes".into()];
    Dataset::new(numbers(width), values, labels, classes).unwrap()
}

/// Three classes around the corners of a triangle.
pub(crate) fn three_classes(rows: usize) -> Dataset {
    let mut rng = ChaCha8Rng::seed_from_u64(7);
    let corners = [[0.0, 0.0], [0.7, 0.0], [0.3, 0.7]];
    let mut values = Vec::new();
    let labels: Vec<u32> = (0..rows as u32).map(|row| row % 3).collect();
    for &label in &labels {
        for corner in corners[label as usize] {
            values.push(corner + 0.3 * unit(&mut rng));
        }
    }
    let classes = ["a", "b", "c"].map(String::from).to_vec();
    Dataset::new(numbers(2), values, labels, classes).unwrap()
}

/// A number that follows a line, with noise.
pub(crate) fn noisy_number(rows: usize, width: usize, seed: u64) -> Dataset {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let values: Vec<f64> = (0..rows * width).map(|_| unit(&mut rng)).collect();
    let labels = values.chunks(width).map(|row| {
        let line = row.iter().zip(1..).map(|(x, j)| f64::from(j) * (x - 0.45));
        let noise: f64 = (0..4).map(|_| unit(&mut rng) - 0.5).sum();
        target::steps(0.3 + 0.05 * line.sum::<f64>() + 0.05 * noise)
    });
    let labels = labels.collect();
    Dataset::new(numbers(width), values, labels, Vec::new()).unwrap()
}

/// Ridge regression by its normal equations, in deviations of the columns: the coefficients on
/// values in [0, 1] that give the place of the label, bias first.
pub(crate) fn ridge(data: &Dataset, alpha: f64) -> Vec<f64> {
    let scaling = Scaling::of(data);
    let (rows, width) = (data.rows(), data.width());
    let mean = data.labels().iter().map(|&l| target::place(l)).sum::<f64>() / rows as f64;
    // A line of the system is a row of XᵀX + αI and an entry of Xᵀy.
    let mut system = vec![vec![0.0; width + 1]; width];
    for row in 0..rows {
        let values = data.row(row).iter().zip(scaling.centres());
        let mut x: Vec<f64> = values.map(|(x, centre)| centre.apply(*x)).collect();
        x.push(target::place(data.labels()[row]) - mean);
        for (line, own) in system.iter_mut().zip(&x) {
            line.iter_mut().zip(&x).for_each(|(a, b)| *a += own * b);
        }
    }
    for (at, line) in system.iter_mut().enumerate() {
        line[at] += alpha;
    }
    for at in 0..width {
        let pivot = system[at].clone();
        for (_, line) in system
            .iter_mut()
            .enumerate()
            .filter(|(other, _)| *other != at)
        {
            let part = line[at] / pivot[at];
            line.iter_mut()
                .zip(&pivot)
                .for_each(|(a, b)| *a -= part * b);
        }
    }
    let slopes = (0..width).map(|i| system[i][width] / system[i][i]);
    let deviations: Vec<f64> = std::iter::once(mean).chain(slopes).collect();
    scaling.to_values(&deviations)
}
