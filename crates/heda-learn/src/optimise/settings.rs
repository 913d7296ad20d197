//! What a user chooses about the optimisation.

use super::TrainError;
use crate::loss::LossKind;
use serde::{Deserialize, Serialize};
use std::str::FromStr;

/// Most correction pairs that L-BFGS may keep.
pub(super) const MOST_MEMORY: usize = 100;
/// Most batches in a pass.
const MOST_BATCHES: usize = 1 << 16;

/// How to step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "name", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Method {
    /// Plain gradient descent, formula (4) and Algorithm 5 of the Heda paper:
    /// β ← β − α_t·(mean gradient), for a number of cycles or until a minimum learning rate.
    ///
    /// The paper does not say how the rate falls. The rule here is α_t = α/(1 + decay·t) in
    /// iteration t = 0, 1, …; training ends before the first iteration whose α_t would be below
    /// the minimum. With decay 0, the formula as printed, the minimum is never reached.
    Descent {
        /// The learning rate α.
        rate: f64,
        /// Training ends when the rate falls below.
        #[serde(default)]
        minimum_rate: f64,
        /// How fast the rate falls.
        #[serde(default)]
        decay: f64,
        /// Into how many batches the rows are cut; one after the other is used.
        #[serde(default = "one")]
        batches: usize,
    },
    /// Nesterov's accelerated gradient with restart by the gradient (O'Donoghue and Candès,
    /// "Adaptive restart for accelerated gradient schemes", 2015).
    Nesterov {
        /// The learning rate; [`safe_rate`] gives one that cannot diverge.
        rate: f64,
        /// Into how many batches the rows are cut; one after the other is used.
        #[serde(default = "one")]
        batches: usize,
    },
    /// Steps with constant momentum inside a ball, and the mean of the last points as the result:
    /// for gradients with noise of known size, where no later gradient is better than an earlier
    /// one and a line search would follow the noise.
    Averaged {
        /// The learning rate.
        rate: f64,
        /// Which part of the last movement is added to the next, below 1.
        momentum: f64,
        /// The length that coefficients must not exceed, bias included.
        radius: f64,
        /// The first iteration, from 0, whose result counts in the mean.
        from: u32,
        /// Whether its results count 1, 2, 3, … times, and not alike.
        #[serde(default)]
        rising: bool,
        /// Into how many batches the rows are cut; one after the other is used.
        #[serde(default = "one")]
        batches: usize,
    },
    /// Limited-memory BFGS (Nocedal and Wright, "Numerical optimization", chapter 7), without a
    /// line search and prepared for noise. Always on all rows.
    Lbfgs {
        /// How many correction pairs are kept.
        #[serde(default = "thirty")]
        memory: usize,
    },
}

fn one() -> usize {
    1
}

fn thirty() -> usize {
    30
}

impl Method {
    /// Whether it works in deviations from the mean, and the penalty applies there. Descent and
    /// Nesterov's method keep to values in [0, 1], for which their rates are chosen.
    pub fn standardises(&self) -> bool {
        matches!(self, Self::Lbfgs { .. })
    }

    /// Into how many batches a pass over the rows is cut.
    pub fn batches(&self) -> usize {
        match *self {
            Self::Descent { batches, .. }
            | Self::Nesterov { batches, .. }
            | Self::Averaged { batches, .. } => batches,
            Self::Lbfgs { .. } => 1,
        }
    }
}

/// Method, penalty and when to stop.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// How to step.
    pub method: Method,
    /// Scikit-learn's C: the penalty is ½‖w‖² beside C times the *summed* loss. `None` is no
    /// penalty.
    pub c: Option<f64>,
    /// Training ends when no component of the objective's gradient is larger.
    pub tolerance: f64,
    /// Training ends after so many gradients.
    pub max_iterations: u32,
}

/// How many gradients a training may ask for: 1 to [`Iterations::MOST`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "u32", into = "u32")]
pub struct Iterations(u32);

impl Iterations {
    /// The largest number.
    pub const MOST: u32 = 1_000_000;
}

impl TryFrom<u32> for Iterations {
    type Error = TrainError;

