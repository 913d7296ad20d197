//! Optimisers that see gradients and nothing else: no rows, no values of the objective.
//!
//! An [`Optimiser`] is a machine of two moves. [`Optimiser::ask`] says at which coefficients and on
//! which batch it wants the gradient, [`Optimiser::tell`] takes the answer and moves on. Its whole
//! state goes through serde and back without losing a bit, so a run that was stopped between two
//! moves ends with the same model as one that was not (JSON needs serde_json's `float_roundtrip`,
//! which the workspace turns on).
//!
//! The objective is scikit-learn's: ½‖w‖² + C·Σ loss, where w are all coefficients but the bias,
//! which comes first and is never penalised; divided by C and the number of rows, so that it is
//! the mean loss plus ‖w‖²/(2·C·rows). It is minimised in the coordinates of a [`Basis`], as a
//! rule in deviations from the mean, and that is where the penalty applies; outside everything is
//! in the coordinates of the rows. One gradient is one iteration.

mod averaged;
mod descent;
mod error;
mod lbfgs;
mod nesterov;
mod path;
mod settings;
mod state;
mod stop;
#[cfg(test)]
mod tests;
mod vectors;

pub use error::TrainError;
pub use path::{MOST_PENALTIES, PenaltyPath};
pub use settings::{Iterations, Method, Settings, safe_rate, usual_iterations};
pub use stop::Stop;

use crate::gradient::{Batch, Gradient, GradientSource};
use crate::scaling::Scaling;
use serde::{Deserialize, Serialize};
use state::{State, Steps};
use std::ops::ControlFlow;
use vectors::{add_scaled, all_finite, difference, dot, is_vector, largest, length};

/// Deviations of rounding beyond which the sign of a coefficient counts as determined.
const SURE: f64 = 2.0;

/// A column is entangled with others if less of its variance than this is its own,
const OWN: f64 = 0.2;
/// and rounding may have moved its coefficient by this part of its size.
const READABLE: f64 = 0.25;

/// More coefficients than any schema makes; guards against absurd checkpoints.
const MOST_COEFFICIENTS: usize = 1 << 20;

/// What is known of the rows before the first gradient.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Basis {
    /// Means and deviations of the columns, in the coordinates of the rows: the optimiser works
    /// in deviations from the mean.
    pub scaling: Scaling,
    /// The standard deviation of one row's derivative by rounding, roughly and rather too large;
    /// 0 for exact gradients. Where it is not 0, L-BFGS uses all its iterations.
    pub noise: f64,
}

impl Basis {
    /// Exact gradients, and columns as they are.
    pub fn plain(width: usize) -> Self {
        Self {
            scaling: Scaling::none(width),
            noise: 0.0,
        }
    }

    fn check(&self, dimension: usize) -> Result<(), TrainError> {
        if self.scaling.width() + 1 != dimension || !self.scaling.is_sound() {
            return Err(TrainError::State(
                "means or deviations are not those of the columns",
            ));
        }
        match self.noise.is_finite() && self.noise >= 0.0 {
            true => Ok(()),
            false => Err(TrainError::State("the noise is no positive number")),
        }
    }
}

/// What an optimiser wants to know next.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ask<'a> {
    /// The coefficients, bias first.
    pub beta: &'a [f64],
    /// On which part of the rows.
    pub batch: Batch,
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
    Optimise(#[from] TrainError),
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
    basis: Basis,
    iterations: u32,
    stopped: Option<Stop>,
    settled: Option<u32>,
    norm: Option<f64>,
    pass: Pass,
    state: State,
    /// What is asked for and what is best so far, in the coordinates of the rows.
    #[serde(skip)]
    asked: Vec<f64>,
    #[serde(skip)]
    best: Vec<f64>,
}

impl Optimiser {
    /// Begins at zero with `dimension` coefficients, the bias among them, on rows as they are and
    /// with exact gradients.
    pub fn new(settings: Settings, dimension: usize) -> Result<Self, TrainError> {
        Self::on(
            Basis::plain(dimension.saturating_sub(1)),
            settings,
            dimension,
        )
    }

