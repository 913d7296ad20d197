//! Asking all providers at the same time.

use crate::error::{Defect, JobError, PeerProblem};
use heda_blocks::channel::{Channel, ChannelError};
use heda_crypto::random::NoRandomness;

/// Somebody whose failures are reported by name.
pub(crate) trait Party: Send {
    /// Its name.
    fn name(&self) -> &str;
    /// The channel to it.
    fn channel(&mut self) -> &mut Channel;
}

/// What can go wrong with one provider, before its name is put to it.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RemoteError {
    #[error(transparent)]
    Peer(#[from] PeerProblem),
    #[error(transparent)]
    Randomness(#[from] NoRandomness),
    #[error(transparent)]
    Bug(#[from] Defect),
}

impl From<ChannelError> for RemoteError {
    fn from(error: ChannelError) -> Self {
        Self::Peer(error.into())
    }
}

impl RemoteError {
    /// The failure with the name of whom it is about.
    fn of(self, name: &str) -> JobError {
        match self {
            Self::Peer(problem) => JobError::Provider {
                name: name.to_owned(),
                problem,
            },
            Self::Randomness(error) => JobError::Randomness(error),
            Self::Bug(error) => JobError::Bug(error),
        }
    }
}

/// Asks every party on a thread of its own; the first failure, in their order, is reported.
pub(crate) fn ask_all<P: Party, T: Send>(
    parties: &mut [P],
    ask: impl Fn(&mut P) -> Result<T, RemoteError> + Sync,
) -> Result<Vec<T>, JobError> {
    let ask = &ask;
    let one = move |party: &mut P| ask(party).map_err(|e| e.of(party.name()));
    if let [party] = parties {
        return one(party).map(|answer| vec![answer]);
    }
    std::thread::scope(|scope| {
        let asked: Vec<_> = parties
            .iter_mut()
            .map(|party| scope.spawn(move || one(party)))
            .collect();
        let answers = asked.into_iter().map(|thread| {
            thread
                .join()
                .unwrap_or_else(|_| Err(Defect::Panicked.into()))
        });
        answers.collect::<Vec<_>>().into_iter().collect()
    })
}
