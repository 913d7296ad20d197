//! Options that several commands share: how a table is written, and how a model is trained.

use heda::data::{CsvFormat, SeparatorMark, TextEncoding};
use heda::report;
use heda::{ClassWeight, Delta, Epsilon, Iterations, JobBuilder, LossKind, PenaltyPath, Share};

/// How a CSV file is written; found from its first lines where not given.
#[derive(Debug, Clone, Copy, clap::Args)]
#[command(next_help_heading = "How the table is written")]
pub(crate) struct CsvOptions {
    /// Field separator: `,`, `;`, `tab`, `|`, …; found from the header if not given
    #[arg(long, value_name = "CHARACTER")]
    separator: Option<SeparatorMark>,
    /// Quote character around fields; found from the first lines if not given
    #[arg(long, value_name = "CHARACTER")]
    quote: Option<SeparatorMark>,
    /// Text encoding: utf-8 or latin-1
    #[arg(long, value_name = "ENCODING", default_value = "utf-8")]
    encoding: TextEncoding,
}

impl CsvOptions {
    /// What was given, as it is written on a command line.
    pub(crate) fn line(&self) -> String {
        let mark = |name: &str, mark: Option<SeparatorMark>| {
            mark.map(|mark| format!(" --{name} {}", report::quoted(&mark.to_string())))
        };
        let separator = mark("separator", self.separator);
        let quote = mark("quote", self.quote);
        let latin = matches!(self.encoding, TextEncoding::Latin1);
        let encoding = latin.then(|| " --encoding latin-1".to_owned());
        [separator, quote, encoding].into_iter().flatten().collect()
    }

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
    penalty: Option<PenaltyOption>,
    /// Weight classes equally
    #[arg(long)]
    balanced: bool,
    /// Iterations at most, of each model
    #[arg(long, value_name = "N")]
    iterations: Option<Iterations>,
    /// Share of the rows that is held out for evaluation, 0 to 0.9
    #[arg(long, value_name = "SHARE", default_value_t = Share::USUAL)]
    held_out: Share,
}

impl TrainingOptions {
    /// What was given, as it is written on a command line.
    pub(crate) fn line(&self) -> String {
        let loss = self.loss.map(|loss| format!(" --loss {loss}"));
        let penalty = self.penalty.map(|penalty| match penalty {
            PenaltyOption::Given(c) => format!(" --penalty {c}"),
            PenaltyOption::Auto => " --penalty auto".to_owned(),
        });
        let balanced = self.balanced.then(|| " --balanced".to_owned());
        let iterations = self
            .iterations
            .map(|n| format!(" --iterations {}", u32::from(n)));
        let held_out = Some(self.held_out).filter(|share| *share != Share::USUAL);
        let held_out = held_out.map(|share| format!(" --held-out {share}"));
        let given = [loss, penalty, balanced, iterations, held_out];
        given.into_iter().flatten().collect()
    }

    /// Share of the rows that is held out for evaluation.
    pub(crate) fn held_out(&self) -> Share {
        self.held_out
    }

    /// Puts what was given into a job.
    pub(crate) fn put_into(&self, mut job: JobBuilder) -> JobBuilder {
        if let Some(loss) = self.loss {
            job = job.loss(loss);
        }
        job = match self.penalty {
            Some(PenaltyOption::Given(c)) => job.penalty(c),
            Some(PenaltyOption::Auto) => job.choose_penalty(PenaltyPath::usual()),
            None => job,
        };
        if self.balanced {
            job = job.class_weight(ClassWeight::Balanced);
        }
        if let Some(iterations) = self.iterations {
            job = job.iterations(iterations.into());
        }
        job.hold_out(self.held_out.get())
    }
}

/// A private job: what it promises decides how it is trained.
#[derive(Debug, Clone, Copy, clap::Args)]
#[command(next_help_heading = "Private jobs")]
pub(crate) struct PrivateOptions {
    /// Make everything that the job reveals differentially private, with this epsilon
    #[arg(
        long,
        value_name = "EPSILON",
        conflicts_with_all = ["loss", "penalty", "balanced", "iterations"]
    )]
    private: Option<Epsilon>,
    /// Delta of a private job; by the number of rows if not given
    #[arg(long, value_name = "DELTA", requires = "private")]
    delta: Option<Delta>,
}

impl PrivateOptions {
    /// What was given, as it is written on a command line, for so many training rows.
    pub(crate) fn line(&self, training_rows: u64) -> String {
        let Some(epsilon) = self.private else {
            return String::new();
        };
        let delta = self.delta.map(|delta| format!(" --delta {delta}"));
        let delta = delta.unwrap_or_default();
        format!(" --private {epsilon}{delta} --rows {training_rows}")
    }

    /// Epsilon and delta, if the job is to be private.
    pub(crate) fn promise(&self) -> Option<(Epsilon, Option<Delta>)> {
        self.private.map(|epsilon| (epsilon, self.delta))
    }
}

/// A penalty, or the wish to have one chosen.
#[derive(Debug, Clone, Copy, PartialEq)]
enum PenaltyOption {
    Given(f64),
    Auto,
}

/// A text that is no penalty.
#[derive(Debug, thiserror::Error)]
#[error("choose a number above 0, such as 1, or auto")]
struct NotAPenalty;

fn penalty(text: &str) -> Result<PenaltyOption, NotAPenalty> {
    match text {
        "auto" => Ok(PenaltyOption::Auto),
        number => number
            .parse()
            .map(PenaltyOption::Given)
            .map_err(|_| NotAPenalty),
    }
}

/// A loss by the name that job files use.
fn loss(name: &str) -> Result<LossKind, serde_json::Error> {
    serde_json::from_value(name.into())
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
        assert!(matches!(penalty("auto"), Ok(PenaltyOption::Auto)));
        assert!(matches!(penalty("0.5"), Ok(PenaltyOption::Given(0.5))));
        assert!(penalty("best").is_err());
    }
}
