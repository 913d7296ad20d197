//! Optimisers that see gradients and nothing else: no rows, no values of the objective.
//!
//! An [`Optimiser`] is a machine of two moves. [`Optimiser::ask`] says at which coefficients and on
//! which batch it wants the gradient, [`Optimiser::tell`] takes the answer and moves on. Its whole
//! state goes through serde and back without losing a bit, so a run that was stopped between two
//! moves ends with the same model as one that was not (JSON needs serde_json's `float_roundtrip`,
//! which the workspace turns on).
//!
//! The objective is the mean loss over all rows plus l2/2·‖w‖², where w are all coefficients but
//! the bias, which comes first and is never penalised. One gradient is one iteration.

mod averaged;
mod descent;
mod lbfgs;
mod nesterov;
mod settings;
#[cfg(test)]
mod tests;

pub use settings::{Method, Settings, SettingsError, safe_rate};

use crate::gradient::{Batch, Gradient, GradientSource};
use averaged::Averaged;
use descent::Descent;
use lbfgs::Lbfgs;
use nesterov::Nesterov;
use serde::{Deserialize, Serialize};
use std::ops::ControlFlow;

/// More coefficients than any schema makes; guards against absurd checkpoints.
const MOST_COEFFICIENTS: usize = 1 << 20;

/// Why an optimiser wants no further gradient.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stop {
    /// The mean gradient is within the tolerance.
    Converged,
    /// The number of iterations is used up.
    Iterations,
    /// The learning rate fell below its minimum.
    MinimumRate,
    /// No step along the steepest descent helps: the gradients carry no further information.
    Stalled,
}

/// What an optimiser wants to know next.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ask<'a> {
    /// The coefficients, bias first.
    pub beta: &'a [f64],
    /// On which part of the rows.
    pub batch: Batch,
}

/// Why an answer or a stored state was not taken.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum OptimiseError {
    /// Settings that make no sense.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// No coefficients, or too many.
    #[error("{0} coefficients: between 1 and 1048576 can be trained")]
    Size(usize),
    /// The gradient has another length.
    #[error("a gradient of {found} numbers for {expected} coefficients")]
    Dimension {
        /// Number of coefficients.
        expected: usize,
        /// Length of the gradient.
        found: usize,
    },
    /// The batch was empty.
    #[error("batch {index} of {count} holds no rows: use fewer batches")]
    NoRows {
        /// Which batch.
        index: usize,
        /// Of how many.
        count: usize,
    },
    /// The gradient holds a NaN or an infinity.
    #[error("coefficient {0} of the gradient is not a finite number")]
    NotFinite(usize),
    /// The steps were too long.
    #[error("the coefficients left the range of numbers: lower the learning rate")]
    Diverged,
    /// An answer after the last question.
    #[error("the training has ended and takes no further gradient")]
    Ended,
    /// A stored state does not belong together.
    #[error("the stored state of the optimiser is damaged: {0}")]
    State(&'static str),
}

/// Why a run ended early.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError<E: std::error::Error + 'static> {
    /// The holders of the rows gave no gradient.
    #[error(transparent)]
    Source(E),
    /// Their gradient could not be used.
    #[error(transparent)]
    Optimise(#[from] OptimiseError),
}

/// What the methods have in common. `step` gets the gradient of the objective at `point`.
trait Steps {
    fn point(&self) -> &[f64];
    fn solution(&self) -> &[f64];
    fn step(&mut self, gradient: &[f64]) -> Option<Stop>;
    fn check(&self, dimension: usize) -> Result<(), &'static str>;
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum State {
    Descent(Descent),
    Nesterov(Nesterov),
    Averaged(Averaged),
    Lbfgs(Lbfgs),
}

impl State {
    fn new(method: &Method, dimension: usize) -> Self {
        match *method {
            Method::Descent {
                rate,
                minimum_rate,
                decay,
                ..
            } => Self::Descent(Descent::new(dimension, rate, minimum_rate, decay)),
            Method::Nesterov { rate, .. } => Self::Nesterov(Nesterov::new(dimension, rate)),
            Method::Averaged {
                rate,
                momentum,
                radius,
                from,
            } => Self::Averaged(Averaged::new(dimension, rate, momentum, radius, from)),
            Method::Lbfgs { memory } => Self::Lbfgs(Lbfgs::new(dimension, memory)),
        }
    }

