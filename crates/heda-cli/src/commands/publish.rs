//! `heda publish`: columns under differential privacy, and what they give away and buy.

mod publication;
mod worth;

use crate::output;
use clap::{Args, ValueEnum};
use heda::failure::{Failure, Kind};
use heda::files::write_whole;
use heda_crypto::random::Randomness;
use heda_dp::account::{Accountant, Charge, ColumnCharge, Mechanism, Spend};
use heda_dp::auto::automatic_epsilon;
use heda_dp::budget::{split_by_weights, split_equally};
use heda_dp::centroid::Reference;
use heda_dp::cluster::default_size;
use heda_dp::column::{Bounds, ColumnSpec};
use heda_dp::epsilon::Epsilon;
use heda_dp::points::Points;
use heda_dp::sample::{DiscreteLaplace, RandomisedResponse};
use heda_dp::{ima, laplace, measure};
use heda_learn::data::Dataset;
use heda_learn::schema::Schema;
use heda_learn::table::TableReader;
use publication::Publication;
use serde::Serialize;
use std::fmt::Write;
use std::num::NonZeroU32;
use std::path::PathBuf;
use worth::Worth;

/// Publish columns under differential privacy, or show what that would give away and buy
///
/// Every value gets its own exact noise, scaled by the public bounds of the schema. The epsilons of
/// the columns add up to the one given. A preview writes nothing and compares training with the
/// noisy columns to training without them.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  heda publish --data rows.csv --schema rows.toml --features age,sex --epsilon 1 --preview
  heda publish --data rows.csv --schema rows.toml --features age,sex --epsilon 1 --out noisy.csv")]
