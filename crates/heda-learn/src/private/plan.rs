//! Step 3: how many gradients, how much noise, how long a step. All of it follows from the number
//! of rows and columns, ε and δ, so data user and providers come to the same plan on their own,
//! and a provider sees what it will be charged before anything leaves.
//!
//! The rule: with 1/μ = s(ε, δ), the multiple of R that one gradient would need as noise, the
//! signal to be expected in a column is k = n/(s·√columns) times the noise. Descent on the mean
//! loss then runs for a time of 10k (longer, and it follows the noise; shorter, and it leaves
//! something to be learned). With momentum m, T steps of length r make a time of r·T/(1 − m). A
//! momentum of 0.7 leaves 3k to the steps: 1.5·√(3k) of them, at least 8 and at most 60, of length
//! 10 at most, where the loss cannot make it swing. Where such steps do not reach, because there
//! are many rows, momentum makes up for it, up to 0.93. Noise adds up alike however finely the time
//! is cut.
//!
//! From k = 300 on, every step is about one batch of the rows, and its noise is tied to that of its neighbours
//! ([`Passes`]): four passes over 16 batches, from k = 2,500 on two over 32, from 10,000 on one over 64.
//! Where persons are protected, chains of noise begin anew with each pass, and batches begin at k = 600. Momentum goes up
//! to 0.95, and later points count more in the mean.
//!
//! Of several classes each has a model, and all of them see every row: a row that is replaced by its
//! opposite with the same label moves every model's gradient by R. So the models share the budget,
//! each at 1/√models of μ, and their held-out counts likewise.

use super::evaluation::{RIGHT_SENSITIVITY_SQUARED, RIGHT_SHARE, TABLE_SENSITIVITY_SQUARED};
use super::moments::moments_sensitivity_squared;
use super::passes::Passes;
use super::{SCORE_LENGTH, SENSITIVITY_SQUARED};
use crate::loss::LossKind;
use crate::optimise::{Method, Settings};
use crate::resident::{Resolution, Weights};
use heda_dp::epsilon::Epsilon;
use heda_dp::error::ParameterError;
use heda_dp::gaussian::Variance;
use heda_dp::gdp::{Cost, Delta};
use std::num::NonZeroU32;

/// Time of descent, as a multiple of k.
const TIME: f64 = 10.0;
/// Gradients, as a multiple of the root of the time that steps make without momentum.
const GRADIENTS: f64 = 1.5;
/// Fewest and most gradients.
const FEWEST: u32 = 8;
const MOST: u32 = 60;
/// The longest step.
const LONGEST_STEP: f64 = 10.0;
/// Which part of a movement is added to the next: usually, and most where steps do not reach.
const MOMENTUM: f64 = 0.7;
const MOST_MOMENTUM: f64 = 0.93;
const MOST_MOMENTUM_OF_BATCHES: f64 = 0.95;
/// From which k on rows are cut into batches: passes, batches, and from which part of the steps on points count in the
/// mean, later ones more.
const BATCHES: [(f64, u32, u32, f64); 3] = [
    (300.0, 4, 16, 0.2),
    (2_500.0, 2, 32, 0.4),
    (10_000.0, 1, 64, 0.4),
];
/// The same where chains begin anew with each pass.
const BATCHES_OF_PERSONS: f64 = 600.0;
/// The part of the budget that pays for means and deviations of columns, if they are bought.
const MOMENTS: f64 = 0.05;
/// Answers in which they come, each about all rows: if one is lost, the other has twice the noise.
pub const MOMENT_ANSWERS: u32 = 2;
/// The part of the points, from the end, whose mean is the result.
const AVERAGED: f64 = 0.3;

/// A private training, settled before it begins.
#[derive(Debug, Clone, PartialEq)]
pub struct PrivatePlan {
    epsilon: Epsilon,
    delta: Delta,
    extent: Extent,
    pace: Pace,
    variance: Variance,
    right: Variance,
    table: Variance,
    moments: Option<Variance>,
}

/// What a plan is made for. All of it is public.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extent {
    /// Training rows of all providers together.
    pub rows: u64,
    /// Columns of a row, the bias among them.
    pub width: usize,
    /// Models: one for two classes, otherwise one a class.
    pub models: NonZeroU32,
    /// Columns whose mean and deviation are bought, the number of persons counted as one.
    pub moments: u32,
    /// Whether the rows of a person together count as one.
    pub persons: bool,
}

/// How the rows are gone over, how long the steps are, and how much of each is added to the next.
#[derive(Debug, Clone, PartialEq)]
struct Pace {
    passes: Passes,
    /// The first step whose point counts in the mean.
    averaged_from: u32,
    rate: f64,
    momentum: f64,
}

