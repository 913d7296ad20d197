//! Training on integers as engine `resident` does it under transfers, here in the clear: the
//! oracle that the engine must match to the last bit, given the same coins.
//!
//! One gradient is computed in five steps, whose numbers reappear in the code:
//!
//! 1. **Weights.** The data user rounds β to whole multiples of a public grid and, if scores could
//!    leave ±Z, shrinks it first ([`Weights`]).
//! 2. **Score.** z_int = constant + Σ weight_j·x_int,j modulo 2^w, exact ([`Resolution`]).
//! 3. **Round.** With a mask r uniform modulo 2^w, place v = top_k(z_int + r) is all that remains of
//!    the score.
//! 4. **Code.** The derivative in the middle of the scores that v and r leave possible becomes a whole
//!    number of b bits, rounded stochastically by one coin a row ([`CodeTable`]). Its mean over
//!    masks and coins is the derivative.
//! 5. **Sum.** Σ_i p_ij·(code_i − zero_i), where p is the row's payload ([`Encoding`]) and `zero_i`
//!    the code of derivative nought for the row's label.
//!
//! Everything that both parties must agree on is in [`Resolution`] and is public before the job
//! begins; nothing depends on the data.

mod encoding;
mod error;
mod resolution;
mod rows;
mod source;
mod table;
mod weights;

pub use encoding::{ColumnKind, Encoding, PayloadColumn, Span};
pub use error::GridError;
pub use resolution::Resolution;
pub use rows::{GridRows, plain_payload};
pub use source::{Coins, Position, ResidentSource, RowCoins};
pub use table::{CodeTable, Measure};
pub use weights::Weights;
