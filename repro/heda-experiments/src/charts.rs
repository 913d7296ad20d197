//! Figure 7, drawn from its file alone: accuracy and time over the number of encrypted features.

use super::sheet::{Rows, Sheet};
use super::training::{DEFAULT_ENGINE, RUNS};
use crate::plot::{Axis, Content, Figure, Panel, Point, Series};
use heda::Error;
use heda_learn::bundled::Bundle;
use std::path::Path;

/// All pictures.
pub(super) fn draw(folder: &Path) -> Result<(), Error> {
    let sheet = Sheet::open(folder, &RUNS)?;
    let rows = sheet.rows().with("coding", "paper");
    accuracy(&rows).write(folder, "figure7-accuracy")?;
    for engine in [DEFAULT_ENGINE, "paper"] {
        time(&rows, engine).write(folder, &format!("figure7-time-{engine}"))?;
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
    let default = DEFAULT_ENGINE;
    let content = |rows: &Rows<'_>| {
        let ours = rows.with("engine", default);
        let curve = |name: &str, rows: &Rows<'_>, column| Series {
            name: name.to_owned(),
            points: curve(rows, column, 100.0),
        };
        Content::Lines(vec![
            curve(
                &format!("engine {default}, rest published"),
                &ours,
                "accuracy",
            ),
            curve(
                "engine paper, rest published (one split)",
                &rows.with("engine", "paper"),
                "accuracy",
            ),
            curve(
                "in clear, rest by IMA",
                &rows.with("mechanism", "ima"),
                "accuracy",
            ),
            curve("in clear, rest dropped", &ours, "dropped_accuracy"),
            curve("in clear, all features", &ours, "plain_accuracy"),
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

/// The mean at each ι over the splits that have every ι: otherwise a curve would be about splits.
fn curve(rows: &Rows<'_>, column: &str, factor: f64) -> Vec<Point> {
    let iotas = sorted(rows, "iota");
    let at = |iota: u64| rows.with("iota", &iota.to_string());
    let complete = |split: &&str| {
        iotas
            .iter()
            .all(|iota| at(*iota).with("repeat", split).len() > 0)
    };
    let splits: Vec<&str> = rows
        .distinct("repeat")
        .into_iter()
        .filter(complete)
        .collect();
    let point = |&iota: &u64| {
        let values = splits
            .iter()
            .filter_map(|split| at(iota).with("repeat", split).mean(column));
        let values: Vec<f64> = values.collect();
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        (!values.is_empty()).then_some(Point {
            x: iota as f64,
            y: factor * mean,
            spread: 0.0,
        })
    };
    iotas.iter().filter_map(point).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_curve_is_over_the_splits_that_have_every_point() {
        let folder = tempfile::tempdir().unwrap();
        let mut sheet = Sheet::open(folder.path(), &RUNS).unwrap();
        for (iota, split, accuracy) in [("1", "0", "0.5"), ("2", "0", "0.75"), ("2", "1", "1")] {
            let mut row = [
                "resident", "car", "paper", "9", "laplace", iota, split, "6", accuracy,
            ]
            .to_vec();
            row.resize(RUNS.columns.len(), "1");
            let row = row.into_iter().map(str::to_owned).collect();
            sheet.add(1, "-", vec![row]).unwrap();
        }
        let heights = |rows: &Rows<'_>| -> Vec<f64> {
            let points = curve(rows, "accuracy", 100.0);
            points.iter().map(|point| point.y).collect()
        };
        assert_eq!(heights(&sheet.rows()), [50.0, 75.0]);
        assert_eq!(heights(&sheet.rows().with("iota", "2")), [87.5]);
        assert!(heights(&sheet.rows().with("iota", "3")).is_empty());
        draw(folder.path()).unwrap();
        for stem in ["accuracy", "time-resident", "time-paper"] {
            assert!(folder.path().join(format!("figure7-{stem}.svg")).is_file());
        }
    }
}
