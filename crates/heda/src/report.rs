//! The report that a training run leaves: one HTML file that needs no network and no scripts.
//!
//! Everything in it comes from the summary and the model, so whoever trains can write one. Templates
//! put it together and escape every text: names of features come from other people's files.

mod accuracy;
mod chart;
mod coefficients;
mod markup;

use crate::summary::{Party, RankedFeature, Summary, came_to};
use accuracy::accuracy;
use chart::{Bar, bars, decay};
use coefficients::coefficients;
use heda_job::job::TriedPenalty;
use heda_learn::model::Model;
use markup::{pair, section, table};
use maud::{DOCTYPE, Markup, PreEscaped, html};

/// Only the file itself may style the page, and nothing may be loaded.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'";

/// The page. `command` is what was typed, to be typed again.
pub fn page(summary: &Summary, model: &Model, command: &str) -> String {
    // The one text that is put in as it is: a file of this crate.
    let style = PreEscaped(include_str!("report/style.css"));
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta http-equiv="Content-Security-Policy" content=(POLICY);
                title { "Heda: " (summary.dataset) }
                style { (style) }
            }
            body {
                main {
                    (opening(summary))
                    (losses(model))
                    (accuracy(summary))
                    (penalties(summary))
                    @if summary.privacy.is_none() { (features(summary)) }
                    (coefficients(summary, model))
                    (course(summary))
                    (traffic(summary))
                    (privacy(summary))
                    (repeat(summary, command))
                }
            }
        }
    };
    // What no reader could see has no place in a page.
    let control = |c: char| c.is_control() && c != '\n' && c != '\t';
    page.into_string().replace(control, "\u{fffd}") + "\n"
}

/// The command line of this process, quoted for a shell.
pub fn command_line() -> String {
    let arguments = std::env::args_os().skip(1);
    let words = arguments.map(|word| quoted(&word.to_string_lossy()));
    std::iter::once("heda".to_owned())
        .chain(words)
        .collect::<Vec<_>>()
        .join(" ")
}

/// A word of a command line, quoted for a shell where it has to be.
pub fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=,:+%@".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

fn percent(share: f64) -> String {
    format!("{:.2} %", 100.0 * share)
}

fn seconds(seconds: f64) -> String {
    match seconds {
        s if s < 1.0 => format!("{:.0} ms", 1000.0 * s),
        s if s < 120.0 => format!("{s:.2} s"),
        s => format!("{:.1} min", s / 60.0),
    }
}

fn megabytes(bytes: u64) -> String {
    match bytes {
        0..100_000 => format!("{:.2} kB", bytes as f64 / 1e3),
        _ => format!("{:.2} MB", bytes as f64 / 1e6),
    }
}

fn opening(summary: &Summary) -> Markup {
    let what = match &summary.number {
        Some(number) => format!("A model that predicts {}, trained", number.label),
        None => "A classifier trained".to_owned(),
    };
    let lead = format!(
        "{what} on {} rows of {} providers; {} of {} features encrypted, {} \
         iterations, engine {}. {} rows were held out and stayed encrypted while \
         it was evaluated.",
        summary.rows,
        summary.providers,
        summary.iota,
        summary.features,
        summary.iterations,
        summary.engine,
        summary.held_out
    );
    html! {
        h1 { (summary.dataset) }
        p.lead { (lead) " " (summary.made) "." }
        (guarantee(summary))
        @if summary.seeded {
            p.warning {
                "This was a seeded run: reproducible, and therefore without any protection. Keys, \
                 masks and noise can be computed again by whoever knows the seed."
            }
        }
        @if !summary.seeded_providers().is_empty() {
            p.warning {
                "Ran with a seed, and therefore without protection of their rows: "
                (summary.seeded_providers().join(", ")) "."
            }
        }
    }
}

/// What the providers charged for a guarantee, for what, and what they have left.
fn charged(summary: &Summary) -> String {
    let Some(promise) = &summary.privacy else {
        return String::new();
    };
    let spent = promise.spent_on.iter();
    let spent: Vec<String> = spent
        .map(|part| format!("{} {}", part.answers, part.what))
        .collect();
    let mut text = match promise.charged {
        Some(charged) => format!(
            "The providers charged ε = {charged:.4}, for {}.",
            spent.join(", ")
        ),
        None => String::new(),
    };
    for left in &summary.budget_left {
        text += &format!(" {} has room for ε = {:.2}.", left.provider, left.epsilon);
    }
    text
}

