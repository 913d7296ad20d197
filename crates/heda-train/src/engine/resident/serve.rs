//! A provider's side of the conversation: moves messages between the channel and the steps.

use super::evaluate;
use super::provider::{ProviderReady, ProviderSession};
use super::rows::Rows;
use super::shape::{Shape, TreeNumbers};
use super::{count_shape, tag, training_shape};
use crate::engine::{GradientQuestion, ProviderEngine, ProviderRows, Terms};
use crate::error::{PeerProblem, ServeError};
use heda_blocks::channel::Channel;
use heda_crypto::bits::MOST_BITS;
use heda_crypto::masking::Masks;
use heda_crypto::random::Randomness;
use heda_crypto::transfer::{SenderSetup, SetupFirst, SetupThird};
use heda_learn::gradient::Batch;
use heda_learn::resident::CodeTable;

/// Purposes of aggregation masks.
const GRADIENT_MASK: &str = "resident gradient";
const COUNTS_MASK: &str = "resident counts";

/// What a provider holds while a job runs.
pub(super) struct ResidentProvider {
    session: ProviderSession,
    masks: Masks,
    shape: Shape,
    count_shape: Shape,
    table: CodeTable,
    rows: Rows,
    held_out: Rows,
    /// Gradients of the whole job.
    iterations: u32,
    randomness: Randomness,
    /// Made ahead for the batch that comes next if nothing changes.
    ready: Option<(Batch, ProviderReady)>,
}

impl ResidentProvider {
    /// Step S.
    pub(super) fn set_up(
        channel: &mut Channel,
        terms: &Terms<'_>,
        rows: ProviderRows,
        masks: Masks,
        randomness: &Randomness,
    ) -> Result<Self, ServeError> {
        let shape = training_shape(terms, 0).map_err(ServeError::defect)?;
        let count_shape = count_shape(terms).map_err(ServeError::defect)?;
        let mut rng = randomness.fork("transfer keys", 0)?;
        let first = channel.receive(tag::SETUP, SetupFirst::BYTES)?;
        let first = SetupFirst::from_bytes(&first)?;
        let context = &terms.proposal.job.0;
        let (setup, second) = SenderSetup::answer(shape.field, context, &first, &mut rng);
        channel.send(tag::SETUP, &second.to_bytes())?;
        let third = channel.receive(tag::SETUP, SetupThird::bytes(shape.field))?;
        let sender = setup.finish(&SetupThird::from_bytes(shape.field, &third)?)?;
        Ok(Self {
            session: ProviderSession::new(sender),
            masks,
            table: CodeTable::new(terms.proposal.loss, shape.resolution),
            rows: Rows::new(&shape, rows.grid, rows.labels),
            held_out: Rows::new(&shape, rows.held_out_grid, rows.held_out_labels),
            shape,
            count_shape,
            iterations: terms.proposal.iterations,
            randomness: randomness.clone(),
            ready: None,
        })
    }

    /// R1 and R2 for a batch, whenever its gradient is asked for.
    fn prepare(
        &mut self,
        channel: &mut Channel,
        batch: Batch,
        numbers: TreeNumbers,
    ) -> Result<ProviderReady, ServeError> {
        let rows = self.rows.batch(batch.share(self.rows.count()), 0);
        let length = self.shape.ahead_bytes(rows.count())?.iter().sum();
        let ahead = channel.receive(tag::AHEAD, length)?;
        let mut rng = self.randomness.fork("resident trees", numbers.first())?;
        let (columns, ready) = self
            .session
            .ready(&self.shape, rows, &ahead, numbers, &mut rng)?;
        channel.send(tag::COLUMNS, &columns)?;
        Ok(ready)
    }

    /// The number of rows of all providers, as the command has it, if it can be true.
    fn shape_for(&self, row_bits: u32, rows: usize) -> Result<Shape, PeerProblem> {
        let shape = Shape {
            row_bits,
            ..self.shape.clone()
        };
        let own = usize::BITS - rows.leading_zeros();
        let widest = shape.sum_bits().into_iter().max().unwrap_or(0);
        match own <= row_bits && widest <= MOST_BITS {
            true => Ok(shape),
            false => Err(PeerProblem::message(
                "command",
                format!("{row_bits} bits for the number of all rows"),
            )),
        }
    }
}

