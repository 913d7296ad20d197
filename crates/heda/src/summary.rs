//! What a finished run is worth telling: the object of `--json`, a short table, and the privacy
//! paragraph in plain words.

mod classes;
mod interval;
mod matrix;
mod noise;
mod number;
mod parties;
mod privacy;
mod promise;
mod text;
mod training;

pub use interval::interval;
pub use matrix::Matrix;
pub use number::{NumberControls, NumberResult};
pub(crate) use number::{r_squared, significant};
pub use parties::{Bytes, CpuSeconds, Party, Phase, Seconds};
pub use promise::{BudgetLeft, Promise};

use classes::class_result;
use heda_dp::account::across_providers;
use heda_job::histogram::BinaryConfusion;
use heda_job::job::{ChosenPenalty, Outcome, Revealed, TriedPenalty};
use heda_job::proposal::{Engine, Privacy};
use heda_learn::model::{FeatureUse, Protection};
use heda_learn::private::evaluation::{Overall, RightRows};
use heda_learn::schema::Schema;
use parties::{parties, phases};
use serde::Serialize;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

/// The object that `demo`, `simulate` and `train` print; `docs/schemas/result.json` describes it.
/// Accuracies are shares of right predictions on the held-out rows.
#[derive(Debug, Clone, Serialize)]
pub struct Summary {
    /// What was trained on.
    pub dataset: String,
    /// How gradients were computed.
    pub engine: Engine,
    /// Whether the run can be repeated, and therefore protected nothing.
    pub seeded: bool,
    /// How many took part to the end.
    pub providers: usize,
    /// Rows of training.
    pub rows: usize,
    /// Rows of evaluation.
    pub held_out: usize,
    /// All features of the schema.
    pub features: usize,
    /// Those that were encrypted.
    pub iota: usize,
    /// What they were encrypted with.
    pub cryptosystem: &'static str,
    /// The largest sum over columns that any provider spent; none if nothing was published.
    pub epsilon_total: Option<f64>,
    /// What a private job promised; nothing in JSON where that is no guarantee.
    #[serde(serialize_with = "promise::guaranteed")]
    pub privacy: Option<Promise>,
    /// What each provider has left for further private jobs, if it told.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub budget_left: Vec<BudgetLeft>,
    /// The same in one sentence that can be quoted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub guarantee: Option<String>,
    /// Of a private job the most that noise gives the effect of each encoded column, as a standard
    /// deviation; an effect is the change of the log-odds between the ends of a column.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub noise_in_effects: Vec<f64>,
    /// Over all models.
    pub iterations: u32,
    /// How often each training row was used: the iterations, unless each takes a part of the rows.
    pub passes: f64,
    /// Whether the training of every model converged.
    pub converged: bool,
    /// Of a model for two classes; several models are told apart in `by_class`.
    pub accuracy: Option<f64>,
    /// 95 % interval of the accuracy: by Wilson, or of a private job by counts with noise.
    pub accuracy_interval: Option<[f64; 2]>,
    /// Right and wrong predictions of a model for two classes.
    pub confusion: Option<BinaryConfusion>,
    /// The classes; of two, the positive one last.
    pub classes: Vec<String>,
    /// Bounds of the area under the ROC curve. Of a private job counts carry noise, and they are no bounds.
    pub auc: Option<[f64; 2]>,
    /// Each class against the rest, if there are more than two. Which class a row would get in the
    /// end cannot be read from these: the held-out rows are counted for one model at a time.
    pub by_class: Vec<ClassResult>,
    /// Of a private job for several classes: how often the highest score is right at least.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub overall: Option<Overall>,
    /// Of more than two classes which one the highest score names, where all rows may be read.
    pub matrix: Option<Matrix>,
    /// How good predictions of a number are, if the label is one.
    pub number: Option<NumberResult>,
    /// Of a control in clear with all features.
    pub plain_accuracy: Option<f64>,
    /// Of a control in clear with the encrypted features only.
    pub dropped_accuracy: Option<f64>,
    /// Of always naming the most frequent class.
    pub majority_accuracy: Option<f64>,
    /// Whether that was counted in clear, by whoever may read all rows.
    #[serde(skip)]
    pub majority_in_clear: bool,
    /// Where the time went.
    pub seconds: Seconds,
    /// Processor time, where it is known.
    pub cpu_seconds: CpuSeconds,
    /// With all providers together.
    pub round_trips: u64,
    /// With all providers together.
    pub bytes: Bytes,
    /// Bytes of training, both ways, for each row and iteration.
    pub bytes_per_row_iteration: f64,
    /// Microseconds of training for each row and iteration.
    pub us_per_row_iteration: f64,
    /// How many numbers the data user saw.
    pub revealed: Revealed,
    /// Whether ε was read from the data, which is for public data only.
    pub automatic_epsilon: bool,
    /// Whose ranking of the features it is.
    pub ranked_by: String,
    /// Why so many were encrypted, if that was chosen.
    pub split_reason: Option<String>,
    /// All features, best first.
    pub features_by_rank: Vec<RankedFeature>,
    /// In order.
    pub phases: Vec<Phase>,
    /// The providers.
    pub parties: Vec<Party>,
    /// Largest entry of the mean gradient, iteration by iteration, over all models.
    pub gradient_norms: Vec<f64>,
    /// Why training ended, a sentence for each model.
    pub stopped: Vec<String>,
    /// What to be careful about with this model, a sentence each.
    pub warnings: Vec<String>,
    /// The penalty and where it applies, in words.
    pub penalty: String,
    /// How it was chosen, if it was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chosen_penalty: Option<ChosenPenalty>,
    /// When it was made, in UTC.
    pub made: String,
    /// Where the model was written.
    pub model_path: Option<PathBuf>,
    /// Where the page was written.
    pub report_path: Option<PathBuf>,
}

