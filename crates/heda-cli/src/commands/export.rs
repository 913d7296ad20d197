//! `heda export`: a model for other programs.

use crate::output;
use heda::Error;
use heda::files::write_whole;
use heda::model;
use serde::Serialize;
use std::path::PathBuf;

/// Write a model as an ONNX file for other programs
///
/// The input `rows` is a float tensor of one row a line, with the columns that the file's
/// metadata lists, in original units: numbers as they are, an ordinal level by its position in the
/// schema from 0, a one-hot level as 0 or 1. Outputs are `scores`, `probabilities` (logistic
/// regression only) and `class`, an index into the metadata's `classes`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  heda export --onnx --model model.json --out model.onnx")]
pub(crate) struct ExportArguments {
    /// Write ONNX (the only format so far)
    #[arg(long, required = true)]
    onnx: bool,
    /// The model file
    #[arg(long, value_name = "FILE")]
    model: PathBuf,
    /// Where to write
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct ExportReport<'a> {
    format: &'static str,
    path: &'a PathBuf,
    bytes: usize,
    columns: Vec<String>,
    classes: Vec<String>,
}

pub(crate) fn run(arguments: &ExportArguments) -> Result<(), Error> {
    let model = model::read(&arguments.model)?;
    let content = model::to_onnx(&model);
    write_whole(&arguments.out, &content)?;
    let columns = model.schema().encoded_columns().into_iter().map(|c| c.name);
    let report = ExportReport {
        format: "onnx",
        path: &arguments.out,
        bytes: content.len(),
        columns: columns.collect(),
        classes: model.classes(),
    };
    match arguments.json {
        true => output::print_json(&report),
        false => output::print_text(&format!(
            "{} ({} bytes): {} input columns, {}",
            arguments.out.display(),
            report.bytes,
            report.columns.len(),
            match model.is_numeric() {
                true => format!("a number: {}", model.schema().label().column()),
                false => format!("classes {}", report.classes.join(", ")),
            }
        )),
    }
}
