//! What a data user wants, apart from where the providers are.

use super::purchase::Purchased;
use crate::description::{Job, JobFault, Protected, RawJob};
use crate::error::{BadJob, Defect, JobError};
use crate::histogram::{Histogram, NoisyCounts};
use crate::moments::Moments;
use crate::plan::JobPlan;
use crate::proposal::{JobId, PROTOCOL_VERSION, Parties, Proposal, Split};
use crate::regression_metrics::ErrorSum;
use heda_learn::data::Feature;
use heda_learn::optimise::{Optimiser, Settings, Stop};
use heda_learn::partition::Partition;
use heda_learn::scaling::Centre;
use heda_learn::schema::Schema;
use heda_learn::score;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;

/// What is known when ι is to be chosen.
#[derive(Debug)]
pub struct Known<'a> {
    /// The features from best to worst.
    pub ranking: score::Ranking,
    /// All features of the schema.
    pub features: &'a [Feature],
    /// Training and held-out rows of each provider together.
    pub rows: &'a [usize],
}

/// No ι was chosen.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct NoIota(Box<dyn std::error::Error + Send + Sync>);

impl NoIota {
    /// For this reason, which names the remedy.
    pub fn because(cause: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self(cause.into())
    }
}

/// Chooses ι between agreement and release (J5). Asked once a job: what it chose is in the first
/// checkpoint.
pub trait IotaChooser: fmt::Debug + Send + Sync {
    /// The split, with its reason in words.
    fn choose(&self, known: Known<'_>) -> Result<Partition, NoIota>;
}

/// Which features are encrypted.
pub(crate) struct Chosen {
    /// Best first.
    pub(crate) encrypted: Vec<usize>,
    /// Whether the others may be published.
    pub(crate) publishes: bool,
    /// Why, if that was chosen.
    pub(crate) reason: Option<String>,
}

/// A job at the data user: what is to be trained, and what it needs beside that to go about it.
#[derive(Debug, Clone)]
pub struct JobSpec {
    /// Its name; the same when it is resumed.
    pub id: JobId,
    /// What is to be trained.
    pub job: Job,
    /// The schema that all parties have agreed on.
    pub schema: Arc<Schema>,
    /// Chooses how many features are encrypted, if the job has a goal for that.
    pub iota: Option<Arc<dyn IotaChooser>>,
    /// The place of the provider that ranks the features, if one does so for all.
    pub chooser: Option<usize>,
    /// The order of the features that an earlier session came to, where the job goes on without one
    /// of its providers.
    pub order: Option<Vec<String>>,
}

impl JobSpec {
    /// A job under a name.
    pub fn new(id: JobId, job: Job, schema: Arc<Schema>) -> Self {
        Self {
            id,
            job,
            schema,
            iota: None,
            chooser: None,
            order: None,
        }
    }

    /// The same with something about the job changed.
    ///
    /// # Errors
    /// If what comes of it contradicts itself.
    pub fn with(&self, change: impl FnOnce(&mut RawJob)) -> Result<Self, JobFault> {
        Ok(Self {
            job: self.job.with(change)?,
            ..self.clone()
        })
    }

    /// The proposal to every provider (J1).
    pub(crate) fn proposal(&self, identities: Vec<String>, seeded: bool) -> Proposal {
        Proposal {
            version: PROTOCOL_VERSION,
            id: self.id,
            job: self.job.clone(),
            parties: Parties {
                identities,
                chooser: self.chooser,
            },
            order: self.order.clone(),
            seeded,
        }
    }

    /// How many gradients the job asks for, over all classes. A plan that is impossible is found by
    /// whoever makes it.
    pub fn gradients(&self) -> u32 {
        let privacy = self.job.privacy();
        let plan = privacy.and_then(|privacy| privacy.plan(self.schema.width() + 1).ok());
        plan.map_or(self.job.gradients(), |plan| plan.all_gradients())
    }

    /// How each model is improved: as was asked for with one of the penalties, or as the plan says
    /// for what was bought.
    pub(crate) fn steps(
        &self,
        plan: Option<&JobPlan>,
        step: usize,
        bought: Option<&Purchased>,
    ) -> Result<Settings, BadJob> {
        let persons = bought.and_then(|bought| bought.persons);
        Ok(
            match (plan.map(JobPlan::plan), persons, self.job.training()) {
                (Some(plan), None, _) => plan.settings(),
                (Some(plan), Some(persons), _) => plan.settings_for(persons),
                (None, _, Some(training)) => training.settings_of(step),
                (None, _, None) => return Err(BadJob::Nothing),
            },
        )
    }

    fn feature(&self, name: &str) -> Result<usize, JobError> {
        let found = self
            .schema
            .columns()
            .iter()
            .position(|column| column.name() == name);
        found.ok_or_else(|| BadJob::NoFeature(name.to_owned()).into())
    }

