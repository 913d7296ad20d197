//! What happens in a job, for people who wait, and who keeps its checkpoints.

use super::Checkpoint;
use crate::guard::LedgerHead;
use std::time::Duration;

/// Something that happened in a job: the one vocabulary from the protocol to the terminal.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Progress {
    /// A provider is connected; the others may still be on their way.
    Reached(String),
    /// All providers are connected.
    Connected,
    /// A provider does not answer; it is tried again after a pause.
    Retry {
        /// Which.
        provider: String,
        /// Why.
        cause: String,
        /// How long it will be tried before we give up.
        left: Duration,
    },
    /// This provider says that its random numbers come from a seed: it protects nothing.
    Seeded(String),
    /// A phase begins.
    Phase(&'static str),
    /// Each provider of a private job counts on so many others' noise; the job had asked for so many.
    /// The noise is larger where some provider counts on fewer.
    CountsOn {
        /// What was agreed on.
        agreed: u32,
        /// What was asked for.
        asked: u32,
    },
    /// The answer of this number was given in a private job and did not arrive: the job goes on without
    /// it.
    LostAnswer(u32),
    /// How many features are encrypted was chosen, for this reason.
    Split(String),
    /// An iteration is done.
    Iteration {
        /// So many so far, over all models.
        done: u32,
        /// There will be no more than this.
        at_most: u32,
        /// Largest entry of the mean gradient, where it is over all rows.
        norm: Option<f64>,
    },
    /// A provider was lost; the others wait.
    Lost {
        /// Which.
        provider: String,
        /// What happened.
        cause: String,
    },
    /// A provider's ledger is not the one that was seen before, in words.
    Ledger(String),
    /// The job goes on without a provider.
    LeftBehind(String),
}

/// A checkpoint could not be kept, so the job does not go on.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct NotKept(Box<dyn std::error::Error + Send + Sync>);

impl NotKept {
    /// For this reason, which names the remedy.
    pub fn because(cause: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self(cause.into())
    }
}

/// Watches a job. Every method has an empty default but [`Observer::checkpoint`].
pub trait Observer {
    /// Something happened.
    fn progress(&mut self, _progress: Progress) {}

    /// A provider said how far its ledger has come.
    fn ledger(&mut self, _provider: &str, _head: &LedgerHead) {}

    /// The state after the split, each iteration and each evaluation, to be kept before the job goes on. An
    /// error stops the job; `Ok(false)` stops it in good order.
    fn checkpoint(&mut self, checkpoint: &Checkpoint) -> Result<bool, NotKept>;
}

/// Watches nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct Quiet;

impl Observer for Quiet {
    fn checkpoint(&mut self, _checkpoint: &Checkpoint) -> Result<bool, NotKept> {
        Ok(true)
    }
}
