//! Private jobs as an application runs them: what moments buy, and several classes.
#![allow(clippy::unwrap_used, reason = "a test that fails should say where")]

use heda::summary::ClassResult;
use heda::{Bundle, Coding, Dataset, Job, Schema, Simulation, TableReader, Trained};
use heda_dp::gdp::Delta;
use heda_job::proposal::Privacy;
use std::path::Path;
use std::sync::Arc;

fn simulate(job: Job, data: &Dataset, seed: u64) -> Trained {
    let simulation = Simulation::new(job).providers(3).danger_seeded(seed);
    simulation.run(data, &mut heda::quiet).unwrap()
}

/// The bounds of this schema are wide and the rows are not: a twentieth of the promise, spent on where
/// they lie, is worth more than it costs.
#[test]
fn moments_are_worth_what_they_cost() {
    let schema = Arc::new(Bundle::Bcwd.schema(Coding::Natural));
    let (data, _) = Bundle::Bcwd.table(Coding::Natural).unwrap();
    let accuracy = |bought: bool| {
        let runs = (1..=8).map(|seed| {
            let promise = Privacy::new("1".parse().unwrap(), Delta::default_for(560), 560);
            let promise = match bought {
                true => promise.suited(&schema),
                false => promise,
            };
            let job = Job::builder("tumours", Arc::clone(&schema)).private(promise);
            let trained = simulate(job.build().unwrap(), &data, seed);
            trained.summary.privacy.unwrap().accuracy_in_clear.unwrap()
        });
        runs.sum::<f64>() / 8.0
    };
    let (with, without) = (accuracy(true), accuracy(false));
    assert!(with > 0.94 && with > without, "{with} {without}");
}

/// Car Evaluation with its four classes as they are.
fn four_classes() -> (Arc<Schema>, Dataset) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../datasets");
    let text = std::fs::read_to_string(folder.join("car.natural.toml")).unwrap();
    let lines = text.lines().filter(|line| !line.starts_with("positive"));
    let text = lines.collect::<Vec<_>>().join("\n");
    let schema = Schema::parse(&text, "car.toml").unwrap();
    let read = TableReader::new(&schema).read_file(&folder.join("car.csv"));
    let (data, _) = read.unwrap();
    (Arc::new(schema), data)
}

/// Models of all classes share one promise; with much of it they are as good as exact ones, with
/// little they are not, and the price is never more than was promised.
#[test]
fn several_classes_share_one_promise() {
    let (schema, data) = four_classes();
    let rows = data.rows() as u64 * 4 / 5;
    let exact = Job::builder("cars", Arc::clone(&schema)).build().unwrap();
    let exact = simulate(exact, &data, 1).summary.matrix.unwrap().accuracy;
    let private = |epsilon: &str| {
        let promise = Privacy::new(epsilon.parse().unwrap(), Delta::default_for(rows), rows);
        let promise = promise.suited(&schema);
        assert_eq!(promise.models.get(), 4);
        let job = Job::builder("cars", Arc::clone(&schema)).private(promise);
        let job = job.build().unwrap();
        let plan = job.plan().unwrap();
        let spent = plan.cost().epsilon(promise.delta).unwrap();
        assert!(spent <= promise.epsilon, "{spent}");
        assert!(plan.cost_of_counts().times(4) <= plan.cost());
        let trained = simulate(job, &data, 1);
        assert_eq!(trained.summary.iterations, 4 * plan.gradients());
        assert_eq!(trained.summary.by_class.len(), 4);
        let known = |result: &ClassResult| result.accuracy_interval.is_some();
        assert!(trained.summary.by_class.iter().all(known));
        let accuracy = trained.summary.matrix.unwrap().accuracy;
        // What all models get wrong together bounds what the highest score does.
        let overall = trained.summary.overall.unwrap();
        assert!(overall.confident <= accuracy, "{overall:?} {accuracy}");
        assert!(overall.confident <= overall.at_least);
        accuracy
    };
    let (much, little) = (private("20"), private("0.05"));
    assert!(much > exact - 0.05, "{much} for {exact}");
    assert!(little < much, "{little} for {much}");
}
