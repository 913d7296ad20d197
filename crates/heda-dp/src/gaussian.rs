//! Exact discrete Gaussian noise on the integers, and what a sum of such noise is worth.
//!
//! **Sampling** (Canonne, Kamath, Steinke, *The discrete Gaussian for differential privacy*, 2020,
//! algorithm 3). P(y) ∝ exp(−y²/2σ²) for a whole number σ². A discrete Laplace variable y of rate
//! m/σ², m = ⌊σ⌋, is kept with probability exp(−(|y| − m)²/2σ²): the product is
//! exp(−(y² + m²)/2σ²). Their algorithm has rate 1/t with a whole number t; with m/σ² the square
//! is one of whole numbers, so 128 bits suffice. Integers only, every probability is exact.
//!
//! **Accounting.** One row moves an integer vector by at most Δ in Euclidean norm, and discrete
//! Gaussian noise of variance parameter σ² is added to every coordinate. The claim, with which
//! [`Variance::accounted`] works: this is as private as continuous Gaussian noise of variance
//! σ² − 9, but for factors within 1 ± 10⁻⁷⁶ a coordinate. (It is not dominated by continuous noise
//! of its own variance.) The reason has three parts:
//!
//! 1. For r ≥ 3 and any real c, Σ_k exp(−(k − c)²/2r²) over the integers k is √(2π)·r·(1 ± η) with
//!    η < 2.1·exp(−2π²r²) < 2·10⁻⁷⁷: Poisson's summation.
//! 2. Take x from a continuous Gaussian of variance σ² − 9 and round it to the integer k with
//!    probability ∝ exp(−(k − x)²/18). By part 1 the denominator is constant to 1 ± η, so
//!    P(k) = exp(−k²/2σ²)/(√(2π)·σ) to 1 ± η: the discrete Gaussian of σ², again by part 1. The
//!    rounding commutes with whole-numbered shifts and looks at nothing but x. So an answer with
//!    our noise is, to those factors, one with continuous noise that was rounded afterwards, and
//!    rounding afterwards reveals nothing more.
//! 3. *Shares.* Providers add their noise independently: the sum of discrete Gaussians of σ₁² and
//!    σ₂² has P(k) ∝ exp(−k²/2(σ₁² + σ₂²))·Σ_j exp(−(j − c)²/2r²), r² = σ₁²σ₂²/(σ₁² + σ₂²). When
//!    both are at least 18 ([`Variance::LEAST`]), r² ≥ 9, and by part 1 the sum over j does not
//!    depend on k to 1 ± η: a discrete Gaussian of variance σ₁² + σ₂². (Kairouz, Liu, Steinke, *The
//!    distributed discrete Gaussian mechanism*, 2021, lose more because they allow small σ.) So
//!    nine is taken off once, whatever the number of shares.
//!
//! A job reveals fewer than 10⁹ numbers with shares of fewer than 10⁶ providers: all factors
//! together change ε by less than 10⁻⁶⁰, far below how it is rounded up ([`crate::gdp`]).
//!
//! How long a draw takes depends on what is drawn; answers are handed over after the last draw.

use crate::error::ParameterError;
use crate::sample::{DiscreteLaplace, coin_exp_fraction, coin_exp_one};
use rand_core::CryptoRng;
use serde::{Deserialize, Serialize};
use std::fmt;

/// σ² of a discrete Gaussian: a whole number from [`Variance::LEAST`] to [`Variance::MOST`], so
/// that the accounting of sums holds and no product leaves 128 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "u64", into = "u64")]
pub struct Variance(u64);

impl Variance {
    /// The least variance: part 3 of the argument above needs it.
    pub const LEAST: u64 = 18;
    /// The largest variance.
    pub const MOST: u64 = 1 << 60;
    /// What is taken off before a discrete Gaussian is accounted for as a continuous one.
    pub const ROUNDING: u64 = 9;

    /// A whole-numbered variance.
    pub fn new(squared: u64) -> Result<Self, ParameterError> {
        match squared {
            0..Self::LEAST => Err(ParameterError::VarianceTooSmall(squared)),
            Self::LEAST..=Self::MOST => Ok(Self(squared)),
            _ => Err(ParameterError::VarianceTooLarge(squared as f64)),
        }
    }

    /// The least variance that is not below a computed number.
    pub fn at_least(squared: f64) -> Result<Self, ParameterError> {
        if squared.is_nan() || squared <= 0.0 {
            return Err(ParameterError::VarianceNotPositive(squared));
        }
        if squared > Self::MOST as f64 {
            return Err(ParameterError::VarianceTooLarge(squared));
        }
        Ok(Self((squared.ceil() as u64).max(Self::LEAST)))
    }

    /// σ².
    pub fn get(self) -> u64 {
        self.0
    }

    /// σ, for reports.
    pub fn deviation(self) -> f64 {
        (self.0 as f64).sqrt()
    }

    /// The variance of independent noise added up.
    pub fn sum(parts: impl IntoIterator<Item = Self>) -> Result<Self, ParameterError> {
        let sum = |total: u64, part: Self| total.saturating_add(part.0);
        Self::new(parts.into_iter().fold(0, sum))
    }

    /// The variance of the continuous Gaussian noise that is no more private: σ² − 9.
    pub fn accounted(self) -> u64 {
        self.0 - Self::ROUNDING
    }

    /// The share of each of `count` parties, so that together they reach at least this.
    pub fn share(self, count: std::num::NonZeroU32) -> Self {
        Self(self.0.div_ceil(u64::from(count.get())).max(Self::LEAST))
    }
}

impl TryFrom<u64> for Variance {
    type Error = ParameterError;

    fn try_from(squared: u64) -> Result<Self, ParameterError> {
        Self::new(squared)
    }
}

impl From<Variance> for u64 {
    fn from(variance: Variance) -> Self {
        variance.0
    }
}

impl fmt::Display for Variance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// One draw of the discrete Gaussian: P(y) ∝ exp(−y²/2σ²).
pub fn sample<R: CryptoRng>(variance: Variance, rng: &mut R) -> i64 {
    let centre = variance.0.isqrt();
    let proposal = DiscreteLaplace::with_rate(centre, variance.0);
    loop {
        let proposed = proposal.sample(rng);
        let distance = proposed.unsigned_abs().abs_diff(u128::from(centre));
        if keeps(distance, variance, rng) {
            // |y| is 2^63 with a chance below exp(−2^60).
            return proposed as i64;
        }
    }
}

/// True with probability exp(−distance²/2σ²).
fn keeps<R: CryptoRng>(distance: u128, variance: Variance, rng: &mut R) -> bool {
    let twice = 2 * variance.0;
    let square = distance.saturating_mul(distance);
    let (whole, rest) = (square / u128::from(twice), square % u128::from(twice));
    let mut wholes = 0..whole;
    wholes.all(|_| coin_exp_one(rng)) && coin_exp_fraction(rest as u64, twice, rng)
}

#[cfg(test)]
mod tests;
