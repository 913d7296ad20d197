//! What a finished run is worth telling: the object of `--json`, a short table, and the privacy
//! paragraph in plain words.

use heda_dp::account::across_providers;
use heda_learn::model::{FeatureUse, Protection};
use heda_train::histogram::Histogram;
use heda_train::job::{ClassFit, Outcome, PhaseTime, ProviderSummary, Revealed};
use heda_train::proposal::Engine;
use serde::Serialize;
use std::path::PathBuf;

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
    /// Over all models.
    pub iterations: u32,
    /// Of a model for two classes; several models are told apart in `by_class`.
    pub accuracy: Option<f64>,
    /// Bounds of the area under the ROC curve.
    pub auc: Option<[f64; 2]>,
    /// Each class against the rest, if there are more than two. Which class a row would get in the
    /// end cannot be read from these: the held-out rows are counted for one model at a time.
    pub by_class: Vec<ClassResult>,
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
}

/// What a summary is about, apart from the outcome.
#[derive(Debug)]
pub struct About<'a> {
    /// What was trained on.
    pub dataset: String,
    /// How gradients were computed.
    pub engine: Engine,
    /// Whether the run can be repeated.
    pub seeded: bool,
    /// Of the schema.
    pub feature_names: &'a [String],
    /// Of the schema.
    pub class_names: &'a [String],
    /// Whether ε was read from the data.
    pub automatic_epsilon: bool,
    /// The whole run.
    pub total_seconds: f64,
    /// That the busiest provider computed.
    pub provider_seconds: Option<f64>,
    /// What it is compared with.
    pub controls: Controls,
}

