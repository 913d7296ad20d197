//! Whether a provider's rows fit a proposal, and which of them train.

use crate::description::{Job, JobFault};
use crate::error::{PeerProblem, ServeError, Unfit};
use crate::guard::{Admission, SMALLEST_BATCH};
use crate::rounds::HeldOut;
use crate::rows::RowOrder;

/// Whether a job is about the rows that were admitted.
pub(super) fn check_fit(job: &Job, admission: &Admission) -> Result<(), ServeError> {
    job.check_schema(&admission.schema)
        .map_err(|fault| match fault {
            JobFault::Schema { theirs, ours } => Unfit::Schema { theirs, ours }.into(),
            fault => PeerProblem::message("proposal", fault).into(),
        })
}

/// Which rows train and which are held out. Where persons are protected, all rows of one are on the
/// same side.
pub(super) fn row_order(job: &Job, admission: &Admission) -> RowOrder {
    let (held_out, seed) = (job.held_out(), &admission.row_seed);
    match admission.persons.as_deref() {
        Some(persons) if job.privacy().is_some() => RowOrder::draw_persons(persons, held_out, seed),
        _ => RowOrder::draw(admission.data.rows(), held_out, seed),
    }
}

/// Whether there are rows enough for what is asked.
pub(super) fn check_rows(
    job: &Job,
    admission: &Admission,
    order: &RowOrder,
) -> Result<(), ServeError> {
    let minimum = admission.minimum_batch.max(SMALLEST_BATCH);
    let smallest = order.training.len() / job.batches() as usize;
    if smallest < minimum {
        let (rows, least) = (smallest, minimum);
        return Err(Unfit::Batch { rows, least }.into());
    }
    // A few held-out rows are as telling as a small batch: their histogram, and the difference
    // between gradients with and without them.
    let held_out = order.held_out.len();
    let minimum = admission.minimum_held_out.max(SMALLEST_BATCH);
    if job.held_out().is_some() && held_out < minimum {
        let (rows, least) = (held_out, minimum);
        return Err(Unfit::HeldOut { rows, least }.into());
    }
    let choosing = HeldOut::Choosing.of(held_out).len();
    if job.path().is_some() && choosing < minimum {
        let (rows, least) = (choosing, minimum);
        return Err(Unfit::Choosing { rows, least }.into());
    }
    Ok(())
}
