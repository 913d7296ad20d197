//! What a guard and a data user have agreed on in a session, and what of it is about to leave.

use super::ledger::{Disclosure, DisclosureKind, JobKey, rows_in_terms};
use super::policy::provider_set::ProviderSet;
use super::policy::{Grant, JobRequest};
use super::{JobRefusal, ProviderService};
use crate::identity::fingerprint::PeerFingerprint;
use crate::system::unhex;
use ed25519_dalek::{SigningKey, VerifyingKey};
use heda_job::description::{Job, Share};
use heda_job::proposal::Proposal;

/// What was agreed with a data user in this session.
#[derive(Clone)]
pub(super) struct Agreed {
    pub(super) key: JobKey,
    pub(super) request: JobRequest,
    pub(super) grant: Grant,
    pub(super) held_out: Share,
    /// Evaluations: one a model, or one a measure of a number's errors; and one a penalty that is tried.
    pub(super) models: u64,
    /// Numbers of each.
    pub(super) counts: u64,
    /// All providers, this one among them.
    pub(super) provider_set: ProviderSet,
    /// Whether the features are ranked by the sum of everybody's scores.
    pub(super) summed_scores: bool,
}

impl Agreed {
    /// Something of this job that is about to leave. Numbers with noise are paid for, not counted,
    /// and may be subtracted from each other.
    pub(super) fn disclosure(
        &self,
        guard: &ProviderService,
        kind: DisclosureKind,
        numbers: u64,
    ) -> Disclosure<'_> {
        let private = self.request.privacy.is_some();
        Disclosure {
            kind,
            provider_set: &self.provider_set,
            numbers: if private { 0 } else { numbers },
            numbers_most: self.grant.lifetime_most,
            may_single_out: private || guard.policy.limits.rosters_may_single_out,
        }
    }
}

/// All providers of a job.
pub(super) fn provider_set(request: &JobRequest, own: &SigningKey) -> ProviderSet {
    let own = PeerFingerprint::of_identity(&own.verifying_key());
    request.co_providers.iter().copied().chain([own]).collect()
}

/// What may not change when a job comes back: the job itself. Who else takes part may change when a
/// provider was lost; the policy looks at that every time.
pub(super) fn terms_of(job: &Job, data: &str) -> Result<String, JobRefusal> {
    let digest = job.digest().map_err(JobRefusal::Terms)?;
    // A release is stored row by row: it cannot go on with other rows.
    Ok(format!("job {digest}{}", rows_in_terms(data)))
}

/// Numbers that an evaluation yields: counts of rows, or a part of the sums over a number's errors.
pub(super) fn counts(proposal: &Proposal) -> u64 {
    match proposal.job.is_numeric() {
        // On a path most are squared errors, with both sums of the labels.
        true if proposal.job.path().is_some() => heda_job::regression_metrics::WITH_SQUARES as u64,
        true => heda_job::regression_metrics::NUMBERS as u64 / u64::from(proposal.evaluations()),
        false => heda_job::histogram::NUMBERS as u64,
    }
}

/// A public key in hexadecimal digits.
pub(super) fn parse_key(text: &str) -> Option<VerifyingKey> {
    VerifyingKey::from_bytes(&unhex(text)?).ok()
}
