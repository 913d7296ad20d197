//! Engine `resident`: rows stay with their provider. The provider computes on its rows in clear
//! and builds every table and payload; the data user only chooses, by oblivious transfer.
//!
//! What it computes: Σ_i x_i·(code_i − zero_i) over a batch of everybody's rows, exactly as
//! `heda_learn::resident` does it in clear. Steps S and R1 to R7 of `docs/resident.md`.
//!
//! Who learns what: the provider nothing but which batch and class is asked for. The data user,
//! whatever it sends, a sum over all providers in which every row has a weight between its least
//! and its greatest derivative.
//!
//! | step | file |
//! | --- | --- |
//! | public numbers, lengths of messages | `shape.rs` |
//! | R1, R2: shares of the scores | `scores.rs` |
//! | R3, R4: a symbol a row | `symbols.rs` |
//! | R5, R6: the sum | `payload.rs` |
//! | the roles, step by step, without I/O | `provider.rs`, `user.rs` |
//! | E1 to E4: counts of held-out rows | `evaluate.rs`, `lanes.rs` |
//! | what moves the messages | `serve.rs`, `ask.rs` |

mod ask;
#[cfg(test)]
mod cheat_tests;
mod evaluate;
#[cfg(test)]
mod job_tests;
mod lanes;
mod payload;
mod provider;
mod rows;
mod scores;
mod serve;
mod shape;
mod symbols;
#[cfg(test)]
mod tests;
mod user;

use super::{
    Implementation, Impossible, Joined, Limits, Part, ProviderEngine, ProviderRows, Terms,
    UserEngine,
};
use crate::error::{JobError, PeerProblem, ServeError};
use crate::parallel::RemoteError;
use heda_blocks::channel::Channel;
use heda_crypto::masking::Masks;
use heda_crypto::random::Randomness;
use heda_crypto::transfer::{FieldBits, MAX_PAD_BYTES, TransferError};
use heda_learn::gradient::Batch;
use heda_learn::resident::{Resolution, ResolutionError};
use shape::{ColumnKind, Shape};

/// The engine.
pub(crate) struct Resident;

/// Weights of fifteen bits: a grid of 2^-10 for |β| ≤ 16.
const DIGITS: u32 = 3;
/// Derivatives of eight bits: their rounding is below that of the index.
const CODE_BITS: u32 = 8;
/// Scores within ±16.
const BOUND_BITS: u32 = 4;
/// Indices of eight bits.
const FIELD_BITS: u32 = 8;
/// Weights of twenty bits for the evaluation.
const COUNT_DIGITS: u32 = 4;
/// Counts of held-out rows.
const COUNT_BITS: u32 = 20;
/// A batch must fit one request of transfers, eight for each row.
const ROW_LIMIT: usize = 1 << 18;

/// Tags of this engine's messages, in wire order.
mod tag {
    /// S: base transfers and trees, three messages.
    pub(super) const SETUP: u8 = 0x30;
    /// Requests of transfers for the next gradient, U to P.
    pub(super) const AHEAD: u8 = 0x31;
    /// R1, R2
    pub(super) const COLUMNS: u8 = 0x32;
    /// R3, E2, E3
    pub(super) const QUESTION: u8 = 0x33;
    /// R4, E2, E3
    pub(super) const SYMBOLS: u8 = 0x34;
    /// R5, E4
    pub(super) const CHOICES: u8 = 0x35;
    /// R6, E4
    pub(super) const PAYLOAD: u8 = 0x36;
}

/// Why the engine cannot do a job.
#[derive(Debug, thiserror::Error)]
enum Unable {
    /// Grids that it is not built for.
    #[error(transparent)]
    Resolution(#[from] ResolutionError),
    /// A field that the transfers do not have.
    #[error(transparent)]
    Field(#[from] TransferError),
    /// More rows in a batch than a request holds.
    #[error(
        "a batch has {rows} rows of a provider; engine resident takes {ROW_LIMIT}: use batches"
    )]
    Rows {
        /// How many.
        rows: usize,
    },
    /// More columns than a pad is long.
    #[error("{columns} columns; engine resident takes {}", MAX_PAD_BYTES / 8 - 1)]
    Columns {
        /// How many.
        columns: usize,
    },
}

/// The grids of a job.
fn resolution(terms: &Terms<'_>) -> Result<Resolution, ResolutionError> {
    let proposal = terms.proposal;
    Resolution::new(
        proposal.value_bits,
        DIGITS,
        proposal.index_bits,
        CODE_BITS,
        BOUND_BITS,
    )
}

/// What both sides know for gradients.
fn training_shape(terms: &Terms<'_>, row_bits: u32) -> Result<Shape, Unable> {
    Ok(Shape {
        resolution: resolution(terms)?,
        kinds: kinds(terms),
        hidden: terms.columns.hidden.clone(),
        row_bits,
        tables: 1,
        field: FieldBits::new(FIELD_BITS)?,
    })
}

