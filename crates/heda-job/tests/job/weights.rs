//! Classes that count more or less than others: by their number over all providers, or as given.

use super::{TWO, encrypted, lbfgs, message, rows, run_with, spec, with};
use heda_crypto::random::Randomness;
use heda_job::description::Share;
use heda_job::job::{JobSpec, Outcome, Quiet};
use heda_job::local::Parts;
use heda_job::proposal::ClassWeight;
use heda_learn::data::Dataset;
use heda_learn::oracle::{TrainConfig, score, train_weighed};

const THREE: [&str; 3] = ["a", "b", "c"];

/// Few rows of the positive class, and noise: without weights the model names the other one.
fn parts() -> Vec<Dataset> {
    let part = |(count, seed)| {
        let data = rows(count, &TWO, seed);
        let labels = data.row_labels();
        let (features, values) = (data.features().to_vec(), data.values().to_vec());
        Dataset::new(features, values, labels, data.classes().to_vec()).unwrap()
    };
    [(400, 1), (500, 2)].map(part).to_vec()
}

trait Rare {
    fn row_labels(&self) -> Vec<u32>;
}

impl Rare for Dataset {
    /// One in four of the rows beyond the middle is positive.
    fn row_labels(&self) -> Vec<u32> {
        let rows = 0..self.rows();
        rows.map(|row| u32::from(self.row(row)[0] > 0.5 && row % 4 == 0))
            .collect()
    }
}

fn weighed(weight: Option<ClassWeight>) -> JobSpec {
    with(&encrypted(&spec(&TWO, lbfgs(14))), |raw| {
        raw.class_weight = weight;
    })
}

fn named_positive(outcome: &Outcome, parts: &[Dataset]) -> usize {
    let beta = &outcome.fits[0].beta;
    let rows = parts
        .iter()
        .flat_map(|part| (0..part.rows()).map(move |row| part.row(row)));
    rows.filter(|row| score(beta, row) > 0.0).count()
}

/// The clear optimum of the weighed loss.
fn in_clear(parts: &[Dataset], weights: [f64; 2]) -> Vec<f64> {
    let parts = Parts::new(parts.to_vec(), &Randomness::seeded(5)).unwrap();
    let (training, _) = parts.rows(Share::USUAL);
    let values = training.iter().flat_map(|part| part.values().to_vec());
    let labels = training.iter().flat_map(|part| part.labels().to_vec());
    let (features, classes) = (
        training[0].features().to_vec(),
        training[0].classes().to_vec(),
    );
    let rows = Dataset::new(features, values.collect(), labels.collect(), classes).unwrap();
    let fit = train_weighed(&rows, 1, &TrainConfig::logistic(), weights);
    fit.unwrap().beta
}

#[test]
fn balanced_classes_are_found_and_the_counts_are_told() {
    let parts = parts();
    let alike = run_with(&weighed(None), parts.clone(), &mut Quiet, None).unwrap();
    let balanced = weighed(Some(ClassWeight::Balanced));
    let balanced = run_with(&balanced, parts.clone(), &mut Quiet, None).unwrap();
    let few = named_positive(&alike, &parts);
    assert!(few < 50, "rare rows are given up: {few}");
    assert!(named_positive(&balanced, &parts) > 300);
    assert_eq!(alike.revealed.moment_numbers, 6);
    assert_eq!(
        balanced.revealed.moment_numbers,
        6 + 2,
        "rows of each class"
    );
    let labels = parts.iter().flat_map(|part| part.labels().to_vec());
    let share = labels.clone().sum::<u32>() as f64 / labels.count() as f64;
    let exact = in_clear(&parts, [0.5 / (1.0 - share), 0.5 / share]);
    for (found, exact) in balanced.fits[0].beta.iter().zip(exact) {
        assert!((found - exact).abs() < 0.5, "{found} {exact}");
    }
}

#[test]
fn given_weights_are_those_of_the_clear_optimum() {
    let parts = parts();
    let given = weighed(Some(ClassWeight::Given(vec![0.5, 4.0])));
    let outcome = run_with(&given, parts.clone(), &mut Quiet, None).unwrap();
    assert_eq!(outcome.revealed.moment_numbers, 6, "nothing is counted");
    let exact = in_clear(&parts, [0.5, 4.0]);
    for (found, exact) in outcome.fits[0].beta.iter().zip(exact) {
        assert!((found - exact).abs() < 0.5, "{found} {exact}");
    }
}

#[test]
fn weights_that_do_not_fit_are_refused_in_words() {
    let odd = weighed(Some(ClassWeight::Given(vec![1.0; THREE.len()])));
    let words = message(run_with(&odd, parts(), &mut Quiet, None));
    assert!(words.contains("3 weights for 2 classes"), "{words}");
    let balanced = weighed(Some(ClassWeight::Balanced));
    let descent = balanced.with(|raw| {
        raw.training.settings.method = heda_learn::optimise::Method::Nesterov {
            rate: 0.1,
            batches: 1,
        };
    });
    let words = descent.unwrap_err().to_string();
    assert!(words.contains("the optimiser lbfgs"), "{words}");
}

/// A hospital with controls only: sums are over all providers, so no provider needs both classes.
#[test]
fn a_provider_with_rows_of_one_class_takes_part() {
    let whole = rows(300, &TWO, 1);
    let of_class = |class| {
        let rows = (0..whole.rows()).filter(|&row| whole.labels()[row] == class);
        whole.select_rows(&rows.collect::<Vec<_>>())
    };
    let parts = vec![of_class(0), of_class(1), rows(100, &TWO, 2)];
    let balanced = weighed(Some(ClassWeight::Balanced));
    run_with(&balanced, parts.clone(), &mut Quiet, None).unwrap();
    let found = run_with(&weighed(None), parts.clone(), &mut Quiet, None).unwrap();
    let exact = in_clear(&parts, [1.0, 1.0]);
    for (found, exact) in found.fits[0].beta.iter().zip(exact) {
        assert!((found - exact).abs() < 0.5, "{found} {exact}");
    }
}
