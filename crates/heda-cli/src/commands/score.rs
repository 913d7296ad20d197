//! `heda score`: which features are worth encrypting, and what that would cost.

use crate::options::CsvOptions;
use crate::output::{note, print_json, print_text};
use clap::Args;
use heda::Error;
use heda::forecast::ScoreReport;
use heda::{Bundle, Coding, Dataset, ReadReport, Score, data, schema};
use std::fmt::Write;
use std::path::PathBuf;

/// Score the features of a table: which are worth encrypting, and what that would cost
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  heda score --dataset adult
  heda score --data patients.csv --schema patients.toml --method mrmr --json
  heda score --data patients.csv --infer-schema --label outcome")]
pub(crate) struct ScoreArguments {
    /// The table, CSV or Parquet
    #[arg(long, value_name = "FILE", conflicts_with = "dataset")]
    data: Option<PathBuf>,
    /// The schema of the table
    #[arg(long, value_name = "FILE", requires = "data")]
    schema: Option<PathBuf>,
    /// A bundled data set instead: bcwd, adult, crx or car
    #[arg(long, value_name = "NAME", required_unless_present = "data")]
    dataset: Option<Bundle>,
    /// Coding of a bundled data set: natural, or paper (categories as alphabetical numbers)
    #[arg(
        long,
        value_name = "CODING",
        default_value = "natural",
        conflicts_with = "data"
    )]
    coding: Coding,
    /// How features are ranked: kw, chi2, pearson, spearman, forest or mrmr
    #[arg(long, value_name = "METHOD", default_value = "kw")]
    method: Score,
    /// Seed of the random forest
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    seed: u64,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    /// Propose a schema for the table instead of scoring it
    #[arg(long, requires = "data", conflicts_with_all = ["schema", "json"])]
    infer_schema: bool,
    /// The label column of the proposed schema, if it is not the last one
    #[arg(long, value_name = "COLUMN", requires = "infer_schema")]
    label: Option<String>,
    #[command(flatten)]
    csv: CsvOptions,
}

const BAR: usize = 24;

pub(crate) fn run(arguments: &ScoreArguments) -> Result<(), Error> {
    if let (true, Some(path)) = (arguments.infer_schema, &arguments.data) {
        let format = arguments.csv.format();
        let proposal = schema::propose(path, arguments.label.as_deref(), format)?;
        return print_text(proposal.text.trim_end());
    }
    let (name, data, report) = read(arguments)?;
    for warning in report.warnings() {
        note!("heda: {warning}");
    }
    let result = ScoreReport::new(name, &data, arguments.method, arguments.seed)?;
    match arguments.json {
        true => print_json(&result),
        false => print_text(&text(&result, arguments.method)),
    }
}

fn read(arguments: &ScoreArguments) -> Result<(String, Dataset, ReadReport), Error> {
    if let Some(bundle) = arguments.dataset {
        let (data, report) = bundle.table(arguments.coding).map_err(Error::input)?;
        return Ok((bundle.name().into(), data, report));
    }
    let (Some(path), Some(schema)) = (&arguments.data, &arguments.schema) else {
        let remedy = "a table needs --schema; --infer-schema proposes one";
        return Err(Error::input(remedy));
    };
    let (_, schema) = schema::read(schema)?;
    let (data, report) = data::read(path, &schema, arguments.csv.format())?;
    Ok((schema.name().into(), data, report))
}

fn text(report: &ScoreReport, method: Score) -> String {
    let longest = report.features.iter().map(|f| f.name.chars().count()).max();
    let width = longest.unwrap_or(0).max("feature".len());
    let best = report.features.first().map_or(0.0, |f| f.score);
    let mut text = format!(
        "{}: {} rows, {} features, scored by {}\n\n {:>3}  {:<width$} {:>12}  {:<BAR$} {:>7}  {:>9}\n",
        report.dataset,
        report.rows,
        report.features.len(),
        method.title(),
        "ι",
        "feature",
        "score",
        "",
        "columns",
        "gradient",
    );
    for (feature, prefix) in report.features.iter().zip(&report.prefixes) {
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            " {:>3}  {:<width$} {:>12}  {:<BAR$} {:>7}  {:>9}",
            prefix.iota,
            feature.name,
            number(feature.score),
            bar(feature.score, best),
            prefix.columns,
            bytes(prefix.gradient_bytes),
        );
    }
    text.push_str(
        "\nThe last two columns are for the first ι features together: encoded columns, and what one\n\
         gradient over these rows sends.",
    );
    text
}

/// A bar in eighths of a character.
fn bar(value: f64, best: f64) -> String {
    if best <= 0.0 {
        return String::new();
    }
    let eighths = (value / best * (8 * BAR) as f64).round() as usize;
    let rest = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"][eighths % 8];
    "█".repeat(eighths / 8) + rest
}

fn number(value: f64) -> String {
    match value {
        v if v >= 1000.0 => format!("{v:.1}"),
        v if v >= 1.0 => format!("{v:.3}"),
        v => format!("{v:.5}"),
    }
}

fn bytes(value: usize) -> String {
    match value as f64 {
        v if v < 1e6 => format!("{:.0} kB", v / 1e3),
        v if v < 1e9 => format!("{:.1} MB", v / 1e6),
        v => format!("{:.2} GB", v / 1e9),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_as_long_as_their_share() {
        assert_eq!(bar(5.0, 5.0).chars().count(), BAR);
        assert_eq!(bar(2.5, 5.0), "█".repeat(BAR / 2));
        assert_eq!(bar(0.0, 5.0), "");
        assert_eq!(bar(0.0, 0.0), "");
    }

    #[test]
    fn numbers_fit_their_column() {
        assert_eq!(number(32561.25), "32561.2");
        assert_eq!(number(0.5), "0.50000");
        assert_eq!(bytes(169_000), "169 kB");
        assert_eq!(bytes(2_500_000_000), "2.50 GB");
    }
}
