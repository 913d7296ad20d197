//! The provider's house: policy and ledger behind every step of a training job.

pub mod backup;
pub mod check;
pub mod ledger;
pub mod policy;
pub mod provider_data;

use crate::daemon::metrics::{Budget, Ending, Metrics};
use crate::daemon::session::{SessionError, SessionHandler};
use crate::house::ledger::{
    EvaluationLimits, IterationLimits, JobKey, JobTerms, Ledger, LedgerError, Purchase,
};
use crate::house::policy::{Grant, JobRequest, Policy, Published};
use crate::house::provider_data::ProviderData;
use crate::identity::fingerprint::PeerFingerprint;
use crate::identity::trust::PeerIdentity;
use crate::system::stop::StopSignal;
use ed25519_dalek::{SigningKey, VerifyingKey};
use heda_blocks::channel::Channel;
use heda_crypto::random::{NoRandomness, Randomness};
use heda_dp::account::{Charge, Mechanism, Receipt};
use heda_dp::epsilon::Epsilon;
use heda_train::error::{PeerProblem, ServeError};
use heda_train::fresh_row_seed;
use heda_train::house::{Admission, House, Refusal};
use heda_train::job::Provider;
use heda_train::proposal::{JobId, Proposal, Ranking, Spending, Split};
use sha2::{Digest, Sha256};
use std::num::NonZeroU64;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use zeroize::Zeroizing;

/// Serves training jobs under a policy, and keeps the books.
pub struct TrainingHouse {
    /// What is allowed.
    pub policy: Policy,
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

/// What a data user is told when the ledger cannot be written, which may pass.
pub const LEDGER_FAILED: &str =
    "the provider's ledger failed, so nothing may leave; resume when its operator has mended it";

/// What a data user is told when the daemon stops in the middle of its job.
pub const STOPPING: &str = "this provider is stopping; resume the job when it is back";

impl TrainingHouse {
    /// Brings the metrics up to date with the ledger.
    pub fn show_budget(&self) -> Result<(), LedgerError> {
        if let Some(total) = self.policy.limits.epsilon_total {
            let spent = self.ledger.spent_billionths(&self.policy.data_set)?;
            self.metrics.show_budget(Budget {
                spent: spent as f64 / 1e9,
                total: total.to_f64(),
            });
        }
        Ok(())
    }

    fn row_seed(&self, job: &JobKey) -> Result<Zeroizing<[u8; 32]>, NoRandomness> {
        if self.randomness.is_seeded() {
            return fresh_row_seed(&self.randomness);
        }
        let hash = Sha256::new()
            .chain_update(b"heda row order")
            .chain_update(self.row_secret.as_ref())
            .chain_update(job.peer.as_bytes())
            .chain_update(job.id.as_bytes());
        Ok(Zeroizing::new(hash.finalize().into()))
    }
}

impl SessionHandler for TrainingHouse {
    fn serve(
        &self,
        peer: &PeerIdentity,
        channel: &mut Channel,
        stop: &StopSignal,
    ) -> Result<(), SessionError> {
        let visit = Visit {
            house: self,
            peer,
            stop,
            admitted: Mutex::new(None),
            noted: AtomicBool::new(false),
        };
        let provider = Provider {
            house: &visit,
            identity: &self.identity,
            randomness: self.randomness.clone(),
        };
        let served = provider.serve(channel);
        let job = visit.job();
        match served {
            Ok(served) => {
                if let Some(job) = job {
                    let finished = self.ledger.finish_job(&job);
                    finished.map_err(SessionError::internal)?;
                }
                tracing::info!(iterations = served.iterations, "job finished");
                Ok(())
            }
            Err(error) => {
                visit.note_refusal(&error);
                Err(session_error(&error, stop))
            }
        }
    }
}

/// The job has told the peer already what it may know.
fn session_error(error: &ServeError, stop: &StopSignal) -> SessionError {
    let ending = match error {
        ServeError::Refused(_) if stop.is_set() => Ending::Stopped,
        ServeError::Refused(_) => Ending::Refused,
        ServeError::Peer(PeerProblem::Channel(_) | PeerProblem::Message { .. }) => {
            Ending::PeerFailed
        }
        _ => Ending::Failed,
    };
    SessionError {
        ending,
        for_peer: None,
        for_log: error.to_string(),
    }
}

/// What was agreed with a data user in this session.
#[derive(Clone)]
struct Agreed {
    key: JobKey,
    request: JobRequest,
    grant: Grant,
    holdout_permille: u32,
    models: u64,
}

/// One data user in one session.
struct Visit<'a> {
    house: &'a TrainingHouse,
    peer: &'a PeerIdentity,
    stop: &'a StopSignal,
    admitted: Mutex<Option<Agreed>>,
    /// Whether a refusal of this session is in the ledger.
    noted: AtomicBool,
}

