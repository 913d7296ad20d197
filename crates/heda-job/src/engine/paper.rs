//! Engine `paper`: where a job meets Algorithm 5 of the Heda paper ([`heda_paper::algorithm5`]).
//!
//! It trains in its own way and counts held-out rows as engine `resident` does.

use super::label_encoding::LabelEncoding;
use super::resident::{Remote, Resident, ResidentProvider, ResidentUser, check_held_out};
use super::{
    Engine, EvaluationAsk, GradientAsk, GradientQuestion, Implementation, Impossible, Joined,
    Limits, Part, ProviderEngine, ProviderRows, Terms, UserEngine,
};
use crate::closing::Closing;
use crate::error::{BadJob, Defect, JobError, PeerProblem, ServeError};
use crate::histogram::{Histogram, NoisyCounts};
use crate::message::{Command, Message};
use crate::parallel::{Party, RemoteError, ask_all};
use crate::regression_metrics::ErrorSum;
use crate::rounds::Evaluation;
use heda_blocks::channel::Channel;
use heda_crypto::masking::MaskingError;
use heda_crypto::random::Randomness;
use heda_learn::gradient::Gradient;
use heda_learn::grid::Grid;
use heda_learn::loss::LossKind;
use heda_learn::resident::Resolution;
use heda_learn::scaling::Scaling;
use heda_paper::algorithm5::{
    Column, Limits as Coefficients, PaperError, PaperProvider, PaperRemote, PaperRows, Plan,
    ProviderKeys, Shape, leaks,
};
use heda_paper::blocks::BlockError;

/// The engine.
pub(super) struct Paper;

/// A loss that Algorithm 5 does not have.
#[derive(Debug, thiserror::Error)]
#[error(
    "engine paper trains logistic regression only; use engine {}",
    Engine::default()
)]
struct OtherLoss;

/// The shape of one provider's part, if the engine can do it.
fn shape(terms: &Terms<'_>, rows: usize) -> Result<Shape, Impossible> {
    let proposal = terms.proposal;
    if proposal.job.loss() != LossKind::Logistic {
        return Err(Impossible::job(OtherLoss));
    }
    let published = Column::Published {
        fraction_bits: proposal.job.resolution().value_bits(),
    };
    let column = |index: usize| match terms.columns.hidden.contains(&index) {
        true => Column::Encrypted,
        false => published,
    };
    let shape = Shape {
        columns: (0..terms.columns.width).map(column).collect(),
        rows,
        batches: terms.batches(),
        positives: proposal.job.positives().to_vec(),
        key_bits: proposal.job.key_bits() as usize,
        limits: Coefficients::default(),
        insecure_test_keys: false,
    };
    Plan::new(&shape).map_err(Impossible::job)?;
    Ok(shape)
}

/// Points of the job's grid as numbers from 0 to 1.
fn values(points: &[u32], value_bits: u32) -> Vec<f64> {
    let grid = Grid::of_bits(value_bits);
    points.iter().map(|&point| grid.value(point)).collect()
}

/// A provider's rows: hidden columns as they are, to be rounded once, to the engine's own grid;
/// published ones as published.
fn own_values(terms: &Terms<'_>, rows: &ProviderRows) -> Vec<f64> {
    let mut cells = values(&rows.grid, terms.proposal.job.resolution().value_bits());
    let width = terms.columns.width.max(1);
    let exact = rows.exact.values().chunks_exact(width);
    for (cells, exact) in cells.chunks_exact_mut(width).zip(exact) {
        let hidden = terms.columns.hidden.iter();
        hidden.for_each(|&column| cells[column] = exact[column]);
    }
    cells
}

