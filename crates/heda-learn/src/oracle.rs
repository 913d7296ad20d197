//! Training in the clear: what every encrypted engine is compared with.

use crate::data::Dataset;
use crate::gradient::{Batch, Gradient, GradientSource};
use crate::loss::{Loss, LossKind};
use crate::optimise::{Basis, Optimiser, RunError, Settings, Stop, TrainError};
use crate::scaling::Scaling;
use crate::target::TargetScale;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::convert::Infallible;
use std::ops::{ControlFlow, Range};

/// Rows that one task adds up. Fixed, so the order of summation, and with it every bit of the
/// result, does not depend on the number of processors.
const CHUNK: usize = 1024;

/// Exact gradients (in f64) on rows in the clear: class `positive` against the rest, or least
/// squares on a number.
#[derive(Debug, Clone, Copy)]
pub struct ClearSource<'a> {
    data: &'a Dataset,
    positive: u32,
    loss: &'static dyn Loss,
    /// What labels count in, if they are numbers.
    scale: Option<TargetScale>,
    /// What rows of the rest and of the positive class count.
    weights: [f64; 2],
}

impl<'a> ClearSource<'a> {
    /// Looks at `data` as class `positive` against the rest.
    pub fn new(data: &'a Dataset, positive: u32, loss: LossKind) -> Self {
        Self {
            data,
            positive,
            loss: loss.loss(),
            scale: None,
            weights: [1.0; 2],
        }
    }

    /// The same where rows of the rest (first) and of the positive class (second) count so much.
    pub fn weighed(self, weights: [f64; 2]) -> Self {
        Self { weights, ..self }
    }

    /// Looks at numeric labels, in deviations.
    pub fn numbers(data: &'a Dataset, scale: TargetScale) -> Self {
        Self {
            scale: Some(scale),
            ..Self::new(data, 0, LossKind::Ridge)
        }
    }

    /// The mean loss over all rows, without penalty.
    pub fn mean_loss(&self, beta: &[f64]) -> f64 {
        let value = |row: usize| {
            let z = self.score(beta, row);
            match self.error(z, row) {
                Some(error) => 0.5 * error * error,
                None => self.weight(row) * self.loss.value(z, self.is_positive(row)),
            }
        };
        (0..self.data.rows()).map(value).sum::<f64>() / self.data.rows() as f64
    }

    fn is_positive(&self, row: usize) -> bool {
        self.data.labels()[row] == self.positive
    }

    fn weight(&self, row: usize) -> f64 {
        self.weights[usize::from(self.is_positive(row))]
    }

    /// How far a score is from a numeric label.
    fn error(&self, z: f64, row: usize) -> Option<f64> {
        let label = self.data.labels()[row];
        self.scale.map(|scale| z - scale.deviations(label).get())
    }

    fn score(&self, beta: &[f64], row: usize) -> f64 {
        score(beta, self.data.row(row))
    }

    fn chunk(&self, beta: &[f64], rows: Range<usize>) -> Vec<f64> {
        let mut sum = vec![0.0; beta.len()];
        for row in rows {
            let z = self.score(beta, row);
            let error = self.error(z, row);
            let of_class = || self.weight(row) * self.loss.derivative(z, self.is_positive(row));
            let slope = error.unwrap_or_else(of_class);
            sum[0] += slope;
            let values = sum[1..].iter_mut().zip(self.data.row(row));
            values.for_each(|(sum, x)| *sum += slope * x);
        }
        sum
    }
}

impl GradientSource for ClearSource<'_> {
    type Error = Infallible;

    fn dimension(&self) -> usize {
        self.data.width() + 1
    }

    fn gradient(&mut self, beta: &[f64], batch: Batch) -> Result<Gradient, Infallible> {
        let share = batch.share(self.data.rows());
        let rows = share.len();
        let chunks: Vec<Vec<f64>> = (0..rows.div_ceil(CHUNK))
            .into_par_iter()
            .map(|chunk| {
                let start = share.start + chunk * CHUNK;
                self.chunk(beta, start..share.end.min(start + CHUNK))
            })
            .collect();
        let mut sum = vec![0.0; beta.len()];
        for chunk in chunks {
            sum.iter_mut().zip(chunk).for_each(|(s, c)| *s += c);
        }
        Ok(Gradient { sum, rows })
    }
}

/// β₀ + β·x.
pub fn score(beta: &[f64], row: &[f64]) -> f64 {
    beta[0] + beta[1..].iter().zip(row).map(|(b, x)| b * x).sum::<f64>()
}

/// Loss and optimisation of one training.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TrainConfig {
    /// The loss.
    pub loss: LossKind,
    /// The optimisation.
    pub settings: Settings,
}

