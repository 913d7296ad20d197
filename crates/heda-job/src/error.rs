//! What can go wrong in a job, and who is at fault.

use crate::codec::Malformed;
use crate::description::JobFault;
use crate::engine::{Engine, Impossible};
use crate::guard::Refusal;
use crate::job::{NoIota, NotKept};
use crate::moments::MomentsError;
use crate::negotiation::NegotiationError;
use crate::parallel::RemoteError;
use crate::release::ReleaseError;
use heda_blocks::channel::ChannelError;
use heda_blocks::stop::{Stop, StopCode};
use heda_crypto::masking::MaskingError;
use heda_crypto::random::NoRandomness;
use heda_learn::optimise::TrainError;
use heda_learn::private::PlanError;
use heda_learn::resident::GridError;
use heda_learn::score::RankingError;

/// Why the data user's side of a job ended.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
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
    #[error(
        "the counts of held-out rows do not add up to the {rows} rows that were announced: a \
         provider does not keep to the protocol; ask their operators for versions and logs"
    )]
    Counts {
        /// That were announced.
        rows: usize,
    },
    /// The job cannot be run as it is described.
    #[error(transparent)]
    Input(#[from] BadJob),
    /// The training ran away.
    #[error(
        "the coefficients diverged ({0}); use a smaller learning rate, a larger penalty (a smaller c), or \
         the optimiser lbfgs"
    )]
    Diverged(String),
    /// Stopped in good order; it can be resumed.
    #[error("stopped as asked; what is finished is kept, resume to go on")]
    Interrupted,
    /// Whoever watches the job could not keep up its end (a checkpoint was not written).
    #[error(transparent)]
    Observer(#[from] NotKept),
    /// The operating system failed us.
    #[error(transparent)]
    Randomness(#[from] NoRandomness),
    /// A defect of ours.
    #[error("internal error: {0}")]
    Bug(#[from] Defect),
}

/// What is wrong with the program itself: nothing that a person or a peer does brings it about.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Defect {
    /// A thread of ours panicked.
    #[error("a thread panicked")]
    Panicked,
    /// A provider of this process failed although the job came to its end.
    #[error("{name}: {error}")]
    LocalProvider {
        /// Which.
        name: String,
        /// How.
        error: Box<ServeError>,
    },
    /// A message of ours cannot be written.
    #[error("the message \"{message}\" cannot be written: {reason}")]
    Message {
        /// Which message.
        message: &'static str,
        /// What the writer says.
        reason: serde_json::Error,
    },
    /// A ranking that was checked is none.
    #[error(transparent)]
    Ranking(RankingError),
    /// Coefficients that do not fit the columns that they were trained on.
    #[error(transparent)]
    Coefficients(GridError),
    /// A step that is taken once was asked for again.
    #[error("{0} a second time")]
    Repeated(&'static str),
    /// A job with a goal for the number of encrypted features, and nobody who chooses it.
    #[error("nobody chooses how many features are encrypted")]
    NobodyChooses,
    /// An engine failed without anyone's doing.
    #[error("engine {engine}: {cause}")]
    Engine {
        /// Which.
        engine: Engine,
        /// What it says.
        cause: Box<dyn std::error::Error + Send + Sync>,
    },
}

impl From<Impossible> for JobError {
    fn from(error: Impossible) -> Self {
        Self::Input(BadJob::Impossible(error))
    }
}

/// Why a job cannot be run as it is described. The data user can change that.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BadJob {
    /// A description that contradicts itself, or does not fit the schema.
    #[error(transparent)]
    Fault(#[from] JobFault),
    /// Providers that cannot make up a job, the same one twice for instance.
    #[error(transparent)]
    Roster(#[from] MaskingError),
    /// Means and deviations were not to be had.
    #[error(transparent)]
    Moments(#[from] MomentsError),
    /// Moments that do not belong to the columns of the schema.
    #[error(transparent)]
    PrivateRows(#[from] heda_learn::data::RowsError),
    /// The engine cannot do it.
    #[error(transparent)]
    Impossible(Impossible),
    /// The engine cannot do it with the rows of one provider.
    #[error("provider {name}: {reason}")]
    Part {
        /// Which provider.
        name: String,
        /// Why.
        reason: Impossible,
    },
    /// More held-out rows than can be counted.
    #[error(
        "{rows} rows are held out by all providers together, and at most {limit} can be counted; \
         hold out fewer"
    )]
    HeldOut {
        /// Of all providers.
        rows: usize,
        /// What can be counted.
        limit: usize,
    },
    /// A checkpoint of something else.
    #[error("the checkpoint belongs to another job or another split of features; start afresh")]
    OtherCheckpoint,
    /// A checkpoint of this job as it was before its settings were changed.
    #[error(
        "the checkpoint was made with other settings of the optimiser or another number of \
         classes; put them back, or start afresh"
    )]
    CheckpointSettings,
    /// A feature that is not there.
    #[error("the schema has no feature \"{0}\"")]
    NoFeature(String),
    /// More encrypted features than there are.
    #[error("iota is {iota}, but there are {features} features; choose 0 to {features}")]
    Iota {
        /// What was asked for.
        iota: usize,
        /// What there are.
        features: usize,
    },
    /// Who was to choose ι did not.
    #[error(transparent)]
    Choice(#[from] NoIota),
    /// One feature, two places.
    #[error("a feature to encrypt is named twice")]
    NamedTwice,
    /// All features are dropped.
    #[error("no feature is encrypted and none published: there is nothing to train on")]
    Nothing,
    /// The order in the job file is none.
    #[error(transparent)]
    Ranking(#[from] RankingError),
    /// The providers could not agree on a ranking.
    #[error(transparent)]
    Negotiation(#[from] NegotiationError),
    /// The provider that is to rank the features is none of the job's.
    #[error("provider {0} is to rank the features, but there is none; name one of the job")]
    Chooser(usize),
    /// Columns that do not fit the grid.
    #[error(transparent)]
    Encoding(#[from] GridError),
    /// No noise keeps the promise of a private job.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The optimiser cannot go on.
    #[error(transparent)]
    Optimiser(#[from] TrainError),
}

/// What a peer did wrong. Every case blames the peer or the network, not the caller.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
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
    /// A message failed a check that nobody fails who keeps to the protocol, whatever the line does.
    #[error("its message \"{message}\" failed a consistency check: {reason}")]
    Cheating {
        /// Which message.
        message: &'static str,
        /// Which check.
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

/// Why a provider cannot serve a job as it was asked, whatever its guard allows. The data user can
/// change that.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Unfit {
    /// The parties read different schemas.
    #[error(
        "the data user's schema has the fingerprint {theirs}, this provider's {ours}; use the same \
         file"
    )]
    Schema {
        /// The data user's.
        theirs: String,
        /// Ours.
        ours: String,
    },
    /// A gradient would be about few rows.
    #[error(
        "a batch would have {rows} rows of this provider, and at least {least} are demanded; use \
         fewer batches"
    )]
    Batch {
        /// In the smallest batch.
        rows: usize,
        /// Demanded.
        least: usize,
    },
    /// An evaluation would be about few rows.
    #[error(
        "{rows} rows of this provider would be held out, and at least {least} are demanded; hold \
         out a larger share, or no rows"
    )]
    HeldOut {
        /// There would be.
        rows: usize,
        /// Demanded.
        least: usize,
    },
    /// A penalty would be chosen by few rows.
    #[error(
        "{rows} rows of this provider, half of those held out, would choose the penalty, and at least \
         {least} are demanded; hold out a larger share, or give the penalty"
    )]
    Choosing {
        /// There would be.
        rows: usize,
        /// Demanded.
        least: usize,
    },
    /// The rows cannot be scored.
    #[error(transparent)]
    Scores(NegotiationError),
    /// The columns cannot be published.
    #[error(transparent)]
    Release(ReleaseError),
    /// The engine cannot do it.
    #[error(transparent)]
    Impossible(Impossible),
}

