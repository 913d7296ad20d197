//! What the data user checks before the job goes on.

use super::outcome::ProviderSummary;
use super::spec::{Checkpoint, JobSpec};
use crate::engine::columns::columns_of;
use crate::engine::{Joined, Part, Terms};
use crate::error::{BadJob, JobError, PeerProblem};
use crate::message::Acceptance;
use crate::proposal::{Proposal, Split};
use heda_learn::optimise::Optimiser;
use heda_learn::resident::Measure;

/// A provider's part, if it can be believed; at most `limit` rows are possible.
pub(super) fn check_acceptance(
    spec: &JobSpec,
    limit: usize,
    acceptance: &Acceptance,
) -> Result<Part, PeerProblem> {
    let (rows, held_out) = (acceptance.rows, acceptance.held_out);
    let refused = |reason: &str| {
        let reason = format!("{rows} training and {held_out} held-out rows: {reason}");
        Err(PeerProblem::message("acceptance", reason))
    };
    let total = rows.saturating_add(held_out);
    if rows == 0 || total > limit {
        return refused(&format!("between 1 and {limit} rows are possible"));
    }
    let expected = total as u64 * u64::from(spec.holdout_permille) / 1000;
    if held_out as u64 != expected {
        return refused(&format!("{expected} of them are to be held out"));
    }
    if held_out == 0 && spec.holdout_permille > 0 {
        return refused("too few to hold any out; hold out a larger share, or no rows at all");
    }
    let ledger = acceptance.ledger.as_ref();
    if ledger.is_some_and(|ledger| !ledger.is_well_formed()) {
        let reason = "the head of its ledger is no pair of hashes";
        return Err(PeerProblem::message("acceptance", reason));
    }
    Ok(Part { rows, held_out })
}

/// What some provider could not do with this split is refused before anyone pays for a release.
pub(super) fn check_capacity(
    spec: &JobSpec,
    proposal: &Proposal,
    joined: &[Joined],
    split: &Split,
) -> Result<(), JobError> {
    let (features, columns) = columns_of(&spec.schema.features(), split);
    let terms = Terms {
        proposal,
        features: &features,
        columns: &columns,
    };
    let engine = spec.engine.implementation()?;
    for party in joined {
        engine
            .check(&terms, party.part)
            .map_err(|reason| BadJob::Part {
                name: party.name.clone(),
                reason,
            })?;
    }
    let rows: usize = joined.iter().map(|party| party.part.held_out).sum();
    let limit = engine.limits().held_out;
    if rows > limit {
        return Err(BadJob::HeldOut { rows, limit }.into());
    }
    Ok(())
}

/// Masks that do not cancel leave numbers that look like any others. Looked at when the conversation
/// is over: from an earlier reaction a provider could read which place of its table was chosen.
pub(super) fn check_counts(providers: &[ProviderSummary], counted: &[u64]) -> Result<(), JobError> {
    let rows: usize = providers.iter().map(|provider| provider.held_out).sum();
    match counted.iter().all(|count| *count == rows as u64) {
        true => Ok(()),
        false => Err(JobError::Counts { rows }),
    }
}

/// Whether a checkpoint belongs to this job.
pub(super) fn check_resume(
    spec: &JobSpec,
    split: &Split,
    checkpoint: Option<&Checkpoint>,
) -> Result<(), JobError> {
    let Some(checkpoint) = checkpoint else {
        return Ok(());
    };
    if checkpoint.job != spec.job || checkpoint.split != *split {
        return Err(BadJob::OtherCheckpoint.into());
    }
    let (_, columns) = columns_of(&spec.schema.features(), split);
    let settings = spec.steps(columns.width)?;
    let fits = |optimiser: &Optimiser| {
        *optimiser.settings() == settings && optimiser.beta().len() == columns.width + 1
    };
    let models = spec.positives.len();
    let counts = checkpoint.optimisers.len() <= models
        && checkpoint.histograms.len() <= models
        && checkpoint.errors.len() <= Measure::ALL.len();
    if !counts || !checkpoint.optimisers.iter().all(fits) {
        return Err(BadJob::CheckpointSettings.into());
    }
    Ok(())
}
