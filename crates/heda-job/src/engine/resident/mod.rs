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
//! | N1 to N4: errors of held-out rows with a numeric label | `regression.rs` |
//! | what moves the messages | `serve.rs`, `ask.rs` |

mod ask;
mod ask_counts;
#[cfg(test)]
mod chain_tests;
#[cfg(test)]
mod cheat_tests;
#[cfg(test)]
mod choice_tests;
#[cfg(test)]
mod contract_tests;
#[cfg(test)]
mod conversation;
#[cfg(test)]
mod conversation_tests;
mod evaluate;
#[cfg(test)]
mod evaluation_tests;
#[cfg(test)]
mod hostile_tests;
#[cfg(test)]
mod job_tests;
#[cfg(test)]
mod label_tests;
mod lanes;
mod noise;
mod payload;
mod profile;
mod provider;
mod regression;
mod rows;
mod scores;
mod serve;
mod shape;
mod step;
mod symbols;
#[cfg(test)]
mod tests;
mod user;

pub(super) use ask::{Remote, ResidentUser};
pub use profile::{StepCost, profile};
pub(super) use serve::ResidentProvider;

use super::label_encoding::LabelEncoding;
use super::{
    Implementation, Impossible, Joined, Limits, Part, ProviderEngine, ProviderRows, Terms,
    UserEngine,
};
use crate::error::{JobError, ServeError};
use crate::histogram::{DECISION_EDGE, PRIVATE_EDGES};
use crate::proposal::Proposal;
use heda_blocks::channel::Channel;
use heda_crypto::bits::MOST_BITS;
use heda_crypto::random::Randomness;
use heda_crypto::transfer::{FieldBits, MAX_PAD_BYTES, TransferError};
use heda_learn::data::{Dataset, Feature};
use heda_learn::gradient::Batch;
use heda_learn::loss::LossKind;
use heda_learn::private::evaluation::{ROW_UNITS, ROWS_FOR_AREA};
use heda_learn::private::{ONE, PAYLOAD_LENGTH, SCORE_LENGTH};
use heda_learn::resident::{Encoding, GridError, PayloadColumn, Resolution, Span};
use heda_learn::scaling::Scaling;
use noise::{CountNoise, Noise, count_noise, noise};
use shape::Shape;
use step::{StepError, exactly, parts};

/// The engine.
pub(crate) struct Resident;

/// The least field of the transfers of the training: smaller ones send more bytes for each transfer.
const LEAST_FIELD_BITS: u32 = 6;
/// The largest. With one more transfer for every row it has room for the longest index.
const MOST_FIELD_BITS: u32 = 7;
/// Weights of twenty bits for the evaluation.
const COUNT_DIGITS: u32 = 4;
/// Places of the evaluation's tables.
const COUNT_FIELD_BITS: u32 = 8;
/// The largest bound of scores of the evaluation, as a power of two. There coefficients are shrunk
/// until no row can leave it; a score's range is told more finely the smaller it is.
const COUNT_BOUND_BITS: u32 = 5;
/// Bits of an error of a held-out row with a numeric label.
const ERROR_BITS: u32 = 16;
/// Counts of held-out rows.
const COUNT_BITS: u32 = 20;
/// The same with noise, in units of which a row is several: one bit for the sign, one for the counts, and no plan's
/// noise has more than the others.
const NOISY_COUNT_BITS: u32 = 40;
/// Rows of one provider in a batch; a batch is cut into blocks.
const ROW_LIMIT: usize = 1 << 24;
/// Rows of one provider, however many batches they are in.
const PROVIDER_ROW_LIMIT: usize = 1 << 30;
/// Held-out rows of all providers.
const HELD_OUT_LIMIT: usize = 1 << 18;

/// Tags of this engine's messages, in wire order.
mod tag {
    /// S: base transfers and trees, three messages.
    pub(super) const SETUP: u8 = 0x30;
    /// Requests of transfers for the next gradient, U to P.
    pub(super) const PREPROCESS: u8 = 0x31;
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
    /// R6: Q
    pub(super) const SUM: u8 = 0x37;
}

