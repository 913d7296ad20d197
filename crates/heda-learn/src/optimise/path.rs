//! A path of penalties: the same training with one after the other, from strong to weak, each
//! beginning where the one before it ended.
//!
//! Strong penalties have small coefficients and are quickly trained; a weaker one moves them a
//! little further. Each has as many gradients as a training with one penalty: with half as many some
//! ended far from where they should. What was learned of the curvature is kept, because a penalty
//! changes it by a known number.

use super::{Settings, TrainError};
use serde::{Deserialize, Serialize};

/// From strong to weak, around scikit-learn's default.
const USUAL: [f64; 5] = [0.01, 0.1, 1.0, 10.0, 100.0];
/// The penalty that is taken unless another one is better.
const DEFAULT: f64 = 1.0;
/// More penalties are not tried: each costs gradients, and the best of many is the best by chance.
pub const MOST_PENALTIES: usize = 16;

/// The penalties of a path, as scikit-learn's C.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Vec<f64>", into = "Vec<f64>")]
pub struct PenaltyPath {
    values: Vec<f64>,
}

impl TryFrom<Vec<f64>> for PenaltyPath {
    type Error = TrainError;

    fn try_from(values: Vec<f64>) -> Result<Self, TrainError> {
        Self::new(values)
    }
}

impl From<PenaltyPath> for Vec<f64> {
    fn from(path: PenaltyPath) -> Self {
        path.values
    }
}

impl PenaltyPath {
    /// C = 0.01, 0.1, 1, 10 and 100.
    pub fn usual() -> Self {
        Self {
            values: USUAL.to_vec(),
        }
    }

    /// These, from the smallest C, which is the strongest penalty, to the largest.
    ///
    /// # Errors
    /// If they are too few or too many, not in order, or no penalties.
    pub fn new(values: Vec<f64>) -> Result<Self, TrainError> {
        let sound = (2..=MOST_PENALTIES).contains(&values.len())
            && values.iter().all(|c| c.is_finite() && *c > 0.0)
            && values.windows(2).all(|pair| pair[0] < pair[1]);
        sound.then_some(Self { values }).ok_or(TrainError::Path)
    }

    /// The penalties as C, from strong to weak.
    pub fn values(&self) -> &[f64] {
        &self.values
    }

    /// How many gradients each penalty gets, if a single one would get so many: the first, and every
    /// other one.
    pub fn gradients(&self, single: u32) -> (u32, u32) {
        (single, single)
    }

    /// Gradients of all penalties of a model, if a single one would get so many.
    pub fn all_gradients(&self, single: u32) -> u32 {
        let (first, next) = self.gradients(single);
        let others = self.values.len().saturating_sub(1) as u32;
        first.saturating_add(next.saturating_mul(others))
    }

    /// How one of them is trained, if a single penalty would be trained by `settings`.
    pub fn settings(&self, settings: &Settings, step: usize) -> Settings {
        let (first, next) = self.gradients(settings.max_iterations);
        Settings {
            c: self.values.get(step).copied(),
            max_iterations: if step == 0 { first } else { next },
            ..settings.clone()
        }
    }

    /// Which one to take, by how much each of them loses on rows that chose: the least, and of
    /// several the nearest to the default. A loss that is no number is the largest.
    pub fn choose(&self, losses: &[f64]) -> usize {
        let far = |step: usize| (self.values[step] / DEFAULT).ln().abs();
        let loss = |step: usize| match losses[step].is_nan() {
            true => f64::INFINITY,
            false => losses[step],
        };
        let steps = 0..self.values.len().min(losses.len());
        let best = steps.min_by(|&a, &b| {
            let by_loss = loss(a).total_cmp(&loss(b));
            by_loss.then(far(a).total_cmp(&far(b)))
        });
        best.unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_loss_is_chosen_and_a_tie_goes_to_the_default() {
        let path = PenaltyPath::usual();
        for (losses, step) in [
            ([5.0, 4.0, 3.0, 2.0, 9.0], 3),
            ([2.0, 2.0, 2.0, 2.0, 2.0], 2),
            ([1.0, 2.0, 2.0, 2.0, 1.0], 0),
            ([9.0, 1.0, 2.0, 2.0, 1.0], 1),
            ([f64::NAN, 9.0, 9.0, 9.0, f64::NAN], 2),
        ] {
            assert_eq!(path.choose(&losses), step, "{losses:?}");
        }
    }

    #[test]
    fn a_path_goes_from_strong_to_weak() {
        assert!(PenaltyPath::new(vec![0.5, 2.0]).is_ok());
        for bad in [
            vec![1.0],
            vec![2.0, 1.0],
            vec![1.0, 1.0],
            vec![0.0, 1.0],
            vec![1.0, f64::INFINITY],
            (1..=17).map(f64::from).collect(),
        ] {
            assert_eq!(PenaltyPath::new(bad), Err(TrainError::Path));
        }
        let settings = Settings {
            max_iterations: 15,
            ..Settings::lbfgs()
        };
        let path = PenaltyPath::usual();
        let each = [0, 1, 4].map(|step| path.settings(&settings, step));
        assert_eq!(each.clone().map(|s| s.max_iterations), [15, 15, 15]);
        assert_eq!(path.all_gradients(15), 75);
        assert_eq!(each.map(|s| s.c), [Some(0.01), Some(0.1), Some(100.0)]);
    }
}
