//! An engine that a program adds ([`super::register`]): what it offers, and how a job uses it.
//!
//! Such an engine computes the gradient over one provider's rows in a conversation of two, and the
//! data user adds what it gets from all. Held-out rows are counted as engine `resident` counts them.

use super::label_encoding::LabelEncoding;
use super::resident::{Remote, Resident, ResidentProvider, ResidentUser, check_held_out};
use super::{
    Engine, EvaluationAsk, GradientAsk, GradientQuestion, Implementation, Impossible, Joined,
    Limits, Part, ProviderEngine, ProviderRows, Terms, UserEngine,
};
use crate::closing::Closing;
use crate::description::Job;
use crate::error::{Defect, JobError, PeerProblem, ServeError};
use crate::histogram::{Histogram, NoisyCounts};
use crate::message::{Command, Message};
use crate::parallel::{Party, RemoteError, ask_all};
use crate::regression_metrics::ErrorSum;
use crate::rounds::Evaluation;
use heda_blocks::channel::{Channel, ChannelError};
use heda_crypto::random::{NoRandomness, Randomness};
use heda_learn::data::Dataset;
use heda_learn::gradient::Gradient;
use heda_learn::grid::Grid;
use heda_learn::optimise::Settings;
use heda_learn::resident::Resolution;
use heda_learn::scaling::Scaling;

/// An error of an engine, in its own words.
type Cause = Box<dyn std::error::Error + Send + Sync>;

/// An engine beside `resident`. It is for exact jobs whose label is a class, with one penalty and
/// without weights of classes.
pub trait PairwiseEngine: Send + Sync {
    /// Its name in files, messages and on the command line.
    fn name(&self) -> &'static str;

    /// What it gives away although the protocol is followed, in plain words. Programs show this.
    fn leaks(&self) -> &'static [&'static str];

    /// What it encrypts with, for the report.
    fn cryptosystem(&self) -> &'static str;

    /// How it trains so many rows where nothing else is said.
    fn usual_settings(&self, training_rows: usize) -> Settings;

    /// Names of the options that a job may have for it, in its `[engine_options]`.
    fn options(&self) -> &'static [&'static str] {
        &[]
    }

    /// Whether one provider's part can be done. Both sides ask before anything is paid for.
    ///
    /// # Errors
    /// If it cannot; the reason says what would help.
    fn check(&self, part: &PartTerms<'_>) -> Result<(), Cause>;

    /// The data user's side, for all parts of a job.
    ///
    /// # Errors
    /// If a part cannot be done, or there is no randomness.
    fn data_user(
        &self,
        parts: &[PartTerms<'_>],
        randomness: &Randomness,
    ) -> Result<Box<dyn PairwiseUser>, PairFailure>;

    /// The side of one provider, once both have set up what they need.
    ///
    /// # Errors
    /// If the data user or this side fails.
    fn provider(
        &self,
        channel: &mut Channel,
        part: &PartTerms<'_>,
        rows: OwnRows,
        randomness: &Randomness,
    ) -> Result<Box<dyn PairwiseProvider>, PairFailure>;
}

/// What both sides know of one provider's part.
#[derive(Debug, Clone)]
pub struct PartTerms<'a> {
    /// The job.
    pub job: &'a Job,
    /// For each column, in the order of the model, whether it is protected; the others are
    /// published.
    pub protected: Vec<bool>,
    /// Training rows of the provider.
    pub rows: usize,
}

/// A provider's training rows.
pub struct OwnRows {
    /// Row by row: protected columns as they are, from 0 to 1, and published ones as published.
    pub cells: Vec<f64>,
    /// Class of every row.
    pub labels: Vec<u32>,
}

/// The data user's side before any provider is connected.
pub trait PairwiseUser: Send + Sync {
    /// Sets up the session with one provider, whose published columns are `published`, row by row.
    ///
    /// # Errors
    /// If the provider or this side fails.
    fn set_up(
        &self,
        channel: &mut Channel,
        part: &PartTerms<'_>,
        published: Vec<f64>,
        randomness: Randomness,
    ) -> Result<Box<dyn PairwiseSession>, PairFailure>;
}

/// What the data user asks one provider for.
#[derive(Debug, Clone, Copy)]
pub struct PairQuestion<'a> {
    /// The coefficients, bias first.
    pub beta: &'a [f64],
    /// Index into the job's classes.
    pub class: usize,
    /// Index of the batch.
    pub batch: usize,
    /// Counts up by one over the whole job.
    pub iteration: u64,
}

/// The data user's side of one session.
pub trait PairwiseSession: Send + Sync {
    /// Whether a gradient at these coefficients can be asked for. Nothing is sent.
    ///
    /// # Errors
    /// If the training ran away from what was planned for.
    fn check(&self, beta: &[f64]) -> Result<(), Cause>;

    /// The gradient over the provider's rows of a batch.
    ///
    /// # Errors
    /// If the provider or this side fails.
    fn gradient(
        &self,
        channel: &mut Channel,
        question: PairQuestion<'_>,
    ) -> Result<Vec<f64>, PairFailure>;
}

