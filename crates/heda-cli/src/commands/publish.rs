//! `heda publish`: columns under differential privacy, and what they give away and buy.

use crate::output;
use clap::Args;
use heda::Error;
use heda::data::CsvFormat;
use heda::files::write_whole;
use heda::publishing::{PublishRequest, PublishedColumns, preview, publish};
use heda::{Dataset, Epsilon, Schema, data, schema};
use std::path::PathBuf;

/// Publish columns under differential privacy, or show what that would give away and buy
///
/// Every value gets its own exact noise, scaled by the public bounds of the schema. The epsilons of
/// the columns add up to the one given. A preview writes nothing and compares training with the
/// noisy columns to training without them.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  heda publish --data rows.csv --schema rows.toml --features age,sex --epsilon 1 --preview
  heda publish --data rows.csv --schema rows.toml --features age,sex --epsilon 1 --out noisy.csv")]
pub(crate) struct PublishArguments {
    /// The rows, CSV or Parquet
    #[arg(long, value_name = "FILE")]
    data: PathBuf,
    /// What their columns mean, with public bounds and levels
    #[arg(long, value_name = "FILE")]
    schema: PathBuf,
    /// The columns to publish, separated by commas
    #[arg(long, value_name = "COLUMNS", value_delimiter = ',', required = true)]
    features: Vec<String>,
    /// Epsilon of a row for all columns together, such as 0.5; there is no default
    #[arg(long, value_name = "EPSILON", allow_negative_numbers = true)]
    epsilon: Epsilon,
    /// How to split epsilon, a whole number a column; equally if not given
    #[arg(long, value_name = "WEIGHTS", value_delimiter = ',')]
    weights: Vec<u32>,
    /// Numbers are rounded to 2^BITS steps between their bounds
    #[arg(long, value_name = "BITS", default_value_t = 10)]
    bits: u32,
    /// Write the noisy rows to this file
    #[arg(long, value_name = "FILE", required_unless_present = "preview")]
    out: Option<PathBuf>,
    /// Publish nothing; show what would be released and what it buys
    #[arg(long, conflicts_with = "out")]
    preview: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(crate) fn run(arguments: &PublishArguments) -> Result<(), Error> {
    let (schema, data) = read(arguments)?;
    let request = PublishRequest {
        features: &arguments.features,
        epsilon: arguments.epsilon,
        weights: &arguments.weights,
        bits: arguments.bits,
    };
    let report = match &arguments.out {
        None => preview(&schema, &data, &request)?,
        Some(out) => {
            let mut published = publish(&schema, &data, &request)?;
            write_whole(out, &csv_text(&published)?)?;
            published.report.out = Some(out.clone());
            published.report
        }
    };
    match arguments.json {
        true => output::print_json(&report),
        false => output::print_text(report.in_words().trim_end()),
    }
}

fn read(arguments: &PublishArguments) -> Result<(Schema, Dataset), Error> {
    let (_, schema) = schema::read(&arguments.schema)?;
    let (data, report) = data::read(&arguments.data, &schema, CsvFormat::default())?;
    output::warn(report.warnings());
    Ok((schema, data))
}

fn csv_text(published: &PublishedColumns) -> Result<Vec<u8>, Error> {
    let bug = |e: &dyn std::fmt::Display| Error::bug(e.to_string());
    let (names, mut cells): (Vec<&str>, Vec<_>) = published.columns().unzip();
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(names).map_err(|e| bug(&e))?;
    for _ in 0..published.report.rows {
        let row = cells.iter_mut().filter_map(Iterator::next);
        writer.write_record(row).map_err(|e| bug(&e))?;
    }
    writer.into_inner().map_err(|e| bug(&e))
}
