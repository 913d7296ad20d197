//! What a data user wants, apart from where the providers are.

use crate::error::{BadJob, Defect, JobError};
use crate::errors::ErrorSum;
use crate::histogram::Histogram;
use crate::moments::Moments;
use crate::proposal::{
    ClassWeight, Engine, JobId, PROTOCOL_VERSION, Path, Privacy, Proposal, Ranking, Spending, Split,
};
use heda_learn::data::Feature;
use heda_learn::loss::LossKind;
use heda_learn::optimise::{Optimiser, PenaltyPath, Settings, Stop};
use heda_learn::partition::Partition;
use heda_learn::private::PrivatePlan;
use heda_learn::resident::Resolution;
use heda_learn::scaling::Centre;
use heda_learn::schema::Schema;
use heda_learn::score;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;

/// Which features are encrypted.
#[derive(Debug, Clone)]
pub enum Choice {
    /// The best ι of the ranking.
    Best(usize),
    /// These, by name, whatever the ranking says.
    Named(Vec<String>),
    /// The best ι of the ranking, with ι chosen when ranking and rows are known.
    Auto(Arc<dyn IotaChooser>),
}

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
    pub resolution: Resolution,
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
    /// The guarantee of a private job.
    pub privacy: Option<Privacy>,
    /// Key size of engine `paper`.
    pub key_bits: u32,
    /// How much the rows of each class count; `None`: all alike.
    pub class_weight: Option<ClassWeight>,
    /// Penalties of which one is chosen by held-out rows, instead of the one of `settings`.
    pub path: Option<PenaltyPath>,
}

impl JobSpec {
    /// Whether the label is a number.
    pub fn is_numeric(&self) -> bool {
        self.schema.label().number().is_some()
    }

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
            resolution: self.resolution,
            batches: self.settings.method.batches() as u32,
            iterations: self.gradients(),
            holdout_permille: self.holdout_permille,
            ranking: self.ranking.clone(),
            spending: self.spending.clone(),
            privacy: self.privacy,
            identities,
            seeded,
            key_bits: self.key_bits,
            standardise: self.standardises(),
            numeric: self.is_numeric(),
            class_weight: self.class_weight.clone(),
            path: self.path(),
        }
    }

    /// The path of penalties as providers see it.
    fn path(&self) -> Option<Path> {
        let path = self.path.as_ref()?;
        let (first, next) = path.gradients(self.settings.max_iterations);
        Some(Path {
            penalties: path.values().len() as u32,
            first,
            next,
        })
    }

    /// Whether training works in deviations from the mean. A private job has coordinates of its
    /// own.
    pub(crate) fn standardises(&self) -> bool {
        self.privacy.is_none() && self.settings.method.standardises()
    }

    /// How many gradients the job asks for, over all classes. A plan that is impossible is found by
    /// whoever makes it.
    pub fn gradients(&self) -> u32 {
        let columns = |feature: Feature| feature.columns.len();
        let width: usize = self.schema.features().into_iter().map(columns).sum();
        let plan = self.privacy.and_then(|p| p.plan(width + 1).ok());
        let each = match (plan, self.path()) {
            (Some(plan), _) => plan.gradients(),
            (None, Some(path)) => path.gradients(),
            (None, None) => self.settings.max_iterations,
        };
        each.saturating_mul(self.positives.len() as u32)
    }

    /// The plan of a private job whose rows have so many columns beside the bias.
    pub(crate) fn plan(&self, width: usize) -> Result<Option<PrivatePlan>, BadJob> {
        let privacy = self.privacy.as_ref();
        let plan = privacy.map(|privacy| privacy.plan(width + 1));
        Ok(plan.transpose()?)
    }

    /// How each model is improved: as was asked for, or as the plan says.
    pub(crate) fn steps(&self, width: usize) -> Result<Settings, BadJob> {
        let plan = self.plan(width)?;
        Ok(plan.map_or_else(|| self.settings.clone(), |plan| plan.settings()))
    }

    /// How each model is improved with one of the penalties of the path, if there is one.
    pub(crate) fn steps_of(&self, width: usize, step: usize) -> Result<Settings, BadJob> {
        let settings = self.steps(width)?;
        Ok(match &self.path {
            Some(path) => path.settings(&settings, step),
            None => settings,
        })
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
        match (&self.choice, before) {
            (Choice::Best(iota), _) if *iota > order.len() => {
                let (iota, features) = (*iota, order.len());
                Err(BadJob::Iota { iota, features }.into())
            }
            (Choice::Best(iota), _) => Ok(plainly(order[..*iota].to_vec())),
            (Choice::Named(names), _) => {
                let features = names.iter().map(|name| self.feature(name));
                Ok(plainly(features.collect::<Result<_, _>>()?))
            }
            (Choice::Auto(_), Some(split)) => Ok(Chosen {
                encrypted: split.encrypted.clone(),
                publishes: !split.published.is_empty(),
                reason: Some("as chosen before".into()),
            }),
            (Choice::Auto(chooser), None) => {
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
        let (published, dropped) = if self.spending.is_some() && publishes {
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
    /// Evaluations that are done, one a model so far. None is asked for again: with fewer
    /// providers the difference would be the histogram of the one that left.
    #[serde(default)]
    pub histograms: Vec<Histogram>,
    /// The same for a numeric label, one a measure of its errors so far.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<ErrorSum>,
    /// Where columns and labels lie, if that was asked. Not asked again, for the same reason.
    #[serde(default)]
    pub moments: Option<Moments>,
    /// The same of a private job, which bought it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bought: Option<Vec<Centre>>,
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
    /// A job whose split is known and nothing else.
    pub(crate) fn begun(job: JobId, split: Split) -> Self {
        Self {
            job,
            iteration: 0,
            optimisers: Vec::new(),
            split,
            histograms: Vec::new(),
            errors: Vec::new(),
            moments: None,
            bought: None,
            tried: Vec::new(),
        }
    }
}
