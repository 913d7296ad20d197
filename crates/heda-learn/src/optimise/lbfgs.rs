//! Limited-memory BFGS from gradients alone, built for gradients that carry rounding noise.
//!
//! Values of the objective are not to be had under encryption, and a gradient costs too much to
//! be spent on a line search. So every gradient is a step: the quasi-Newton point is tried, and
//! what was learned there becomes a correction pair whether the point is kept or not. For a convex
//! objective the slope along a step never falls; a point where it has turned upwards by nearly as
//! much as it went down is not kept, and the pair that it left makes the next step shorter.
//!
//! **Noise.** Engines round every row's derivative up or down by chance, so each component of the
//! mean gradient has a standard deviation of about ε, which is known roughly beforehand, and from
//! above by the changes seen: a change of the gradient between two points is noise at least
//! (‖y‖² is about ‖H·s‖² + 2·d·ε²). A pair whose curvature is hidden in that noise is left out; to
//! the others its size is added, so that a step is rather too short than too long. Once the
//! gradient is no longer than noise would be, the *floor* is reached. From there on points and
//! gradients of the later half of all visits are averaged and the quasi-Newton step goes from the
//! mean point by the mean gradient, so every further gradient makes the result better.

use super::settings::MOST_MEMORY;
use super::{Steps, add_scaled, difference, dot, is_vector, length};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// How far the slope may have turned upwards, relative to its beginning.
const OVERSHOOT: f64 = 0.9;
/// Least cosine between a step and the change of the gradient for the pair to be used.
const LEAST_CURVATURE: f64 = 1e-12;
/// A pair is used if its curvature exceeds that of the noise by this factor.
const ABOVE_NOISE: f64 = 0.5;
/// The floor is reached when the gradient is this many times as long as noise would be.
const FLOOR: f64 = 1.25;
/// Beyond the floor a visit counts unless its gradient is this many times as long as at the floor.
const FARTHEST: f64 = 4.0;
/// Longest first step for each unit of the gradient: the curvature of a standardised column under
/// the logistic loss is at most a quarter.
const FIRST_STEP: f64 = 4.0;
/// Most visits that are kept for averaging.
const MOST_VISITS: usize = 256;

/// A step, and how it changed the gradient.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct CurvaturePair {
    step: Vec<f64>,
    change: Vec<f64>,
}

/// A point, and the gradient there.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct VisitedPoint {
    point: Vec<f64>,
    gradient: Vec<f64>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Lbfgs {
    memory: usize,
    /// The noise of one row's derivative.
    row_noise: f64,
    /// ε as it follows from that and the number of rows; 0 for exact gradients.
    announced: f64,
    /// ε by what was seen: at most the announced one.
    noise: f64,
    pairs: VecDeque<CurvaturePair>,
    /// The last point that was kept; `None` before the first gradient.
    here: Option<VisitedPoint>,
    /// Visits since the floor was reached, none before.
    floor: VecDeque<VisitedPoint>,
    /// Shortens steps after one that taught nothing and led nowhere.
    caution: f64,
    /// The point whose gradient is asked for.
    point: Vec<f64>,
}

impl Lbfgs {
    pub(super) fn new(dimension: usize, memory: usize, row_noise: f64) -> Self {
        Self {
            memory,
            row_noise,
            announced: 0.0,
            noise: 0.0,
            pairs: VecDeque::new(),
            here: None,
            floor: VecDeque::new(),
            caution: 1.0,
            point: vec![0.0; dimension],
        }
    }

    /// What is known, for an objective whose penalty is larger by ½·`more`·‖w‖²: gradients and their
    /// changes differ by a known number. Visits beyond the floor count as their mean, and the floor is
    /// to be reached again. `None` before the first gradient, or if nothing usable is left.
    pub(super) fn with_penalty(&self, more: f64) -> Option<Self> {
        let mut here = self.start(self.here.as_ref()?);
        add_scaled(&mut here.gradient[1..], more, &here.point[1..]);
        let pairs = self.pairs.iter().map(|pair| pair.with_penalty(more));
        let mut next = Self {
            pairs: pairs.filter(CurvaturePair::curves).collect(),
            floor: VecDeque::new(),
            caution: 1.0,
            here: Some(here.clone()),
            ..self.clone()
        };
        next.aim(&here);
        next.check(next.point.len()).is_ok().then_some(next)
    }

