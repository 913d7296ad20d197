//! Held-out rows with a numeric label: the sum of their squared or absolute errors, and no
//! prediction shown to anyone.
//!
//! | step | who | what |
//! | --- | --- | --- |
//! | N1 | both | Shares of the scores as in R1 and R2, all columns hidden. |
//! | N2 | U ↔ P | As in R3 and R4 a symbol a row: the code of the error's square or size, for the row's own label. |
//! | N3 | U ↔ P | As in R5 and R6 with a payload of 1: the sum of the codes. |
//! | N4 | P → U | Q under masks; with the squares also the sum of the labels and of their squares. |
//!
//! Whatever U chooses, every row adds a number between nought and the largest error that counts.

use super::ask::{Remote, ResidentUser};
use super::rows::Rows;
use super::serve::ResidentProvider;
use super::shape::{Shape, TreeNumbers};
use super::user::{UserSum, whole_sums};
use super::{StepError, parts, payload, tag};
use crate::closing::Closing;
use crate::engine::EvaluationAsk;
use crate::error::{Defect, JobError, ServeError};
use crate::message::{Command, Message};
use crate::parallel::{RemoteError, ask_all};
use crate::regression_metrics::ErrorSum;
use crate::rounds::{Evaluation, HeldOut};
use heda_blocks::channel::Channel;
use heda_crypto::bits::{MOST_BITS, pack, packed_bytes, signed, unpack};
use heda_learn::resident::{CodeTable, Measure, Weights};
use zeroize::Zeroizing;

/// Purpose of aggregation masks.
const ERRORS_MASK: &str = "resident errors";
/// Sums of the labels, with the squares.
const LABEL_SUMS: usize = 2;
/// Fraction bits of a label, and of its square, in these sums.
const LABEL_FRACTION: f64 = 4096.0;

/// What is measured in an evaluation.
fn measure(number: u32) -> Option<Measure> {
    Measure::ALL.get(number as usize).copied()
}

/// How many sums of labels come with a measure.
fn label_sums(measure: Measure) -> usize {
    match measure {
        Measure::Square => LABEL_SUMS,
        Measure::Absolute => 0,
    }
}

/// Parts of the last message: Q, and the sums of the labels.
fn sum_bytes(shape: &Shape, measure: Measure) -> [usize; 2] {
    let labels = packed_bytes(label_sums(measure), MOST_BITS);
    [shape.sum_bytes(), labels]
}

/// Sums of the labels, and of their squares, in steps of 2^−12 of a deviation.
fn add_labels(held_out: &Rows, which: HeldOut) -> Zeroizing<Vec<u64>> {
    let batch = held_out.batch(which.of(held_out.count()), 0);
    let mut sums = Zeroizing::new(vec![0u64; LABEL_SUMS]);
    for row in 0..batch.count() {
        let label = batch.label(row).deviations();
        for (sum, value) in sums.iter_mut().zip([label, label * label]) {
            let whole = (value * LABEL_FRACTION).round() as i64;
            *sum = sum.wrapping_add(whole as u64);
        }
    }
    sums
}

impl ResidentProvider {
    /// N1 to N4 at P.
    pub(super) fn add_errors(
        &mut self,
        channel: &mut Channel,
        ask: Evaluation,
        closing: Closing<'_>,
    ) -> Result<(), ServeError> {
        let number = ask.number;
        let measure = measure(ask.class).ok_or(StepError::Length {
            what: "the number of the measure",
            got: ask.class as usize,
            expected: Measure::ALL.len(),
        })?;
        let shape = &self.count_shape;
        let table = CodeTable::of_errors(measure, shape.resolution);
        let batch = self.held_out.batch(ask.rows.of(self.held_out.count()), 0);
        let rows = batch.count();
        let mut rng = self.randomness.fork(ERRORS_MASK, number.into())?;
        // N1
        let preprocess =
            channel.receive(tag::PREPROCESS, shape.preprocess_bytes(rows)?.iter().sum())?;
        let numbers = TreeNumbers::Evaluation { number };
        let (columns, ready) = self
            .counting
            .ready(shape, batch, &preprocess, numbers, &mut rng)?;
        channel.send(tag::COLUMNS, &columns)?;
        // N2
        let question = shape.question_bytes(rows)?.iter().sum();
        let question = channel.receive(tag::QUESTION, question)?;
        let (symbols, answered) = ready.answer(shape, &table, batch, &question, &mut rng)?;
        channel.send(tag::SYMBOLS, &symbols)?;
        // N3
        let choices = channel.receive(tag::CHOICES, shape.choice_bytes(rows))?;
        let width = shape.largest.len();
        let mut sum = closing.sum(width + label_sums(measure));
        let payload = answered.pay(shape, &table, batch, &choices, &mut sum)?;
        channel.send(tag::PAYLOAD, &payload)?;
        // N4
        let labels = add_labels(&self.held_out, ask.rows);
        sum.add_from(width, &labels);
        let closed = closing.close(sum, ERRORS_MASK, None)?;
        let (errors, labels) = closed.split_at(width);
        let mut message = payload::write_sums(shape, errors);
        message.extend(pack(labels, MOST_BITS));
        channel.send(tag::SUM, &message)?;
        Ok(())
    }
}

