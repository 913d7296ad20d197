//! The provider's guard: policy and ledger behind every step of a training job.

mod agreed;
pub mod backup;
pub mod check;
pub mod ledger;
pub mod policy;
pub mod provider_data;
mod refusal;
mod session;

pub use refusal::JobRefusal;

use crate::config::ProviderConfig;
use crate::daemon::metrics::{Budget, Ending, Metrics, PrivateBudget};
use crate::daemon::session::{SessionError, SessionHandler, ending_of};
use crate::guard::ledger::{JobKey, Ledger, LedgerError};
use crate::guard::policy::Policy;
use crate::guard::policy::provider_set::ProviderSet;
use crate::guard::provider_data::ProviderData;
use crate::guard::session::SessionGuard;
use crate::identity::trust::PeerIdentity;
use crate::system::stop::StopSignal;
use ed25519_dalek::SigningKey;
use heda_blocks::channel::Channel;
use heda_crypto::random::{NoRandomness, Randomness};
use heda_job::RowSeed;
use heda_job::error::{PeerProblem, ServeError};
use heda_job::guard::Refusal;
use heda_job::job::Provider;
use sha2::{Digest, Sha256};
use std::path::PathBuf;
use std::sync::Arc;
use zeroize::Zeroizing;

/// Serves training jobs under a policy, and keeps the books.
pub struct ProviderService {
    /// What is allowed.
    pub policy: Policy,
    /// The file that it was read from.
    pub config: PathBuf,
    /// The rows.
    pub data: ProviderData,
    /// The books.
    pub ledger: Ledger,
    /// Who this provider is; signs its mask keys.
    pub identity: SigningKey,
    /// Orders the rows of each job, the same again when a job comes back after a restart.
    pub row_secret: Zeroizing<[u8; 32]>,
    /// Its randomness.
    pub randomness: Randomness,
    /// Its numbers.
    pub metrics: Arc<Metrics>,
}

impl ProviderService {
    /// The policy with the providers that are known now: `heda provider know` counts without a
    /// restart. A file that cannot be read changes nothing.
    fn policy_now(&self) -> Policy {
        let mut policy = self.policy.clone();
        match ProviderConfig::load(&self.config) {
            Ok(config) => {
                let now = Policy::new(&config);
                policy.known_providers = now.known_providers;
                policy.limits.known_co_providers_min = now.limits.known_co_providers_min;
            }
            Err(error) => tracing::warn!(cause = %error, "known providers stay as they were"),
        }
        policy
    }

    /// Brings the metrics up to date with the ledger.
    pub fn show_budget(&self) -> Result<(), LedgerError> {
        if let Some(total) = self.policy.limits.epsilon_total {
            let spent = self.ledger.spent_billionths(&self.policy.data_set)?;
            self.metrics.show_budget(Budget {
                spent: spent as f64 / 1e9,
                total: total.to_f64(),
            });
        }
        self.show_private()
    }

    /// The same for what private jobs have cost.
    fn show_private(&self) -> Result<(), LedgerError> {
        let Some(cap) = self.policy.limits.private_cap() else {
            return Ok(());
        };
        let data_set = self.policy.data_set.clone();
        let (spent, users) = self.ledger.private_spent(&data_set, cap.delta)?;
        let reached = |epsilon: Option<f64>| epsilon.unwrap_or(f64::INFINITY);
        let users = users.into_iter();
        self.metrics.show_private(PrivateBudget {
            data_set,
            spent: reached(spent),
            total: cap.epsilon.to_f64(),
            total_per_user: cap.per_user.to_f64(),
            users: users
                .map(|user| (user.label, user.peer, reached(user.epsilon)))
                .collect(),
        });
        Ok(())
    }

    fn row_seed(&self, job: &JobKey, provider_set: &ProviderSet) -> Result<RowSeed, NoRandomness> {
        if self.randomness.is_seeded() {
            return RowSeed::fresh(&self.randomness);
        }
        Ok(row_seed(&self.row_secret, job, provider_set))
    }
}

/// Orders the rows of a job. With other providers the same job has another order, so that sums over
/// different provider sets are about different training rows.
fn row_seed(secret: &[u8; 32], job: &JobKey, provider_set: &ProviderSet) -> RowSeed {
    let mut hash = Sha256::new()
        .chain_update(b"heda row order")
        .chain_update(secret)
        .chain_update(job.peer.as_bytes())
        .chain_update((job.id.len() as u64).to_le_bytes())
        .chain_update(job.id.as_bytes());
    provider_set
        .iter()
        .for_each(|member| hash.update(member.as_bytes()));
    RowSeed::from(<[u8; 32]>::from(hash.finalize()))
}

impl SessionHandler for ProviderService {
    fn serve(
        &self,
        peer: &PeerIdentity,
        channel: &mut Channel,
        stop: &StopSignal,
    ) -> Result<(), SessionError> {
        let session = SessionGuard::new(self, peer, stop);
        let provider = Provider {
            guard: &session,
            identity: &self.identity,
            randomness: self.randomness.clone(),
        };
        let served = provider.serve(channel);
        session.end();
        match served {
            Ok(served) => {
                if let Some(job) = session.job() {
                    let finished = self.ledger.finish_job(&job);
                    finished.map_err(SessionError::internal)?;
                }
                tracing::info!(iterations = served.iterations, "job finished");
                Ok(())
            }
            Err(error) => {
                session.note_refusal(&error);
                Err(session_error(&error))
            }
        }
    }
}

/// The job has told the peer already what it may know.
fn session_error(error: &ServeError) -> SessionError {
    let ending = match error {
        ServeError::Denied(Refusal::Stopping) => Ending::Stopped,
        ServeError::Denied(_) | ServeError::Refused(_) => Ending::Refused,
        ServeError::Peer(PeerProblem::Channel(error)) => ending_of(error),
        ServeError::Peer(PeerProblem::Message { .. } | PeerProblem::Cheating { .. }) => {
            Ending::Breach
        }
        _ => Ending::Failed,
    };
    SessionError {
        ending,
        for_peer: None,
        for_log: error.to_string(),
    }
}

impl std::fmt::Debug for ProviderService {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ProviderService")
            .field("data_set", &self.policy.data_set)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::fingerprint::PeerFingerprint;
    use rustls::pki_types::SubjectPublicKeyInfoDer;

    #[test]
    fn rows_are_ordered_by_secret_data_user_job_and_providers() {
        let peer = |name: &str| {
            let key = SubjectPublicKeyInfoDer::from(name.as_bytes().to_vec());
            PeerFingerprint::of_key(&key)
        };
        let seed = |secret: u8, user: &str, job: &str, providers: &[&str]| {
            let key = JobKey {
                peer: peer(user),
                id: job.into(),
            };
            let provider_set = providers.iter().map(|name| peer(name)).collect();
            row_seed(&[secret; 32], &key, &provider_set)
        };
        let first = seed(1, "user", "job", &["a", "b", "c"]);
        // A job that comes back has the same order, however its providers are listed.
        assert_eq!(first, seed(1, "user", "job", &["c", "a", "b"]));
        for other in [
            seed(2, "user", "job", &["a", "b", "c"]),
            seed(1, "other", "job", &["a", "b", "c"]),
            seed(1, "user", "job 2", &["a", "b", "c"]),
            seed(1, "user", "job", &["a", "b"]),
            seed(1, "user", "job", &["a", "b", "c", "d"]),
        ] {
            assert_ne!(first, other);
        }
    }
}
