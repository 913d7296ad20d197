//! Engine `paper`: Algorithm 5 of the Heda paper, with RSA and Paillier's cryptosystem.
//!
//! What it computes: Σ_i (σ(z_i) − y_i)·(1, x_i) over a batch of everybody's rows. The printed
//! algorithm overflows, has a sign slip and no negative exponents; this is a form that fits, and
//! [`capacity`] proves for every job that it does. Steps S1 to S4 and R1 to R7 of
//! `docs/building-blocks.md`.
//!
//! Who learns what: see [`leaks`]. **It protects little.** It is here so that the paper's tables
//! can be measured again; the default engine is `resident`.
//!
//! Encrypted columns lie on a grid of two decimals, coefficients on a grid of 1/128 while a
//! gradient is computed. Published columns and the bias are factors that the data user knows, so
//! any number of columns may be encrypted, none and all included.

pub mod capacity;
mod clear;
pub(crate) mod dictionary;
mod error;
pub mod local;
mod provider;
mod rows;
#[cfg(test)]
mod tests;
mod user;

pub use capacity::{CapacityError, Limits, Plan};
pub use clear::ClearPaper;
pub use error::{PaperDefect, PaperError};
pub use provider::{PaperProvider, ProviderKeys};
pub use rows::{Column, PaperRows, RowsError, Shape};
pub use user::{PaperLink, PaperRemote, PaperSource};

/// Tags of this engine's own messages, in wire order; the blocks have theirs.
pub(crate) mod tag {
    /// S1: the provider's public keys.
    pub(crate) const PAILLIER_KEY: u8 = 0x50;
    pub(crate) const RSA_KEY: u8 = 0x51;
    /// S2: the data user's public key.
    pub(crate) const USER_KEY: u8 = 0x52;
    /// S3: the dictionary of one encrypted column.
    pub(crate) const DICTIONARY: u8 = 0x53;
    /// S4: encrypted label sums.
    pub(crate) const LABELS: u8 = 0x54;
    /// R1: the batch; empty at the end.
    pub(crate) const QUESTION: u8 = 0x55;
    /// R4: encrypted, blinded 1 + e^{−z}.
    pub(crate) const DENOMINATORS: u8 = 0x56;
    /// R5: encrypted quotients, packed.
    pub(crate) const QUOTIENTS: u8 = 0x57;
}

/// What this engine gives away, in plain words. Whoever starts it must show this.
pub fn leaks() -> &'static [&'static str] {
    &[
        "The data user can read every encrypted cell: textbook RSA is deterministic, a cell has \
         101 possible values, and comparing their ciphertexts recovers all of them.",
        "Equal cells have equal ciphertexts, so value counts are visible without any guessing.",
        "A provider can read the coefficients of encrypted columns in every iteration: the product \
         that it decrypts is divisible by the very factors that it made, and their digits are the \
         coefficients. Blinding by a random factor does not hide divisors.",
        "A provider sees the size of each row's blinded value twice an iteration, which tells \
         about the row's score even though every row has a blinding factor of its own.",
        "The data user sees each provider's own gradient in every iteration, not only the sum.",
        "The data user sees how many rows each provider has and which rows make up a batch.",
    ]
}
