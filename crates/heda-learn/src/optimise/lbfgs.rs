//! Limited-memory BFGS from gradients alone.
//!
//! Values of the objective are not to be had under encryption, so the line search looks at the
//! slope s(t) = g(x + t·d)·d. For a convex objective s never falls, and a step is taken when
//! −0.9·|s(0)| ≤ s(t) ≤ 0.25·|s(0)|. A slope at or below zero is a descent for certain. A slight
//! overshoot is one as long as the curvature along the step varies by less than a factor of
//! sixteen; asking for less would cost another gradient in most iterations.
//!
//! Gradients may be slightly wrong (fixed point, stochastic rounding). So a correction pair
//! without clear positive curvature is not kept, a direction that does not descend is replaced by
//! the steepest descent, and a search that finds nothing forgets the pairs and tries once more
//! before it reports that it stalled.

use super::settings::MOST_MEMORY;
use super::{Steps, Stop, add_scaled, difference, dot, is_vector, length};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// How steep the end of a step may still be, relative to its beginning.
const UNDERSHOOT: f64 = 0.9;
/// How far the slope may have turned upwards, relative to its beginning.
const OVERSHOOT: f64 = 0.25;
/// Gradients that one search may use.
const MOST_TRIES: u32 = 12;
/// Least cosine between a step and the change of the gradient for the pair to be kept.
const LEAST_CURVATURE: f64 = 1e-8;
/// Least cosine between a direction and the steepest descent.
const LEAST_DESCENT: f64 = 1e-10;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Pair {
    step: Vec<f64>,
    change: Vec<f64>,
}

/// A length tried in a search, and the slope found there.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
struct Tried {
    at: f64,
    slope: f64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Search {
    direction: Vec<f64>,
    /// |slope| at the beginning.
    steepness: f64,
    /// The longest step that still goes down, and the gradient there.
    low: Tried,
    low_gradient: Vec<f64>,
    /// The shortest step that goes up too much.
    high: Option<Tried>,
    /// The length whose gradient is asked for.
    length: f64,
    tries: u32,
}

impl Search {
    fn is_good(&self, slope: f64) -> bool {
        (-UNDERSHOOT * self.steepness..=OVERSHOOT * self.steepness).contains(&slope)
    }

