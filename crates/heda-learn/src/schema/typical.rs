//! What is publicly known about the usual size of a column, in the column's own units.

use super::Bounds;

crate::described! {
    /// Mean and standard deviation that a schema states for a column. Training works in deviations
    /// from the mean; where a schema states them, nobody's rows are asked for them.
    #[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
    pub struct Typical {
        /// The mean, between the bounds of the column.
        #[key("50")]
        pub mean: f64,
        /// The standard deviation, above 0.
        #[key("20")]
        pub deviation: f64,
    }
}

impl Typical {
    /// Whether any numbers within `bounds` have this mean and this deviation: the deviation is at
    /// most the geometric mean of the distances to both bounds (Bhatia and Davis, 2000).
    pub fn is_possible(self, bounds: Bounds) -> bool {
        let Self { mean, deviation } = self;
        let [below, above] = [mean - bounds.lower(), bounds.upper() - mean];
        // Room for numbers that were rounded when they were written down.
        let largest = below.sqrt() * above.sqrt() * (1.0 + 1e-6);
        bounds.contains(mean) && deviation > 0.0 && deviation <= largest
    }
}
