//! The data user's side of the conversation: moves messages between channels and the steps.
//!
//! A gradient is asked for in blocks of rows. Requests and columns of the first two blocks travel
//! in advance, during the gradient before; those of a later block while the one before it is
//! answered. Both sides follow the same order, so neither waits for what the other will not send:
//!
//! 1. for every block: columns, question; then the symbols of the block before;
//! 2. after the last question: requests for the first blocks of the next gradient;
//! 3. for the first blocks: choices;
//! 4. columns for the first blocks of the next gradient: they fill the line while choices travel;
//! 5. for every block: payload, and choices for a later one; then the sum.

use super::shape::{Shape, TreeNumbers};
use super::user::{
    OpenedChain, UserAsked, UserChosen, UserPreprocessed, UserSession, UserSum, whole_sums,
};
use super::{
    AHEAD_BLOCKS, CountNoise, count_noise, count_shape, encoding, next_batch, tag, training_shape,
};
use crate::engine::label_encoding::{LabelEncoding, Tables};
use crate::engine::{
    EvaluationAsk, GradientAsk, Impossible, Joined, Part, Terms, UserEngine, row_bits,
};
use crate::error::{Defect, JobError};
use crate::histogram::{Histogram, NoisyCounts};
use crate::message::{Command, Message};
use crate::parallel::{Party, RemoteError, ask_all};
use crate::regression_metrics::ErrorSum;
use crate::rounds::Rounds;
use heda_blocks::channel::Channel;
use heda_crypto::bits::signed;
use heda_crypto::random::Randomness;
use heda_crypto::transfer::{ChooserSetup, SetupSecond};
use heda_learn::gradient::{Batch, Gradient};
use heda_learn::private::{Passes, Unbanded};
use heda_learn::resident::{Encoding, Weights};
use heda_learn::scaling::Scaling;
use rand_core::Rng;
use std::collections::VecDeque;
use std::ops::Range;
use zeroize::Zeroizing;

/// One provider, seen from the data user.
pub(in super::super) struct Remote {
    name: String,
    pub(super) channel: Channel,
    pub(in super::super) part: Part,
    /// Published columns on the grid, row by row.
    open: Vec<u32>,
    session: UserSession,
    /// For the evaluation.
    pub(super) counting: UserSession,
    pub(in super::super) randomness: Randomness,
    /// Asked for in advance: the first blocks of the batch that comes next if nothing changes.
    pending: Option<(Batch, VecDeque<Preprocess>)>,
    /// In a private job, where this provider begins with its batches, and what was opened of earlier ones.
    chain: Option<(usize, OpenedChain)>,
}

/// A block that was asked for in advance.
struct Preprocess {
    asked: UserPreprocessed,
    /// R1 and R2, if they were read already.
    columns: Option<Vec<u8>>,
}

impl Party for Remote {
    fn name(&self) -> &str {
        &self.name
    }

    fn channel(&mut self) -> &mut Channel {
        &mut self.channel
    }
}

/// The data user of a job.
pub(in super::super) struct ResidentUser {
    pub(in super::super) remotes: Vec<Remote>,
    pub(super) shape: Shape,
    pub(super) count_shape: Shape,
    tables: Tables,
    pub(super) encoding: Encoding,
    /// What rows hold as a rule: the scores of a gradient are not made room for beyond it.
    pub(super) likely: Encoding,
    /// Columns that it knows.
    open: Vec<usize>,
    /// Gradients and evaluations of the whole job.
    rounds: Rounds,
    /// In a private job how it goes over the rows, and estimates of the sums over earlier batches. The bias is a column of
    /// its rows.
    pub(super) estimates: Option<(Passes, Unbanded)>,
    /// By what the coefficients of the last gradient were multiplied.
    shrunk: f64,
    /// The noise in counts of held-out rows, if there is any.
    count_noise: Option<CountNoise>,
}

/// Blocks whose choices are sent before the payload of the first is read. They fill a long line, and with at most 64 kB for each
/// bit of a code they find room in the queues on the way to a provider, which does not read while it sends.
const CHOICES_AHEAD: usize = 16;

/// What all providers are asked in one iteration.
struct Round<'a> {
    shape: &'a Shape,
    open: &'a [usize],
    weights: &'a Weights,
    command: Command,
    iteration: u32,
    batch: Batch,
    /// Whether another gradient follows.
    goes_on: bool,
}

