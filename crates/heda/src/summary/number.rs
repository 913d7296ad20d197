//! A model for a number in words: errors on held-out rows, and what they compare with.

use heda_learn::model::Errors;
use serde::Serialize;

/// A model for a number on held-out rows, in the number's own units.
#[derive(Debug, Clone, Serialize)]
pub struct NumberResult {
    /// The column that is predicted.
    pub label: String,
    /// Errors of the model, if rows were held out.
    pub errors: Option<Errors>,
    /// What it compares with, where the data are at hand.
    pub controls: Option<NumberControls>,
}

/// What predictions of a number are compared with.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct NumberControls {
    /// Training in clear with all features.
    pub plain: Option<Errors>,
    /// Training in clear with the encrypted features only.
    pub dropped: Option<Errors>,
    /// Always the mean of the training rows.
    pub mean: Option<Errors>,
}

impl NumberResult {
    /// A name and errors for each thing that is compared, the model first.
    pub(crate) fn compared(&self, some_left_out: bool) -> Vec<(&'static str, Errors)> {
        let controls = self.controls;
        let dropped = controls.and_then(|c| c.dropped);
        let rows = [
            ("this model", self.errors),
            ("in clear, all features", controls.and_then(|c| c.plain)),
            (
                "in clear, encrypted ones alone",
                dropped.filter(|_| some_left_out),
            ),
            ("mean of the training rows", controls.and_then(|c| c.mean)),
        ];
        let known = rows.into_iter();
        known
            .filter_map(|(name, errors)| Some((name, errors?)))
            .collect()
    }

    /// Lines of the summary's table.
    pub(super) fn lines(&self, some_left_out: bool) -> Vec<String> {
        let mut lines = vec![format!(
            "{:<36}{:>12}{:>14}{:>10}",
            format!("error of {} on held-out rows", self.label),
            "root of mean",
            "mean absolute",
            "R²"
        )];
        for (name, errors) in self.compared(some_left_out) {
            lines.push(format!(
                "{:<36}{:>12}{:>14}{:>10}",
                format!("  {name}"),
                significant(errors.rmse),
                significant(errors.mae),
                r_squared(&errors)
            ));
        }
        lines
    }
}

/// R² in words.
pub(crate) fn r_squared(errors: &Errors) -> String {
    errors.r2.map_or("-".to_owned(), |r2| format!("{r2:.3}"))
}

/// A number with four digits.
pub(crate) fn significant(value: f64) -> String {
    let digits = match value.abs() {
        size if size > 0.0 && size.is_finite() => 3 - size.log10().floor() as i32,
        _ => 3,
    };
    format!("{value:.*}", digits.clamp(0, 12) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_four_digits() {
        let shown = [54.123, 0.001_234_5, 123_456.7, 0.0, 7.0].map(significant);
        assert_eq!(shown, ["54.12", "0.001234", "123457", "0.000", "7.000"]);
    }
}
