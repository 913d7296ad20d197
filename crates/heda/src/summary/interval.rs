//! How sure a share of counted rows is.

/// Standard deviations of a normal distribution that hold 95 % of it.
const Z: f64 = 1.959_963_984_540_054;

/// The 95 % interval of a share by Wilson ("Probable inference, the law of succession, and
/// statistical inference", 1927); `None` without rows. It is right for few rows too, and at 0 and 1.
/// Noise of such a deviation in the part makes it wider: both are independent, so their squares add
/// up on either side.
pub fn interval(part: u64, whole: u64, noise: f64) -> Option<[f64; 2]> {
    if whole == 0 {
        return None;
    }
    let rows = whole as f64;
    let share = part as f64 / rows;
    let spread = Z * Z / rows;
    let centre = share + spread / 2.0;
    let half = Z * (share * (1.0 - share) / rows + spread / (4.0 * rows)).sqrt();
    let bound = |value: f64| (value / (1.0 + spread)).clamp(0.0, 1.0);
    let more = Z * noise / rows;
    let wider = |bound: f64| (bound - share).hypot(more);
    let (low, high) = (bound(centre - half), bound(centre + half));
    Some([
        (share - wider(low)).clamp(0.0, 1.0),
        (share + wider(high)).clamp(0.0, 1.0),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Against scipy, `binomtest(x, n).proportion_ci(method="wilson")`.
    #[test]
    fn intervals_are_those_of_scipy() {
        for (part, whole, low, high) in [
            (8, 10, 0.490_162, 0.943_318),
            (0, 20, 0.0, 0.161_125),
            (135, 138, 0.938_037, 0.992_580),
        ] {
            let [found_low, found_high] = interval(part, whole, 0.0).unwrap();
            assert!((found_low - low).abs() < 1e-5, "{found_low}");
            assert!((found_high - high).abs() < 1e-5, "{found_high}");
        }
        assert_eq!(interval(0, 0, 0.0), None);
    }

    /// Rows and noise drawn many times: about 95 % of the intervals hold the truth.
    #[test]
    fn intervals_of_noisy_counts_hold_the_truth_as_often_as_they_say() {
        use rand_core::Rng;
        let mut rng = heda_crypto::random::Randomness::seeded(3)
            .fork("coverage", 0)
            .unwrap();
        let mut uniform = || f64::from(rng.next_u32()) / f64::from(u32::MAX);
        let (truth, rows, deviation) = (0.9, 400, 8.0);
        let runs = 4000;
        let held = (0..runs).filter(|_| {
            let right = (0..rows).filter(|_| uniform() < truth).count() as f64;
            // Twelve uniform numbers are nearly normal.
            let normal: f64 = (0..12).map(|_| uniform()).sum::<f64>() - 6.0;
            let noisy = (right + deviation * normal).round().clamp(0.0, rows as f64);
            let [low, high] = interval(noisy as u64, rows as u64, deviation).unwrap();
            low <= truth && truth <= high
        });
        let share = held.count() as f64 / f64::from(runs);
        assert!((0.935..=0.97).contains(&share), "{share}");
    }
}