impl Visit<'_> {
    fn agreed(&self) -> Result<Agreed, Refusal> {
        let agreed = self.admitted.lock().unwrap_or_else(PoisonError::into_inner);
        let missing = || Refusal("no job was admitted in this session".into());
        agreed.clone().ok_or_else(missing)
    }

    fn remember(&self, agreed: Agreed) {
        let mut place = self.admitted.lock().unwrap_or_else(PoisonError::into_inner);
        *place = Some(agreed);
    }

    /// Asks the policy; a refusal is noted.
    fn judge(&self, job: &JobKey, holdout: u32, request: &JobRequest) -> Result<Grant, Refusal> {
        let facts = self.house.data.facts(holdout);
        let verdict = self.house.policy.evaluate(self.peer, &facts, request);
        verdict.map_err(|refusal| self.refuse(job, &refusal.to_string()))
    }

    fn job(&self) -> Option<JobKey> {
        self.agreed().ok().map(|agreed| agreed.key)
    }

    /// Notes what the job itself refused, for reasons that the policy does not know.
    fn note_refusal(&self, error: &ServeError) {
        let told = self.noted.load(Ordering::Relaxed) || self.stop.is_set();
        if let (ServeError::Refused(reason), Some(job), false) = (error, self.job(), told) {
            self.refuse(&job, reason);
        }
    }

    /// Notes a refusal in the ledger; a ledger that fails is a reason of its own.
    fn refuse(&self, job: &JobKey, reason: &str) -> Refusal {
        self.noted.store(true, Ordering::Relaxed);
        let noted = self.house.ledger.refuse(job, &self.peer.label, reason);
        if let Err(error) = noted {
            tracing::error!(cause = %error, "a refusal could not be written down");
        }
        Refusal(reason.to_owned())
    }

    /// Limits are told; failures of our own store are for the log.
    fn ledger_refusal(&self, job: &JobKey, error: &LedgerError) -> Refusal {
        if error.is_refusal() {
            return self.refuse(job, &error.to_string());
        }
        // There is nowhere to note it.
        self.noted.store(true, Ordering::Relaxed);
        tracing::error!(cause = %error, "the ledger failed");
        Refusal(LEDGER_FAILED.into())
    }

    /// Pays, makes and stores the release, or finds what was stored before.
    fn buy_and_store(
        &self,
        job: &JobKey,
        charge: &Charge,
        total: Epsilon,
        make: &mut dyn FnMut(Receipt) -> Result<Vec<u8>, Refusal>,
    ) -> Result<Vec<u8>, ReleaseFailure> {
        let house = self.house;
        let buy = || {
            let data_set = &house.policy.data_set;
            house.ledger.buy(job, data_set, charge.clone(), total)
        };
        let receipt = match buy()? {
            Purchase::Stored(content) => return Ok(content),
            Purchase::Paid(receipt) => receipt,
        };
        let content = make(receipt).map_err(ReleaseFailure::Refused)?;
        match house.ledger.store_release(job, &content) {
            Ok(_) => Ok(content),
            // The same job in another session, left over from before a loss, was faster: only
            // what is stored may leave.
            Err(LedgerError::OtherRelease(id)) => match buy()? {
                Purchase::Stored(content) => Ok(content),
                Purchase::Paid(_) => Err(LedgerError::OtherRelease(id).into()),
            },
            Err(error) => Err(error.into()),
        }
    }

    fn request(&self, proposal: &Proposal) -> Result<JobRequest, String> {
        let facts = self.house.data.facts(proposal.holdout_permille);
        let own = self.house.identity.verifying_key();
        let keys: Vec<VerifyingKey> = proposal
            .identities
            .iter()
            .map(|text| parse_key(text))
            .collect::<Option<_>>()
            .ok_or("an identity of the proposal is no key")?;
        if !keys.contains(&own) {
            return Err("this provider's key is not among the identities of the proposal".into());
        }
        let epsilon = match proposal.spending {
            None => None,
            Some(Spending::Total(epsilon)) => Some(epsilon),
            Some(Spending::Automatic) => {
                return Err(
                    "an automatic epsilon is read from the data, which are not public; \
                            name an epsilon"
                        .into(),
                );
            }
        };
        let others = keys.iter().filter(|key| **key != own);
        let scored = match proposal.ranking {
            Ranking::Given { .. } => false,
            Ranking::Agreed { .. } => true,
            Ranking::Chosen { chooser, .. } => keys.get(chooser) == Some(&own),
        };
        // Which features take part, and which of them are published, comes with the split and is
        // looked at again then. Until then, those that may.
        let allowed = self.house.policy.columns_of(self.peer);
        let features = match allowed {
            Some(allowed) if !scored => allowed.to_vec(),
            _ => facts.features.clone(),
        };
        Ok(JobRequest {
            job: proposal.job.to_string(),
            schema: proposal.schema.clone(),
            engine: proposal.engine,
            scored,
            features,
            published: Published::Named(Vec::new()),
            epsilon,
            mechanism: Mechanism::Laplace,
            iterations: u64::from(proposal.iterations),
            batch_rows: Some(facts.training_rows / u64::from(proposal.batches.max(1))),
            co_providers: others.map(PeerFingerprint::of_identity).collect(),
        })
    }
}