    /// The features to encrypt by a ranking (J5). `rows` are those of each provider, `before` the split that a checkpoint holds.
    pub(crate) fn encrypted(
        &self,
        order: &[usize],
        rows: &[usize],
        before: Option<&Split>,
    ) -> Result<Chosen, JobError> {
        let plainly = |encrypted| Chosen {
            encrypted,
            publishes: true,
            reason: None,
        };
        match (&self.job.features().protected, before) {
            (Protected::All, _) => Ok(plainly(order.to_vec())),
            (Protected::Best(iota), _) if *iota > order.len() => {
                let (iota, features) = (*iota, order.len());
                Err(BadJob::Iota { iota, features }.into())
            }
            (Protected::Best(iota), _) => Ok(plainly(order[..*iota].to_vec())),
            (Protected::Named(names), _) => {
                let features = names.iter().map(|name| self.feature(name));
                Ok(plainly(features.collect::<Result<_, _>>()?))
            }
            (Protected::For(_), Some(split)) => Ok(Chosen {
                encrypted: split.encrypted.clone(),
                publishes: !split.published.is_empty(),
                reason: Some("as chosen before".into()),
            }),
            (Protected::For(_), None) => {
                let chooser = self.iota.as_ref().ok_or(Defect::NobodyChooses)?;
                let known = Known {
                    ranking: score::Ranking::from_order(order.to_vec()).map_err(Defect::Ranking)?,
                    features: &self.schema.features(),
                    rows,
                };
                let chosen = chooser.choose(known).map_err(BadJob::from)?;
                Ok(Chosen {
                    encrypted: chosen.encrypted().to_vec(),
                    publishes: chosen.publishes(),
                    reason: Some(chosen.reason().to_owned()),
                })
            }
        }
    }

    /// The split with these features encrypted (J5). The others are published if something is spent
    /// on that and the choice was not to leave them out.
    pub(crate) fn split(&self, order: &[usize], chosen: Chosen) -> Result<Split, JobError> {
        let Chosen {
            encrypted,
            publishes,
            ..
        } = chosen;
        let rest: Vec<usize> = order
            .iter()
            .copied()
            .filter(|f| !encrypted.contains(f))
            .collect();
        let (published, dropped) = if self.job.spending().is_some() && publishes {
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
            return Err(BadJob::NamedTwice.into());
        }
        if split.encrypted.is_empty() && split.published.is_empty() {
            return Err(BadJob::Nothing.into());
        }
        Ok(split)
    }
}

/// Everything that is needed to go on after the last finished iteration or evaluation.
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
    /// Evaluations that are done or lost, one a model so far. None is asked for again: with fewer
    /// providers the difference would be the histogram of the one that left.
    #[serde(default)]
    pub histograms: Vec<Histogram>,
    /// The same for a private job, by number of the evaluation; none for an answer that was lost and
    /// is not given again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub noisy: Vec<Option<NoisyCounts>>,
    /// The same for a numeric label, one a measure of its errors so far.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<ErrorSum>,
    /// Where columns and labels lie, if that was asked. Not asked again, for the same reason.
    #[serde(default)]
    pub moments: Option<Moments>,
    /// The number of the next answer.
    #[serde(default)]
    pub step: u32,
    /// Answers that a private job goes without: a provider gave them, and they did not arrive.
    #[serde(default)]
    pub lost: u32,
    /// Sums that a private job has bought, an answer each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sums: Vec<Vec<i64>>,
    /// What follows from them, once that was told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bought: Option<Purchased>,
    /// Penalties of a path that are done, all of one model before those of the next. The optimiser
    /// of a model is the one of the first that is not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tried: Vec<Tried>,
}

/// One penalty of a path for one model: what came of it. Not asked for again, as no evaluation is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tried {
    /// The coefficients, in the coordinates of the rows that the engine works on.
    pub beta: Vec<f64>,
    /// Gradients used.
    pub iterations: u32,
    /// Why it ended.
    pub stop: Stop,
    /// The iteration in which it converged or reached the floor of noise, if it did.
    pub settled: Option<u32>,
    /// Features whose coefficients are not determined.
    pub undetermined: Vec<String>,
    /// Features that nearly follow from others and have no readable coefficients.
    pub entangled: Vec<String>,
    /// Norm of the last mean gradient.
    pub norm: Option<f64>,
    /// Counts of the rows that choose.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub histogram: Option<Histogram>,
    /// The same for a numeric label: squared errors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub errors: Option<ErrorSum>,
}

impl Checkpoint {
    /// Where columns lie that a private job has bought.
    pub(crate) fn centres(&self) -> Option<&[Centre]> {
        let bought = self.bought.as_ref();
        bought
            .map(|bought| &bought.centres[..])
            .filter(|centres| !centres.is_empty())
    }

    /// A job whose split is known and nothing else.
    pub(crate) fn begun(job: JobId, split: Split) -> Self {
        Self {
            job,
            iteration: 0,
            optimisers: Vec::new(),
            split,
            histograms: Vec::new(),
            noisy: Vec::new(),
            errors: Vec::new(),
            moments: None,
            step: 0,
            lost: 0,
            sums: Vec::new(),
            bought: None,
            tried: Vec::new(),
        }
    }
}
