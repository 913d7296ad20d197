//! The coefficients of a model, drawn and listed.

use super::chart::{Bar, bars};
use super::markup::{details, section, table};
use crate::summary::Summary;
use heda_learn::clip_range::ClipRange;
use heda_learn::model::{Classifier, Model};
use maud::{Markup, html};

/// Coefficients that are drawn; the table has all of them.
const DRAWN_COEFFICIENTS: usize = 12;

/// Every coefficient, as effect and in original units, with what noise does to it.
pub(super) fn coefficients(summary: &Summary, model: &Model) -> Markup {
    let several = model.classifiers().len() > 1;
    let ranked = &summary.features_by_rank;
    let dropped = ranked.iter().any(|f| f.protection == "dropped");
    let inner = html! {
        @match &summary.number {
            Some(number) => {
                p.key { span.up {} " more " span.down {} " less" }
                p {
                    "An effect is the change of the predicted " (number.label) " when a column goes \
                     from its lower to its upper bound."
                }
            }
            None => {
                p.key { span.up {} " more likely " span.down {} " less likely" }
                p {
                    "An effect is the change of the log-odds when a column goes from its lower to \
                     its upper bound."
                }
            }
        }
        @if dropped { p { "Features that were left out have no weight." } }
        @if model.reach().is_some() {
            p {
                "Numbers count up to three deviations from what is typical, as they did in training; \
                 further out nothing changes, and an effect is that of going from one end to the other."
            }
        }
        (noise_words(summary, model))
        @for classifier in model.classifiers() {
            (of_class(classifier, model.reach(), several, summary))
        }
    };
    section("Coefficients", &inner)
}

/// What noise does to the effects of a private model, and how many it could have made alone.
fn noise_words(summary: &Summary, model: &Model) -> Markup {
    let effects = model.classifiers().iter();
    let effects: Vec<Effect<'_>> = effects
        .flat_map(|classifier| effects_of(classifier, model.reach(), summary))
        .collect();
    let within = effects.iter().filter(|effect| effect.is_within_noise());
    html! {
        @if !summary.noise_in_effects.is_empty() {
            p {
                "Noise alone moves an effect by the given standard deviation at most; the lines in the \
                 bars are two of them to both sides. Effects that are smaller than that may be noise, \
                 sign included: " (within.count()) " of " (effects.len()) "."
            }
        }
    }
}

/// A column's effect and coefficient, and what noise may have done to it.
struct Effect<'m> {
    column: &'m str,
    effect: f64,
    per_unit: f64,
    noise: Option<f64>,
}

/// Standard deviations to both sides that hold 95 % of what noise does.
const NOISE_DEVIATIONS: f64 = 2.0;

impl Effect<'_> {
    fn is_within_noise(&self) -> bool {
        let reached = |noise| self.effect.abs() < NOISE_DEVIATIONS * noise;
        self.noise.is_some_and(reached)
    }

    fn bar(&self) -> Bar {
        Bar {
            label: self.column.to_owned(),
            value: self.effect,
            shown: signed(self.effect),
            class: if self.effect < 0.0 { "down" } else { "up" },
            interval: self.noise.map(|noise| {
                let far = NOISE_DEVIATIONS * noise;
                [self.effect - far, self.effect + far]
            }),
        }
    }

    fn row(&self) -> Vec<String> {
        let mut row = vec![self.column.to_owned(), signed(self.effect)];
        row.extend(self.noise.map(|noise| format!("±{noise:.4}")));
        row.push(signed(self.per_unit));
        row
    }
}

/// The effects of a classifier, the largest first.
fn effects_of<'m>(
    classifier: &'m Classifier,
    reach: Option<&ClipRange>,
    summary: &Summary,
) -> Vec<Effect<'m>> {
    let span = |column: usize| {
        let ends = reach.and_then(|reach| reach.ends().get(column));
        ends.map_or(1.0, |[from, to]| to - from)
    };
    let slopes = classifier.scaled.iter().skip(1).enumerate();
    let named = classifier.original.coefficients.iter();
    let mut effects: Vec<Effect<'m>> = named
        .zip(slopes)
        .map(|(coefficient, (column, slope))| Effect {
            column: coefficient.column.as_str(),
            effect: slope * span(column),
            per_unit: coefficient.value,
            noise: summary.noise_in_effects.get(column).copied(),
        })
        .collect();
    effects.sort_by(|a, b| b.effect.abs().total_cmp(&a.effect.abs()));
    effects
}

fn of_class(
    classifier: &Classifier,
    reach: Option<&ClipRange>,
    several: bool,
    summary: &Summary,
) -> Markup {
    let effects = effects_of(classifier, reach, summary);
    let drawn: Vec<Bar> = effects
        .iter()
        .take(DRAWN_COEFFICIENTS)
        .map(Effect::bar)
        .collect();
    let noisy = !summary.noise_in_effects.is_empty();
    let scaled = classifier.scaled.first();
    let mut intercept = vec![
        "intercept".to_owned(),
        scaled.map_or(String::new(), |&b| signed(b)),
    ];
    intercept.extend(noisy.then(|| "–".to_owned()));
    intercept.push(signed(classifier.original.intercept));
    let rows: Vec<Vec<String>> = std::iter::once(intercept)
        .chain(effects.iter().map(Effect::row))
        .collect();
    let title = match (several, effects.len() > DRAWN_COEFFICIENTS) {
        _ if summary.number.is_some() => format!("Effects on {}", classifier.class),
        (true, _) => format!("Largest effects for class {}", classifier.class),
        (false, true) => "Largest effects on the log-odds".to_owned(),
        (false, false) => "Effects on the log-odds".to_owned(),
    };
    let head: &[&str] = match noisy {
        true => &["column", "effect", "noise at most", "per unit"],
        false => &["column", "effect", "per unit"],
    };
    let all = table("Coefficients, largest effect first", head, &rows);
    html! {
        (bars(&title, &drawn, None))
        (details("All coefficients", &all))
    }
}

fn signed(value: f64) -> String {
    format!("{value:+.4}").replace('-', "−")
}