    fn try_from(iterations: u32) -> Result<Self, TrainError> {
        match (1..=Self::MOST).contains(&iterations) {
            true => Ok(Self(iterations)),
            false => Err(TrainError::Iterations(iterations.to_string())),
        }
    }
}

impl From<Iterations> for u32 {
    fn from(Iterations(iterations): Iterations) -> Self {
        iterations
    }
}

impl FromStr for Iterations {
    type Err = TrainError;

    fn from_str(text: &str) -> Result<Self, TrainError> {
        let number: u32 = text
            .parse()
            .map_err(|_| TrainError::Iterations(text.to_owned()))?;
        Self::try_from(number)
    }
}

impl Settings {
    /// L-BFGS with scikit-learn's penalty, C = 1: the choice for most jobs.
    pub fn lbfgs() -> Self {
        Self {
            method: Method::Lbfgs { memory: thirty() },
            c: Some(1.0),
            tolerance: 1e-6,
            max_iterations: 200,
        }
    }

    /// The same with the usual number of gradients for so many encoded columns: the default of jobs.
    pub fn for_columns(columns: usize) -> Self {
        Self {
            max_iterations: usual_iterations(columns),
            ..Self::lbfgs()
        }
    }

    /// The penalty beside the *mean* loss over so many rows: l2/2·‖w‖².
    pub(super) fn l2(&self, rows: f64) -> f64 {
        self.c.map_or(0.0, |c| 1.0 / (c * rows))
    }

    /// Checks every number.
    pub fn validate(&self) -> Result<(), TrainError> {
        if let Some(c) = self.c
            && !(c.is_finite() && c > 0.0)
        {
            return Err(TrainError::C(c));
        }
        let mut not_negative = vec![("tolerance", self.tolerance)];
        match self.method {
            Method::Descent {
                rate,
                minimum_rate,
                decay,
                ..
            } => {
                check_rate(rate)?;
                not_negative.extend([("minimum_rate", minimum_rate), ("decay", decay)]);
            }
            Method::Nesterov { rate, .. } => check_rate(rate)?,
            Method::Averaged {
                rate,
                momentum,
                radius,
                ..
            } => {
                check_rate(rate)?;
                check_rate(radius)?;
                if !(0.0..1.0).contains(&momentum) {
                    return Err(TrainError::Momentum(momentum));
                }
            }
            Method::Lbfgs { memory } if !(1..=MOST_MEMORY).contains(&memory) => {
                return Err(TrainError::Memory(memory));
            }
            Method::Lbfgs { .. } => {}
        }
        for (name, value) in not_negative {
            if !(value.is_finite() && value >= 0.0) {
                return Err(TrainError::Negative { name, value });
            }
        }
        let batches = self.method.batches();
        if !(1..=MOST_BATCHES).contains(&batches) {
            return Err(TrainError::Batches(batches));
        }
        Iterations::try_from(self.max_iterations)?;
        Ok(())
    }
}

fn check_rate(rate: f64) -> Result<(), TrainError> {
    match rate.is_finite() && rate > 0.0 {
        true => Ok(()),
        false => Err(TrainError::Rate(rate)),
    }
}

/// How many gradients a training on rounded derivatives asks for unless it is told otherwise: a
/// public rule by the number of encoded columns, for providers must not see when it converged.
///
/// Twelve, and as many as the root of the columns. `heda-repro experiment defaults` compares it with
/// scikit-learn's iterations.
pub fn usual_iterations(columns: usize) -> u32 {
    (12.0 + (columns as f64).sqrt()).ceil() as u32
}

/// A learning rate with which full-batch descent and Nesterov cannot diverge, from public facts.
///
/// The gradient of the mean loss is Lipschitz with constant c·max‖(1, x)‖², c the bound on the
/// loss's second derivative. A number or an ordinal code is in [0, 1] and a one-hot block has one
/// 1, so ‖(1, x)‖² is at most one more than the number of features.
pub fn safe_rate(loss: LossKind, features: usize, l2: f64) -> f64 {
    1.0 / (loss.loss().curvature() * (features as f64 + 1.0) + l2)
}
