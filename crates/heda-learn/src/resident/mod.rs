//! Training on integers as engine `resident` does it under transfers, here in the clear: the
//! oracle that the engine must match to the last bit, given the same coins.
//!
//! One gradient is computed in five steps, whose numbers reappear in the code:
//!
//! 1. **Weights.** The data user rounds β to whole multiples of a public grid and, if scores could
//!    leave ±Z, shrinks it first ([`Weights`]).
//! 2. **Score.** z_int = constant + Σ weight_j·x_int,j modulo 2^w, exact ([`Resolution`]).
//! 3. **Round.** With a mask r uniform modulo 2^w, t = top_k(z_int + r) − top_k(r) is z_int rounded
//!    stochastically to k bits: its mean is z_int.
//! 4. **Code.** The derivative at the node t becomes a whole number of b bits, rounded
//!    stochastically by one coin a row ([`CodeTable`]).
//! 5. **Sum.** Σ_i x_int,ij·(code_i − zero_i), where `zero_i` is the code of derivative nought for
//!    the row's label.
//!
//! Everything that both parties must agree on is in [`Resolution`] and is public before the job
//! begins; nothing depends on the data.

mod resolution;
mod source;
mod table;

pub use resolution::{Resolution, ResolutionError, WeightError, Weights};
pub use source::{Coins, ResidentError, ResidentSource, RowCoins};
pub use table::CodeTable;