impl ProviderEngine for ResidentProvider {
    /// Steps R1 to R6 for one batch; then R1 and R2 for the next.
    fn gradient(&mut self, channel: &mut Channel, ask: GradientQuestion) -> Result<(), ServeError> {
        let share = ask.batch.share(self.rows.count());
        let shape = self.shape_for(ask.fraction_bits, share.len())?;
        let ready = match self.ready.take() {
            Some((batch, ready)) if batch == ask.batch => ready,
            other => {
                let (iteration, again) = (ask.iteration, other.is_some());
                let numbers = TreeNumbers::Gradient { iteration, again };
                self.prepare(channel, ask.batch, numbers)?
            }
        };
        let batch = self.rows.batch(share, ask.positive);
        let question = shape.question_bytes(batch.count()).iter().sum();
        let question = channel.receive(tag::QUESTION, question)?;
        let mut rng = self
            .randomness
            .fork("resident coins", ask.iteration.into())?;
        let (symbols, answered) = ready.answer(&shape, &self.table, batch, &question, &mut rng)?;
        channel.send(tag::SYMBOLS, &symbols)?;
        let choices = channel.receive(tag::CHOICES, shape.choice_bytes(batch.count()))?;
        let sum = answered.sum(&shape, &self.table, batch, &choices)?;
        let masks = self
            .masks
            .stream(GRADIENT_MASK, ask.iteration.into(), sum.owed.len())
            .map_err(ServeError::defect)?;
        channel.send(tag::PAYLOAD, &sum.send(&shape, &masks))?;
        let (iteration, again) = (ask.iteration + 1, false);
        if iteration < self.iterations {
            let batch = super::next_batch(ask.batch);
            let numbers = TreeNumbers::Gradient { iteration, again };
            self.ready = Some((batch, self.prepare(channel, batch, numbers)?));
        }
        Ok(())
    }

    /// Steps E1 to E4. Classes are evaluated in order and once: their number is the round of the
    /// mask.
    fn count(
        &mut self,
        channel: &mut Channel,
        class: u32,
        positive: u32,
    ) -> Result<(), ServeError> {
        self.ready = None;
        let shape = &self.count_shape;
        let batch = self.held_out.batch(0..self.held_out.count(), positive);
        let rows = batch.count();
        let mut rng = self.randomness.fork("resident counts", class.into())?;
        // E1
        let ahead = channel.receive(tag::AHEAD, shape.ahead_bytes(rows)?.iter().sum())?;
        let numbers = TreeNumbers::Evaluation { class };
        let (columns, ready) = self
            .session
            .ready(shape, batch, &ahead, numbers, &mut rng)?;
        channel.send(tag::COLUMNS, &columns)?;
        // E2
        let [turns, indices] = shape.question_bytes(rows);
        let question = channel.receive(tag::QUESTION, turns + indices)?;
        let (borrows, borrowed) = ready.borrow(shape, batch, &question, &mut rng)?;
        channel.send(tag::SYMBOLS, &borrows)?;
        // E3
        let question = channel.receive(tag::QUESTION, indices)?;
        let (lanes, laned) = borrowed.lanes(shape, &question, &mut rng)?;
        channel.send(tag::SYMBOLS, &lanes)?;
        // E4
        let choices = channel.receive(tag::CHOICES, shape.choice_bytes(rows))?;
        let (mut payload, mut owed) = laned.count(shape, batch, &choices, &mut rng)?;
        let masks = self
            .masks
            .stream(COUNTS_MASK, class.into(), owed.len())
            .map_err(ServeError::defect)?;
        for (owed, mask) in owed.iter_mut().zip(masks.iter()) {
            *owed = owed.wrapping_add(*mask);
        }
        payload.extend(evaluate::write_counts(shape, &owed));
        channel.send(tag::PAYLOAD, &payload)?;
        Ok(())
    }
}
