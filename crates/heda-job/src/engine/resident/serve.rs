//! A provider's side of the conversation: moves messages between the channel and the steps, in the
//! order that `ask.rs` says.

use super::evaluate;
use super::provider::{ProviderAnswered, ProviderReady, ProviderSession};
use super::rows::Rows;
use super::shape::{Shape, TreeNumbers};
use super::{
    AHEAD_BLOCKS, CountNoise, Noise, count_noise, count_shape, encoding, noise, payload, tag,
    training_shape,
};
use crate::closing::{Chain, Closing};
use crate::engine::label_encoding::Tables;
use crate::engine::{GradientQuestion, ProviderEngine, ProviderRows, Terms};
use crate::error::{PeerProblem, ServeError};
use crate::rounds::{Evaluation, Rounds};
use heda_blocks::channel::Channel;
use heda_crypto::random::Randomness;
use heda_crypto::transfer::{SenderSetup, SetupFirst, SetupThird};
use heda_learn::gradient::Batch;
use std::collections::VecDeque;
use std::ops::Range;

/// Purposes of aggregation masks.
const GRADIENT_MASK: &str = "resident gradient";
const COUNTS_MASK: &str = "resident counts";

/// Masks cancel only between providers that open the same steps together.
pub(super) fn mask_purpose(iteration: u32, earliest: u32) -> String {
    match iteration - earliest {
        0 => GRADIENT_MASK.to_owned(),
        before => format!("{GRADIENT_MASK} and {before} before"),
    }
}

/// What a provider holds while a job runs.
pub(in super::super) struct ResidentProvider {
    session: ProviderSession,
    /// For the evaluation.
    pub(super) counting: ProviderSession,
    /// Of gradients; as it is for the rows of all providers, once their number is known.
    pub(super) shape: Shape,
    row_bits: Option<u32>,
    pub(super) count_shape: Shape,
    tables: Tables,
    /// Whether the label is a number.
    numeric: bool,
    rows: Rows,
    /// Where this provider begins with its batches.
    place: usize,
    pub(super) held_out: Rows,
    /// Gradients and evaluations of the whole job.
    rounds: Rounds,
    noise: Option<Noise>,
    /// In a private job the sums that later steps open again.
    chain: Option<Chain>,
    count_noise: Option<CountNoise>,
    pub(super) randomness: Randomness,
    /// Made in advance: the first blocks of the batch that comes next if nothing changes.
    ready: Option<Preprocessed>,
}

/// The first blocks of a batch.
type Preprocessed = (Batch, VecDeque<ProviderReady>);

/// Step S, for the training and for the evaluation in the same messages.
fn set_up(
    channel: &mut Channel,
    contexts: [Vec<u8>; 2],
    shapes: [&Shape; 2],
    randomness: &Randomness,
) -> Result<[ProviderSession; 2], ServeError> {
    let mut rng = randomness.fork("transfer keys", 0)?;
    let lengths = [SetupFirst::BYTES; 2];
    let asked = channel.receive(tag::SETUP, lengths.iter().sum())?;
    let [first, other] = super::parts("the setup", &asked, lengths)?;
    let (first, other) = (
        SetupFirst::from_bytes(first)?,
        SetupFirst::from_bytes(other)?,
    );
    let (training, second) = SenderSetup::answer(shapes[0].field, &contexts[0], &first, &mut rng);
    let (counting, other) = SenderSetup::answer(shapes[1].field, &contexts[1], &other, &mut rng);
    channel.send(tag::SETUP, &[second.to_bytes(), other.to_bytes()].concat())?;
    let lengths = shapes.map(|shape| SetupThird::bytes(shape.field));
    let answer = channel.receive(tag::SETUP, lengths.iter().sum())?;
    let [third, other] = super::parts("the setup", &answer, lengths)?;
    let training = training.finish(&SetupThird::from_bytes(shapes[0].field, third)?)?;
    let counting = counting.finish(&SetupThird::from_bytes(shapes[1].field, other)?)?;
    Ok([training, counting].map(ProviderSession::new))
}

