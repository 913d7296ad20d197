//! What a job asks for by its description, and what is public about rows of a schema.

use super::*;
use heda_job::description::{Job, Protected, RawJob, Share};
use heda_job::proposal::Spending;
use heda_learn::partition::Goal;
use heda_learn::schema::Schema;

/// The same columns as [`facts`] has.
fn schema() -> Schema {
    let text = r#"
        format = 1
        name = "wards"
        [label]
        column = "ill"
        classes = ["no", "yes"]
        positive = "yes"
        [[column]]
        name = "age"
        kind = "numeric"
        bounds = [0, 100]
        [[column]]
        name = "ward"
        kind = "categorical"
        levels = ["p", "q", "r", "s"]
        [[column]]
        name = "marker"
        kind = "numeric"
        bounds = [0, 1]
    "#;
    Schema::parse(text, "wards.toml").unwrap()
}

fn asked(change: impl FnOnce(&mut RawJob)) -> JobRequest {
    let mut raw = RawJob::new("ward", &schema());
    change(&mut raw);
    let job: Job = raw.try_into().unwrap();
    JobRequest::of(("job-1".into(), &job), &facts(), true, Vec::new())
}

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

#[test]
fn what_is_published_follows_from_what_is_encrypted_and_may_be_spent() {
    let spending = || Some(Spending::Total("1.5".parse().unwrap()));
    let all = facts().features;
    let one = || Protected::Named(names(&["ward"]));
    let goal = Protected::For(Goal::WithinSeconds(60.0));
    for (protected, spending, features, published) in [
        (one(), None, &names(&["ward"]), Published::Any(0)),
        (
            one(),
            spending(),
            &all,
            Published::Named(names(&["age", "marker"])),
        ),
        (Protected::All, spending(), &all, Published::Any(0)),
        (Protected::Best(1), None, &all, Published::Any(0)),
        (Protected::Best(1), spending(), &all, Published::Any(2)),
        (goal, spending(), &all, Published::Any(3)),
    ] {
        let what = format!("{protected:?} {spending:?}");
        let epsilon = spending.as_ref().map(|_| "1.5".parse().unwrap());
        let request = asked(|raw| {
            raw.protected = protected;
            raw.spending = spending;
        });
        assert_eq!(request.published, published, "{what}");
        assert_eq!(&request.features, features, "{what}");
        assert_eq!(request.epsilon, epsilon, "{what}");
        assert!(request.scored && request.privacy.is_none());
    }
    let automatic = asked(|raw| {
        raw.protected = Protected::Best(1);
        raw.spending = Some(Spending::Automatic);
    });
    assert_eq!(
        (automatic.epsilon, automatic.published),
        (None, Published::Any(2))
    );
}

#[test]
fn a_private_job_asks_for_the_gradients_of_its_plan() {
    let privacy = Privacy::new("1".parse().unwrap(), "1e-5".parse().unwrap(), 1500);
    let request = asked(|raw| raw.privacy = Some(privacy));
    // One column each for two numbers, four for the levels, and the bias.
    let plan = privacy.plan(7).unwrap();
    assert_eq!(facts().plan(&privacy).unwrap(), plan);
    assert_eq!(request.iterations, u64::from(plan.all_gradients()));
    assert_eq!(request.privacy, Some(privacy));
    assert_eq!((request.batch_rows, request.epsilon), (Some(500), None));
}

#[test]
fn rows_of_a_schema_are_held_out_or_train() {
    let schema = schema();
    let facts = DataFacts::of_schema(&schema, 103, Share::USUAL);
    assert_eq!((facts.training_rows, facts.held_out), (83, Some(20)));
    let expected = DataFacts {
        schema: schema.fingerprint().to_string(),
        training_rows: 83,
        held_out: Some(20),
        unstated: facts.unstated,
        ..super::facts()
    };
    assert_eq!(facts, expected);
    let all = DataFacts::of_schema(&schema, 103, Share::NONE);
    assert_eq!((all.training_rows, all.held_out), (103, None));
}
