//! One data user in one session: every step of its job is asked here before it is done.

mod refusals;

use crate::guard::agreed::{Agreed, counts, parse_key, provider_set, terms_of};
use crate::guard::ledger::{
    AnswerRecord, CountLimits, Counted, Disclosure, DisclosureKind, JobKey, JobTerms, LedgerError,
    PrivateCap, Purchase, Reservation,
};
use crate::guard::policy::{Grant, JobRequest, Policy, Published};
use crate::guard::{JobRefusal, ProviderService};
use crate::identity::fingerprint::PeerFingerprint;
use crate::identity::trust::PeerIdentity;
use crate::system::stop::StopSignal;
use ed25519_dalek::VerifyingKey;
use heda_dp::account::{Charge, Receipt};
use heda_dp::epsilon::Epsilon;
use heda_job::description::Share;
use heda_job::guard::{Admission, AgreedPlan, Charged, Guard, Refusal, Step};
use heda_job::proposal::{JobId, Proposal, Scoring, Spending, Split};
use heda_learn::private::MOMENT_ANSWERS;
use std::num::NonZeroU64;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// One data user in one session.
pub(super) struct SessionGuard<'a> {
    guard: &'a ProviderService,
    /// What is allowed in this session.
    policy: Policy,
    peer: &'a PeerIdentity,
    stop: &'a StopSignal,
    admitted: Mutex<Option<Agreed>>,
    /// What the job may use of the day.
    reserved: Mutex<Option<Reservation>>,
    /// Whether a refusal of this session is in the ledger.
    noted: AtomicBool,
    /// Whether a numbered answer of this session was begun.
    answering: AtomicBool,
}