/// Step S with one provider, for the training and for the evaluation in the same messages.
fn set_up(
    party: &mut Joined,
    contexts: [Vec<u8>; 2],
    shapes: [&Shape; 2],
    randomness: &Randomness,
) -> Result<[UserSession; 2], RemoteError> {
    let mut rng = randomness.party(&party.name).fork("transfer keys", 0)?;
    let [(training, first), (counting, other)] =
        [0, 1].map(|n| ChooserSetup::start(shapes[n].field, &contexts[n], &mut rng));
    let channel = &mut party.channel;
    channel.send(tag::SETUP, &[first.to_bytes(), other.to_bytes()].concat())?;
    let lengths = shapes.map(|shape| SetupSecond::bytes(shape.field));
    let answer = channel.receive(tag::SETUP, lengths.iter().sum())?;
    let [second, other] = super::parts("the setup", &answer, lengths)?;
    let second = SetupSecond::from_bytes(shapes[0].field, second)?;
    let other = SetupSecond::from_bytes(shapes[1].field, other)?;
    let (training, third) = training.finish(&second, &mut rng)?;
    let (counting, other) = counting.finish(&other, &mut rng)?;
    channel.send(tag::SETUP, &[third.to_bytes(), other.to_bytes()].concat())?;
    Ok([training, counting].map(UserSession::new))
}

impl ResidentUser {
    /// Step S with all providers at once.
    pub(in super::super) fn set_up(
        terms: &Terms<'_>,
        mut parties: Vec<Joined>,
        scaling: &Scaling,
        labels_as: &LabelEncoding,
        randomness: &Randomness,
    ) -> Result<Self, JobError> {
        let encoding = encoding(terms).map_err(Impossible::job)?;
        let rows = parties.iter().map(|party| party.part.rows);
        let row_bits = row_bits(terms.batches(), rows);
        let shape = training_shape(terms, &encoding).map_err(Impossible::job)?;
        let shape = shape.of_rows(row_bits);
        let count_shape = count_shape(terms, &encoding).map_err(Impossible::job)?;
        let sessions = ask_all(&mut parties, |party| {
            let contexts = super::contexts(terms);
            set_up(party, contexts, [&shape, &count_shape], randomness)
        })?;
        let remotes = parties.into_iter().zip(sessions);
        let remotes = remotes.map(|(party, [session, counting])| Remote {
            randomness: randomness.party(&party.name),
            name: party.name,
            channel: party.channel,
            part: party.part,
            open: party.open,
            session,
            counting,
            pending: None,
            chain: None,
        });
        let mut remotes: Vec<Remote> = remotes.collect();
        let passes = terms.plan.map(|plan| plan.plan().passes().clone());
        if let Some(passes) = &passes {
            let parties = &terms.proposal.parties;
            for (remote, identity) in remotes.iter_mut().zip(&parties.identities) {
                let opened = OpenedChain::new(passes.clone());
                remote.chain = Some((parties.place(identity), opened));
            }
        }
        Ok(Self {
            remotes,
            tables: Tables::new(terms.proposal, labels_as),
            shape,
            count_shape,
            likely: encoding.likely(scaling),
            encoding,
            open: terms.columns.open.clone(),
            rounds: terms.rounds(),
            estimates: passes.map(|passes| (passes, Unbanded::default())),
            shrunk: 1.0,
            count_noise: count_noise(terms),
        })
    }
}

impl Remote {
    /// This provider's rows of a batch. Those of a private job begin elsewhere at each provider.
    fn share(&self, batch: Batch) -> Range<usize> {
        let part = match self.chain {
            Some((place, _)) => batch.turned(place),
            None => batch,
        };
        part.share(self.part.rows)
    }

    /// The same, block by block.
    fn blocks(&self, shape: &Shape, batch: Batch) -> Vec<Range<usize>> {
        shape.blocks(self.share(batch))
    }

    fn receive_columns(&mut self, shape: &Shape, rows: usize) -> Result<Vec<u8>, RemoteError> {
        let length = shape.column_bytes(rows).iter().sum();
        Ok(self.channel.receive(tag::COLUMNS, length)?)
    }

    /// Asks for what a block needs.
    fn send_preprocess(
        &mut self,
        shape: &Shape,
        rows: usize,
        numbers: TreeNumbers,
    ) -> Result<Preprocess, RemoteError> {
        let mut rng = self.randomness.fork("resident places", numbers.first())?;
        let (message, asked) = self.session.preprocess(shape, rows, numbers, &mut rng)?;
        self.channel.send(tag::PREPROCESS, &message)?;
        let columns = None;
        Ok(Preprocess { asked, columns })
    }

