//! What one model, a class against the rest, came to on held-out rows.

use super::{ClassResult, interval};
use heda_job::histogram::Histogram;
use heda_job::job::ClassFit;
use heda_learn::private::evaluation::ROWS_FOR_AREA;

pub(super) fn class_result(fit: &ClassFit, names: &[String]) -> ClassResult {
    let histogram = fit.histogram.as_ref();
    let name = names.get(fit.positive as usize);
    ClassResult {
        class: name.cloned().unwrap_or_else(|| fit.positive.to_string()),
        accuracy: match fit.right {
            Some(right) => right.accuracy(),
            None => histogram.and_then(|h| h.confusion().accuracy()),
        },
        accuracy_interval: match fit.right {
            Some(right) => right.interval(),
            None => histogram.and_then(of_exact),
        },
        confusion: histogram.map(Histogram::confusion),
        auc: histogram
            .filter(|histogram| is_fine(histogram))
            .and_then(Histogram::auc_bounds)
            .map(|(low, high)| [low, high]),
        majority_accuracy: histogram.and_then(majority),
    }
}

fn of_exact(histogram: &Histogram) -> Option<[f64; 2]> {
    let confusion = histogram.confusion();
    let right = confusion.true_positives + confusion.true_negatives;
    interval(right, confusion.rows())
}

/// Whether an area under the curve would say something: of few rows the noise of the counts would be
/// most of it.
fn is_fine(histogram: &Histogram) -> bool {
    histogram.noise.is_none() || histogram.confusion().rows() >= ROWS_FOR_AREA
}

fn majority(histogram: &Histogram) -> Option<f64> {
    let positives: u64 = histogram.positives.iter().sum();
    let negatives: u64 = histogram.negatives.iter().sum();
    let all = positives + negatives;
    (all > 0).then(|| positives.max(negatives) as f64 / all as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use heda_learn::optimise::Stop;
    use heda_learn::private::evaluation::RightRows;

    fn fit(noise: Option<f64>, rows: u64) -> ClassFit {
        let histogram = Histogram {
            decision: 1,
            negatives: vec![rows / 2 - 1, 1],
            positives: vec![2, rows - rows / 2 - 2],
            noise,
        };
        ClassFit {
            positive: 1,
            beta: vec![0.0],
            iterations: 4,
            stop: Stop::Iterations,
            norms: Vec::new(),
            settled: None,
            undetermined: Vec::new(),
            entangled: Vec::new(),
            shrunk: None,
            histogram: Some(histogram),
            right: noise.map(|_| RightRows {
                estimate: 0.9 * rows as f64,
                deviation: 3.0,
                rows,
            }),
            errors: None,
        }
    }

    #[test]
    fn few_noisy_rows_have_no_area_under_the_curve() {
        let names = ["no", "yes"].map(String::from);
        for (noise, rows, has_area) in [
            (None, 100, true),
            (Some(9.0), 999, false),
            (Some(9.0), 1000, true),
        ] {
            let result = class_result(&fit(noise, rows), &names);
            assert_eq!(result.auc.is_some(), has_area, "{noise:?} {rows}");
        }
    }

    /// The accuracy is the estimate without bias, not what the table that is shown comes to.
    #[test]
    fn a_private_model_has_the_accuracy_of_its_right_predictions_also_without_a_table() {
        let names = ["no", "yes"].map(String::from);
        let whole = class_result(&fit(Some(9.0), 200), &names);
        let alone = class_result(
            &ClassFit {
                histogram: None,
                ..fit(Some(9.0), 200)
            },
            &names,
        );
        for result in [&whole, &alone] {
            assert_eq!(result.accuracy, Some(0.9));
            let [low, high] = result.accuracy_interval.unwrap();
            assert!(low > 0.8 && low < 0.87 && high > 0.93, "{low} {high}");
        }
        assert_eq!((alone.confusion, alone.auc), (None, None));
    }
}
