//! One data user in one session: every step of its job is asked here before it is done.

use crate::house::agreed::{Agreed, circle};
use crate::house::ledger::{
    CountLimits, Counted, JobKey, JobTerms, Kind, Leaving, LedgerError, Purchase, Reservation,
};
use crate::house::policy::{Grant, JobRequest, Published};
use crate::house::{JobRefusal, TrainingHouse};
use crate::identity::fingerprint::PeerFingerprint;
use crate::identity::trust::PeerIdentity;
use crate::system::stop::StopSignal;
use crate::system::unhex;
use ed25519_dalek::VerifyingKey;
use heda_dp::account::{Charge, Mechanism, Receipt};
use heda_dp::epsilon::Epsilon;
use heda_dp::gdp::Cost;
use heda_train::error::ServeError;
use heda_train::house::{Admission, Bought, House, Refusal};
use heda_train::proposal::{JobId, Proposal, Ranking, Spending, Split};
use std::num::NonZeroU64;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// One data user in one session.
pub(super) struct Visit<'a> {
    house: &'a TrainingHouse,
    peer: &'a PeerIdentity,
    stop: &'a StopSignal,
    admitted: Mutex<Option<Agreed>>,
    /// What the job may use of the day.
    reserved: Mutex<Option<Reservation>>,
    /// Whether a refusal of this session is in the ledger.
    noted: AtomicBool,
}

impl<'a> Visit<'a> {
    pub(super) fn new(
        house: &'a TrainingHouse,
        peer: &'a PeerIdentity,
        stop: &'a StopSignal,
    ) -> Self {
        Self {
            house,
            peer,
            stop,
            admitted: Mutex::new(None),
            reserved: Mutex::new(None),
            noted: AtomicBool::new(false),
        }
    }

    fn agreed(&self) -> Result<Agreed, Refusal> {
        let agreed = self.admitted.lock().unwrap_or_else(PoisonError::into_inner);
        agreed.clone().ok_or(Refusal::NotAdmitted)
    }

    fn remember(&self, agreed: Agreed) {
        let mut place = self.admitted.lock().unwrap_or_else(PoisonError::into_inner);
        *place = Some(agreed);
    }

    /// Asks the policy; a refusal is noted.
    fn judge(&self, job: &JobKey, holdout: u32, request: &JobRequest) -> Result<Grant, Refusal> {
        let facts = self.house.data.facts(holdout);
        let verdict = self.house.policy.evaluate(self.peer, &facts, request);
        verdict.map_err(|refusal| self.refuse(job, refusal.into()))
    }

    pub(super) fn job(&self) -> Option<JobKey> {
        self.agreed().ok().map(|agreed| agreed.key)
    }

    /// Notes what the job itself refused, for reasons that the policy does not know.
    pub(super) fn note_refusal(&self, error: &ServeError) {
        let reason = match error {
            ServeError::Denied(Refusal::Stopping) => return,
            ServeError::Denied(refusal) => refusal.to_string(),
            ServeError::Refused(reason) => reason.to_string(),
            _ => return,
        };
        if let (Some(job), false) = (self.job(), self.noted.load(Ordering::Relaxed)) {
            self.note(&job, &reason);
        }
    }

    /// Writes a refusal into the ledger.
    fn note(&self, job: &JobKey, reason: &str) {
        self.noted.store(true, Ordering::Relaxed);
        let noted = self.house.ledger.refuse(job, &self.peer.label, reason);
        if let Err(error) = noted {
            tracing::error!(cause = %error, "a refusal could not be written down");
        }
    }

    /// Brings the metrics up to date: what was paid stays paid if that fails.
    fn show_budget(&self) {
        if let Err(error) = self.house.show_budget() {
            tracing::warn!(cause = %error, "the metrics do not show the budget");
        }
    }

    /// Refuses, and notes it in the ledger.
    fn refuse(&self, job: &JobKey, cause: JobRefusal) -> Refusal {
        self.note(job, &cause.to_string());
        Refusal::rule(cause)
    }

