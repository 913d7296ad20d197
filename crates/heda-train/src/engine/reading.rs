//! What the labels of a job's rows are, and the table that follows for each model.

use crate::proposal::Proposal;
use crate::weighing::Weighing;
use heda_learn::loss::LossKind;
use heda_learn::resident::{CodeTable, Resolution};
use heda_learn::target::{RowLabel, TargetScale};
use std::sync::Arc;

/// How labels are read.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Reading {
    /// One class against the rest, in which rows may count more or less.
    Classes(Weighing),
    /// A number, in deviations.
    Number(TargetScale),
}

impl Default for Reading {
    fn default() -> Self {
        Self::Classes(Weighing::Alike)
    }
}

impl Reading {
    /// A row's label, when class `positive` is told from the rest.
    pub(crate) fn label(&self, label: u32, positive: u32) -> RowLabel {
        match self {
            Self::Classes(weighing) => weighing.label(label, positive),
            Self::Number(scale) => scale.deviations(label).into(),
        }
    }

    /// The standard deviation of one row's derivative by rounding, if `usual` is that of a class
    /// that counts 1.
    pub(crate) fn rounding(&self, resolution: Resolution, usual: f64) -> f64 {
        match self {
            Self::Classes(weighing) => usual * weighing.largest(),
            Self::Number(_) => resolution.rounding_of_numbers(),
        }
    }
}

/// The tables of a job's models, one at a time.
pub(crate) struct Tables {
    loss: LossKind,
    reading: Reading,
    made: Option<(u32, Resolution, Arc<CodeTable>)>,
}

impl Tables {
    pub(crate) fn new(proposal: &Proposal, reading: &Reading) -> Self {
        Self {
            loss: proposal.loss,
            reading: reading.clone(),
            made: None,
        }
    }

    /// The table of a model, an index into the proposal's classes.
    pub(crate) fn of(&mut self, model: u32, resolution: Resolution) -> Arc<CodeTable> {
        if let Some((of, cut, table)) = &self.made
            && (*of, *cut) == (model, resolution)
        {
            return Arc::clone(table);
        }
        let table = Arc::new(match &self.reading {
            Reading::Classes(weighing) => weighing.table(model as usize, self.loss, resolution),
            Reading::Number(_) => CodeTable::of_numbers(resolution),
        });
        self.made = Some((model, resolution, Arc::clone(&table)));
        table
    }
}
