use super::*;
use crate::data::Dataset;
use crate::loss::LossKind;
use crate::oracle::ClearSource;
use crate::samples;
use chacha20::ChaCha8Rng;
use rand_core::SeedableRng;
use std::convert::Infallible;

mod path;

const ROWS: usize = 600;
const WIDTH: usize = 4;

fn settings(method: Method) -> Settings {
    Settings {
        method,
        c: Some(1.0 / (ROWS as f64 * 1e-3)),
        tolerance: 1e-7,
        max_iterations: 4000,
    }
}

fn methods(loss: LossKind) -> [Method; 3] {
    let rate = safe_rate(loss, WIDTH, 1e-3);
    [
        Method::Descent {
            rate,
            minimum_rate: 0.0,
            decay: 0.0,
            batches: 1,
        },
        Method::Nesterov { rate, batches: 1 },
        Method::Lbfgs { memory: 10 },
    ]
}

fn run(settings: Settings, source: &mut impl GradientSource) -> Optimiser {
    let mut optimiser = Optimiser::new(settings, source.dimension()).unwrap();
    let stop = optimiser
        .run(source, |_| ControlFlow::Continue(()))
        .unwrap();
    assert_eq!(stop, optimiser.stopped());
    optimiser
}

#[test]
fn all_methods_find_the_same_minimum_of_every_loss() {
    let data = samples::noisy_line(ROWS, WIDTH, 1);
    for loss in [LossKind::Logistic, LossKind::SquaredHinge, LossKind::Ridge] {
        let [plain, fast, newton] = methods(loss).map(|method| {
            run(
                Settings {
                    max_iterations: 200_000,
                    ..settings(method)
                },
                &mut ClearSource::new(&data, 1, loss),
            )
        });
        for optimiser in [&plain, &fast, &newton] {
            assert_eq!(optimiser.stopped(), Some(Stop::Converged), "{loss}");
            let apart = difference(optimiser.beta(), newton.beta());
            assert!(largest(&apart) < 2e-4, "{loss}: {apart:?}");
        }
        assert!(newton.iterations() < 60, "{loss}: {}", newton.iterations());
        assert!(fast.iterations() < plain.iterations() / 3);
    }
}

#[test]
fn descent_follows_the_printed_formula() {
    let data = samples::noisy_line(ROWS, WIDTH, 2);
    let mut source = ClearSource::new(&data, 1, LossKind::Logistic);
    let method = Method::Descent {
        rate: 0.5,
        minimum_rate: 0.3,
        decay: 0.1,
        batches: 1,
    };
    let optimiser = run(
        Settings {
            c: None,
            ..settings(method)
        },
        &mut source,
    );
    // 0.5/(1 + 0.1·t) is below 0.3 for the first time at t = 7.
    assert_eq!(optimiser.stopped(), Some(Stop::MinimumRate));
    assert_eq!(optimiser.iterations(), 7);
    let mut beta = vec![0.0; WIDTH + 1];
    for t in 0..7 {
        let gradient = source.gradient(&beta, Batch::FULL).unwrap();
        let rate = 0.5 / (1.0 + 0.1 * f64::from(t));
        let gradient: Vec<f64> = gradient.sum.iter().map(|g| g / ROWS as f64).collect();
        add_scaled(&mut beta, -rate, &gradient);
    }
    assert_eq!(optimiser.beta(), beta);
}

#[test]
fn mini_batches_come_close_to_the_minimum() {
    let data = samples::noisy_line(ROWS, WIDTH, 3);
    let source = || ClearSource::new(&data, 1, LossKind::Logistic);
    let best = run(settings(Method::Lbfgs { memory: 10 }), &mut source());
    let least = source().mean_loss(best.beta());
    let small = [
        Method::Descent {
            rate: 0.5,
            minimum_rate: 0.0,
            decay: 0.0005,
            batches: 8,
        },
        Method::Nesterov {
            rate: 0.2,
            batches: 8,
        },
    ];
    for method in small {
        let optimiser = run(settings(method.clone()), &mut source());
        let loss = source().mean_loss(optimiser.beta());
        assert!(loss < least + 0.01, "{method:?}: {loss} and {least}");
    }
}

