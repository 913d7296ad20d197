//! Losses of generalised linear models: a function of the score z = β₀ + β·x and of whether the
//! row belongs to the positive class.
//!
//! Only derivatives reach an optimiser. [`Loss::label_term`] tells an encrypted engine how the
//! label enters, because the label stays with the holder of the row: either it is subtracted after
//! a lookup of the score alone, or score and label together choose the entry.

use serde::{Deserialize, Serialize};
use std::fmt;

/// How the label enters the derivative.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum LabelTerm {
    /// derivative(z, y) = derivative(z, false) − `weight`·y, with y one for a positive row.
    Separate {
        /// What a positive label takes away.
        weight: f64,
    },
    /// Score and label do not separate: a table needs both.
    Joint,
}

/// A convex loss of the score of one row.
pub trait Loss: fmt::Debug + Send + Sync {
    /// The loss of a row with score `z`.
    fn value(&self, z: f64, positive: bool) -> f64;

    /// Its derivative by the score.
    fn derivative(&self, z: f64, positive: bool) -> f64;

    /// An upper bound of the second derivative, for step sizes.
    fn curvature(&self) -> f64;

    /// An upper bound of |derivative| over both labels and all |z| ≤ `score`, for fixed point.
    fn steepest(&self, score: f64) -> f64;

    /// Whether [`Loss::steepest`] is the same for every score: if so, a scale for the derivative
    /// can be public without saying anything about the model.
    fn is_bounded(&self) -> bool;

    /// How the label enters the derivative.
    fn label_term(&self) -> LabelTerm;

    /// The positive class is predicted for scores above this.
    fn threshold(&self) -> f64;

    /// The probability of the positive class, for losses that model one.
    fn probability(&self, z: f64) -> Option<f64>;
}

/// The losses by name, as they stand in files and on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LossKind {
    /// Logistic regression.
    #[default]
    Logistic,
    /// Linear support vector machine with squared hinge.
    SquaredHinge,
    /// Logistic regression with derivatives of at most one half: for training under noise.
    BoundedLogistic,
    /// Least squares on the label; ridge regression together with an L2 penalty.
    Ridge,
}

impl LossKind {
    /// The loss of this name.
    pub fn loss(self) -> &'static dyn Loss {
        match self {
            Self::Logistic => &Logistic,
            Self::SquaredHinge => &SquaredHinge,
            Self::BoundedLogistic => &BoundedLogistic,
            Self::Ridge => &Ridge,
        }
    }
}

impl fmt::Display for LossKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Logistic => "logistic",
            Self::SquaredHinge => "squared-hinge",
            Self::BoundedLogistic => "bounded-logistic",
            Self::Ridge => "ridge",
        })
    }
}

/// 1/(1+e^(−z)), without overflow at either end.
pub fn sigmoid(z: f64) -> f64 {
    if z >= 0.0 {
        1.0 / (1.0 + (-z).exp())
    } else {
        let e = z.exp();
        e / (1.0 + e)
    }
}

/// ln(1+e^z) − y·z with y in {0, 1}.
#[derive(Debug, Clone, Copy)]
pub struct Logistic;

impl Loss for Logistic {
    fn value(&self, z: f64, positive: bool) -> f64 {
        let margin = if positive { z } else { -z };
        (-margin).max(0.0) + (-margin.abs()).exp().ln_1p()
    }

    fn derivative(&self, z: f64, positive: bool) -> f64 {
        sigmoid(z) - f64::from(u8::from(positive))
    }

    fn curvature(&self) -> f64 {
        0.25
    }

    fn steepest(&self, _score: f64) -> f64 {
        1.0
    }

    fn is_bounded(&self) -> bool {
        true
    }

    fn label_term(&self) -> LabelTerm {
        LabelTerm::Separate { weight: 1.0 }
    }

    fn threshold(&self) -> f64 {
        0.0
    }

    fn probability(&self, z: f64) -> Option<f64> {
        Some(sigmoid(z))
    }
}

/// max(0, 1 − s·z)² with s = +1 for a positive row and −1 otherwise.
#[derive(Debug, Clone, Copy)]
pub struct SquaredHinge;

impl SquaredHinge {
    fn sign(positive: bool) -> f64 {
        if positive { 1.0 } else { -1.0 }
    }
}

impl Loss for SquaredHinge {
    fn value(&self, z: f64, positive: bool) -> f64 {
        (1.0 - Self::sign(positive) * z).max(0.0).powi(2)
    }

    fn derivative(&self, z: f64, positive: bool) -> f64 {
        let sign = Self::sign(positive);
        -2.0 * sign * (1.0 - sign * z).max(0.0)
    }

    fn curvature(&self) -> f64 {
        2.0
    }

    fn steepest(&self, score: f64) -> f64 {
        2.0 * (1.0 + score)
    }

    fn is_bounded(&self) -> bool {
        false
    }

    fn label_term(&self) -> LabelTerm {
        LabelTerm::Joint
    }

    fn threshold(&self) -> f64 {
        0.0
    }

    fn probability(&self, _z: f64) -> Option<f64> {
        None
    }
}

/// The logistic loss, continued as a straight line where a row is on the wrong side: its derivative
/// lies in [−½, 0] for a positive row and in [0, ½] for another. Replacing a row then changes a sum
/// of derivatives half as much, so half the noise protects it.
///
/// It is convex and its probabilities are right with a link of their own: for a share p > ½ of
/// positives the best score has p·(1 − σ(z)) = (1 − p)/2, so p = 1/(1 + 2σ(−z)); alike below.
#[derive(Debug, Clone, Copy)]
pub struct BoundedLogistic;

