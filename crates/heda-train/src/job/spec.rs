//! What a data user wants, apart from where the providers are.

use crate::error::JobError;
use crate::proposal::{Engine, JobId, PROTOCOL_VERSION, Proposal, Ranking, Spending, Split};
use heda_learn::fixed::Precision;
use heda_learn::loss::LossKind;
use heda_learn::optimise::{Optimiser, Settings};
use heda_learn::schema::Schema;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Which features are encrypted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Choice {
    /// The best ι of the ranking.
    Best(usize),
    /// These, by name, whatever the ranking says.
    Named(Vec<String>),
}

/// A job, apart from where the providers are.
#[derive(Debug, Clone)]
pub struct JobSpec {
    /// Its name; the same when it is resumed.
    pub job: JobId,
    /// The providers' name for the data.
    pub dataset: String,
    /// The schema that all parties have agreed on.
    pub schema: Arc<Schema>,
    /// Class indices to be told from the rest, one model each.
    pub positives: Vec<u32>,
    /// How gradients are computed.
    pub engine: Engine,
    /// The loss.
    pub loss: LossKind,
    /// The grids.
    pub precision: Precision,
    /// The optimiser of every model.
    pub settings: Settings,
    /// Share of rows held out, in thousandths.
    pub holdout_permille: u32,
    /// How features are ranked.
    pub ranking: Ranking,
    /// Which of them are encrypted.
    pub choice: Choice,
    /// What is spent on publishing the others; `None` drops them.
    pub spending: Option<Spending>,
    /// Key size of engine `paper`.
    pub key_bits: u32,
}

impl JobSpec {
    /// The proposal to every provider (J1).
    pub(crate) fn proposal(&self, identities: Vec<String>, seeded: bool) -> Proposal {
        Proposal {
            version: PROTOCOL_VERSION,
            job: self.job,
            dataset: self.dataset.clone(),
            schema: self.schema.fingerprint().to_string(),
            engine: self.engine,
            loss: self.loss,
            positives: self.positives.clone(),
            value_bits: self.precision.value_bits(),
            index_bits: self.precision.index_bits(),
            batches: self.settings.method.batches() as u32,
            iterations: self
                .settings
                .max_iterations
                .saturating_mul(self.positives.len() as u32),
            holdout_permille: self.holdout_permille,
            ranking: self.ranking.clone(),
            spending: self.spending.clone(),
            identities,
            seeded,
            key_bits: self.key_bits,
        }
    }

    fn feature(&self, name: &str) -> Result<usize, JobError> {
        let found = self
            .schema
            .columns()
            .iter()
            .position(|column| column.name() == name);
        found.ok_or_else(|| JobError::Input(format!("the schema has no feature \"{name}\"")))
    }

    /// The split by a ranking, best first (J5).
    pub(crate) fn split(&self, order: &[usize]) -> Result<Split, JobError> {
        let encrypted: Vec<usize> = match &self.choice {
            Choice::Best(iota) if *iota > order.len() => {
                return Err(JobError::Input(format!(
                    "iota is {iota}, but there are {} features; choose 0 to {}",
                    order.len(),
                    order.len()
                )));
            }
            Choice::Best(iota) => order[..*iota].to_vec(),
            Choice::Named(names) => names
                .iter()
                .map(|name| self.feature(name))
                .collect::<Result<_, _>>()?,
        };
        let rest: Vec<usize> = order
            .iter()
            .copied()
            .filter(|f| !encrypted.contains(f))
            .collect();
        let (published, dropped) = if self.spending.is_some() {
            (rest, Vec::new())
        } else {
            (Vec::new(), rest)
        };
        let split = Split {
            encrypted,
            published,
            dropped,
        };
        if !split.covers(self.schema.columns().len()) {
            return Err(JobError::Input(
                "a feature to encrypt is named twice".into(),
            ));
        }
        if split.encrypted.is_empty() && split.published.is_empty() {
            return Err(JobError::Input(
                "no feature is encrypted and none published: there is nothing to train on".into(),
            ));
        }
        Ok(split)
    }
}

/// Everything that is needed to go on after the last finished iteration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Checkpoint {
    /// The job.
    pub job: JobId,
    /// Gradients used so far, over all models.
    pub iteration: u32,
    /// Finished and running optimisers, one a model so far.
    pub optimisers: Vec<Optimiser>,
    /// The split that they belong to.
    pub split: Split,
}
