//! What the labels of a job's rows are, and the table that follows for each model.

use crate::class_weights::ClassWeights;
use crate::proposal::Proposal;
use heda_learn::loss::LossKind;
use heda_learn::resident::{CodeTable, Resolution};
use heda_learn::target::{RowLabel, TargetScale};
use std::sync::Arc;

/// How labels are read.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum LabelEncoding {
    /// One class against the rest, in which rows may count more or less.
    Classes(ClassWeights),
    /// A number, in deviations.
    Number(TargetScale),
}

impl Default for LabelEncoding {
    fn default() -> Self {
        Self::Classes(ClassWeights::Alike)
    }
}

impl LabelEncoding {
    /// A row's label, when class `positive` is told from the rest.
    pub(crate) fn label(&self, label: u32, positive: u32) -> RowLabel {
        match self {
            Self::Classes(class_weights) => class_weights.label(label, positive),
            Self::Number(scale) => scale.deviations(label).into(),
        }
    }

    /// The standard deviation of one row's derivative by rounding, if `usual` is that of a class
    /// that counts 1.
    pub(crate) fn rounding(&self, resolution: Resolution, usual: f64) -> f64 {
        match self {
            Self::Classes(class_weights) => usual * class_weights.largest(),
            Self::Number(_) => resolution.rounding_of_numbers(),
        }
    }
}

/// The tables of a job's models, one at a time.
pub(crate) struct Tables {
    loss: LossKind,
    labels_as: LabelEncoding,
    made: Option<(u32, Resolution, Arc<CodeTable>)>,
}

impl Tables {
    pub(crate) fn new(proposal: &Proposal, labels_as: &LabelEncoding) -> Self {
        Self {
            loss: proposal.job.loss(),
            labels_as: labels_as.clone(),
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
        let table = Arc::new(match &self.labels_as {
            LabelEncoding::Classes(class_weights) => {
                class_weights.table(model as usize, self.loss, resolution)
            }
            LabelEncoding::Number(_) => CodeTable::of_numbers(resolution),
        });
        self.made = Some((model, resolution, Arc::clone(&table)));
        table
    }
}
