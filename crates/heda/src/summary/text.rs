//! The summary in words, for a terminal: what came out, what it cost, and who learned what.

use super::{Promise, RankedFeature, Summary, came_to};
use crate::knowledge::{Who, in_brief};
use crate::layout::{bullet, row, wrapped};
use heda_job::job::TriedPenalty;
use heda_job::proposal::Engine;

/// What every line says that stands for an accuracy which only the owner of all rows can count.
const NOBODY: &str = "nobody in a real job would see it";

/// An interval in brackets, if there is one.
fn sure(interval: Option<[f64; 2]>) -> String {
    interval.map_or(String::new(), |bounds| {
        let [low, high] = bounds.map(|share| 100.0 * share);
        format!(" (95 %: {low:.1} to {high:.1} %)")
    })
}

impl Summary {
    /// The whole text. No line is longer than 80 columns, unless a name is.
    pub fn text(&self) -> String {
        let mut lines = self.seed_lines();
        lines.extend(wrapped(&self.heading(), ""));
        lines.push(String::new());
        lines.extend(self.result_lines());
        lines.extend(row("Guarantee", &self.guarantee()));
        let charged = self.privacy.as_ref().and_then(|promise| promise.charged);
        if let Some(charged) = charged {
            lines.extend(row("", &format!("charged: epsilon {charged:.4}")));
        }
        lines.extend(self.cost_lines());
        lines.push(String::new());
        if let Some(matrix) = &self.matrix {
            lines.extend(matrix.lines(&self.classes));
            lines.push(String::new());
        }
        // Where all features are encrypted the list belongs in the report.
        if self.iota < self.features {
            lines.extend(self.feature_lines());
            lines.push(String::new());
        }
        lines.push("Who learned what".to_owned());
        lines.extend(self.learned_lines());
        lines.extend(self.note_lines());
        lines.join("\n")
    }