/// What both sides know for the evaluation: nothing of a held-out row is published.
fn count_shape(terms: &Terms<'_>) -> Result<Shape, Unable> {
    Ok(Shape {
        resolution: Resolution::new(
            terms.proposal.value_bits,
            COUNT_DIGITS,
            FIELD_BITS,
            lanes::LANE_BITS,
            BOUND_BITS,
        )?,
        kinds: kinds(terms),
        hidden: (0..terms.columns.width).collect(),
        row_bits: COUNT_BITS,
        tables: 2,
        field: FieldBits::new(FIELD_BITS)?,
    })
}

/// A feature of several columns is a category, one column a level.
fn kinds(terms: &Terms<'_>) -> Vec<ColumnKind> {
    let features = terms.features.iter();
    features
        .flat_map(|feature| {
            let kind = match feature.columns.len() {
                1 => ColumnKind::Number,
                _ => ColumnKind::Indicator,
            };
            feature.columns.clone().map(move |_| kind)
        })
        .collect()
}

/// The batch that both sides prepare ahead.
fn next_batch(batch: Batch) -> Batch {
    Batch::new((batch.index() + 1) % batch.count(), batch.count())
}

impl Implementation for Resident {
    fn sums_over_providers(&self) -> bool {
        true
    }

    fn asks_for_all(&self) -> bool {
        true
    }

    fn limits(&self) -> Limits {
        Limits {
            rows: ROW_LIMIT * 64,
            held_out: ROW_LIMIT,
        }
    }

    fn check(&self, terms: &Terms<'_>, part: Part) -> Result<(), Impossible> {
        resolution(terms).map_err(|e| Impossible::job(Unable::from(e)))?;
        let rows = part.rows.div_ceil(terms.batches()).max(part.held_out);
        if rows > ROW_LIMIT {
            return Err(Impossible::job(Unable::Rows { rows }));
        }
        let columns = terms.columns.width;
        if (columns + 1) * 8 > MAX_PAD_BYTES {
            return Err(Impossible::job(Unable::Columns { columns }));
        }
        Ok(())
    }

    fn set_up_user(
        &self,
        terms: &Terms<'_>,
        parties: Vec<Joined>,
        randomness: &Randomness,
    ) -> Result<Box<dyn UserEngine>, JobError> {
        Ok(Box::new(ask::ResidentUser::set_up(
            terms, parties, randomness,
        )?))
    }

    fn set_up_provider(
        &self,
        channel: &mut Channel,
        terms: &Terms<'_>,
        rows: ProviderRows,
        masks: Masks,
        randomness: &Randomness,
    ) -> Result<Box<dyn ProviderEngine>, ServeError> {
        Ok(Box::new(serve::ResidentProvider::set_up(
            channel, terms, rows, masks, randomness,
        )?))
    }
}

/// Why a step failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
enum StepError {
    /// A message of another length than the public numbers give it.
    #[error("{what} has {got} bytes where {expected} are due")]
    Length {
        /// Which message.
        what: &'static str,
        /// What arrived.
        got: usize,
        /// What is due.
        expected: usize,
    },
    /// The peer's request failed its check, or a message does not belong here.
    #[error(transparent)]
    Transfer(#[from] TransferError),
}

/// A message as it arrived, if it has the length that it must have.
fn exactly<'a>(
    what: &'static str,
    message: &'a [u8],
    expected: usize,
) -> Result<&'a [u8], StepError> {
    match message.len() {
        got if got == expected => Ok(message),
        got => Err(StepError::Length {
            what,
            got,
            expected,
        }),
    }
}

/// A message that is made of parts with known lengths.
fn parts<'a, const N: usize>(
    what: &'static str,
    message: &'a [u8],
    lengths: [usize; N],
) -> Result<[&'a [u8]; N], StepError> {
    let mut rest = exactly(what, message, lengths.iter().sum())?;
    Ok(lengths.map(|length| {
        let (part, after) = rest.split_at(length);
        rest = after;
        part
    }))
}

/// The peer's message is at fault: our own calls have the lengths that they need.
impl From<StepError> for PeerProblem {
    fn from(error: StepError) -> Self {
        Self::message("transfers", error)
    }
}

impl From<StepError> for RemoteError {
    fn from(error: StepError) -> Self {
        Self::Peer(error.into())
    }
}

impl From<StepError> for ServeError {
    fn from(error: StepError) -> Self {
        Self::Peer(error.into())
    }
}

impl From<TransferError> for RemoteError {
    fn from(error: TransferError) -> Self {
        StepError::from(error).into()
    }
}

impl From<TransferError> for ServeError {
    fn from(error: TransferError) -> Self {
        StepError::from(error).into()
    }
}