    fn steps(&self) -> &dyn Steps {
        match self {
            Self::Descent(state) => state,
            Self::Nesterov(state) => state,
            Self::Averaged(state) => state,
            Self::Lbfgs(state) => state,
        }
    }

    fn steps_mut(&mut self) -> &mut dyn Steps {
        match self {
            Self::Descent(state) => state,
            Self::Nesterov(state) => state,
            Self::Averaged(state) => state,
            Self::Lbfgs(state) => state,
        }
    }
}

/// The gradients of one pass over all batches, added up.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Pass {
    sum: Vec<f64>,
    rows: usize,
}

impl Pass {
    fn new(dimension: usize) -> Self {
        Self {
            sum: vec![0.0; dimension],
            rows: 0,
        }
    }

    fn add(&mut self, gradient: &Gradient) {
        add_scaled(&mut self.sum, 1.0, &gradient.sum);
        self.rows += gradient.rows;
    }
}

/// A training in progress. See the [module](self) for how it is driven.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Stored")]
pub struct Optimiser {
    settings: Settings,
    iterations: u32,
    stopped: Option<Stop>,
    norm: Option<f64>,
    pass: Pass,
    state: State,
}

impl Optimiser {
    /// Begins at zero with `dimension` coefficients, the bias among them.
    pub fn new(settings: Settings, dimension: usize) -> Result<Self, OptimiseError> {
        settings.validate()?;
        if !(1..=MOST_COEFFICIENTS).contains(&dimension) {
            return Err(OptimiseError::Size(dimension));
        }
        let state = State::new(&settings.method, dimension);
        Ok(Self {
            settings,
            iterations: 0,
            stopped: None,
            norm: None,
            pass: Pass::new(dimension),
            state,
        })
    }

    /// What to compute next, or `None` when the training has ended.
    pub fn ask(&self) -> Option<Ask<'_>> {
        let beta = self.state.steps().point();
        let batch = self.batch();
        self.stopped.is_none().then_some(Ask { beta, batch })
    }

    /// Takes the summed gradient that was asked for.
    pub fn tell(&mut self, gradient: &Gradient) -> Result<(), OptimiseError> {
        self.check(gradient)?;
        self.pass.add(gradient);
        self.iterations += 1;
        if (self.iterations as usize).is_multiple_of(self.settings.method.batches()) {
            self.end_pass();
        }
        if self.stopped.is_none() {
            self.advance(gradient)?;
        }
        Ok(())
    }

    /// Asks `source` until the training ends. `observe` is called after every iteration, with the
    /// state that would go into a checkpoint; its `Break` interrupts the run, which then yields
    /// `None` and can be taken up again.
    pub fn run<S: GradientSource>(
        &mut self,
        source: &mut S,
        mut observe: impl FnMut(&Self) -> ControlFlow<()>,
    ) -> Result<Option<Stop>, RunError<S::Error>> {
        while let Some(Ask { beta, batch }) = self.ask() {
            let gradient = source.gradient(beta, batch).map_err(RunError::Source)?;
            self.tell(&gradient)?;
            if observe(self).is_break() && self.stopped.is_none() {
                return Ok(None);
            }
        }
        Ok(self.stopped)
    }

    /// The best coefficients so far, bias first.
    pub fn beta(&self) -> &[f64] {
        match self.stopped {
            Some(Stop::Converged) => self.state.steps().point(),
            _ => self.state.steps().solution(),
        }
    }

    /// How many gradients were used.
    pub fn iterations(&self) -> u32 {
        self.iterations
    }

    /// Why the training ended, once it has.
    pub fn stopped(&self) -> Option<Stop> {
        self.stopped
    }

    /// Largest component of the last full mean gradient of the objective.
    pub fn gradient_norm(&self) -> Option<f64> {
        self.norm
    }

    /// The settings it was made with.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    fn dimension(&self) -> usize {
        self.pass.sum.len()
    }

    fn batch(&self) -> Batch {
        let count = self.settings.method.batches();
        Batch::new(self.iterations as usize % count, count)
    }

    fn check(&self, gradient: &Gradient) -> Result<(), OptimiseError> {
        if self.stopped.is_some() {
            return Err(OptimiseError::Ended);
        }
        let (expected, found) = (self.dimension(), gradient.sum.len());
        if found != expected {
            return Err(OptimiseError::Dimension { expected, found });
        }
        if gradient.rows == 0 {
            let (index, count) = (self.batch().index(), self.batch().count());
            return Err(OptimiseError::NoRows { index, count });
        }
        match gradient.sum.iter().position(|g| !g.is_finite()) {
            Some(at) => Err(OptimiseError::NotFinite(at)),
            None => Ok(()),
        }
    }

    /// With several batches the norm is that of the gradients met during the pass: they were
    /// taken at different coefficients, which no longer differ much when training converges.
    fn end_pass(&mut self) {
        let norm = largest(&self.objective(&self.pass.sum, self.pass.rows));
        self.norm = Some(norm);
        self.pass = Pass::new(self.dimension());
        if norm <= self.settings.tolerance {
            self.stopped = Some(Stop::Converged);
        }
    }

    fn advance(&mut self, gradient: &Gradient) -> Result<(), OptimiseError> {
        let gradient = self.objective(&gradient.sum, gradient.rows);
        self.stopped = self.state.steps_mut().step(&gradient);
        if !self.state.steps().point().iter().all(|b| b.is_finite()) {
            return Err(OptimiseError::Diverged);
        }
        if self.iterations >= self.settings.max_iterations {
            self.stopped = self.stopped.or(Some(Stop::Iterations));
        }
        Ok(())
    }

    /// Gradient of the objective at the point asked for: mean loss and penalty.
    fn objective(&self, sum: &[f64], rows: usize) -> Vec<f64> {
        let mut gradient: Vec<f64> = sum.iter().map(|g| g / rows as f64).collect();
        let beta = self.state.steps().point();
        add_scaled(&mut gradient[1..], self.settings.l2, &beta[1..]);
        gradient
    }
}