pub(crate) struct Arguments {
    /// The rows, CSV or Parquet
    #[arg(long, value_name = "FILE")]
    data: PathBuf,
    /// What their columns mean, with public bounds and levels
    #[arg(long, value_name = "FILE")]
    schema: PathBuf,
    /// The columns to publish, separated by commas
    #[arg(long, value_delimiter = ',', required = true)]
    features: Vec<String>,
    /// How: `laplace` protects every row; `ima` is the paper's, and does not
    #[arg(long, value_enum, default_value_t = Choice::Laplace)]
    mechanism: Choice,
    /// What one row pays for all columns together, like 0.5. There is no default
    #[arg(long, allow_negative_numbers = true)]
    epsilon: Epsilon,
    /// How to split epsilon, a whole number a column; equally if not given
    #[arg(long, value_delimiter = ',')]
    weights: Vec<u32>,
    /// Rows a cluster (`ima` only); the square root of half the rows if not given
    #[arg(long)]
    cluster_size: Option<usize>,
    /// Numbers are rounded to 2^BITS steps between their bounds
    #[arg(long, default_value_t = 10)]
    bits: u32,
    /// Where the noisy rows go
    #[arg(long, value_name = "FILE", required_unless_present = "preview")]
    out: Option<PathBuf>,
    /// Publish nothing; show what would be released and what it buys
    #[arg(long, conflicts_with = "out")]
    preview: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Mechanisms that can be asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Choice {
    Laplace,
    Ima,
}

impl From<Choice> for Mechanism {
    fn from(choice: Choice) -> Self {
        match choice {
            Choice::Laplace => Self::Laplace,
            Choice::Ima => Self::Ima,
        }
    }
}

/// What the command prints. Everything but ε and the domains is computed from private rows and is
/// meant for the one who holds them.
#[derive(Debug, Serialize)]
struct Report {
    mechanism: Mechanism,
    guarantee: &'static str,
    proven: bool,
    rows: usize,
    epsilon_total: Epsilon,
    columns: Vec<ColumnReport>,
    sse: f64,
    record_linkage: f64,
    cluster_size: Option<usize>,
    automatic: Option<Automatic>,
    accuracy: Option<Worth>,
    out: Option<PathBuf>,
}

#[derive(Debug, Serialize)]
struct ColumnReport {
    name: String,
    epsilon: Epsilon,
    domain: ColumnSpec,
    sse: f64,
    noise: Noise,
}

/// What happens to a value, in the units of its domain.
#[derive(Debug, Serialize)]
#[serde(rename_all = "snake_case")]
enum Noise {
    /// Discrete Laplace of this scale, as a share of the whole range.
    Scale(f64),
    /// Randomised response that is true this often.
    Truth(f64),
}

/// What Algorithm 1 of the paper would choose: advice, read from the data.
#[derive(Debug, Serialize)]
struct Automatic {
    claimed: Epsilon,
    sum: Epsilon,
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let (schema, data) = read(arguments)?;
    let publication = Publication::new(&schema, &arguments.features, arguments.bits);
    let publication = publication.map_err(Failure::input)?;
    let grid = publication.to_grid(&data);
    let points = publication
        .to_points(&grid)
        .map_err(|e| Failure::new(Kind::Bug, e))?;
    let charge = charge(arguments)?;
    let os = Randomness::from_os();
    let release = |randomness: &Randomness, draw| {
        let charge = charge.clone();
        release(
            arguments,
            &publication,
            &grid,
            &points,
            charge,
            (randomness, draw),
        )
    };
    let released = release(&os, 0)?;
    let mut report = report(arguments, &publication, &points, &released, &charge)?;
    if arguments.preview {
        // Nothing of this leaves: with a seed the same question has the same answer.
        let seeded = Randomness::seeded(0);
        let noisy = |draw| {
            let released = release(&seeded, draw)?;
            let noisy = publication.replace(&data, &released);
            noisy.map_err(|e| Failure::new(Kind::Bug, e))
        };
        report.accuracy = Some(estimate(&publication, &schema, &data, noisy)?);
    }
    if let Some(out) = &arguments.out {
        write_whole(out, &csv_text(&publication, &released)?)?;
    }
    match arguments.json {
        true => output::print_json(&report),
        false => output::print_text(report.in_words().trim_end()),
    }
}

fn read(arguments: &Arguments) -> Result<(Schema, Dataset), Failure> {
    let schema = Schema::read(&arguments.schema).map_err(Failure::input)?;
    let read = TableReader::new(&schema).read_file(&arguments.data);
    let (data, report) = read.map_err(Failure::input)?;
    output::warn(report.warnings());
    Ok((schema, data))
}

fn charge(arguments: &Arguments) -> Result<Charge, Failure> {
    let names = &arguments.features;
    let parts = match arguments.weights.len() {
        0 => split_equally(arguments.epsilon, names.len()),
        given if given == names.len() => split_by_weights(arguments.epsilon, &arguments.weights),
        given => {
            let message = format!("{given} weights for {} columns; give one each", names.len());
            return Err(Failure::input(message));
        }
    };
    let parts = parts.map_err(Failure::input)?;
    let column = |(name, epsilon): (&String, Epsilon)| ColumnCharge {
        name: name.clone(),
        epsilon,
    };
    let columns = names.iter().zip(parts).map(column).collect();
    Charge::new(arguments.mechanism.into(), columns).map_err(Failure::input)
}

/// Noisy grid values. The budget here is what the user typed: this command keeps no ledger.
fn release(
    arguments: &Arguments,
    publication: &Publication,
    grid: &[Vec<u32>],
    points: &Points,
    charge: Charge,
    (randomness, draw): (&Randomness, u64),
) -> Result<Vec<Vec<u32>>, Failure> {
    let rng = randomness.fork("publish", draw);
    let mut rng = rng.map_err(|e| Failure::new(Kind::Bug, e))?;
    let refused = |e| Failure::new(Kind::Refused, e);
    let mut accountant = Accountant::new(arguments.epsilon);
    match arguments.mechanism {
        Choice::Laplace => {
            if arguments.cluster_size.is_some() {
                return Err(Failure::input("--cluster-size is for --mechanism ima only"));
            }
            let prepared = laplace::prepare(&publication.specs(), grid).map_err(Failure::input)?;
            let receipt = accountant.spend(charge).map_err(refused)?;
            let released = prepared.release(receipt, &mut rng);
            Ok(released
                .map_err(|e| Failure::new(Kind::Bug, e))?
                .into_columns())
        }
        Choice::Ima => {
            let bounds = vec![Some(Bounds::UNIT); points.width()];
            let size = cluster_size(arguments, points);
            let prepared = ima::prepare(points, size, Reference::Public(&bounds));
            let prepared = prepared.map_err(Failure::input)?;
            let receipt = accountant.spend(charge).map_err(refused)?;
            let released = prepared
                .release(receipt, &mut rng)
                .map_err(Failure::input)?;
            Ok(publication.nearest(released.points()))
        }
    }
}

fn cluster_size(arguments: &Arguments, points: &Points) -> usize {
    arguments
        .cluster_size
        .unwrap_or_else(|| default_size(points.rows()))
}

fn report(
    arguments: &Arguments,
    publication: &Publication,
    points: &Points,
    released: &[Vec<u32>],
    charge: &Charge,
) -> Result<Report, Failure> {
    let bug = |e: &dyn std::fmt::Display| Failure::new(Kind::Bug, e);
    let noisy = publication.to_points(released).map_err(|e| bug(&e))?;
    let errors = measure::squared_errors_by_column(points, &noisy).map_err(|e| bug(&e))?;
    let linkage = measure::record_linkage(points, &noisy).map_err(|e| bug(&e))?;
    let mechanism = charge.mechanism();
    let clusters = (mechanism == Mechanism::Ima).then(|| cluster_size(arguments, points));
    let specs = publication.specs();
    let columns = charge.columns().iter().zip(specs).zip(&errors);
    let columns = columns.map(|((paid, domain), &sse)| ColumnReport {
        name: paid.name.clone(),
        epsilon: paid.epsilon,
        domain,
        sse,
        noise: noise(domain, paid.epsilon, clusters, points.rows()),
    });
    let automatic = automatic_epsilon(points).ok();
    Ok(Report {
        mechanism,
        guarantee: mechanism.guarantee(),
        proven: mechanism.is_proven(),
        rows: points.rows(),
        epsilon_total: charge.total(),
        columns: columns.collect(),
        sse: errors.iter().sum(),
        record_linkage: linkage,
        cluster_size: clusters,
        automatic: automatic.map(|a| Automatic {
            claimed: a.claimed(),
            sum: a.composed(),
        }),
        accuracy: None,
        out: arguments.out.clone(),
    })
}

fn noise(domain: ColumnSpec, epsilon: Epsilon, clusters: Option<usize>, rows: usize) -> Noise {
    let one = NonZeroU32::MIN;
    match (clusters, domain) {
        (Some(k), _) => {
            let sensitivity = rows as f64 / (2.0 * (k * k) as f64);
            Noise::Scale(sensitivity / epsilon.to_f64())
        }
        (None, ColumnSpec::Grid { .. }) => {
            Noise::Scale(DiscreteLaplace::for_sensitivity(one, epsilon).scale())
        }
        (None, ColumnSpec::Levels { count }) => {
            let count = NonZeroU32::new(count).unwrap_or(one);
            Noise::Truth(RandomisedResponse::new(count, epsilon).probability_of_truth())
        }
    }
}

fn estimate(
    publication: &Publication,
    schema: &Schema,
    data: &Dataset,
    noisy: impl FnMut(u64) -> Result<Dataset, Failure>,
) -> Result<Worth, Failure> {
    let published: Vec<&str> = publication.names().collect();
    let columns = schema.columns().iter().enumerate();
    let kept: Vec<usize> = columns
        .filter(|(_, column)| !published.contains(&column.name()))
        .map(|(index, _)| index)
        .collect();
    Worth::estimate(data, noisy, &kept)
}

fn csv_text(publication: &Publication, released: &[Vec<u32>]) -> Result<Vec<u8>, Failure> {
    let bug = |e: &dyn std::fmt::Display| Failure::new(Kind::Bug, e);
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer
        .write_record(publication.names())
        .map_err(|e| bug(&e))?;
    for row in 0..released.first().map_or(0, Vec::len) {
        let cells = released
            .iter()
            .enumerate()
            .map(|(j, column)| publication.cell(j, column[row]));
        writer.write_record(cells).map_err(|e| bug(&e))?;
    }
    writer.into_inner().map_err(|e| bug(&e))
}

impl Report {
    fn in_words(&self) -> String {
        let mut text = String::new();
        let verb = if self.out.is_some() {
            "Published"
        } else {
            "Would publish"
        };
        let (rows, mechanism) = (self.rows, self.mechanism);
        let _ = writeln!(
            text,
            "{verb} {rows} rows of {} columns by {mechanism}.",
            self.columns.len()
        );
        let _ = writeln!(text, "Guarantee: {}.\n", self.guarantee);
        let _ = writeln!(
            text,
            "{:<24} {:>12}  {:<34} {:>10}",
            "column", "epsilon", "noise", "SSE"
        );
        for column in &self.columns {
            let noise = column.noise.in_words();
            let (name, epsilon) = (&column.name, column.epsilon.to_string());
            let _ = writeln!(
                text,
                "{name:<24} {epsilon:>12}  {noise:<34} {:>10.2}",
                column.sse
            );
        }
        let _ = writeln!(
            text,
            "{:<24} {:>12}  {:<34} {:>10.2}",
            "in sum",
            self.epsilon_total.to_string(),
            "",
            self.sse
        );
        let percent = 100.0 * self.record_linkage;
        let _ = writeln!(
            text,
            "\nRecord linkage: {percent:.2} % of the rows are found again by the nearest original."
        );
        if let Some(automatic) = &self.automatic {
            let _ = writeln!(
                text,
                "The paper's rule would choose epsilons of {} in sum (it would claim {}).",
                automatic.sum, automatic.claimed
            );
        }
        if let Some(worth) = &self.accuracy {
            let share = |x: f64| format!("{:.1} %", 100.0 * x);
            let _ = writeln!(
                text,
                "Accuracy in the clear: all features {}, published with noise {}, left out {}, majority {}.",
                share(worth.all),
                share(worth.published),
                share(worth.dropped),
                share(worth.majority)
            );
            let _ = writeln!(text, "Advice: {}.", worth.advice());
        }
        match &self.out {
            Some(out) => {
                let _ = writeln!(
                    text,
                    "Written to {}. This command keeps no ledger: add {} to what this data set has released before.",
                    out.display(),
                    self.epsilon_total
                );
            }
            None => text.push_str(
                "Nothing was published. These figures are computed from the rows: keep them.\n",
            ),
        }
        text
    }
}

impl Noise {
    fn in_words(&self) -> String {
        match self {
            Self::Scale(scale) => format!("Laplace, {:.1} % of the range", 100.0 * scale),
            Self::Truth(truth) => format!("random answer, {:.1} % true", 100.0 * truth),
        }
    }
}
