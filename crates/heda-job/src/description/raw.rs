//! A job before it is checked: everything that can be said about one, side by side.

use super::checks::first_broken;
use super::{
    ExactTraining, Features, Job, JobFault, Name, PrivateTraining, Protected, Ranking, Regression,
    Share, Task, Training, models,
};
use crate::class_weights::ClassWeight;
use crate::engine::Engine;
use crate::proposal::{Privacy, Spending};
use heda_learn::loss::LossKind;
use heda_learn::schema::Schema;
use heda_learn::score::ScoringMethod;
use std::collections::BTreeMap;

/// A job that may contradict itself. [`RawJob::new`] has all defaults; a file, options or the builder
/// change what they state, and `TryFrom` makes a [`Job`] of it.
#[derive(Debug, Clone, PartialEq)]
pub struct RawJob {
    /// What the providers call their data.
    pub data_set: String,
    /// The fingerprint of the schema, hexadecimal.
    pub schema: String,
    /// Whether the label is a number.
    pub numeric: bool,
    /// Class indices to be told from the rest, one model each.
    pub positives: Vec<u32>,
    /// Share of the rows that is held out.
    pub held_out: f64,
    /// How gradients are computed.
    pub engine: Engine,
    /// What the engine is told in its own words.
    pub engine_options: BTreeMap<String, u64>,
    /// What is minimised; what suits the label if absent.
    pub loss: Option<LossKind>,
    /// How much the rows of each class count; all alike if absent.
    pub class_weight: Option<ClassWeight>,
    /// How a model is improved; the plan of a private job says it there.
    pub training: Training,
    /// Which features are encrypted.
    pub protected: Protected,
    /// How features are ranked; what suits the task if absent.
    pub ranking: Option<Ranking>,
    /// What may be spent on publishing the others.
    pub spending: Option<Spending>,
    /// What everything that the job reveals keeps to.
    pub privacy: Option<Privacy>,
}

impl RawJob {
    /// A job on what the providers call `data_set`, with rows of this schema, and every default.
    pub fn new(data_set: impl Into<String>, schema: &Schema) -> Self {
        let label = schema.label();
        Self {
            data_set: data_set.into(),
            schema: schema.fingerprint().to_string(),
            numeric: label.number().is_some(),
            positives: models(label.classes().len()),
            held_out: Share::USUAL.get(),
            engine: Engine::default(),
            engine_options: BTreeMap::new(),
            loss: None,
            class_weight: None,
            training: Training::usual(schema),
            protected: Protected::All,
            ranking: None,
            spending: None,
            privacy: None,
        }
    }

    /// Encrypts these features. They need no ranking, and none is read from data.
    pub fn encrypt_named(&mut self, names: Vec<String>, schema: &Schema) {
        let columns = schema.columns().iter();
        let rest = columns.map(|column| column.name().to_owned());
        let rest = rest.filter(|name| !names.contains(name));
        let features = names.iter().cloned().chain(rest).collect();
        self.ranking = Some(Ranking::Given { features });
        self.protected = Protected::Named(names);
    }

    fn task(self) -> Result<Task, JobFault> {
        match (self.privacy, self.numeric) {
            (Some(privacy), false) => self.private(privacy),
            (Some(_), true) => Err(JobFault::Number(
                "a job without a promise of privacy: private jobs learn classes",
            )),
            (None, true) => self.regression(),
            (None, false) => Ok(self.exact()),
        }
    }