impl Implementation for Paper {
    fn leaks(&self) -> &'static [&'static str] {
        leaks()
    }

    fn sums_over_providers(&self) -> bool {
        false
    }

    fn rounding(&self, _: Resolution) -> f64 {
        0.0
    }

    fn limits(&self) -> Limits {
        Resident.limits()
    }

    fn check(&self, terms: &Terms<'_>, part: Part) -> Result<(), Impossible> {
        shape(terms, part.rows)?;
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
        let own = parties.iter_mut();
        let opens: Vec<Vec<u32>> = own.map(|party| std::mem::take(&mut party.open)).collect();
        let mut shapes = Vec::with_capacity(parties.len());
        for party in &parties {
            shapes.push(shape(terms, party.part.rows)?);
        }
        let Some(first) = shapes.first() else {
            return Err(BadJob::Roster(MaskingError::RosterSize(0)).into());
        };
        let own = PaperRemote::user_key(first, &mut randomness.fork("paper keys", 0)?);
        let own = own.map_err(defect)?;
        let mut counting = ResidentUser::set_up(terms, parties, scaling, labels_as, randomness)?;
        let remotes = counting.remotes.iter_mut();
        let mut starting: Vec<Starting<'_>> = remotes
            .zip(shapes)
            .zip(opens)
            .map(|((remote, shape), open)| Starting {
                remote,
                begin: Some((
                    shape,
                    values(&open, terms.proposal.job.resolution().value_bits()),
                )),
            })
            .collect();
        let training = ask_all(&mut starting, |party| {
            let begun = || Defect::Repeated("a provider is set up");
            let (shape, open) = party.begin.take().ok_or_else(begun)?;
            let (own, randomness) = (own.clone(), party.remote.randomness.clone());
            let channel = party.channel();
            Ok(PaperRemote::set_up(channel, shape, own, open, randomness)?)
        })?;
        Ok(Box::new(PaperUser { training, counting }))
    }

    fn set_up_provider(
        &self,
        channel: &mut Channel,
        terms: &Terms<'_>,
        rows: ProviderRows,
        randomness: &Randomness,
    ) -> Result<Box<dyn ProviderEngine>, ServeError> {
        let shape = shape(terms, rows.part().rows)?;
        let cells = own_values(terms, &rows);
        let own = PaperRows::new(shape.columns.clone(), &cells, rows.labels.clone())
            .map_err(ServeError::defect)?;
        let counting = ResidentProvider::set_up(channel, terms, rows, randomness)?;
        let keys = ProviderKeys::generate(&shape, &mut randomness.fork("paper keys", 0)?)?;
        let training = PaperProvider::set_up(channel, shape, own, keys, randomness.clone())?;
        Ok(Box::new(PaperSide { training, counting }))
    }
}

/// A provider whose part of Algorithm 5 is being set up.
struct Starting<'a> {
    remote: &'a mut Remote,
    begin: Option<(Shape, Vec<f64>)>,
}

impl Party for Starting<'_> {
    fn name(&self) -> &str {
        self.remote.name()
    }

    fn channel(&mut self) -> &mut Channel {
        self.remote.channel()
    }
}

/// A provider that is asked for its gradient.
struct Asked<'a> {
    remote: &'a mut Remote,
    paper: &'a PaperRemote,
}

impl Party for Asked<'_> {
    fn name(&self) -> &str {
        self.remote.name()
    }

    fn channel(&mut self) -> &mut Channel {
        self.remote.channel()
    }
}

/// The data user's role.
struct PaperUser {
    training: Vec<PaperRemote>,
    counting: ResidentUser,
}

