//! `heda evaluate`: a model on rows whose class, or number, is known.

use crate::options::CsvOptions;
use crate::output;
use heda::Error;
use heda::data;
use heda::model::{self, Errors, Evaluation};
use std::path::PathBuf;

/// Compare a model's predictions with the labels of a file
///
/// Prints accuracy (beside that of always naming the most frequent class), area under the ROC
/// curve, log-loss and the table of actual and predicted classes; of a model for a number the root
/// of the mean squared error, the mean absolute error and R².
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  heda evaluate --model model.json --data held-out.csv
  heda evaluate --model model.json --data held-out.csv --json")]
pub(crate) struct EvaluateArguments {
    /// The model file
    #[arg(long, value_name = "FILE")]
    model: PathBuf,
    /// Labelled rows, CSV or Parquet
    #[arg(long, value_name = "FILE")]
    data: PathBuf,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    csv: CsvOptions,
}

pub(crate) fn run(arguments: &EvaluateArguments) -> Result<(), Error> {
    let model = model::read(&arguments.model)?;
    let format = arguments.csv.format();
    let (data, report) = data::read(&arguments.data, model.schema(), format)?;
    output::warn(report.warnings());
    if model.is_numeric() {
        let errors = model.errors(&data);
        let errors = errors.ok_or_else(|| Error::input("the file has no rows"))?;
        return match arguments.json {
            true => output::print_json(&errors),
            false => output::print_text(&error_text(&errors)),
        };
    }
    let evaluation = model.evaluate(&data);
    match arguments.json {
        true => output::print_json(&evaluation),
        false => output::print_text(&text(&evaluation)),
    }
}

/// Errors of a model for a number, a line each.
fn error_text(errors: &Errors) -> String {
    let r2 = errors.r2.map_or("-".to_owned(), |r2| format!("{r2:.4}"));
    format!(
        "rows  {}\nRMSE  {:.6}\nMAE   {:.6}\nR2    {r2}",
        errors.rows, errors.rmse, errors.mae
    )
}

/// The numbers, a line each, and the table of classes.
pub(crate) fn text(evaluation: &Evaluation) -> String {
    let mut lines = vec![format!("rows      {}", evaluation.rows)];
    let percent = |v: Option<f64>| v.map_or("-".into(), |v| format!("{:.2} %", 100.0 * v));
    lines.push(format!(
        "accuracy  {} (most frequent class {})",
        percent(evaluation.accuracy),
        percent(evaluation.majority_accuracy)
    ));
    if let Some(auc) = evaluation.auc {
        lines.push(format!("AUC       {auc:.4}"));
    }
    if let Some(loss) = evaluation.log_loss {
        lines.push(format!("log-loss  {loss:.4}"));
    }
    lines.push(String::new());
    lines.extend(confusion_table(evaluation));
    lines.join("\n")
}

fn confusion_table(evaluation: &Evaluation) -> Vec<String> {
    let classes = &evaluation.classes;
    let title = "actual \\ predicted";
    let first = classes.iter().map(|c| c.chars().count()).max().unwrap_or(0);
    let first = first.max(title.chars().count());
    let width = |c: &String| c.chars().count().max(7);
    let cells = |name: &str, values: Vec<String>| {
        let values = classes
            .iter()
            .zip(values)
            .map(|(c, v)| format!("  {v:>0$}", width(c)));
        format!("{name:<first$}{}", values.collect::<String>())
    };
    let mut lines = vec![cells(title, classes.clone())];
    for (actual, name) in classes.iter().enumerate() {
        let count = |predicted| evaluation.confusion.count(actual, predicted).to_string();
        lines.push(cells(name, (0..classes.len()).map(count).collect()));
    }
    lines
}
