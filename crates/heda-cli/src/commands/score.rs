//! `heda score`: which features are worth encrypting, and what that would cost.

use crate::output::{print_json, print_text};
use clap::Args;
use heda::failure::{Failure, Kind};
use heda_crypto::lattice::{EncryptedMatrix, SecretKey};
use heda_crypto::random::Randomness;
use heda_learn::bundled::{Bundle, Coding};
use heda_learn::data::Dataset;
use heda_learn::partition::{CostModel, prefix_columns};
use heda_learn::schema::Schema;
use heda_learn::score::{Method, Scores};
use heda_learn::table::{ReadReport, TableReader};
use serde::Serialize;
use std::fmt::Write;
use std::path::PathBuf;
use std::time::Instant;

/// Score the features of a table: which are worth encrypting, and what that would cost.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The table, CSV or Parquet.
    #[arg(long, value_name = "FILE", conflicts_with = "dataset")]
    data: Option<PathBuf>,
    /// The schema of the table.
    #[arg(long, value_name = "FILE", requires = "data")]
    schema: Option<PathBuf>,
    /// A bundled data set instead: bcwd, adult, crx or car.
    #[arg(long, value_name = "NAME", required_unless_present = "data")]
    dataset: Option<Bundle>,
    /// Coding of a bundled data set: natural, or paper (categories as alphabetical numbers).
    #[arg(long, default_value = "natural", conflicts_with = "data")]
    coding: Coding,
    /// kw, chi2, pearson, spearman, forest or mrmr.
    #[arg(long, default_value = "kw")]
    method: Method,
    /// Fixes the random forest.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
    /// Propose a schema for the table instead of scoring it.
    #[arg(long, requires = "data", conflicts_with_all = ["schema", "json"])]
    infer_schema: bool,
    /// The label column of the proposed schema, if it is not the last one.
    #[arg(long, value_name = "COLUMN", requires = "infer_schema")]
    label: Option<String>,
}

/// Rows and columns that are encrypted to measure the cost; more are extrapolated.
const MEASURED_ROWS: usize = 1 << 15;
const MEASURED_COLUMNS: usize = 16;
const BAR: usize = 24;

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    if let (true, Some(path)) = (arguments.infer_schema, &arguments.data) {
        let text = heda_learn::infer::propose(path, arguments.label.as_deref());
        return print_text(text.map_err(Failure::input)?.trim_end());
    }
    let (name, data, report) = read(arguments)?;
    for warning in report.warnings() {
        eprintln!("heda: {warning}");
    }
    let scores =
        Scores::compute(&data, arguments.method, arguments.seed).map_err(Failure::input)?;
    let result = ScoreReport::new(name, &data, &scores, arguments.seed)?;
    match arguments.json {
        true => print_json(&result),
        false => print_text(&result.text(arguments.method)),
    }
}

fn read(arguments: &Arguments) -> Result<(String, Dataset, ReadReport), Failure> {
    if let Some(bundle) = arguments.dataset {
        let (data, report) = bundle.table(arguments.coding).map_err(Failure::input)?;
        return Ok((bundle.name().into(), data, report));
    }
    let (Some(data), Some(schema)) = (&arguments.data, &arguments.schema) else {
        let remedy = "a table needs --schema; --infer-schema proposes one";
        return Err(Failure::input(remedy));
    };
    let schema = Schema::read(schema).map_err(Failure::input)?;
    let table = TableReader::new(&schema).read_file(data);
    let (data, report) = table.map_err(Failure::input)?;
    Ok((schema.name().into(), data, report))
}

/// The object of `--json`.
#[derive(Debug, Serialize)]
struct ScoreReport {
    dataset: String,
    rows: usize,
    method: Method,
    seed: u64,
    /// Best first.
    features: Vec<FeatureLine>,
    /// What it costs to encrypt the first 1, 2, … features.
    prefixes: Vec<PrefixLine>,
    encryption: CostModel,
}

#[derive(Debug, Serialize)]
struct FeatureLine {
    name: String,
    score: f64,
    share: f64,
    columns: usize,
}

#[derive(Debug, Serialize)]
struct PrefixLine {
    iota: usize,
    columns: usize,
    encrypt_seconds: f64,
    ciphertext_bytes: usize,
}