/// A provider's side of one session.
pub trait PairwiseProvider {
    /// Answers one gradient. The answer is recorded before this is called.
    ///
    /// # Errors
    /// If the data user or this side fails.
    fn gradient(
        &mut self,
        channel: &mut Channel,
        batch: usize,
        iteration: u64,
    ) -> Result<(), PairFailure>;
}

/// Why an engine stopped.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PairFailure {
    /// The conversation broke.
    #[error(transparent)]
    Channel(#[from] ChannelError),
    /// The peer sent something that the protocol does not allow.
    #[error("the message \"{message}\" is unusable: {reason}")]
    Peer {
        /// Which message.
        message: &'static str,
        /// Why.
        reason: String,
    },
    /// The job does not suit the engine.
    #[error("{0}")]
    Unsuitable(Cause),
    /// The operating system failed us.
    #[error(transparent)]
    Randomness(#[from] NoRandomness),
    /// A defect of the engine.
    #[error("{0}")]
    Defect(Cause),
}

/// A registered engine as the job knows engines.
pub(super) struct Pairwise(pub(super) &'static dyn PairwiseEngine);

impl Pairwise {
    fn engine(&self) -> Engine {
        Engine(Some(self.0))
    }

    fn part<'a>(terms: &Terms<'a>, rows: usize) -> PartTerms<'a> {
        let columns = 0..terms.columns.width;
        let protected = columns.map(|column| terms.columns.hidden.contains(&column));
        PartTerms {
            job: &terms.proposal.job,
            protected: protected.collect(),
            rows,
        }
    }

    /// A failure of one provider or of ours.
    fn of_remote(&self, failure: PairFailure) -> RemoteError {
        match failure {
            PairFailure::Channel(error) => error.into(),
            PairFailure::Peer { message, reason } => PeerProblem::message(message, reason).into(),
            PairFailure::Randomness(error) => error.into(),
            PairFailure::Unsuitable(cause) | PairFailure::Defect(cause) => {
                RemoteError::Bug(self.defect(cause))
            }
        }
    }

    /// A failure before any provider takes part.
    fn of_user(&self, failure: PairFailure) -> JobError {
        match failure {
            PairFailure::Unsuitable(cause) => Impossible::from(cause).into(),
            PairFailure::Randomness(error) => error.into(),
            other => self.defect(Box::new(other)).into(),
        }
    }

    fn defect(&self, cause: Cause) -> Defect {
        let engine = self.engine();
        Defect::Engine { engine, cause }
    }
}

impl From<PairFailure> for ServeError {
    fn from(failure: PairFailure) -> Self {
        match failure {
            PairFailure::Channel(error) => error.into(),
            PairFailure::Peer { message, reason } => PeerProblem::message(message, reason).into(),
            PairFailure::Unsuitable(cause) => Impossible::from(cause).into(),
            PairFailure::Randomness(error) => error.into(),
            PairFailure::Defect(cause) => Self::defect(cause),
        }
    }
}

/// Points of the job's grid as numbers from 0 to 1.
fn values(points: &[u32], terms: &Terms<'_>) -> Vec<f64> {
    let grid = Grid::of_bits(terms.proposal.job.resolution().value_bits());
    points.iter().map(|&point| grid.value(point)).collect()
}

/// A provider's rows: protected columns as they are, because the engine rounds them to a grid of its
/// own and twice would be once too often; published ones as published.
fn own_rows(terms: &Terms<'_>, rows: &ProviderRows, exact: Option<Dataset>) -> OwnRows {
    let mut cells = values(&rows.grid, terms);
    let width = terms.columns.width.max(1);
    let exact = exact
        .iter()
        .flat_map(|rows| rows.values().chunks_exact(width));
    let pairs = cells.chunks_exact_mut(width).zip(exact);
    for (cells, exact) in pairs {
        for &column in &terms.columns.hidden {
            cells[column] = exact[column];
        }
    }
    OwnRows {
        cells,
        labels: rows.labels.clone(),
    }
}

impl Implementation for Pairwise {
    fn sums_over_providers(&self) -> bool {
        false
    }

    fn rounding(&self, _: Resolution) -> f64 {
        0.0
    }

    fn rounds_itself(&self) -> bool {
        true
    }

    fn limits(&self) -> Limits {
        Resident.limits()
    }

    fn check(&self, terms: &Terms<'_>, part: Part) -> Result<(), Impossible> {
        self.0.check(&Self::part(terms, part.rows))?;
        check_held_out(terms, part)
    }

