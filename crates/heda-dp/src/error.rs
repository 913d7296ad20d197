//! Why a number is not ε, δ or a variance.

use crate::epsilon::LARGEST;
use crate::gaussian::Variance;
use crate::gdp::Delta;

/// Why a number is not ε, δ or a variance, or not δ for these rows.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ParameterError {
    /// Zero.
    #[error("epsilon is zero, which would allow infinite noise only; give a positive number")]
    EpsilonZero,
    /// Below zero.
    #[error("epsilon is negative; give a positive number")]
    EpsilonNegative,
    /// Infinite or above the limit.
    #[error("epsilon is above {LARGEST}, which protects nobody; give a smaller number")]
    EpsilonTooLarge,
    /// Positive, but nothing remains of it in billionths.
    #[error("epsilon is below one billionth; give a larger number")]
    EpsilonTooSmall,
    /// More digits than can be kept exactly.
    #[error("epsilon has more than nine decimals and would not be exact; give fewer")]
    EpsilonTooFine,
    /// No number at all.
    #[error("epsilon is not a number; write it like 0.5")]
    EpsilonNotANumber,
    /// Not a number, or outside of 0 to 1.
    #[error("delta is {0}; give a number above 0 and below 1, like 1e-5")]
    DeltaOutside(f64),
    /// No number at all.
    #[error("delta is not a number; write it like 1e-5")]
    DeltaNotANumber,
    /// A mechanism that publishes some rows whole would pass.
    #[error(
        "delta {delta} is no protection for {rows} rows: publishing a row at random would satisfy it; \
         give at most {}", Delta::default_for(*rows)
    )]
    DeltaTooLargeForRows {
        /// What was asked for.
        delta: f64,
        /// How many rows there are.
        rows: u64,
    },
    /// Sums of shares could not be accounted for.
    #[error("a variance of {0} is below {least}; use a finer grid of values", least = Variance::LEAST)]
    VarianceTooSmall(u64),
    /// Beyond what the sampler is built for.
    #[error("a variance of {0} is above 2^60; use a coarser grid of values or a larger epsilon")]
    VarianceTooLarge(f64),
    /// Not a number above nought.
    #[error("a variance of {0} is no positive number")]
    VarianceNotPositive(f64),
}