    /// Everything that a private job reveals carries noise; what has none is not asked for.
    fn private(self, privacy: Privacy) -> Result<Task, JobFault> {
        let exact = "scores of features would carry no noise";
        let loss = matches!(
            self.loss,
            None | Some(LossKind::Logistic | LossKind::BoundedLogistic)
        );
        let all = matches!(self.protected, Protected::All);
        let named = matches!(self.protected, Protected::Named(_));
        let alone = matches!(self.ranking, Some(Ranking::Chosen { .. }));
        let rules = [
            (
                self.engine == Engine::RESIDENT,
                ("engine", "only resident adds noise"),
            ),
            (
                self.engine_options.is_empty(),
                ("engine_options", "engine resident has none"),
            ),
            (!named, ("encrypt", "all features are encrypted")),
            (all || named, ("iota", "all features are encrypted")),
            (self.spending.is_none(), ("epsilon", "nothing is published")),
            (!alone, ("ranked_by", exact)),
            (
                loss,
                (
                    "loss",
                    "a row's derivative must be bounded, which bounded-logistic alone does",
                ),
            ),
            (
                self.class_weight.is_none(),
                ("class_weight", "every row must count alike"),
            ),
            (
                self.training.path.is_none(),
                (
                    "penalty",
                    "every try would cost budget, and a private job bounds its coefficients instead",
                ),
            ),
            (
                self.training.settings.method.batches() == 1,
                ("batches", "every gradient is about all rows"),
            ),
        ];
        if let Some((_, (key, because))) = rules.into_iter().find(|(holds, _)| !holds) {
            return Err(JobFault::Private { key, because });
        }
        privacy.delta.check_rows(privacy.rows)?;
        Ok(Task::Private(PrivateTraining {
            privacy,
            positives: self.positives,
        }))
    }

    /// Features cannot be scored by a number, so where all are encrypted their order is that of the
    /// schema.
    fn regression(self) -> Result<Task, JobFault> {
        let rules = [
            (
                matches!(self.loss, None | Some(LossKind::Ridge)),
                "the loss ridge",
            ),
            (self.engine == Engine::RESIDENT, "engine resident"),
            (self.engine_options.is_empty(), "no options of an engine"),
            (self.class_weight.is_none(), "no weights of classes"),
        ];
        if let Some(rule) = first_broken(rules) {
            return Err(JobFault::Number(rule));
        }
        let all = matches!(self.protected, Protected::All);
        let ranking = match self.ranking {
            Some(given @ Ranking::Given { .. }) => given,
            _ if all => Ranking::Schema,
            other => other.unwrap_or(Ranking::Agreed {
                method: ScoringMethod::default(),
            }),
        };
        Ok(Task::Regression(Regression {
            training: self.training,
            features: Features {
                protected: self.protected,
                ranking,
                spending: self.spending,
            },
        }))
    }

    fn exact(self) -> Task {
        Task::Exact(ExactTraining {
            positives: self.positives,
            engine: self.engine,
            engine_options: self.engine_options,
            loss: self.loss.unwrap_or_default(),
            class_weight: self.class_weight,
            training: self.training,
            features: Features {
                protected: self.protected,
                ranking: self.ranking.unwrap_or(Ranking::Agreed {
                    method: ScoringMethod::default(),
                }),
                spending: self.spending,
            },
        })
    }
}

impl From<&Job> for RawJob {
    fn from(job: &Job) -> Self {
        let features = job.features().clone();
        Self {
            data_set: job.data_set.to_string(),
            schema: job.schema.clone(),
            numeric: job.is_numeric(),
            positives: job.positives().to_vec(),
            held_out: job.held_out.get(),
            engine: job.engine(),
            engine_options: job.engine_options().clone(),
            loss: Some(job.loss()),
            class_weight: job.class_weight().cloned(),
            training: job.training().cloned().unwrap_or_default(),
            protected: features.protected,
            ranking: Some(features.ranking),
            spending: features.spending,
            privacy: job.privacy(),
        }
    }
}

impl TryFrom<RawJob> for Job {
    type Error = JobFault;

    fn try_from(raw: RawJob) -> Result<Self, JobFault> {
        let data_set: Name = raw.data_set.parse()?;
        let held_out = Share::new(raw.held_out)?;
        let schema = raw.schema.clone();
        let job = Self {
            data_set,
            schema,
            held_out,
            task: raw.task()?,
        };
        job.check()?;
        Ok(job)
    }
}
