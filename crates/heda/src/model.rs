//! What a model does: predictions, evaluation in clear, export to other programs.

pub use heda_learn::model::{Errors, Evaluation, Model, Prediction, Predictions};

use crate::data::{CsvFormat, ReadReport, TableReader};
use crate::error::Error;
use heda_learn::onnx;
use std::path::Path;

/// Reads a model file.
///
/// # Errors
/// If it is no model file.
pub fn read(path: &Path) -> Result<Model, Error> {
    Model::read(path).map_err(Error::input)
}

/// The model as an ONNX file.
pub fn to_onnx(model: &Model) -> Vec<u8> {
    onnx::export(model)
}

/// Predicts every row of a file, which the model's schema reads. `id` names the column whose values go
/// along.
///
/// # Errors
/// If the file does not fit the model.
pub fn predict_file(
    model: &Model,
    path: &Path,
    format: CsvFormat,
    id: Option<&str>,
) -> Result<(Predictions, ReadReport), Error> {
    let reader = TableReader::new(model.schema()).with_format(format);
    let (rows, report) = reader.read_rows_file(path, id).map_err(Error::input)?;
    Ok((model.predict_rows(&rows), report))
}

/// Predictions as CSV, a line for each row. `id` is the title of the rows' names.
///
/// # Errors
/// If the file cannot be put together, which is a defect.
pub fn to_csv(
    model: &Model,
    predictions: &Predictions,
    id: Option<&str>,
) -> Result<Vec<u8>, Error> {
    let csv = model.predictions_csv(predictions, id);
    csv.map_err(Error::bug)
}
