//! Three daemons and a data user as processes: the same model as in one process, whoever is
//! killed and whenever, and a ledger that says what left.
#![allow(clippy::unwrap_used, reason = "a test that fails should say where")]

mod parties;

use heda_crypto::random::Randomness;
use heda_learn::fixed::Precision;
use heda_learn::loss::LossKind;
use heda_learn::optimise::{Method, Settings};
use heda_learn::schema::Schema;
use heda_learn::table::TableReader;
use heda_train::job::{Choice, JobSpec, Quiet};
use heda_train::local::{self, LocalProvider, fresh_job_id};
use heda_train::proposal::{Engine, Ranking, Spending};
use parties::*;
use std::sync::Arc;

/// Scaled coefficients of a stored model.
fn coefficients(model: &serde_json::Value) -> Vec<f64> {
    let classifier = &model["classifiers"][0];
    let scaled = classifier["scaled"].as_array().unwrap();
    scaled.iter().map(|value| value.as_f64().unwrap()).collect()
}

/// The same job with all parties in this process.
fn in_process() -> Vec<f64> {
    let schema = Arc::new(Schema::parse(&schema_text(), "schema.toml").unwrap());
    let randomness = Randomness::seeded(SEED);
    let providers: Vec<LocalProvider> = HOSPITALS
        .iter()
        .enumerate()
        .map(|(place, name)| {
            let text = part_of(place);
            let reader = TableReader::new(&schema);
            let (rows, _) = reader.read_csv(text.as_bytes(), "part").unwrap();
            let seed = heda_train::fresh_row_seed(&randomness.party(name)).unwrap();
            let limit = "1.5".parse().unwrap();
            let accountant = heda_dp::account::Accountant::new(limit);
            let house = heda_train::house::OpenHouse::new(
                Arc::new(rows),
                Arc::clone(&schema),
                seed,
                accountant,
            );
            LocalProvider {
                name: (*name).to_owned(),
                house: Box::new(house),
            }
        })
        .collect();
    let spec = JobSpec {
        job: fresh_job_id(&randomness).unwrap(),
        dataset: "biopsies".into(),
        schema: Arc::clone(&schema),
        positives: vec![1],
        engine: Engine::Lookup,
        loss: LossKind::Logistic,
        precision: Precision::default(),
        settings: Settings {
            method: Method::Lbfgs { memory: 10 },
            l2: 0.01,
            tolerance: 1e-4,
            max_iterations: 8,
        },
        holdout_permille: 200,
        ranking: Ranking::Agreed {
            method: heda_learn::score::Method::KruskalWallis,
        },
        choice: Choice::Best(5),
        spending: Some(Spending::Total("1".parse().unwrap())),
        key_bits: 2048,
    };
    let run = local::run(&spec, &providers, &randomness, &mut Quiet, None, false).unwrap();
    let beta = &run.outcome.fits[0].beta;
    run.outcome.full_beta(&schema.features(), beta)
}

/// What left each house: one release of ε 1, and as many iterations as were answered.
fn one_release_everywhere(world: &World) {
    for place in 0..3 {
        let budget = world.budget(place);
        assert_eq!(budget["epsilon_spent"], "1", "{budget}");
        let releases = budget["releases"].as_array().unwrap();
        assert_eq!(releases.len(), 1, "{budget}");
        assert!(releases[0]["sha256"].is_string(), "{budget}");
    }
}

#[test]
fn processes_train_the_same_model_as_threads() {
    let world = World::new(&Wishes::default());
    let daemons = world.serve_all();
    let output = world.train("result", false);
    succeeded(&output);
    let summary: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(summary["providers"], 3);
    assert_eq!(summary["epsilon_total"], 1.0);
    assert!(summary["accuracy"].as_f64().unwrap() > 0.85, "{summary}");
    assert_eq!(coefficients(&world.model("result")), in_process());
    one_release_everywhere(&world);
    let status = world.status(0);
    assert_eq!(status["jobs"][0]["state"], "finished");
    assert_eq!(status["jobs"][0]["iterations"], summary["iterations"]);
    assert!(!world.root().join("result/checkpoint.json").exists());
    // The budget does not reach for another job.
    let again = world.train_another("again", SEED + 1);
    assert_eq!(again.status.code(), Some(3), "{}", words(&again));
    assert!(
        words(&again).contains("1 of 1.5 are spent"),
        "{}",
        words(&again)
    );
    one_release_everywhere(&world);
    for daemon in daemons {
        assert!(daemon.terminate().success());
    }
}

