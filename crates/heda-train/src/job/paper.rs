//! Where a job meets engine `paper`: the shape that both sides compute, and whose fault a failure
//! is.

use crate::codec::to_json;
use crate::error::Blame;
use crate::error::{JobError, PeerProblem, ServeError};
use crate::lookup::{self, Columns, Remote};
use crate::paper::{Column, Limits, PaperError, PaperRows, Plan, Shape};
use crate::parallel::{RemoteError, ask_all};
use crate::proposal::Command;
use heda_blocks::BlockError;
use heda_learn::gradient::{Batch, Gradient};
use heda_learn::loss::LossKind;

/// What both sides know of one provider's part of the job.
pub(super) struct Terms<'a> {
    pub(super) columns: &'a Columns,
    pub(super) rows: usize,
    pub(super) batches: usize,
    pub(super) positives: &'a [u32],
    pub(super) key_bits: u32,
    pub(super) value_bits: u32,
    pub(super) loss: LossKind,
}

impl Terms<'_> {
    /// The shape, if the engine can do the job; otherwise why not.
    pub(super) fn shape(&self) -> Result<Shape, String> {
        if self.loss != LossKind::Logistic {
            return Err("engine paper trains logistic regression only; use engine lookup".into());
        }
        let published = Column::Published {
            fraction_bits: self.value_bits,
        };
        let column = |index: usize| match self.columns.hidden.contains(&index) {
            true => Column::Encrypted,
            false => published,
        };
        let shape = Shape {
            columns: (0..self.columns.width).map(column).collect(),
            rows: self.rows,
            batches: self.batches,
            positives: self.positives.to_vec(),
            key_bits: self.key_bits as usize,
            limits: Limits::default(),
            insecure_test_keys: false,
        };
        Plan::new(&shape).map_err(|e| e.to_string())?;
        Ok(shape)
    }
}

/// Points of the job's grid as numbers from 0 to 1.
pub(super) fn values(grid: &[u32], value_bits: u32) -> Vec<f64> {
    let one = f64::from(1u32 << value_bits);
    grid.iter().map(|&cell| f64::from(cell) / one).collect()
}

/// A provider's rows for the engine.
pub(super) fn rows(
    shape: &Shape,
    grid: &[u32],
    labels: &[u32],
    value_bits: u32,
) -> Result<PaperRows, ServeError> {
    let values = values(grid, value_bits);
    PaperRows::new(shape.columns.clone(), &values, labels.to_vec())
        .map_err(|e| ServeError::House(e.to_string()))
}

/// One gradient over all providers.
pub(super) fn gradient(
    remotes: &mut [Remote],
    beta: &[f64],
    class: u32,
    batch: Batch,
    iteration: &mut u32,
) -> Result<Gradient, JobError> {
    let now = *iteration;
    *iteration += 1;
    for remote in remotes.iter().filter_map(|remote| remote.paper.as_ref()) {
        remote
            .check(beta)
            .map_err(|e| JobError::Diverged(e.to_string()))?;
    }
    let rows = remotes
        .iter()
        .map(|remote| remote.batches[batch.index()].rows)
        .sum();
    let command = Command::Gradient {
        iteration: now,
        class,
        batch: batch.index() as u32,
        fraction_bits: 0,
    };
    let parts = ask_all(remotes, |remote| {
        let Remote { channel, paper, .. } = remote;
        let missing = || RemoteError::Bug("engine paper was not set up".into());
        let paper = paper.as_ref().ok_or_else(missing)?;
        channel.send(lookup::tag::COMMAND, &to_json(&command).blame("command")?)?;
        Ok(paper.gradient(channel, beta, class as usize, batch.index(), now.into())?)
    })?;
    let mut sum = vec![0.0; beta.len()];
    for part in &parts {
        sum.iter_mut()
            .zip(part)
            .for_each(|(sum, value)| *sum += value);
    }
    Ok(Gradient { sum, rows })
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
            Err(other) => Self::Bug(other.to_string()),
        }
    }
}

impl From<PaperError> for ServeError {
    fn from(error: PaperError) -> Self {
        match peer_problem(error) {
            Ok(problem) => Self::Peer(problem),
            Err(PaperError::Randomness(error)) => Self::Randomness(error),
            Err(PaperError::Capacity(error)) => Self::Refused(error.to_string()),
            Err(other) => Self::House(other.to_string()),
        }
    }
}
