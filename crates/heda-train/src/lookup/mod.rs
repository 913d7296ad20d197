//! Engine `lookup`: masked scores, an oblivious table, a masked gradient.
//!
//! What it computes: Σ_i loss'(z_i, y_i)·(1, x_i) over a batch of everybody's rows, exactly as
//! `heda_learn::fixed` does it in clear. Steps G1 to G7 and E1 to E6 of `docs/protocols.md`.
//!
//! Who learns what: the provider nothing but which batch and class is asked for; the data user
//! the sum over all providers. See `docs/threat-model.md`.

mod evaluate;
mod provider;
#[cfg(test)]
mod tests;
mod user;
#[cfg(test)]
mod view_tests;

pub(crate) use evaluate::{DIGIT_BITS, HELD_OUT_LIMIT, WIDEST_STRING, histogram};
pub(crate) use provider::{LookupProvider, Question};
pub(crate) use user::{BatchRows, HeldOut, LookupSource, Remote};

use heda_learn::data::Feature;

/// Tags of this engine's messages, in wire order.
pub(crate) mod tag {
    /// G2, E1, J11: what is asked for.
    pub(crate) const COMMAND: u8 = 0x20;
    /// G2, E1: encrypted masked scores.
    pub(crate) const SCORES: u8 = 0x21;
    /// G5, E4: encrypted cross terms.
    pub(crate) const SUMS: u8 = 0x24;
    /// G6: the gradient under the aggregation mask.
    pub(crate) const GRADIENT: u8 = 0x25;
    /// E5: the histogram under the aggregation mask.
    pub(crate) const COUNTS: u8 = 0x26;
}

/// Purposes of aggregation masks.
pub(crate) const GRADIENT_MASK: &str = "lookup gradient";
pub(crate) const COUNTS_MASK: &str = "lookup counts";

/// Which encoded columns are encrypted and which the data user knows, in the order of the model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Columns {
    /// All columns that take part.
    pub(crate) width: usize,
    /// H: encrypted.
    pub(crate) hidden: Vec<usize>,
    /// L: published.
    pub(crate) open: Vec<usize>,
}

impl Columns {
    /// Columns of the features that take part; `published` says which of them are published.
    pub(crate) fn new(features: &[Feature], published: &[bool]) -> Self {
        let of = |wanted: bool| -> Vec<usize> {
            let chosen = features
                .iter()
                .zip(published)
                .filter(|(_, open)| **open == wanted);
            chosen
                .flat_map(|(feature, _)| feature.columns.clone())
                .collect()
        };
        let width = features.last().map_or(0, |feature| feature.columns.end);
        Self {
            width,
            hidden: of(false),
            open: of(true),
        }
    }
}
