//! Who learns what from a job: the one source. A run says what was learned in it
//! ([`Summary::privacy`]), and the documents hold [`table`]; a test compares them with it.
//!
//! This is about engine `resident`, which is the default. What an engine gives away beyond it says
//! [`Engine::leaks`](heda_job::proposal::Engine).

use crate::summary::Summary;
use std::fmt::Write;

/// Who learns something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Who {
    /// The data user.
    DataUser,
    /// Each provider.
    Provider,
    /// All parties.
    Everyone,
}

/// Something that a party learns because the job gives it to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Disclosed {
    /// The result.
    Model,
    /// What training must know of the columns.
    Moments,
    /// What every iteration shows.
    Gradients,
    /// What the evaluation shows.
    HeldOutCounts,
    /// How much data there is.
    RowsOfEach,
    /// What providers tell of their books.
    Accounts,
    /// How much each feature is worth.
    Scores,
    /// The same, as one provider sees it.
    Order,
    /// What is not encrypted.
    PublishedColumns,
    /// That there is a job.
    Iterations,
    /// Where the columns lie, roughly.
    Windows,
    /// Which features are worth most.
    Split,
    /// How much data the others have.
    RowsOfAll,
    /// What must be agreed on.
    Terms,
}

impl Disclosed {
    /// All of them, by who learns them.
    pub const ALL: [Self; 14] = [
        Self::Model,
        Self::Moments,
        Self::Gradients,
        Self::HeldOutCounts,
        Self::RowsOfEach,
        Self::Accounts,
        Self::Scores,
        Self::Order,
        Self::PublishedColumns,
        Self::Iterations,
        Self::Windows,
        Self::Split,
        Self::RowsOfAll,
        Self::Terms,
    ];

    /// Who learns it.
    pub fn who(self) -> Who {
        match self {
            Self::Model
            | Self::Moments
            | Self::Gradients
            | Self::HeldOutCounts
            | Self::RowsOfEach
            | Self::Accounts
            | Self::Scores
            | Self::Order
            | Self::PublishedColumns => Who::DataUser,
            Self::Iterations | Self::Windows | Self::Split | Self::RowsOfAll => Who::Provider,
            Self::Terms => Who::Everyone,
        }
    }

    /// What is learned in any job.
    pub fn what(self) -> &'static str {
        match self {
            Self::Model => "the model",
            Self::Moments => {
                "mean and deviation of each encrypted number and of a numeric label, how much of each \
                 encrypted number the other columns leave unexplained, and how many rows each \
                 encrypted level has and, if classes are balanced, each class, over all providers"
            }
            Self::Gradients => "the gradient of each iteration, summed over all providers",
            Self::HeldOutCounts => {
                "how many held-out rows of each class score in which range, summed over all \
                 providers; of a numeric label the sums of squared and absolute errors, of the \
                 numbers and of their squares; the same for each penalty that is tried; no prediction"
            }
            Self::RowsOfEach => {
                "how many rows each provider has; in private jobs that protect persons also how many of \
                 them are held out, or, if none are, with noise how many persons there are"
            }
            Self::Accounts => {
                "how many entries each provider's ledger has, and their hash; in private jobs on how many \
                 others' noise it counts, what it charged and, if it tells, what further jobs may have"
            }
            Self::Scores => "the scores of the features, summed over all providers",
            Self::Order => "one provider's order of the features, without scores",
            Self::PublishedColumns => "the published columns, with noise",
            Self::Iterations => {
                "how many iterations there are, which batch and class each is about, and how many \
                 penalties are tried; of the model nothing else"
            }
            Self::Windows => {
                "which range of each encrypted number the grid covers: eight deviations on both \
                 sides of everybody's mean, rounded to a deviation or two; mean and deviation of a \
                 numeric label as roughly; how much balanced classes count, to one part in 64"
            }
            Self::Split => "which features are encrypted, published and left out",
            Self::RowsOfAll => {
                "how many rows a batch has at all providers together, to a factor of two"
            }
            Self::Terms => {
                "the schema, all terms of the job, who takes part, sizes and times of messages"
            }
        }
    }

    /// In which jobs.
    pub fn when(self) -> &'static str {
        match self {
            Self::Moments => {
                "with L-BFGS, unless the schema states means and deviations; in private jobs of what it does \
                 not state, with noise; of one provider alone if there is only one"
            }
            Self::Windows => "with L-BFGS; in private jobs that buy moments",
            Self::Gradients => {
                "always, in private jobs with noise; of one provider alone if there is only one"
            }
            Self::HeldOutCounts => {
                "if rows are held out; in private jobs with noise, and only right predictions and a table of \
                 4 counts, 8 from 1,000 held-out rows"
            }
            Self::Scores => "if all providers rank the features",
            Self::Order => "if one provider ranks them",
            Self::PublishedColumns => "if an ε is spent",
            Self::RowsOfAll => "with two providers that is the other one's",
            Self::Model
            | Self::RowsOfEach
            | Self::Accounts
            | Self::Iterations
            | Self::Split
            | Self::Terms => "always",
        }
    }

    /// What was learned in a run, if it was.
    pub(crate) fn in_run(self, run: &Summary) -> Option<String> {
        let revealed = &run.revealed;
        let (several, scored) = (run.providers > 1, run.is_scored());
        let words = match self {
            Self::Model => self.what().to_owned(),
            Self::Gradients => {
                let whose = match (revealed.summed, several) {
                    (true, _) => "summed over all providers",
                    (false, true) => "of each provider on its own",
                    (false, false) => {
                        "of the only provider, unmasked because there is nobody to add up with"
                    }
                };
                format!(
                    "{} numbers of gradients {whose}, about {} encrypted cells that it does not know",
                    revealed.gradient_numbers, revealed.unknown_cells
                )
            }
            Self::Moments => match revealed.moment_numbers {
                0 => return None,
                numbers if revealed.label_numbers > 0 => format!(
                    "{numbers} sums of encrypted columns and of labels, from which means, deviations \
                     and shares follow"
                ),
                numbers => format!(
                    "{numbers} sums of encrypted columns, from which means and deviations follow"
                ),
            },
            Self::HeldOutCounts => match run.number {
                Some(_) => format!("{} sums over held-out rows", revealed.count_numbers),
                None => format!("{} counts of held-out rows", revealed.count_numbers),
            },
            Self::RowsOfEach => "how many rows each provider has".to_owned(),
            Self::Scores => scored.then(|| self.what().to_owned())?,
            Self::PublishedColumns => run.epsilon_total.map(|_| "the published columns".into())?,
            Self::Iterations => "how many iterations there were".into(),
            Self::Windows => {
                let told = several && revealed.moment_numbers > 0;
                told.then(|| "where each encrypted number lies, roughly and over all".into())?
            }
            Self::Split => {
                (several && scored).then(|| "which features scored best in sum".into())?
            }
            Self::RowsOfAll => several.then(|| "their number to a factor of two".into())?,
            // The order is printed above the features; books are not rows; the terms were there before the run.
            Self::Accounts | Self::Order | Self::Terms => return None,
        };
        Some(words)
    }
}

