//! What Gaussian noise costs: μ, and the (ε, δ) that it stands for, exactly.
//!
//! Noise of deviation σ on a vector that one row moves by at most Δ is μ-Gaussian differentially
//! private, μ = Δ/σ: telling two neighbouring tables apart is as hard as telling a normal variable
//! of mean 0 from one of mean μ (Dong, Roth, Su, *Gaussian differential privacy*, 2019). Several
//! answers, each chosen after the ones before, add their μ² up. For every ε
//!
//! δ(ε) = Φ(−ε/μ + μ/2) − e^ε·Φ(−ε/μ − μ/2)
//!
//! is the least δ, and not a bound of it (Balle and Wang, *Improving the Gaussian mechanism for
//! differential privacy*, 2018). Nothing here goes by Rényi divergence or zCDP, which overstate ε.
//!
//! **A cap is a valid filter.** If jobs go on as long as Σμ² stays within a cap fixed in advance,
//! all of them together are √cap-GDP, also when each job is chosen in the light of the results
//! before it, its price included (Smith and Thakurta, *Fully adaptive composition for Gaussian
//! differential privacy*, 2022). [`Cost`] is exact for that purpose: whole numbers, rounded up.
//!
//! δ is computed to about eleven digits; every result is moved by 10⁻⁹ to the safe side.

use crate::epsilon::{Epsilon, LARGEST};
use crate::error::ParameterError;
use crate::gaussian::Variance;
use crate::normal::{density, mills, tail};
use serde::{Deserialize, Serialize};
use std::cell::Cell;
use std::fmt;
use std::str::FromStr;

/// Parts of μ² in one.
const UNIT: u128 = 1_000_000_000_000_000;
/// By what computed numbers are moved to the safe side.
pub(crate) const SAFETY: f64 = 1e-9;

/// The probability with which a guarantee may fail: above 0 and below 1.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(try_from = "f64", into = "f64")]
pub struct Delta(f64);

impl Delta {
    /// Checks a number.
    pub fn new(delta: f64) -> Result<Self, ParameterError> {
        let inside = delta > 0.0 && delta < 1.0;
        inside
            .then_some(Self(delta))
            .ok_or(ParameterError::DeltaOutside(delta))
    }

    /// The largest power of ten that is at most 10⁻⁵ and at most a tenth of a row's share.
    pub fn default_for(rows: u64) -> Self {
        let digits = rows.max(1).checked_ilog10().unwrap_or(0) as i32;
        let exact = 10u64.checked_pow(digits as u32) == Some(rows);
        let needed = digits + if exact { 1 } else { 2 };
        Self(10f64.powi(-needed.max(5)))
    }

    /// Refuses a δ of one row's share or more.
    pub fn check_rows(self, rows: u64) -> Result<(), ParameterError> {
        let delta = self.0;
        match delta * rows as f64 >= 1.0 {
            true => Err(ParameterError::DeltaTooLargeForRows { delta, rows }),
            false => Ok(()),
        }
    }

    /// Whether a warning is due: above a tenth of a row's share.
    pub fn is_generous(self, rows: u64) -> bool {
        self.0 * rows as f64 * 10.0 > 1.0 + SAFETY
    }

    /// The number.
    pub fn get(self) -> f64 {
        self.0
    }
}

impl TryFrom<f64> for Delta {
    type Error = ParameterError;

    fn try_from(delta: f64) -> Result<Self, ParameterError> {
        Self::new(delta)
    }
}

impl From<Delta> for f64 {
    fn from(delta: Delta) -> Self {
        delta.0
    }
}

impl FromStr for Delta {
    type Err = ParameterError;

    fn from_str(text: &str) -> Result<Self, ParameterError> {
        let number = text
            .trim()
            .parse()
            .map_err(|_| ParameterError::DeltaNotANumber)?;
        Self::new(number)
    }
}

impl fmt::Display for Delta {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:e}", self.0)
    }
}

/// μ² of something that was or will be revealed, in whole 10⁻¹⁵. Costs of the same rows add up.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Cost(u64);

impl Cost {
    /// Nothing revealed.
    pub const ZERO: Self = Self(0);

    /// Of discrete noise on whole numbers that one row moves by at most Δ: Δ²/(σ² − 9), rounded
    /// up. [`crate::gaussian`] says why nine.
    pub fn of(sensitivity_squared: u64, variance: Variance) -> Self {
        let parts = u128::from(sensitivity_squared) * UNIT;
        let quotient = parts.div_ceil(u128::from(variance.accounted()));
        Self(u64::try_from(quotient).unwrap_or(u64::MAX))
    }

    /// The largest cost that keeps a guarantee.
    pub fn for_guarantee(epsilon: Epsilon, delta: Delta) -> Self {
        thread_local! {
            /// A job asks for the same one many times, and it takes a while to find.
            static LAST: Cell<Option<(Epsilon, Delta, Cost)>> = const { Cell::new(None) };
        }
        if let Some((_, _, cost)) = LAST
            .get()
            .filter(|last| (last.0, last.1) == (epsilon, delta))
        {
            return cost;
        }
        let cost = Self::search(epsilon, delta);
        LAST.set(Some((epsilon, delta, cost)));
        cost
    }