    /// Steps R1 to R7 but for the sum over providers.
    fn gradient(&mut self, round: &Round<'_>) -> Result<Vec<u64>, RemoteError> {
        let shape = round.shape;
        let blocks = self.blocks(shape, round.batch);
        let (choices, chosen): (Vec<_>, Vec<_>) =
            self.ask_blocks(round, &blocks)?.into_iter().unzip();
        let mut choices = choices.into_iter();
        for choices in choices.by_ref().take(CHOICES_AHEAD) {
            self.channel.send(tag::CHOICES, &choices)?;
        }
        self.receive_preprocess(shape)?;
        // R6, R7
        let mut sum = UserSum::new(shape);
        for (block, chosen) in blocks.iter().zip(chosen) {
            let length = shape.payload_bytes(block.len());
            let payload = self.channel.receive(tag::PAYLOAD, length)?;
            if let Some(choices) = choices.next() {
                self.channel.send(tag::CHOICES, &choices)?;
            }
            chosen.open(shape, &payload, &mut sum)?;
        }
        let provider_share = self.channel.receive(tag::SUM, shape.sum_bytes())?;
        let sum = match &mut self.chain {
            Some((_, chain)) => chain.banded(round.iteration, sum),
            None => sum,
        };
        Ok(sum.close(shape, &provider_share)?)
    }

    /// Asks for what the first blocks of the next gradient need, if there is one.
    fn send_next_preprocess(&mut self, round: &Round<'_>) -> Result<(), RemoteError> {
        if !round.goes_on {
            return Ok(());
        }
        let next = next_batch(round.batch);
        let blocks = self.blocks(round.shape, next);
        let blocks = blocks.into_iter().take(AHEAD_BLOCKS);
        let mut preprocess = VecDeque::new();
        for (number, block) in blocks.enumerate() {
            let numbers = TreeNumbers::gradient(round.iteration + 1, number, false);
            preprocess.push_back(self.send_preprocess(round.shape, block.len(), numbers)?);
        }
        self.pending = Some((next, preprocess));
        Ok(())
    }

    /// Reads the columns that were asked for in advance.
    fn receive_preprocess(&mut self, shape: &Shape) -> Result<(), RemoteError> {
        let Some((batch, mut preprocess)) = self.pending.take() else {
            return Ok(());
        };
        for (block, preprocess) in self.blocks(shape, batch).into_iter().zip(&mut preprocess) {
            preprocess.columns = Some(self.receive_columns(shape, block.len())?);
        }
        self.pending = Some((batch, preprocess));
        Ok(())
    }

    /// R1 to R4 for every block, and its choices of R5.
    fn ask_blocks(
        &mut self,
        round: &Round<'_>,
        blocks: &[Range<usize>],
    ) -> Result<Vec<(Vec<u8>, UserChosen)>, RemoteError> {
        let shape = round.shape;
        let made = self.pending.take();
        // What was made in advance for other rows is forgotten.
        let again = made
            .as_ref()
            .is_some_and(|(batch, _)| *batch != round.batch);
        let mut preprocess = match made {
            Some((_, preprocess)) if !again => preprocess,
            _ => VecDeque::new(),
        };
        round.command.send(&mut self.channel)?;
        let mut asked: Option<UserAsked> = None;
        let mut choices = Vec::with_capacity(blocks.len());
        for (number, block) in blocks.iter().enumerate() {
            for (later, block) in blocks.iter().enumerate().skip(number + preprocess.len()) {
                if later < number + AHEAD_BLOCKS {
                    let numbers = TreeNumbers::gradient(round.iteration, later, again);
                    preprocess.push_back(self.send_preprocess(shape, block.len(), numbers)?);
                }
            }
            let Some(Preprocess {
                asked: made,
                columns,
            }) = preprocess.pop_front()
            else {
                break;
            };
            let columns = match columns {
                Some(columns) => columns,
                None => self.receive_columns(shape, block.len())?,
            };
            let ready = made.open(shape, block.len(), &columns)?;
            drop(columns);
            // R3
            let known = self.known(round, block.clone(), number)?;
            let (question, next) = ready.ask(shape, round.weights, known)?;
            self.channel.send(tag::QUESTION, &question)?;
            if let Some(before) = asked.replace(next) {
                choices.push(self.choose(shape, before)?);
            }
        }
        self.send_next_preprocess(round)?;
        if let Some(last) = asked {
            choices.push(self.choose(shape, last)?);
        }
        Ok(choices)
    }

    /// R4 and R5 for one block.
    fn choose(
        &mut self,
        shape: &Shape,
        asked: UserAsked,
    ) -> Result<(Vec<u8>, UserChosen), RemoteError> {
        let length = shape.symbol_bytes(asked.places.len());
        let symbols = self.channel.receive(tag::SYMBOLS, length)?;
        Ok(asked.choose(shape, &symbols)?)
    }

