//! Exact sampling with integers: discrete Laplace noise and k-ary randomised response.
//!
//! Floating-point noise is not what its formula says: its low bits tell the value under it
//! (Mironov, *On significance of the least significant bits for differential privacy*, 2012).
//! Here every probability is exact. Nothing is rounded, nothing is approximated, and no number is
//! larger than 128 bits. The method is that of Canonne, Kamath and Steinke (*The discrete
//! Gaussian for differential privacy*, 2020, algorithms 1 and 2).
//!
//! How long a draw takes depends on what is drawn, as with every exact sampler of this kind. A
//! release is therefore handed over whole, after the last draw, never value by value.

use crate::epsilon::{Epsilon, UNIT};
use rand_core::CryptoRng;
use std::num::{NonZeroU32, NonZeroU64};

/// A uniform number below `bound`, by multiplication and rejection (Lemire 2019): exact.
fn uniform_below<R: CryptoRng>(bound: u64, rng: &mut R) -> u64 {
    let unfair = bound.wrapping_neg() % bound;
    loop {
        let wide = u128::from(rng.next_u64()) * u128::from(bound);
        if wide as u64 >= unfair {
            return (wide >> 64) as u64;
        }
    }
}

/// True with probability exp(−numerator/denominator), for a fraction between 0 and 1.
///
/// Counts how long coins with probability γ/k, k = 1, 2, … fall on heads; the first tail comes at
/// an odd k with probability 1 − γ + γ²/2! − … = exp(−γ).
pub(crate) fn coin_exp_fraction<R: CryptoRng>(
    numerator: u64,
    denominator: u64,
    rng: &mut R,
) -> bool {
    let mut k = 1;
    while uniform_below(denominator, rng) < numerator && (k == 1 || uniform_below(k, rng) == 0) {
        k += 1;
    }
    k % 2 == 1
}

/// True with probability exp(−1).
pub(crate) fn coin_exp_one<R: CryptoRng>(rng: &mut R) -> bool {
    let mut k = 2;
    while uniform_below(k, rng) == 0 {
        k += 1;
    }
    k % 2 == 1
}

/// True with probability exp(−ε).
fn coin_exp<R: CryptoRng>(epsilon: Epsilon, rng: &mut R) -> bool {
    let (whole, rest) = (epsilon.billionths() / UNIT, epsilon.billionths() % UNIT);
    (0..whole).all(|_| coin_exp_one(rng)) && coin_exp_fraction(rest, UNIT, rng)
}

/// The discrete Laplace distribution on the integers: P(y) ∝ exp(−|y|·rate), where the rate is an
/// exact fraction.
///
/// Added to an integer that one row changes by at most Δ, noise of rate ε/Δ gives ε-differential
/// privacy: |y − x| and |y − x'| differ by at most Δ, so the probabilities of y differ by at most
/// exp(Δ·ε/Δ).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DiscreteLaplace {
    rate_numerator: u64,
    rate_denominator: u64,
}

impl DiscreteLaplace {
    /// Noise for a value that one row changes by at most `sensitivity`: rate ε/Δ, exactly.
    pub fn for_sensitivity(sensitivity: NonZeroU32, epsilon: Epsilon) -> Self {
        let (s, t) = (epsilon.billionths(), u64::from(sensitivity.get()) * UNIT);
        let common = greatest_common_divisor(s, t);
        Self {
            rate_numerator: s / common,
            rate_denominator: t / common,
        }
    }

    /// Noise of a whole-numbered scale, that is, of rate 1/scale.
    pub fn with_scale(scale: NonZeroU64) -> Self {
        Self {
            rate_numerator: 1,
            rate_denominator: scale.get(),
        }
    }

    /// Noise of rate `numerator`/`denominator`, both above nought.
    pub(crate) fn with_rate(numerator: u64, denominator: u64) -> Self {
        Self {
            rate_numerator: numerator,
            rate_denominator: denominator,
        }
    }

    /// The rate as a fraction; in lowest terms if it comes from a sensitivity.
    pub fn rate(&self) -> (u64, u64) {
        (self.rate_numerator, self.rate_denominator)
    }

    /// The scale 1/rate, for formulas and reports.
    pub fn scale(&self) -> f64 {
        self.rate_denominator as f64 / self.rate_numerator as f64
    }

    /// The variance 2p/(1−p)², p = exp(−rate).
    pub fn variance(&self) -> f64 {
        let half = 0.5 / self.scale();
        0.5 / half.sinh().powi(2)
    }

    /// P(noise = y).
    pub fn probability(&self, y: i64) -> f64 {
        let rate = 1.0 / self.scale();
        (0.5 * rate).tanh() * (-(y.unsigned_abs() as f64) * rate).exp()
    }

    /// One draw.
    pub fn sample<R: CryptoRng>(&self, rng: &mut R) -> i128 {
        loop {
            let negative = rng.next_u64() >> 63 == 1;
            let magnitude = self.magnitude(rng);
            // Zero would otherwise come up twice as often.
            if !(negative && magnitude == 0) {
                return if negative { -magnitude } else { magnitude };
            }
        }
    }

    /// ⌊X/s⌋ where X = u + t·v is geometric with rate 1/t: u below t weighted by exp(−u/t), and v
    /// geometric with rate 1. Then ⌊X/s⌋ is geometric with rate s/t.
    fn magnitude<R: CryptoRng>(&self, rng: &mut R) -> i128 {
        let t = self.rate_denominator;
        let u = loop {
            let u = uniform_below(t, rng);
            if coin_exp_fraction(u, t, rng) {
                break u;
            }
        };
        let mut v = 0u64;
        while coin_exp_one(rng) {
            v += 1;
        }
        let x = u128::from(u) + u128::from(t) * u128::from(v);
        let quotient = match u64::try_from(x) {
            Ok(x) => u128::from(x / self.rate_numerator),
            Err(_) => x / u128::from(self.rate_numerator),
        };
        quotient as i128
    }
}

fn greatest_common_divisor(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// k-ary randomised response: the true level with weight 1, every other one with weight exp(−ε).
///
/// Two true levels change the weight of an answer by a factor of exp(ε) at most, and the sum of
/// the weights not at all: ε-differential privacy, reached exactly (Kairouz, Oh and Viswanath,
/// *Extremal mechanisms for local differential privacy*, 2014). The draw is exact too: a uniform
/// level is proposed; the true one is taken, another one with probability exp(−ε); otherwise
/// again. No probability is ever rounded. A draw takes about min(k, e^ε) proposals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RandomisedResponse {
    levels: NonZeroU32,
    epsilon: Epsilon,
}

impl RandomisedResponse {
    /// Answers among `levels` levels.
    pub fn new(levels: NonZeroU32, epsilon: Epsilon) -> Self {
        Self { levels, epsilon }
    }

    /// How often the answer is true, for reports.
    pub fn probability_of_truth(&self) -> f64 {
        let others = f64::from(self.levels.get() - 1) * (-self.epsilon.to_f64()).exp();
        1.0 / (1.0 + others)
    }

    /// One answer.
    pub fn sample<R: CryptoRng>(&self, truth: u32, rng: &mut R) -> u32 {
        loop {
            let proposed = uniform_below(u64::from(self.levels.get()), rng) as u32;
            if proposed == truth || coin_exp(self.epsilon, rng) {
                return proposed;
            }
        }
    }
}

#[cfg(test)]
mod tests;
