//! What a finished run is worth telling: the object of `--json`, a short table, and the privacy
//! paragraph in plain words.

mod classes;
mod interval;
mod matrix;
mod number;
mod privacy;
mod text;
mod training;

pub use interval::interval;
pub use matrix::Matrix;
pub use number::{NumberControls, NumberResult};
pub(crate) use number::{r_squared, significant};

use classes::class_result;
use heda_dp::account::across_providers;
use heda_learn::model::{FeatureUse, Protection};
use heda_learn::schema::Schema;
use heda_train::histogram::{Confusion, Histogram};
use heda_train::job::{ChosenPenalty, Outcome, PhaseTime, ProviderSummary, Revealed, TriedPenalty};
use heda_train::proposal::{Engine, Privacy};
use serde::Serialize;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

/// The object that `demo` and `train` print. Accuracies are shares of right predictions on the
/// held-out rows.
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
    /// What a private job promised.
    pub private: Option<Promise>,
    /// Over all models.
    pub iterations: u32,
    /// Of a model for two classes; several models are told apart in `by_class`.
    pub accuracy: Option<f64>,
    /// 95 % interval of the accuracy, by Wilson.
    pub accuracy_interval: Option<[f64; 2]>,
    /// Right and wrong predictions of a model for two classes.
    pub confusion: Option<Confusion>,
    /// The classes; of two, the positive one last.
    pub classes: Vec<String>,
    /// Bounds of the area under the ROC curve.
    pub auc: Option<[f64; 2]>,
    /// Each class against the rest, if there are more than two. Which class a row would get in the
    /// end cannot be read from these: the held-out rows are counted for one model at a time.
    pub by_class: Vec<ClassResult>,
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
    /// Where the time went.
    pub seconds: Seconds,
    /// With all providers together.
    pub round_trips: u64,
    /// With all providers together.
    pub bytes: Bytes,
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

/// What a private job promised, and how good its model is where that may be known.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Promise {
    /// ε of everything that the job revealed.
    pub epsilon: f64,
    /// δ beside it.
    pub delta: f64,
    /// Accuracy on held-out rows, counted in clear by whoever may read them.
    pub accuracy_in_clear: Option<f64>,
    /// Deviation of the noise in each count of held-out rows, if they were counted.
    pub counts_deviation: Option<f64>,
}

/// One class against the rest on held-out rows.
#[derive(Debug, Clone, Serialize)]
pub struct ClassResult {
    /// Its name.
    pub class: String,
    /// Share of right predictions.
    pub accuracy: Option<f64>,
    /// Right and wrong predictions.
    pub confusion: Option<Confusion>,
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

/// Times in seconds. Provider: the one that computed longest.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Seconds {
    /// From the first message to the model.
    pub total: f64,
    /// All that comes before training.
    pub setup: f64,
    /// All iterations.
    pub training: f64,
    /// On held-out rows.
    pub evaluation: f64,
    /// That the data user computed.
    pub user: f64,
    /// That a provider computed, where that is known.
    pub provider: Option<f64>,
}

/// What went over all channels.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Bytes {
    /// Sent by the data user.
    pub user_to_provider: u64,
    /// Received by the data user.
    pub provider_to_user: u64,
}

/// One phase of the job, in order.
#[derive(Debug, Clone, Serialize)]
pub struct Phase {
    /// What is done in it.
    pub name: &'static str,
    /// At the data user, waiting included.
    pub seconds: f64,
    /// What went over the channels.
    pub bytes: Bytes,
    /// With all providers together.
    pub round_trips: u64,
}

/// One provider.
#[derive(Debug, Clone, Serialize)]
pub struct Party {
    /// As the data user calls it.
    pub name: String,
    /// Rows of training.
    pub rows: usize,
    /// Rows of evaluation.
    pub held_out: usize,
    /// Whether it ran with a seed, and therefore without protection.
    pub seeded: bool,
    /// What its columns cost in sum, if it published.
    pub epsilon: Option<f64>,
    /// How long it computed, where that is known.
    pub seconds: Option<f64>,
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
    pub privacy: Option<&'a Privacy>,
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
        let traffic = || outcome.providers.iter().flat_map(|p| p.traffic.values());
        let mut by_class: Vec<ClassResult> = outcome
            .fits
            .iter()
            .map(|fit| class_result(fit, &classes))
            .collect();
        let counted = outcome.fits.first().and_then(|fit| fit.histogram.as_ref());
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
            cryptosystem: match about.engine {
                Engine::Resident => "SoftSpoken oblivious transfer over Ristretto and AES, 114-bit",
                Engine::Paper => "textbook RSA and Paillier",
            },
            epsilon_total: epsilon_total(outcome),
            private: about.privacy.map(|privacy| Promise {
                epsilon: privacy.epsilon.billionths() as f64 / 1e9,
                delta: privacy.delta.get(),
                accuracy_in_clear: about.controls.private,
                counts_deviation: counted.and_then(|histogram| histogram.noise),
            }),
            iterations,
            accuracy: only.as_ref().and_then(|only| only.accuracy),
            accuracy_interval: only.as_ref().and_then(|only| {
                let confusion = only.confusion?;
                let right = confusion.true_positives + confusion.true_negatives;
                let noise = counted.and_then(Histogram::noise_in_right);
                interval(right, confusion.rows(), noise.unwrap_or(0.0))
            }),
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
            round_trips: traffic().map(|t| t.round_trips).sum(),
            bytes: Bytes {
                user_to_provider: traffic().map(|t| t.bytes_sent).sum(),
                provider_to_user: traffic().map(|t| t.bytes_received).sum(),
            },
            us_per_row_iteration: 1e6 * training / (rows as f64 * f64::from(iterations.max(1))),
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
    let first = outcome.fits.first().and_then(|fit| fit.histogram.as_ref());
    match first {
        Some(histogram) => histogram.confusion().rows() as usize,
        None => {
            let all: usize = outcome.providers.iter().map(|p| p.held_out).sum();
            let chose = outcome.chosen.as_ref().map_or(0, |chosen| chosen.rows);
            all - chose as usize
        }
    }
}

fn epsilon_total(outcome: &Outcome) -> Option<f64> {
    let totals = outcome
        .providers
        .iter()
        .filter_map(|p| p.charge.as_ref())
        .map(|c| c.total());
    across_providers(totals).map(|epsilon| epsilon.to_f64())
}

fn phases(outcome: &Outcome) -> Vec<Phase> {
    let phase = |time: &PhaseTime| {
        let traffic = || {
            let providers = outcome.providers.iter();
            providers.filter_map(|provider| provider.traffic.get(time.phase))
        };
        Phase {
            name: time.phase,
            seconds: time.took.as_secs_f64(),
            bytes: Bytes {
                user_to_provider: traffic().map(|t| t.bytes_sent).sum(),
                provider_to_user: traffic().map(|t| t.bytes_received).sum(),
            },
            round_trips: traffic().map(|t| t.round_trips).sum(),
        }
    };
    outcome.phases.iter().map(phase).collect()
}

fn parties(outcome: &Outcome, busy: &[Duration]) -> Vec<Party> {
    let party = |(index, provider): (usize, &ProviderSummary)| Party {
        name: provider.name.clone(),
        rows: provider.rows,
        held_out: provider.held_out,
        seeded: provider.seeded,
        epsilon: provider.charge.as_ref().map(|c| c.total().to_f64()),
        seconds: busy.get(index).map(Duration::as_secs_f64),
    };
    outcome.providers.iter().enumerate().map(party).collect()
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
