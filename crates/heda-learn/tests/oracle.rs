//! The clear-text oracle against scikit-learn: the same coefficients, and the accuracy that is
//! known of the four data sets.

#![allow(clippy::unwrap_used)]

use heda_learn::bundled::{Bundle, Coding};
use heda_learn::data::Dataset;
use heda_learn::loss::LossKind;
use heda_learn::metrics::Summary;
use heda_learn::model::{Model, Provenance};
use heda_learn::optimise::{Optimiser, Settings, Stop};
use heda_learn::oracle::{ClearSource, TrainConfig, train};
use heda_learn::split::Split;
use std::ops::ControlFlow;

#[derive(serde::Deserialize)]
struct Reference {
    models: Vec<ReferenceModel>,
}

#[derive(serde::Deserialize)]
struct ReferenceModel {
    schema: String,
    loss: LossKind,
    rows: usize,
    beta: Vec<f64>,
}

fn load(name: &str) -> Dataset {
    let (bundle, coding) = name.split_once('.').unwrap();
    let bundle: Bundle = bundle.parse().unwrap();
    bundle.table(coding.parse().unwrap()).unwrap().0
}

/// `tools/reference/scikit_learn.py` wrote the file. Columns are in [0, 1] there, not in deviations.
#[test]
fn coefficients_are_those_of_scikit_learn() {
    let text = include_str!("reference/scikit_learn.json");
    let reference: Reference = serde_json::from_str(text).unwrap();
    assert_eq!(reference.models.len(), 18);
    for expected in reference.models {
        let data = load(&expected.schema);
        assert_eq!(data.rows(), expected.rows);
        let settings = Settings {
            tolerance: 1e-9,
            max_iterations: 5000,
            ..Settings::lbfgs()
        };
        let mut optimiser = Optimiser::new(settings, data.width() + 1).unwrap();
        let mut source = ClearSource::new(&data, 1, expected.loss);
        let run = optimiser.run(&mut source, |_| ControlFlow::Continue(()));
        assert_eq!(run.unwrap(), Some(Stop::Converged), "{}", expected.schema);
        assert_eq!(optimiser.beta().len(), expected.beta.len());
        for (found, wanted) in optimiser.beta().iter().zip(&expected.beta) {
            let apart = (found - wanted).abs();
            let (schema, loss) = (&expected.schema, expected.loss);
            assert!(
                apart < 1e-4 * (1.0 + wanted.abs()),
                "{schema}, {loss}: {found} {wanted}"
            );
        }
    }
}

/// Mean accuracy in percent over ten random 80/20 splits.
fn accuracy(bundle: Bundle, coding: Coding) -> Summary {
    let (data, _) = bundle.table(coding).unwrap();
    let accuracies: Vec<f64> = (0..10)
        .map(|repeat| {
            let split = Split::seeded(data.rows(), 0.2, 1, repeat);
            let part = data.select_rows(&split.train);
            let mut config = TrainConfig::logistic();
            config.settings.tolerance = 1e-4;
            let fit = train(&part, 1, &config).unwrap();
            let provenance = Provenance::default();
            let model = Model::new(
                LossKind::Logistic,
                bundle.schema(coding),
                &[fit.beta],
                provenance,
            );
            let evaluation = model.unwrap().evaluate(&data.select_rows(&split.test));
            100.0 * evaluation.accuracy.unwrap()
        })
        .collect();
    let summary = Summary::new(&accuracies).unwrap();
    println!(
        "{bundle} {coding}: {:.2} ± {:.2} %",
        summary.mean, summary.deviation
    );
    summary
}

/// Scikit-learn's accuracy in the paper's coding on standardised data, mean of ten random splits.
#[test]
fn accuracy_in_the_papers_coding_is_that_of_scikit_learn() {
    for (bundle, wanted) in [
        (Bundle::Bcwd, 96.64),
        (Bundle::Adult, 82.54),
        (Bundle::Crx, 85.07),
        (Bundle::Car, 72.02),
    ] {
        let found = accuracy(bundle, Coding::Paper).mean;
        assert!(
            (found - wanted).abs() <= 1.0,
            "{bundle}: {found} and {wanted}"
        );
    }
}

#[test]
fn the_natural_coding_does_better() {
    assert!(accuracy(Bundle::Car, Coding::Natural).mean >= 85.0);
    assert!(accuracy(Bundle::Adult, Coding::Natural).mean >= 84.0);
}
