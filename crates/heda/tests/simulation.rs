//! A job in one process on rows in memory: what comes out, and that it can be watched and stopped.

#![allow(clippy::unwrap_used)]

use heda::ErrorKind;
use heda::{ClassWeight, Job, PenaltyPath, Progress, Schema, Simulation, TableReader};
use std::ops::ControlFlow;
use std::sync::Arc;

const SCHEMA: &str = r#"
format = 1
name = "flowers"

[label]
column = "kind"
classes = ["round", "long", "flat"]

[[column]]
name = "length"
kind = "numeric"
bounds = [0, 10]

[[column]]
name = "width"
kind = "numeric"
bounds = [0, 10]
"#;

/// Three kinds that lie apart.
fn rows() -> (Arc<Schema>, heda::Dataset) {
    let schema = Arc::new(Schema::parse(SCHEMA, "flowers.toml").unwrap());
    let row = |i: usize| {
        let part = (i * 7 % 10) as f64 / 10.0;
        match i % 3 {
            0 => format!("{},{},round\n", 1.0 + part, 1.0 + part / 2.0),
            1 => format!("{},{},long\n", 8.0 + part, 1.0 + part),
            _ => format!("{},{},flat\n", 1.0 + part / 3.0, 8.0 + part),
        }
    };
    let text: String = (0..240).map(row).collect();
    let text = format!("length,width,kind\n{text}");
    let read = TableReader::new(&schema).read_csv(text.as_bytes(), "rows");
    let data = read.unwrap().0;
    (schema, data)
}

#[test]
fn more_than_two_classes_are_compared_with_training_in_clear() {
    let (schema, data) = rows();
    let job = Job::builder("flowers", schema).build().unwrap();
    let simulation = Simulation::new(job).providers(2).danger_seeded(5);
    let trained = simulation.run(&data, &mut heda::quiet).unwrap();
    let summary = &trained.summary;
    assert_eq!(summary.plain_accuracy, Some(1.0));
    assert!(summary.majority_accuracy.is_some_and(|share| share < 0.5));
    assert_eq!((summary.rows, summary.held_out), (192, 48));
    // The model under encryption says the same of every row as its makers know.
    let (_, held_out) = simulation.rows(&data).unwrap();
    let evaluation = trained.model.evaluate(&held_out);
    assert_eq!(evaluation.accuracy, Some(1.0));
    let matrix = summary.matrix.as_ref().unwrap();
    assert_eq!(matrix.accuracy, 1.0);
    let rows: u64 = matrix.counts.iter().flatten().sum();
    assert_eq!(rows, 48);
    assert!((0..3).all(|class| matrix.counts[class][class] > 0));
    let text = summary.text();
    let said = "counted in clear: nobody in a real job would see it";
    let text_in_line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text_in_line.contains(said), "{text}");
    assert!(text.contains("actual \\ predicted"), "{text}");
    // Nothing was wrong with any class, which is worth a warning.
    assert!(summary.warnings.iter().any(|w| w.contains("separable")));
}

#[test]
fn whoever_watches_can_stop() {
    let (schema, data) = rows();
    let job = Job::builder("flowers", schema).build().unwrap();
    let mut seen = Vec::new();
    let mut watch = |progress| match progress {
        Progress::Iteration { done, .. } => {
            seen.push(done);
            match done {
                3 => ControlFlow::Break(()),
                _ => ControlFlow::Continue(()),
            }
        }
        _ => ControlFlow::Continue(()),
    };
    let failure = Simulation::new(job).run(&data, &mut watch).unwrap_err();
    assert_eq!(failure.kind(), ErrorKind::Resumable);
    assert_eq!(seen, [1, 2, 3]);
}

#[test]
fn rows_that_cannot_be_divided_are_refused() {
    let (schema, data) = rows();
    let job = Job::builder("flowers", schema).build().unwrap();
    let words = |providers, rows: &heda::Dataset| {
        let simulation = Simulation::new(job.clone()).providers(providers);
        let failure = simulation.run(rows, &mut heda::quiet).unwrap_err();
        assert_eq!(failure.kind(), ErrorKind::Input);
        failure.to_string()
    };
    assert!(words(0, &data).contains("choose 1 to 24"));
    assert!(words(25, &data).contains("choose 1 to 24"));
    // Three rows leave none to hold out, nine a single one: a provider would refuse them.
    for count in [1, 3, 9] {
        let few = data.select_rows(&(0..count).collect::<Vec<_>>());
        assert!(words(1, &few).contains("too few"), "{count} rows");
    }
}

