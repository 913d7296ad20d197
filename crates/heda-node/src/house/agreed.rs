//! What a house and a data user have agreed on in a session, and what of it is about to leave.

use super::TrainingHouse;
use super::ledger::{JobKey, Kind, Leaving};
use super::policy::circle::Circle;
use super::policy::{Grant, JobRequest};
use crate::identity::fingerprint::PeerFingerprint;
use ed25519_dalek::SigningKey;

/// What was agreed with a data user in this session.
#[derive(Clone)]
pub(super) struct Agreed {
    pub(super) key: JobKey,
    pub(super) request: JobRequest,
    pub(super) grant: Grant,
    pub(super) holdout_permille: u32,
    /// Evaluations: one a model, or one a measure of a number's errors; and one a penalty that is tried.
    pub(super) models: u64,
    /// Numbers of each.
    pub(super) counts: u64,
    /// All providers, this one among them.
    pub(super) circle: Circle,
    /// Whether the features are ranked by the sum of everybody's scores.
    pub(super) summed_scores: bool,
    /// Whether sums of columns are asked for.
    pub(super) standardise: bool,
}

impl Agreed {
    /// Something of this job that is about to leave. Numbers with noise are paid for, not counted,
    /// and may be subtracted from each other.
    pub(super) fn leaving(&self, house: &TrainingHouse, kind: Kind, numbers: u64) -> Leaving<'_> {
        let private = self.request.privacy.is_some();
        Leaving {
            kind,
            circle: &self.circle,
            numbers: if private { 0 } else { numbers },
            numbers_most: self.grant.lifetime_most,
            may_single_out: private || house.policy.limits.rosters_may_single_out,
        }
    }
}

/// All providers of a job.
pub(super) fn circle(request: &JobRequest, own: &SigningKey) -> Circle {
    let own = PeerFingerprint::of_identity(&own.verifying_key());
    request.co_providers.iter().copied().chain([own]).collect()
}