#[test]
fn a_daemon_killed_in_any_phase_comes_back_and_nothing_is_lost() {
    let expected = in_process();
    for phase in [
        "agree",
        "score",
        "publish",
        "encrypt",
        "train",
        "iteration 4",
        "evaluate",
    ] {
        let world = World::new(&Wishes::default());
        let mut daemons = world.serve_all();
        let mut killed = false;
        let output = world.train_watched("result", false, |line, _| {
            if !killed && line.starts_with(phase) {
                killed = true;
                daemons.remove(1).kill();
                daemons.insert(1, world.serve(1));
            }
        });
        succeeded(&output);
        assert!(killed, "{phase} was never reached");
        assert_eq!(coefficients(&world.model("result")), expected, "{phase}");
        one_release_everywhere(&world);
    }
}

#[test]
fn a_data_user_killed_at_any_time_resumes_to_the_same_model() {
    let expected = in_process();
    for phase in ["publish", "encrypt", "iteration 3", "evaluate"] {
        let world = World::new(&Wishes::default());
        let _daemons = world.serve_all();
        let killed = world.train_watched("result", false, |line, child| {
            if line.starts_with(phase) {
                child.kill().unwrap();
            }
        });
        assert_eq!(killed.status.code(), None);
        let fresh = world.train("result", false);
        assert_eq!(
            fresh.status.code(),
            Some(2),
            "an unfinished job is not overwritten"
        );
        succeeded(&world.train("result", true));
        assert_eq!(coefficients(&world.model("result")), expected, "{phase}");
        one_release_everywhere(&world);
    }
}

#[test]
fn a_provider_that_stops_in_good_order_lets_the_job_be_resumed() {
    let world = World::new(&Wishes::default());
    let mut daemons = world.serve_all();
    let mut stopped = false;
    let output = world.train_watched("result", false, |line, _| {
        if !stopped && line.starts_with("iteration 3") {
            stopped = true;
            assert!(daemons.remove(2).terminate().success());
            daemons.push(world.serve(2));
        }
    });
    succeeded(&output);
    assert!(words(&output).contains("is stopping"), "{}", words(&output));
    assert_eq!(coefficients(&world.model("result")), in_process());
}

#[test]
fn a_lost_provider_is_waited_for_then_named_and_left_behind_when_wished() {
    let world = World::new(&Wishes::default());
    world.change_job("loss_seconds = 60", "loss_seconds = 2");
    let mut daemons = world.serve_all();
    let output = world.train_watched("result", false, |line, _| {
        if daemons.len() == 3 && line.starts_with("iteration 3") {
            daemons.remove(2).kill();
        }
    });
    assert_eq!(output.status.code(), Some(5), "{}", words(&output));
    assert!(
        words(&output).contains("provider hospital-c was lost"),
        "{}",
        words(&output)
    );
    world.change_job("iota = 5", "on_loss = \"continue\"\niota = 5");
    let output = world.train("result", true);
    succeeded(&output);
    let summary: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(summary["providers_lost"], serde_json::json!(["hospital-c"]));
    assert_eq!(summary["providers"], 2);
    let notes = &world.model("result")["provenance"]["notes"];
    assert_eq!(notes["providers_lost"], "hospital-c");
    one_release_everywhere(&world);
}

#[test]
fn a_full_disk_at_the_data_user_leaves_the_last_checkpoint() {
    let world = World::new(&Wishes::default());
    let _daemons = world.serve_all();
    let script = format!(
        "trap '' XFSZ; ulimit -f 2; exec '{}' train university/job.toml --out result",
        env!("CARGO_BIN_EXE_heda")
    );
    let output = std::process::Command::new("bash")
        .args(["-c", &script])
        .current_dir(world.root())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(5), "{}", words(&output));
    assert!(
        words(&output).contains("cannot be written"),
        "{}",
        words(&output)
    );
    succeeded(&world.train("result", true));
    assert_eq!(coefficients(&world.model("result")), in_process());
    one_release_everywhere(&world);
}

#[test]
fn two_data_users_at_once_share_one_budget() {
    // Each job costs 1 of 1.5: at most one of them can be served.
    let world = World::new(&Wishes::default());
    let _daemons = world.serve_all();
    let outputs = std::thread::scope(|scope| {
        let world = &world;
        [("one", 21), ("two", 22)]
            .map(|(out, seed)| scope.spawn(move || world.train_another(out, seed)))
            .map(|thread| thread.join().unwrap())
    });
    for place in 0..3 {
        let spent = world.budget(place)["epsilon_spent"].clone();
        assert!(spent == "1" || spent == "0", "{spent}");
    }
    let codes = outputs.each_ref().map(|o| o.status.code().unwrap());
    assert!(codes.contains(&0) || codes == [3, 3], "{codes:?}");
    assert!(codes.iter().all(|code| [0, 3].contains(code)), "{codes:?}");
}