impl TrainConfig {
    /// Logistic regression by L-BFGS with the penalty of scikit-learn's default, C = 1, on
    /// standardised columns.
    pub fn logistic() -> Self {
        Self {
            loss: LossKind::Logistic,
            settings: Settings::lbfgs(),
        }
    }
}

/// What a training came to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Fit {
    /// The coefficients on values in [0, 1], bias first.
    pub beta: Vec<f64>,
    /// How many gradients it took.
    pub iterations: u32,
    /// Why it ended.
    pub stop: Stop,
    /// Largest component of the last full mean gradient.
    pub gradient_norm: Option<f64>,
}

/// Trains class `positive` against the rest; with numeric labels it is of no importance, and the
/// model gives the place of a label between its bounds.
pub fn train(data: &Dataset, positive: u32, config: &TrainConfig) -> Result<Fit, TrainError> {
    train_observed(data, positive, config, |_| {})
}

/// [`train`] where rows of the rest (first) and of the positive class (second) count so much.
pub fn train_weighed(
    data: &Dataset,
    positive: u32,
    config: &TrainConfig,
    weights: [f64; 2],
) -> Result<Fit, TrainError> {
    train_with(data, positive, config, weights, |_| {})
}

/// [`train`], calling `observe` after every iteration.
pub fn train_observed(
    data: &Dataset,
    positive: u32,
    config: &TrainConfig,
    observe: impl FnMut(&Optimiser),
) -> Result<Fit, TrainError> {
    train_with(data, positive, config, [1.0; 2], observe)
}

fn train_with(
    data: &Dataset,
    positive: u32,
    config: &TrainConfig,
    weights: [f64; 2],
    mut observe: impl FnMut(&Optimiser),
) -> Result<Fit, TrainError> {
    let scale = match data.is_numeric() {
        true => Some(number_scale(data)?),
        false => {
            check_classes(data, positive)?;
            None
        }
    };
    let mut source = match scale {
        Some(scale) => ClearSource::numbers(data, scale),
        None => ClearSource::new(data, positive, config.loss).weighed(weights),
    };
    let scaling = match config.settings.method.standardises() {
        true => Scaling::of(data),
        false => Scaling::none(data.width()),
    };
    let basis = Basis {
        scaling,
        noise: 0.0,
    };
    let mut optimiser = Optimiser::on(basis, config.settings.clone(), source.dimension())?;
    let run = optimiser.run(&mut source, |o| {
        observe(o);
        ControlFlow::Continue(())
    });
    match run {
        Ok(stop) => Ok(Fit {
            beta: match scale {
                Some(scale) => scale.to_places(optimiser.beta()),
                None => optimiser.beta().to_vec(),
            },
            iterations: optimiser.iterations(),
            stop: stop.unwrap_or(Stop::Iterations),
            gradient_norm: optimiser.gradient_norm(),
        }),
        Err(RunError::Optimise(error)) => Err(error),
        Err(RunError::Source(never)) => match never {},
    }
}

/// Trains one model a class, each against the rest. Two classes need one model only: use
/// [`train`].
pub fn train_one_vs_rest(data: &Dataset, config: &TrainConfig) -> Result<Vec<Fit>, TrainError> {
    (0..data.classes().len() as u32)
        .map(|class| train(data, class, config))
        .collect()
}

fn number_scale(data: &Dataset) -> Result<TargetScale, TrainError> {
    match data.rows() {
        0 => Err(TrainError::NoRows),
        _ => TargetScale::of(data.labels()).ok_or(TrainError::OneNumber),
    }
}