impl House for Visit<'_> {
    fn admit(&self, proposal: &Proposal) -> Result<Admission, Refusal> {
        let house = self.house;
        let key = JobKey {
            peer: self.peer.fingerprint,
            id: proposal.job.to_string(),
        };
        if self.stop.is_set() {
            return Err(Refusal(STOPPING.into()));
        }
        if proposal.seeded {
            let words = "the data user draws reproducible masks, which do not protect its model";
            tracing::warn!(job = key.id, words);
        }
        if proposal.dataset != house.policy.data_set {
            let offered = &house.policy.data_set;
            let asked: String = proposal.dataset.chars().take(100).collect();
            let words = format!("the data set {asked} is asked for, this provider has {offered}");
            return Err(self.refuse(&key, &words));
        }
        let request = self.request(proposal).map_err(|e| self.refuse(&key, &e))?;
        let holdout_permille = proposal.holdout_permille;
        let grant = self.judge(&key, holdout_permille, &request)?;
        let terms = JobTerms {
            label: self.peer.label.clone(),
            data_set: house.policy.data_set.clone(),
            engine: request.engine.to_string(),
            request: terms_of(proposal, house.data.digest()).map_err(|e| self.refuse(&key, &e))?,
        };
        let opened = house.ledger.open_job(&key, &terms);
        let iterations = opened.map_err(|e| self.ledger_refusal(&key, &e))?;
        tracing::info!(job = key.id, iterations, "job admitted");
        let admission = Admission {
            data: Arc::clone(house.data.dataset()),
            schema: Arc::clone(house.data.schema()),
            row_seed: house.row_seed(&key).map_err(|e| Refusal(e.to_string()))?,
            minimum_batch: count(house.policy.limits.rows_per_batch_min),
            minimum_held_out: count(house.policy.limits.held_out_rows_min),
        };
        self.remember(Agreed {
            key,
            request,
            grant,
            holdout_permille,
            models: proposal.positives.len() as u64,
        });
        Ok(admission)
    }

    fn agree_split(&self, _job: JobId, split: &Split) -> Result<(), Refusal> {
        let mut agreed = self.agreed()?;
        let features = self.house.data.dataset().features();
        let names = |part: &[usize]| -> Vec<String> {
            let known = part.iter().filter_map(|&feature| features.get(feature));
            known.map(|feature| feature.name.clone()).collect()
        };
        let published = names(&split.published);
        agreed.request.features = [names(&split.encrypted), published.clone()].concat();
        agreed.request.published = Published::Named(published);
        agreed.grant = self.judge(&agreed.key, agreed.holdout_permille, &agreed.request)?;
        self.remember(agreed);
        Ok(())
    }

    fn release(
        &self,
        _job: JobId,
        charge: Charge,
        make: &mut dyn FnMut(Receipt) -> Result<Vec<u8>, Refusal>,
    ) -> Result<Vec<u8>, Refusal> {
        let house = self.house;
        let agreed = self.agreed()?;
        let mut request = agreed.request;
        let columns = charge.columns().iter().map(|c| c.name.clone());
        request.published = Published::Named(columns.collect());
        request.epsilon = Some(charge.total());
        request.mechanism = charge.mechanism();
        self.judge(&agreed.key, agreed.holdout_permille, &request)?;
        let nothing = || self.refuse(&agreed.key, "this provider publishes nothing");
        let total = house.policy.limits.epsilon_total.ok_or_else(nothing)?;
        let content = self
            .buy_and_store(&agreed.key, &charge, total, make)
            .map_err(|failure| match failure {
                ReleaseFailure::Ledger(error) => self.ledger_refusal(&agreed.key, &error),
                ReleaseFailure::Refused(refusal) => refusal,
            })?;
        if let Err(error) = house.show_budget() {
            tracing::warn!(cause = %error, "the metrics do not show the budget");
        }
        Ok(content)
    }

    fn begin_iteration(&self, _job: JobId, _iteration: u32) -> Result<(), Refusal> {
        if self.stop.is_set() {
            return Err(Refusal(STOPPING.into()));
        }
        let house = self.house;
        let agreed = self.agreed()?;
        let limits = IterationLimits {
            per_job: agreed.grant.iterations_most,
            per_day: house.policy.limits.iterations_per_day.get(),
        };
        let counted = house
            .ledger
            .count_iteration(&agreed.key, &house.policy.data_set, limits);
        counted.map_err(|e| self.ledger_refusal(&agreed.key, &e))?;
        house.metrics.iteration_finished();
        Ok(())
    }

    fn begin_evaluation(&self, _job: JobId, _class: u32) -> Result<(), Refusal> {
        let agreed = self.agreed()?;
        let limits = &self.house.policy.limits;
        let each = limits.evaluations_per_model.get();
        let limits = EvaluationLimits {
            per_job: each.saturating_mul(agreed.models),
            per_day: limits.iterations_per_day.get(),
        };
        let data_set = &self.house.policy.data_set;
        let counted = self
            .house
            .ledger
            .count_evaluation(&agreed.key, data_set, limits);
        counted.map_err(|e| self.ledger_refusal(&agreed.key, &e))
    }
}

