//! Why a training ends.

use serde::{Deserialize, Serialize};
use std::fmt;

/// Why an optimiser wants no further gradient.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stop {
    /// The mean gradient is within the tolerance.
    Converged,
    /// The number of iterations is used up.
    Iterations,
    /// The learning rate fell below its minimum.
    MinimumRate,
    /// The gradient is within the noise of rounding; the iterations that were left made the noise
    /// smaller by averaging.
    NoiseFloor,
}

impl fmt::Display for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Converged => "converged",
            Self::Iterations => "limit of iterations",
            Self::MinimumRate => "least learning rate",
            Self::NoiseFloor => "noise floor",
        })
    }
}