fn check_classes(data: &Dataset, positive: u32) -> Result<(), TrainError> {
    if data.rows() == 0 {
        return Err(TrainError::NoRows);
    }
    let Some(name) = data.classes().get(positive as usize) else {
        return Err(TrainError::Class {
            class: positive,
            classes: data.classes().len(),
        });
    };
    let positives = data.labels().iter().filter(|&&l| l == positive).count();
    match positives == 0 || positives == data.rows() {
        true => Err(TrainError::OneClass(name.clone())),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples;

    #[test]
    fn the_gradient_is_the_slope_of_the_mean_loss() {
        let data = samples::noisy_line(2500, 3, 1);
        let beta = [0.2, -1.0, 0.5, 2.0];
        for loss in [LossKind::Logistic, LossKind::SquaredHinge, LossKind::Ridge] {
            let mut source = ClearSource::new(&data, 1, loss);
            let gradient = source.gradient(&beta, Batch::FULL).unwrap();
            for j in 0..beta.len() {
                let moved = |h: f64| {
                    let mut beta = beta;
                    beta[j] += h;
                    source.mean_loss(&beta)
                };
                let slope = (moved(1e-5) - moved(-1e-5)) / 2e-5;
                assert!((slope - gradient.sum[j] / 2500.0).abs() < 1e-6);
            }
        }
    }

    #[test]
    fn least_squares_on_a_number_is_the_solution_of_the_normal_equations() {
        let data = samples::noisy_number(300, 3, 5);
        let config = TrainConfig {
            loss: LossKind::Ridge,
            settings: Settings {
                tolerance: 1e-10,
                ..Settings::lbfgs()
            },
        };
        let fit = train(&data, 0, &config).unwrap();
        let expected = samples::ridge(&data, 1.0);
        for (found, exact) in fit.beta.iter().zip(&expected) {
            assert!((found - exact).abs() < 1e-7, "{:?} {expected:?}", fit.beta);
        }
        let same = vec![7; 300];
        let same = Dataset::new(
            data.features().to_vec(),
            data.values().to_vec(),
            same,
            vec![],
        );
        let same = train(&same.unwrap(), 0, &config);
        assert_eq!(same, Err(TrainError::OneNumber));
    }

    #[test]
    fn a_weight_of_two_is_the_row_twice() {
        let data = samples::noisy_line(200, 2, 6);
        let positives = (0..200).filter(|&row| data.labels()[row] == 1);
        let twice: Vec<usize> = (0..200).chain(positives).collect();
        let twice = data.select_rows(&twice);
        let beta = [0.2, 1.0, -0.5];
        let gradient = |source: &mut ClearSource<'_>| source.gradient(&beta, Batch::FULL).unwrap();
        let found =
            gradient(&mut ClearSource::new(&data, 1, LossKind::Logistic).weighed([1.0, 2.0]));
        let exact = gradient(&mut ClearSource::new(&twice, 1, LossKind::Logistic));
        for (found, exact) in found.sum.iter().zip(&exact.sum) {
            assert!((found - exact).abs() < 1e-9, "{found} {exact}");
        }
    }

    #[test]
    fn batches_add_up_to_the_whole() {
        let data = samples::noisy_line(3001, 2, 2);
        let mut source = ClearSource::new(&data, 1, LossKind::Logistic);
        let beta = [0.1, 1.0, -1.0];
        let whole = source.gradient(&beta, Batch::FULL).unwrap();
        let parts: Vec<_> = (0..7)
            .map(|i| source.gradient(&beta, Batch::new(i, 7)).unwrap())
            .collect();
        assert_eq!(parts.iter().map(|p| p.rows).sum::<usize>(), whole.rows);
        for j in 0..3 {
            let sum: f64 = parts.iter().map(|p| p.sum[j]).sum();
            assert!((sum - whole.sum[j]).abs() < 1e-9);
        }
    }

    #[test]
    fn the_result_does_not_depend_on_the_number_of_threads() {
        let data = samples::noisy_line(5000, 4, 3);
        let beta = [0.3, 1.0, -2.0, 0.7, 0.1];
        let with = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new()
                .num_threads(threads)
                .build()
                .unwrap();
            pool.install(|| {
                let mut source = ClearSource::new(&data, 1, LossKind::Logistic);
                source.gradient(&beta, Batch::FULL).unwrap().sum
            })
        };
        assert_eq!(with(1), with(3));
    }

    #[test]
    fn refuses_rows_that_teach_nothing() {
        let data = samples::noisy_line(50, 2, 4);
        let config = TrainConfig::logistic();
        let none = data.select_rows(&[]);
        assert_eq!(train(&none, 1, &config), Err(TrainError::NoRows));
        let ones: Vec<usize> = (0..50).filter(|&r| data.labels()[r] == 1).collect();
        let one_class = train(&data.select_rows(&ones), 1, &config);
        assert!(matches!(one_class, Err(TrainError::OneClass(_))));
        let absent = train(&data, 2, &config);
        assert!(matches!(absent, Err(TrainError::Class { class: 2, .. })));
    }

    #[test]
    fn one_vs_rest_trains_every_class() {
        let data = samples::three_classes(300);
        let fits = train_one_vs_rest(&data, &TrainConfig::logistic()).unwrap();
        assert_eq!(fits.len(), 3);
        let right = (0..data.rows()).filter(|&row| {
            let scores: Vec<f64> = fits.iter().map(|f| score(&f.beta, data.row(row))).collect();
            let best = (0..3)
                .max_by(|&a, &b| scores[a].total_cmp(&scores[b]))
                .unwrap();
            best as u32 == data.labels()[row]
        });
        assert!(right.count() > 270);
    }
}
