use super::*;
use crate::engine::testing::schema;
use heda_dp::gdp::Delta;
use heda_learn::optimise::Method;
use serde_json::{Value, json};

fn raw() -> RawJob {
    RawJob::new("rows", &schema())
}

fn privacy() -> Privacy {
    Privacy::new("1".parse().unwrap(), Delta::new(1e-5).unwrap(), 1000)
}

fn made(change: impl FnOnce(&mut RawJob)) -> Result<Job, JobFault> {
    let mut raw = raw();
    change(&mut raw);
    raw.try_into()
}

fn fault(change: impl FnOnce(&mut RawJob)) -> String {
    made(change).unwrap_err().to_string()
}

fn number(raw: &mut RawJob) {
    raw.numeric = true;
    raw.positives = vec![0];
}

/// One of each task, with everything that it can state.
fn jobs() -> [Job; 3] {
    [
        made(|raw| {
            raw.protected = Protected::Named(vec!["x0".into()]);
            raw.spending = Some(Spending::Total("2".parse().unwrap()));
            raw.class_weight = Some(ClassWeight::Given(vec![0.5, 2.0]));
            raw.training.path = Some(PenaltyPath::usual());
        }),
        made(|raw| raw.privacy = Some(privacy())),
        made(number),
    ]
    .map(Result::unwrap)
}

#[test]
fn what_travels_is_the_job_and_has_its_digest() {
    for job in jobs() {
        let text = serde_json::to_string(&job).unwrap();
        let heard: Job = serde_json::from_str(&text).unwrap();
        assert_eq!(heard, job);
        assert_eq!(serde_json::to_string(&heard).unwrap(), text);
        assert_eq!(heard.digest().unwrap(), job.digest().unwrap());
        assert_eq!(job.with(|_| {}), Ok(job.clone()));
        let other = job.with(|raw| raw.held_out = 0.25).unwrap();
        assert_ne!(other.digest().unwrap(), job.digest().unwrap());
    }
}

#[test]
fn a_task_has_no_room_for_what_it_excludes() {
    let [exact, private, regression] = jobs().map(|job| serde_json::to_value(job).unwrap());
    let with = |job: &Value, task: &str, key: &str, value: Value| {
        let mut job = job.clone();
        job["task"][task][key] = value;
        serde_json::from_value::<Job>(job).map_err(|e| e.to_string())
    };
    let spending = json!({"total": "1"});
    assert!(with(&exact, "exact", "privacy", json!(null)).is_err());
    assert!(with(&private, "private", "spending", spending.clone()).is_err());
    assert!(with(&private, "private", "loss", json!("logistic")).is_err());
    assert!(
        with(
            &private,
            "private",
            "features",
            exact["task"]["exact"]["features"].clone()
        )
        .is_err()
    );
    assert!(with(&regression, "regression", "loss", json!("logistic")).is_err());
    assert!(with(&regression, "regression", "spending", spending).is_err());
    // What the types allow is looked at.
    let words = with(&private, "private", "positives", json!([0, 1, 2])).unwrap_err();
    assert!(words.contains("as many as its promise"), "{words}");
    let words = with(&exact, "exact", "positives", json!([3, 1, 3])).unwrap_err();
    assert!(
        words.contains("class is 3; it must be named once"),
        "{words}"
    );
    let mut share = exact;
    share["held_out"] = json!(0.95);
    let words = serde_json::from_value::<Job>(share)
        .unwrap_err()
        .to_string();
    assert!(words.contains("0.95; it must be 0 to 0.9"), "{words}");
}

#[test]
fn what_a_private_job_cannot_have_is_named_with_its_key() {
    let private = |change: fn(&mut RawJob)| {
        fault(|raw| {
            raw.privacy = Some(privacy());
            change(raw);
        })
    };
    for (change, key) in [
        (
            (|raw| raw.protected = Protected::Best(2)) as fn(&mut RawJob),
            "iota",
        ),
        (
            |raw| raw.protected = Protected::Named(Vec::new()),
            "encrypt",
        ),
        (
            |raw| raw.spending = Some(Spending::Total("1".parse().unwrap())),
            "epsilon",
        ),
        (
            |raw| {
                raw.ranking = Some(Ranking::Chosen {
                    method: Default::default(),
                })
            },
            "ranked_by",
        ),
        (|raw| raw.loss = Some(LossKind::Ridge), "loss"),
        (
            |raw| raw.class_weight = Some(ClassWeight::Balanced),
            "class_weight",
        ),
        (
            |raw| raw.training.path = Some(PenaltyPath::usual()),
            "penalty",
        ),
        (
            |raw| {
                raw.training.settings.method = Method::Nesterov {
                    rate: 1.0,
                    batches: 2,
                }
            },
            "batches",
        ),
    ] {
        let words = private(change);
        assert!(
            words.contains(&format!("does not go with `{key}`")),
            "{words}"
        );
    }
    let words = private(|raw| raw.privacy = raw.privacy.map(|p| Privacy { rows: 1 << 20, ..p }));
    assert!(words.contains("no protection"), "{words}");
    let words = private(number);
    assert!(words.contains("private jobs learn classes"), "{words}");
}

#[test]
fn numbers_have_one_bound() {
    for (words, part) in [
        (
            fault(|raw| raw.held_out = 0.95),
            "0.95; it must be 0 to 0.9",
        ),
        (
            fault(|raw| raw.training.settings.max_iterations = 0),
            "between 1 and 1000000",
        ),
        (
            fault(|raw| raw.training.settings.max_iterations = 1_000_001),
            "between 1 and 1000000",
        ),
        (
            fault(|raw| {
                raw.training.settings.max_iterations = 1_000_000;
                raw.positives = vec![0, 1];
            }),
            "over all models is 2000000",
        ),
        (fault(|raw| raw.training.settings.c = Some(0.0)), "above 0"),
        (
            fault(|raw| raw.training.settings.tolerance = f64::NAN),
            "from 0 upwards",
        ),
        (fault(|raw| raw.positives = Vec::new()), "1 to 256"),
        (
            fault(|raw| raw.data_set = String::new()),
            "1 to 100 characters",
        ),
        (
            fault(|raw| raw.protected = Protected::For(Goal::WithinSeconds(f64::NAN))),
            "above 0",
        ),
    ] {
        assert!(words.contains(part), "{words}");
    }
}

#[test]
fn a_schema_decides_which_names_there_are() {
    let checked = |change: fn(&mut RawJob)| {
        let job = made(change).unwrap();
        job.check_schema(&schema()).map_err(|e| e.to_string())
    };
    assert_eq!(checked(|_| {}), Ok(()));
    for (change, part) in [
        (
            (|raw| raw.protected = Protected::Best(5)) as fn(&mut RawJob),
            "choose 0 to 4",
        ),
        (
            |raw| raw.protected = Protected::Best(0),
            "nothing to train on",
        ),
        (
            |raw| raw.protected = Protected::Named(vec!["age".into()]),
            "no feature \"age\"",
        ),
        (
            |raw| raw.protected = Protected::Named(vec!["x0".into(); 2]),
            "named twice",
        ),
        (
            |raw| raw.class_weight = Some(ClassWeight::Given(vec![1.0])),
            "1 weights for 2",
        ),
        (|raw| raw.positives = vec![2], "class is 2"),
        (
            |raw| raw.schema = "other".into(),
            "the job is about schema other",
        ),
        (number, "a number"),
    ] {
        let words = checked(change).unwrap_err();
        assert!(words.contains(part), "{words}");
    }
}
