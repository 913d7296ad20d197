//! Training under differential privacy, in clear and on integers: the rule, and the oracle that an
//! engine with noise must match to the last bit, given the same coins and the same noise.
//!
//! 1. **Encoding.** Each provider writes its rows in deviations from the typical mean
//!    ([`PrivateEncoding`]), with the bias as the first column, on a grid of 2⁻¹⁰. A row has two
//!    forms, both cut *after* rounding: a *payload* of length at most R = 1, which is what the sum
//!    consists of, and a form of length at most 1.5 for its *score* ([`PrivateRows`]). With one
//!    form for both, long rows would be scored as if they were shorter; with two, gradients are
//!    those of the model, weighted by the length of the row.
//!    Where the schema states nothing typical, means and deviations can be bought first
//!    ([`moment_sums`]).
//! 2. **Derivatives** are those of [`LossKind::BoundedLogistic`](crate::loss::LossKind), one bit
//!    each. So a row counts with nought, or with its payload times −½ or ½ by its label: whatever
//!    a data user chooses, replacing a row moves the sum by R at most. In whole numbers, where a
//!    code is 1 and not ½, by twice the length of the payload: [`SENSITIVITY_SQUARED`].
//! 3. **Noise.** A number of steps over batches of the rows, the same noise in each, so that all together
//!    keep to the ε and δ of the job ([`PrivatePlan`], [`Passes`]). Everything in the plan follows from
//!    public numbers.
//! 4. **Steps** of constant length and momentum inside a ball, then the mean of the last 30 % of
//!    the points ([`Method::Averaged`](crate::optimise::Method)).
//!
//! The numbers of the rule were found on data sets that are not among the reported ones;
//! `docs/privacy.md` names both.

mod encoding;
pub mod evaluation;
mod moments;
mod passes;
mod plan;
#[cfg(test)]
mod plan_tests;
mod source;
#[cfg(test)]
mod tests;

pub use encoding::{PrivateEncoding, PrivateRows};
pub use moments::{
    bought_centres, bought_persons, count_persons, moment_sums, moments_sensitivity_squared,
    unstated,
};
pub use passes::{Passes, Unbanded};
pub use plan::{Extent, MOMENT_ANSWERS, PlanError, PrivatePlan, share_of};
pub use source::{Noise, PrivateSource};

/// The integer that stands for 1: values are on a grid of 2^−10.
pub const ONE: i32 = 1 << 10;
/// No payload is longer, in whole numbers: R = 1.
pub const PAYLOAD_LENGTH: i32 = ONE;
/// No row is longer where scores are computed, in whole numbers.
pub const SCORE_LENGTH: i32 = ONE + ONE / 2;
/// By how much one row can move a sum of codes and payloads, squared, in whole numbers.
pub const SENSITIVITY_SQUARED: u64 = 4 * (PAYLOAD_LENGTH as u64) * (PAYLOAD_LENGTH as u64);
