//! Engine `resident`: rows stay with their provider. The provider computes on its rows in clear
//! and builds every table and payload; the data user only chooses, by oblivious transfer.
//!
//! What it computes: Σ_i x_i·(code_i − zero_i) over a batch of everybody's rows, exactly as
//! `heda_learn::resident` does it in clear. Steps S and R1 to R7 of `docs/resident.md`.
//!
//! Who learns what: the provider nothing but which batch and class is asked for. The data user,
//! whatever it sends, a sum over all providers in which every row has a weight between its least
//! and its greatest derivative.
//!
//! | step | file |
//! | --- | --- |
//! | public numbers, lengths of messages | `shape.rs` |
//! | R1, R2: shares of the scores | `scores.rs` |
//! | R3, R4: a symbol a row | `symbols.rs` |
//! | R5, R6: the sum | `payload.rs` |
//! | the roles, step by step, without I/O | `provider.rs`, `user.rs` |

mod payload;
mod provider;
mod rows;
mod scores;
mod shape;
mod symbols;
#[cfg(test)]
mod tests;
mod user;

pub(crate) use provider::ProviderSession;
pub(crate) use rows::Rows;
pub(crate) use shape::Shape;
pub(crate) use user::UserSession;

use heda_crypto::transfer::TransferError;

/// Why a step failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum StepError {
    /// A message of another length than the public numbers give it.
    #[error("{what} has {got} bytes where {expected} are due")]
    Length {
        /// Which message.
        what: &'static str,
        /// What arrived.
        got: usize,
        /// What is due.
        expected: usize,
    },
    /// The peer's request failed its check, or a message does not belong here.
    #[error(transparent)]
    Transfer(#[from] TransferError),
}

/// A message as it arrived, if it has the length that it must have.
fn exactly<'a>(
    what: &'static str,
    message: &'a [u8],
    expected: usize,
) -> Result<&'a [u8], StepError> {
    match message.len() {
        got if got == expected => Ok(message),
        got => Err(StepError::Length {
            what,
            got,
            expected,
        }),
    }
}

/// A message that is made of parts with known lengths.
fn parts<'a, const N: usize>(
    what: &'static str,
    message: &'a [u8],
    lengths: [usize; N],
) -> Result<[&'a [u8]; N], StepError> {
    let mut rest = exactly(what, message, lengths.iter().sum())?;
    Ok(lengths.map(|length| {
        let (part, after) = rest.split_at(length);
        rest = after;
        part
    }))
}
