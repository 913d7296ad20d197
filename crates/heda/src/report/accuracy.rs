//! The part of the report on held-out rows: how often the model was right, and how sure that is.

use super::chart::{Bar, bars};
use super::markup::{pair, section, table};
use super::percent;
use crate::summary::{Matrix, NumberResult, Summary, interval, r_squared, significant};
use heda_job::histogram::BinaryConfusion;
use heda_learn::model::Errors;
use maud::{Markup, html};

/// The whole part.
pub(super) fn accuracy(summary: &Summary) -> Markup {
    if let Some(number) = &summary.number {
        return of_number(summary, number);
    }
    let drawn = drawn(summary);
    let left = html! {
        (bars("Right predictions on held-out rows", &drawn, Some(1.0)))
        p.key { span.model {} " under encryption " span.control {} " for comparison" }
        @if drawn.iter().any(|bar| bar.interval.is_some()) {
            p.key { "The line in the bar is the 95 % interval." }
        }
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
        interval: None,
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
    let majority = match summary.privacy.is_some() && summary.majority_in_clear {
        true => "most frequent class, counted in clear",
        false => "most frequent class",
    };
    let rows = [
        ("this model", summary.accuracy.or(of_all), "model"),
        ("in clear, all features", summary.plain_accuracy, "control"),
        ("in clear, published features dropped", dropped, "control"),
        (majority, summary.majority_accuracy, "control"),
    ];
    let bar = |label: &str, value: f64, class| Bar {
        label: label.into(),
        value,
        shown: percent(value),
        class,
        interval: None,
    };
    let whole = rows.into_iter();
    let whole = whole.filter_map(|(label, share, class)| share.map(|s| bar(label, s, class)));
    let whole = whole.map(|bar| match bar.class {
        "model" => Bar {
            interval: summary.interval_of_model(),
            ..bar
        },
        _ => bar,
    });
    let of_class = summary.by_class.iter().filter_map(|result| {
        let label = format!("{} against the rest", result.class);
        result.accuracy.map(|share| Bar {
            interval: result.accuracy_interval,
            ..bar(&label, share, "model")
        })
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

fn counts(summary: &Summary, confusion: &BinaryConfusion) -> Markup {
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

fn measures(summary: &Summary, confusion: &BinaryConfusion) -> Markup {
    let [_, positive] = classes(summary);
    let (tp, tn) = (confusion.true_positives, confusion.true_negatives);
    let (positives, negatives) = (
        tp + confusion.false_negatives,
        tn + confusion.false_positives,
    );
    let noisy = summary.privacy.as_ref().and_then(|p| p.counts_deviation);
    // With noise the whole is known for all rows only.
    let sure = |part: u64, whole: u64| match noisy {
        None => interval(part, whole),
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
        row(
            "specificity (other classes correctly rejected)".into(),
            tn,
            negatives,
        ),
        row("precision".into(), tp, tp + confusion.false_positives),
    ];
    let title = match noisy {
        None => "Shares, with 95 % intervals by Wilson",
        Some(_) => "Shares; the 95 % interval accounts for noise",
    };
    table(title, &["share of rows", "value", "between"], &rows)
}

fn of_matrix(matrix: &Matrix, classes: &[String]) -> Markup {
    let (head, rows) = matrix.table(classes);
    let head: Vec<&str> = head.iter().map(String::as_str).collect();
    table("Held-out rows by class", &head, &rows)
}

fn area(summary: &Summary) -> Markup {
    let Some([low, high]) = summary.auc else {
        return html! {};
    };
    let noise = summary.privacy.as_ref().map(|p| p.counts_deviation);
    let words = match noise {
        None => format!(
            "Area under the ROC curve: between {low:.4} and {high:.4}. The data user sees counts of \
             scores by range, not scores, so the area is known within bounds."
        ),
        Some(deviation) => {
            let much =
                deviation.map_or(String::new(), |d| format!(" of standard deviation {d:.1}"));
            format!(
                "Area under the ROC curve: about {low:.2} to {high:.2} by the counts as they are \
                 shown. Each of them carries noise{much}, so these are estimates and no bounds."
            )
        }
    };
    html! { p { (words) } }
}

fn words(summary: &Summary) -> Markup {
    let noisy = summary.privacy.as_ref();
    let noisy = noisy.and_then(|p| p.counts_deviation.zip(p.right_deviation));
    html! {
        @if let Some((deviation, right)) = noisy {
            p {
                "Right predictions were counted on their own, with noise of standard deviation "
                (format!("{right:.1}")) "; the counts of the table carry "
                (format!("{deviation:.1}")) " each, and are shown as the nearest ones with as many \
                 rows and right predictions. The interval accounts for noise and chance; the other \
                 shares are less certain."
            }
        }
        @if !summary.by_class.is_empty() {
            p {
                "Each class is told from the rest by a model of its own, and rows are counted for \
                 one model at a time. How often the highest score names the right class is known \
                 only where held-out rows can be read in clear."
            }
        }
        @if let Some(overall) = &summary.overall {
            p {
                "Where all models are right about a row, so is the highest score. So the highest \
                 score is right for at least " (percent(overall.at_least)) " of the held-out rows as \
                 estimated, and with 95 % confidence for at least " (percent(overall.confident))
                " of new rows."
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
        (area(summary))
        @if summary.plain_accuracy.is_some() {
            p {
                "The controls in clear use the same training and held-out rows, all in one place \
                 and unencrypted, which nobody in the job can do."
            }
        }
    }
}