    fn search(epsilon: Epsilon, delta: Delta) -> Self {
        let fits = |mu: f64| delta_of(mu, epsilon.to_f64()) * (1.0 + SAFETY) <= delta.0;
        let (mut low, mut high) = (0.0, 200.0);
        loop {
            let middle = 0.5 * (low + high);
            if middle <= low || middle >= high {
                break;
            }
            *(if fits(middle) { &mut low } else { &mut high }) = middle;
        }
        let parts = (low * low * UNIT as f64 * (1.0 - SAFETY)).floor();
        Self(parts as u64)
    }

    /// The least variance of noise on whole numbers that costs at most this.
    pub fn variance(self, sensitivity_squared: u64) -> Option<Variance> {
        let parts = u128::from(sensitivity_squared) * UNIT;
        let accounted = parts.checked_div(u128::from(self.0))? + 1;
        let squared = u64::try_from(accounted)
            .ok()?
            .checked_add(Variance::ROUNDING)?;
        Variance::new(squared.max(Variance::LEAST)).ok()
    }

    /// The same several times over.
    pub fn times(self, count: u64) -> Self {
        Self(self.0.saturating_mul(count))
    }

    /// The equal part of `count`, rounded down.
    pub fn split(self, count: std::num::NonZeroU32) -> Self {
        Self(self.0 / u64::from(count.get()))
    }

    /// This part of the whole, rounded down; a share is cut to 0 to 1.
    pub fn portion(self, share: f64) -> Self {
        Self((self.0 as f64 * share.clamp(0.0, 1.0)).floor() as u64)
    }