    /// What the data user knows of every row's score: the constant and the published columns.
    fn known(
        &self,
        round: &Round<'_>,
        rows: Range<usize>,
        block: usize,
    ) -> Result<Zeroizing<Vec<u32>>, RemoteError> {
        let width = round.open.len();
        let columns = round.open.iter();
        let weights: Vec<i64> = columns.map(|&j| round.weights.columns[j]).collect();
        let mut known: Zeroizing<Vec<u32>> = Zeroizing::new(Vec::with_capacity(rows.len()));
        for row in rows {
            let cells = &self.open[row * width..][..width];
            let terms = weights.iter().zip(cells);
            let sum = terms.fold(round.weights.constant, |sum, (w, &x)| {
                sum.wrapping_add(w.wrapping_mul(i64::from(x)))
            });
            known.push(sum as u32);
        }
        if round.shape.hidden.is_empty() {
            // Nobody's mask makes the rounding stochastic then. P takes the mask to be nought and a
            // place for its middle, less a thirty-second, so that much is taken off the mean.
            let resolution = round.shape.resolution;
            let node = 1u32 << (resolution.score_bits() - resolution.index_bits());
            let number = TreeNumbers::gradient(round.iteration, block, false).first();
            let mut rng = self.randomness.fork("resident rounding", number)?;
            for score in known.iter_mut() {
                let dither = rng.next_u32() & (node - 1);
                *score = score
                    .wrapping_add(dither)
                    .wrapping_sub(node / 2 - node / 32);
            }
        }
        Ok(known)
    }
}

impl UserEngine for ResidentUser {
    fn gradient(&mut self, ask: GradientAsk<'_>) -> Result<Gradient, JobError> {
        let shape = self.shape.clone();
        let mut beta = Zeroizing::new(ask.beta.to_vec());
        if self.estimates.is_some() {
            beta.insert(0, 0.0);
        }
        let weights =
            Weights::new(&beta, &self.likely, shape.resolution).map_err(Defect::Coefficients)?;
        self.shrunk = weights.shrunk;
        let command = Command::Gradient {
            step: ask.step,
            iteration: ask.iteration,
            class: ask.class,
            batch: ask.batch.index() as u32,
            row_bits: shape.row_bits,
        };
        let round = Round {
            shape: &shape,
            open: &self.open,
            weights: &weights,
            command,
            iteration: ask.iteration,
            batch: ask.batch,
            goes_on: self.rounds.goes_on(ask.iteration),
        };
        let parts = ask_all(&mut self.remotes, |remote| remote.gradient(&round))?;
        let sums = whole_sums(&shape, &parts).into_iter();
        let columns = sums.zip(self.encoding.payload());
        let unit = self.tables.of(ask.class, shape.resolution).unit();
        let sum = columns
            .map(|(sum, column)| sum as f64 * unit * column.unit)
            .collect();
        let all = self.remotes.iter().map(|remote| remote.part.rows);
        let Some((passes, estimates)) = &mut self.estimates else {
            let parts = self.remotes.iter().map(|remote| remote.share(ask.batch));
            let rows = parts.map(|part| part.len()).sum();
            return Ok(Gradient { sum, rows });
        };
        let mut sum = estimates.estimate(passes, ask.iteration, sum);
        // Of all rows as of one batch: every row counts alike, whichever batch it is in.
        let batches = f64::from(passes.batches());
        sum.iter_mut().for_each(|sum| *sum *= batches);
        Ok(Gradient {
            sum,
            rows: all.sum(),
        })
    }

    fn shrunk(&self) -> f64 {
        self.shrunk
    }

    /// Counts that do not add up are not reacted to here: a provider could read from a reaction
    /// which place of a table was read. The job looks at them when the conversation is over.
    fn histogram(&mut self, ask: EvaluationAsk<'_>) -> Result<Histogram, JobError> {
        let (shape, sums) = self.count(ask)?;
        let unused = u64::BITS - shape.row_bits;
        let counts: Vec<u64> = sums.iter().map(|sum| sum << unused >> unused).collect();
        Ok(Histogram::of_counts(&counts))
    }

    fn noisy_counts(&mut self, ask: EvaluationAsk<'_>) -> Result<NoisyCounts, JobError> {
        let (shape, sums) = self.count(ask)?;
        let counts: Vec<i64> = (sums.iter())
            .map(|sum| signed(*sum, shape.row_bits))
            .collect();
        let noise = self.count_noise.as_ref();
        let deviation = noise.map_or(0.0, |noise| noise.of(ask.evaluation.tally).deviation());
        Ok(NoisyCounts::of_units(&counts, deviation))
    }

    fn errors(&mut self, ask: EvaluationAsk<'_>) -> Result<ErrorSum, JobError> {
        self.add_errors(ask)
    }

    fn channels(&mut self) -> Vec<&mut Channel> {
        let remotes = self.remotes.iter_mut();
        remotes.map(|remote| &mut remote.channel).collect()
    }
}
