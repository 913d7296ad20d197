//! Plain gradient descent as the paper prints it. The rule for the rate stands at
//! [`Method::Descent`](super::Method::Descent).

use super::{Steps, Stop, add_scaled, is_vector};
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Descent {
    rate: f64,
    minimum_rate: f64,
    decay: f64,
    step: u32,
    beta: Vec<f64>,
}

impl Descent {
    pub(super) fn new(dimension: usize, rate: f64, minimum_rate: f64, decay: f64) -> Self {
        Self {
            rate,
            minimum_rate,
            decay,
            step: 0,
            beta: vec![0.0; dimension],
        }
    }

    fn current_rate(&self) -> f64 {
        self.rate / (1.0 + self.decay * f64::from(self.step))
    }
}

impl Steps for Descent {
    fn point(&self) -> &[f64] {
        &self.beta
    }

    fn solution(&self) -> &[f64] {
        &self.beta
    }

    fn step(&mut self, gradient: &[f64], _: usize) -> Option<Stop> {
        let rate = self.current_rate();
        add_scaled(&mut self.beta, -rate, gradient);
        self.step += 1;
        (self.current_rate() < self.minimum_rate).then_some(Stop::MinimumRate)
    }

    fn check(&self, dimension: usize) -> Result<(), &'static str> {
        let rates = [self.rate, self.minimum_rate, self.decay];
        match is_vector(&self.beta, dimension) && is_vector(&rates, 3) {
            true => Ok(()),
            false => Err("coefficients or rates are not as they should be"),
        }
    }
}