    /// Takes in a slope that is not good and chooses the next length.
    fn narrow(&mut self, slope: f64, gradient: &[f64]) {
        let tried = Tried {
            at: self.length,
            slope,
        };
        let before = self.low;
        if slope < 0.0 {
            self.low = tried;
            self.low_gradient = gradient.to_vec();
        } else {
            self.high = Some(tried);
        }
        self.length = match self.high {
            Some(high) => between(self.low, high),
            None => beyond(before, tried),
        };
        self.tries += 1;
    }
}

/// Where a line through both slopes crosses zero, not too close to either end.
fn between(low: Tried, high: Tried) -> f64 {
    let share = -low.slope / (high.slope - low.slope);
    low.at + share.clamp(0.1, 0.9) * (high.at - low.at)
}

/// Where a line through both slopes would cross zero, two to ten times as far.
fn beyond(before: Tried, now: Tried) -> f64 {
    let bend = (now.slope - before.slope) / (now.at - before.at);
    let zero = now.at - now.slope / bend;
    match bend > 0.0 {
        true => zero.clamp(2.0 * now.at, 10.0 * now.at),
        false => 10.0 * now.at,
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Lbfgs {
    memory: usize,
    pairs: VecDeque<Pair>,
    solution: Vec<f64>,
    gradient: Vec<f64>,
    /// `None` before the first gradient.
    search: Option<Search>,
    point: Vec<f64>,
}

impl Lbfgs {
    pub(super) fn new(dimension: usize, memory: usize) -> Self {
        Self {
            memory,
            pairs: VecDeque::new(),
            solution: vec![0.0; dimension],
            gradient: vec![0.0; dimension],
            search: None,
            point: vec![0.0; dimension],
        }
    }

    /// Moves to a point that the search ended with and searches on from there.
    fn accept(&mut self, point: Vec<f64>, gradient: Vec<f64>) {
        let step = difference(&point, &self.solution);
        let change = difference(&gradient, &self.gradient);
        if dot(&step, &change) > LEAST_CURVATURE * length(&step) * length(&change) {
            self.pairs.push_back(Pair { step, change });
            if self.pairs.len() > self.memory {
                self.pairs.pop_front();
            }
        }
        self.solution = point;
        self.gradient = gradient;
        self.begin_search();
    }

    fn begin_search(&mut self) {
        let mut direction = self.quasi_newton();
        let mut slope = dot(&self.gradient, &direction);
        if slope > -LEAST_DESCENT * length(&self.gradient) * length(&direction) {
            self.pairs.clear();
            direction = self.gradient.iter().map(|g| -g).collect();
            slope = -dot(&self.gradient, &self.gradient);
        }
        // Without pairs the scale is unknown: a step of length one in data scaled to [0, 1].
        let first = match self.pairs.is_empty() {
            true => 1.0 / length(&self.gradient).max(f64::MIN_POSITIVE.sqrt()),
            false => 1.0,
        };
        self.search = Some(Search {
            direction,
            steepness: -slope,
            low: Tried { at: 0.0, slope },
            low_gradient: self.gradient.clone(),
            high: None,
            length: first,
            tries: 0,
        });
        self.aim();
    }

    fn aim(&mut self) {
        if let Some(search) = &self.search {
            self.point.clone_from(&self.solution);
            add_scaled(&mut self.point, search.length, &search.direction);
        }
    }

    /// The two-loop recursion: −H·g, H the inverse Hessian that the pairs suggest.
    fn quasi_newton(&self) -> Vec<f64> {
        let mut direction: Vec<f64> = self.gradient.iter().map(|g| -g).collect();
        let mut shares = Vec::with_capacity(self.pairs.len());
        for Pair { step, change } in self.pairs.iter().rev() {
            let share = dot(step, &direction) / dot(step, change);
            add_scaled(&mut direction, -share, change);
            shares.push(share);
        }
        if let Some(Pair { step, change }) = self.pairs.back() {
            let scale = dot(step, change) / dot(change, change);
            direction.iter_mut().for_each(|d| *d *= scale);
        }
        for (Pair { step, change }, share) in self.pairs.iter().zip(shares.into_iter().rev()) {
            let back = dot(change, &direction) / dot(step, change);
            add_scaled(&mut direction, share - back, step);
        }
        direction
    }

    /// A search that used up its tries: take the best descent, or begin anew, or stall.
    fn give_up(&mut self, search: Search) -> Option<Stop> {
        if search.low.at > 0.0 {
            let mut point = self.solution.clone();
            add_scaled(&mut point, search.low.at, &search.direction);
            self.pairs.clear();
            self.accept(point, search.low_gradient);
        } else if self.pairs.is_empty() {
            return Some(Stop::Stalled);
        } else {
            self.pairs.clear();
            self.begin_search();
        }
        None
    }
}

impl Steps for Lbfgs {
    fn point(&self) -> &[f64] {
        &self.point
    }

    fn solution(&self) -> &[f64] {
        &self.solution
    }

    fn step(&mut self, gradient: &[f64]) -> Option<Stop> {
        let Some(mut search) = self.search.take() else {
            self.gradient = gradient.to_vec();
            self.begin_search();
            return None;
        };
        let slope = dot(gradient, &search.direction);
        if search.is_good(slope) {
            self.accept(self.point.clone(), gradient.to_vec());
            return None;
        }
        search.narrow(slope, gradient);
        if search.tries == MOST_TRIES {
            return self.give_up(search);
        }
        self.search = Some(search);
        self.aim();
        None
    }

    fn check(&self, dimension: usize) -> Result<(), &'static str> {
        let vectors = [&self.solution, &self.gradient, &self.point];
        let sound = vectors.iter().all(|v| is_vector(v, dimension))
            && self.memory <= MOST_MEMORY
            && self.pairs.len() <= self.memory
            && self.pairs.iter().all(|p| p.is_sound(dimension))
            && self.search.iter().all(|s| s.is_sound(dimension));
        match sound {
            true => Ok(()),
            false => Err("coefficients, pairs or search are not as they should be"),
        }
    }
}

impl Pair {
    fn is_sound(&self, dimension: usize) -> bool {
        is_vector(&self.step, dimension)
            && is_vector(&self.change, dimension)
            && dot(&self.step, &self.change) > 0.0
    }
}

impl Search {
    fn is_sound(&self, dimension: usize) -> bool {
        let low = self.low;
        let high = self.high.unwrap_or(low);
        let numbers = [
            self.steepness,
            self.length,
            low.at,
            low.slope,
            high.at,
            high.slope,
        ];
        is_vector(&self.direction, dimension)
            && is_vector(&self.low_gradient, dimension)
            && is_vector(&numbers, numbers.len())
            && self.tries < MOST_TRIES
    }
}
