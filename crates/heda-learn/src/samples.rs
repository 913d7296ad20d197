//! Small made-up data for tests.

use crate::data::{Dataset, Feature};
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