impl Remote {
    /// N1 to N4 but for the sum over providers.
    fn errors(
        &mut self,
        shape: &Shape,
        weights: &Weights,
        (ask, step): (Evaluation, u32),
        measure: Measure,
    ) -> Result<(Vec<u64>, Vec<u64>), RemoteError> {
        let rows = ask.rows.of(self.part.held_out).len();
        let number = ask.number;
        let mut rng = self.randomness.fork("resident held-out", number.into())?;
        Command::Evaluate { step, number }.send(&mut self.channel)?;
        // N1
        let numbers = TreeNumbers::Evaluation { number };
        let (message, preprocess) = self.counting.preprocess(shape, rows, numbers, &mut rng)?;
        self.channel.send(tag::PREPROCESS, &message)?;
        let length = shape.column_bytes(rows).iter().sum();
        let columns = self.channel.receive(tag::COLUMNS, length)?;
        let ready = preprocess.open(shape, rows, &columns)?;
        // N2
        let known = Zeroizing::new(vec![weights.constant as u32; rows]);
        let (question, asked) = ready.ask(shape, weights, known)?;
        self.channel.send(tag::QUESTION, &question)?;
        let symbols = self
            .channel
            .receive(tag::SYMBOLS, shape.symbol_bytes(rows))?;
        // N3
        let (choices, chosen) = asked.choose(shape, &symbols)?;
        self.channel.send(tag::CHOICES, &choices)?;
        let length = shape.payload_bytes(rows);
        let payload = self.channel.receive(tag::PAYLOAD, length)?;
        let mut sum = UserSum::new(shape);
        chosen.open(shape, &payload, &mut sum)?;
        // N4
        let lengths = sum_bytes(shape, measure);
        let message = self.channel.receive(tag::SUM, lengths.iter().sum())?;
        let [provider_share, labels] = parts("the sums", &message, lengths)?;
        let count = label_sums(measure);
        let labels = unpack(labels, count, MOST_BITS).map_err(|_| StepError::Length {
            what: "the sums of the labels",
            got: labels.len(),
            expected: lengths[1],
        })?;
        Ok((sum.close(shape, provider_share)?, labels))
    }
}

impl ResidentUser {
    /// The sum of the errors that predictions by β have on all held-out rows, in deviations.
    pub(super) fn add_errors(&mut self, ask: EvaluationAsk<'_>) -> Result<ErrorSum, JobError> {
        let EvaluationAsk {
            evaluation,
            beta,
            step,
        } = ask;
        let shape = &self.count_shape;
        let measure = measure(evaluation.class).ok_or(Defect::Repeated("a measure of errors"))?;
        let weights =
            Weights::new(beta, &self.likely, shape.resolution).map_err(Defect::Coefficients)?;
        let parts = ask_all(&mut self.remotes, |remote| {
            remote.errors(shape, &weights, (evaluation, step), measure)
        })?;
        let (sums, labels): (Vec<_>, Vec<_>) = parts.into_iter().unzip();
        let unit = CodeTable::of_errors(measure, shape.resolution).unit();
        let errors = whole_sums(shape, &sums).first().copied().unwrap_or(0);
        let label = |place: usize| {
            let all = labels.iter().filter_map(|part| part.get(place));
            let sum = all.fold(0u64, |sum, part| sum.wrapping_add(*part));
            signed(sum, MOST_BITS) as f64 / LABEL_FRACTION
        };
        let with_labels = label_sums(measure) == LABEL_SUMS;
        Ok(ErrorSum {
            errors: errors as f64 * unit,
            labels: with_labels.then(|| [label(0), label(1)]),
        })
    }
}