impl Disclosed {
    /// The same in a few words, for a terminal: everything that is a sum counts as one thing.
    fn briefly(self, run: &Summary) -> Option<String> {
        // What was not learned is not said either.
        self.in_run(run)?;
        let words = match self {
            Self::Gradients => sums_in_brief(run),
            // They are among the sums.
            Self::Moments | Self::HeldOutCounts => return None,
            Self::RowsOfEach => "numbers of rows".to_owned(),
            Self::Scores => "feature scores".to_owned(),
            Self::Windows => "roughly where columns lie".to_owned(),
            Self::Split => "best features".to_owned(),
            Self::RowsOfAll => "rows to a factor of 2".to_owned(),
            Self::Model
            | Self::Accounts
            | Self::Order
            | Self::PublishedColumns
            | Self::Iterations
            | Self::Terms => return self.in_run(run),
        };
        Some(words)
    }
}

/// How many sums the data user saw, whose, and whether they carry noise.
fn sums_in_brief(run: &Summary) -> String {
    let revealed = &run.revealed;
    let count = revealed.gradient_numbers + revealed.moment_numbers + revealed.count_numbers;
    let whose = match (revealed.summed, run.providers > 1) {
        (true, _) => "",
        (false, true) => " of each provider alone",
        (false, false) => " of the only provider",
    };
    match run.privacy {
        Some(_) => format!("{count} sums with noise{whose}"),
        None => format!("{count} exact sums{whose}"),
    }
}

/// What a party learned in a run in a few words, one thing after the other.
pub(crate) fn in_brief(who: Who, run: &Summary) -> Vec<String> {
    let lessons = Disclosed::ALL
        .into_iter()
        .filter(|lesson| lesson.who() == who);
    lessons.filter_map(|lesson| lesson.briefly(run)).collect()
}

/// What a party learned in a run, one thing after the other.
pub(crate) fn learned(who: Who, run: &Summary) -> Vec<String> {
    let lessons = Disclosed::ALL
        .into_iter()
        .filter(|lesson| lesson.who() == who);
    lessons.filter_map(|lesson| lesson.in_run(run)).collect()
}

/// Who learns what, as a table of Markdown.
pub fn table() -> String {
    let mut text = String::from("| who | learns | when |\n| --- | --- | --- |\n");
    for lesson in Disclosed::ALL {
        let who = match lesson.who() {
            Who::DataUser => "data user",
            Who::Provider => "provider",
            Who::Everyone => "everyone",
        };
        // Writing to a string cannot fail.
        let _ = writeln!(text, "| {who} | {} | {} |", lesson.what(), lesson.when());
    }
    text
}
