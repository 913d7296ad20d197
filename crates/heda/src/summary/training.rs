//! What is to be said about how a model was trained: why training ended, and what to be careful
//! about.

use heda_job::histogram::BinaryConfusion;
use heda_job::job::{ClassFit, Outcome};
use heda_learn::optimise::{Method, Stop};
use heda_learn::private::evaluation::WIDE;

/// Whether more iterations would make no model better.
pub(super) fn converged(outcome: &Outcome) -> bool {
    let done = |fit: &ClassFit| matches!(fit.stop, Stop::Converged | Stop::NoiseFloor);
    outcome.fits.iter().all(done)
}

/// Why the training of a model ended, in words.
pub(super) fn stopped(fit: &ClassFit, method: &Method, names: &[String]) -> String {
    let last = fit.norms.last();
    let norm = last.map_or(String::new(), |norm| format!(" (gradient {norm:.1e})"));
    let iterations = fit.iterations;
    let words = match fit.stop {
        Stop::Converged => format!("converged after {iterations} iterations{norm}."),
        Stop::Iterations if matches!(method, Method::Averaged { .. }) => {
            planned(method, iterations)
        }
        Stop::Iterations => format!(
            "stopped at the limit of {iterations} iterations, before it converged{norm}. More \
             iterations may help."
        ),
        Stop::MinimumRate => format!(
            "ended after {iterations} iterations, where the learning rate fell below its minimum."
        ),
        Stop::NoiseFloor => format!(
            "converged after {} of {iterations} iterations (rounding limit{}); the rest were \
             averaged.",
            fit.settled.unwrap_or(iterations),
            last.map_or(String::new(), |norm| format!(", gradient {norm:.1e}"))
        ),
    };
    match names.get(fit.positive as usize) {
        Some(name) if names.len() > 2 => format!("{name}: training {words}"),
        _ => format!("Training {words}"),
    }
}

/// How a private training ended.
fn planned(method: &Method, iterations: u32) -> String {
    let averaged = averaged_percent(method, iterations);
    match iterations / method.batches() as u32 {
        passes if passes == iterations => {
            format!(
                "ran its {iterations} planned iterations; the model averages the last {averaged} %."
            )
        }
        1 => format!(
            "ran its {iterations} planned steps, one pass over the rows; the model averages the last \
             {averaged} %, later ones more."
        ),
        passes => format!(
            "ran its {iterations} planned steps, {passes} passes over the rows; the model averages the \
             last {averaged} %, later ones more."
        ),
    }
}

/// The share of the iterations, from the end, whose mean is the model.
fn averaged_percent(method: &Method, iterations: u32) -> u32 {
    match method {
        Method::Averaged { from, .. } => {
            let averaged = f64::from(iterations.saturating_sub(*from));
            (100.0 * averaged / f64::from(iterations.max(1))).round() as u32
        }
        _ => 100,
    }
}

/// What to be careful about with these models, a sentence each.
pub(super) fn warnings(outcome: &Outcome, names: &[String]) -> Vec<String> {
    let mut warnings = Vec::new();
    if !outcome.constant.is_empty() {
        warnings.push(format!(
            "These features do not vary over all providers and have no influence: {}.",
            outcome.constant.join(", ")
        ));
    }
    warnings.extend(too_few(&outcome.fits));
    for fit in &outcome.fits {
        let whose = match names.get(fit.positive as usize) {
            Some(name) if names.len() > 2 => format!("{name}: "),
            _ => String::new(),
        };
        // Of noisy counts no single row can be told.
        let exact = fit.histogram.as_ref().filter(|h| h.noise.is_none());
        let confusion = exact.map(|h| h.confusion());
        let of_counts = confusion.and_then(|confusion| of_counts(&confusion));
        warnings.extend(of_counts.map(|words| format!("{whose}{words}")));
        let entangled = (fit.entangled.iter()).filter(|name| !outcome.constant.contains(name));
        let entangled: Vec<&str> = entangled.map(String::as_str).collect();
        let open = fit
            .undetermined
            .iter()
            .filter(|name| !outcome.constant.contains(name) && !entangled.contains(&name.as_str()));
        let open: Vec<&str> = open.map(String::as_str).collect();
        warnings.extend(shrunk(fit, names));
        if !entangled.is_empty() {
            warnings.push(format!(
                "{whose}These features are nearly linear combinations of others: {}. Do not interpret \
                 their coefficients; predictions are unaffected. Leave some of them out, or take a \
                 larger penalty.",
                entangled.join(", ")
            ));
        }
        if !open.is_empty() {
            warnings.push(format!(
                "{whose}The sign of these coefficients is not determined, rounding may have turned \
                 it: {}.",
                open.join(", ")
            ));
        }
    }
    warnings
}