    /// Begins at zero with `dimension` coefficients, the bias among them.
    pub fn on(basis: Basis, settings: Settings, dimension: usize) -> Result<Self, TrainError> {
        settings.validate()?;
        if !(1..=MOST_COEFFICIENTS).contains(&dimension) {
            return Err(TrainError::Size(dimension));
        }
        basis.check(dimension)?;
        let state = State::new(&settings.method, dimension, basis.noise);
        Ok(Self {
            settings,
            basis,
            iterations: 0,
            stopped: None,
            settled: None,
            norm: None,
            pass: Pass::new(dimension),
            state,
            asked: vec![0.0; dimension],
            best: vec![0.0; dimension],
        })
    }

    /// The same training with other settings, as a rule another penalty: it begins where this one
    /// stands, with what was learned of the curvature. Gradients are over so many rows.
    pub fn with_settings(&self, settings: Settings, rows: usize) -> Result<Self, TrainError> {
        let more = settings.l2(rows as f64) - self.settings.l2(rows as f64);
        let fresh = Self::on(self.basis.clone(), settings, self.dimension())?;
        let Some(state) = self.state.with_penalty(more) else {
            return Ok(fresh);
        };
        let mut next = Self { state, ..fresh };
        next.translate();
        Ok(next)
    }

    /// What to compute next, or `None` when the training has ended.
    pub fn ask(&self) -> Option<Ask<'_>> {
        let (beta, batch) = (&self.asked, self.batch());
        self.stopped.is_none().then_some(Ask { beta, batch })
    }

    /// Takes the summed gradient that was asked for.
    pub fn tell(&mut self, gradient: &Gradient) -> Result<(), TrainError> {
        self.check(gradient)?;
        self.pass.add(gradient);
        self.iterations += 1;
        if (self.iterations as usize).is_multiple_of(self.settings.method.batches()) {
            self.end_pass();
        }
        if self.stopped.is_none() {
            self.advance(gradient)?;
        }
        self.translate();
        Ok(())
    }

    /// Goes on without the gradient that was asked for. It is lost and counts as one that is zero,
    /// but not as a sign that the training has converged.
    pub fn skip(&mut self) -> Result<(), TrainError> {
        let nothing = Gradient {
            sum: vec![0.0; self.dimension()],
            rows: 1,
        };
        self.check(&nothing)?;
        self.iterations += 1;
        self.pass = Pass::new(self.dimension());
        self.advance(&nothing)?;
        self.translate();
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
        &self.best
    }

    /// Brings what is asked for and what is best into the coordinates of the rows.
    fn translate(&mut self) {
        let steps = self.state.steps();
        let best = match self.stopped {
            Some(Stop::Converged) => steps.point(),
            _ => steps.solution(),
        };
        self.best = self.basis.scaling.to_values(best);
        self.asked = self.basis.scaling.to_values(steps.point());
    }

    /// How many gradients were used.
    pub fn iterations(&self) -> u32 {
        self.iterations
    }

    /// Why the training ended, once it has.
    pub fn stopped(&self) -> Option<Stop> {
        self.stopped
    }

    /// The iteration in which it converged or reached the floor of noise, if it did.
    pub fn settled(&self) -> Option<u32> {
        self.settled
    }

    /// Coefficients, from 0 and without the bias, that are no larger than what rounding may have
    /// moved them by: their sign is not determined. `None` if that is not known.
    pub fn undetermined(&self) -> Option<Vec<usize>> {
        let rounding = self.state.steps().rounding()?;
        let solution = self.state.steps().solution();
        let open = |&column: &usize| solution[column + 1].abs() <= SURE * rounding[column + 1];
        Some((0..solution.len() - 1).filter(open).collect())
    }

    /// Coefficients, from 0 and without the bias, that nearly follow from those of other columns, so
    /// that rounding may have moved them by a good part of their size. `left` is what the other
    /// columns leave of each one's deviation, as a share of it; `curvature` the largest second
    /// derivative of the loss; gradients are over so many rows.
    pub fn entangled(&self, left: &[f64], curvature: f64, rows: usize) -> Vec<usize> {
        let rows = rows.max(1) as f64;
        let noise = self.basis.noise / rows.sqrt();
        let solution = self.state.steps().solution();
        let moved =
            |own: f64| noise / (curvature * own + self.settings.l2(rows)).max(f64::MIN_POSITIVE);
        let entangled = |&(column, left): &(usize, &f64)| {
            let own = left * left;
            let size = solution.get(column + 1).map_or(0.0, |c| c.abs());
            own < OWN && noise > 0.0 && moved(own) >= READABLE * size
        };
        let columns = left.iter().enumerate().filter(entangled);
        columns.map(|(column, _)| column).collect()
    }

    /// Largest component of the last full mean gradient of the objective.
    pub fn gradient_norm(&self) -> Option<f64> {
        self.norm
    }

    /// What was known of the rows when it began.
    pub fn basis(&self) -> &Basis {
        &self.basis
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

    fn check(&self, gradient: &Gradient) -> Result<(), TrainError> {
        if self.stopped.is_some() {
            return Err(TrainError::Ended);
        }
        let (expected, found) = (self.dimension(), gradient.sum.len());
        if found != expected {
            return Err(TrainError::Dimension { expected, found });
        }
        if gradient.rows == 0 {
            let (index, count) = (self.batch().index(), self.batch().count());
            return Err(TrainError::EmptyBatch { index, count });
        }
        match gradient.sum.iter().position(|g| !g.is_finite()) {
            Some(at) => Err(TrainError::NotFinite(at)),
            None => Ok(()),
        }
    }

    /// With several batches the norm is that of the gradients met during the pass: they were
    /// taken at different coefficients, which no longer differ much when training converges.
    fn end_pass(&mut self) {
        let norm = largest(&self.objective(&self.pass.sum, self.pass.rows, 1));
        self.norm = Some(norm);
        self.pass = Pass::new(self.dimension());
        if norm <= self.settings.tolerance && self.basis.noise == 0.0 {
            self.stopped = Some(Stop::Converged);
            self.settled = Some(self.iterations);
        }
    }

    fn advance(&mut self, gradient: &Gradient) -> Result<(), TrainError> {
        let batches = self.settings.method.batches();
        let objective = self.objective(&gradient.sum, gradient.rows, batches);
        self.stopped = self.state.steps_mut().step(&objective, gradient.rows);
        if !all_finite(self.state.steps().point()) {
            return Err(TrainError::Diverged);
        }
        let at_floor = self.state.steps().is_at_floor();
        if at_floor && self.settled.is_none() {
            self.settled = Some(self.iterations);
        }
        if self.iterations >= self.settings.max_iterations {
            let end = match at_floor {
                true => Stop::NoiseFloor,
                false => Stop::Iterations,
            };
            self.stopped = self.stopped.or(Some(end));
        }
        Ok(())
    }

    /// Gradient of the objective at the point asked for: mean loss and penalty, from a sum over
    /// `rows` rows, one of so many batches.
    fn objective(&self, sum: &[f64], rows: usize, batches: usize) -> Vec<f64> {
        let rows = rows as f64;
        let mean: Vec<f64> = sum.iter().map(|g| g / rows).collect();
        let mut gradient = self.basis.scaling.gradient(&mean);
        let l2 = self.settings.l2(rows * batches as f64);
        let beta = self.state.steps().point();
        add_scaled(&mut gradient[1..], l2, &beta[1..]);
        gradient
    }
}

