//! Messages of known lengths, and what is wrong with others.

use crate::error::{PeerProblem, ServeError};
use crate::parallel::RemoteError;
use heda_crypto::transfer::TransferError;

/// Why a step failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum StepError {
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
pub(super) fn exactly<'a>(
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
pub(super) fn parts<'a, const N: usize>(
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

/// The peer's message is at fault: our own calls have the lengths that they need.
impl From<StepError> for PeerProblem {
    fn from(error: StepError) -> Self {
        match &error {
            StepError::Transfer(transfer) if transfer.is_cheating() => Self::Cheating {
                message: "transfers",
                reason: error.to_string(),
            },
            _ => Self::message("transfers", error),
        }
    }
}

impl From<StepError> for RemoteError {
    fn from(error: StepError) -> Self {
        Self::Peer(error.into())
    }
}

impl From<StepError> for ServeError {
    fn from(error: StepError) -> Self {
        Self::Peer(error.into())
    }
}

impl From<TransferError> for RemoteError {
    fn from(error: TransferError) -> Self {
        StepError::from(error).into()
    }
}

impl From<TransferError> for ServeError {
    fn from(error: TransferError) -> Self {
        StepError::from(error).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A failed check ends a job for good; what a broken line or an old program can bring about does not.
    #[test]
    fn only_what_no_honest_peer_sends_is_cheating() {
        let other_length = StepError::Length {
            what: "the choices",
            got: 4,
            expected: 5,
        };
        for (error, cheating) in [
            (
                StepError::Transfer(TransferError::InconsistentRequest),
                true,
            ),
            (StepError::Transfer(TransferError::InconsistentTrees), true),
            (StepError::Transfer(TransferError::Poisoned), false),
            (StepError::Transfer(TransferError::Exhausted), false),
            (other_length, false),
        ] {
            let words = error.to_string();
            match PeerProblem::from(error) {
                PeerProblem::Cheating { reason, .. } => assert!(cheating && reason == words),
                PeerProblem::Message { reason, .. } => assert!(!cheating && reason == words),
                other => panic!("{other}"),
            }
        }
    }
}
