//! Figure 7, drawn from its file alone: accuracy and time over the number of encrypted features.

use super::Options;
use super::sheet::{Rows, Sheet};
use super::training::RUNS;
use crate::failure::Failure;
use crate::plot::{Axis, Content, Figure, Panel, Point, Series};
use heda_learn::bundled::Bundle;

/// All pictures.
pub(super) fn draw(options: &Options) -> Result<(), Failure> {
    let sheet = Sheet::open(&options.out, &RUNS)?;
    let rows = sheet.rows();
    accuracy(&rows).write(&options.out, "figure7-accuracy")?;
    for engine in ["lookup", "paper"] {
        time(&rows, engine).write(&options.out, &format!("figure7-time-{engine}"))?;
    }
    Ok(())
}

fn panels(rows: &Rows<'_>, label: &str, content: impl Fn(&Rows<'_>) -> Content) -> Vec<Panel> {
    let panel = |bundle: Bundle| {
        let rows = rows.with("dataset", bundle.name());
        let count = rows.text("rows").unwrap_or("0");
        Panel {
            title: format!("{}, {count} rows", bundle.title()),
            x: Axis::linear("encrypted features ι"),
            y: Axis::linear(label),
            content: content(&rows),
            dodge: 0,
        }
    };
    Bundle::ALL.map(panel).to_vec()
}

fn accuracy(rows: &Rows<'_>) -> Figure {
    let content = |rows: &Rows<'_>| {
        let lookup = rows.with("engine", "lookup");
        let curve = |name, rows: &Rows<'_>, column| Series {
            name: String::from(name),
            points: curve(rows, column, 100.0),
        };
        Content::Lines(vec![
            curve("engine lookup, rest published", &lookup, "accuracy"),
            curve(
                "engine paper, rest published",
                &rows.with("engine", "paper"),
                "accuracy",
            ),
            curve(
                "in clear, rest by IMA",
                &rows.with("mechanism", "ima"),
                "accuracy",
            ),
            curve("in clear, rest dropped", &lookup, "dropped_accuracy"),
            curve("in clear, all features", &lookup, "plain_accuracy"),
        ])
    };
    Figure {
        title: "Figure 7: accuracy on held-out rows".into(),
        panels: panels(rows, "accuracy, %", content),
    }
}

fn time(rows: &Rows<'_>, engine: &str) -> Figure {
    let content = |rows: &Rows<'_>| {
        let rows = rows.with("engine", engine);
        let iotas = sorted(&rows, "iota");
        let piece = |name: &str, column| Series {
            name: name.into(),
            points: curve(&rows, column, 1.0)
                .into_iter()
                .zip(0..)
                .map(|(point, place)| Point {
                    x: f64::from(place),
                    ..point
                })
                .collect(),
        };
        Content::Stacked {
            categories: iotas.iter().map(ToString::to_string).collect(),
            series: vec![
                piece("providers, summed", "seconds_providers"),
                piece("data user", "seconds_user"),
            ],
        }
    };
    Figure {
        title: format!("Figure 7: time with the engine {engine}"),
        panels: panels(rows, "seconds", content),
    }
}

/// The numbers of a column in order, each once.
fn sorted(rows: &Rows<'_>, column: &str) -> Vec<u64> {
    let texts = rows.distinct(column).into_iter();
    let mut numbers: Vec<u64> = texts.filter_map(|text| text.parse().ok()).collect();
    numbers.sort_unstable();
    numbers
}

/// The mean over repeats at each ι.
fn curve(rows: &Rows<'_>, column: &str, factor: f64) -> Vec<Point> {
    let point = |iota: u64| {
        Some(Point {
            x: iota as f64,
            y: factor * rows.with("iota", &iota.to_string()).mean(column)?,
            spread: 0.0,
        })
    };
    sorted(rows, "iota").into_iter().filter_map(point).collect()
}