/// Why there is no release.
enum ReleaseFailure {
    Ledger(LedgerError),
    Refused(Refusal),
}

impl From<LedgerError> for ReleaseFailure {
    fn from(error: LedgerError) -> Self {
        Self::Ledger(error)
    }
}

/// What a job may not change when it comes back. Who else takes part may change when a provider
/// was lost, and then the order of features is given; the policy looks at both every time.
fn terms_of(proposal: &Proposal, data: &str) -> Result<String, String> {
    let mut terms = serde_json::to_value(proposal).map_err(|e| e.to_string())?;
    if let Some(fields) = terms.as_object_mut() {
        fields.remove("identities");
        fields.remove("ranking");
        // A release is stored row by row: it cannot go on with other rows.
        fields.insert("rows".into(), data.into());
    }
    Ok(terms.to_string())
}

fn count(limit: NonZeroU64) -> usize {
    usize::try_from(limit.get()).unwrap_or(usize::MAX)
}

fn parse_key(text: &str) -> Option<VerifyingKey> {
    let digits = text.as_bytes();
    if digits.len() != 64 || !digits.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    let mut bytes = [0; 32];
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        let pair = std::str::from_utf8(pair).ok()?;
        *byte = u8::from_str_radix(pair, 16).ok()?;
    }
    VerifyingKey::from_bytes(&bytes).ok()
}

impl std::fmt::Debug for TrainingHouse {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TrainingHouse")
            .field("data_set", &self.policy.data_set)
            .finish_non_exhaustive()
    }
}
