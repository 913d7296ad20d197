//! `heda demo`: a whole training on this machine with a bundled data set.

use super::evaluate;
use crate::failure::{Failure, Kind};
use crate::output;
use heda_learn::bundled::{Bundle, Coding};
use heda_learn::data::Dataset;
use heda_learn::model::{Evaluation, FeatureUse, Model, Protection, Provenance};
use heda_learn::oracle::{Fit, TrainConfig, train_observed};
use heda_learn::split::Split;
use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;
use std::path::PathBuf;
use std::time::Instant;

/// Rows held out for the evaluation.
const HELD_OUT: f64 = 0.2;

/// Train and evaluate a classifier on a bundled data set
///
/// Four fifths of the rows train a logistic regression, the rest evaluate it. This version trains
/// IN THE CLEAR: nothing is encrypted and nothing leaves this machine. The data sets are public.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  heda demo
  heda demo --dataset adult --out adult-demo
  heda demo --dataset car --coding paper --seed 7 --json")]
pub(crate) struct Arguments {
    /// The data set: bcwd, adult, crx or car
    #[arg(long, value_name = "NAME", default_value = "bcwd")]
    dataset: Bundle,
    /// How categories become numbers: natural, or paper (integers in alphabetical order)
    #[arg(long, value_name = "CODING", default_value = "natural")]
    coding: Coding,
    /// Chooses the held-out rows; the same seed, the same result
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Write model.json into this folder
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Report {
    dataset: &'static str,
    coding: String,
    engine: &'static str,
    encrypted: bool,
    seed: u64,
    rows: usize,
    features: usize,
    iterations: u32,
    accuracy: Option<f64>,
    majority_accuracy: Option<f64>,
    seconds: Seconds,
    model_path: Option<PathBuf>,
    evaluation: Evaluation,
}

#[derive(Serialize)]
struct Seconds {
    total: f64,
    training: f64,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let start = Instant::now();
    let (data, _) = arguments
        .dataset
        .table(arguments.coding)
        .map_err(|e| Failure::new(Kind::Bug, e))?;
    let split = Split::seeded(data.rows(), HELD_OUT, arguments.seed, 0);
    let training_rows = data.select_rows(&split.train);
    let training_start = Instant::now();
    let fit = train(&training_rows)?;
    let training = training_start.elapsed().as_secs_f64();
    let model = model(arguments, &training_rows, &fit)?;
    let model_path = arguments
        .out
        .as_ref()
        .map(|folder| folder.join("model.json"));
    if let Some(path) = &model_path {
        output::write_whole(path, model.to_json().as_bytes())?;
    }
    let evaluation = model.evaluate(&data.select_rows(&split.test));
    let report = Report {
        dataset: arguments.dataset.name(),
        coding: arguments.coding.to_string(),
        engine: "clear",
        encrypted: false,
        seed: arguments.seed,
        rows: data.rows(),
        features: data.features().len(),
        iterations: fit.iterations,
        accuracy: evaluation.accuracy,
        majority_accuracy: evaluation.majority_accuracy,
        seconds: Seconds {
            total: start.elapsed().as_secs_f64(),
            training,
        },
        model_path,
        evaluation,
    };
    match arguments.json {
        true => output::print_json(&report),
        false => output::print_text(&text(&report, arguments.dataset, &model)),
    }
}

fn train(data: &Dataset) -> Result<Fit, Failure> {
    let mut config = TrainConfig::logistic(data.rows());
    config.settings.tolerance = 1e-5;
    let progress = ProgressBar::new(u64::from(config.settings.max_iterations));
    if let Ok(style) = ProgressStyle::with_template("training  {bar:30} {pos} iterations  {msg}") {
        progress.set_style(style);
    }
    let fit = train_observed(data, 1, &config, |optimiser| {
        progress.inc(1);
        if let Some(norm) = optimiser.gradient_norm() {
            progress.set_message(format!("gradient {norm:.1e}"));
        }
    });
    progress.finish_and_clear();
    fit.map_err(|e| Failure::new(Kind::Bug, e))
}

fn model(arguments: &Arguments, data: &Dataset, fit: &Fit) -> Result<Model, Failure> {
    let features = data.features().iter().map(|feature| FeatureUse {
        feature: feature.name.clone(),
        protection: Protection::Clear,
        epsilon: None,
    });
    let provenance = Provenance {
        dataset: arguments.dataset.title().to_owned(),
        engine: "clear".to_owned(),
        rows: data.rows() as u64,
        providers: 1,
        iterations: fit.iterations,
        features: features.collect(),
        versions: [("heda".to_owned(), env!("CARGO_PKG_VERSION").to_owned())].into(),
        notes: [("seed".to_owned(), arguments.seed.to_string())].into(),
    };
    let schema = arguments.dataset.schema(arguments.coding);
    let loss = heda_learn::loss::LossKind::Logistic;
    Model::new(loss, schema, std::slice::from_ref(&fit.beta), provenance)
        .map_err(|e| Failure::new(Kind::Bug, e))
}

fn text(report: &Report, dataset: Bundle, model: &Model) -> String {
    let mut lines = vec![
        "Nothing is encrypted: this version of the demo trains in the clear.".to_owned(),
        String::new(),
        format!("data set  {}, {} coding", dataset.title(), report.coding),
        format!(
            "trained   {} of {} rows, {} features, {} iterations, {:.2} s",
            report.rows - report.evaluation.rows,
            report.rows,
            report.features,
            report.iterations,
            report.seconds.training
        ),
        String::new(),
        "On the held-out rows:".to_owned(),
        evaluate::text(&report.evaluation),
        String::new(),
        "Largest coefficients (effect of going from the lower to the upper bound):".to_owned(),
    ];
    lines.extend(largest_coefficients(model));
    if let Some(path) = &report.model_path {
        lines.push(format!("\nmodel     {}", path.display()));
    }
    lines.join("\n")
}

fn largest_coefficients(model: &Model) -> Vec<String> {
    let classifier = &model.classifiers()[0];
    let columns = model.schema().encoded_columns().into_iter().map(|c| c.name);
    let mut named: Vec<(String, f64)> = columns
        .zip(classifier.scaled[1..].iter().copied())
        .collect();
    named.sort_by(|a, b| b.1.abs().total_cmp(&a.1.abs()));
    named.truncate(5);
    let width = named
        .iter()
        .map(|(n, _)| n.chars().count())
        .max()
        .unwrap_or(0);
    let line = |(name, value): (String, f64)| format!("  {name:<width$}  {value:+.3}");
    named.into_iter().map(line).collect()
}