impl ResidentProvider {
    /// Step S.
    pub(in super::super) fn set_up(
        channel: &mut Channel,
        terms: &Terms<'_>,
        rows: ProviderRows,
        randomness: &Randomness,
    ) -> Result<Self, ServeError> {
        let encoding = encoding(terms).map_err(ServeError::defect)?;
        let shape = training_shape(terms, &encoding).map_err(ServeError::defect)?;
        let count_shape = count_shape(terms, &encoding).map_err(ServeError::defect)?;
        let shapes = [&shape, &count_shape];
        let [session, counting] = set_up(channel, super::contexts(terms), shapes, randomness)?;
        let signed = |grid: Vec<u32>| grid.into_iter().map(|value| value as i32).collect();
        let labels_as = &rows.labels_as;
        let own_rows =
            |grid, labels| Rows::plain(&encoding, signed(grid), labels).read_as(labels_as);
        Ok(Self {
            session,
            counting,
            tables: Tables::new(terms.proposal, labels_as),
            numeric: terms.proposal.job.is_numeric(),
            rows: match rows.private {
                Some(private) => Rows::of_private(&encoding, &private, rows.labels),
                None => own_rows(rows.grid, rows.labels),
            },
            held_out: match rows.private_held_out {
                Some(private) => Rows::of_private(&encoding, &private, rows.held_out_labels),
                None => own_rows(rows.held_out_grid, rows.held_out_labels),
            },
            shape,
            row_bits: None,
            place: rows.place,
            count_shape,
            rounds: terms.rounds(),
            noise: noise(terms),
            chain: terms
                .plan
                .map(|plan| Chain::new(plan.plan().passes().clone())),
            count_noise: count_noise(terms),
            randomness: randomness.clone(),
            ready: None,
        })
    }

    /// This provider's rows of a batch. Those of a private job begin elsewhere at each provider.
    fn share(&self, batch: Batch) -> Range<usize> {
        let part = match self.chain {
            Some(_) => batch.turned(self.place),
            None => batch,
        };
        part.share(self.rows.count())
    }

    /// The same, block by block.
    fn blocks(&self, batch: Batch) -> Vec<Range<usize>> {
        self.shape.blocks(self.share(batch))
    }

    /// R1 and R2 for a block, whenever its gradient is asked for.
    fn prepare(
        &mut self,
        channel: &mut Channel,
        block: Range<usize>,
        numbers: TreeNumbers,
    ) -> Result<ProviderReady, ServeError> {
        let rows = self.rows.batch(block, 0);
        let length = self.shape.preprocess_bytes(rows.count())?.iter().sum();
        let preprocess = channel.receive(tag::PREPROCESS, length)?;
        let mut rng = self.randomness.fork("resident trees", numbers.first())?;
        let (columns, ready) =
            self.session
                .ready(&self.shape, rows, &preprocess, numbers, &mut rng)?;
        channel.send(tag::COLUMNS, &columns)?;
        Ok(ready)
    }

    /// Takes in the number of rows of all providers, as the command has it, if it can be true. It
    /// stays the same in a session: what travels in advance was cut by it.
    fn shape_for(&mut self, row_bits: u32, rows: usize) -> Result<Shape, PeerProblem> {
        let other = self.row_bits.is_some_and(|before| before != row_bits);
        let shape = self.shape.of_all_rows(row_bits, rows).filter(|_| !other);
        let shape = shape.ok_or_else(|| {
            let reason = format!("{row_bits} bits for the number of all rows");
            PeerProblem::message("command", reason)
        })?;
        self.row_bits = Some(row_bits);
        self.shape = shape.clone();
        Ok(shape)
    }

    /// R1 to R4 for every block.
    fn answer_blocks(
        &mut self,
        channel: &mut Channel,
        shape: &Shape,
        ask: GradientQuestion,
        blocks: &[Range<usize>],
    ) -> Result<Vec<ProviderAnswered>, ServeError> {
        let made = self.ready.take();
        let again = made.as_ref().is_some_and(|(batch, _)| *batch != ask.batch);
        let mut ready = match made {
            Some((_, ready)) if !again => ready,
            _ => VecDeque::new(),
        };
        let table = self.tables.of(ask.class, shape.resolution);
        let mut answered = Vec::with_capacity(blocks.len());
        for (number, block) in blocks.iter().enumerate() {
            let preprocess = blocks.iter().enumerate().take(number + AHEAD_BLOCKS);
            for (later, block) in preprocess.skip(number + ready.len()) {
                let numbers = TreeNumbers::gradient(ask.iteration, later, again);
                ready.push_back(self.prepare(channel, block.clone(), numbers)?);
            }
            let batch = self.rows.batch(block.clone(), ask.positive);
            let question = shape.question_bytes(batch.count())?.iter().sum();
            let question = channel.receive(tag::QUESTION, question)?;
            let number = TreeNumbers::gradient(ask.iteration, number, false).first();
            let mut rng = self.randomness.fork("resident coins", number)?;
            let Some(ready) = ready.pop_front() else {
                break;
            };
            let (symbols, next) = ready.answer(shape, &table, batch, &question, &mut rng)?;
            channel.send(tag::SYMBOLS, &symbols)?;
            answered.push(next);
        }
        Ok(answered)
    }