/// An [`Optimiser`] as read from a file, before anything about it is believed.
#[derive(Deserialize)]
struct Stored {
    settings: Settings,
    basis: Basis,
    iterations: u32,
    stopped: Option<Stop>,
    settled: Option<u32>,
    norm: Option<f64>,
    pass: Pass,
    state: State,
}

impl TryFrom<Stored> for Optimiser {
    type Error = TrainError;

    fn try_from(stored: Stored) -> Result<Self, TrainError> {
        let dimension = stored.pass.sum.len();
        let fresh = Self::on(stored.basis.clone(), stored.settings.clone(), dimension)?;
        let same_method =
            std::mem::discriminant(&fresh.state) == std::mem::discriminant(&stored.state);
        if !same_method {
            return Err(TrainError::State("it is of another method"));
        }
        let state = stored.state;
        state
            .steps()
            .check(fresh.dimension())
            .map_err(TrainError::State)?;
        if !all_finite(&stored.pass.sum) || stored.norm.is_some_and(|n| !n.is_finite()) {
            return Err(TrainError::State("a number is not finite"));
        }
        let mut optimiser = Self {
            iterations: stored.iterations,
            stopped: stored.stopped,
            settled: stored.settled,
            norm: stored.norm,
            pass: stored.pass,
            state,
            ..fresh
        };
        optimiser.translate();
        Ok(optimiser)
    }
}
