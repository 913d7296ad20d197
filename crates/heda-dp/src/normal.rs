//! The tail of the normal distribution, to about fourteen digits also far out.

use std::f64::consts::PI;

/// The density of the standard normal distribution.
pub(crate) fn density(x: f64) -> f64 {
    (-0.5 * x * x).exp() / (2.0 * PI).sqrt()
}

/// P(X > x).
pub fn tail(x: f64) -> f64 {
    if x < 0.0 {
        1.0 - tail(-x)
    } else {
        density(x) * mills(x)
    }
}

/// Mills' ratio P(X > x)/density(x) for x ≥ 0: what remains of a tail when its density is taken
/// off, so that differences of tails keep their digits.
pub(crate) fn mills(x: f64) -> f64 {
    if x < 2.0 {
        0.5 / density(x) - series(x)
    } else {
        1.0 / fraction(x)
    }
}

/// (P(X ≤ x) − ½)/density(x) = x + x³/3 + x⁵/(3·5) + …
fn series(x: f64) -> f64 {
    let (mut term, mut sum, mut odd) = (x, 0.0, 1.0);
    while term > 1e-18 * sum {
        sum += term;
        odd += 2.0;
        term *= x * x / odd;
    }
    sum
}

/// Laplace's continued fraction x + 1/(x + 2/(x + 3/(x + …))), from inside out. From x = 2 on two
/// hundred levels leave an error below 10⁻¹⁵.
fn fraction(x: f64) -> f64 {
    (1..=200).rev().fold(x, |inner, k| x + f64::from(k) / inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values of scipy.stats.norm.sf.
    #[test]
    fn tails_have_their_digits_near_and_far() {
        let known = [
            (0.0, 0.5),
            (0.5, 0.308_537_538_725_986_9),
            (1.0, 0.158_655_253_931_457_05),
            (1.999, 0.022_804_176_932_658_88),
            (2.0, 0.022_750_131_948_179_21),
            (2.5, 0.006_209_665_325_776_133),
            (5.0, 2.866_515_718_791_933e-7),
            (10.0, 7.619_853_024_160_47e-24),
            (20.0, 2.753_624_118_606_155_6e-89),
            (-1.0, 0.841_344_746_068_542_9),
        ];
        for (x, exact) in known {
            let relative = tail(x) / exact - 1.0;
            assert!(relative.abs() < 1e-13, "tail({x}): off by {relative:e}");
        }
    }

    #[test]
    fn both_ways_to_the_ratio_meet() {
        for x in [2.0, 2.2, 2.5] {
            let near = 0.5 / density(x) - series(x);
            assert!((near * fraction(x) - 1.0).abs() < 1e-13, "at {x}");
        }
    }
}
