//! Accuracies of models in clear, for the experiments that need no encryption.

use super::release::pay;
use heda::Error;
use heda_dp::account::Mechanism;
use heda_dp::column::ColumnSpec;
use heda_dp::epsilon::Epsilon;
use heda_dp::laplace;
use heda_learn::data::{Dataset, Feature};
use heda_learn::metrics::Confusion;
use heda_learn::oracle::{TrainConfig, score, train};
use rand_core::CryptoRng;

/// Share of test rows that these coefficients get right.
pub(super) fn share_right(beta: &[f64], test: &Dataset) -> Result<f64, Error> {
    let pairs = (0..test.rows()).map(|row| {
        let positive = score(beta, test.row(row)) > 0.0;
        (test.labels()[row], u32::from(positive))
    });
    Confusion::new(test.classes().len(), pairs)
        .accuracy()
        .ok_or_else(|| Error::input("no rows are held out"))
}

/// Share of test rows that the oracle gets right with these features only.
pub(super) fn oracle_accuracy(
    training: &Dataset,
    test: &Dataset,
    features: impl IntoIterator<Item = usize>,
) -> Result<f64, Error> {
    let mut features: Vec<usize> = features.into_iter().collect();
    features.sort_unstable();
    let (training, test) = (
        training.select_features(&features),
        test.select_features(&features),
    );
    let config = TrainConfig::logistic();
    let fit = train(&training, 1, &config).map_err(Error::bug)?;
    share_right(&fit.beta, &test)
}

/// Steps of the grid that numbers are published on.
const STEPS: u32 = 1 << 10;

/// The rows with every feature published, each at its ε: what a job whose features are all published
/// trains on. Labels stay as they are.
pub(super) fn published<R: CryptoRng>(
    data: &Dataset,
    parts: &[Epsilon],
    rng: &mut R,
) -> Result<Dataset, Error> {
    let bug = |e: &dyn std::fmt::Display| Error::bug(e.to_string());
    let features = data.features();
    let (specs, values): (Vec<_>, Vec<_>) = features.iter().map(|f| on_grid(data, f)).unzip();
    let prepared = laplace::prepare(&specs, &values).map_err(|e| bug(&e))?;
    let released = prepared
        .release(pay(Mechanism::Laplace, parts)?, rng)
        .map_err(|e| bug(&e))?;
    let mut noisy = vec![0.0; data.rows() * data.width()];
    for (feature, column) in features.iter().zip(released.columns()) {
        for (row, &value) in column.iter().enumerate() {
            match &mut noisy[row * data.width()..][feature.columns.clone()] {
                [cell] => *cell = f64::from(value) / f64::from(STEPS),
                levels => levels[value as usize] = 1.0,
            }
        }
    }
    let (labels, classes) = (data.labels().to_vec(), data.classes().to_vec());
    Dataset::new(features.to_vec(), noisy, labels, classes).map_err(|e| bug(&e))
}

/// The domain of a feature and its values there: a level by its number, anything else on the grid.
fn on_grid(data: &Dataset, feature: &Feature) -> (ColumnSpec, Vec<u32>) {
    let cells = (0..data.rows()).map(|row| &data.row(row)[feature.columns.clone()]);
    let count = feature.columns.len() as u32;
    if count == 1 {
        let point = |cells: &[f64]| (cells[0] * f64::from(STEPS)).round() as u32;
        return (
            ColumnSpec::Grid { steps: STEPS },
            cells.map(point).collect(),
        );
    }
    let level = |cells: &[f64]| cells.iter().position(|&v| v > 0.5).unwrap_or(0) as u32;
    (ColumnSpec::Levels { count }, cells.map(level).collect())
}
