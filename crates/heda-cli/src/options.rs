//! Options that several commands share: how a table is written, and how a model is trained.

use heda::{ClassWeight, JobBuilder, LossKind, PenaltyPath};
use heda_learn::table::{CsvFormat, Encoding, Mark};

/// How a CSV file is written; found from its first lines where not given.
#[derive(Debug, Clone, Copy, clap::Args)]
#[command(next_help_heading = "How the table is written")]
pub(crate) struct CsvOptions {
    /// What stands between cells: `,`, `;`, `tab`, `|`, …; found from the header if not given
    #[arg(long, value_name = "CHARACTER")]
    separator: Option<Mark>,
    /// What stands around cells that hold a separator; found from the first lines if not given
    #[arg(long, value_name = "CHARACTER")]
    quote: Option<Mark>,
    /// utf-8 or latin-1
    #[arg(long, value_name = "NAME", default_value = "utf-8")]
    encoding: Encoding,
}

impl CsvOptions {
    pub(crate) fn format(&self) -> CsvFormat {
        CsvFormat {
            separator: self.separator,
            quote: self.quote,
            encoding: self.encoding,
        }
    }
}

/// How a model is trained, as in a job file.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Training, as in a job file")]
pub(crate) struct TrainingOptions {
    /// What is minimised: logistic, squared-hinge or ridge; ridge on a numeric label
    #[arg(long, value_name = "LOSS", value_parser = loss)]
    loss: Option<LossKind>,
    /// The penalty as scikit-learn's C, on standardised features; of a numeric label 1/alpha of its Ridge.
    /// Or auto: several are tried, and one half of the held-out rows chooses
    #[arg(long, value_name = "C", value_parser = penalty)]
    penalty: Option<Penalty>,
    /// Let every class count as much as the others together
    #[arg(long)]
    balanced: bool,
    /// Iterations at most, of each model
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    iterations: Option<u32>,
    /// Share of the rows that is kept for evaluation, at least 0 and below 1
    #[arg(long, value_name = "SHARE", value_parser = share)]
    held_out: Option<f64>,
}

impl TrainingOptions {
    /// Whether every class is to count as much as the others together.
    pub(crate) fn is_balanced(&self) -> bool {
        self.balanced
    }

    /// Puts what was given into a job.
    pub(crate) fn put_into(&self, mut job: JobBuilder) -> JobBuilder {
        if let Some(loss) = self.loss {
            job = job.loss(loss);
        }
        job = match self.penalty {
            Some(Penalty::Given(c)) => job.penalty(c),
            Some(Penalty::Auto) => job.choose_penalty(PenaltyPath::usual()),
            None => job,
        };
        if self.balanced {
            job = job.class_weight(ClassWeight::Balanced);
        }
        if let Some(iterations) = self.iterations {
            job = job.iterations(iterations);
        }
        if let Some(share) = self.held_out {
            job = job.hold_out((1000.0 * share).round() as u32);
        }
        job
    }
}

/// A penalty, or the wish to have one chosen.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Penalty {
    Given(f64),
    Auto,
}

/// A text that is no penalty.
#[derive(Debug, thiserror::Error)]
#[error("choose a number above 0, such as 1, or auto")]
struct NotAPenalty;

fn penalty(text: &str) -> Result<Penalty, NotAPenalty> {
    match text {
        "auto" => Ok(Penalty::Auto),
        number => number.parse().map(Penalty::Given).map_err(|_| NotAPenalty),
    }
}

/// A loss by the name that job files use.
fn loss(name: &str) -> Result<LossKind, serde_json::Error> {
    serde_json::from_value(name.into())
}

/// A text that is no share of the rows.
#[derive(Debug, thiserror::Error)]
#[error("choose a share of at least 0 and below 1, such as 0.2")]
struct NotAShare;

fn share(text: &str) -> Result<f64, NotAShare> {
    let share = text.parse::<f64>().map_err(|_| NotAShare)?;
    let fits = (0.0..0.9995).contains(&share);
    fits.then_some(share).ok_or(NotAShare)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_have_the_names_of_the_job_file() {
        for kind in [LossKind::Logistic, LossKind::SquaredHinge, LossKind::Ridge] {
            let name = serde_json::to_value(kind).unwrap();
            assert_eq!(loss(name.as_str().unwrap()).unwrap(), kind);
        }
        assert!(loss("hinge").unwrap_err().to_string().contains("logistic"));
        assert!(share("1").is_err() && matches!(share("0.2"), Ok(0.2)));
        assert!(matches!(penalty("auto"), Ok(Penalty::Auto)));
        assert!(matches!(penalty("0.5"), Ok(Penalty::Given(0.5))));
        assert!(penalty("best").is_err());
    }
}