#[test]
fn classes_can_be_balanced_or_weighed() {
    let (schema, data) = rows();
    // Few flat ones, which lie among the others.
    let kept = (0..data.rows()).filter(|row| row % 3 != 2 || row % 30 == 2);
    let data = data.select_rows(&kept.collect::<Vec<_>>());
    let run = |weight: Option<ClassWeight>| {
        let job = Job::builder("flowers", Arc::clone(&schema)).class_weight(weight);
        let simulation = Simulation::new(job.build().unwrap()).providers(2);
        let trained = simulation
            .danger_seeded(5)
            .run(&data, &mut heda::quiet)
            .unwrap();
        // Between the flat ones and the round ones.
        trained.model.predict(&[0.13, 0.5]).scores[2]
    };
    let alike = run(None);
    let balanced = run(Some(ClassWeight::Balanced));
    let weighed = run(Some(ClassWeight::Given(vec![1.0, 1.0, 10.0])));
    assert!(
        balanced > alike && weighed > alike,
        "{alike} {balanced} {weighed}"
    );
    let odd = Job::builder("flowers", Arc::clone(&schema));
    let odd = odd.class_weight(ClassWeight::Given(vec![1.0])).build();
    assert!(odd.unwrap_err().to_string().contains("1 weights for 3"));
}

/// A penalty that is chosen is told with the others, in words and in the model file; controls
/// are counted on the rows that the result is counted on.
#[test]
fn a_chosen_penalty_is_told_with_what_the_others_came_to() {
    let (schema, data) = rows();
    let job = Job::builder("flowers", schema).choose_penalty(PenaltyPath::usual());
    let job = job.iterations(6).build().unwrap();
    assert_eq!((job.iterations(), job.gradients()), (6, 5 * 6));
    let simulation = Simulation::new(job).providers(2).danger_seeded(5);
    let trained = simulation.run(&data, &mut heda::quiet).unwrap();
    let summary = &trained.summary;
    let choice = summary.chosen_penalty.as_ref().unwrap();
    assert_eq!((choice.rows, summary.held_out), (24, 24));
    assert_eq!(summary.iterations, 3 * 30);
    let counts = &summary.matrix.as_ref().unwrap().counts;
    assert_eq!(counts.iter().flatten().sum::<u64>(), 24);
    let best = choice.tried[choice.chosen];
    assert!(choice.tried.iter().all(|tried| tried.right <= best.right));
    let c = best.c;
    let words = format!("C = {c} on standardised features, chosen of 5 by 24 other held-out rows");
    assert_eq!(summary.penalty, words);
    let notes = &trained.model.provenance().notes;
    assert!(
        notes["penalties_tried"].starts_with("C = 0.01: "),
        "{notes:?}"
    );
    let given = simulation_of_defaults()
        .run(&data, &mut heda::quiet)
        .unwrap();
    assert!(given.summary.chosen_penalty.is_none());
}

fn simulation_of_defaults() -> Simulation {
    let job = Job::builder("flowers", rows().0).iterations(3).build();
    Simulation::new(job.unwrap()).providers(2).danger_seeded(5)
}

/// What no penalty can be chosen for is refused, with what would do.
#[test]
fn a_penalty_is_not_chosen_without_rows_or_with_a_promise() {
    let (schema, _) = rows();
    let auto = || {
        let job = Job::builder("flowers", Arc::clone(&schema));
        job.choose_penalty(PenaltyPath::usual())
    };
    let words = auto().hold_out(0.0).build().unwrap_err().to_string();
    assert!(words.contains("rows held out to choose by"), "{words}");
    let private = auto()
        .private_within("1".parse().unwrap(), None, 1000)
        .unwrap();
    let words = private.build().unwrap_err().to_string();
    assert!(words.contains("every try would cost budget"), "{words}");
}