impl Loss for BoundedLogistic {
    fn value(&self, z: f64, positive: bool) -> f64 {
        let margin = if positive { z } else { -z };
        if margin >= 0.0 {
            (-margin).exp().ln_1p()
        } else {
            std::f64::consts::LN_2 - 0.5 * margin
        }
    }

    fn derivative(&self, z: f64, positive: bool) -> f64 {
        if positive {
            -sigmoid(-z).min(0.5)
        } else {
            sigmoid(z).min(0.5)
        }
    }

    fn curvature(&self) -> f64 {
        0.25
    }

    fn steepest(&self, _score: f64) -> f64 {
        0.5
    }

    fn is_bounded(&self) -> bool {
        true
    }

    fn label_term(&self) -> LabelTerm {
        LabelTerm::Joint
    }

    fn threshold(&self) -> f64 {
        0.0
    }

    fn probability(&self, z: f64) -> Option<f64> {
        let twice = 2.0 * sigmoid(-z.abs());
        Some(if z >= 0.0 { 1.0 } else { twice } / (1.0 + twice))
    }
}

/// ½(z − y)² with y in {0, 1}, so the score estimates the share of positives.
#[derive(Debug, Clone, Copy)]
pub struct Ridge;

impl Loss for Ridge {
    fn value(&self, z: f64, positive: bool) -> f64 {
        0.5 * self.derivative(z, positive).powi(2)
    }

    fn derivative(&self, z: f64, positive: bool) -> f64 {
        z - f64::from(u8::from(positive))
    }

    fn curvature(&self) -> f64 {
        1.0
    }

    fn steepest(&self, score: f64) -> f64 {
        1.0 + score
    }

    fn is_bounded(&self) -> bool {
        false
    }

    fn label_term(&self) -> LabelTerm {
        LabelTerm::Separate { weight: 1.0 }
    }

    fn threshold(&self) -> f64 {
        0.5
    }

    fn probability(&self, _z: f64) -> Option<f64> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [LossKind; 4] = [
        LossKind::Logistic,
        LossKind::SquaredHinge,
        LossKind::BoundedLogistic,
        LossKind::Ridge,
    ];
    const SCORES: [f64; 9] = [-800.0, -30.0, -2.5, -1.0, 0.0, 0.3, 1.0, 30.0, 800.0];

    fn cases() -> impl Iterator<Item = (&'static dyn Loss, f64, bool)> {
        ALL.iter().flat_map(|kind| {
            SCORES
                .iter()
                .flat_map(move |&z| [(kind.loss(), z, false), (kind.loss(), z, true)])
        })
    }

    #[test]
    fn the_derivative_is_the_slope_of_the_value() {
        let h = 1e-5;
        for (loss, z, y) in cases() {
            let slope = (loss.value(z + h, y) - loss.value(z - h, y)) / (2.0 * h);
            let error = (slope - loss.derivative(z, y)).abs();
            assert!(error <= 1e-4 * (1.0 + z.abs()), "{loss:?} at {z}: {error}");
        }
    }

    #[test]
    fn curvature_and_steepness_are_bounds() {
        let h = 1e-3;
        for (loss, z, y) in cases() {
            let bend = (loss.derivative(z + h, y) - loss.derivative(z, y)) / h;
            assert!(bend <= loss.curvature() + 1e-6, "{loss:?} at {z}");
            assert!(bend >= -1e-6, "{loss:?} is not convex at {z}");
            assert!(loss.derivative(z, y).abs() <= loss.steepest(z.abs()));
        }
    }

    #[test]
    fn separable_losses_separate() {
        for (loss, z, _) in cases() {
            if let LabelTerm::Separate { weight } = loss.label_term() {
                let joint = loss.derivative(z, true);
                assert!((joint - (loss.derivative(z, false) - weight)).abs() < 1e-12);
            }
        }
        let apart = |z: f64| SquaredHinge.derivative(z, false) - SquaredHinge.derivative(z, true);
        assert_ne!(apart(0.0), apart(5.0), "squared hinge does not separate");
    }

    /// The score that is best for a share p of positives has probability p.
    #[test]
    fn probabilities_are_right_at_the_best_score() {
        for loss in [LossKind::Logistic, LossKind::BoundedLogistic].map(LossKind::loss) {
            for z in [-6.0, -1.0, -0.1, 0.0, 0.2, 3.0] {
                let p = loss.probability(z).unwrap();
                let slope = p * loss.derivative(z, true) + (1.0 - p) * loss.derivative(z, false);
                assert!(slope.abs() < 1e-12, "{loss:?} at {z}: {slope}");
            }
        }
    }

    #[test]
    fn names_survive_a_file() {
        for kind in ALL {
            let text = serde_json::to_string(&kind).unwrap();
            assert_eq!(text, format!("\"{kind}\""));
            assert_eq!(serde_json::from_str::<LossKind>(&text).unwrap(), kind);
        }
    }

    #[test]
    fn the_logistic_loss_survives_extreme_scores() {
        assert_eq!(Logistic.value(-1e6, true), 1e6);
        assert_eq!(Logistic.value(1e6, true), 0.0);
        assert_eq!(sigmoid(f64::INFINITY), 1.0);
        assert_eq!(sigmoid(f64::NEG_INFINITY), 0.0);
    }
}