    fn set_up_user(
        &self,
        terms: &Terms<'_>,
        mut parties: Vec<Joined>,
        scaling: &Scaling,
        labels_as: &LabelEncoding,
        randomness: &Randomness,
    ) -> Result<Box<dyn UserEngine>, JobError> {
        let published = parties
            .iter_mut()
            .map(|party| values(&std::mem::take(&mut party.open), terms));
        let published: Vec<_> = published.collect();
        let parts: Vec<_> = parties
            .iter()
            .map(|party| Self::part(terms, party.part.rows))
            .collect();
        let user = self.0.data_user(&parts, randomness);
        let user = user.map_err(|failure| self.of_user(failure))?;
        let mut counting = ResidentUser::set_up(terms, parties, scaling, labels_as, randomness)?;
        let remotes = counting.remotes.iter_mut();
        let mut starting: Vec<With<'_, _>> = remotes
            .zip(parts.into_iter().zip(published))
            .map(|(remote, begin)| With { remote, own: begin })
            .collect();
        let sessions = ask_all(&mut starting, |With { remote, own }| {
            let (part, published) = (&own.0, std::mem::take(&mut own.1));
            let randomness = remote.randomness.clone();
            let session = user.set_up(remote.channel(), part, published, randomness);
            session.map_err(|failure| self.of_remote(failure))
        })?;
        Ok(Box::new(UserSide {
            engine: Self(self.0),
            sessions,
            counting,
        }))
    }

    fn set_up_provider(
        &self,
        channel: &mut Channel,
        terms: &Terms<'_>,
        (rows, exact): (ProviderRows, Option<Dataset>),
        randomness: &Randomness,
    ) -> Result<Box<dyn ProviderEngine>, ServeError> {
        let part = Self::part(terms, rows.labels.len());
        let own = own_rows(terms, &rows, exact);
        let counting = ResidentProvider::set_up(channel, terms, rows, randomness)?;
        let training = self.0.provider(channel, &part, own, randomness)?;
        Ok(Box::new(ProviderSide { training, counting }))
    }
}

/// A provider, with what belongs to it.
struct With<'a, T> {
    remote: &'a mut Remote,
    own: T,
}

impl<T: Send> Party for With<'_, T> {
    fn name(&self) -> &str {
        self.remote.name()
    }

    fn channel(&mut self) -> &mut Channel {
        self.remote.channel()
    }
}

/// The data user's role.
struct UserSide {
    engine: Pairwise,
    sessions: Vec<Box<dyn PairwiseSession>>,
    counting: ResidentUser,
}

impl UserEngine for UserSide {
    fn gradient(&mut self, ask: GradientAsk<'_>) -> Result<Gradient, JobError> {
        let GradientAsk {
            beta, class, batch, ..
        } = ask;
        // All are checked before the first one is asked.
        for session in &self.sessions {
            let checked = session.check(beta);
            checked.map_err(|e| JobError::Diverged(e.to_string()))?;
        }
        let remotes = self.counting.remotes.iter_mut();
        let mut asked: Vec<With<'_, _>> = remotes
            .zip(&self.sessions)
            .map(|(remote, own)| With { remote, own })
            .collect();
        let shares = asked.iter().map(|party| party.remote.part.rows);
        let rows = shares.map(|rows| batch.share(rows).len()).sum();
        let command = Command::Gradient {
            step: ask.step,
            iteration: ask.iteration,
            class,
            batch: batch.index() as u32,
            row_bits: 0,
        };
        let question = PairQuestion {
            beta,
            class: class as usize,
            batch: batch.index(),
            iteration: ask.iteration.into(),
        };
        let parts = ask_all(&mut asked, |With { remote, own }| {
            let channel = remote.channel();
            command.send(channel)?;
            let part = own.gradient(channel, question);
            part.map_err(|failure| self.engine.of_remote(failure))
        })?;
        let mut sum = vec![0.0; beta.len()];
        for part in &parts {
            sum.iter_mut()
                .zip(part)
                .for_each(|(sum, value)| *sum += value);
        }
        Ok(Gradient { sum, rows })
    }

    fn histogram(&mut self, ask: EvaluationAsk<'_>) -> Result<Histogram, JobError> {
        self.counting.histogram(ask)
    }

    fn noisy_counts(&mut self, ask: EvaluationAsk<'_>) -> Result<NoisyCounts, JobError> {
        self.counting.noisy_counts(ask)
    }

    fn errors(&mut self, ask: EvaluationAsk<'_>) -> Result<ErrorSum, JobError> {
        self.counting.errors(ask)
    }

    fn channels(&mut self) -> Vec<&mut Channel> {
        self.counting.channels()
    }
}

/// A provider's role.
struct ProviderSide {
    training: Box<dyn PairwiseProvider>,
    counting: ResidentProvider,
}

impl ProviderEngine for ProviderSide {
    fn gradient(
        &mut self,
        channel: &mut Channel,
        question: GradientQuestion,
        closing: Closing<'_>,
    ) -> Result<(), ServeError> {
        // Nothing is summed over providers here, so the whole exchange is the answer.
        closing.unmasked(())?;
        let (batch, iteration) = (question.batch.index(), question.iteration.into());
        Ok(self.training.gradient(channel, batch, iteration)?)
    }

    fn count(
        &mut self,
        channel: &mut Channel,
        ask: (Evaluation, u32),
        closing: Closing<'_>,
    ) -> Result<(), ServeError> {
        self.counting.count(channel, ask, closing)
    }
}
