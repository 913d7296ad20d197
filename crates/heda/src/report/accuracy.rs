//! The part of the report on held-out rows: how often the model was right, and how sure that is.

use super::chart::{Bar, bars};
use super::markup::{pair, section, table};
use super::percent;
use crate::summary::{Matrix, NumberResult, Summary, interval, r_squared, significant};
use heda_learn::model::Errors;
use heda_train::histogram::Confusion;
use maud::{Markup, html};

/// The whole part.
pub(super) fn accuracy(summary: &Summary) -> Markup {
    if let Some(number) = &summary.number {
        return of_number(summary, number);
    }
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

fn of_number(summary: &Summary, number: &NumberResult) -> Markup {
    let compared = number.compared(summary.iota < summary.features);
    let bar = |&(label, errors): &(&str, Errors)| Bar {
        label: label.into(),
        value: errors.rmse,
        shown: significant(errors.rmse),
        class: match label {
            "this model" => "model",
            _ => "control",
        },
    };
    let drawn: Vec<Bar> = compared.iter().map(bar).collect();
    let row = |(label, errors): &(&str, Errors)| {
        vec![
            (*label).to_owned(),
            significant(errors.rmse),
            significant(errors.mae),
            r_squared(errors),
        ]
    };
    let rows: Vec<Vec<String>> = compared.iter().map(row).collect();
    let head = ["what", "root of mean square", "mean absolute", "R²"];
    let left = html! {
        (bars("Root of the mean squared error on held-out rows: smaller is better", &drawn, None))
        p.key { span.model {} " under encryption " span.control {} " for comparison" }
    };
    let right = html! {
        (table("Errors, in the units of the label", &head, &rows))
        p {
            "The data user sees sums over all held-out rows of everybody: of squared and of absolute \
             errors, of the labels and of their squares. R² is the share of the labels' variance that \
             predictions explain. Errors beyond sixteen deviations of the label count as sixteen."
        }
        @if number.controls.is_some() {
            p {
                "The controls in clear use the same training and held-out rows, all in one place \
                 and unencrypted, which nobody in the job can do."
            }
        }
    };
    section("Errors", &pair(&left, &right))
}

fn drawn(summary: &Summary) -> Vec<Bar> {
    let dropped = summary.dropped_accuracy;
    let dropped = dropped.filter(|_| summary.iota < summary.features);
    let of_all = summary.matrix.as_ref().map(|matrix| matrix.accuracy);
    let rows = [
        ("this model", summary.accuracy.or(of_all), "model"),
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

fn of_matrix(matrix: &Matrix, classes: &[String]) -> Markup {
    let (head, rows) = matrix.table(classes);
    let head: Vec<&str> = head.iter().map(String::as_str).collect();
    table("Held-out rows by class", &head, &rows)
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
                 one model at a time. How often the highest score names the right class is known \
                 only where held-out rows can be read in clear."
            }
        }
        @if let Some(matrix) = &summary.matrix {
            p {
                "The highest score names the right class for "
                (percent(matrix.accuracy))
                " of the held-out rows"
                @if let Some([low, high]) = matrix.interval {
                    " (95 %: " (percent(low)) " to " (percent(high)) ")"
                }
                ", counted in clear on the machine that had them all."
            }
            (of_matrix(matrix, &summary.classes))
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