/// One class against the rest on held-out rows.
#[derive(Debug, Clone, Serialize)]
pub struct ClassResult {
    /// Its name.
    pub class: String,
    /// Share of right predictions.
    pub accuracy: Option<f64>,
    /// 95 % interval of it.
    pub accuracy_interval: Option<[f64; 2]>,
    /// Right and wrong predictions.
    pub confusion: Option<BinaryConfusion>,
    /// Bounds of the area under the ROC curve.
    pub auc: Option<[f64; 2]>,
    /// Of always naming the more frequent side.
    pub majority_accuracy: Option<f64>,
}

/// A feature, best first.
#[derive(Debug, Clone, Serialize)]
pub struct RankedFeature {
    /// As in the schema.
    pub name: String,
    /// Its share of all scores, where providers agreed on the ranking.
    pub score: Option<f64>,
    /// encrypted, published or dropped.
    pub protection: &'static str,
    /// The largest ε that a provider spent on it.
    pub epsilon: Option<f64>,
}

/// What the controls in clear came to, where the data are at hand.
#[derive(Debug, Clone, Copy, Default)]
pub struct Controls {
    /// Accuracy with all features.
    pub plain: Option<f64>,
    /// Accuracy with the encrypted features only.
    pub dropped: Option<f64>,
    /// Accuracy of always naming the most frequent class.
    pub majority: Option<f64>,
    /// Accuracy of a private model on rows that were set aside.
    pub private: Option<f64>,
    /// Of a model for a number.
    pub number: Option<NumberControls>,
}

/// What a summary is about, apart from the outcome.
#[derive(Debug)]
pub struct About<'a> {
    /// What was trained on.
    pub dataset: String,
    /// How gradients were computed.
    pub engine: Engine,
    /// What the job promised, if it was private.
    pub privacy: Option<Privacy>,
    /// What encoded the rows.
    pub schema: &'a Schema,
    /// Whether the run can be repeated.
    pub seeded: bool,
    /// Whether ε was read from the data.
    pub automatic_epsilon: bool,
    /// The whole run.
    pub total_seconds: f64,
    /// How long each provider computed, where that is known.
    pub busy: Vec<Duration>,
    /// Processor time of the parties, where it is known.
    pub cpu_seconds: CpuSeconds,
    /// What it is compared with.
    pub controls: Controls,
}