/// Why a provider's side of a job ended.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// The data user left, stalled or sent nonsense.
    #[error("the data user: {0}")]
    Peer(#[from] PeerProblem),
    /// The guard does not allow what was asked.
    #[error("refused: {0}")]
    Denied(#[from] Refusal),
    /// The job cannot be served as it was asked.
    #[error("refused: {0}")]
    Refused(#[from] Unfit),
    /// Our store holds something else than what was put there. No data user can change it, and none is told.
    #[error("the stored release is damaged: {0}; restore the store from a backup")]
    StoredRelease(Malformed),
    /// A defect of ours. No data user can change it, and none is told.
    #[error("internal error: {0}")]
    Defect(Box<dyn std::error::Error + Send + Sync>),
    /// The operating system failed us.
    #[error(transparent)]
    Randomness(#[from] NoRandomness),
}

impl ServeError {
    /// A failure that no message of the peer can cause.
    pub(crate) fn defect(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self::Defect(error.into())
    }

    /// Whether the data user failed a check that no honest one fails.
    pub fn is_cheating(&self) -> bool {
        matches!(self, Self::Peer(PeerProblem::Cheating { .. }))
    }

    /// What the data user is told, if it can still hear: why, but not what our own files or keys
    /// look like.
    pub fn stop(&self) -> Option<Stop> {
        let code = match self {
            Self::Denied(refusal) => refusal.code(),
            Self::Refused(_) => StopCode::Refused,
            Self::Peer(PeerProblem::Message { .. } | PeerProblem::Cheating { .. }) => {
                StopCode::Protocol
            }
            Self::Peer(PeerProblem::Channel(_)) => return None,
            Self::StoredRelease(_) | Self::Defect(_) | Self::Randomness(_) => StopCode::Failed,
        };
        Some(match code {
            StopCode::Failed => Stop::new(
                code,
                "the provider cannot go on; its operator finds why in its log",
            ),
            code => Stop::new(code, self),
        })
    }
}

impl From<ChannelError> for ServeError {
    fn from(error: ChannelError) -> Self {
        Self::Peer(error.into())
    }
}

impl From<RemoteError> for ServeError {
    fn from(error: RemoteError) -> Self {
        match error {
            RemoteError::Peer(problem) => Self::Peer(problem),
            RemoteError::Randomness(error) => Self::Randomness(error),
            RemoteError::Bug(defect) => Self::defect(defect),
        }
    }
}

impl From<Impossible> for ServeError {
    fn from(error: Impossible) -> Self {
        Self::Refused(Unfit::Impossible(error))
    }
}