    /// Limits are told; failures of our own store are for the log.
    fn ledger_refusal(&self, job: &JobKey, error: LedgerError) -> Refusal {
        if matches!(error, LedgerError::DayReserved { .. }) {
            // It will be asked for again, perhaps often: not worth a line in the ledger each time.
            self.noted.store(true, Ordering::Relaxed);
            return Refusal::Busy(Box::new(error));
        }
        if error.is_refusal() {
            return self.refuse(job, error.into());
        }
        // There is nowhere to note it.
        self.noted.store(true, Ordering::Relaxed);
        tracing::error!(cause = %error, "the ledger failed");
        Refusal::LedgerFailed
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

    /// Reserves what the job may use of the day.
    fn reserve(
        &self,
        key: &JobKey,
        request: &JobRequest,
        proposal: &Proposal,
    ) -> Result<(), LedgerError> {
        let policy = &self.house.policy;
        let evaluations = match proposal.holdout_permille {
            0 => 0,
            _ => u64::from(proposal.evaluations()),
        };
        let before = u64::from(request.scored) + u64::from(proposal.standardise);
        let need = (request.iterations, evaluations + before);
        let per_day = policy.limits.iterations_per_day.get();
        let reserved = self
            .house
            .ledger
            .reserve(key, &policy.data_set, need, per_day)?;
        *self.reserved.lock().unwrap_or_else(PoisonError::into_inner) = Some(reserved);
        Ok(())
    }

    /// Counts what leaves before training: scores of the features, sums of columns.
    fn count_before_training(
        &self,
        key: &JobKey,
        leaving: Option<&Leaving<'_>>,
    ) -> Result<(), Refusal> {
        let per_job = self.house.policy.limits.rankings_per_job.get();
        self.count(Counted::Ranking, key, per_job, leaving)
    }

    /// Counts what is about to leave.
    fn count(
        &self,
        what: Counted,
        key: &JobKey,
        per_job: u64,
        leaving: Option<&Leaving<'_>>,
    ) -> Result<(), Refusal> {
        let (policy, ledger) = (&self.house.policy, &self.house.ledger);
        let per_day = policy.limits.iterations_per_day.get();
        let limits = CountLimits { per_job, per_day };
        let counted = ledger.count(what, key, &policy.data_set, limits, leaving);
        counted.map(|_| ()).map_err(|e| self.ledger_refusal(key, e))
    }

    /// Refuses what the ledger would refuse later, before anything is paid for.
    fn foresee(&self, agreed: &Agreed, iterations: u64) -> Result<(), LedgerError> {
        let (house, data_set) = (self.house, &self.house.policy.data_set);
        let left = agreed.request.iterations.saturating_sub(iterations);
        // A job that comes back may have had its counts.
        let counts = match (agreed.holdout_permille, iterations) {
            (1.., 0) => agreed.models.saturating_mul(agreed.counts),
            _ => 0,
        };
        let gradients = left.saturating_mul(agreed.grant.gradient);
        let numbers = gradients.saturating_add(counts);
        let before = agreed.summed_scores || agreed.standardise;
        let scores = before.then_some((Kind::Scores, 0));
        let release = agreed.request.epsilon.map(|_| (Kind::Release, 0));
        let parts = [Some((Kind::Training, numbers)), scores, release];
        for (kind, numbers) in parts.into_iter().flatten() {
            let leaving = agreed.leaving(house, kind, numbers);
            house.ledger.foresee(&agreed.key, data_set, &leaving)?;
        }
        let cap = house.policy.limits.private_cap();
        if let (Some(each), Some(cap)) = (agreed.grant.private_gradient, cap) {
            // Bought before the first gradient, if at all.
            let moments = match iterations {
                0 => agreed.grant.private_moments,
                _ => Cost::ZERO,
            };
            let cost = each.times(left).plus(moments);
            let ledger = &house.ledger;
            ledger.foresee_private(&agreed.key, data_set, cost, &cap)?;
        }
        Ok(())
    }

    fn request(&self, proposal: &Proposal) -> Result<JobRequest, JobRefusal> {
        let facts = self.house.data.facts(proposal.holdout_permille);
        let own = self.house.identity.verifying_key();
        let keys: Vec<VerifyingKey> = proposal
            .identities
            .iter()
            .map(|text| parse_key(text))
            .collect::<Option<_>>()
            .ok_or(JobRefusal::Identity)?;
        if !keys.contains(&own) {
            return Err(JobRefusal::NotAmong);
        }
        let epsilon = match proposal.spending {
            None => None,
            Some(Spending::Total(epsilon)) => Some(epsilon),
            Some(Spending::Automatic) => return Err(JobRefusal::AutomaticEpsilon),
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
            privacy: proposal.privacy,
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
            return Err(Refusal::Stopping);
        }
        if proposal.seeded {
            let words = "the data user draws reproducible masks, which do not protect its model";
            tracing::warn!(job = key.id, words);
        }
        if proposal.dataset != house.policy.data_set {
            let refusal = JobRefusal::DataSet {
                asked: proposal.dataset.chars().take(100).collect(),
                offered: house.policy.data_set.clone(),
            };
            return Err(self.refuse(&key, refusal));
        }
        let request = self.request(proposal).map_err(|e| self.refuse(&key, e))?;
        let holdout_permille = proposal.holdout_permille;
        let grant = self.judge(&key, holdout_permille, &request)?;
        let terms = JobTerms {
            label: self.peer.label.clone(),
            data_set: house.policy.data_set.clone(),
            engine: request.engine.to_string(),
            request: terms_of(proposal, house.data.digest()).map_err(|e| self.refuse(&key, e))?,
        };
        let failed = |e| self.ledger_refusal(&key, e);
        self.reserve(&key, &request, proposal).map_err(failed)?;
        let iterations = house.ledger.open_job(&key, &terms).map_err(failed)?;
        let ledger = house.ledger.head().map_err(failed)?;
        let agreed = Agreed {
            circle: circle(&request, &house.identity),
            summed_scores: matches!(proposal.ranking, Ranking::Agreed { .. }),
            standardise: proposal.standardise,
            key,
            request,
            grant,
            holdout_permille,
            models: u64::from(proposal.evaluations()),
            counts: counts(proposal),
        };
        let key = &agreed.key;
        let foreseen = self.foresee(&agreed, iterations);
        foreseen.map_err(|e| self.ledger_refusal(key, e))?;
        tracing::info!(job = key.id, iterations, "job admitted");
        let admission = Admission {
            data: Arc::clone(house.data.dataset()),
            schema: Arc::clone(house.data.schema()),
            persons: house.data.persons().cloned(),
            row_seed: house.row_seed(key, &agreed.circle)?,
            minimum_batch: count(house.policy.limits.rows_per_batch_min),
            minimum_held_out: count(house.policy.limits.held_out_rows_min),
            ledger: Some(ledger),
        };
        self.remember(agreed);
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
        let mut request = agreed.request.clone();
        let columns = charge.columns().iter().map(|c| c.name.clone());
        request.published = Published::Named(columns.collect());
        request.epsilon = Some(charge.total());
        request.mechanism = charge.mechanism();
        self.judge(&agreed.key, agreed.holdout_permille, &request)?;
        let leaving = agreed.leaving(house, Kind::Release, 0);
        let disclosed = house
            .ledger
            .disclose(&agreed.key, &house.policy.data_set, &leaving);
        disclosed.map_err(|e| self.ledger_refusal(&agreed.key, e))?;
        let nothing = || self.refuse(&agreed.key, JobRefusal::PublishesNothing);
        let total = house.policy.limits.epsilon_total.ok_or_else(nothing)?;
        let content = self
            .buy_and_store(&agreed.key, &charge, total, make)
            .map_err(|failure| match failure {
                ReleaseFailure::Ledger(error) => self.ledger_refusal(&agreed.key, error),
                ReleaseFailure::Refused(refusal) => refusal,
            })?;
        self.show_budget();
        Ok(content)
    }

    fn begin_ranking(&self, _job: JobId) -> Result<(), Refusal> {
        let agreed = self.agreed()?;
        // One provider's order by itself is no sum.
        let features = self.house.data.dataset().features().len() as u64;
        let scores = agreed.leaving(self.house, Kind::Scores, features);
        let scores = agreed.summed_scores.then_some(&scores);
        self.count_before_training(&agreed.key, scores)
    }

    fn begin_sums(&self, _job: JobId, numbers: u64) -> Result<(), Refusal> {
        let agreed = self.agreed()?;
        let sums = agreed.leaving(self.house, Kind::Scores, numbers);
        self.count_before_training(&agreed.key, Some(&sums))
    }

    fn begin_iteration(&self, _job: JobId, _iteration: u32) -> Result<(), Refusal> {
        if self.stop.is_set() {
            return Err(Refusal::Stopping);
        }
        let house = self.house;
        let agreed = self.agreed()?;
        let most = agreed.grant.iterations_most;
        let leaving = agreed.leaving(house, Kind::Training, agreed.grant.gradient);
        self.count(Counted::Iteration, &agreed.key, most, Some(&leaving))?;
        house.metrics.iteration_finished();
        Ok(())
    }

    fn pay(&self, _job: JobId, what: Bought, cost: Cost) -> Result<(), Refusal> {
        let agreed = self.agreed()?;
        let Some(cap) = self.house.policy.limits.private_cap() else {
            return Err(self.refuse(&agreed.key, JobRefusal::NoPrivateBudget));
        };
        let ledger = &self.house.ledger;
        let data_set = &self.house.policy.data_set;
        if what == Bought::Moments {
            // From here on the job has these providers: with others its training rows would be others.
            let leaving = agreed.leaving(self.house, Kind::Training, 0);
            let noted = ledger.disclose(&agreed.key, data_set, &leaving);
            noted.map_err(|e| self.ledger_refusal(&agreed.key, e))?;
        }
        let paid = ledger.pay(&agreed.key, data_set, (what, cost), &cap);
        paid.map_err(|e| self.ledger_refusal(&agreed.key, e))?;
        self.show_budget();
        Ok(())
    }

    fn begin_evaluation(&self, _job: JobId, _number: u32) -> Result<(), Refusal> {
        let agreed = self.agreed()?;
        let each = self.house.policy.limits.evaluations_per_model.get();
        let most = each.saturating_mul(agreed.models);
        let leaving = agreed.leaving(self.house, Kind::Training, agreed.counts);
        self.count(Counted::Evaluation, &agreed.key, most, Some(&leaving))
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
fn terms_of(proposal: &Proposal, data: &str) -> Result<String, JobRefusal> {
    let mut terms = serde_json::to_value(proposal).map_err(JobRefusal::Terms)?;
    if let Some(fields) = terms.as_object_mut() {
        fields.remove("identities");
        fields.remove("ranking");
        // A release is stored row by row: it cannot go on with other rows.
        fields.insert("rows".into(), data.into());
    }
    Ok(terms.to_string())
}

/// Numbers that an evaluation yields: counts of rows, or a part of the sums over a number's errors.
fn counts(proposal: &Proposal) -> u64 {
    match proposal.numeric {
        // On a path most are squared errors, with both sums of the labels.
        true if proposal.path.is_some() => heda_train::errors::WITH_SQUARES as u64,
        true => heda_train::errors::NUMBERS as u64 / u64::from(proposal.evaluations()),
        false => heda_train::histogram::NUMBERS as u64,
    }
}

fn count(limit: NonZeroU64) -> usize {
    usize::try_from(limit.get()).unwrap_or(usize::MAX)
}

fn parse_key(text: &str) -> Option<VerifyingKey> {
    VerifyingKey::from_bytes(&unhex(text)?).ok()
}