impl ScoreReport {
    fn new(dataset: String, data: &Dataset, scores: &Scores, seed: u64) -> Result<Self, Failure> {
        let ranking = scores.ranking();
        let total: f64 = scores.values().iter().sum();
        let line = |&feature: &usize| FeatureLine {
            name: data.features()[feature].name.clone(),
            score: scores.values()[feature],
            share: if total > 0.0 {
                scores.values()[feature] / total
            } else {
                0.0
            },
            columns: data.features()[feature].columns.len(),
        };
        let encryption = measure_encryption(data.rows(), data.width())?;
        let prefix = |(iota, columns): (usize, usize)| {
            Ok(PrefixLine {
                iota,
                columns,
                encrypt_seconds: encryption.seconds(columns),
                ciphertext_bytes: EncryptedMatrix::byte_length(data.rows(), columns)
                    .map_err(Failure::input)?,
            })
        };
        Ok(Self {
            dataset,
            rows: data.rows(),
            method: scores.method(),
            seed,
            features: ranking.order().iter().map(line).collect(),
            prefixes: prefix_columns(&ranking, data.features())
                .enumerate()
                .skip(1)
                .map(prefix)
                .collect::<Result<_, Failure>>()?,
            encryption,
        })
    }

    fn text(&self, method: Method) -> String {
        let longest = self.features.iter().map(|f| f.name.chars().count()).max();
        let width = longest.unwrap_or(0).max("feature".len());
        let best = self.features.first().map_or(0.0, |f| f.score);
        let mut text = format!(
            "{}: {} rows, {} features, scored by {}\n\n {:>3}  {:<width$} {:>12}  {:<BAR$} {:>7}  {:>9}  {:>9}\n",
            self.dataset,
            self.rows,
            self.features.len(),
            method.title(),
            "ι",
            "feature",
            "score",
            "",
            "columns",
            "encrypt",
            "send",
        );
        for (feature, prefix) in self.features.iter().zip(&self.prefixes) {
            // Writing to a string cannot fail.
            let _ = writeln!(
                text,
                " {:>3}  {:<width$} {:>12}  {:<BAR$} {:>7}  {:>9}  {:>9}",
                prefix.iota,
                feature.name,
                number(feature.score),
                bar(feature.score, best),
                prefix.columns,
                seconds(prefix.encrypt_seconds),
                bytes(prefix.ciphertext_bytes),
            );
        }
        text.push_str(
            "\nThe last three columns are for the first ι features together: encoded columns, time to\n\
             encrypt them once on this machine (measured), and size of the encrypted rows.",
        );
        text
    }
}

/// Encrypts a few columns of as many rows and fits a line.
fn measure_encryption(rows: usize, width: usize) -> Result<CostModel, Failure> {
    let fail = |e: heda_crypto::lattice::LatticeError| Failure::new(Kind::Bug, e);
    let mut rng = Randomness::from_os()
        .fork("score: measure", 0)
        .map_err(|e| Failure::new(Kind::Bug, e))?;
    let key = SecretKey::generate(&mut rng).map_err(fail)?;
    let measured_rows = rows.min(MEASURED_ROWS);
    let most = width.clamp(2, MEASURED_COLUMNS);
    let mut times = Vec::new();
    // The first run warms up and is not counted.
    for (run, columns) in [1, 1, most, 1, most].into_iter().enumerate() {
        let values = vec![1; measured_rows * columns];
        let start = Instant::now();
        key.encrypt_matrix(&values, measured_rows, columns, &mut rng)
            .map_err(fail)?;
        if run > 0 {
            times.push((columns, start.elapsed().as_secs_f64()));
        }
    }
    let line = CostModel::fit(&times).map_err(|e| Failure::new(Kind::Bug, e))?;
    let scale = rows as f64 / measured_rows.max(1) as f64;
    Ok(CostModel {
        per_column_seconds: line.per_column_seconds * scale,
        fixed_seconds: line.fixed_seconds,
    })
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

fn seconds(value: f64) -> String {
    match value {
        v if v < 1.0 => format!("{:.0} ms", 1000.0 * v),
        v if v < 120.0 => format!("{v:.1} s"),
        v => format!("{:.1} min", v / 60.0),
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
        assert_eq!(seconds(0.0042), "4 ms");
        assert_eq!(seconds(600.0), "10.0 min");
        assert_eq!(bytes(169_000), "169 kB");
        assert_eq!(bytes(2_500_000_000), "2.50 GB");
    }
}