impl Summary {
    /// Of a finished job.
    pub fn new(about: About<'_>, outcome: &Outcome) -> Self {
        let rows: usize = outcome.providers.iter().map(|p| p.rows).sum();
        let iterations: u32 = outcome.fits.iter().map(|fit| fit.iterations).sum();
        let phase = |name: &str| {
            let found = outcome.phases.iter().filter(|phase| phase.phase == name);
            found.map(|phase| phase.took.as_secs_f64()).sum::<f64>()
        };
        let training = phase("train");
        let traffic = || outcome.providers.iter().flat_map(|p| p.traffic.values());
        let mut by_class: Vec<ClassResult> = outcome
            .fits
            .iter()
            .map(|fit| class_result(fit, about.class_names))
            .collect();
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
            features: about.feature_names.len(),
            iota: outcome.split.encrypted.len(),
            cryptosystem: match about.engine {
                Engine::Lookup => "BFV, degree 8192, 128-bit; IKNP oblivious transfer",
                Engine::Paper => "textbook RSA and Paillier",
            },
            epsilon_total: epsilon_total(outcome),
            iterations,
            accuracy: only.as_ref().and_then(|only| only.accuracy),
            auc: only.as_ref().and_then(|only| only.auc),
            by_class,
            plain_accuracy: about.controls.plain,
            dropped_accuracy: about.controls.dropped,
            majority_accuracy: about
                .controls
                .majority
                .or(only.and_then(|only| only.majority_accuracy)),
            seconds: Seconds {
                total: about.total_seconds,
                setup: ["agree", "score", "publish", "encrypt"]
                    .into_iter()
                    .map(phase)
                    .sum(),
                training,
                evaluation: phase("evaluate"),
                user: outcome.user_busy.as_secs_f64(),
                provider: about.provider_seconds,
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
            features_by_rank: ranked(outcome, about.feature_names),
            phases: phases(outcome),
            parties: parties(outcome),
            gradient_norms: outcome
                .fits
                .iter()
                .flat_map(|fit| fit.norms.iter().copied())
                .collect(),
            model_path: None,
            report_path: None,
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

    /// The table and the paragraph.
    pub fn text(&self) -> String {
        let mut lines = Vec::new();
        if self.seeded {
            lines.push("SEEDED RUN: reproducible, and therefore without any protection.".into());
            lines.push(String::new());
        }
        lines.extend(self.table());
        lines.push(String::new());
        lines.extend(self.feature_lines());
        lines.push(String::new());
        lines.push(self.privacy());
        for (what, path) in [("model", &self.model_path), ("report", &self.report_path)] {
            if let Some(path) = path {
                lines.push(format!("\n{what:<10}{}", path.display()));
            }
        }
        lines.join("\n")
    }

    fn table(&self) -> Vec<String> {
        let percent = |share: Option<f64>| {
            share.map_or("-".to_owned(), |share| format!("{:.2} %", 100.0 * share))
        };
        let seconds = &self.seconds;
        let mut lines = vec![
            format!(
                "{:<36}{} rows of {} providers, {} held out",
                self.dataset, self.rows, self.providers, self.held_out
            ),
            format!(
                "{:<36}{} of {} features encrypted, {} iterations, engine {}",
                "trained on", self.iota, self.features, self.iterations, self.engine
            ),
            String::new(),
        ];
        let heading = "accuracy on held-out rows";
        match self.by_class.is_empty() {
            true => lines.push(format!("{heading:<36}{:>9}", percent(self.accuracy))),
            false => lines.push(heading.to_owned()),
        }
        for result in &self.by_class {
            let name = format!("  {} against the rest", result.class);
            let (share, most) = (percent(result.accuracy), percent(result.majority_accuracy));
            lines.push(format!(
                "{name:<36}{share:>9}, the more frequent side {most}"
            ));
        }
        let mut control = |name: &str, share: Option<f64>| {
            if share.is_some() {
                lines.push(format!("{:<36}{:>9}", name, percent(share)));
            }
        };
        control("  in clear, all features", self.plain_accuracy);
        control("  in clear, published ones dropped", self.dropped_accuracy);
        control("  most frequent class", self.majority_accuracy);
        if let Some([low, high]) = self.auc {
            lines.push(format!(
                "{:<36}{low:>9.4} to {high:.4}",
                "area under the curve"
            ));
        }
        lines.push(String::new());
        lines.push(format!(
            "{:<36}{:.2} s: setup {:.2}, training {:.2}, evaluation {:.2}",
            "time", seconds.total, seconds.setup, seconds.training, seconds.evaluation
        ));
        lines.push(format!(
            "{:<36}{:.1} µs a row and iteration; {:.1} MB to providers, {:.1} MB back",
            "speed and traffic",
            self.us_per_row_iteration,
            self.bytes.user_to_provider as f64 / 1e6,
            self.bytes.provider_to_user as f64 / 1e6
        ));
        lines
    }

    fn feature_lines(&self) -> Vec<String> {
        let width = self
            .features_by_rank
            .iter()
            .map(|f| f.name.chars().count())
            .max()
            .unwrap_or(0);
        let line = |feature: &RankedFeature| {
            let score = feature
                .score
                .map_or("-".into(), |s| format!("{:.1} %", 100.0 * s));
            let epsilon = feature
                .epsilon
                .map_or(String::new(), |e| format!(", epsilon {e:.3}"));
            format!(
                "  {:<width$}  {score:>7}  {}{epsilon}",
                feature.name, feature.protection
            )
        };
        let heading = format!(
            "Features, best first, ranked by {}: share of the scores, protection",
            self.ranked_by
        );
        let reason = self
            .split_reason
            .iter()
            .map(|reason| format!("  ({reason})"));
        std::iter::once(heading)
            .chain(reason)
            .chain(self.features_by_rank.iter().map(line))
            .collect()
    }

    /// Who learned what.
    pub fn privacy(&self) -> String {
        let revealed = &self.revealed;
        let whose = if revealed.summed {
            "summed over all providers"
        } else if self.providers > 1 {
            "of each provider on its own"
        } else {
            "of the only provider, unmasked because there is nobody to add up with"
        };
        let mut user = format!(
            "The data user learned the model; {} numbers of gradients {whose}, about {} encrypted \
             cells that it does not know; {} counts of held-out rows; how many rows each provider \
             has",
            revealed.gradient_numbers, revealed.unknown_cells, revealed.count_numbers
        );
        let scored = self.features_by_rank.iter().any(|f| f.score.is_some());
        if scored {
            user += "; the scores of the features, summed over all providers";
        }
        if self.epsilon_total.is_some() {
            user += "; the published columns";
        }
        let providers = match self.engine {
            Engine::Lookup => self.providers_learned(scored),
            Engine::Paper => format!("Engine paper leaks. {}", self.engine.leaks().join(" ")),
        };
        let published = match self.epsilon_total {
            Some(epsilon) => format!(
                "Published columns carry exact noise; in sum over the columns of a row they cost \
                 epsilon {epsilon:.3}{}{}{}.",
                match self.automatic_epsilon {
                    true => ", which was read from these public data",
                    false => "",
                },
                match scored {
                    true => ", and the scores, made from exact rows, are not covered by it",
                    false => "",
                },
                self.worth()
            ),
            None => "Nothing was published, so no epsilon was spent.".to_owned(),
        };
        format!("{user}.\n{providers}\n{published}")
    }

    fn providers_learned(&self, scored: bool) -> String {
        let mut text =
            "The providers learned how many iterations there were and nothing else about \
                        the model: every number that they decrypted was masked uniformly."
                .to_owned();
        if self.providers > 1 {
            let split = match scored {
                true => "which features scored best in sum, and ",
                false => "",
            };
            text += &format!(
                " Of each other's rows they learned {split}their number to a factor of two."
            );
        }
        text
    }

    /// What publishing bought over dropping, if it is known. Engine `paper` stops before it has
    /// converged, so its accuracy does not compare with that of the control.
    fn worth(&self) -> String {
        match (self.accuracy, self.dropped_accuracy) {
            (Some(with), Some(without)) if self.engine == Engine::Lookup => format!(
                "; publishing instead of dropping them changed accuracy by {:+.2} points",
                100.0 * (with - without)
            ),
            _ => String::new(),
        }
    }
}

/// The rows that the accuracy is about: those of a provider that left after the evaluation count.
fn held_out(outcome: &Outcome) -> usize {
    let first = outcome.fits.first().and_then(|fit| fit.histogram.as_ref());
    match first {
        Some(histogram) => histogram.confusion().rows() as usize,
        None => outcome.providers.iter().map(|p| p.held_out).sum(),
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

fn parties(outcome: &Outcome) -> Vec<Party> {
    let party = |provider: &ProviderSummary| Party {
        name: provider.name.clone(),
        rows: provider.rows,
        held_out: provider.held_out,
        epsilon: provider.charge.as_ref().map(|c| c.total().to_f64()),
        seconds: None,
    };
    outcome.providers.iter().map(party).collect()
}

fn class_result(fit: &ClassFit, names: &[String]) -> ClassResult {
    let histogram = fit.histogram.as_ref();
    let name = names.get(fit.positive as usize);
    ClassResult {
        class: name.cloned().unwrap_or_else(|| fit.positive.to_string()),
        accuracy: histogram.and_then(|h| h.confusion().accuracy()),
        auc: histogram
            .and_then(Histogram::auc_bounds)
            .map(|(low, high)| [low, high]),
        majority_accuracy: histogram.and_then(majority),
    }
}

fn majority(histogram: &Histogram) -> Option<f64> {
    let positives: u64 = histogram.positives.iter().sum();
    let negatives: u64 = histogram.negatives.iter().sum();
    let all = positives + negatives;
    (all > 0).then(|| positives.max(negatives) as f64 / all as f64)
}

fn ranked(outcome: &Outcome, names: &[String]) -> Vec<RankedFeature> {
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
        name: names[feature].clone(),
        score,
        protection: protection(feature),
        epsilon: epsilon(&names[feature]),
    };
    outcome.ranking.iter().map(feature).collect()
}
