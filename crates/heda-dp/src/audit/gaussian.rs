//! The same for a claim of Gaussian differential privacy: is telling the two data sets apart
//! really as hard as telling a normal variable of mean 0 from one of mean μ?
//!
//! A run yields one number, larger on the right data set than on the left one if it tells anything.
//! The threshold that separates best is searched in the first half of the runs. In the second half
//! the shares above it, p and q, are bounded as in the [module above](super), and μ is at least
//! Φ⁻¹(p) − Φ⁻¹(q): a claim about the whole curve of errors is refuted by one point of it (Nasr and
//! others, *Tight auditing of differentially private machine learning*, 2023).

use super::{AuditError, World, bounds};
use crate::gdp::Cost;
use crate::normal::tail;

/// What an audit of μ found.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GaussianFinding {
    /// What is claimed.
    pub claimed: Cost,
    /// μ is at least this, with the stated confidence.
    pub mu_at_least: f64,
    /// The probability that the bound is right.
    pub confidence: f64,
    /// Runs on each data set.
    pub runs: usize,
}

impl GaussianFinding {
    /// Whether the claim is refuted.
    pub fn is_refuted(&self) -> bool {
        self.mu_at_least > self.claimed.mu()
    }

    /// The cost that the runs prove.
    pub fn cost_at_least(&self) -> Cost {
        Cost::from_parts((self.mu_at_least.powi(2) * 1e15) as u64)
    }
}

/// Runs a mechanism on both data sets and judges a claim of μ.
pub fn audit_gaussian(
    claimed: Cost,
    runs: usize,
    confidence: f64,
    mut mechanism: impl FnMut(World) -> f64,
) -> Result<GaussianFinding, AuditError> {
    if runs < 100 {
        return Err(AuditError::TooFewRuns(runs));
    }
    if !(confidence > 0.0 && confidence < 1.0) {
        return Err(AuditError::Confidence(confidence));
    }
    let mut draw = |world, count| (0..count).map(|_| mechanism(world)).collect::<Vec<f64>>();
    let search = runs / 2;
    let (left, right) = (draw(World::Left, search), draw(World::Right, search));
    let (fresh_left, fresh_right) = (
        draw(World::Left, runs - search),
        draw(World::Right, runs - search),
    );
    let error = (1.0 - confidence) / 2.0;
    let threshold = best_threshold(&left, &right, error);
    Ok(GaussianFinding {
        claimed,
        mu_at_least: separation(&fresh_left, &fresh_right, threshold, error).max(0.0),
        confidence,
        runs,
    })
}

/// Of the values that were seen, the one above which the two sides differ most.
fn best_threshold(left: &[f64], right: &[f64], error: f64) -> f64 {
    let mut seen = [left, right].concat();
    seen.sort_by(f64::total_cmp);
    let step = (seen.len() / 64).max(1);
    let candidates = seen.iter().step_by(step).copied();
    let by_separation = |t: f64| separation(left, right, t, error);
    candidates
        .max_by(|&a, &b| by_separation(a).total_cmp(&by_separation(b)))
        .unwrap_or(0.0)
}

/// A lower bound on μ from how many values lie above a threshold on either side.
fn separation(left: &[f64], right: &[f64], threshold: f64, error: f64) -> f64 {
    let above = |values: &[f64]| values.iter().filter(|&&v| v > threshold).count();
    let (likely, _) = bounds(above(right), right.len(), error);
    let (_, rare) = bounds(above(left), left.len(), error);
    quantile(likely) - quantile(rare)
}

