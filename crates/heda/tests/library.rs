//! The library as an application uses it: a job, providers with budgets, a model.
#![allow(clippy::unwrap_used, reason = "a test that fails should say where")]

use heda::{Bundle, Coding, DataUser, Dataset, Job, Provider, Schema, Trained};
use heda::{Error, ErrorKind};
use std::sync::Arc;

fn schema() -> Arc<Schema> {
    Arc::new(Bundle::Bcwd.schema(Coding::Natural))
}

/// Every third row of a data set.
fn part(which: usize) -> Dataset {
    let (rows, _) = Bundle::Bcwd.table(Coding::Natural).unwrap();
    let chosen: Vec<usize> = (which..rows.rows()).step_by(3).collect();
    rows.select_rows(&chosen)
}

fn providers(budget: Option<&str>) -> Vec<Provider> {
    let provider = |which| {
        let provider = Provider::from_rows(format!("bank-{which}"), &schema(), part(which));
        match budget {
            Some(budget) => provider.with_budget(budget.parse().unwrap()),
            None => provider,
        }
    };
    (0..3).map(provider).collect()
}

fn publishing() -> Job {
    let job = Job::builder("tumours", schema())
        .encrypt_best(3)
        .iterations(5);
    job.publish_rest("6".parse().unwrap()).build().unwrap()
}

fn train(job: &Job, providers: &[Provider], seed: u64) -> Result<Trained, Error> {
    DataUser::danger_seeded(seed).train(job, providers, &mut heda::quiet)
}

#[test]
fn a_job_leaves_a_model_and_says_who_learned_what() {
    let job = Job::builder("tumours", schema())
        .encrypt_best(4)
        .iterations(20);
    let job = job.build().unwrap();
    let trained = train(&job, &providers(None), 7).unwrap();
    let summary = &trained.summary;
    assert!(summary.accuracy > Some(0.92), "{:?}", summary.accuracy);
    assert_eq!(
        (summary.providers, summary.iota, summary.features),
        (3, 4, 9)
    );
    assert_eq!(summary.epsilon_total, None);
    assert!(
        summary
            .who_learned()
            .contains("The data user learned the model;")
    );
    // What is left out has no weight; the schema is whole.
    let weights = &trained.model.classifiers()[0].scaled;
    assert_eq!(weights.len(), 10);
    assert_eq!(weights.iter().filter(|weight| **weight == 0.0).count(), 5);
    // The same seed, the same model.
    let again = train(&job, &providers(None), 7).unwrap();
    assert_eq!(again.model.to_json(), trained.model.to_json());
    let other = train(&job, &providers(None), 8).unwrap();
    assert_ne!(other.model.to_json(), trained.model.to_json());
}

#[test]
fn a_budget_holds_for_all_jobs_of_a_provider() {
    let banks = providers(Some("10"));
    let first = train(&publishing(), &banks, 1).unwrap();
    let spent = first.summary.epsilon_total.unwrap();
    assert!((5.99..=6.0).contains(&spent), "{spent}");
    let second = train(&publishing(), &banks, 2).unwrap_err();
    assert!(second.to_string().contains("there is 4"), "{second}");
    // Nothing to pay, nothing to refuse.
    let closed = Job::builder("tumours", schema()).iterations(2).build();
    assert!(train(&closed.unwrap(), &banks, 3).is_ok());
}

#[test]
fn a_provider_without_a_budget_publishes_nothing() {
    let refused = train(&publishing(), &providers(None), 1).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Peer);
    assert!(refused.to_string().contains("no budget"), "{refused}");
}

#[test]
fn files_are_written_whole() {
    let folder = tempfile::tempdir().unwrap();
    let job = Job::builder("tumours", schema()).iterations(2).build();
    let mut trained = train(&job.unwrap(), &providers(None), 1).unwrap();
    trained.write(folder.path(), "my-program --now").unwrap();
    let page = std::fs::read_to_string(folder.path().join("report.html")).unwrap();
    assert!(page.contains("my-program --now"));
    let model = std::fs::read_to_string(folder.path().join("model.json")).unwrap();
    assert_eq!(model, trained.model.to_json());
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2);
}

#[test]
fn a_job_that_nobody_could_do_is_not_built() {
    let begun = || Job::builder("tumours", schema());
    let twice = begun().encrypt_named(["mitoses", "mitoses"]);
    for (builder, words) in [
        (begun().encrypt_best(10), "iota is 10, but there are 9"),
        (begun().encrypt_named(["age"]), "no feature \"age\""),
        (twice, "named twice"),
        (begun().encrypt_best(0), "give an epsilon to publish them"),
        (begun().hold_out(0.95), "0.95; it must be 0 to 0.9"),
        (begun().iterations(0), "between 1 and 1000000"),
        (begun().penalty(0.0), "choose a number above 0"),
        (begun().penalty(f64::NAN), "choose a number above 0"),
    ] {
        let found = builder.build().unwrap_err().to_string();
        assert!(found.contains(words), "{found}");
    }
    let named = begun().encrypt_named(["mitoses"]).build().unwrap();
    let trained = train(&named, &providers(None), 1).unwrap();
    assert_eq!(trained.summary.ranked_by, "the job file");
}
