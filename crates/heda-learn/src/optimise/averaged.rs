//! Steps with constant momentum inside a ball; the result is the mean of the last points. The rule
//! stands at [`Method::Averaged`](super::Method::Averaged).

use super::{Steps, Stop, add_scaled, difference, is_vector, length};
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Averaged {
    rate: f64,
    momentum: f64,
    radius: f64,
    from: u32,
    rising: bool,
    step: u32,
    last: Vec<f64>,
    ahead: Vec<f64>,
    /// Of the points that count; the last point until there is one.
    mean: Vec<f64>,
}

impl Averaged {
    pub(super) fn new(
        dimension: usize,
        (rate, momentum, radius): (f64, f64, f64),
        (from, rising): (u32, bool),
    ) -> Self {
        Self {
            rate,
            momentum,
            radius,
            from,
            rising,
            step: 0,
            last: vec![0.0; dimension],
            ahead: vec![0.0; dimension],
            mean: vec![0.0; dimension],
        }
    }
}

/// Shrinks what leaves the ball.
fn project(point: &mut [f64], radius: f64) {
    let excess = length(point) / radius;
    if excess > 1.0 {
        point.iter_mut().for_each(|b| *b /= excess);
    }
}

impl Steps for Averaged {
    fn point(&self) -> &[f64] {
        &self.ahead
    }

    fn solution(&self) -> &[f64] {
        &self.mean
    }

    fn step(&mut self, gradient: &[f64], _: usize) -> Option<Stop> {
        let mut next = self.ahead.clone();
        add_scaled(&mut next, -self.rate, gradient);
        project(&mut next, self.radius);
        self.ahead.clone_from(&next);
        let movement = difference(&next, &self.last);
        add_scaled(&mut self.ahead, self.momentum, &movement);
        project(&mut self.ahead, self.radius);
        let counted = self.step.saturating_sub(self.from) + 1;
        let change = difference(&next, &self.mean);
        // Of n points that count alike the last is 1/n of the mean; if they count 1, 2, …, n times, it is
        // n of n(n + 1)/2.
        let share = match self.rising {
            true => 2.0 / (f64::from(counted) + 1.0),
            false => 1.0 / f64::from(counted),
        };
        add_scaled(&mut self.mean, share, &change);
        self.last = next;
        self.step += 1;
        None
    }

    fn check(&self, dimension: usize) -> Result<(), &'static str> {
        let vectors = [&self.last, &self.ahead, &self.mean];
        let sound = vectors.iter().all(|v| is_vector(v, dimension))
            && is_vector(&[self.rate, self.momentum, self.radius], 3)
            && self.radius > 0.0;
        match sound {
            true => Ok(()),
            false => Err("coefficients, rate or radius are not as they should be"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Steps that can be followed by hand: rate 1, momentum ½, gradients of our choice.
    #[test]
    fn it_averages_from_where_it_is_told_and_stays_in_the_ball() {
        let mut steps = Averaged::new(1, (1.0, 0.5, 10.0), (1, false));
        let mut seen = Vec::new();
        for gradient in [-2.0, -1.0, 1.0] {
            assert_eq!(steps.step(&[gradient], 1), None);
            seen.push((steps.last[0], steps.point()[0], steps.solution()[0]));
        }
        // 2, ahead 3; 4, ahead 5; 4, ahead 4. The mean is of the second and the third.
        assert_eq!(seen, [(2.0, 3.0, 2.0), (4.0, 5.0, 4.0), (4.0, 4.0, 4.0)]);
        steps.step(&[-100.0], 1);
        assert_eq!((steps.last[0], steps.point()[0]), (10.0, 10.0));
        assert_eq!(steps.solution()[0], 6.0);
        assert!(steps.check(1).is_ok() && steps.check(2).is_err());
    }

    #[test]
    fn later_points_count_more_where_that_is_asked_for() {
        let mut steps = Averaged::new(1, (1.0, 0.0, 100.0), (1, true));
        let mut found = Vec::new();
        for gradient in [-1.0, -1.0, -4.0, -3.0] {
            steps.step(&[gradient], 1);
            found.push(steps.solution()[0]);
        }
        // Points 1, 2, 6 and 9; from the second on they count 1, 2 and 3 times.
        let expected = [1.0, 2.0, (2.0 + 12.0) / 3.0, (2.0 + 12.0 + 27.0) / 6.0];
        let apart = found.iter().zip(expected).map(|(f, e)| (f - e).abs());
        assert!(apart.fold(0.0, f64::max) < 1e-12, "{found:?}");
    }
}