impl Pace {
    /// The pace where a column's signal is `k` times the noise.
    fn new(k: f64, persons: bool) -> Self {
        let few = persons && k < BATCHES_OF_PERSONS;
        let cut = BATCHES.iter().rev().find(|(least, ..)| k >= *least && !few);
        let (passes, averaged_from) = match cut {
            Some(&(_, passes, batches, from)) => {
                let passes = Passes::of_batches(passes, batches, persons);
                let from = (from * f64::from(passes.steps())) as u32;
                (passes, from)
            }
            None => {
                let pushed = (1.0 - MOMENTUM) * TIME * k;
                let steps = (GRADIENTS * pushed.sqrt()).ceil() as u32;
                let steps = steps.clamp(FEWEST, MOST);
                let averaged = (AVERAGED * f64::from(steps)).ceil() as u32;
                (Passes::full(steps), steps - averaged)
            }
        };
        Self::of_passes(k, passes, averaged_from)
    }

    /// The pace of so many steps.
    fn of_passes(k: f64, passes: Passes, averaged_from: u32) -> Self {
        let time = TIME * k;
        let steps = f64::from(passes.steps());
        let rate = ((1.0 - MOMENTUM) * time / steps).min(LONGEST_STEP);
        let most = match passes.batches() {
            1 => MOST_MOMENTUM,
            _ => MOST_MOMENTUM_OF_BATCHES,
        };
        Self {
            passes,
            averaged_from,
            rate,
            momentum: (1.0 - rate * steps / time).clamp(MOMENTUM, most),
        }
    }
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
    Delta(#[from] ParameterError),
    /// The noise would be larger than anything that can be added up.
    #[error("epsilon {0} needs more noise than sums can hold; give a larger one")]
    TooSmall(Epsilon),
}

impl PrivatePlan {
    /// The plan for one model from `rows` training rows of all providers together, of `width`
    /// columns, the bias among them.
    pub fn new(rows: u64, width: usize, epsilon: Epsilon, delta: Delta) -> Result<Self, PlanError> {
        let extent = Extent {
            rows,
            width,
            models: NonZeroU32::MIN,
            moments: 0,
            persons: false,
        };
        Self::of(extent, epsilon, delta)
    }

    /// The plan for whatever is to be bought.
    pub fn of(extent: Extent, epsilon: Epsilon, delta: Delta) -> Result<Self, PlanError> {
        if extent.rows == 0 || extent.width == 0 {
            return Err(PlanError::Empty);
        }
        delta.check_rows(extent.rows)?;
        let total = Cost::for_guarantee(epsilon, delta);
        let enough = |variance: Option<Variance>| variance.ok_or(PlanError::TooSmall(epsilon));
        let moments = match extent.moments {
            0 => None,
            columns => {
                let sensitivity = moments_sensitivity_squared(columns);
                let half = total.portion(MOMENTS / f64::from(MOMENT_ANSWERS));
                Some(enough(half.variance(sensitivity))?)
            }
        };
        let spent = cost_of_moment_answer(extent, moments).times(MOMENT_ANSWERS.into());
        let of_model = total.minus(spent).unwrap_or_default().split(extent.models);
        let signal = extent.rows as f64 * of_model.mu();
        let pace = Pace::new(signal / (extent.width as f64).sqrt(), extent.persons);
        let passes = NonZeroU32::new(pace.passes.passes());
        let each = passes.map_or(of_model, |count| of_model.split(count));
        let variance = enough(each.variance(pass_sensitivity_squared(&pace.passes)))?;
        let mut plan = Self {
            epsilon,
            delta,
            extent,
            pace,
            variance,
            right: variance,
            table: variance,
            moments,
        };
        let counts = plan.cost().split(extent.models);
        let right = counts.portion(RIGHT_SHARE);
        plan.right = enough(right.variance(RIGHT_SENSITIVITY_SQUARED))?;
        let table = counts.minus(plan.cost_of_right()).unwrap_or_default();
        plan.table = enough(table.variance(TABLE_SENSITIVITY_SQUARED))?;
        Ok(plan)
    }

    /// How many gradients are asked for, whatever they turn out to be, for each model.
    pub fn gradients(&self) -> u32 {
        self.pace.passes.steps()
    }

    /// How those go over the rows, for each model.
    pub fn passes(&self) -> &Passes {
        &self.pace.passes
    }

    /// The same over all models.
    pub fn all_gradients(&self) -> u32 {
        self.gradients().saturating_mul(self.extent.models.get())
    }

