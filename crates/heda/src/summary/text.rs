//! The summary in words: a table, and the features with their protection.

use super::{RankedFeature, Summary, came_to};
use heda_train::job::TriedPenalty;

impl Summary {
    /// The table and the paragraph.
    pub fn text(&self) -> String {
        let mut lines = Vec::new();
        if self.seeded {
            lines.push("SEEDED RUN: reproducible, and therefore without any protection.".into());
            lines.push(String::new());
        }
        let seeded = self.seeded_providers();
        if !seeded.is_empty() {
            lines.push(format!(
                "SEEDED PROVIDERS: {} ran with a seed, and their rows were not protected.",
                seeded.join(", ")
            ));
            lines.push(String::new());
        }
        lines.extend(self.table());
        lines.push(String::new());
        if let Some(matrix) = &self.matrix {
            lines.extend(matrix.lines(&self.classes));
            lines.push(String::new());
        }
        // In a private job all features are alike: the list would say nothing.
        if self.private.is_none() {
            lines.extend(self.feature_lines());
            lines.push(String::new());
        }
        lines.extend(self.stopped.iter().cloned());
        lines.extend(
            self.warnings
                .iter()
                .map(|words| format!("Careful: {words}")),
        );
        lines.push(String::new());
        lines.push(self.privacy());
        for (what, path) in [("model", &self.model_path), ("report", &self.report_path)] {
            if let Some(path) = path {
                lines.push(format!("\n{what:<10}{}", path.display()));
            }
        }
        lines.join("\n")
    }

    fn table(&self) -> Vec<String> {
        let percent = |share: Option<f64>| {
            share.map_or("-".to_owned(), |share| format!("{:.2} %", 100.0 * share))
        };
        let mut lines = vec![
            format!(
                "{:<36}{} rows of {} providers, {} held out",
                self.dataset, self.rows, self.providers, self.held_out
            ),
            format!(
                "{:<36}{} of {} features encrypted, {} iterations, engine {}",
                "trained on", self.iota, self.features, self.iterations, self.engine
            ),
            format!("{:<36}{}", "penalty", self.penalty),
        ];
        lines.extend(self.penalty_lines());
        lines.push(String::new());
        if let Some(promise) = &self.private {
            lines.push(format!(
                "{:<36}epsilon {}, delta {:e}, for every row and all that was revealed",
                "guaranteed", promise.epsilon, promise.delta
            ));
            if promise.accuracy_in_clear.is_some() {
                let share = percent(promise.accuracy_in_clear);
                lines.push(format!(
                    "{:<36}{share:>9}, counted in clear on the same rows",
                    "accuracy of the private model"
                ));
            }
        }
        if let Some(number) = &self.number {
            lines.extend(number.lines(self.iota < self.features));
            lines.extend(self.cost_lines());
            return lines;
        }
        let heading = "accuracy on held-out rows";
        let noisy = self.private.as_ref().and_then(|p| p.counts_deviation);
        match self.by_class.is_empty() {
            // Nothing was held out.
            true if self.private.is_some() && noisy.is_none() => {}
            true => {
                let noise = noisy.map_or("", |_| ", noise of the counts included");
                let sure = self.accuracy_interval.map_or(String::new(), |[low, high]| {
                    let (low, high) = (100.0 * low, 100.0 * high);
                    format!(" (95 %: {low:.1} to {high:.1} %{noise})")
                });
                lines.push(format!("{heading:<36}{:>9}{sure}", percent(self.accuracy)));
            }
            false => lines.push(heading.to_owned()),
        }
        for result in &self.by_class {
            let name = format!("  {} against the rest", result.class);
            let (share, most) = (percent(result.accuracy), percent(result.majority_accuracy));
            lines.push(format!(
                "{name:<36}{share:>9}, the more frequent side {most}"
            ));
        }
        if let Some(matrix) = &self.matrix {
            let sure = matrix.interval.map_or(String::new(), |[low, high]| {
                format!(" (95 %: {:.1} to {:.1} %)", 100.0 * low, 100.0 * high)
            });
            let share = percent(Some(matrix.accuracy));
            let name = "  highest score, counted in clear";
            lines.push(format!("{name:<36}{share:>9}{sure}"));
        }
        let mut control = |name: &str, share: Option<f64>| {
            if share.is_some() {
                lines.push(format!("{:<36}{:>9}", name, percent(share)));
            }
        };
        control("  in clear, all features", self.plain_accuracy);
        if self.iota < self.features {
            control("  in clear, published ones dropped", self.dropped_accuracy);
        }
        control("  most frequent class", self.majority_accuracy);
        if let Some([low, high]) = self.auc {
            lines.push(format!(
                "{:<36}{low:>9.4} to {high:.4}",
                "area under the curve"
            ));
        }
        lines.extend(self.cost_lines());
        lines
    }

    /// What each penalty came to, if one was chosen.
    fn penalty_lines(&self) -> Vec<String> {
        let Some(choice) = &self.chosen_penalty else {
            return Vec::new();
        };
        let line = |(step, tried): (usize, &TriedPenalty)| {
            let name = format!("  C = {}", tried.c);
            let chosen = match step == choice.chosen {
                true => "  chosen",
                false => "",
            };
            format!("{name:<36}{:>9}{chosen}", came_to(tried))
        };
        choice.tried.iter().enumerate().map(line).collect()
    }

    fn cost_lines(&self) -> [String; 3] {
        let seconds = &self.seconds;
        [
            String::new(),
            format!(
                "{:<36}{:.2} s: setup {:.2}, training {:.2}, evaluation {:.2}",
                "time", seconds.total, seconds.setup, seconds.training, seconds.evaluation
            ),
            format!(
                "{:<36}{:.1} µs a row and iteration; {:.1} MB to providers, {:.1} MB back",
                "speed and traffic",
                self.us_per_row_iteration,
                self.bytes.user_to_provider as f64 / 1e6,
                self.bytes.provider_to_user as f64 / 1e6
            ),
        ]
    }

    fn feature_lines(&self) -> Vec<String> {
        let width = self
            .features_by_rank
            .iter()
            .map(|f| f.name.chars().count())
            .max()
            .unwrap_or(0);
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
        let reason = self
            .split_reason
            .iter()
            .map(|reason| format!("  ({reason})"));
        std::iter::once(heading)
            .chain(reason)
            .chain(self.features_by_rank.iter().map(line))
            .collect()
    }
}