impl<'a> SessionGuard<'a> {
    pub(super) fn new(
        guard: &'a ProviderService,
        peer: &'a PeerIdentity,
        stop: &'a StopSignal,
    ) -> Self {
        Self {
            policy: guard.policy_now(),
            guard,
            peer,
            stop,
            admitted: Mutex::new(None),
            reserved: Mutex::new(None),
            noted: AtomicBool::new(false),
            answering: AtomicBool::new(false),
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
    fn judge(&self, job: &JobKey, held_out: Share, request: &JobRequest) -> Result<Grant, Refusal> {
        let facts = self.guard.data.facts(held_out);
        let verdict = self.policy.evaluate(self.peer, &facts, request);
        verdict.map_err(|refusal| self.refuse(job, refusal.into()))
    }

    pub(super) fn job(&self) -> Option<JobKey> {
        self.agreed().ok().map(|agreed| agreed.key)
    }

    /// The session is over: what it had reserved of the day is free, and what the job had set aside
    /// if it paid nothing and has no other session.
    pub(super) fn end(&self) {
        let reserved = self.reserved.lock();
        drop(reserved.unwrap_or_else(PoisonError::into_inner).take());
        let Some(job) = self.job() else { return };
        let data_set = &self.guard.policy.data_set;
        if let Err(error) = self.guard.ledger.free_unpaid(&job, data_set) {
            tracing::error!(cause = %error, "what a job had set aside could not be freed");
        }
    }

    /// Brings the metrics up to date: what was paid stays paid if that fails.
    fn show_budget(&self) {
        if let Err(error) = self.guard.show_budget() {
            tracing::warn!(cause = %error, "the metrics do not show the budget");
        }
    }

    /// Pays, makes and stores the release, or finds what was stored before.
    fn buy_and_store(
        &self,
        job: &JobKey,
        charge: &Charge,
        total: Epsilon,
        make: &mut dyn FnMut(Receipt) -> Result<Vec<u8>, Refusal>,
    ) -> Result<Vec<u8>, ReleaseFailure> {
        let guard = self.guard;
        let buy = || {
            let data_set = &guard.policy.data_set;
            guard.ledger.buy(job, data_set, charge.clone(), total)
        };
        let receipt = match buy()? {
            Purchase::Stored(content) => return Ok(content),
            Purchase::Paid(receipt) => receipt,
        };
        let content = make(receipt).map_err(ReleaseFailure::Refused)?;
        match guard.ledger.store_release(job, &content) {
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
        let policy = &self.guard.policy;
        let evaluations = match proposal.job.held_out().is_some() {
            false => 0,
            true => u64::from(proposal.evaluations()),
        };
        let moments = request.privacy.map_or(0, |_| u64::from(MOMENT_ANSWERS));
        let before = u64::from(request.scored) + u64::from(proposal.job.standardises()) + moments;
        let need = (request.iterations, evaluations + before);
        let per_day = policy.limits.iterations_per_day.get();
        let reserved = self
            .guard
            .ledger
            .reserve(key, &policy.data_set, need, per_day)?;
        *self.reserved.lock().unwrap_or_else(PoisonError::into_inner) = Some(reserved);
        Ok(())
    }

    /// As what an answer is counted, how many of its kind a job may have, and what it tells.
    fn told<'b>(&self, agreed: &'b Agreed, step: &Step) -> (Counted, u64, Option<Disclosure<'b>>) {
        let limits = &self.guard.policy.limits;
        let tells = |kind, numbers| agreed.disclosure(self.guard, kind, numbers);
        let rankings = limits.rankings_per_job.get();
        match step {
            Step::Scores => {
                // One provider's order by itself is no sum.
                let features = self.guard.data.dataset().features().len() as u64;
                let scores = tells(DisclosureKind::Scores, features);
                let scores = agreed.summed_scores.then_some(scores);
                (Counted::Ranking, rankings, scores)
            }
            // Gradients where every row is on one side of the boundary are sums of columns as well.
            Step::Sums { numbers } => {
                let sums = tells(DisclosureKind::Training, *numbers);
                (Counted::Ranking, rankings, Some(sums))
            }
            // From here on the job has these providers: with others its training rows would be others.
            Step::Moments { .. } => (
                Counted::Ranking,
                rankings,
                Some(tells(DisclosureKind::Training, 0)),
            ),
            Step::Gradient { .. } => {
                let gradient = tells(DisclosureKind::Training, agreed.grant.gradient);
                (
                    Counted::Iteration,
                    agreed.grant.iterations_most,
                    Some(gradient),
                )
            }
            Step::Evaluation { .. } => {
                let each = limits.evaluations_per_model.get();
                let counts = tells(DisclosureKind::Training, agreed.counts);
                let most = each.saturating_mul(agreed.models);
                (Counted::Evaluation, most, Some(counts))
            }
        }
    }

    /// Refuses what the ledger would refuse later, before anything is paid for.
    fn foresee(&self, agreed: &Agreed, iterations: u64) -> Result<(), LedgerError> {
        let (guard, data_set) = (self.guard, &self.guard.policy.data_set);
        let left = agreed.request.iterations.saturating_sub(iterations);
        // A job that comes back may have had its counts.
        let counts = match (agreed.held_out.is_some(), iterations) {
            (true, 0) => agreed.models.saturating_mul(agreed.counts),
            _ => 0,
        };
        let gradients = left.saturating_mul(agreed.grant.gradient);
        let numbers = gradients.saturating_add(counts);
        let scores = agreed.summed_scores.then_some((DisclosureKind::Scores, 0));
        let release = agreed.request.epsilon.map(|_| (DisclosureKind::Release, 0));
        let parts = [Some((DisclosureKind::Training, numbers)), scores, release];
        for (kind, numbers) in parts.into_iter().flatten() {
            let disclosure = agreed.disclosure(guard, kind, numbers);
            guard.ledger.foresee(&agreed.key, data_set, &disclosure)?;
        }
        Ok(())
    }

    /// What private jobs may cost, or why there is none.
    fn private_cap(&self, key: &JobKey) -> Result<PrivateCap, Refusal> {
        let cap = self.guard.policy.limits.private_cap();
        cap.ok_or_else(|| self.refuse(key, JobRefusal::NoPrivateBudget))
    }

    fn request(&self, proposal: &Proposal) -> Result<JobRequest, JobRefusal> {
        let facts = self.guard.data.facts(proposal.job.held_out());
        let own = self.guard.identity.verifying_key();
        let keys: Vec<VerifyingKey> = proposal
            .parties
            .identities
            .iter()
            .map(|text| parse_key(text))
            .collect::<Option<_>>()
            .ok_or(JobRefusal::Identity)?;
        if !keys.contains(&own) {
            return Err(JobRefusal::NotAmong);
        }
        if proposal.job.spending() == Some(&Spending::Automatic) {
            return Err(JobRefusal::AutomaticEpsilon);
        }
        let others = keys.iter().filter(|key| **key != own);
        let scored = match proposal.scoring() {
            Scoring::Nobody => false,
            Scoring::Everybody(_) => true,
            Scoring::One(_, chooser) => keys.get(chooser) == Some(&own),
        };
        // Which features take part, and which of them are published, comes with the split and is
        // looked at again then. Until then, those that may.
        let allowed = self.guard.policy.columns_of(self.peer);
        let features = match allowed {
            Some(allowed) if !scored => allowed.to_vec(),
            _ => facts.features.clone(),
        };
        let others = others.map(PeerFingerprint::of_identity).collect();
        let named = (proposal.id.to_string(), &proposal.job);
        Ok(JobRequest {
            features,
            published: Published::Named(Vec::new()),
            ..JobRequest::of(named, &facts, scored, others)
        })
    }
}

impl Guard for SessionGuard<'_> {
    fn admit(&self, proposal: &Proposal) -> Result<Admission, Refusal> {
        let guard = self.guard;
        let key = JobKey {
            peer: self.peer.fingerprint,
            id: proposal.id.to_string(),
        };
        if self.stop.is_set() {
            return Err(Refusal::Stopping);
        }
        if proposal.seeded {
            let words = "the data user draws reproducible masks, which do not protect its model";
            tracing::warn!(job = key.id, words);
        }
        let asked = proposal.job.data_set().as_str();
        if asked != guard.policy.data_set {
            let refusal = JobRefusal::DataSet {
                asked: asked.to_owned(),
                offered: guard.policy.data_set.clone(),
            };
            return Err(self.refuse(&key, refusal));
        }
        let request = self.request(proposal).map_err(|e| self.refuse(&key, e))?;
        let held_out = proposal.job.held_out();
        let grant = self.judge(&key, held_out, &request)?;
        let terms = JobTerms {
            label: self.peer.label.clone(),
            data_set: guard.policy.data_set.clone(),
            engine: request.engine.to_string(),
            request: terms_of(&proposal.job, guard.data.digest())
                .map_err(|e| self.refuse(&key, e))?,
        };
        let failed = |e| self.ledger_refusal(&key, e);
        self.reserve(&key, &request, proposal).map_err(failed)?;
        let iterations = guard.ledger.open_job(&key, &terms).map_err(failed)?;
        let ledger = guard.ledger.head().map_err(failed)?;
        let agreed = Agreed {
            provider_set: provider_set(&request, &guard.identity),
            summed_scores: matches!(proposal.scoring(), Scoring::Everybody(_)),
            key,
            request,
            grant,
            held_out,
            models: u64::from(proposal.evaluations()),
            counts: counts(proposal),
        };
        let key = &agreed.key;
        let foreseen = self.foresee(&agreed, iterations);
        foreseen.map_err(|e| self.ledger_refusal(key, e))?;
        tracing::info!(job = key.id, iterations, "job admitted");
        let admission = Admission {
            data: Arc::clone(guard.data.dataset()),
            schema: Arc::clone(guard.data.schema()),
            persons: guard.data.persons().cloned(),
            row_seed: guard.row_seed(key, &agreed.provider_set)?,
            minimum_batch: count(guard.policy.limits.rows_per_batch_min),
            minimum_held_out: count(guard.policy.limits.held_out_rows_min),
            ledger: Some(ledger),
            next_step: guard
                .ledger
                .next_step(key)
                .map_err(|e| self.ledger_refusal(key, e))?,
            trusted_most: self.policy.trusted_most(&agreed.request),
        };
        self.remember(agreed);
        Ok(admission)
    }

    fn agree_split(&self, _job: JobId, split: &Split) -> Result<(), Refusal> {
        let mut agreed = self.agreed()?;
        let features = self.guard.data.dataset().features();
        let names = |part: &[usize]| -> Vec<String> {
            let known = part.iter().filter_map(|&feature| features.get(feature));
            known.map(|feature| feature.name.clone()).collect()
        };
        let published = names(&split.published);
        agreed.request.features = [names(&split.encrypted), published.clone()].concat();
        agreed.request.published = Published::Named(published);
        agreed.grant = self.judge(&agreed.key, agreed.held_out, &agreed.request)?;
        self.remember(agreed);
        Ok(())
    }

    fn release(
        &self,
        _job: JobId,
        charge: Charge,
        make: &mut dyn FnMut(Receipt) -> Result<Vec<u8>, Refusal>,
    ) -> Result<Vec<u8>, Refusal> {
        let guard = self.guard;
        let agreed = self.agreed()?;
        let mut request = agreed.request.clone();
        let columns = charge.columns().iter().map(|c| c.name.clone());
        request.published = Published::Named(columns.collect());
        request.epsilon = Some(charge.total());
        request.mechanism = charge.mechanism();
        self.judge(&agreed.key, agreed.held_out, &request)?;
        let disclosure = agreed.disclosure(guard, DisclosureKind::Release, 0);
        let disclosed = guard
            .ledger
            .disclose(&agreed.key, &guard.policy.data_set, &disclosure);
        disclosed.map_err(|e| self.ledger_refusal(&agreed.key, e))?;
        let nothing = || self.refuse(&agreed.key, JobRefusal::PublishesNothing);
        let total = guard.policy.limits.epsilon_total.ok_or_else(nothing)?;
        let content = self
            .buy_and_store(&agreed.key, &charge, total, make)
            .map_err(|failure| match failure {
                ReleaseFailure::Ledger(error) => self.ledger_refusal(&agreed.key, error),
                ReleaseFailure::Refused(refusal) => refusal,
            })?;
        self.show_budget();
        Ok(content)
    }

    fn reserve(&self, _job: JobId, plan: AgreedPlan) -> Result<(), Refusal> {
        let agreed = self.agreed()?;
        let cap = self.private_cap(&agreed.key)?;
        let data_set = &self.guard.policy.data_set;
        let held = self.guard.ledger.hold(&agreed.key, data_set, plan, &cap);
        held.map_err(|e| self.ledger_refusal(&agreed.key, e))
    }

    fn begin(&self, _job: JobId, step: &Step) -> Result<(), Refusal> {
        if self.stop.is_set() {
            return Err(Refusal::Stopping);
        }
        if step.number().is_none() || self.answering.swap(true, Ordering::Relaxed) {
            return Ok(());
        }
        let agreed = self.agreed()?;
        let tried = self.guard.ledger.try_answer(&agreed.key);
        tried.map_err(|e| self.ledger_refusal(&agreed.key, e))
    }

    fn record(&self, _job: JobId, step: &Step, plan: Option<AgreedPlan>) -> Result<(), Refusal> {
        let (guard, agreed) = (self.guard, self.agreed()?);
        let (what, per_job, disclosure) = self.told(&agreed, step);
        let cap = match step.cost() {
            Some(_) => Some(self.private_cap(&agreed.key)?),
            None => None,
        };
        let answer = AnswerRecord {
            step,
            what,
            limits: CountLimits {
                per_job,
                per_day: guard.policy.limits.iterations_per_day.get(),
            },
            disclosure: disclosure.as_ref(),
            cap,
            plan,
        };
        let recorded = guard
            .ledger
            .answer(&agreed.key, &guard.policy.data_set, &answer);
        recorded.map_err(|e| self.ledger_refusal(&agreed.key, e))?;
        if what == Counted::Iteration {
            guard.metrics.iteration_finished();
        }
        if step.cost().is_some() {
            self.show_budget();
        }
        Ok(())
    }

    fn end_cheating(&self, _job: JobId) -> Result<(), Refusal> {
        let agreed = self.agreed()?;
        let ended = self.guard.ledger.end_cheating(&agreed.key);
        ended.map_err(|e| self.ledger_refusal(&agreed.key, e))
    }

    fn charged(&self, _job: JobId) -> Result<Charged, Refusal> {
        let (guard, agreed) = (self.guard, self.agreed()?);
        let failed = |e| self.ledger_refusal(&agreed.key, e);
        let paid = guard.ledger.paid_by(&agreed.key).map_err(failed)?;
        let limits = &guard.policy.limits;
        let cap = limits.private_cap().filter(|_| limits.privacy_room_told);
        let room = |cap| {
            let data_set = &guard.policy.data_set;
            guard.ledger.private_room(&agreed.key, data_set, &cap)
        };
        Ok(Charged {
            job: paid.charged(),
            left: cap.map(room).transpose().map_err(failed)?,
        })
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

fn count(limit: NonZeroU64) -> usize {
    usize::try_from(limit.get()).unwrap_or(usize::MAX)
}