    /// The noise that each sum for the moments must carry in each of its answers, if they are bought.
    pub fn moments_variance(&self) -> Option<Variance> {
        self.moments
    }

    /// What one of the answers for the moments costs; nought if they are not bought.
    pub fn cost_of_moment_answer(&self) -> Cost {
        cost_of_moment_answer(self.extent, self.moments)
    }

    /// What the moments cost; nought if they are not bought.
    pub fn cost_of_moments(&self) -> Cost {
        self.cost_of_moment_answer().times(MOMENT_ANSWERS.into())
    }

    /// The noise that each number of a gradient must carry, in whole numbers.
    pub fn variance(&self) -> Variance {
        self.variance
    }

    /// The noise that the number of right predictions must carry, in units of held-out rows. Counts
    /// are about other rows than the gradients are, so those of all models may cost as much as the
    /// training, and the job no more for it.
    pub fn right_variance(&self) -> Variance {
        self.right
    }

    /// The noise that each count of the table must carry, in units of held-out rows.
    pub fn table_variance(&self) -> Variance {
        self.table
    }

    /// What the number of right predictions of one model costs.
    pub fn cost_of_right(&self) -> Cost {
        Cost::of(RIGHT_SENSITIVITY_SQUARED, self.right)
    }

    /// What the table of one model costs.
    pub fn cost_of_table(&self) -> Cost {
        Cost::of(TABLE_SENSITIVITY_SQUARED, self.table)
    }

    /// What both counts of held-out rows cost for one model: for all never more than the training.
    pub fn cost_of_counts(&self) -> Cost {
        self.cost_of_right().plus(self.cost_of_table())
    }

    /// What one pass of one model over all rows costs. It is paid with the first answer of the pass.
    pub fn cost_of_pass(&self) -> Cost {
        Cost::of(pass_sensitivity_squared(&self.pace.passes), self.variance)
    }

    /// Passes over all rows, for all models.
    pub fn all_passes(&self) -> u32 {
        let passes = self.pace.passes.passes();
        passes.saturating_mul(self.extent.models.get())
    }

    /// What all passes and the moments cost: never more than ε and δ allow.
    pub fn cost(&self) -> Cost {
        let training = self.cost_of_pass().times(self.all_passes().into());
        training.plus(self.cost_of_moments())
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
    /// bit a derivative, scores within ±32.
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

    /// The pace if there are so many rows or persons after all; passes and batches stay.
    fn pace_for(&self, units: f64) -> Pace {
        let of_model = self.budget_of_model();
        let k = units * of_model.mu() / (self.extent.width as f64).sqrt();
        Pace::of_passes(k, self.pace.passes.clone(), self.pace.averaged_from)
    }

    /// What one model may cost.
    fn budget_of_model(&self) -> Cost {
        let total = Cost::for_guarantee(self.epsilon, self.delta);
        let left = total.minus(self.cost_of_moments()).unwrap_or_default();
        left.split(self.extent.models)
    }

    /// How the data user steps when it has bought the number of persons, and not counted rows.
    pub fn settings_for(&self, units: f64) -> Settings {
        let plan = Self {
            pace: self.pace_for(units.max(1.0)),
            ..self.clone()
        };
        plan.settings()
    }

    /// How the data user steps.
    pub fn settings(&self) -> Settings {
        let batches = self.pace.passes.batches();
        Settings {
            method: Method::Averaged {
                rate: self.pace.rate,
                momentum: self.pace.momentum,
                radius: Self::radius(),
                from: self.pace.averaged_from,
                rising: batches > 1,
                batches: batches as usize,
            },
            c: None,
            tolerance: 0.0,
            max_iterations: self.gradients(),
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

/// By how much a row can move all that is opened in one pass, squared, in whole numbers.
fn pass_sensitivity_squared(passes: &Passes) -> u64 {
    SENSITIVITY_SQUARED.saturating_mul(passes.norm_squared())
}

fn cost_of_moment_answer(extent: Extent, variance: Option<Variance>) -> Cost {
    let sensitivity = moments_sensitivity_squared(extent.moments);
    variance.map_or(Cost::ZERO, |variance| Cost::of(sensitivity, variance))
}

/// The noise that each of `providers` adds if a provider counts on the noise of `trusted` others
/// besides its own: any `trusted` + 1 shares together reach `variance`.
pub fn share_of(variance: Variance, providers: NonZeroU32, trusted: u32) -> Variance {
    let counted = trusted.min(providers.get() - 1) + 1;
    NonZeroU32::new(counted).map_or(variance, |counted| variance.share(counted))
}
