//! What noise does to the coefficients of a private model.
//!
//! What is opened at every step carries noise of a known deviation; estimates of gradients undo the bands that tie steps
//! together, and the model is a mean of points that steps with momentum reach. All of that is linear, but for the ball that
//! coefficients stay in, which only shortens. Where the loss curves by h, a gradient at a point has h times the point in it. So the noise of
//! each step is followed through the plan's own optimiser, for curvatures from zero to where a step would swing, and what is
//! said is the most of them: the most that noise does to a coefficient.

use heda_job::job::Outcome;
use heda_job::proposal::Privacy;
use heda_learn::gradient::Gradient;
use heda_learn::optimise::{Ask, Method, Optimiser, Settings};
use heda_learn::private::{PrivateEncoding, PrivatePlan, Unbanded, unstated};
use heda_learn::scaling::Centre;
use heda_learn::schema::Schema;

/// Deviations to both sides of a number's mean within which it counts, and nothing beyond.
const REACH_IN_DEVIATIONS: f64 = 6.0;

/// For each encoded column the most that noise gives its effect as a standard deviation: that of the
/// distance between the ends within which the column counts. Nothing for other jobs.
pub(super) fn in_effects(privacy: &Privacy, schema: &Schema, outcome: &Outcome) -> Vec<f64> {
    let rows: usize = outcome.providers.iter().map(|provider| provider.rows).sum();
    // A gradient is divided by as many as it is a sum over.
    let units = outcome.persons.unwrap_or(rows as f64);
    let Ok(plan) = privacy.plan(schema.width() + 1) else {
        return Vec::new();
    };
    let of_sum = privacy.noise_opened(&plan, outcome.providers.len());
    let moved = of_sum / units.max(1.0) * gain(&plan);
    spans(privacy, schema)
        .into_iter()
        .map(|span| moved * span)
        .collect()
}

/// Curvatures that are tried, as a part of what makes a step swing: zero, and powers of ½ up to 1.
const CURVATURES: i32 = 14;

/// By how much the result moves at most if what is opened at every step carries independent noise of deviation 1: for each
/// direction as if it were alone.
fn gain(plan: &PrivatePlan) -> f64 {
    let settings = plan.settings();
    let Method::Averaged { rate, .. } = settings.method else {
        return 0.0;
    };
    let curvatures = (0..CURVATURES).map(|halved| 0.5f64.powi(halved) / rate);
    let gains = curvatures.chain([0.0]).map(|h| gain_at(plan, &settings, h));
    gains.fold(0.0, f64::max)
}

/// The same where the loss has one curvature. Coefficient s stands for the noise of step s alone.
fn gain_at(plan: &PrivatePlan, settings: &Settings, curvature: f64) -> f64 {
    let steps = plan.gradients() as usize;
    let Ok(mut optimiser) = Optimiser::new(unbounded(settings), steps) else {
        return 0.0;
    };
    let batches = f64::from(plan.passes().batches());
    let mut estimates = Unbanded::default();
    for step in 0..steps {
        let mut opened = vec![0.0; steps];
        opened[step] = 1.0;
        let noise = estimates.estimate(plan.passes(), step as u32, opened);
        let Some(Ask { beta, .. }) = optimiser.ask() else {
            break;
        };
        let sum = beta.iter().zip(noise);
        let sum = sum.map(|(point, noise)| curvature * point + batches * noise);
        let gradient = Gradient {
            sum: sum.collect(),
            rows: 1,
        };
        if optimiser.tell(&gradient).is_err() {
            break;
        }
    }
    optimiser.beta().iter().map(|b| b * b).sum::<f64>().sqrt()
}

/// The settings without the ball.
fn unbounded(settings: &Settings) -> Settings {
    let mut settings = settings.clone();
    if let Method::Averaged { radius, .. } = &mut settings.method {
        *radius = f64::MAX.sqrt();
    }
    settings
}