/// Why the engine cannot do a job.
#[derive(Debug, thiserror::Error)]
enum Unable {
    /// Grids that it is not built for, or columns that do not fit them.
    #[error(transparent)]
    Grid(#[from] GridError),
    /// A derivative of both signs needs more than one bit.
    #[error(
        "derivatives of one bit suit only losses of one sign; use at least 2 code_bits with {loss}"
    )]
    OneBit {
        /// Which loss.
        loss: LossKind,
    },
    /// Sums that no word holds.
    #[error("a sum would have {bits} bits, and {MOST_BITS} are possible; use fewer code_bits")]
    Sums {
        /// How many.
        bits: u32,
    },
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
    /// More held-out rows than are counted.
    #[error(
        "{rows} rows of a provider are held out, and {HELD_OUT_LIMIT} are possible; hold out fewer"
    )]
    HeldOut {
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

/// What the rows of a job hold: all parties derive the same from the proposal.
fn encoding(terms: &Terms<'_>) -> Result<Encoding, GridError> {
    let value_bits = terms.proposal.job.resolution().value_bits();
    if terms.proposal.job.privacy().is_none() {
        return Encoding::of_features(terms.features, value_bits);
    }
    // The bias is a column like the others, in values and in the payload.
    let width = terms.columns.width + 1;
    let span = Span::Between {
        low: -SCORE_LENGTH,
        high: SCORE_LENGTH,
    };
    let payload = PayloadColumn {
        largest: PAYLOAD_LENGTH.unsigned_abs(),
        unit: 1.0 / f64::from(ONE),
    };
    Encoding::new(value_bits, [(width, span)])?
        .with_number_norm(SCORE_LENGTH.unsigned_abs())
        .with_payload(vec![payload; width])
}

/// Bits of a number of rows.
fn bits_of(rows: usize) -> u32 {
    super::row_bits(1, std::iter::once(rows))
}

/// The field of the training's transfers, small, because both sides work through all of its elements. Indices that do
/// not fit are divided among two transfers. All that a resolution may become with the number of rows has the same one.
fn training_field(resolution: Resolution) -> Result<FieldBits, TransferError> {
    let most = match resolution.is_by_rows() {
        true => MOST_FIELD_BITS,
        false => resolution.index_bits(),
    };
    FieldBits::new(most.clamp(LEAST_FIELD_BITS, MOST_FIELD_BITS))
}

/// What both sides know for gradients.
fn training_shape(terms: &Terms<'_>, encoding: &Encoding) -> Result<Shape, Unable> {
    let resolution = terms.proposal.job.resolution();
    let field = training_field(resolution)?;
    let (Some(noise), Some(plan)) = (noise(terms), terms.plan) else {
        let hidden = terms.columns.hidden.clone();
        return Ok(Shape::new(encoding, resolution, hidden, field));
    };
    let hidden = (0..encoding.width()).collect();
    Ok(Shape {
        noise_bits: noise.bits(),
        bands_total: plan.plan().passes().bands_total(),
        ..Shape::new(encoding, resolution, hidden, field)
    })
}

/// The ranges of scores that a private job's table has. All parties see how many rows are held out,
/// from what the proposal says.
fn private_edges(proposal: &Proposal) -> &'static [f64] {
    match proposal.held_out_rows() >= ROWS_FOR_AREA {
        true => &PRIVATE_EDGES,
        false => &DECISION_EDGE,
    }
}

/// What both sides know for the evaluation: nothing of a held-out row is published.
fn count_shape(terms: &Terms<'_>, encoding: &Encoding) -> Result<Shape, Unable> {
    let training = terms.proposal.job.resolution();
    let numeric = terms.proposal.job.is_numeric();
    let (code_bits, bound_bits) = match numeric {
        // Shrunken coefficients would predict something else.
        true => (ERROR_BITS, training.bound_bits()),
        false => (
            lanes::LANE_BITS,
            training.bound_bits().min(COUNT_BOUND_BITS),
        ),
    };
    let resolution = Resolution::new(
        training.value_bits(),
        COUNT_DIGITS,
        COUNT_FIELD_BITS,
        code_bits,
        bound_bits,
    )?;
    let field = FieldBits::new(COUNT_FIELD_BITS)?;
    let hidden = (0..encoding.width()).collect();
    let shape = Shape {
        row_bits: COUNT_BITS,
        tables: 2,
        ..Shape::new(encoding, resolution, hidden, field)
    };
    if numeric {
        // Of each row its error alone is added up.
        return Ok(Shape {
            tables: 1,
            largest: vec![1],
            ..shape
        });
    }
    match terms.plan {
        None => Ok(shape),
        Some(_) => Ok(Shape {
            row_bits: NOISY_COUNT_BITS,
            edges: private_edges(terms.proposal),
            unit: ROW_UNITS.into(),
            ..shape
        }),
    }
}