#[test]
fn batches_rotate() {
    let data = samples::noisy_line(30, 1, 4);
    let mut source = ClearSource::new(&data, 1, LossKind::Logistic);
    let method = Method::Nesterov {
        rate: 0.1,
        batches: 3,
    };
    let mut optimiser = Optimiser::new(settings(method), 2).unwrap();
    let mut seen = Vec::new();
    for _ in 0..7 {
        let Ask { beta, batch } = optimiser.ask().unwrap();
        seen.push(batch.index());
        let gradient = source.gradient(beta, batch).unwrap();
        optimiser.tell(&gradient).unwrap();
    }
    assert_eq!(seen, [0, 1, 2, 0, 1, 2, 0]);
}

/// Stores and reads the state after every iteration: nothing may change by a single bit.
#[test]
fn a_run_resumed_from_json_after_every_iteration_ends_with_the_same_model() {
    let data = samples::noisy_line(ROWS, WIDTH, 5);
    for method in methods(LossKind::Logistic) {
        let settings = Settings {
            max_iterations: 50,
            ..settings(method)
        };
        let mut source = ClearSource::new(&data, 1, LossKind::Logistic);
        let straight = run(settings.clone(), &mut source);
        let mut text =
            serde_json::to_string(&Optimiser::new(settings, WIDTH + 1).unwrap()).unwrap();
        loop {
            let mut resumed: Optimiser = serde_json::from_str(&text).unwrap();
            let once = resumed
                .run(&mut source, |_| ControlFlow::Break(()))
                .unwrap();
            text = serde_json::to_string(&resumed).unwrap();
            if once.is_some() {
                assert_eq!(resumed, straight);
                break;
            }
        }
    }
}

/// Adds noise as fixed-point engines do.
struct Noisy<'a>(ClearSource<'a>, ChaCha8Rng, f64);

impl GradientSource for Noisy<'_> {
    type Error = Infallible;

    fn dimension(&self) -> usize {
        self.0.dimension()
    }

    fn gradient(&mut self, beta: &[f64], batch: Batch) -> Result<Gradient, Infallible> {
        let mut gradient = self.0.gradient(beta, batch)?;
        for g in &mut gradient.sum {
            *g += self.2 * (samples::unit(&mut self.1) - 0.5);
        }
        Ok(gradient)
    }
}

/// Each component of the sum carries 0.5·(uniform in ±½), of a deviation of 0.5·0.289. That is
/// 24.5 times as little a row, and √1.25/0.289 times as much in deviations from the mean, because
/// the columns are uniform in [0, 1] and the bias carries noise, too.
const ROW_NOISE: f64 = 0.5 * 0.289 / 24.5 * 1.118 / 0.289;

fn noisy(seed: u64, iterations: u32) -> (Optimiser, f64) {
    let data = samples::noisy_line(ROWS, WIDTH, 6);
    let clear = ClearSource::new(&data, 1, LossKind::Logistic);
    let scaling = Scaling::of(&data);
    let on = |noise| Basis {
        scaling: scaling.clone(),
        noise,
    };
    let lbfgs = |max_iterations| Settings {
        max_iterations,
        ..Settings::lbfgs()
    };
    let mut best = Optimiser::on(on(0.0), lbfgs(200), WIDTH + 1).unwrap();
    let mut exact = clear;
    best.run(&mut exact, |_| ControlFlow::Continue(())).unwrap();
    assert_eq!(best.stopped(), Some(Stop::Converged));
    let mut source = Noisy(clear, ChaCha8Rng::seed_from_u64(seed), 0.5);
    let mut optimiser = Optimiser::on(on(ROW_NOISE), lbfgs(iterations), WIDTH + 1).unwrap();
    let run = optimiser.run(&mut source, |_| ControlFlow::Continue(()));
    run.unwrap();
    let found = scaling.to_deviations(optimiser.beta());
    let best = scaling.to_deviations(best.beta());
    let apart = length(&difference(&found, &best)) / length(&best);
    (optimiser, apart)
}

#[test]
fn lbfgs_bears_noise_and_says_that_it_is_at_its_floor() {
    let mut mean = [0.0; 2];
    for seed in 0..20 {
        for (mean, iterations) in mean.iter_mut().zip([12, 48]) {
            let (optimiser, apart) = noisy(seed, iterations);
            assert_eq!(
                optimiser.iterations(),
                iterations,
                "no gradient is left out"
            );
            assert_eq!(optimiser.stopped(), Some(Stop::NoiseFloor));
            assert!(optimiser.settled().unwrap() < 12);
            assert!(apart < 0.02, "seed {seed}: {apart}");
            *mean += apart / 20.0;
        }
    }
    assert!(mean[1] < 0.8 * mean[0], "averaging helps: {mean:?}");
}

