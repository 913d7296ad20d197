//! What can go wrong in a job, and who is at fault.

use crate::codec::Malformed;
use crate::engine::Impossible;
use heda_blocks::channel::ChannelError;
use heda_blocks::lookup::LookupError;
use heda_crypto::random::NoRandomness;
use heda_learn::ring::RingError;

/// Why the data user's side of a job ended.
#[derive(Debug, thiserror::Error)]
pub enum JobError {
    /// One provider failed us: it left, stalled, refused or sent nonsense.
    #[error("provider {name}: {problem}")]
    Provider {
        /// Which.
        name: String,
        /// What happened.
        problem: PeerProblem,
    },
    /// Somebody among the providers failed us, and nobody can tell who.
    #[error("{0}")]
    Providers(String),
    /// The job cannot be run as it is described.
    #[error("{0}")]
    Input(String),
    /// The training ran away.
    #[error(
        "the coefficients diverged ({0}); use a smaller learning rate, more regularisation, or \
         the optimiser lbfgs"
    )]
    Diverged(String),
    /// Stopped in good order; it can be resumed.
    #[error("interrupted after a finished iteration or evaluation; resume to go on")]
    Interrupted,
    /// Whoever watches the job could not keep up its end (a checkpoint was not written).
    #[error("{0}")]
    Observer(String),
    /// The operating system failed us.
    #[error(transparent)]
    Randomness(#[from] NoRandomness),
    /// A defect of ours.
    #[error("internal error: {0}")]
    Bug(String),
}

impl From<Impossible> for JobError {
    fn from(error: Impossible) -> Self {
        Self::Input(error.to_string())
    }
}

/// What a peer did wrong. Every case blames the peer or the network, not the caller.
#[derive(Debug, thiserror::Error)]
pub enum PeerProblem {
    /// The conversation broke.
    #[error(transparent)]
    Channel(#[from] ChannelError),
    /// A message is not what the protocol asks for.
    #[error("its message \"{message}\" is unusable: {reason}")]
    Message {
        /// Which message.
        message: &'static str,
        /// Why.
        reason: String,
    },
}

impl PeerProblem {
    /// A message that cannot be used.
    pub(crate) fn message(message: &'static str, reason: impl std::fmt::Display) -> Self {
        Self::Message {
            message,
            reason: reason.to_string(),
        }
    }
}

/// Why a provider's side of a job ended.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The data user left, stalled or sent nonsense.
    #[error("the data user: {0}")]
    Peer(#[from] PeerProblem),
    /// The house does not allow what was asked.
    #[error("refused: {0}")]
    Refused(String),
    /// Our own data or keys do not serve.
    #[error("{0}")]
    House(String),
    /// The operating system failed us.
    #[error(transparent)]
    Randomness(#[from] NoRandomness),
}

impl From<ChannelError> for ServeError {
    fn from(error: ChannelError) -> Self {
        Self::Peer(error.into())
    }
}

impl From<Impossible> for ServeError {
    fn from(error: Impossible) -> Self {
        Self::Refused(error.to_string())
    }
}

impl From<LookupError> for ServeError {
    fn from(error: LookupError) -> Self {
        match error {
            LookupError::Channel(error) => Self::Peer(error.into()),
            LookupError::Peer { message, error } => PeerProblem::message(message, error).into(),
            LookupError::Randomness(error) => Self::Randomness(error),
            LookupError::Caller(error) => Self::House(format!("internal error: {error}")),
        }
    }
}

/// Turns a malformed message into the peer's problem.
pub(crate) trait Blame<T> {
    /// Names the message that is at fault.
    fn blame(self, message: &'static str) -> Result<T, PeerProblem>;
}

impl<T> Blame<T> for Result<T, RingError> {
    fn blame(self, message: &'static str) -> Result<T, PeerProblem> {
        self.map_err(|e| PeerProblem::message(message, e))
    }
}

impl<T> Blame<T> for Result<T, Malformed> {
    fn blame(self, message: &'static str) -> Result<T, PeerProblem> {
        self.map_err(|e| PeerProblem::message(message, e))
    }
}