/// Bytes of all messages of one gradient over so many rows of one provider, if these features, whose
/// columns follow one another, are encrypted and there are no others.
///
/// # Errors
/// If there are more columns than the engine takes.
pub fn gradient_bytes(
    features: &[Feature],
    rows: usize,
    resolution: Resolution,
) -> Result<usize, Impossible> {
    let encoding = Encoding::of_features(features, resolution.value_bits());
    let encoding = encoding.map_err(Impossible::job)?;
    let hidden = (0..encoding.width()).collect();
    let field = training_field(resolution).map_err(Impossible::job)?;
    let shape = Shape::new(&encoding, resolution, hidden, field).of_rows(bits_of(rows));
    let mut bytes = shape.sum_bytes();
    for block in shape.blocks(0..rows) {
        let rows = block.len();
        let preprocess = shape.preprocess_bytes(rows).map_err(Impossible::job)?;
        let question = shape.question_bytes(rows).map_err(Impossible::job)?;
        bytes += preprocess.iter().sum::<usize>()
            + shape.column_bytes(rows).iter().sum::<usize>()
            + question.iter().sum::<usize>()
            + shape.symbol_bytes(rows)
            + shape.choice_bytes(rows)
            + shape.payload_bytes(rows);
    }
    Ok(bytes)
}

/// Whether a provider's held-out rows can be counted.
pub(super) fn check_held_out(terms: &Terms<'_>, part: Part) -> Result<(), Impossible> {
    let counted = || -> Result<(), Unable> {
        let rows = part.held_out;
        if rows > HELD_OUT_LIMIT {
            return Err(Unable::HeldOut { rows });
        }
        let columns = terms.columns.width;
        if (columns + 1) * 8 > MAX_PAD_BYTES {
            return Err(Unable::Columns { columns });
        }
        count_shape(terms, &encoding(terms)?).map(|_| ())
    };
    counted().map_err(Impossible::job)
}

/// Whether the engine can do a job with a provider's training rows.
fn check(terms: &Terms<'_>, part: Part) -> Result<(), Unable> {
    let loss = terms.proposal.job.loss();
    // As it is for the most rows: nothing is cut more coarsely.
    let coarsest = terms.proposal.job.resolution().of_rows(u32::MAX);
    let both_signs = loss == LossKind::Ridge || terms.proposal.job.is_numeric();
    if both_signs && coarsest.code_bits() == 1 {
        return Err(Unable::OneBit { loss });
    }
    let rows = part.rows.div_ceil(terms.batches());
    if rows > ROW_LIMIT {
        return Err(Unable::Rows { rows });
    }
    let encoding = encoding(terms)?;
    // As many rows as there may be: the widest sums.
    let shape = training_shape(terms, &encoding)?.of_rows(bits_of(ROW_LIMIT));
    match shape.sum_bits().into_iter().max() {
        Some(bits) if bits > MOST_BITS => Err(Unable::Sums { bits }),
        _ => Ok(()),
    }
}

/// Blocks that are asked for before they are needed. Two, or the order of messages would be another.
const AHEAD_BLOCKS: usize = 2;

/// What the sessions of a job's transfers are bound to: the one of the training, and the one of the
/// evaluation.
fn contexts(terms: &Terms<'_>) -> [Vec<u8>; 2] {
    let job = &terms.proposal.id.0;
    [&b"training"[..], b"evaluation"].map(|purpose| [&job[..], purpose].concat())
}

/// The batch that both sides prepare in advance.
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

    fn rounding(&self, resolution: Resolution) -> f64 {
        resolution.rounding()
    }

    fn limits(&self) -> Limits {
        Limits {
            rows: PROVIDER_ROW_LIMIT,
            held_out: HELD_OUT_LIMIT,
        }
    }

    fn check(&self, terms: &Terms<'_>, part: Part) -> Result<(), Impossible> {
        check_held_out(terms, part)?;
        check(terms, part).map_err(Impossible::job)
    }

    fn set_up_user(
        &self,
        terms: &Terms<'_>,
        parties: Vec<Joined>,
        scaling: &Scaling,
        labels_as: &LabelEncoding,
        randomness: &Randomness,
    ) -> Result<Box<dyn UserEngine>, JobError> {
        Ok(Box::new(ask::ResidentUser::set_up(
            terms, parties, scaling, labels_as, randomness,
        )?))
    }

    fn set_up_provider(
        &self,
        channel: &mut Channel,
        terms: &Terms<'_>,
        (rows, _): (ProviderRows, Option<Dataset>),
        randomness: &Randomness,
    ) -> Result<Box<dyn ProviderEngine>, ServeError> {
        Ok(Box::new(serve::ResidentProvider::set_up(
            channel, terms, rows, randomness,
        )?))
    }
}