/// An [`Optimiser`] as read from a file, before anything about it is believed.
#[derive(Deserialize)]
struct Stored {
    settings: Settings,
    iterations: u32,
    stopped: Option<Stop>,
    norm: Option<f64>,
    pass: Pass,
    state: State,
}

impl TryFrom<Stored> for Optimiser {
    type Error = OptimiseError;

    fn try_from(stored: Stored) -> Result<Self, OptimiseError> {
        let fresh = Self::new(stored.settings.clone(), stored.pass.sum.len())?;
        let same_method =
            std::mem::discriminant(&fresh.state) == std::mem::discriminant(&stored.state);
        if !same_method {
            return Err(OptimiseError::State("it is of another method"));
        }
        let state = stored.state;
        state
            .steps()
            .check(fresh.dimension())
            .map_err(OptimiseError::State)?;
        if !all_finite(&stored.pass.sum) || stored.norm.is_some_and(|n| !n.is_finite()) {
            return Err(OptimiseError::State("a number is not finite"));
        }
        Ok(Self {
            settings: stored.settings,
            iterations: stored.iterations,
            stopped: stored.stopped,
            norm: stored.norm,
            pass: stored.pass,
            state,
        })
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn length(a: &[f64]) -> f64 {
    dot(a, a).sqrt()
}

fn largest(a: &[f64]) -> f64 {
    a.iter().fold(0.0, |m, v| v.abs().max(m))
}

fn difference(a: &[f64], b: &[f64]) -> Vec<f64> {
    a.iter().zip(b).map(|(a, b)| a - b).collect()
}

fn add_scaled(a: &mut [f64], factor: f64, b: &[f64]) {
    a.iter_mut().zip(b).for_each(|(a, b)| *a += factor * b);
}

fn all_finite(a: &[f64]) -> bool {
    a.iter().all(|v| v.is_finite())
}

/// For stored vectors: `dimension` finite numbers.
fn is_vector(a: &[f64], dimension: usize) -> bool {
    a.len() == dimension && all_finite(a)
}
