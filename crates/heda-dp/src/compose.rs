//! One accountant for everything about the same rows: Gaussian parts and pure ε parts together.
//!
//! Gaussian parts add their μ² up ([`crate::gdp`]). A part that is ε-differentially private tells
//! two tables apart no better than randomised response of the same ε: a coin whose privacy loss is
//! ε with probability e^ε/(1 + e^ε) and −ε otherwise (Kairouz, Oh, Viswanath, *The composition
//! theorem for differential privacy*, 2015). The losses of all coins add up to L, and
//!
//! δ(ε) = Σ_L P(L)·δ_μ(ε − L).
//!
//! To count the sums, each ε is rounded *up* to a multiple of a step; a larger ε only tells more,
//! so the result is never below the truth, and the step is so small that it is hardly above:
//! `tests/reference/composition.csv` compares it with Google's `dp-accounting`.
//!
//! The list of parts must be fixed in advance. For parts that are chosen on the way, cap Σμ² and
//! Σε separately, and compose the caps: [`Composition::new`] with one pure part of the cap.

use crate::epsilon::Epsilon;
use crate::error::ParameterError;
use crate::gdp::{Cost, Delta, delta_of, least_epsilon};

/// Steps that the largest possible privacy loss has for each pure part.
const STEPS_A_PART: usize = 500;
/// Most steps in all.
const MOST_STEPS: usize = 1 << 16;
/// A sum of coins that is rarer than this, relative to δ, goes into the failure probability.
const NEGLIGIBLE: f64 = 1e-6;

/// Parts of known cost about the same rows.
#[derive(Debug, Clone, PartialEq)]
pub struct Composition {
    gaussian: Cost,
    /// Distance of two sums of privacy losses.
    step: f64,
    /// P(L = (index − middle)·step).
    losses: Vec<f64>,
}

impl Composition {
    /// All Gaussian parts as one cost, and the pure parts.
    pub fn new(gaussian: Cost, pure: &[Epsilon]) -> Self {
        let total: f64 = pure.iter().map(|e| e.to_f64()).sum();
        let steps = (STEPS_A_PART * pure.len()).min(MOST_STEPS);
        // With equal parts every sum is a multiple of one part.
        let equal = pure.windows(2).all(|pair| pair[0] == pair[1]);
        let step = match pure.first() {
            None => 1.0,
            Some(first) if equal => first.to_f64(),
            Some(_) => total / steps as f64,
        };
        let mut losses = vec![1.0];
        for epsilon in pure {
            let whole = (epsilon.to_f64() / step * (1.0 - 1e-15)).ceil().max(1.0);
            losses = with_coin(&losses, whole as usize, whole * step);
        }
        Self {
            gaussian,
            step,
            losses,
        }
    }

    /// The failure probability at ε; never below the truth but for the last digits.
    pub fn delta(&self, epsilon: f64) -> f64 {
        self.delta_leaving_out(epsilon, 0.0)
    }

    /// The ε that belongs to a δ, rounded up.
    pub fn epsilon(&self, delta: Delta) -> Result<Epsilon, ParameterError> {
        let negligible = NEGLIGIBLE * delta.get() / self.losses.len() as f64;
        least_epsilon(delta, |epsilon| self.delta_leaving_out(epsilon, negligible))
    }

    /// Sums of losses up to this probability count as failures, which is more than they are.
    fn delta_leaving_out(&self, epsilon: f64, negligible: f64) -> f64 {
        let middle = (self.losses.len() / 2) as f64;
        let mu = self.gaussian.mu();
        let terms = self.losses.iter().enumerate();
        let term = |(index, &probability): (usize, &f64)| {
            if probability <= negligible {
                return probability;
            }
            let loss = (index as f64 - middle) * self.step;
            probability * delta_of(mu, epsilon - loss)
        };
        terms.map(term).sum()
    }
}

/// Adds a coin that moves the sum by `whole` steps up with probability e^ε/(1 + e^ε), else down.
fn with_coin(losses: &[f64], whole: usize, epsilon: f64) -> Vec<f64> {
    let down = 1.0 / (1.0 + epsilon.exp());
    let mut wider = vec![0.0; losses.len() + 2 * whole];
    for (index, &probability) in losses.iter().enumerate() {
        wider[index] += probability * down;
        wider[index + 2 * whole] += probability * (1.0 - down);
    }
    wider
}

#[cfg(test)]
mod tests {
    use super::*;

    fn epsilon(text: &str) -> Epsilon {
        text.parse().unwrap()
    }

    fn delta(number: f64) -> Delta {
        Delta::new(number).unwrap()
    }

    #[test]
    fn without_pure_parts_it_is_the_gaussian_alone() {
        let cost = Cost::for_guarantee(epsilon("1"), delta(1e-5));
        let composed = Composition::new(cost, &[]);
        assert_eq!(composed.epsilon(delta(1e-5)), cost.epsilon(delta(1e-5)));
    }

    #[test]
    fn pure_parts_alone_never_cost_more_than_their_sum() {
        let parts: Vec<Epsilon> = ["0.3", "0.7", "1.1"].map(epsilon).to_vec();
        let composed = Composition::new(Cost::ZERO, &parts);
        let found = composed.epsilon(delta(1e-12)).unwrap().to_f64();
        assert!(found <= 2.1 * 1.003 && found > 2.0, "{found}");
        // Two coins of the same ε: the sum is 2ε with probability (e^ε/(1 + e^ε))².
        let twice = Composition::new(Cost::ZERO, &[epsilon("1"); 2]);
        let both = (1f64.exp() / (1.0 + 1f64.exp())).powi(2);
        let expected = both * (1.0 - (1.5f64 - 2.0).exp());
        assert!((twice.delta(1.5) - expected).abs() < 1e-12);
    }

    #[test]
    fn unequal_parts_give_what_adding_up_every_outcome_gives() {
        let parts: Vec<Epsilon> = ["0.2", "0.5", "0.9", "1.4"].map(epsilon).to_vec();
        let cost = Cost::for_guarantee(epsilon("0.8"), delta(1e-5));
        let composed = Composition::new(cost, &parts);
        let exact = |at: f64| -> f64 {
            let outcomes = 0u32..16;
            outcomes
                .map(|outcome| {
                    let (mut loss, mut probability) = (0.0, 1.0);
                    for (bit, part) in parts.iter().enumerate() {
                        let up = outcome >> bit & 1 == 1;
                        let e = part.to_f64() * if up { 1.0 } else { -1.0 };
                        loss += e;
                        probability /= 1.0 + (-e).exp();
                    }
                    probability * delta_of(cost.mu(), at - loss)
                })
                .sum()
        };
        // Rounding four parts up moves the sum by four steps of 3/2000 at most.
        for at in [0.1, 0.5, 1.0, 2.0, 3.0, 4.5] {
            let found = composed.delta(at);
            assert!(found >= exact(at), "{found} at {at}");
            assert!(found <= exact(at - 0.006), "{found} at {at}");
        }
    }
}
