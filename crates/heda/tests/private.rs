//! Private jobs as an application runs them: what moments buy, and several classes.
#![allow(clippy::unwrap_used, reason = "a test that fails should say where")]

use heda::summary::ClassResult;
use heda::{
    Bundle, Coding, DataUser, Dataset, Job, Provider, Schema, Simulation, TableReader, Trained,
};
use heda_dp::gdp::Delta;
use heda_job::proposal::Privacy;
use heda_learn::model::Unit;
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

/// A private job of two providers about so many rows, or persons.
fn promised(schema: &Arc<Schema>, epsilon: &str, rows: u64) -> Job {
    let promise = Privacy::new(epsilon.parse().unwrap(), Delta::default_for(rows), rows);
    let job = Job::builder("shared", Arc::clone(schema)).private(promise.suited(schema));
    job.build().unwrap()
}

/// In one process as at a daemon: what one job has cost is missing for the next.
#[test]
fn a_private_budget_holds_for_all_private_jobs_of_a_provider() {
    let schema = Arc::new(Bundle::Bcwd.schema(Coding::Natural));
    let (data, _) = Bundle::Bcwd.table(Coding::Natural).unwrap();
    let rows = 560;
    let provider = |which: usize| {
        let own: Vec<usize> = (which..data.rows()).step_by(2).collect();
        let provider = Provider::from_rows(format!("{which}"), &schema, data.select_rows(&own));
        provider.with_private_budget("1".parse().unwrap(), Delta::default_for(rows))
    };
    let providers = [provider(0), provider(1)];
    let train = |epsilon: &str, seed: u64| {
        let job = promised(&schema, epsilon, rows);
        DataUser::danger_seeded(seed).train(&job, &providers, &mut heda::quiet)
    };
    train("0.8", 1).unwrap();
    let refused = train("0.8", 2).unwrap_err().to_string();
    assert!(
        refused.contains("privacy budget of these rows"),
        "{refused}"
    );
    let rest = train("0.3", 3).unwrap();
    let told = rest.summary.privacy.unwrap();
    assert!(told.charged <= Some(0.3), "{:?}", told.charged);
    assert!(train("0.6", 4).is_err(), "both are spent");
}

#[test]
fn persons_of_a_file_are_protected_in_one_process_too() {
    let folder = tempfile::tempdir().unwrap();
    let text = "format = 1\nname = \"w\"\nignore = [\"who\"]\n[label]\ncolumn = \"ill\"\n\
                classes = [\"no\", \"yes\"]\npositive = \"yes\"\n[[column]]\nname = \"age\"\n\
                kind = \"numeric\"\nbounds = [0, 120]\ntypical = { mean = 60, deviation = 20 }\n";
    let schema = Arc::new(Schema::parse(text, "w.toml").unwrap());
    let provider = |which: usize| {
        let mut rows = String::from("who,age,ill\n");
        for row in 0..300 {
            let age = 30 + (row * 7 + which) % 60;
            let ill = if age > 60 { "yes" } else { "no" };
            rows.push_str(&format!("P{},{age},{ill}\n", row / 3));
        }
        let path = folder.path().join(format!("{which}.csv"));
        std::fs::write(&path, rows).unwrap();
        Provider::from_file_of_persons(format!("{which}"), &schema, &path, "who")
    };
    let providers = [0, 1].map(|which| provider(which).unwrap().0);
    let job = promised(&schema, "5", 160);
    let trained = DataUser::danger_seeded(1).train(&job, &providers, &mut heda::quiet);
    let told = trained.unwrap().summary.privacy.unwrap();
    assert_eq!(told.unit, Unit::Person);
}
