//! `heda predict`: the class of every row of a file.

use crate::output;
use heda::failure::{Failure, Kind};
use heda::files::write_whole;
use heda_learn::model::Model;
use heda_learn::table::TableReader;
use serde::Serialize;
use std::path::PathBuf;

/// Predict the class of every row of a file
///
/// The model holds its schema, so the file is read as the training rows were; a label column may
/// be there and is passed over. The result is CSV: the row's number in the file, the class, and
/// the score and probability of each classifier.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  heda predict --model model.json --data new.csv
  heda predict --model model.json --data new.parquet --out predictions.csv --json")]
pub(crate) struct Arguments {
    /// The model file
    #[arg(long, value_name = "FILE")]
    model: PathBuf,
    /// Rows to predict, CSV or Parquet
    #[arg(long, value_name = "FILE")]
    data: PathBuf,
    /// Write the CSV here instead of to stdout
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Print one JSON object instead of CSV
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Report<'a> {
    rows: usize,
    classes: Vec<ClassCount>,
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<&'a PathBuf>,
    #[serde(skip_serializing_if = "Option::is_none")]
    predictions: Option<Vec<Row>>,
}

#[derive(Serialize)]
struct ClassCount {
    class: String,
    rows: usize,
}

#[derive(Serialize)]
struct Row {
    row: u64,
    class: String,
    scores: Vec<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    probabilities: Option<Vec<f64>>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let model = Model::read(&arguments.model).map_err(Failure::input)?;
    let (rows, report) = TableReader::new(model.schema())
        .read_rows_file(&arguments.data)
        .map_err(Failure::input)?;
    output::warn(report.warnings());
    let all = model.predict_rows(&rows);
    let csv = || {
        model
            .predictions_csv(&all)
            .map_err(|e| Failure::new(Kind::Bug, e))
    };
    if let Some(path) = &arguments.out {
        write_whole(path, &csv()?)?;
    }
    match (arguments.json, &arguments.out) {
        (true, out) => output::print_json(&summary(&model, all, out.as_ref())),
        (false, None) => output::print_text(String::from_utf8_lossy(&csv()?).trim_end()),
        (false, Some(path)) => {
            let rows = all.predictions.len();
            output::print_text(&format!("{rows} predictions in {}", path.display()))
        }
    }
}

fn summary<'a>(
    model: &Model,
    all: heda_learn::model::Predictions,
    path: Option<&'a PathBuf>,
) -> Report<'a> {
    let names = model.classes();
    let count = |index: usize| {
        let matching = all.predictions.iter().filter(|p| p.class as usize == index);
        matching.count()
    };
    let classes = names.iter().enumerate().map(|(index, class)| ClassCount {
        class: class.clone(),
        rows: count(index),
    });
    let classes = classes.collect();
    let rows = all.predictions.len();
    let each = all.numbers.into_iter().zip(all.predictions);
    let predictions = path.is_none().then(|| {
        each.map(|(row, p)| Row {
            row,
            class: names[p.class as usize].clone(),
            scores: p.scores,
            probabilities: p.probabilities,
        })
        .collect()
    });
    Report {
        rows,
        classes,
        path,
        predictions,
    }
}