/// How far a column goes between the ends within which it counts, as it is trained on. Of a number
/// whose mean and deviation were bought, at most: six deviations.
fn spans(privacy: &Privacy, schema: &Schema) -> Vec<f64> {
    let encoding = match privacy.moments {
        0 => PrivateEncoding::new(schema),
        _ => {
            let widest = Centre {
                mean: 0.5,
                deviation: 1.0 / REACH_IN_DEVIATIONS,
            };
            let centres = vec![widest; unstated(schema).len()];
            match PrivateEncoding::with_moments(schema, &centres) {
                Ok(encoding) => encoding,
                Err(_) => return Vec::new(),
            }
        }
    };
    let slopes = encoding.coefficients(&vec![1.0; encoding.width()]);
    let ends = encoding.reach();
    let ends = ends.ends().iter();
    slopes[1..]
        .iter()
        .zip(ends)
        .map(|(slope, [from, to])| slope.abs() * (to - from))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::Job;
    use heda_crypto::random::Randomness;
    use heda_dp::gaussian::{Variance, sample};
    use heda_dp::gdp::Delta;
    use heda_job::guard::{LocalGuard, MemoryLedger};
    use heda_job::job::Quiet;
    use heda_job::local::{self, LocalProvider};
    use heda_learn::bundled::{Bundle, Coding};
    use heda_learn::optimise::Optimiser;
    use heda_learn::private::PrivateSource;
    use heda_learn::resident::{Position, RowCoins};
    use rand_core::Rng;
    use std::cell::RefCell;
    use std::ops::ControlFlow;
    use std::sync::Arc;

    fn plan_of(rows: u64) -> PrivatePlan {
        let delta = Delta::new(1e-5).unwrap();
        PrivatePlan::new(rows, 16, "1".parse().unwrap(), delta).unwrap()
    }

    /// Full batches on a flat loss: noise in step t moves the point after step i by
    /// rate·(1 − mⁱ⁻ᵗ⁺¹)/(1 − m), and the mean by the mean of that.
    #[test]
    fn flat_steps_add_noise_up() {
        let plan = plan_of(1_000);
        let settings = plan.settings();
        let Method::Averaged {
            rate,
            momentum,
            from,
            ..
        } = settings.method
        else {
            panic!("{settings:?}");
        };
        let steps = plan.gradients();
        let moved = |step: u32, point: u32| {
            let since = (point - step) as i32 + 1;
            rate * (1.0 - momentum.powi(since)) / (1.0 - momentum)
        };
        let of_step = |step: u32| {
            let points = from.max(step)..steps;
            points.map(|point| moved(step, point)).sum::<f64>() / f64::from(steps - from)
        };
        let expected = (0..steps)
            .map(|step| of_step(step).powi(2))
            .sum::<f64>()
            .sqrt();
        let found = gain_at(&plan, &settings, 0.0);
        assert!((found / expected - 1.0).abs() < 1e-9, "{found} {expected}");
        assert!(gain(&plan) >= found);
    }

    /// Noise of batches cancels where steps add up: the result moves by much less than the same noise in
    /// independent steps would move it.
    #[test]
    fn tied_noise_cancels_where_steps_add_up() {
        let plan = plan_of(30_000);
        assert_eq!((plan.passes().passes(), plan.passes().batches()), (4, 16));
        let settings = plan.settings();
        let Method::Averaged { rate, momentum, .. } = settings.method else {
            panic!("{settings:?}");
        };
        let independent = 16.0 * rate / (1.0 - momentum) * 64f64.sqrt();
        assert!(
            gain(&plan) < 0.25 * independent,
            "{} {independent}",
            gain(&plan)
        );
    }

    /// The same rows trained many times with fresh noise: no effect varies more than is said, and
    /// some vary nearly as much.
    #[test]
    fn effects_vary_with_noise_as_much_as_is_said_and_no_more() {
        const RUNS: usize = 60;
        let bundle = Bundle::Bcwd;
        let schema = bundle.schema(Coding::Natural);
        let (data, _) = bundle.table(Coding::Natural).unwrap();
        let rows = data.rows() as u64;
        let privacy = Privacy::new("1".parse().unwrap(), Delta::default_for(rows), rows);
        let encoding = PrivateEncoding::new(&schema);
        let plan = privacy.plan(encoding.width()).unwrap();
        let providers = 3;
        let all = privacy.share(plan.variance(), providers).get() as f64 * providers as f64;
        let variance = Variance::at_least(all).unwrap();
        let own = [encoding.rows(&data, 1).unwrap()];
        let rng = RefCell::new(Randomness::seeded(5).fork("noise", 0).unwrap());
        let train = |_| {
            let toss = |_: Position| {
                let mut rng = rng.borrow_mut();
                let (mask, coin) = (rng.next_u32(), rng.next_u32());
                RowCoins { mask, coin }
            };
            let draw = |_: u32, width: usize| -> Vec<i64> {
                let mut rng = rng.borrow_mut();
                (0..width).map(|_| sample(variance, &mut *rng)).collect()
            };
            let mut source = PrivateSource::new(&plan, &own, toss, draw);
            let mut optimiser = Optimiser::new(plan.settings(), encoding.width()).unwrap();
            let run = optimiser.run(&mut source, |_| ControlFlow::Continue(()));
            run.unwrap();
            optimiser.beta().to_vec()
        };
        let betas: Vec<Vec<f64>> = (0..RUNS).map(train).collect();
        let of_sum = privacy.noise_opened(&plan, providers);
        let gain = gain(&plan);
        let said = of_sum / rows as f64 * gain;
        let deviation = |column: usize| {
            let mean = betas.iter().map(|b| b[column]).sum::<f64>() / RUNS as f64;
            let squares = betas.iter().map(|b| (b[column] - mean).powi(2));
            (squares.sum::<f64>() / (RUNS - 1) as f64).sqrt()
        };
        let found: Vec<f64> = (1..encoding.width()).map(deviation).collect();
        // A deviation of 60 runs is itself off by a tenth.
        assert!(found.iter().all(|d| *d < 1.3 * said), "{found:?} {said}");
        assert!(found.iter().any(|d| *d > 0.4 * said), "{found:?} {said}");
        assert_eq!(spans(&privacy, &schema).len(), schema.width());
    }

    /// A sum over persons is divided by persons, however many rows they have.
    #[test]
    fn noise_in_effects_goes_by_persons_where_they_are_protected() {
        let schema = Arc::new(Bundle::Bcwd.schema(Coding::Natural));
        let (data, _) = Bundle::Bcwd.table(Coding::Natural).unwrap();
        let persons: Vec<u32> = (0..data.rows() as u32).map(|row| row / 5).collect();
        let rows = persons.len() as u64;
        let job = Job::builder("rows", Arc::clone(&schema));
        let job = job.private_within("20".parse().unwrap(), None, persons.len() / 5);
        let randomness = Randomness::seeded(1);
        let name = local::fresh_job_id(&randomness).unwrap();
        let spec = job.unwrap().build().unwrap().spec(name, &randomness);
        let seed = [4; 32].into();
        let guard = LocalGuard::new(Arc::new(data), schema, seed, MemoryLedger::default());
        let providers = [LocalProvider {
            name: "clinic".into(),
            guard: Box::new(guard.of_persons(persons)),
        }];
        let run = local::run(&spec, &providers, &randomness, &mut Quiet, None, false);
        let outcome = run.unwrap().outcome;
        let privacy = outcome.privacy.unwrap();
        assert!(privacy.persons);
        let by_persons = in_effects(&privacy, &spec.schema, &outcome);
        let by_rows = Outcome {
            persons: None,
            ..outcome.clone()
        };
        let by_rows = in_effects(&privacy, &spec.schema, &by_rows);
        let trained = outcome.providers[0].rows as f64;
        let (found, expected) = (
            by_persons[0] / by_rows[0],
            trained / outcome.persons.unwrap(),
        );
        assert!((found / expected - 1.0).abs() < 1e-9, "{found} {expected}");
        assert!(found > 4.0, "{found}, five rows a person of {rows}");
        let said = super::super::privacy::guarantee(&privacy, 1);
        assert!(
            said.contains("for every person of every provider"),
            "{said}"
        );
        assert!(said.contains("apart from how many rows"), "{said}");
    }
}
