//! Step 3: how many gradients, how much noise, how long a step. All of it follows from the number
//! of rows and columns, ε and δ, so data user and providers come to the same plan on their own,
//! and a provider sees what it will be charged before anything leaves.
//!
//! The rule: with 1/μ = s(ε, δ), the multiple of R that one gradient would need as noise, the
//! signal to be expected in a column is k = n/(s·√columns) times the noise. Descent on the mean
//! loss then runs for a time of 3k (longer, and it follows the noise; shorter, and it leaves
//! something to be learned), in 1.5·√(3k) steps, at least 8 and at most 50, of length 10 at most,
//! where the loss cannot make it swing. Noise adds up alike however finely the time is cut.

use super::{COUNTS_SENSITIVITY_SQUARED, SCORE_LENGTH, SENSITIVITY_SQUARED};
use crate::loss::LossKind;
use crate::optimise::{Method, Settings};
use crate::resident::{Resolution, Weights};
use heda_dp::epsilon::Epsilon;
use heda_dp::gaussian::Variance;
use heda_dp::gdp::{Cost, Delta, DeltaError};
use std::num::NonZeroU32;

/// Time of descent, as a multiple of k.
const TIME: f64 = 3.0;
/// Gradients, as a multiple of the root of the time.
const GRADIENTS: f64 = 1.5;
/// Fewest and most gradients.
const FEWEST: u32 = 8;
const MOST: u32 = 50;
/// The longest step.
const LONGEST_STEP: f64 = 10.0;
/// Which part of a movement is added to the next.
const MOMENTUM: f64 = 0.7;
/// The part of the points, from the end, whose mean is the result.
const AVERAGED: f64 = 0.3;

/// A private training, settled before it begins.
#[derive(Debug, Clone, PartialEq)]
pub struct PrivatePlan {
    epsilon: Epsilon,
    delta: Delta,
    gradients: u32,
    rate: f64,
    variance: Variance,
    counts: Variance,
}

/// Why there is no plan.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum PlanError {
    /// Nothing to train on.
    #[error("a private training needs at least one row and one column")]
    Empty,
    /// δ does not suit the number of rows.
    #[error(transparent)]
    Delta(#[from] DeltaError),
    /// The noise would be larger than anything that can be added up.
    #[error("epsilon {0} needs more noise than sums can hold; give a larger one")]
    TooSmall(Epsilon),
}

impl PrivatePlan {
    /// The plan for `rows` training rows of all providers together, of `width` columns, the bias
    /// among them.
    pub fn new(rows: u64, width: usize, epsilon: Epsilon, delta: Delta) -> Result<Self, PlanError> {
        if rows == 0 || width == 0 {
            return Err(PlanError::Empty);
        }
        delta.check_rows(rows)?;
        let total = Cost::for_guarantee(epsilon, delta);
        let time = TIME * rows as f64 * total.mu() / (width as f64).sqrt();
        let gradients = (GRADIENTS * time.sqrt()).ceil() as u32;
        let gradients = gradients.clamp(FEWEST, MOST);
        let each = NonZeroU32::new(gradients).map_or(total, |count| total.split(count));
        let variance = each.variance(SENSITIVITY_SQUARED);
        let variance = variance.ok_or(PlanError::TooSmall(epsilon))?;
        let training = Cost::of(SENSITIVITY_SQUARED, variance).times(u64::from(gradients));
        let counts = training.variance(COUNTS_SENSITIVITY_SQUARED);
        Ok(Self {
            epsilon,
            delta,
            gradients,
            rate: (time / f64::from(gradients)).min(LONGEST_STEP),
            variance,
            counts: counts.ok_or(PlanError::TooSmall(epsilon))?,
        })
    }

    /// How many gradients are asked for, whatever they turn out to be.
    pub fn gradients(&self) -> u32 {
        self.gradients
    }

    /// The noise that each number of a gradient must carry, in whole numbers.
    pub fn variance(&self) -> Variance {
        self.variance
    }

    /// The noise that each count of held-out rows must carry. Counts are about other rows than the
    /// gradients are, so they may cost as much as all of those, and the job no more for it.
    pub fn counts_variance(&self) -> Variance {
        self.counts
    }

    /// What the counts of held-out rows cost: never more than all gradients.
    pub fn cost_of_counts(&self) -> Cost {
        Cost::of(COUNTS_SENSITIVITY_SQUARED, self.counts)
    }

    /// What one gradient costs whoever has this much noise in it.
    pub fn cost_of_gradient(&self) -> Cost {
        Cost::of(SENSITIVITY_SQUARED, self.variance)
    }

    /// What all gradients cost: never more than ε and δ allow.
    pub fn cost(&self) -> Cost {
        self.cost_of_gradient().times(u64::from(self.gradients))
    }

    /// What was asked for.
    pub fn guarantee(&self) -> (Epsilon, Delta) {
        (self.epsilon, self.delta)
    }

    /// The loss that bounds what a row can do.
    pub fn loss(&self) -> LossKind {
        LossKind::BoundedLogistic
    }

    /// How finely engine `resident` cuts: values to 2⁻¹⁰, two digits a weight, tables of 64, one
    /// bit a derivative, scores within ±16.
    pub fn resolution() -> Resolution {
        Resolution::PRIVATE
    }

    /// The longest coefficients: no score leaves the table.
    pub fn radius() -> f64 {
        let resolution = Self::resolution();
        let limit = resolution.score_limit() as f64 * resolution.score_unit();
        let length = f64::from(SCORE_LENGTH) / f64::from(super::ONE);
        limit / length
    }

    /// How the data user steps.
    pub fn settings(&self) -> Settings {
        let averaged = (AVERAGED * f64::from(self.gradients)).ceil() as u32;
        Settings {
            method: Method::Averaged {
                rate: self.rate,
                momentum: MOMENTUM,
                radius: Self::radius(),
                from: self.gradients - averaged,
            },
            l2: 0.0,
            tolerance: 0.0,
            max_iterations: self.gradients,
        }
    }

    /// Coefficients on the grid of weights, so short that no score of a row of the allowed length
    /// leaves the table; what is not finite counts as nought. Never an error: nobody may see a
    /// reaction to decoded numbers.
    pub fn weights(beta: &[f64]) -> Weights {
        let resolution = Self::resolution();
        let mut shrunk = 1.0;
        loop {
            let whole = |b: &f64| (b * shrunk / resolution.weight_unit()).round();
            let columns = beta
                .iter()
                .map(|b| if b.is_finite() { whole(b) } else { 0.0 });
            let columns: Vec<f64> = columns.collect();
            let length = columns.iter().map(|w| w * w).sum::<f64>().sqrt();
            let excess = length * f64::from(SCORE_LENGTH) / resolution.score_limit() as f64;
            if excess <= 1.0 {
                return Weights {
                    constant: 0,
                    columns: columns.iter().map(|&w| w as i64).collect(),
                    shrunk,
                };
            }
            shrunk *= (1.0 - 1e-3) / excess;
        }
    }
}

/// The noise that each of `providers` adds if a provider counts on the noise of `trusted` others
/// besides its own: any `trusted` + 1 shares together reach `variance`.
pub fn share_of(variance: Variance, providers: NonZeroU32, trusted: u32) -> Variance {
    let counted = trusted.min(providers.get() - 1) + 1;
    NonZeroU32::new(counted).map_or(variance, |counted| variance.share(counted))
}