    fn seed_lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        if self.seeded {
            lines.push("SEEDED RUN: reproducible, and therefore without any protection.".into());
            lines.push(String::new());
        }
        let seeded = self.seeded_providers();
        if !seeded.is_empty() {
            let words = format!(
                "SEEDED PROVIDERS: {} ran with a seed, and their rows were not protected.",
                seeded.join(", ")
            );
            lines.extend(wrapped(&words, ""));
            lines.push(String::new());
        }
        lines
    }

    fn heading(&self) -> String {
        let providers = match self.providers {
            1 => "1 provider".to_owned(),
            many => format!("{many} providers"),
        };
        format!(
            "{}: {} training rows of {providers}, {} held out",
            self.dataset, self.rows, self.held_out
        )
    }

    /// How good the model is, beside what it compares with.
    fn result_lines(&self) -> Vec<String> {
        if let Some(number) = &self.number {
            let mut lines = number.lines(self.iota < self.features);
            lines.push(String::new());
            return lines;
        }
        let mut lines = self.accuracy_lines();
        for result in &self.by_class {
            let (share, most) = (percent(result.accuracy), percent(result.majority_accuracy));
            let words = format!(
                "{share}{} {} against the rest; the more frequent side {most}",
                match self.privacy {
                    Some(_) => sure(result.accuracy_interval),
                    None => String::new(),
                },
                result.class
            );
            lines.extend(row("  one-vs-rest", &words));
        }
        if let Some(overall) = &self.overall {
            let (share, confident) = (percent(Some(overall.at_least)), 100.0 * overall.confident);
            let words =
                format!("{share} or more by the highest score (95 %: {confident:.1} % or more)");
            lines.extend(row("  overall", &words));
        }
        if self.majority_accuracy.is_some() {
            let share = percent(self.majority_accuracy);
            let words = match self.privacy.is_some() && self.majority_in_clear {
                true => format!("{share}, counted in clear: {NOBODY}"),
                false => share,
            };
            lines.extend(row("Majority class", &words));
        }
        // With noise in the counts its bounds are no bounds: the report says what they are.
        if let (Some([low, high]), None) = (self.auc, &self.privacy) {
            lines.extend(row("AUC", &format!("{low:.4} to {high:.4}")));
        }
        lines
    }

    /// One accuracy with its interval, and the one in clear beside it.
    fn accuracy_lines(&self) -> Vec<String> {
        let aside = self.privacy.as_ref().and_then(|p| p.accuracy_in_clear);
        let own = match (self.accuracy, &self.matrix, aside) {
            (Some(share), ..) => {
                format!("{}{}", percent(Some(share)), sure(self.accuracy_interval))
            }
            (None, Some(matrix), _) => format!(
                "{}{}, counted in clear: {NOBODY}",
                percent(Some(matrix.accuracy)),
                sure(matrix.interval)
            ),
            (None, None, Some(share)) => {
                format!("{}, counted in clear: {NOBODY}", percent(Some(share)))
            }
            (None, None, None) => return Vec::new(),
        };
        let mut lines = row("Accuracy", &(own + &self.beside()));
        if self.privacy.is_some() && self.plain_accuracy.is_some() {
            lines.extend(row("", &format!("(in clear: {NOBODY})")));
        }
        if self.iota < self.features && self.dropped_accuracy.is_some() {
            let share = percent(self.dropped_accuracy);
            lines.extend(row(
                "",
                &format!("{share} in clear, published ones dropped"),
            ));
        }
        lines
    }

    /// The accuracy of training in clear, where that is known.
    fn beside(&self) -> String {
        match self.plain_accuracy {
            Some(share) => format!(", in clear {}", percent(Some(share))),
            None => String::new(),
        }
    }

    /// What is promised, in one line.
    fn guarantee(&self) -> String {
        match (&self.privacy, self.epsilon_total) {
            (Some(promise), _) if promise.bounds_from_rows => format!(
                "none: bounds were read from the rows. A schema with public ones makes it epsilon {}",
                promise.epsilon
            ),
            (Some(promise), _) => promise.in_brief(),
            (None, Some(epsilon)) => {
                format!("epsilon {epsilon:.3} for published columns, none for exact sums")
            }
            (None, None) => "none: sums are exact; a private job has an epsilon".to_owned(),
        }
    }

    fn cost_lines(&self) -> Vec<String> {
        let seconds = &self.seconds;
        let megabytes = |bytes: u64| bytes as f64 / 1e6;
        let time = format!(
            "{:.2} s: setup {:.2}, training {:.2}, evaluation {:.2}",
            seconds.total, seconds.setup, seconds.training, seconds.evaluation
        );
        let traffic = format!(
            "{:.1} MB to providers, {:.1} MB back",
            megabytes(self.bytes.user_to_provider),
            megabytes(self.bytes.provider_to_user)
        );
        let engine = match self.engine == Engine::RESIDENT {
            true => String::new(),
            false => format!(", engine {}", self.engine),
        };
        let training = format!(
            "{} iterations, {} of {} features encrypted{engine}",
            self.iterations, self.iota, self.features
        );
        let mut lines = row("Time", &time);
        lines.extend(row("Traffic", &traffic));
        lines.extend(row("Training", &training));
        // The plan of a private job bounds its coefficients: there is nothing to choose.
        if self.privacy.is_none() {
            lines.extend(row("Penalty", &self.penalty));
        }
        lines.extend(self.penalty_lines());
        lines
    }

    /// What each penalty came to, if one was chosen.
    fn penalty_lines(&self) -> Vec<String> {
        let Some(choice) = &self.chosen_penalty else {
            return Vec::new();
        };
        let line = |(step, tried): (usize, &TriedPenalty)| {
            let chosen = match step == choice.chosen {
                true => "  chosen",
                false => "",
            };
            let name = format!("  C = {}", tried.c);
            row(&name, &format!("{:>9}{chosen}", came_to(tried)))
        };
        choice.tried.iter().enumerate().flat_map(line).collect()
    }

    /// One line a party, and one for what nobody learned.
    fn learned_lines(&self) -> Vec<String> {
        let leaks = self.engine.leaks();
        if !leaks.is_empty() {
            return leaks.iter().flat_map(|leak| bullet("Leak", leak)).collect();
        }
        let of = |who| in_brief(who, self);
        let mut lines = bullet("Data user", &of(Who::DataUser).join(", "));
        let providers = of(Who::Provider);
        let (model, rows) = match providers.split_first() {
            Some((model, rows)) => (model.as_str(), rows),
            None => ("nothing", &[][..]),
        };
        let words = format!("{model}; nothing else about the model");
        lines.extend(bullet("Providers", &words));
        if !rows.is_empty() {
            lines.extend(bullet("Of each other", &rows.join(", ")));
        }
        lines.extend(bullet(
            "Nobody",
            "saw a row or a prediction of somebody else's rows",
        ));
        lines
    }

    /// Why training ended, what to be careful about, and where everything is.
    fn note_lines(&self) -> Vec<String> {
        let mut lines = vec![String::new()];
        let stopped = self.stopped.iter();
        lines.extend(stopped.flat_map(|words| wrapped(words, "")));
        let warnings = self.warnings.iter();
        lines.extend(warnings.flat_map(|words| wrapped(&format!("Warning: {words}"), "")));
        let paths = [("Model", &self.model_path), ("Report", &self.report_path)];
        if self.model_path.is_some() || self.report_path.is_some() {
            lines.push(String::new());
        }
        for (what, path) in paths {
            // A path is never broken.
            lines.extend(
                path.iter()
                    .map(|path| format!("{what:<16}{}", path.display())),
            );
        }
        lines
    }

    fn feature_lines(&self) -> Vec<String> {
        let names = self.features_by_rank.iter();
        let width = names.map(|f| f.name.chars().count()).max().unwrap_or(0);
        let line = |feature: &RankedFeature| {
            let score = feature
                .score
                .map_or("-".into(), |s| format!("{:.1} %", 100.0 * s));
            let epsilon = feature
                .epsilon
                .map_or(String::new(), |e| format!(", epsilon {e:.3}"));
            format!(
                "  {:<width$}  {score:>7}  {}{epsilon}",
                feature.name, feature.protection
            )
        };
        let heading = format!(
            "Features, best first, ranked by {}: share of the scores, protection",
            self.ranked_by
        );
        let mut lines = wrapped(&heading, "");
        if let Some(reason) = &self.split_reason {
            lines.extend(wrapped(&format!("({reason})"), "  "));
        }
        lines.extend(self.features_by_rank.iter().map(line));
        lines
    }
}

/// A share in per cent, or a dash.
fn percent(share: Option<f64>) -> String {
    share.map_or("-".to_owned(), |share| format!("{:.2} %", 100.0 * share))
}

impl Promise {
    /// ε, δ, and for what, in one line.
    fn in_brief(&self) -> String {
        format!(
            "epsilon {}, delta {:e} for a {}, in all that the job reveals",
            self.epsilon, self.delta, self.unit
        )
    }
}