/// A warm start is the training with the other penalty, only sooner at its end.
#[test]
fn every_step_of_a_path_ends_where_a_training_with_its_penalty_does() {
    let data = samples::noisy_line(ROWS, WIDTH, 6);
    let path = PenaltyPath::usual();
    let basis = Basis {
        scaling: Scaling::of(&data),
        noise: 0.0,
    };
    let enough = Settings {
        tolerance: 1e-8,
        max_iterations: 400,
        ..Settings::lbfgs()
    };
    let mut source = ClearSource::new(&data, 1, LossKind::Logistic);
    let mut go = |mut optimiser: Optimiser| {
        let run = optimiser.run(&mut source, |_| ControlFlow::Continue(()));
        assert_eq!(run.unwrap(), Some(Stop::Converged));
        optimiser
    };
    let (mut warm, mut fresh) = (0, 0);
    let mut before: Option<Optimiser> = None;
    for step in 0..path.values().len() {
        let settings = path.settings(&enough, step);
        let begun = Optimiser::on(basis.clone(), settings.clone(), WIDTH + 1).unwrap();
        let alone = go(begun.clone());
        let next = before.map_or(begun, |before| {
            before.with_settings(settings.clone(), ROWS).unwrap()
        });
        assert_eq!((next.settings(), next.iterations()), (&settings, 0));
        let next = go(next);
        let apart = difference(next.beta(), alone.beta());
        assert!(largest(&apart) < 1e-5, "step {step}: {apart:?}");
        warm += next.iterations();
        fresh += alone.iterations();
        before = Some(next);
    }
    assert!(warm < fresh * 3 / 4, "{warm} gradients, {fresh} without");
}

#[test]
fn only_a_coefficient_that_is_nothing_but_rounding_may_have_no_sign() {
    // Every row twice, with both values of a column that therefore says nothing.
    let data = samples::noisy_line(ROWS, WIDTH, 6);
    let twice = |row: usize| [data.row(row / 2), &[(row % 2) as f64]].concat();
    let rows = (0..2 * ROWS).flat_map(twice);
    let labels = (0..2 * ROWS).map(|row| data.labels()[row / 2]);
    let mut features = data.features().to_vec();
    features.push(crate::data::Feature {
        name: "nothing".into(),
        columns: WIDTH..WIDTH + 1,
        levels: None,
    });
    let classes = data.classes().to_vec();
    let data = Dataset::new(features, rows.collect(), labels.collect(), classes).unwrap();
    let basis = Basis {
        scaling: Scaling::of(&data),
        noise: ROW_NOISE,
    };
    let settings = Settings {
        max_iterations: 20,
        ..Settings::lbfgs()
    };
    let mut found = 0;
    for seed in 0..20 {
        let clear = ClearSource::new(&data, 1, LossKind::Logistic);
        let mut source = Noisy(clear, ChaCha8Rng::seed_from_u64(seed), 0.5);
        let fresh = Optimiser::on(basis.clone(), settings.clone(), WIDTH + 2);
        let mut optimiser = fresh.unwrap();
        assert_eq!(optimiser.undetermined(), None, "nothing is known yet");
        let run = optimiser.run(&mut source, |_| ControlFlow::Continue(()));
        run.unwrap();
        let open = optimiser.undetermined().unwrap();
        assert!(open.iter().all(|&column| column == WIDTH), "{open:?}");
        found += open.len();
    }
    // Never a coefficient that says something; this one in a part of the runs only.
    assert!(found >= 5, "{found} of 20");
}

/// The coordinates of the rows must not matter: bounds ten times as wide are rows ten times as
/// close together.
#[test]
fn the_model_does_not_depend_on_the_bounds() {
    let data = samples::noisy_line(ROWS, WIDTH, 7);
    let narrow = data.values().iter().map(|x| 0.45 + x / 10.0).collect();
    let classes = data.classes().to_vec();
    let features = data.features().to_vec();
    let narrow = Dataset::new(features, narrow, data.labels().to_vec(), classes).unwrap();
    let fit = |data: &Dataset| {
        let config = crate::oracle::TrainConfig::logistic();
        crate::oracle::train(data, 1, &config).unwrap()
    };
    let (wide, narrow) = (fit(&data), fit(&narrow));
    assert_eq!(wide.iterations, narrow.iterations);
    for (wide, narrow) in wide.beta[1..].iter().zip(&narrow.beta[1..]) {
        assert!((10.0 * wide - narrow).abs() < 1e-6 * narrow.abs().max(1.0));
    }
}