/// That the accuracy is not known well, if it is not: by the model of which it is known worst.
fn too_few(fits: &[ClassFit]) -> Option<String> {
    let widths = fits.iter().filter_map(|fit| fit.right?.half_width());
    let widest = widths.fold(0.0, f64::max);
    (widest > WIDE).then(|| {
        format!(
            "The held-out rows are too few: with the noise of private counts they tell the accuracy \
             to ±{:.1} points only. Hold out more rows, or none.",
            100.0 * widest
        )
    })
}

fn of_counts(confusion: &BinaryConfusion) -> Option<&'static str> {
    let positives = confusion.true_positives + confusion.false_negatives;
    let negatives = confusion.true_negatives + confusion.false_positives;
    let named = confusion.true_positives + confusion.false_positives;
    if positives == 0 || negatives == 0 {
        return None;
    }
    if named == 0 || named == confusion.rows() {
        return Some(
            "The model gives every held-out row the same class: it has learned nothing beyond \
             which class is more frequent.",
        );
    }
    let wrong = confusion.false_positives + confusion.false_negatives;
    (wrong == 0).then_some(
        "No held-out row was wrong: the classes may be separable, and then the penalty alone \
         decides how large the coefficients are.",
    )
}

/// Coefficients that keep this part of their size are off by no more than rounding to the engine's grid.
const ROUNDED: f64 = 0.995;

/// That the coefficients of a model became too large for the engine, if they did.
fn shrunk(fit: &ClassFit, names: &[String]) -> Option<String> {
    let shrunk = fit.shrunk.filter(|shrunk| shrunk.least < ROUNDED)?;
    let whose = match names.get(fit.positive as usize) {
        Some(name) if names.len() > 2 => format!("{name}: the"),
        _ => "The".to_owned(),
    };
    Some(format!(
        "{whose} coefficients were too large for the engine in {} of {} gradients, which were taken \
         at {:.2} times their size or more: the model leans less on its features than the rows would \
         have it. A larger penalty keeps coefficients smaller.",
        shrunk.gradients, fit.iterations, shrunk.least
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use heda_job::job::Shrunk;
    use heda_learn::private::evaluation::RightRows;

    #[test]
    fn a_model_beyond_the_bound_is_told_and_another_one_is_not() {
        let fit = ClassFit {
            positive: 1,
            beta: vec![0.0],
            iterations: 40,
            stop: Stop::Iterations,
            norms: Vec::new(),
            settled: None,
            undetermined: Vec::new(),
            entangled: Vec::new(),
            shrunk: None,
            histogram: None,
            right: None,
            errors: None,
        };
        let names = ["no", "yes"].map(String::from);
        assert_eq!(shrunk(&fit, &names), None);
        let least = 0.625;
        let fit = ClassFit {
            shrunk: Some(Shrunk {
                gradients: 3,
                least,
            }),
            ..fit
        };
        let words = shrunk(&fit, &names).unwrap();
        assert!(
            words.starts_with("The coefficients were too large"),
            "{words}"
        );
        assert!(words.contains("in 3 of 40 gradients"), "{words}");
        let names = ["a", "b", "c"].map(String::from);
        assert!(
            shrunk(&fit, &names)
                .unwrap()
                .starts_with("b: the coefficients")
        );
    }

    #[test]
    fn too_few_held_out_rows_are_told_with_how_little_they_say() {
        let fit = |rows: u64| ClassFit {
            positive: 1,
            beta: vec![0.0],
            iterations: 40,
            stop: Stop::Iterations,
            norms: Vec::new(),
            settled: None,
            undetermined: Vec::new(),
            entangled: Vec::new(),
            shrunk: None,
            histogram: None,
            right: Some(RightRows {
                estimate: 0.9 * rows as f64,
                deviation: 5.0,
                rows,
            }),
            errors: None,
        };
        let words = too_few(&[fit(2000), fit(138)]).unwrap();
        assert!(
            words.starts_with("The held-out rows are too few"),
            "{words}"
        );
        assert!(words.contains("±8."), "{words}");
        assert_eq!(too_few(&[fit(2000)]), None);
        let exact = ClassFit {
            right: None,
            ..fit(10)
        };
        assert_eq!(too_few(&[exact]), None);
    }

    #[test]
    fn counts_tell_the_majority_class_and_separable_classes() {
        let of = |tp, fp, tn, fn_| {
            of_counts(&BinaryConfusion {
                true_positives: tp,
                false_positives: fp,
                true_negatives: tn,
                false_negatives: fn_,
            })
        };
        assert!(of(0, 0, 9, 3).unwrap().contains("same class"));
        assert!(of(3, 9, 0, 0).unwrap().contains("same class"));
        assert!(of(3, 0, 9, 0).unwrap().contains("separable"));
        assert_eq!(of(2, 1, 8, 1), None);
        // One class alone shows nothing.
        assert_eq!(of(0, 0, 9, 0), None);
    }
}