/// What a private job guarantees, before everything else.
fn guarantee(summary: &Summary) -> Markup {
    let unfounded = summary.privacy.as_ref().is_some_and(|p| p.bounds_from_rows);
    html! {
        @if let Some(sentence) = &summary.guarantee {
            p.guarantee { strong { "Guarantee. " } (sentence) " " (charged(summary)) }
        }
        @if unfounded {
            p.warning {
                "Bounds were read from the rows, so nothing is guaranteed: the model holds values of \
                 single rows. Give a schema with publicly known bounds."
            }
        }
    }
}

/// How the penalty was chosen, if it was.
fn penalties(summary: &Summary) -> Markup {
    let Some(choice) = &summary.chosen_penalty else {
        return html! {};
    };
    let name = |tried: &TriedPenalty| format!("C = {}", tried.c);
    let steps = || choice.tried.iter().enumerate();
    let drawn: Vec<Bar> = steps()
        .map(|(step, tried)| Bar {
            label: name(tried),
            value: tried.right.or(tried.rmse).unwrap_or(0.0),
            shown: came_to(tried),
            class: match step == choice.chosen {
                true => "model",
                false => "control",
            },
            interval: None,
        })
        .collect();
    let row = |(step, tried): (usize, &TriedPenalty)| {
        let chosen = match step == choice.chosen {
            true => "chosen",
            false => "–",
        };
        let gradients = tried.gradients.to_string();
        vec![name(tried), came_to(tried), gradients, chosen.to_owned()]
    };
    let rows: Vec<Vec<String>> = steps().map(row).collect();
    let number = summary.number.is_some();
    let (title, most) = match number {
        true => (
            "Root of the mean squared error on the rows that chose",
            None,
        ),
        false => ("Right predictions on the rows that chose", Some(1.0)),
    };
    let head = [
        "penalty",
        if number { "error" } else { "right" },
        "gradients",
        "",
    ];
    let left = html! {
        (bars(title, &drawn, most))
        p.key { span.model {} " chosen " span.control {} " not chosen" }
    };
    let right = html! {
        (table("Penalties, from strong to weak", &head, &rows))
        p {
            "The penalty was chosen by " (choice.rows) " held-out rows. Accuracy and errors of this \
             page are counted on " (summary.held_out) " others: the best of several is good on the \
             rows that chose it also by chance."
        }
    };
    section("Choice of the penalty", &pair(&left, &right))
}

/// Providers that did not stay to the end.
fn losses(model: &Model) -> Markup {
    html! {
        @if let Some(lost) = model.provenance().notes.get(PROVIDERS_LOST) {
            p.warning { (went_on_without(lost)) }
        }
    }
}

/// Note of a model whose job lost providers.
pub const PROVIDERS_LOST: &str = "providers_lost";

/// What happened to a job that lost providers.
pub fn went_on_without(lost: &str) -> String {
    format!(
        "The job went on without {lost}, with new masks. What it had learned from them until then \
         is in the model."
    )
}

fn class_of(feature: &RankedFeature) -> &'static str {
    match feature.protection {
        "encrypted" => "encrypted",
        "published" => "published",
        _ => "dropped",
    }
}

fn features(summary: &Summary) -> Markup {
    let ranked = &summary.features_by_rank;
    let share = |feature: &RankedFeature| feature.score.unwrap_or(0.0);
    let drawn: Vec<Bar> = ranked
        .iter()
        .map(|feature| Bar {
            label: feature.name.clone(),
            value: share(feature),
            shown: feature
                .score
                .map_or(feature.protection.into(), |s| format!("{:.1} %", 100.0 * s)),
            class: class_of(feature),
            interval: None,
        })
        .collect();
    let rows: Vec<Vec<String>> = ranked
        .iter()
        .map(|feature| {
            let epsilon = feature.epsilon.map_or("–".into(), |e| format!("{e:.3}"));
            vec![feature.name.clone(), feature.protection.into(), epsilon]
        })
        .collect();
    let mut words = format!("Ranked by {}.", summary.ranked_by);
    if let Some(reason) = &summary.split_reason {
        words += &format!(" Chosen automatically: {reason}.");
    }
    let scored = ranked.iter().any(|feature| feature.score.is_some());
    let left = html! {
        p { (words) }
        @if scored {
            p.key {
                span.encrypted {} " encrypted " span.published {} " published with noise "
                span.dropped {} " left out"
            }
            (bars("Share of the agreed scores", &drawn, None))
        }
    };
    let right = html! {
        (table("Protection", &["feature", "protection", "ε"], &rows))
        p { (epsilon_words(summary)) }
    };
    section("Features by score and protection", &pair(&left, &right))
}

