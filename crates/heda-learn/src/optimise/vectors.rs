//! Sums, products and lengths of coefficients.

pub(super) fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

pub(super) fn length(a: &[f64]) -> f64 {
    dot(a, a).sqrt()
}

pub(super) fn largest(a: &[f64]) -> f64 {
    a.iter().fold(0.0, |m, v| v.abs().max(m))
}

pub(super) fn difference(a: &[f64], b: &[f64]) -> Vec<f64> {
    a.iter().zip(b).map(|(a, b)| a - b).collect()
}

pub(super) fn add_scaled(a: &mut [f64], factor: f64, b: &[f64]) {
    a.iter_mut().zip(b).for_each(|(a, b)| *a += factor * b);
}

pub(super) fn all_finite(a: &[f64]) -> bool {
    a.iter().all(|v| v.is_finite())
}

/// For stored vectors: `dimension` finite numbers.
pub(super) fn is_vector(a: &[f64], dimension: usize) -> bool {
    a.len() == dimension && all_finite(a)
}
