//! Accuracies of models in clear, for the experiments that need no encryption.

use heda::failure::{Failure, Kind};
use heda_learn::data::Dataset;
use heda_learn::metrics::Confusion;
use heda_learn::oracle::{TrainConfig, score, train};

/// Share of test rows that these coefficients get right.
pub(super) fn share_right(beta: &[f64], test: &Dataset) -> Result<f64, Failure> {
    let pairs = (0..test.rows()).map(|row| {
        let positive = score(beta, test.row(row)) > 0.0;
        (test.labels()[row], u32::from(positive))
    });
    Confusion::new(test.classes().len(), pairs)
        .accuracy()
        .ok_or_else(|| Failure::input("no rows are held out"))
}

/// Share of test rows that the oracle gets right with these features only.
pub(super) fn oracle_accuracy(
    training: &Dataset,
    test: &Dataset,
    features: impl IntoIterator<Item = usize>,
) -> Result<f64, Failure> {
    let mut features: Vec<usize> = features.into_iter().collect();
    features.sort_unstable();
    let (training, test) = (
        training.select_features(&features),
        test.select_features(&features),
    );
    let config = TrainConfig::logistic(training.rows());
    let fit = train(&training, 1, &config).map_err(|e| Failure::new(Kind::Bug, e))?;
    share_right(&fit.beta, &test)
}
