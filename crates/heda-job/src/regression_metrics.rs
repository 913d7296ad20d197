//! Errors of predictions on held-out rows with a numeric label: what the evaluation yields, and what
//! follows from it.

use heda_learn::model::Errors;
use heda_learn::target::REACH;
use serde::{Deserialize, Serialize};

/// Numbers that the evaluation of a number yields: squared errors, absolute errors, and of the
/// labels their sum and the sum of their squares.
pub const NUMBERS: usize = 4;
/// Those that come with the squared errors.
pub const WITH_SQUARES: usize = 3;

/// Further out no label is: see [`heda_learn::target`].
const FARTHEST: f64 = 64.0;

/// One sum over all held-out rows of all providers, in deviations of the label.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ErrorSum {
    /// Of squared or absolute errors.
    pub errors: f64,
    /// Of the labels and of their squares, with the squared errors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub labels: Option<[f64; 2]>,
}

impl ErrorSum {
    /// Whether so many rows can have such sums: masks that did not cancel leave others.
    pub(crate) fn is_possible(&self, rows: u64) -> bool {
        let rows = rows as f64;
        let noise = 1.0 + rows.sqrt();
        let of_errors = -noise <= self.errors && self.errors <= rows * REACH * REACH + noise;
        let of_labels = self.labels.is_none_or(|[sum, squares]| {
            sum.abs() <= FARTHEST * rows
                && squares <= FARTHEST * FARTHEST * rows
                && squares * rows + noise >= sum * sum * (1.0 - 1e-3)
        });
        of_errors && of_labels
    }
}

/// What the sums of all measures come to, if one deviation is so much in the label's own units.
pub(crate) fn of_sums(sums: &[ErrorSum], rows: u64, unit: f64) -> Option<Errors> {
    let [squares, absolutes] = sums else {
        return None;
    };
    let [sum, label_squares] = squares.labels?;
    let variation = label_squares - sum * sum / (rows.max(1) as f64);
    Errors::of_sums(
        rows,
        squares.errors * unit * unit,
        absolutes.errors * unit,
        variation * unit * unit,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_give_errors_in_the_units_of_the_label() {
        let squares = ErrorSum {
            errors: 8.0,
            labels: Some([2.0, 34.0]),
        };
        let absolutes = ErrorSum {
            errors: 3.0,
            labels: None,
        };
        let errors = of_sums(&[squares, absolutes], 2, 10.0).unwrap();
        assert_eq!((errors.rmse, errors.mae), (20.0, 15.0));
        assert_eq!(errors.r2, Some(0.75));
        assert_eq!(of_sums(&[squares], 2, 10.0), None);
    }

    #[test]
    fn masks_that_did_not_cancel_are_noticed() {
        let sound = ErrorSum {
            errors: 40.0,
            labels: Some([3.0, 90.0]),
        };
        assert!(sound.is_possible(100));
        for (errors, labels) in [
            (1e9, [3.0, 90.0]),
            (-1e4, [3.0, 90.0]),
            (40.0, [1e9, 90.0]),
            (40.0, [90.0, 3.0]),
            (40.0, [3.0, 1e9]),
        ] {
            let wild = ErrorSum {
                errors,
                labels: Some(labels),
            };
            assert!(!wild.is_possible(100), "{wild:?}");
        }
    }
}