impl Summary {
    /// Of a finished job.
    pub fn new(about: About<'_>, outcome: &Outcome) -> Self {
        let columns = about.schema.columns().iter();
        let features: Vec<&str> = columns.map(|column| column.name()).collect();
        let classes = about.schema.label().classes();
        let rows: usize = outcome.providers.iter().map(|p| p.rows).sum();
        let iterations: u32 = match &outcome.chosen {
            Some(chosen) => chosen.tried.iter().map(|tried| tried.gradients).sum(),
            None => outcome.fits.iter().map(|fit| fit.iterations).sum(),
        };
        let phase = |name: &str| {
            let found = outcome.phases.iter().filter(|phase| phase.phase == name);
            found.map(|phase| phase.took.as_secs_f64()).sum::<f64>()
        };
        let training = phase("train");
        // Each iteration is about one batch.
        let batches = outcome.settings.method.batches() as f64;
        let row_iterations = rows as f64 * f64::from(iterations.max(1)) / batches;
        let traffic = || outcome.providers.iter().flat_map(|p| p.traffic.values());
        let in_training = (outcome.providers.iter()).filter_map(|p| p.traffic.get("train"));
        let trained_bytes: u64 = in_training.map(|t| t.bytes_sent + t.bytes_received).sum();
        let mut by_class: Vec<ClassResult> = outcome
            .fits
            .iter()
            .map(|fit| class_result(fit, &classes))
            .collect();
        let first = outcome.fits.first();
        let only = match by_class.len() {
            1 => by_class.pop(),
            _ => None,
        };
        Self {
            dataset: about.dataset,
            engine: about.engine,
            seeded: about.seeded,
            providers: outcome.providers.len(),
            rows,
            held_out: held_out(outcome),
            features: features.len(),
            iota: outcome.split.encrypted.len(),
            cryptosystem: about.engine.cryptosystem(),
            epsilon_total: epsilon_total(outcome),
            privacy: outcome
                .guarantee(about.schema.width())
                .map(|guarantee| Promise {
                    epsilon: guarantee.epsilon,
                    delta: guarantee.delta,
                    unit: guarantee.unit,
                    charged: guarantee.charged,
                    spent_on: guarantee.spent_on,
                    accuracy_in_clear: about.controls.private,
                    counts_deviation: first.and_then(|fit| fit.histogram.as_ref()?.noise),
                    right_deviation: first.and_then(|fit| Some(fit.right?.deviation)),
                    bounds_from_rows: false,
                }),
            budget_left: promise::budgets_left(outcome),
            guarantee: outcome
                .privacy
                .map(|privacy| privacy::guarantee(&privacy, outcome.providers.len())),
            noise_in_effects: match about.privacy {
                Some(privacy) => noise::in_effects(&privacy, about.schema, outcome),
                None => Vec::new(),
            },
            iterations,
            passes: f64::from(iterations) / batches,
            converged: training::converged(outcome),
            accuracy: only.as_ref().and_then(|only| only.accuracy),
            accuracy_interval: only.as_ref().and_then(|only| only.accuracy_interval),
            overall: overall(outcome),
            confusion: only.as_ref().and_then(|only| only.confusion),
            stopped: (outcome.fits.iter())
                .map(|fit| training::stopped(fit, &outcome.settings.method, &classes))
                .collect(),
            warnings: training::warnings(outcome, &classes),
            penalty: outcome.penalty(),
            chosen_penalty: outcome.chosen.clone(),
            made: today(),
            auc: only.as_ref().and_then(|only| only.auc),
            by_class,
            matrix: None,
            number: about.schema.label().number().map(|_| NumberResult {
                label: about.schema.label().column().to_owned(),
                errors: outcome.fits.first().and_then(|fit| fit.errors),
                controls: about.controls.number,
            }),
            classes,
            plain_accuracy: about.controls.plain,
            dropped_accuracy: about.controls.dropped,
            majority_in_clear: about.controls.majority.is_some(),
            majority_accuracy: about
                .controls
                .majority
                .or(only.and_then(|only| only.majority_accuracy)),
            seconds: Seconds {
                total: about.total_seconds,
                setup: ["agree", "score", "scale", "publish", "encrypt"]
                    .into_iter()
                    .map(phase)
                    .sum(),
                training,
                evaluation: phase("evaluate"),
                user: outcome.user_busy.as_secs_f64(),
                provider: about.busy.iter().max().map(Duration::as_secs_f64),
            },
            cpu_seconds: about.cpu_seconds,
            round_trips: traffic().map(|t| t.round_trips).sum(),
            bytes: Bytes {
                user_to_provider: traffic().map(|t| t.bytes_sent).sum(),
                provider_to_user: traffic().map(|t| t.bytes_received).sum(),
            },
            bytes_per_row_iteration: trained_bytes as f64 / row_iterations,
            us_per_row_iteration: 1e6 * training / row_iterations,
            revealed: outcome.revealed,
            automatic_epsilon: about.automatic_epsilon,
            ranked_by: outcome.ranked_by.clone(),
            split_reason: outcome.split_reason.clone(),
            features_by_rank: ranked(outcome, &features),
            phases: phases(outcome),
            parties: parties(outcome, &about.busy),
            gradient_norms: outcome
                .fits
                .iter()
                .flat_map(|fit| fit.norms.iter().copied())
                .collect(),
            model_path: None,
            report_path: None,
        }
    }