fn epsilon_words(summary: &Summary) -> String {
    match summary.epsilon_total {
        Some(total) => format!(
            "The columns of a row describe the same person, so their ε add up: {total:.3} in sum for \
             each row. If nobody's rows lie at two providers, the largest sum of any provider \
             counts; a person with several rows pays for each of them."
        ),
        None => "Nothing was published, so no ε was spent.".to_owned(),
    }
}

fn course(summary: &Summary) -> Markup {
    let phases: Vec<Bar> = summary
        .phases
        .iter()
        .map(|phase| Bar {
            label: phase.name.into(),
            value: phase.seconds,
            shown: seconds(phase.seconds),
            class: "time",
            interval: None,
        })
        .collect();
    let user = vec![
        "data user".to_owned(),
        "–".to_owned(),
        seconds(summary.seconds.user),
    ];
    let party = |party: &Party| {
        let computed = party.seconds.map_or("–".into(), seconds);
        vec![party.name.clone(), party.rows.to_string(), computed]
    };
    let rows: Vec<Vec<String>> = std::iter::once(user)
        .chain(summary.parties.iter().map(party))
        .collect();
    let head = ["party", "training rows", "time"];
    let left = html! {
        (bars("Time by phase, waiting included", &phases, None))
        (table("Time that each party computed", &head, &rows))
    };
    let words = format!(
        "The whole run took {}: {:.1} µs a training row and iteration.",
        seconds(summary.seconds.total),
        summary.us_per_row_iteration
    );
    let title = "Convergence: largest entry of the mean gradient";
    let right = html! {
        (decay(title, "iteration", &summary.gradient_norms))
        @for stop in &summary.stopped { p { (stop) } }
        @for words in &summary.warnings { p.warning { (words) } }
        p { (words) }
    };
    section("Time and convergence", &pair(&left, &right))
}

fn traffic(summary: &Summary) -> Markup {
    let mut rows: Vec<Vec<String>> = summary
        .phases
        .iter()
        .map(|phase| {
            let bytes = [phase.bytes.user_to_provider, phase.bytes.provider_to_user];
            let mut row = vec![phase.name.to_owned()];
            row.extend(bytes.map(megabytes));
            row.push(phase.round_trips.to_string());
            row
        })
        .collect();
    rows.push(vec![
        "in all".into(),
        megabytes(summary.bytes.user_to_provider),
        megabytes(summary.bytes.provider_to_user),
        summary.round_trips.to_string(),
    ]);
    let head = ["phase", "to providers", "back", "round trips"];
    let inner = table("Over all channels", &head, &rows);
    section("Traffic", &inner)
}

fn privacy(summary: &Summary) -> Markup {
    let inner = html! {
        @for line in summary.who_learned().lines() {
            p { (line) }
        }
    };
    section("Privacy: who learned what", &inner)
}

fn repeat(summary: &Summary, command: &str) -> Markup {
    let again = if summary.seeded {
        "The seed makes the model the same again; times will differ."
    } else {
        "Keys, masks, noise and the held-out rows are drawn afresh every time, so numbers will \
         differ a little."
    };
    let rows = vec![
        vec!["made on".to_owned(), summary.made.clone()],
        vec!["penalty".to_owned(), summary.penalty.clone()],
        vec!["heda".to_owned(), env!("CARGO_PKG_VERSION").to_owned()],
        vec![
            "protocol".to_owned(),
            heda_job::proposal::PROTOCOL_VERSION.to_string(),
        ],
        vec!["cryptosystem".to_owned(), summary.cryptosystem.to_owned()],
        vec![
            "platform".to_owned(),
            format!("{} {}", std::env::consts::OS, std::env::consts::ARCH),
        ],
    ];
    let inner = html! {
        pre { code { (command) } }
        p { (again) }
        (table("How it was made", &["what", "value"], &rows))
    };
    section("To repeat it", &inner)
}

#[cfg(test)]
mod tests;
