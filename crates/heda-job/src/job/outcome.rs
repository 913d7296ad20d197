//! What a job leaves behind.

use crate::histogram::Histogram;
use crate::proposal::{Privacy, Split};
use heda_blocks::channel::{Recorded, Traffic};
use heda_dp::account::Charge;
use heda_dp::epsilon::Epsilon;
use heda_dp::gdp::Cost;
use heda_learn::clip_range::ClipRange;
use heda_learn::data::Feature;
use heda_learn::model::{Errors, Guarantee, SpentOn, Unit};
use heda_learn::optimise::{Method, Settings, Stop};
use heda_learn::private::evaluation::RightRows;
use heda_learn::private::{MOMENT_ANSWERS, PrivatePlan};
use serde::Serialize;
use std::collections::BTreeMap;
use std::time::Duration;

/// One trained model.
#[derive(Debug, Clone, PartialEq)]
pub struct ClassFit {
    /// The class that it tells from the rest.
    pub positive: u32,
    /// Coefficients for features that take part, as the schema scales them: bias first, then a
    /// number a column. With a numeric label they give its place between its bounds.
    pub beta: Vec<f64>,
    /// Gradients used.
    pub iterations: u32,
    /// Why it ended.
    pub stop: Stop,
    /// The iteration in which it converged or reached the floor of noise, if it did.
    pub settled: Option<u32>,
    /// Features whose coefficients are so small that rounding leaves their sign open.
    pub undetermined: Vec<String>,
    /// Features that nearly follow from others, so that rounding may have moved their coefficients
    /// by a good part of their size.
    pub entangled: Vec<String>,
    /// Norm of the mean gradient, iteration by iteration.
    pub norms: Vec<f64>,
    /// Gradients that were not taken at the coefficients that were asked for, but at smaller ones.
    pub shrunk: Option<Shrunk>,
    /// Scores of held-out rows by true class, if rows were held out. Of a private job they are near
    /// what noisy counts say, and missing if that answer was lost.
    pub histogram: Option<Histogram>,
    /// Right predictions on held-out rows by the noisy counts of a private job that arrived.
    pub right: Option<RightRows>,
    /// Errors on held-out rows with a numeric label, in its own units.
    pub errors: Option<Errors>,
}

/// Gradients at coefficients that an engine made smaller, because scores at the wanted ones could
/// have left what it can hold. Of this run: what was before a resumption is not counted.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Shrunk {
    /// How many.
    pub gradients: u32,
    /// What the coefficients were multiplied by where that was least.
    pub least: f64,
}

impl Shrunk {
    /// Less than this is a matter of rounding.
    const NEGLIGIBLE: f64 = 0.999;

    /// With one gradient more, whose coefficients were multiplied by this.
    pub(super) fn with(before: Option<Self>, factor: f64) -> Option<Self> {
        if factor > Self::NEGLIGIBLE {
            return before;
        }
        Some(Self {
            gradients: before.map_or(1, |before| before.gradients + 1),
            least: before.map_or(factor, |before| before.least.min(factor)),
        })
    }
}

/// The penalty that was chosen, and the others.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ChosenPenalty {
    /// From the strongest to the weakest.
    pub tried: Vec<TriedPenalty>,
    /// Which of them was chosen.
    pub chosen: usize,
    /// By how many held-out rows: others than the result is counted on.
    pub rows: u64,
}

/// What one penalty came to on the rows that choose.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct TriedPenalty {
    /// Scikit-learn's C.
    pub c: f64,
    /// Gradients of all models.
    pub gradients: u32,
    /// Share of right predictions of all models, rows weighed as in training.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub right: Option<f64>,
    /// Of a numeric label the root of the mean squared error, in its own units.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rmse: Option<f64>,
}

/// One provider's part.
#[derive(Debug, Clone, PartialEq)]
pub struct ProviderSummary {
    /// Its name.
    pub name: String,
    /// Training rows.
    pub rows: usize,
    /// Held-out rows.
    pub held_out: usize,
    /// Whether its random numbers came from a seed, by its own signed word.
    pub seeded: bool,
    /// What its release cost, if it published.
    pub charge: Option<Charge>,
    /// What it charged a private job, if it told.
    pub charged: Option<ToldCharge>,
    /// What went over the wire, seen from the data user, by phase.
    pub traffic: BTreeMap<&'static str, Traffic>,
    /// What the data user received from it, if its channel records.
    pub view: Vec<Recorded>,
}

/// What a provider told that it charged a private job.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ToldCharge {
    /// What the job has cost a row there.
    pub cost: Cost,
    /// ε that further jobs may have, if it told.
    pub left: Option<f64>,
}

/// How long a phase took at the data user, waiting included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PhaseTime {
    /// Its name.
    pub phase: &'static str,
    /// How long.
    pub took: Duration,
}

/// What the data user has learned, as counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Revealed {
    /// Numbers in all summed gradients.
    pub gradient_numbers: u64,
    /// Sums of the encrypted columns and labels, from which means and deviations follow.
    pub moment_numbers: u64,
    /// How many of these are about labels.
    pub label_numbers: u64,
    /// Numbers in all histograms, or sums of errors of held-out rows.
    pub count_numbers: u64,
    /// Cells that were encrypted (training rows, features and label) and are unknown.
    pub unknown_cells: u64,
    /// Whether gradients were a sum over several providers.
    pub summed: bool,
}