    /// How long the gradient is at the floor if each component is noise of this size.
    fn floor_length(&self, noise: f64) -> f64 {
        FLOOR * noise * (self.point.len() as f64).sqrt()
    }

    /// Takes in what the step to `found` taught. Whether the point is worth keeping.
    fn learn(&mut self, here: &VisitedPoint, found: &VisitedPoint) -> bool {
        let step = difference(&found.point, &here.point);
        let change = difference(&found.gradient, &here.gradient);
        self.noise = self.noise.min(noise_within(&change));
        let before = dot(&here.gradient, &step).abs();
        let kept = match self.floor.is_empty() {
            true => dot(&found.gradient, &step) <= OVERSHOOT * before,
            false => length(&found.gradient) <= FARTHEST * self.floor_length(self.announced),
        };
        let pair = CurvaturePair { step, change };
        let taught = pair.curves();
        self.caution = match kept || taught {
            true => 1.0,
            false => self.caution / 4.0,
        };
        if taught {
            self.pairs.push_back(pair);
            if self.pairs.len() > self.memory {
                self.pairs.pop_front();
            }
        }
        kept
    }

    /// Counts a kept visit towards the mean if the floor is reached.
    fn settle(&mut self, visit: &VisitedPoint) {
        let reached = length(&visit.gradient) <= self.floor_length(self.noise);
        if self.noise > 0.0 && (reached || !self.floor.is_empty()) {
            self.floor.push_back(visit.clone());
            if self.floor.len() > MOST_VISITS {
                self.floor.pop_front();
            }
        }
    }

    /// Where the next step begins, and the gradient there: means beyond the floor.
    fn start(&self, here: &VisitedPoint) -> VisitedPoint {
        let later = self.floor.len().div_ceil(2);
        if later == 0 {
            return here.clone();
        }
        let mut mean = VisitedPoint {
            point: vec![0.0; self.point.len()],
            gradient: vec![0.0; self.point.len()],
        };
        for visit in self.floor.iter().rev().take(later) {
            add_scaled(&mut mean.point, 1.0 / later as f64, &visit.point);
            add_scaled(&mut mean.gradient, 1.0 / later as f64, &visit.gradient);
        }
        mean
    }

    fn aim(&mut self, here: &VisitedPoint) {
        let start = self.start(here);
        let direction = self.quasi_newton(&start.gradient);
        self.point = start.point;
        add_scaled(&mut self.point, self.caution, &direction);
    }

    /// The two-loop recursion: −H·g, H the inverse Hessian that the usable pairs suggest.
    fn quasi_newton(&self, gradient: &[f64]) -> Vec<f64> {
        let pairs = self.pairs.iter().filter_map(|pair| pair.above(self.noise));
        let pairs: Vec<CurvaturePair> = pairs.collect();
        let mut direction: Vec<f64> = gradient.iter().map(|g| -g).collect();
        let mut shares = Vec::with_capacity(pairs.len());
        for CurvaturePair { step, change } in pairs.iter().rev() {
            let share = dot(step, &direction) / dot(step, change);
            add_scaled(&mut direction, -share, change);
            shares.push(share);
        }
        let scale = match pairs.last() {
            Some(CurvaturePair { step, change }) => dot(step, change) / dot(change, change),
            None => FIRST_STEP.min(1.0 / length(gradient).max(f64::MIN_POSITIVE.sqrt())),
        };
        direction.iter_mut().for_each(|d| *d *= scale);
        for (CurvaturePair { step, change }, share) in pairs.iter().zip(shares.into_iter().rev()) {
            let back = dot(change, &direction) / dot(step, change);
            add_scaled(&mut direction, share - back, step);
        }
        direction
    }
}

