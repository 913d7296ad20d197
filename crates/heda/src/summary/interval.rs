//! How sure a share of rows is that were counted without noise.

/// Standard deviations of a normal distribution that hold 95 % of it.
const Z: f64 = 1.959_963_984_540_054;

/// The 95 % interval of a share by Wilson ("Probable inference, the law of succession, and
/// statistical inference", 1927); `None` without rows. It is right for few rows too, and at 0 and 1.
pub fn interval(part: u64, whole: u64) -> Option<[f64; 2]> {
    if whole == 0 {
        return None;
    }
    let rows = whole as f64;
    let share = part as f64 / rows;
    let spread = Z * Z / rows;
    let centre = share + spread / 2.0;
    let half = Z * (share * (1.0 - share) / rows + spread / (4.0 * rows)).sqrt();
    let bound = |value: f64| (value / (1.0 + spread)).clamp(0.0, 1.0);
    Some([bound(centre - half), bound(centre + half)])
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
            let [found_low, found_high] = interval(part, whole).unwrap();
            assert!((found_low - low).abs() < 1e-5, "{found_low}");
            assert!((found_high - high).abs() < 1e-5, "{found_high}");
        }
        assert_eq!(interval(0, 0), None);
    }
}
