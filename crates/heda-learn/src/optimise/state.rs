//! What the methods have in common, and the state of the one that was chosen.

use super::averaged::Averaged;
use super::descent::Descent;
use super::lbfgs::Lbfgs;
use super::nesterov::Nesterov;
use super::{Method, Stop};
use serde::{Deserialize, Serialize};

/// What the methods have in common. `step` gets the gradient of the objective at `point`,
/// and over how many rows it is the mean.
pub(super) trait Steps {
    fn point(&self) -> &[f64];
    fn solution(&self) -> &[f64];
    fn step(&mut self, gradient: &[f64], rows: usize) -> Option<Stop>;
    /// Whether gradients carry nothing but noise by now.
    fn is_at_floor(&self) -> bool {
        false
    }
    /// How far rounding may have moved each coefficient of the solution, as a standard deviation.
    fn rounding(&self) -> Option<Vec<f64>> {
        None
    }
    fn check(&self, dimension: usize) -> Result<(), &'static str>;
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum State {
    Descent(Descent),
    Nesterov(Nesterov),
    Averaged(Averaged),
    Lbfgs(Lbfgs),
}

impl State {
    /// `noise` is that of one row.
    pub(super) fn new(method: &Method, dimension: usize, noise: f64) -> Self {
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
                rising,
                ..
            } => {
                let (pace, mean) = ((rate, momentum, radius), (from, rising));
                Self::Averaged(Averaged::new(dimension, pace, mean))
            }
            Method::Lbfgs { memory } => Self::Lbfgs(Lbfgs::new(dimension, memory, noise)),
        }
    }

    /// What is known, for an objective whose penalty is larger by ½·`more`·‖w‖²; `None` if nothing
    /// of it can be used.
    pub(super) fn with_penalty(&self, more: f64) -> Option<Self> {
        match self {
            Self::Lbfgs(state) => state.with_penalty(more).map(Self::Lbfgs),
            Self::Descent(_) | Self::Nesterov(_) | Self::Averaged(_) => None,
        }
    }

    pub(super) fn steps(&self) -> &dyn Steps {
        match self {
            Self::Descent(state) => state,
            Self::Nesterov(state) => state,
            Self::Averaged(state) => state,
            Self::Lbfgs(state) => state,
        }
    }

    pub(super) fn steps_mut(&mut self) -> &mut dyn Steps {
        match self {
            Self::Descent(state) => state,
            Self::Nesterov(state) => state,
            Self::Averaged(state) => state,
            Self::Lbfgs(state) => state,
        }
    }
}
