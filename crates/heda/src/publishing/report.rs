//! What a release gives away and buys, for the one who holds the rows.

use super::PublishRequest;
use super::grids::Publication;
use super::worth::Worth;
use crate::error::Error;
use heda_dp::account::{Charge, Mechanism};
use heda_dp::auto::automatic_epsilon;
use heda_dp::column::ColumnSpec;
use heda_dp::epsilon::Epsilon;
use heda_dp::measure;
use heda_dp::points::Points;
use heda_dp::sample::{DiscreteLaplace, RandomisedResponse};
use serde::Serialize;
use std::fmt::Write;
use std::num::NonZeroU32;
use std::path::PathBuf;

/// What is told. Everything but ε and the domains is computed from private rows and is
/// meant for the one who holds them.
#[derive(Debug, Serialize)]
pub struct PublishReport {
    /// How.
    pub mechanism: Mechanism,
    /// What that guarantees, in words.
    pub guarantee: &'static str,
    /// Whether there is a proof of it.
    pub proven: bool,
    /// How many rows.
    pub rows: usize,
    /// What a row pays for all columns.
    pub epsilon_total: Epsilon,
    /// Column by column.
    pub columns: Vec<ColumnReport>,
    /// Sum of squared errors, on ranges of length one.
    pub sse: f64,
    /// Share of the rows that are found again by the nearest original.
    pub record_linkage: f64,
    /// Rows a cluster, for the paper's mechanism.
    pub cluster_size: Option<usize>,
    /// What the paper's rule would choose.
    pub automatic: Option<AutomaticEpsilon>,
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
    /// Sum of squared errors, on ranges of length one.
    pub sse: f64,
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

/// What Algorithm 1 of the paper would choose: advice, read from the data.
#[derive(Debug, Serialize)]
pub struct AutomaticEpsilon {
    /// What it would claim.
    pub claimed: Epsilon,
    /// What it comes to.
    pub sum: Epsilon,
}

pub(super) fn report(
    request: &PublishRequest<'_>,
    publication: &Publication,
    points: &Points,
    released: &[Vec<u32>],
    charge: &Charge,
) -> Result<PublishReport, Error> {
    let noisy = publication.to_points(released).map_err(Error::bug)?;
    let errors = measure::squared_errors_by_column(points, &noisy).map_err(Error::bug)?;
    let linkage = measure::record_linkage(points, &noisy).map_err(Error::bug)?;
    let mechanism = charge.mechanism();
    let clusters = (mechanism == Mechanism::Ima).then(|| request.cluster_size_for(points));
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
    Ok(PublishReport {
        mechanism,
        guarantee: mechanism.guarantee(),
        proven: mechanism.is_proven(),
        rows: points.rows(),
        epsilon_total: charge.total(),
        columns: columns.collect(),
        sse: errors.iter().sum(),
        record_linkage: linkage,
        cluster_size: clusters,
        automatic: automatic.map(|a| AutomaticEpsilon {
            claimed: a.claimed(),
            sum: a.composed(),
        }),
        accuracy: None,
        out: None,
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

impl PublishReport {
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
