//! The data user's side of the conversation: moves messages between channels and the steps.

use super::shape::{Shape, TreeNumbers};
use super::user::{UserAhead, UserSession, whole_sums};
use super::{count_shape, evaluate, lanes, next_batch, tag, training_shape};
use crate::engine::{GradientAsk, Impossible, Joined, Part, Terms, UserEngine};
use crate::error::{BadJob, JobError};
use crate::histogram::Histogram;
use crate::message::{Command, Message};
use crate::parallel::{Party, RemoteError, ask_all};
use heda_blocks::channel::Channel;
use heda_crypto::random::Randomness;
use heda_crypto::transfer::{ChooserSetup, SetupSecond};
use heda_learn::fixed::Domain;
use heda_learn::gradient::{Batch, Gradient};
use heda_learn::resident::{CodeTable, Weights};
use rand_core::Rng;
use zeroize::Zeroizing;

/// One provider, seen from the data user.
struct Remote {
    name: String,
    channel: Channel,
    part: Part,
    /// Published columns on the grid, row by row.
    open: Vec<u32>,
    session: UserSession,
    randomness: Randomness,
    /// Asked for ahead, for the batch that comes next if nothing changes.
    pending: Option<(Batch, UserAhead)>,
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
pub(super) struct ResidentUser {
    remotes: Vec<Remote>,
    shape: Shape,
    count_shape: Shape,
    table: CodeTable,
    domain: Domain,
    /// Columns that it knows.
    open: Vec<usize>,
    /// Gradients of the whole job.
    iterations: u32,
}

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

impl ResidentUser {
    /// Step S with all providers at once.
    pub(super) fn set_up(
        terms: &Terms<'_>,
        mut parties: Vec<Joined>,
        randomness: &Randomness,
    ) -> Result<Self, JobError> {
        let shape = training_shape(terms, 0).map_err(Impossible::job)?;
        let count_shape = count_shape(terms).map_err(Impossible::job)?;
        let grid = shape.resolution.grid();
        let domain = Domain::of_features(terms.features, grid).map_err(BadJob::from)?;
        let sessions = ask_all(&mut parties, |party| {
            let mut rng = randomness.party(&party.name).fork("transfer keys", 0)?;
            let context = &terms.proposal.job.0;
            let (setup, first) = ChooserSetup::start(shape.field, context, &mut rng);
            let channel = party.channel();
            channel.send(tag::SETUP, &first.to_bytes())?;
            let second = channel.receive(tag::SETUP, SetupSecond::bytes(shape.field))?;
            let second = SetupSecond::from_bytes(shape.field, &second)?;
            let (chooser, third) = setup.finish(&second, &mut rng)?;
            channel.send(tag::SETUP, &third.to_bytes())?;
            Ok(UserSession::new(chooser))
        })?;
        let remotes = parties.into_iter().zip(sessions);
        let remotes = remotes.map(|(party, session)| Remote {
            randomness: randomness.party(&party.name),
            name: party.name,
            channel: party.channel,
            part: party.part,
            open: party.open,
            session,
            pending: None,
        });
        Ok(Self {
            remotes: remotes.collect(),
            table: CodeTable::new(terms.proposal.loss, shape.resolution),
            shape,
            count_shape,
            domain,
            open: terms.columns.open.clone(),
            iterations: terms.proposal.iterations,
        })
    }
}

impl Remote {
    /// What was sent ahead and is not used, is read and forgotten: whoever speaks next finds the
    /// conversation where it should be.
    fn forget_ahead(&mut self, shape: &Shape) -> Result<(), RemoteError> {
        if let Some((batch, _)) = self.pending.take() {
            self.receive_columns(shape, batch)?;
        }
        Ok(())
    }

    fn receive_columns(&mut self, shape: &Shape, batch: Batch) -> Result<Vec<u8>, RemoteError> {
        let rows = batch.share(self.part.rows).len();
        let length = shape.column_bytes(rows).iter().sum();
        Ok(self.channel.receive(tag::COLUMNS, length)?)
    }

    /// Asks for what the gradient of a batch needs.
    fn send_ahead(
        &mut self,
        shape: &Shape,
        batch: Batch,
        numbers: TreeNumbers,
    ) -> Result<UserAhead, RemoteError> {
        let mut rng = self.randomness.fork("resident places", numbers.first())?;
        let rows = batch.share(self.part.rows).len();
        let (message, ahead) = self.session.ahead(shape, rows, numbers, &mut rng)?;
        self.channel.send(tag::AHEAD, &message)?;
        Ok(ahead)
    }

    /// Steps R1 to R7 but for the sum over providers.
    fn gradient(&mut self, round: &Round<'_>) -> Result<Vec<u64>, RemoteError> {
        let (shape, batch) = (round.shape, round.batch);
        let rows = batch.share(self.part.rows).len();
        // R1 and R2 may have been asked for ahead; if it was for other rows, they are forgotten.
        let (mut made, mut again) = (None, false);
        if let Some((made_for, ahead)) = self.pending.take() {
            let columns = self.receive_columns(shape, made_for)?;
            again = made_for != batch;
            made = (!again).then_some((ahead, columns));
        }
        round.command.send(&mut self.channel)?;
        let (ahead, columns) = match made {
            Some(made) => made,
            None => {
                let iteration = round.iteration;
                let numbers = TreeNumbers::Gradient { iteration, again };
                let ahead = self.send_ahead(shape, batch, numbers)?;
                (ahead, self.receive_columns(shape, batch)?)
            }
        };
        let ready = ahead.open(shape, rows, &columns)?;
        drop(columns);
        // R3
        let known = self.known(round)?;
        let (question, asked) = ready.ask(shape, round.weights, known)?;
        self.channel.send(tag::QUESTION, &question)?;
        // R4, R5
        let symbols = self
            .channel
            .receive(tag::SYMBOLS, shape.symbol_bytes(rows))?;
        let (choices, chosen) = asked.choose(shape, &symbols)?;
        self.channel.send(tag::CHOICES, &choices)?;
        if round.goes_on {
            let next = next_batch(batch);
            let (iteration, again) = (round.iteration + 1, false);
            let numbers = TreeNumbers::Gradient { iteration, again };
            let ahead = self.send_ahead(shape, next, numbers)?;
            self.pending = Some((next, ahead));
        }
        // R6, R7
        let length = shape.payload_bytes(rows).iter().sum();
        let payload = self.channel.receive(tag::PAYLOAD, length)?;
        Ok(chosen.sum(shape, &payload)?)
    }