/// The size of noise in each component of two gradients if their difference were nothing else.
/// The least of about twenty such numbers falls short of ε by a part that follows from the number
/// of components; it is added again.
fn noise_within(change: &[f64]) -> f64 {
    let components = change.len() as f64;
    let least_of_many = (1.0 - 1.2 / components.sqrt()).max(0.3);
    length(change) / (2.0 * components).sqrt() / least_of_many
}

impl CurvaturePair {
    /// Whether the gradient rose along the step.
    fn curves(&self) -> bool {
        let Self { step, change } = self;
        dot(step, change) > LEAST_CURVATURE * length(step) * length(change)
    }

    /// The pair of an objective whose penalty is larger by ½·`more`·‖w‖².
    fn with_penalty(&self, more: f64) -> Self {
        let mut pair = self.clone();
        add_scaled(&mut pair.change[1..], more, &self.step[1..]);
        pair
    }

    /// The pair with the noise's share of the curvature added, unless the noise hides it.
    fn above(&self, noise: f64) -> Option<Self> {
        let (curvature, far) = (dot(&self.step, &self.change), length(&self.step));
        let mut change = self.change.clone();
        add_scaled(&mut change, noise / far, &self.step);
        let step = self.step.clone();
        (curvature > ABOVE_NOISE * noise * far).then_some(Self { step, change })
    }

    fn is_sound(&self, dimension: usize) -> bool {
        is_vector(&self.step, dimension)
            && is_vector(&self.change, dimension)
            && dot(&self.step, &self.change) > 0.0
    }
}

impl VisitedPoint {
    fn is_sound(&self, dimension: usize) -> bool {
        is_vector(&self.point, dimension) && is_vector(&self.gradient, dimension)
    }
}

impl Steps for Lbfgs {
    fn point(&self) -> &[f64] {
        &self.point
    }

    /// Before the floor the last point that was kept; beyond it the step from the means, which
    /// no gradient has confirmed, but which all of them suggest.
    fn solution(&self) -> &[f64] {
        match &self.here {
            Some(here) if self.floor.is_empty() => &here.point,
            _ => &self.point,
        }
    }

    fn step(&mut self, gradient: &[f64], rows: usize) -> Option<super::Stop> {
        if self.here.is_none() {
            self.announced = self.row_noise / (rows as f64).sqrt();
            self.noise = self.announced;
        }
        let found = VisitedPoint {
            point: self.point.clone(),
            gradient: gradient.to_vec(),
        };
        let here = match self.here.take() {
            Some(here) if !self.learn(&here, &found) => here,
            _ => {
                self.settle(&found);
                found
            }
        };
        self.aim(&here);
        self.here = Some(here);
        None
    }

    fn is_at_floor(&self) -> bool {
        !self.floor.is_empty()
    }

    /// H applied to noise in each component: roughly, for H is known only where steps went.
    fn rounding(&self) -> Option<Vec<f64>> {
        if self.floor.is_empty() {
            return None;
        }
        let averaged = self.floor.len().div_ceil(2) as f64;
        let noise = self.noise / averaged.sqrt();
        let of = |coefficient: usize| {
            let mut unit = vec![0.0; self.point.len()];
            unit[coefficient] = noise;
            length(&self.quasi_newton(&unit))
        };
        Some((0..self.point.len()).map(of).collect())
    }

    fn check(&self, dimension: usize) -> Result<(), &'static str> {
        let numbers = [self.row_noise, self.announced, self.noise, self.caution];
        let visits = self.floor.iter().chain(&self.here);
        let sound = is_vector(&self.point, dimension)
            && is_vector(&numbers, numbers.len())
            && numbers.iter().all(|number| *number >= 0.0)
            && self.memory <= MOST_MEMORY
            && self.pairs.len() <= self.memory
            && self.floor.len() <= MOST_VISITS
            && self.pairs.iter().all(|pair| pair.is_sound(dimension))
            && visits.into_iter().all(|visit| visit.is_sound(dimension));
        match sound {
            true => Ok(()),
            false => Err("coefficients, pairs or visits are not as they should be"),
        }
    }
}