/// Φ⁻¹, to six digits: an audit needs no more.
fn quantile(probability: f64) -> f64 {
    let (mut low, mut high) = (-40.0, 40.0);
    for _ in 0..60 {
        let middle = 0.5 * (low + high);
        *(if tail(-middle) < probability {
            &mut low
        } else {
            &mut high
        }) = middle;
    }
    low
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gaussian::{Variance, sample};
    use chacha20::ChaCha20Rng;
    use rand_core::SeedableRng;

    /// Noise of variance 1009 on a number that moves by `distance`, claimed as if by 10.
    fn finding(distance: i64, seed: u64) -> GaussianFinding {
        let variance = Variance::new(1_009).unwrap();
        let mut rng = ChaCha20Rng::seed_from_u64(seed);
        audit_gaussian(Cost::of(100, variance), 20_000, 0.999, |world| {
            let shift = if world == World::Right { distance } else { 0 };
            (shift + sample(variance, &mut rng)) as f64
        })
        .unwrap()
    }

    #[test]
    fn the_real_noise_stands_and_half_of_it_is_refuted() {
        let honest = finding(10, 1);
        assert!(!honest.is_refuted(), "{honest:?}");
        assert!(honest.mu_at_least > 0.5 * honest.claimed.mu(), "{honest:?}");
        assert!(honest.cost_at_least() <= honest.claimed);
        assert!(finding(20, 2).is_refuted());
        assert!(finding(0, 3).mu_at_least < 0.02);
        let proven = honest.cost_at_least().mu();
        assert!((proven - honest.mu_at_least).abs() < 1e-3, "{proven}");
        // Half of the runs choose the threshold, the other half is counted.
        let mut drawn = 0;
        audit_gaussian(Cost::ZERO, 100, 0.5, |_| {
            drawn += 1;
            0.0
        })
        .unwrap();
        assert_eq!(drawn, 200);
    }

    /// A mechanism without noise, whose result is known: of the second half of the runs all lie above the
    /// threshold on the right and none on the left. Chernoff's bounds of such shares are exact: with
    /// probability `error` a share of error^(1/n) gives n of n.
    #[test]
    fn an_audit_without_noise_finds_what_its_runs_can_prove() {
        let mut worlds = Vec::new();
        let finding = audit_gaussian(Cost::ZERO, 400, 0.9, |world| {
            worlds.push(world);
            if world == World::Right { 7.0 } else { 5.0 }
        })
        .unwrap();
        let proven = 2.0 * quantile(0.05f64.powf(1.0 / 200.0));
        let found = finding.mu_at_least;
        assert!((found - proven).abs() < 1e-9, "{found} {proven}");
        // The halves are equal: one that searches, and one that is counted.
        for half in worlds.chunks(400) {
            let left = half.iter().take_while(|world| **world == World::Left);
            assert_eq!((half.len(), left.count()), (400, 200));
        }
    }

    /// Every third of 194 values is tried, in their order; the one between both sides is number 96.
    #[test]
    fn the_threshold_is_where_both_sides_differ_most() {
        let right: Vec<f64> = (0..97).map(|n| f64::from(97 + n)).collect();
        let mut left: Vec<f64> = (0..97).map(f64::from).collect();
        left.rotate_right(2);
        assert_eq!(best_threshold(&left, &right, 0.01), 96.0);
        // Of few values each is tried.
        assert_eq!(best_threshold(&left[..40], &right[..40], 0.01), 96.0);
        assert_eq!(best_threshold(&[4.0; 30], &[6.0; 70], 0.01), 4.0);
    }

    /// What lies at the threshold is not above it.
    #[test]
    fn only_what_is_above_the_threshold_counts() {
        let (left, right) = ([5.0; 200], [7.0; 200]);
        let all = separation(&left, &right, 5.0, 0.01);
        assert!(all > 3.0, "{all}");
        assert_eq!(separation(&left, &right, 6.0, 0.01), all);
        assert!(separation(&left, &right, 7.0, 0.01) < 0.0);
    }

    #[test]
    fn a_claim_is_refuted_by_more_than_it_says_only() {
        let claimed = Cost::from_parts(250_000_000_000_000);
        let of = |mu_at_least| GaussianFinding {
            claimed,
            mu_at_least,
            confidence: 0.99,
            runs: 100,
        };
        assert!(!of(0.5).is_refuted());
        assert!(of(0.5f64.next_up()).is_refuted());
    }

    #[test]
    fn quantiles_are_those_of_the_normal_distribution() {
        for (p, x) in [(0.5, 0.0), (0.975, 1.959_964), (0.001, -3.090_232)] {
            assert!((quantile(p) - x).abs() < 1e-6, "{p}");
        }
    }

    #[test]
    fn bad_audits_are_refused() {
        assert!(audit_gaussian(Cost::ZERO, 99, 0.9, |_| 0.0).is_err());
        assert!(audit_gaussian(Cost::ZERO, 100, 1.0, |_| 0.0).is_err());
        assert!(audit_gaussian(Cost::ZERO, 100, 0.0, |_| 0.0).is_err());
    }
}
