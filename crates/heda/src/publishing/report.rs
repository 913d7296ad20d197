//! What a release gives away and buys, for the one who holds the rows.

use super::grids::Publication;
use super::worth::Worth;
use heda_dp::account::{Charge, Mechanism};
use heda_dp::column::ColumnSpec;
use heda_dp::epsilon::Epsilon;
use heda_dp::sample::{DiscreteLaplace, RandomisedResponse};
use serde::Serialize;
use std::fmt::Write;
use std::num::NonZeroU32;
use std::path::PathBuf;

/// What is told. What publishing buys is computed from private rows and is meant for the one who
/// holds them.
#[derive(Debug, Serialize)]
pub struct PublishReport {
    /// How.
    pub mechanism: Mechanism,
    /// What that guarantees, in words.
    pub guarantee: &'static str,
    /// How many rows.
    pub rows: usize,
    /// What a row pays for all columns.
    pub epsilon_total: Epsilon,
    /// Column by column.
    pub columns: Vec<ColumnReport>,
    /// What publishing buys, in a preview.
    pub accuracy: Option<Worth>,
    /// Where it was written.
    pub out: Option<PathBuf>,
}

/// One column.
#[derive(Debug, Serialize)]
pub struct ColumnReport {
    /// Its name.
    pub name: String,
    /// What a row pays for it.
    pub epsilon: Epsilon,
    /// What its values may be.
    pub domain: ColumnSpec,
    /// What happens to a value.
    pub noise: Noise,
}

/// What happens to a value, in the units of its domain.
#[derive(Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Noise {
    /// Discrete Laplace of this scale, as a share of the whole range.
    Scale(f64),
    /// Randomised response that is true this often.
    Truth(f64),
}

impl ColumnReport {
    fn new(name: &str, domain: ColumnSpec, epsilon: Epsilon) -> Self {
        let one = NonZeroU32::MIN;
        let noise = match domain {
            ColumnSpec::Grid { .. } => {
                Noise::Scale(DiscreteLaplace::for_sensitivity(one, epsilon).scale())
            }
            ColumnSpec::Levels { count } => {
                let count = NonZeroU32::new(count).unwrap_or(one);
                Noise::Truth(RandomisedResponse::new(count, epsilon).probability_of_truth())
            }
        };
        let name = name.to_owned();
        Self {
            name,
            epsilon,
            domain,
            noise,
        }
    }
}

impl PublishReport {
    pub(super) fn new(rows: usize, publication: &Publication, charge: &Charge) -> Self {
        let paid = charge.columns().iter().zip(publication.specs());
        let columns =
            paid.map(|(paid, domain)| ColumnReport::new(&paid.name, domain, paid.epsilon));
        Self {
            mechanism: charge.mechanism(),
            guarantee: charge.mechanism().guarantee(),
            rows,
            epsilon_total: charge.total(),
            columns: columns.collect(),
            accuracy: None,
            out: None,
        }
    }

    /// For people.
    pub fn in_words(&self) -> String {
        let mut text = String::new();
        let verb = match self.accuracy {
            None => "Published",
            Some(_) => "Would publish",
        };
        let (rows, mechanism) = (self.rows, self.mechanism);
        let _ = writeln!(
            text,
            "{verb} {rows} rows of {} columns by {mechanism}.",
            self.columns.len()
        );
        let _ = writeln!(text, "Guarantee: {}.\n", self.guarantee);
        let _ = writeln!(text, "{:<24} {:>12}  noise", "column", "epsilon");
        for column in &self.columns {
            let noise = column.noise.in_words();
            let (name, epsilon) = (&column.name, column.epsilon.to_string());
            let _ = writeln!(text, "{name:<24} {epsilon:>12}  {noise}");
        }
        let _ = writeln!(
            text,
            "{:<24} {:>12}\n",
            "in sum",
            self.epsilon_total.to_string()
        );
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
        if let Some(out) = &self.out {
            let _ = write!(text, "Written to {}. ", out.display());
        }
        let _ = match self.accuracy {
            None => writeln!(
                text,
                "No ledger is kept of this: add {} to what this data set has released before.",
                self.epsilon_total
            ),
            Some(_) => writeln!(
                text,
                "Nothing was published. These figures are computed from the rows: keep them."
            ),
        };
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