    /// Providers that ran with a seed although the data user did not.
    pub fn seeded_providers(&self) -> Vec<&str> {
        let seeded = self
            .parties
            .iter()
            .filter(|party| party.seeded && !self.seeded);
        seeded.map(|party| party.name.as_str()).collect()
    }

    /// Between what the accuracy of the model lies, with 95 %.
    pub(crate) fn interval_of_model(&self) -> Option<[f64; 2]> {
        match (self.accuracy, &self.matrix) {
            (Some(_), _) => self.accuracy_interval,
            (None, matrix) => matrix.as_ref().and_then(|matrix| matrix.interval),
        }
    }

    /// What the model file says of each feature.
    pub fn feature_uses(&self) -> Vec<FeatureUse> {
        let protection = |feature: &RankedFeature| match feature.protection {
            "encrypted" => Some(Protection::Encrypted),
            "published" => Some(Protection::Published),
            _ => None,
        };
        let uses = self.features_by_rank.iter().filter_map(|feature| {
            protection(feature).map(|protection| FeatureUse {
                feature: feature.name.clone(),
                protection,
                epsilon: feature.epsilon,
            })
        });
        uses.collect()
    }
}

/// The rows that the accuracy is about: those of a provider that left after the evaluation count,
/// those that chose the penalty do not.
fn held_out(outcome: &Outcome) -> usize {
    let first = outcome.fits.first();
    let counted = first.and_then(|fit| match fit.right {
        Some(right) => Some(right.rows),
        None => Some(fit.histogram.as_ref()?.confusion().rows()),
    });
    match counted {
        Some(rows) => rows as usize,
        None => {
            let all: usize = outcome.providers.iter().map(|p| p.held_out).sum();
            let chose = outcome.chosen.as_ref().map_or(0, |chosen| chosen.rows);
            all - chose as usize
        }
    }
}

/// How often the highest score of several private models is right at least.
fn overall(outcome: &Outcome) -> Option<Overall> {
    let models: Option<Vec<RightRows>> = outcome.fits.iter().map(|fit| fit.right).collect();
    models
        .filter(|models| models.len() > 1)
        .and_then(|models| Overall::of(&models))
}

fn epsilon_total(outcome: &Outcome) -> Option<f64> {
    let totals = outcome
        .providers
        .iter()
        .filter_map(|p| p.charge.as_ref())
        .map(|c| c.total());
    across_providers(totals).map(|epsilon| epsilon.to_f64())
}

/// What a penalty came to on the rows that choose, in words.
pub(crate) fn came_to(tried: &TriedPenalty) -> String {
    match (tried.right, tried.rmse) {
        (Some(right), _) => format!("{:.2} %", 100.0 * right),
        (None, Some(rmse)) => significant(rmse),
        (None, None) => "-".to_owned(),
    }
}

/// Date and time in UTC, to the second.
fn today() -> String {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let days = now.map_or(0.0, |now| now.as_secs() as f64 / 86_400.0);
    heda_learn::date::text(days).replace('T', " ") + " UTC"
}

fn ranked(outcome: &Outcome, names: &[&str]) -> Vec<RankedFeature> {
    let protection = |feature: usize| {
        if outcome.split.encrypted.contains(&feature) {
            "encrypted"
        } else if outcome.split.published.contains(&feature) {
            "published"
        } else {
            "dropped"
        }
    };
    let epsilon = |name: &str| {
        let charges = outcome.providers.iter().filter_map(|p| p.charge.as_ref());
        let columns = charges.flat_map(|charge| charge.columns());
        columns
            .filter(|c| c.name == name)
            .map(|c| c.epsilon)
            .max()
            .map(|e| e.to_f64())
    };
    let feature = |&(feature, score): &(usize, Option<f64>)| RankedFeature {
        name: names[feature].to_owned(),
        score,
        protection: protection(feature),
        epsilon: epsilon(names[feature]),
    };
    outcome.ranking.iter().map(feature).collect()
}
