//! How the training of each model went, in words.

use heda_learn::optimise::Stop;
use heda_train::job::ClassFit;

/// Why the training of a model ended, in words.
pub(super) fn stopped(fit: &ClassFit, names: &[String]) -> String {
    let last = fit.norms.last();
    let norm = last.map_or(String::new(), |norm| format!(" ({norm:.1e})"));
    let why = match fit.stop {
        Stop::Converged => format!("converged: the gradient{norm} is within the tolerance"),
        Stop::Iterations => format!(
            "stopped at the limit of iterations: the gradient{norm} was not yet within the \
             tolerance"
        ),
        Stop::MinimumRate => "ended where the learning rate fell below its minimum".to_owned(),
        Stop::Stalled => format!(
            "ended at the noise floor: the gradient{norm} is as small as rounding lets it become"
        ),
    };
    let iterations = fit.iterations;
    match names.get(fit.positive as usize) {
        Some(name) if names.len() > 2 => {
            format!("{name}: training {why}, after {iterations} iterations.")
        }
        _ => format!("Training {why}, after {iterations} iterations."),
    }
}

/// That the coefficients of a model became too large for the engine, if they did.
pub(super) fn shrunk(fit: &ClassFit, names: &[String]) -> Option<String> {
    let shrunk = fit.shrunk?;
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
    use heda_train::job::Shrunk;

    #[test]
    fn a_model_beyond_the_bound_is_told_and_another_one_is_not() {
        let fit = ClassFit {
            positive: 1,
            beta: vec![0.0],
            iterations: 40,
            stop: Stop::Iterations,
            norms: Vec::new(),
            shrunk: None,
            histogram: None,
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
}
