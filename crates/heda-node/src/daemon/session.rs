//! What a session does, seen from the daemon: a seam between network and training.

use crate::daemon::metrics::Ending;
use crate::identity::trust::PeerIdentity;
use crate::system::stop::StopSignal;
use crate::wire::WireLimits;
use heda_blocks::channel::{Channel, ChannelError, WireError};
use heda_blocks::stop::{Stop, StopCode};
use heda_job::guard::Refusal;
use std::time::Duration;

/// Serves sessions, each in a thread of its own.
pub trait SessionHandler: Send + Sync {
    /// Serves one session until it ends. Looks at `stop` between iterations.
    fn serve(
        &self,
        peer: &PeerIdentity,
        channel: &mut Channel,
        stop: &StopSignal,
    ) -> Result<(), SessionError>;
}

/// How a session ended before its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionError {
    /// Its kind.
    pub ending: Ending,
    /// What to tell the peer, if it can still hear. Never a private value.
    pub for_peer: Option<Stop>,
    /// What to write into the log. Never a private value.
    pub for_log: String,
}

impl SessionError {
    /// An end with the same words for both.
    pub fn new(ending: Ending, words: impl std::fmt::Display) -> Self {
        Self {
            ending,
            for_peer: Some(Stop::new(code_of(ending), &words)),
            for_log: words.to_string(),
        }
    }

    /// A failure here whose details are none of the peer's business.
    pub fn internal(words: impl std::fmt::Display) -> Self {
        Self {
            ending: Ending::Failed,
            for_peer: Some(Stop::new(
                StopCode::Failed,
                "the provider failed; its operator finds the cause in the log",
            )),
            for_log: words.to_string(),
        }
    }

    /// The daemon stops.
    pub fn stopping() -> Self {
        Self::new(Ending::Stopped, Refusal::Stopping)
    }
}

/// What the peer's program is told of an ending.
fn code_of(ending: Ending) -> StopCode {
    match ending {
        Ending::Refused => StopCode::Refused,
        Ending::Stopped => StopCode::Stopping,
        Ending::PeerFailed | Ending::Breach => StopCode::Protocol,
        Ending::Finished | Ending::Failed => StopCode::Failed,
    }
}

/// Whether the peer broke the protocol, or was lost or left.
pub(crate) fn ending_of(error: &ChannelError) -> Ending {
    match error {
        ChannelError::Unexpected { .. }
        | ChannelError::Empty { .. }
        | ChannelError::Wire(WireError::TooLong { .. } | WireError::Malformed(_)) => Ending::Breach,
        _ => Ending::PeerFailed,
    }
}

impl From<ChannelError> for SessionError {
    fn from(error: ChannelError) -> Self {
        let words = error.to_string();
        // A peer that left or stopped cannot or need not be told.
        let hears = matches!(
            error,
            ChannelError::Unexpected { .. } | ChannelError::Empty { .. }
        );
        Self {
            ending: ending_of(&error),
            for_peer: hears.then(|| Stop::new(StopCode::Protocol, &words)),
            for_log: words,
        }
    }
}

/// Bounds on sessions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionLimits {
    /// Sessions at once.
    pub sessions: usize,
    /// Sessions at once of one peer.
    pub sessions_per_peer: usize,
    /// How long the greeting may take.
    pub greeting_patience: Duration,
    /// How long a peer that broke the protocol waits before its next session, the first time.
    pub breach_pause: Duration,
    /// Bounds of each.
    pub wire: WireLimits,
}

impl Default for SessionLimits {
    fn default() -> Self {
        Self {
            sessions: 8,
            sessions_per_peer: 4,
            greeting_patience: Duration::from_secs(10),
            breach_pause: Duration::from_secs(1),
            wire: WireLimits::default(),
        }
    }
}