    /// What the data user knows of every row's score: the constant and the published columns.
    fn known(&self, round: &Round<'_>) -> Result<Zeroizing<Vec<u32>>, RemoteError> {
        let width = round.open.len();
        let share = round.batch.share(self.part.rows);
        let weights: Vec<i64> = round
            .open
            .iter()
            .map(|&j| round.weights.columns[j])
            .collect();
        let mut known: Zeroizing<Vec<u32>> = Zeroizing::new(Vec::with_capacity(share.len()));
        for row in share {
            let cells = &self.open[row * width..][..width];
            let terms = weights.iter().zip(cells);
            let sum = terms.fold(round.weights.constant, |sum, (w, &x)| {
                sum.wrapping_add(w.wrapping_mul(i64::from(x)))
            });
            known.push(sum as u32);
        }
        if round.shape.hidden.is_empty() {
            // Nobody else's share makes the rounding stochastic then.
            let resolution = round.shape.resolution;
            let below = (1u32 << (resolution.score_bits() - resolution.index_bits())) - 1;
            let number = round.iteration.into();
            let mut rng = self.randomness.fork("resident rounding", number)?;
            for score in known.iter_mut() {
                *score = score.wrapping_add(rng.next_u32() & below);
            }
        }
        Ok(known)
    }

    /// Steps E1 to E4 but for the sum over providers.
    fn count(
        &mut self,
        shape: &Shape,
        weights: &Weights,
        class: u32,
    ) -> Result<Vec<u64>, RemoteError> {
        let rows = self.part.held_out;
        let mut rng = self.randomness.fork("resident held-out", class.into())?;
        Command::Evaluate { class }.send(&mut self.channel)?;
        // E1
        let numbers = TreeNumbers::Evaluation { class };
        let (message, ahead) = self.session.ahead(shape, rows, numbers, &mut rng)?;
        self.channel.send(tag::AHEAD, &message)?;
        let length = shape.column_bytes(rows).iter().sum();
        let columns = self.channel.receive(tag::COLUMNS, length)?;
        let ready = ahead.open(shape, rows, &columns)?;
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

impl UserEngine for ResidentUser {
    fn gradient(&mut self, ask: GradientAsk<'_>) -> Result<Gradient, JobError> {
        let parts = self.remotes.iter().map(|remote| remote.part.rows);
        let rows: usize = parts.map(|rows| ask.batch.share(rows).len()).sum();
        let row_bits = usize::BITS - rows.leading_zeros();
        let shape = Shape {
            row_bits,
            ..self.shape.clone()
        };
        let weights = Weights::new(ask.beta, &self.domain, shape.resolution)
            .map_err(|e| JobError::Bug(e.to_string()))?;
        let command = Command::Gradient {
            iteration: ask.iteration,
            class: ask.class,
            batch: ask.batch.index() as u32,
            fraction_bits: row_bits,
        };
        let round = Round {
            shape: &shape,
            open: &self.open,
            weights: &weights,
            command,
            iteration: ask.iteration,
            batch: ask.batch,
            goes_on: ask.iteration + 1 < self.iterations,
        };
        let parts = ask_all(&mut self.remotes, |remote| remote.gradient(&round))?;
        let unit = self.table.unit() / 2f64.powi(shape.resolution.value_bits() as i32);
        let sums = whole_sums(&shape, &parts).into_iter();
        Ok(Gradient {
            sum: sums.map(|sum| sum as f64 * unit).collect(),
            rows,
        })
    }

    /// Counts that do not add up are not reacted to here: a provider could read from a reaction
    /// which place of a table was read. The job looks at them when the conversation is over.
    fn histogram(&mut self, class: u32, beta: &[f64]) -> Result<Histogram, JobError> {
        let shape = &self.count_shape;
        let weights = Weights::new(beta, &self.domain, shape.resolution)
            .map_err(|e| JobError::Bug(e.to_string()))?;
        let parts = ask_all(&mut self.remotes, |remote| {
            remote.count(shape, &weights, class)
        })?;
        let modulus = !(u64::MAX << shape.row_bits);
        let sum = |place: usize| {
            let all = parts.iter().map(|part| part[place]);
            all.fold(0u64, u64::wrapping_add) & modulus
        };
        Ok(Histogram {
            decision: lanes::LANES / 2,
            negatives: (0..lanes::LANES).map(sum).collect(),
            positives: (lanes::LANES..2 * lanes::LANES).map(sum).collect(),
        })
    }

    fn channels(&mut self) -> Vec<&mut Channel> {
        for remote in &mut self.remotes {
            // Who fails now fails again at the next message, with its name.
            let _ = remote.forget_ahead(&self.shape);
        }
        let remotes = self.remotes.iter_mut();
        remotes.map(|remote| &mut remote.channel).collect()
    }
}