#[test]
fn separable_classes_without_penalty_end_by_tolerance_or_iterations() {
    let data = samples::three_classes(90);
    let unpenalised = Settings {
        c: None,
        max_iterations: 300,
        ..settings(Method::Lbfgs { memory: 5 })
    };
    let optimiser = run(
        unpenalised,
        &mut ClearSource::new(&data, 0, LossKind::Logistic),
    );
    assert!(all_finite(optimiser.beta()));
    assert!(optimiser.gradient_norm().unwrap() < 1e-4);
}

#[test]
fn refuses_useless_answers() {
    let mut optimiser = Optimiser::new(Settings::lbfgs(), 2).unwrap();
    let gradient = |sum: Vec<f64>, rows| Gradient { sum, rows };
    let refused = |o: &mut Optimiser, g| o.tell(&g).unwrap_err();
    assert_eq!(
        refused(&mut optimiser, gradient(vec![0.0], 1)),
        TrainError::Dimension {
            expected: 2,
            found: 1
        }
    );
    assert_eq!(
        refused(&mut optimiser, gradient(vec![0.0; 2], 0)),
        TrainError::EmptyBatch { index: 0, count: 1 }
    );
    assert_eq!(
        refused(&mut optimiser, gradient(vec![0.0, f64::NAN], 1)),
        TrainError::NotFinite(1)
    );
    assert_eq!(
        optimiser.iterations(),
        0,
        "a refused answer changes nothing"
    );
    optimiser.tell(&gradient(vec![0.0; 2], 1)).unwrap();
    assert_eq!(optimiser.stopped(), Some(Stop::Converged));
    assert_eq!(
        refused(&mut optimiser, gradient(vec![0.0; 2], 1)),
        TrainError::Ended
    );
    let method = Method::Nesterov {
        rate: 1e308,
        batches: 1,
    };
    let mut far = Optimiser::new(settings(method), 2).unwrap();
    assert_eq!(
        refused(&mut far, gradient(vec![1e300; 2], 1)),
        TrainError::Diverged
    );
}

#[test]
fn refuses_useless_settings() {
    let refused = |s: Settings| Optimiser::new(s, 2).unwrap_err();
    let base = || Settings::lbfgs();
    let with = |method| Settings { method, ..base() };
    let cases = [
        (
            Settings {
                c: Some(-1.0),
                ..base()
            },
            "c = -1",
        ),
        (
            Settings {
                tolerance: f64::NAN,
                ..base()
            },
            "tolerance",
        ),
        (
            Settings {
                max_iterations: 0,
                ..base()
            },
            "iterations",
        ),
        (with(Method::Lbfgs { memory: 0 }), "memory"),
        (
            with(Method::Nesterov {
                rate: 0.0,
                batches: 1,
            }),
            "learning rate",
        ),
        (
            with(Method::Nesterov {
                rate: 1.0,
                batches: 0,
            }),
            "batches",
        ),
    ];
    for (settings, word) in cases {
        let message = refused(settings).to_string();
        assert!(message.contains(word), "{message}");
    }
    assert_eq!(Optimiser::new(base(), 0), Err(TrainError::Size(0)));
}

#[test]
fn refuses_a_damaged_checkpoint() {
    let optimiser = Optimiser::new(Settings::lbfgs(), 2).unwrap();
    let text = serde_json::to_string(&optimiser).unwrap();
    for (from, to) in [
        ("\"point\":[0.0,0.0]", "\"point\":[0.0]"),
        ("\"memory\":30}", "\"memory\":0}"),
        ("\"sum\":[0.0,0.0]", "\"sum\":[]"),
        (
            "\"name\":\"lbfgs\",\"memory\":30",
            "\"name\":\"nesterov\",\"rate\":1.0",
        ),
    ] {
        assert!(text.contains(from), "{text}");
        let damaged = text.replace(from, to);
        assert!(
            serde_json::from_str::<Optimiser>(&damaged).is_err(),
            "{damaged}"
        );
    }
}