/// Everything that a finished job yields.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// Features best first with their agreed score (none if the ranking was given).
    pub ranking: Vec<(usize, Option<f64>)>,
    /// Whose ranking it is, in words.
    pub ranked_by: String,
    /// Which were encrypted, published, dropped.
    pub split: Split,
    /// Why so many features were encrypted, if that was chosen.
    pub split_reason: Option<String>,
    /// How they were trained.
    pub settings: Settings,
    /// Encrypted features that do not vary over all providers, as far as that is known: they have
    /// no influence.
    pub constant: Vec<String>,
    /// The models.
    pub fits: Vec<ClassFit>,
    /// Between which values columns count, if not all do.
    pub reach: Option<ClipRange>,
    /// How the penalty was chosen, if it was.
    pub chosen: Option<ChosenPenalty>,
    /// The providers.
    pub providers: Vec<ProviderSummary>,
    /// Time by phase.
    pub phases: Vec<PhaseTime>,
    /// Time that the data user computed while it did not wait for anyone.
    pub user_busy: Duration,
    /// What was revealed.
    pub revealed: Revealed,
    /// The promise of a private job as it was agreed on.
    pub privacy: Option<Privacy>,
    /// Answers that a private job went without.
    pub lost: u32,
    /// About how many persons its training rows are of, where it protects persons and not rows.
    pub persons: Option<f64>,
}

impl Outcome {
    /// The guarantee of a private job whose rows have so many columns beside the bias: what was agreed
    /// on, and what the providers told that they charged.
    pub fn guarantee(&self, width: usize) -> Option<Guarantee> {
        let privacy = self.privacy?;
        let plan = privacy.plan(width + 1).ok()?;
        let told = self.providers.iter().filter_map(|p| p.charged);
        let most = told.map(|charged| charged.cost).max();
        Some(Guarantee {
            epsilon: privacy.epsilon.to_f64(),
            delta: privacy.delta.get(),
            unit: match privacy.persons {
                true => Unit::Person,
                false => Unit::Row,
            },
            charged: most.map(|cost| match cost == Cost::ZERO {
                true => 0.0,
                false => cost
                    .epsilon(privacy.delta)
                    .map_or(f64::MAX, Epsilon::to_f64),
            }),
            spent_on: self.spent_on(&plan, privacy.models.get()),
        })
    }

    /// The parts of a plan, as they were asked for.
    fn spent_on(&self, plan: &PrivatePlan, models: u32) -> Vec<SpentOn> {
        let held_out = self.providers.iter().any(|provider| provider.held_out > 0);
        let evaluations = if held_out { models } else { 0 };
        let gradients = plan.all_gradients();
        let moments = match plan.cost_of_moments() == Cost::ZERO {
            true => 0,
            false => MOMENT_ANSWERS,
        };
        let parts = [
            ("means and deviations", moments, plan.cost_of_moments()),
            (
                "gradients",
                gradients,
                plan.cost_of_pass().times(plan.all_passes().into()),
            ),
            (
                "right predictions of held-out rows",
                evaluations,
                plan.cost_of_right().times(evaluations.into()),
            ),
            (
                "table of held-out rows",
                evaluations,
                plan.cost_of_table().times(evaluations.into()),
            ),
        ];
        let asked = parts.into_iter().filter(|(_, answers, _)| *answers > 0);
        let spent = |(what, answers, cost): (&str, u32, Cost)| SpentOn {
            what: what.to_owned(),
            answers,
            share: cost.squared() / plan.cost().squared(),
        };
        asked.map(spent).collect()
    }

    /// The penalty and where it applies, in words.
    pub fn penalty(&self) -> String {
        let scaled = match self.settings.method.standardises() {
            true => "standardised features",
            false => "features in [0, 1]",
        };
        match (self.settings.c, &self.settings.method) {
            (Some(c), _) => match &self.chosen {
                None => format!("C = {c} on {scaled}"),
                Some(chosen) => format!(
                    "C = {c} on {scaled}, chosen of {} by {} other held-out rows",
                    chosen.tried.len(),
                    chosen.rows
                ),
            },
            (None, Method::Averaged { radius, .. }) => {
                format!("none; coefficients together no longer than {radius:.1}")
            }
            (None, _) => format!("none, {scaled}"),
        }
    }

    /// Coefficients over all columns of the schema: what was dropped has no weight.
    pub fn full_beta(&self, features: &[Feature], beta: &[f64]) -> Vec<f64> {
        let mut full = vec![beta[0]];
        let mut taken = beta[1..].iter();
        for (index, feature) in features.iter().enumerate() {
            let dropped = self.split.dropped.contains(&index);
            full.extend(feature.columns.clone().map(|_| match dropped {
                true => 0.0,
                false => taken.next().copied().unwrap_or(0.0),
            }));
        }
        full
    }
}
