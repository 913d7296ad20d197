//! `heda predict`: the class, or number, of every row of a file.

use crate::options::CsvOptions;
use crate::output;
use heda::Error;
use heda::files::write_whole;
use heda::model::{self, Model, Predictions};
use serde::Serialize;
use std::path::PathBuf;

/// Predict the class, or number, of every row of a file
///
/// The model holds its schema, so the file is read as the training rows were; a label and other
/// columns may be there and are passed over. The result is CSV with a line for each row: its number
/// in the file, or its name from the column --id, the class, and the score and probability of each
/// classifier; of a model for a number the number, under the title of the label. Missing cells go by the rule of the schema; of a row that it drops or refuses
/// nothing is said, and the line has its name only.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  heda predict --model model.json --data new.csv
  heda predict --model model.json --data new.csv --id patient
  heda predict --model model.json --data new.parquet --out predictions.csv --json")]
pub(crate) struct PredictArguments {
    /// The model file
    #[arg(long, value_name = "FILE")]
    model: PathBuf,
    /// Rows to predict, CSV or Parquet
    #[arg(long, value_name = "FILE")]
    data: PathBuf,
    /// The column that names the rows, to be passed through
    #[arg(long, value_name = "COLUMN")]
    id: Option<String>,
    /// Write the CSV here instead of to stdout
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Print one JSON object instead of CSV
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    csv: CsvOptions,
}

#[derive(Serialize)]
struct PredictionReport<'a> {
    rows: usize,
    /// Rows of which nothing can be said, because a value is missing.
    rows_left_out: usize,
    classes: Vec<ClassCount>,
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<&'a PathBuf>,
    #[serde(skip_serializing_if = "Option::is_none")]
    predictions: Option<Vec<PredictionRow>>,
}

#[derive(Serialize)]
struct ClassCount {
    class: String,
    rows: usize,
}

#[derive(Serialize)]
struct PredictionRow {
    row: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    class: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    number: Option<f64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    scores: Vec<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    probabilities: Option<Vec<f64>>,
}

pub(crate) fn run(arguments: &PredictArguments) -> Result<(), Error> {
    let model = model::read(&arguments.model)?;
    let id = arguments.id.as_deref();
    let format = arguments.csv.format();
    let (all, report) = model::predict_file(&model, &arguments.data, format, id)?;
    output::warn(report.warnings_of_prediction());
    let csv = || model::to_csv(&model, &all, id);
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

fn summary<'a>(model: &Model, all: Predictions, path: Option<&'a PathBuf>) -> PredictionReport<'a> {
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
    let (rows, rows_left_out) = (all.predictions.len(), all.left_out.len());
    let mut ids = all.ids.into_iter();
    let each = all.numbers.into_iter().zip(all.predictions);
    let numeric = model.is_numeric();
    let predictions = path.is_none().then(|| {
        each.map(|(row, p)| PredictionRow {
            row,
            id: ids.next(),
            class: names.get(p.class as usize).cloned(),
            number: p.scores.first().copied().filter(|_| numeric),
            scores: if numeric { Vec::new() } else { p.scores },
            probabilities: p.probabilities,
        })
        .collect()
    });
    PredictionReport {
        rows,
        rows_left_out,
        classes,
        path,
        predictions,
    }
}
