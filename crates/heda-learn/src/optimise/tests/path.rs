//! Penalties one after the other.

use super::*;

/// With noise, and with as few gradients as jobs have.
#[test]
fn a_path_bears_noise() {
    let data = samples::noisy_line(ROWS, WIDTH, 6);
    let scaling = Scaling::of(&data);
    let path = PenaltyPath::usual();
    let usual = Settings {
        max_iterations: usual_iterations(WIDTH),
        ..Settings::lbfgs()
    };
    for seed in 0..10 {
        let clear = ClearSource::new(&data, 1, LossKind::Logistic);
        let mut source = Noisy(clear, ChaCha8Rng::seed_from_u64(seed), 0.5);
        let basis = Basis {
            scaling: scaling.clone(),
            noise: ROW_NOISE,
        };
        let mut optimiser = Optimiser::on(basis, path.settings(&usual, 0), WIDTH + 1).unwrap();
        for (step, &c) in path.values().iter().enumerate() {
            if step > 0 {
                let settings = path.settings(&usual, step);
                optimiser = optimiser.with_settings(settings, ROWS).unwrap();
            }
            let run = optimiser.run(&mut source, |_| ControlFlow::Continue(()));
            run.unwrap();
            let config = crate::oracle::TrainConfig {
                loss: LossKind::Logistic,
                settings: Settings {
                    c: Some(c),
                    ..Settings::lbfgs()
                },
            };
            let exact = crate::oracle::train(&data, 1, &config).unwrap().beta;
            let exact = scaling.to_deviations(&exact);
            let found = scaling.to_deviations(optimiser.beta());
            let apart = length(&difference(&found, &exact)) / length(&exact);
            assert!(apart < 0.03, "seed {seed}, C = {c}: {apart}");
        }
    }
}
