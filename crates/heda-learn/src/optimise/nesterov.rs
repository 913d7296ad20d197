//! Nesterov's accelerated gradient: a descent step from a point ahead of the last solution.
//! When the gradient there disagrees with the last movement, the momentum begins anew.

use super::{Steps, Stop, add_scaled, difference, dot, is_vector};
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Nesterov {
    rate: f64,
    /// Nesterov's t_k; 1 means no momentum.
    momentum: f64,
    solution: Vec<f64>,
    ahead: Vec<f64>,
}

impl Nesterov {
    pub(super) fn new(dimension: usize, rate: f64) -> Self {
        Self {
            rate,
            momentum: 1.0,
            solution: vec![0.0; dimension],
            ahead: vec![0.0; dimension],
        }
    }
}

impl Steps for Nesterov {
    fn point(&self) -> &[f64] {
        &self.ahead
    }

    fn solution(&self) -> &[f64] {
        &self.solution
    }

    fn step(&mut self, gradient: &[f64], _: usize) -> Option<Stop> {
        let mut next = self.ahead.clone();
        add_scaled(&mut next, -self.rate, gradient);
        let movement = difference(&next, &self.solution);
        if dot(gradient, &movement) > 0.0 {
            self.momentum = 1.0;
        }
        let grown = (1.0 + (1.0 + 4.0 * self.momentum * self.momentum).sqrt()) / 2.0;
        self.ahead.clone_from(&next);
        add_scaled(&mut self.ahead, (self.momentum - 1.0) / grown, &movement);
        self.momentum = grown;
        self.solution = next;
        None
    }

    fn check(&self, dimension: usize) -> Result<(), &'static str> {
        let sound = is_vector(&self.solution, dimension)
            && is_vector(&self.ahead, dimension)
            && is_vector(&[self.rate, self.momentum], 2)
            && self.momentum >= 1.0;
        match sound {
            true => Ok(()),
            false => Err("coefficients or momentum are not as they should be"),
        }
    }
}
