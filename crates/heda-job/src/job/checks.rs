//! What the data user checks before the job goes on.

use super::spec::{Checkpoint, JobSpec, Tried};
use crate::engine::columns::columns_of;
use crate::engine::{Joined, Part, Terms};
use crate::error::{BadJob, JobError, PeerProblem};
use crate::message::Acceptance;
use crate::plan::JobPlan;
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
    let expected = spec.job.held_out().of(total as u64);
    // Where persons are protected a share of them is held out, with one row each: fewer rows.
    let fits = match spec.job.privacy() {
        Some(_) => held_out as u64 <= expected,
        None => held_out as u64 == expected,
    };
    if !fits {
        return refused(&format!("{expected} of them are to be held out"));
    }
    if held_out == 0 && spec.job.held_out().is_some() {
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
    (proposal, plan): (&Proposal, Option<&JobPlan>),
    joined: &[Joined],
    split: &Split,
) -> Result<(), JobError> {
    let (features, columns) = columns_of(&spec.schema.features(), split);
    let terms = Terms {
        proposal,
        features: &features,
        columns: &columns,
        plan,
    };
    let engine = spec.job.engine().implementation();
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
pub(super) fn check_counts(counted: &[CountedRows]) -> Result<(), JobError> {
    let off = counted.iter().find(|count| count.found != count.announced);
    off.map_or(Ok(()), |count| {
        let rows = count.announced as usize;
        Err(JobError::Counts { rows })
    })
}

/// Rows that an evaluation counted, and how many there are by what providers announced.
#[derive(Debug, Clone, Copy)]
pub(super) struct CountedRows {
    pub(super) found: u64,
    pub(super) announced: u64,
}

/// Whether a checkpoint belongs to this job.
pub(super) fn check_resume(
    (spec, plan): (&JobSpec, Option<&JobPlan>),
    split: &Split,
    checkpoint: Option<&Checkpoint>,
) -> Result<(), JobError> {
    let Some(checkpoint) = checkpoint else {
        return Ok(());
    };
    if checkpoint.job != spec.id || checkpoint.split != *split {
        return Err(BadJob::OtherCheckpoint.into());
    }
    let (_, columns) = columns_of(&spec.schema.features(), split);
    let penalties = spec.job.penalties().map_or(1, |path| path.values().len());
    let fits = |(model, optimiser): (usize, &Optimiser)| {
        let done = checkpoint.tried.len().saturating_sub(model * penalties);
        let bought = checkpoint.bought.as_ref();
        let settings = spec.steps(plan, done.min(penalties - 1), bought);
        let same = settings.is_ok_and(|settings| *optimiser.settings() == settings);
        same && optimiser.beta().len() == columns.width + 1
    };
    let models = spec.job.positives().len();
    let counts = checkpoint.optimisers.len() <= models
        && checkpoint.histograms.len() <= models
        && checkpoint.noisy.len() <= 2 * models
        && checkpoint.errors.len() <= Measure::ALL.len();
    let counts = counts && tries_fit(spec, checkpoint, penalties, columns.width + 1);
    if !counts || !checkpoint.optimisers.iter().enumerate().all(fits) {
        return Err(BadJob::CheckpointSettings.into());
    }
    Ok(())
}

/// Whether the penalties that were tried are those of models that were begun, and have what the
/// choice goes by.
fn tries_fit(spec: &JobSpec, checkpoint: &Checkpoint, penalties: usize, dimension: usize) -> bool {
    let (tried, begun) = (&checkpoint.tried, checkpoint.optimisers.len());
    let sound = |tried: &Tried| {
        let counted = match spec.job.is_numeric() {
            true => tried.errors.is_some(),
            false => tried.histogram.is_some(),
        };
        counted && tried.beta.len() == dimension && tried.beta.iter().all(|b| b.is_finite())
    };
    match spec.job.penalties() {
        None => tried.is_empty(),
        Some(_) => {
            let least = begun.saturating_sub(1) * penalties;
            (least..=begun * penalties).contains(&tried.len()) && tried.iter().all(sound)
        }
    }
}