    /// Both together.
    pub fn plus(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    /// What is left after `other`, if that much was there.
    pub fn minus(self, other: Self) -> Option<Self> {
        self.0.checked_sub(other.0).map(Self)
    }

    /// μ.
    pub fn mu(self) -> f64 {
        self.squared().sqrt()
    }

    /// μ².
    pub fn squared(self) -> f64 {
        self.0 as f64 / UNIT as f64
    }

    /// In 10⁻¹⁵, exactly.
    pub fn parts(self) -> u64 {
        self.0
    }

    /// From 10⁻¹⁵.
    pub const fn from_parts(parts: u64) -> Self {
        Self(parts)
    }

    /// The ε that belongs to a δ, rounded up.
    pub fn epsilon(self, delta: Delta) -> Result<Epsilon, ParameterError> {
        let mu = self.mu();
        least_epsilon(delta, |epsilon| delta_of(mu, epsilon))
    }
}

impl std::iter::Sum for Cost {
    fn sum<I: Iterator<Item = Self>>(costs: I) -> Self {
        costs.fold(Self::ZERO, Self::plus)
    }
}

/// The least ε whose δ is small enough, from the safe side.
pub(crate) fn least_epsilon(
    delta: Delta,
    delta_at: impl Fn(f64) -> f64,
) -> Result<Epsilon, ParameterError> {
    let fits = |epsilon: f64| delta_at(epsilon) * (1.0 + SAFETY) <= delta.0;
    let (mut low, mut high) = (0.0, LARGEST as f64);
    if !fits(high) {
        return Err(ParameterError::EpsilonTooLarge);
    }
    while high - low > 1e-12 + 1e-10 * high {
        let middle = 0.5 * (low + high);
        *(if fits(middle) { &mut high } else { &mut low }) = middle;
    }
    Epsilon::at_least(high)
}

/// δ(ε) of μ-Gaussian differential privacy, for any real ε. With μ = 0 nothing is revealed.
pub(crate) fn delta_of(mu: f64, epsilon: f64) -> f64 {
    if epsilon < 0.0 {
        let mirrored = epsilon.exp();
        return 1.0 - mirrored + mirrored * delta_of(mu, -epsilon);
    }
    if mu == 0.0 {
        return 0.0;
    }
    // e^ε·density(far) is density(near): so e^ε never appears.
    let (near, far) = (epsilon / mu - 0.5 * mu, epsilon / mu + 0.5 * mu);
    if near < 0.0 {
        tail(near) - density(near) * mills(far)
    } else {
        density(near) * (mills(near) - mills(far))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::num::NonZeroU32;

    fn epsilon(text: &str) -> Epsilon {
        text.parse().unwrap()
    }

    fn delta(number: f64) -> Delta {
        Delta::new(number).unwrap()
    }

    #[test]
    fn numbers_come_back_as_they_went_in() {
        assert_eq!(Cost::from_parts(5).parts(), 5);
        assert_eq!(f64::from(delta(1e-5)), 1e-5);
    }

    #[test]
    fn one_over_mu_at_epsilon_one_is_known() {
        let mu = Cost::for_guarantee(epsilon("1"), delta(1e-5)).mu();
        assert!((1.0 / mu - 3.730_631_6).abs() < 1e-5, "{}", 1.0 / mu);
    }

    #[test]
    fn guarantee_and_cost_are_inverse_and_never_on_the_wrong_side() {
        for text in ["0.01", "0.1", "0.5", "1", "2", "4", "8", "20"] {
            for small in [1e-3, 1e-5, 1e-8, 1e-12] {
                let asked = epsilon(text);
                let cost = Cost::for_guarantee(asked, delta(small));
                let back = cost.epsilon(delta(small)).unwrap();
                assert!(back <= asked, "{back} for {asked}");
                assert!(
                    back.to_f64() > asked.to_f64() * (1.0 - 1e-5),
                    "{back} for {asked}"
                );
            }
        }
    }

    /// Values by forty digits of mpmath, on both sides of ε = μ²/2, where the formula changes.
    #[test]
    fn delta_has_its_digits() {
        for (mu, epsilon, exact) in [
            (0.5, 1.0, 0.006_829_594_983_114_575),
            (1.0, 1.0, 0.126_936_737_506_643_95),
            (1.0, 0.5, 0.238_421_708_134_876_63),
            (2.0, 1.0, 0.509_861_660_054_670_2),
            (4.0, 0.5, 0.941_916_156_687_795_4),
            (20.0, 3.0, 1.0),
        ] {
            let found = delta_of(mu, epsilon);
            assert!(
                (found / exact - 1.0).abs() < 1e-11,
                "{mu} {epsilon}: {found}"
            );
        }
    }

    /// A δ that is too large by less than a billionth counts as too large, and one that fits exactly fits.
    #[test]
    fn computed_deltas_are_judged_from_the_safe_side() {
        let steps = |first: f64| {
            move |epsilon: f64| match epsilon {
                0.0..1.0 => 0.5,
                1.0..2.0 => first,
                _ => 1e-9,
            }
        };
        let least = |asked: f64, first: f64| least_epsilon(delta(asked), steps(first)).unwrap();
        let close = |found: Epsilon, exact: f64| (found.to_f64() - exact).abs() < 1e-8;
        assert!(close(least(1e-5, 1e-5 * (1.0 - 5e-10)), 2.0));
        assert!(close(least(1e-5, 1e-5 * (1.0 - 2e-9)), 1.0));
        assert!(close(least(1e-5 * (1.0 + SAFETY), 1e-5), 1.0));
    }

    #[test]
    fn noise_for_a_cost_costs_no_more() {
        let total = Cost::for_guarantee(epsilon("1"), delta(1e-5));
        let each = total.split(NonZeroU32::new(12).unwrap());
        for sensitivity in [1u64, 300, 1 << 20, 1 << 30] {
            let variance = each.variance(sensitivity).unwrap();
            let cost = Cost::of(sensitivity, variance);
            assert!(cost <= each, "{cost:?} of {each:?}");
            // A little less noise would cost too much, unless the least noise is more than enough.
            if variance.get() > Variance::LEAST {
                let less = Variance::new(variance.get() - 2);
                assert!(less.is_err() || Cost::of(sensitivity, less.unwrap()) > each);
            }
            assert!(cost.times(12) <= total);
        }
        assert!(Cost::ZERO.variance(1).is_none());
        assert!(Cost::from_parts(1).variance(1 << 60).is_none());
    }

    #[test]
    fn costs_add_up_and_never_wrap() {
        let one = Cost::of(4, Variance::new(109).unwrap());
        assert_eq!(one.squared(), 0.04);
        assert_eq!([one; 3].into_iter().sum::<Cost>(), one.times(3));
        assert_eq!(one.minus(one.times(2)), None);
        let huge = Cost::from_parts(u64::MAX);
        assert_eq!(huge.plus(one), huge);
        assert_eq!(
            huge.epsilon(delta(1e-5)),
            Err(ParameterError::EpsilonTooLarge)
        );
        assert_eq!(Cost::ZERO.epsilon(delta(1e-5)).unwrap().billionths(), 1);
    }

    #[test]
    fn delta_has_its_rules() {
        for bad in [0.0, -1e-9, 1.0, f64::NAN, f64::INFINITY] {
            assert!(Delta::new(bad).is_err(), "{bad}");
        }
        assert_eq!("x".parse::<Delta>(), Err(ParameterError::DeltaNotANumber));
        assert!(serde_json::from_str::<Delta>("0").is_err());
        for (rows, exponent) in [(1, -5), (10_000, -5), (10_001, -6), (1_000_000, -7)] {
            let chosen = Delta::default_for(rows);
            assert_eq!(chosen.get(), 10f64.powi(exponent), "{rows} rows");
            assert!(!chosen.is_generous(rows) && chosen.check_rows(rows).is_ok());
        }
        assert!(delta(1e-3).is_generous(500) && delta(1e-3).check_rows(500).is_ok());
        let refused = delta(1e-3).check_rows(1_000).unwrap_err();
        assert!(
            refused.to_string().ends_with("give at most 1e-5"),
            "{refused}"
        );
    }
}
