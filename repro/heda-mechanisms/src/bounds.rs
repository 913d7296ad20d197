//! Public bounds of numbers.

/// Public bounds of a number.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bounds {
    low: f64,
    high: f64,
}

/// Why two numbers are no bounds.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum BoundsError {
    /// Infinite or not a number, or so far apart that their distance is.
    #[error("bounds {low} to {high} are not finite")]
    NotFinite {
        /// Lower bound given.
        low: f64,
        /// Upper bound given.
        high: f64,
    },
    /// The lower one is above the upper one.
    #[error("bounds {low} to {high} are reversed; give the smaller one first")]
    Reversed {
        /// Lower bound given.
        low: f64,
        /// Upper bound given.
        high: f64,
    },
    /// Both the same.
    #[error("both bounds are {0}; a column with one possible value says nothing, drop it")]
    Empty(f64),
}

impl Bounds {
    /// From 0 to 1.
    pub const UNIT: Self = Self {
        low: 0.0,
        high: 1.0,
    };

    /// Checks and keeps.
    pub fn new(low: f64, high: f64) -> Result<Self, BoundsError> {
        if !(high - low).is_finite() {
            return Err(BoundsError::NotFinite { low, high });
        }
        if low > high {
            return Err(BoundsError::Reversed { low, high });
        }
        if low == high {
            return Err(BoundsError::Empty(low));
        }
        Ok(Self { low, high })
    }

    /// The lower bound.
    pub fn low(&self) -> f64 {
        self.low
    }

    /// The upper bound.
    pub fn high(&self) -> f64 {
        self.high
    }

    /// Upper minus lower: how far one row can move a value.
    pub fn range(&self) -> f64 {
        self.high - self.low
    }

    /// Whether a value lies within.
    pub fn contains(&self, value: f64) -> bool {
        (self.low..=self.high).contains(&value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bad_bounds_have_their_own_errors() {
        assert!(matches!(
            Bounds::new(1.0, 0.0),
            Err(BoundsError::Reversed { .. })
        ));
        for (low, high) in [(0.0, f64::NAN), (-f64::MAX, f64::MAX)] {
            assert!(matches!(
                Bounds::new(low, high),
                Err(BoundsError::NotFinite { .. })
            ));
        }
        assert_eq!(Bounds::new(2.0, 2.0), Err(BoundsError::Empty(2.0)));
        let bounds = Bounds::new(17.0, 90.0).unwrap();
        assert_eq!((bounds.range(), bounds.contains(90.5)), (73.0, false));
    }
}
