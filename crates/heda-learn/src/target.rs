//! A numeric label: its place within public bounds, and how far it lies from the middle.
//!
//! Rows keep a numeric label as a whole number of [`STEPS`] between the bounds of the schema.
//! Training works in deviations from a middle, so that nothing depends on how wide the bounds are
//! and a table of fixed range holds every derivative. Middle and deviation are rounded, because
//! providers hear them: the penalty does not change with the unit of the label, so that costs
//! nothing but a part of the table's range.

use crate::scaling::Centre;
use serde::{Deserialize, Serialize};

/// Steps between the lower and the upper bound of a numeric label.
pub const STEPS: u32 = 1 << 20;

/// Derivatives, and errors of held-out rows, beyond so many deviations count as so many.
pub const REACH: f64 = 16.0;

/// Fraction bits of a label in deviations.
const FRACTION_BITS: u32 = 20;
/// Labels further out count as so many deviations: beyond what scores and derivatives reach
/// together.
const FARTHEST: f64 = 64.0;

/// The place of a number between the bounds as a whole number of steps.
pub fn steps(place: f64) -> u32 {
    (place.clamp(0.0, 1.0) * f64::from(STEPS)).round() as u32
}

/// A label in deviations from the middle, on a grid of 2^−20.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Deviations(i32);

impl Deviations {
    /// The nearest point of the grid.
    pub fn new(deviations: f64) -> Self {
        let one = f64::from(1u32 << FRACTION_BITS);
        Self((deviations.clamp(-FARTHEST, FARTHEST) * one).round() as i32)
    }

    /// As a number.
    pub fn get(self) -> f64 {
        f64::from(self.0) / f64::from(1u32 << FRACTION_BITS)
    }
}

/// What the label of a row is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowLabel {
    /// A class.
    Class {
        /// Whether it is the positive one.
        positive: bool,
        /// Which of the weights of a table counts, from 0.
        weight: u16,
    },
    /// A number.
    Number(Deviations),
}

impl RowLabel {
    /// Whether the row belongs to the positive class; a number does not.
    pub fn is_positive(self) -> bool {
        matches!(self, Self::Class { positive: true, .. })
    }

    /// Which of the weights of a table counts, from 0.
    pub fn weight(self) -> usize {
        match self {
            Self::Class { weight, .. } => usize::from(weight),
            Self::Number(_) => 0,
        }
    }

    /// The number; nought for a class.
    pub fn deviations(self) -> f64 {
        match self {
            Self::Class { .. } => 0.0,
            Self::Number(deviations) => deviations.get(),
        }
    }
}

impl From<bool> for RowLabel {
    fn from(positive: bool) -> Self {
        Self::Class {
            positive,
            weight: 0,
        }
    }
}

impl From<Deviations> for RowLabel {
    fn from(deviations: Deviations) -> Self {
        Self::Number(deviations)
    }
}

/// Middle and unit of a numeric label, as parts of the range between its bounds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TargetScale {
    middle: f64,
    deviation: f64,
}

impl TargetScale {
    /// From mean and deviation: the unit is the next power of two, the middle a multiple of it.
    /// `None` if the label does not vary.
    pub fn around(centre: Centre) -> Option<Self> {
        if !centre.varies() || !centre.mean.is_finite() {
            return None;
        }
        let deviation = centre.deviation.log2().ceil().exp2();
        let middle = (centre.mean / deviation).round() * deviation;
        let scale = Self { middle, deviation };
        scale.is_sound().then_some(scale)
    }

    /// Of labels as they are stored.
    pub fn of(labels: &[u32]) -> Option<Self> {
        Self::around(Self::centre(labels))
    }

    /// Mean and deviation of labels as they are stored.
    pub fn centre(labels: &[u32]) -> Centre {
        let places = labels.iter().map(|label| place(*label));
        let (sum, squares) =
            places.fold((0.0, 0.0), |(sum, squares), y| (sum + y, squares + y * y));
        let rows = labels.len().max(1) as f64;
        Centre::of_moments(sum / rows, squares / rows)
    }

    /// Whether it can be worked with.
    pub fn is_sound(self) -> bool {
        (-1.0..=2.0).contains(&self.middle) && self.deviation > 0.0 && self.deviation <= 1.0
    }

    /// A label as it is stored, in deviations.
    pub fn deviations(self, label: u32) -> Deviations {
        Deviations::new((place(label) - self.middle) / self.deviation)
    }

    /// A model that gives deviations as one that gives places between the bounds.
    pub fn to_places(self, beta: &[f64]) -> Vec<f64> {
        let mut places: Vec<f64> = beta.iter().map(|b| b * self.deviation).collect();
        if let Some(bias) = places.first_mut() {
            *bias += self.middle;
        }
        places
    }

    /// The unit, as a part of the range.
    pub fn unit(self) -> f64 {
        self.deviation
    }

    /// The middle, as a part of the range.
    pub fn middle(self) -> f64 {
        self.middle
    }
}

/// A label as it is stored, as its place between the bounds.
pub fn place(label: u32) -> f64 {
    f64::from(label) / f64::from(STEPS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_survives_the_way_there_and_back() {
        let labels: Vec<u32> = (0..50).map(|n| 400_000 + 977 * n).collect();
        let scale = TargetScale::of(&labels).unwrap();
        for label in labels {
            let deviations = scale.deviations(label).get();
            assert!(deviations.abs() < 3.0, "{deviations}");
            let back = scale.to_places(&[deviations])[0];
            assert!((back - place(label)).abs() < 1e-6 * scale.unit());
        }
        assert_eq!((steps(0.0), steps(1.0), steps(2.0)), (0, STEPS, STEPS));
    }

    #[test]
    fn the_scale_tells_mean_and_deviation_roughly() {
        let around = |mean, deviation| TargetScale::around(Centre { mean, deviation });
        let told = around(0.5, 0.1).unwrap();
        assert_eq!((told.middle(), told.unit()), (0.5, 0.125));
        for (mean, deviation) in [(0.46, 0.1), (0.55, 0.12), (0.5, 0.07)] {
            assert_eq!(around(mean, deviation), Some(told), "{mean} {deviation}");
        }
        assert_ne!(around(0.7, 0.1), Some(told));
        assert_eq!(around(0.5, 1.0), None, "it does not vary");
        assert_eq!(around(f64::NAN, 0.1), None);
    }

    #[test]
    fn labels_far_out_are_cut_where_they_change_nothing() {
        let scale = TargetScale::around(Centre {
            mean: 0.0,
            deviation: 1.0 / 1024.0,
        });
        assert_eq!(scale.unwrap().deviations(STEPS).get(), FARTHEST);
        assert!(RowLabel::from(true).is_positive());
        assert!(!RowLabel::from(Deviations::new(1.0)).is_positive());
    }
}
