//! Counts of held-out rows at the data user: moves the messages of steps E1 to E4 between channels and the steps of
//! `evaluate.rs`.

use super::ask::{Remote, ResidentUser};
use super::shape::{Shape, TreeNumbers};
use super::{evaluate, tag};
use crate::engine::EvaluationAsk;
use crate::error::{Defect, JobError};
use crate::message::{Command, Message};
use crate::parallel::{RemoteError, ask_all};
use crate::rounds::Evaluation;
use heda_learn::resident::Weights;
use zeroize::Zeroizing;

impl ResidentUser {
    /// Steps E1 to E4 with all providers: sums of counts, modulo 2^`row_bits`.
    pub(super) fn count(&mut self, ask: EvaluationAsk<'_>) -> Result<(Shape, Vec<u64>), JobError> {
        let EvaluationAsk {
            evaluation,
            beta,
            step,
        } = ask;
        let shape = self.count_shape.of_tally(evaluation.tally);
        let mut beta = Zeroizing::new(beta.to_vec());
        if self.estimates.is_some() {
            beta.insert(0, 0.0);
        }
        let weights =
            Weights::new(&beta, &self.encoding, shape.resolution).map_err(Defect::Coefficients)?;
        let parts = ask_all(&mut self.remotes, |remote| {
            remote.count(&shape, &weights, (evaluation, step))
        })?;
        let sum = |place: usize| {
            let all = parts.iter().map(|part| part[place]);
            all.fold(0u64, u64::wrapping_add)
        };
        let sums = (0..shape.counts()).map(sum).collect();
        Ok((shape, sums))
    }
}

impl Remote {
    /// Steps E1 to E4 but for the sum over providers.
    fn count(
        &mut self,
        shape: &Shape,
        weights: &Weights,
        (ask, step): (Evaluation, u32),
    ) -> Result<Vec<u64>, RemoteError> {
        let rows = ask.rows.of(self.part.held_out).len();
        let number = ask.number;
        let mut rng = self.randomness.fork("resident held-out", number.into())?;
        Command::Evaluate { step, number }.send(&mut self.channel)?;
        // E1
        let numbers = TreeNumbers::Evaluation { number };
        let (message, preprocess) = self.counting.preprocess(shape, rows, numbers, &mut rng)?;
        self.channel.send(tag::PREPROCESS, &message)?;
        let length = shape.column_bytes(rows).iter().sum();
        let columns = self.channel.receive(tag::COLUMNS, length)?;
        let ready = preprocess.open(shape, rows, &columns)?;
        // E2
        let [borrow_bytes, lane_bytes] = evaluate::table_bytes(shape, rows);
        let (question, borrowing) = ready.ask_borrow(shape, weights, rows)?;
        self.channel.send(tag::QUESTION, &question)?;
        let borrows = self.channel.receive(tag::SYMBOLS, borrow_bytes)?;
        // E3
        let (question, laning) = borrowing.ask_lane(shape, &borrows)?;
        self.channel.send(tag::QUESTION, &question)?;
        let lanes = self.channel.receive(tag::SYMBOLS, lane_bytes)?;
        // E4
        let (choices, counting) = laning.choose(shape, &lanes)?;
        self.channel.send(tag::CHOICES, &choices)?;
        let length = evaluate::payload_bytes(shape, rows);
        let payload = self.channel.receive(tag::PAYLOAD, length)?;
        Ok(counting.counts(shape, &payload)?)
    }
}