    /// R1 and R2 for the first blocks of the next gradient, if there is one.
    fn prepare_next(
        &mut self,
        channel: &mut Channel,
        ask: GradientQuestion,
    ) -> Result<Option<Preprocessed>, ServeError> {
        if !self.rounds.goes_on(ask.iteration) {
            return Ok(None);
        }
        let iteration = ask.iteration + 1;
        let batch = super::next_batch(ask.batch);
        let mut ready = VecDeque::new();
        let blocks = self.blocks(batch).into_iter().take(AHEAD_BLOCKS);
        for (number, block) in blocks.enumerate() {
            let numbers = TreeNumbers::gradient(iteration, number, false);
            ready.push_back(self.prepare(channel, block, numbers)?);
        }
        Ok(Some((batch, ready)))
    }
}

impl ProviderEngine for ResidentProvider {
    /// Steps R1 to R4 for one batch; R1 and R2 for the first blocks of the next, while choices are under
    /// way; R6.
    fn gradient(
        &mut self,
        channel: &mut Channel,
        ask: GradientQuestion,
        closing: Closing<'_>,
    ) -> Result<(), ServeError> {
        let share = self.share(ask.batch);
        let shape = self.shape_for(ask.row_bits, share.len())?;
        let blocks = self.blocks(ask.batch);
        let answered = self.answer_blocks(channel, &shape, ask, &blocks)?;
        let next = self.prepare_next(channel, ask)?;
        let table = self.tables.of(ask.class, shape.resolution);
        let mut sum = closing.sum(shape.largest.len());
        for (block, answered) in blocks.into_iter().zip(answered) {
            let batch = self.rows.batch(block, ask.positive);
            let choices = channel.receive(tag::CHOICES, shape.choice_bytes(batch.count()))?;
            let payload = answered.pay(&shape, &table, batch, &choices, &mut sum)?;
            channel.send(tag::PAYLOAD, &payload)?;
        }
        let rng = self
            .randomness
            .fork("resident noise", ask.iteration.into())?;
        let noise = self.noise.as_ref().map(|noise| noise.of_answer(rng));
        let (sum, purpose) = match &mut self.chain {
            Some(chain) => {
                let (opened, earliest) = chain.banded(ask.iteration, sum);
                (opened, mask_purpose(ask.iteration, earliest))
            }
            None => (sum, GRADIENT_MASK.to_owned()),
        };
        let closed = closing.close(sum, &purpose, noise)?;
        channel.send(tag::SUM, &payload::write_sums(&shape, &closed))?;
        self.ready = next;
        Ok(())
    }

    /// Steps E1 to E4, or N1 to N4. Evaluations are asked for in order and once: their number is the
    /// round of the mask.
    fn count(
        &mut self,
        channel: &mut Channel,
        (ask, positive): (Evaluation, u32),
        closing: Closing<'_>,
    ) -> Result<(), ServeError> {
        if self.numeric {
            return self.add_errors(channel, ask, closing);
        }
        let shape = &self.count_shape.of_tally(ask.tally);
        let number = ask.number;
        let batch = ask.rows.of(self.held_out.count());
        let batch = self.held_out.batch(batch, positive);
        let rows = batch.count();
        let mut rng = self.randomness.fork("resident counts", number.into())?;
        // E1
        let preprocess =
            channel.receive(tag::PREPROCESS, shape.preprocess_bytes(rows)?.iter().sum())?;
        let numbers = TreeNumbers::Evaluation { number };
        let (columns, ready) = self
            .counting
            .ready(shape, batch, &preprocess, numbers, &mut rng)?;
        channel.send(tag::COLUMNS, &columns)?;
        // E2
        let lengths = shape.question_bytes(rows)?;
        let question = channel.receive(tag::QUESTION, lengths.iter().sum())?;
        let (borrows, borrowed) = ready.borrow(shape, batch, &question, &mut rng)?;
        channel.send(tag::SYMBOLS, &borrows)?;
        // E3
        let [_, indices] = lengths;
        let question = channel.receive(tag::QUESTION, indices)?;
        let (lanes, laned) = borrowed.lanes(shape, &question, &mut rng)?;
        channel.send(tag::SYMBOLS, &lanes)?;
        // E4
        let choices = channel.receive(tag::CHOICES, shape.choice_bytes(rows))?;
        let mut sum = closing.sum(shape.counts());
        let mut payload = laned.count(shape, batch, &choices, &mut sum, &mut rng)?;
        let rng = self
            .randomness
            .fork("resident noise of counts", number.into())?;
        let noise = self.count_noise.as_ref().map(|noise| noise.of(ask.tally));
        let noise = noise.map(|noise| noise.of_answer(rng));
        let counts = closing.close(sum, COUNTS_MASK, noise)?;
        payload.extend(evaluate::write_counts(shape, &counts));
        channel.send(tag::PAYLOAD, &payload)?;
        Ok(())
    }
}