impl UserEngine for PaperUser {
    fn gradient(&mut self, ask: GradientAsk<'_>) -> Result<Gradient, JobError> {
        let GradientAsk {
            beta, class, batch, ..
        } = ask;
        // All are checked before the first one is asked.
        for paper in &self.training {
            paper
                .check(beta)
                .map_err(|e| JobError::Diverged(e.to_string()))?;
        }
        let remotes = self.counting.remotes.iter_mut();
        let mut asked: Vec<Asked<'_>> = remotes
            .zip(&self.training)
            .map(|(remote, paper)| Asked { remote, paper })
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
        let parts = ask_all(&mut asked, |Asked { remote, paper }| {
            let channel = remote.channel();
            command.send(channel)?;
            let iteration = ask.iteration.into();
            Ok(paper.gradient(channel, beta, class as usize, batch.index(), iteration)?)
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
struct PaperSide {
    training: PaperProvider,
    counting: ResidentProvider,
}

impl ProviderEngine for PaperSide {
    fn gradient(
        &mut self,
        channel: &mut Channel,
        question: GradientQuestion,
        closing: Closing<'_>,
    ) -> Result<(), ServeError> {
        // Nothing is summed over providers here, so the whole exchange is the answer.
        closing.unmasked(())?;
        let iteration = question.iteration.into();
        Ok(self
            .training
            .gradient(channel, question.batch.index(), iteration)?)
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

/// A failure of the engine that no input and no peer can cause.
fn defect(cause: PaperError) -> Defect {
    Defect::Engine {
        engine: Engine::Paper,
        cause: cause.into(),
    }
}

/// The peer's fault as such; everything else as it is.
fn peer_problem(error: PaperError) -> Result<PeerProblem, PaperError> {
    match error {
        PaperError::Channel(error) | PaperError::Block(BlockError::Channel(error)) => {
            Ok(error.into())
        }
        PaperError::Peer { message, reason }
        | PaperError::Block(BlockError::Peer { message, reason }) => {
            Ok(PeerProblem::message(message, reason))
        }
        other => Err(other),
    }
}

impl From<PaperError> for RemoteError {
    fn from(error: PaperError) -> Self {
        match peer_problem(error) {
            Ok(problem) => Self::Peer(problem),
            Err(PaperError::Randomness(error)) => Self::Randomness(error),
            Err(other) => Self::Bug(defect(other)),
        }
    }
}

impl From<PaperError> for ServeError {
    fn from(error: PaperError) -> Self {
        match peer_problem(error) {
            Ok(problem) => Self::Peer(problem),
            Err(PaperError::Randomness(error)) => Self::Randomness(error),
            Err(PaperError::Capacity(error)) => Impossible::job(error).into(),
            Err(other) => Self::defect(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::Columns;
    use crate::engine::testing::reason;
    use crate::proposal::testing::proposal;
    use crate::rows::on_grid;
    use heda_learn::data::{Dataset, Feature};

    #[test]
    fn hidden_cells_are_rounded_once_and_published_ones_stay_as_published() {
        let feature = |name: &str, column: usize| Feature {
            name: name.into(),
            columns: column..column + 1,
            levels: None,
        };
        let features = vec![feature("hidden", 0), feature("open", 1)];
        // Of 1024 steps 0.1149 is nearest to 118, which is nearest to 12 of 100.
        let values = vec![0.1149, 0.1149, 1.0, 0.0];
        let classes = vec!["no".into(), "yes".into()];
        let exact = Dataset::new(features.clone(), values, vec![0, 1], classes).unwrap();
        let mut grid = on_grid(exact.values(), 10);
        assert_eq!(grid, [118, 118, 1024, 0]);
        grid[3] = 7;
        let rows = ProviderRows {
            exact,
            grid,
            labels: vec![0, 1],
            held_out_grid: Vec::new(),
            held_out_labels: Vec::new(),
            labels_as: LabelEncoding::default(),
            private: None,
            private_held_out: None,
        };
        let columns = Columns::new(&features, &[false, true]);
        let proposal = proposal();
        let terms = Terms {
            proposal: &proposal,
            features: &features,
            columns: &columns,
            plan: None,
        };
        let kinds = shape(&terms, 2).unwrap().columns;
        let own = PaperRows::new(kinds, &own_values(&terms, &rows), rows.labels).unwrap();
        assert_eq!((own.row(0), own.row(1)), (&[11, 118][..], &[100, 7][..]));
    }

    #[test]
    fn what_does_not_fit_is_known_with_its_remedy() {
        assert_eq!(reason(Engine::Paper, 14, [26_049, 500, 6_512]), None);
        let wide = reason(Engine::Paper, 25, [1000, 10, 0]).unwrap();
        assert!(wide.contains("encrypt at most"), "{wide}");
        let many = reason(Engine::Paper, 14, [1000, 10, 300_000]).unwrap();
        assert!(many.contains("hold out fewer"), "{many}");
    }
}
