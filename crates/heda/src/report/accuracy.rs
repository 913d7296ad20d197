//! The part of the report on held-out rows: how often the model was right, and how sure that is.

use super::chart::{Bar, bars};
use super::markup::{pair, section, table};
use super::percent;
use crate::summary::{Summary, interval};
use heda_train::histogram::Confusion;
use maud::{Markup, html};

/// The whole part.
pub(super) fn accuracy(summary: &Summary) -> Markup {
    let left = html! {
        (bars("Right predictions on held-out rows", &drawn(summary), Some(1.0)))
        p.key { span.model {} " under encryption " span.control {} " for comparison" }
    };
    let right = html! {
        @if let Some(confusion) = &summary.confusion {
            (counts(summary, confusion))
            (measures(summary, confusion))
        }
        (words(summary))
    };
    section("Accuracy", &pair(&left, &right))
}

fn drawn(summary: &Summary) -> Vec<Bar> {
    let dropped = summary.dropped_accuracy;
    let dropped = dropped.filter(|_| summary.iota < summary.features);
    let rows = [
        ("this model", summary.accuracy, "model"),
        ("in clear, all features", summary.plain_accuracy, "control"),
        ("in clear, published features dropped", dropped, "control"),
        ("most frequent class", summary.majority_accuracy, "control"),
    ];
    let bar = |label: &str, value: f64, class| Bar {
        label: label.into(),
        value,
        shown: percent(value),
        class,
    };
    let whole = rows.into_iter();
    let whole = whole.filter_map(|(label, share, class)| share.map(|s| bar(label, s, class)));
    let of_class = summary.by_class.iter().filter_map(|result| {
        let label = format!("{} against the rest", result.class);
        result.accuracy.map(|share| bar(&label, share, "model"))
    });
    whole.chain(of_class).collect()
}

/// Names of both classes, the positive one last.
fn classes(summary: &Summary) -> [&str; 2] {
    match &summary.classes[..] {
        [negative, positive] => [negative, positive],
        _ => ["negative", "positive"],
    }
}

fn counts(summary: &Summary, confusion: &Confusion) -> Markup {
    let [negative, positive] = classes(summary);
    let row = |name: &str, cells: [u64; 2]| {
        let cells = cells.map(|count| count.to_string());
        std::iter::once(name.to_owned()).chain(cells).collect()
    };
    let rows: Vec<Vec<String>> = vec![
        row(
            negative,
            [confusion.true_negatives, confusion.false_positives],
        ),
        row(
            positive,
            [confusion.false_negatives, confusion.true_positives],
        ),
    ];
    let (first, second) = (format!("as {negative}"), format!("as {positive}"));
    table(
        "Held-out rows, predicted",
        &["actual", &first, &second],
        &rows,
    )
}

fn measures(summary: &Summary, confusion: &Confusion) -> Markup {
    let [_, positive] = classes(summary);
    let (tp, tn) = (confusion.true_positives, confusion.true_negatives);
    let (positives, negatives) = (
        tp + confusion.false_negatives,
        tn + confusion.false_positives,
    );
    let noisy = summary.private.as_ref().and_then(|p| p.counts_deviation);
    // With noise the whole is known for all rows only.
    let sure = |part: u64, whole: u64| match noisy {
        None => interval(part, whole, 0.0),
        Some(_) if whole == positives + negatives => summary.accuracy_interval,
        Some(_) => None,
    };
    let row = |name: String, part: u64, whole: u64| {
        let share = (whole > 0).then(|| percent(part as f64 / whole as f64));
        let sure =
            sure(part, whole).map(|[low, high]| format!("{} to {}", percent(low), percent(high)));
        vec![
            name,
            share.unwrap_or("–".into()),
            sure.unwrap_or("–".into()),
        ]
    };
    let rows = [
        row("right".into(), tp + tn, positives + negatives),
        row(format!("sensitivity ({positive} found)"), tp, positives),
        row("specificity (others left alone)".into(), tn, negatives),
        row("precision".into(), tp, tp + confusion.false_positives),
    ];
    table(
        "Shares, with 95 % intervals by Wilson",
        &["share of rows", "value", "between"],
        &rows,
    )
}

fn words(summary: &Summary) -> Markup {
    let noisy = summary.private.as_ref().and_then(|p| p.counts_deviation);
    html! {
        @if let Some(deviation) = noisy {
            p {
                "The counts carry noise of deviation " (format!("{deviation:.1}")) " each, and were then \
                 made to fit the number of rows. The interval of all right predictions accounts for \
                 it; the other shares are as uncertain or more."
            }
        }
        @if !summary.by_class.is_empty() {
            p {
                "Each class is told from the rest by a model of its own, and rows are counted for \
                 one model at a time. How often the highest score names the right class is not \
                 known."
            }
        }
        @if let Some([low, high]) = summary.auc {
            p {
                "Area under the ROC curve: between " (format!("{low:.4}")) " and "
                (format!("{high:.4}")) ". The data user sees counts of scores by range, not \
                scores, so the area is known within bounds."
            }
        }
        @if summary.plain_accuracy.is_some() {
            p {
                "The controls in clear use the same training and held-out rows, all in one place \
                 and unencrypted, which nobody in the job can do."
            }
        }
    }
}
