//! Three daemons and a data user as processes: the same model as in one process, whoever is
//! killed and whenever, and a ledger that says what left.
#![allow(clippy::unwrap_used, reason = "a test that fails should say where")]

mod parties;
mod result;

use heda_crypto::random::Randomness;
use heda_job::description::{Protected, RawJob, Training};
use heda_job::job::{JobSpec, Quiet};
use heda_job::local::{self, LocalProvider, fresh_job_id};
use heda_job::proposal::Spending;
use heda_learn::optimise::{Method, Settings};
use heda_learn::schema::Schema;
use heda_learn::table::TableReader;
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
            let seed = heda_job::RowSeed::fresh(&randomness.party(name)).unwrap();
            let limit = "1.5".parse().unwrap();
            let accountant = heda_dp::account::Accountant::new(limit);
            let guard = heda_job::guard::LocalGuard::new(
                Arc::new(rows),
                Arc::clone(&schema),
                seed,
                accountant,
            );
            LocalProvider {
                name: (*name).to_owned(),
                guard: Box::new(guard),
            }
        })
        .collect();
    let raw = RawJob {
        training: Training {
            settings: Settings {
                method: Method::Lbfgs { memory: 10 },
                c: Some(1.0),
                tolerance: 1e-4,
                max_iterations: 8,
            },
            ..Training::usual(&schema)
        },
        protected: Protected::Best(5),
        spending: Some(Spending::Total("1".parse().unwrap())),
        ..RawJob::new("biopsies", &schema)
    };
    let id = fresh_job_id(&randomness).unwrap();
    let spec = JobSpec::new(id, raw.try_into().unwrap(), Arc::clone(&schema));
    let run = local::run(&spec, &providers, &randomness, &mut Quiet, None, false).unwrap();
    let beta = &run.outcome.fits[0].beta;
    run.outcome.full_beta(&schema.features(), beta)
}

/// What left each provider: one release of ε 1, and as many iterations as were answered.
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
    let summary = result::checked(&output.stdout);
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

/// Iterations and evaluations that a hospital has let go, by its ledger.
fn let_go(world: &World, place: usize) -> (u64, u64) {
    let status = world.status(place);
    let jobs = status["jobs"].as_array().unwrap();
    assert_eq!(jobs.len(), 1, "{status}");
    let count = |name: &str| jobs[0][name].as_u64().unwrap();
    (count("iterations"), count("evaluations"))
}

/// Kills hospital b in a phase, starts it again, and looks at the model and the ledgers.
fn kill_in(phase: &str, expected: &[f64]) {
    let world = World::new(&Wishes::default());
    let mut daemons = world.serve_all();
    world.slow_line_to(1);
    let mut after: Option<Vec<String>> = None;
    let output = world.train_watched("result", false, |line, _| match &mut after {
        None if line.starts_with(phase) => {
            daemons.remove(1).kill();
            daemons.insert(1, world.serve(1));
            after = Some(Vec::new());
        }
        None => {}
        Some(lines) => lines.push(line.to_owned()),
    });
    succeeded(&output);
    let after = after.expect("the phase was reached");
    // Rows that were on the way when the daemon died still arrive, so training may be announced.
    let arrived = usize::from(phase == "encrypt" && after[0] == "train");
    assert!(
        after[arrived].starts_with("lost hospital-b"),
        "killed in {phase}, not later: {after:?}"
    );
    assert_eq!(coefficients(&world.model("result")), expected, "{phase}");
    one_release_everywhere(&world);
    // What was under way when the connection broke was let go once more, and nothing else.
    let summary = result::checked(&output.stdout);
    let iterations = summary["iterations"].as_u64().unwrap();
    let (again, evaluated_again) = match phase {
        "encrypt" | "train" | "iteration 4" => (1, 0),
        "evaluate" => (0, 1),
        _ => (0, 0),
    };
    for place in 0..3 {
        let (counted, evaluated) = let_go(&world, place);
        assert!(
            (iterations..=iterations + again).contains(&counted),
            "{phase}: {counted}"
        );
        assert!(
            (1..=1 + evaluated_again).contains(&evaluated),
            "{phase}: {evaluated}"
        );
    }
}

#[test]
fn a_daemon_killed_in_any_phase_comes_back_and_nothing_is_lost() {
    let expected = in_process();
    let phases = [
        "agree",
        "score",
        "publish",
        "encrypt",
        "train",
        "iteration 4",
        "evaluate",
    ];
    // Mostly waiting for the slow line, so several at once.
    for some in phases.chunks(4) {
        std::thread::scope(|scope| {
            let expected = &expected;
            for phase in some {
                scope.spawn(move || kill_in(phase, expected));
            }
        });
    }
}

#[test]
fn a_data_user_killed_at_any_time_resumes_to_the_same_model() {
    let expected = in_process();
    let phases = [
        "agree",
        "score",
        "publish",
        "encrypt",
        "train",
        "iteration 3",
        "evaluate",
    ];
    for phase in phases {
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
fn a_lost_provider_is_waited_for_and_named_and_nobody_goes_on_without_it_too_late() {
    let world = World::new(&Wishes::default());
    world.change_job("loss_seconds = 60", "loss_seconds = 2");
    world.change_job("iota = 5", "on_loss = \"continue\"\niota = 5");
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
    daemons.push(world.serve(2));
    succeeded(&world.train("result", true));
    assert_eq!(coefficients(&world.model("result")), in_process());
    one_release_everywhere(&world);
}

#[test]
fn a_provider_that_is_lost_before_anything_left_is_left_behind_when_wished() {
    let world = World::new(&Wishes::default());
    world.change_job("loss_seconds = 60", "loss_seconds = 2");
    world.change_job("iota = 5", "on_loss = \"continue\"\niota = 5");
    let _daemons = [world.serve(0), world.serve(1)];
    let lost = world.serve(2);
    lost.kill();
    let output = world.train("result", false);
    succeeded(&output);
    let summary = result::checked(&output.stdout);
    assert_eq!(summary["providers_lost"], serde_json::json!(["hospital-c"]));
    assert_eq!(summary["providers"], 2);
    let notes = &world.model("result")["provenance"]["notes"];
    assert_eq!(notes["providers_lost"], "hospital-c");
    let report = std::fs::read_to_string(world.root().join("result/report.html")).unwrap();
    let sentence = "The job went on without hospital-c, with new masks";
    assert!(report.contains(sentence), "the report says so");
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
fn a_full_disk_at_a_provider_releases_nothing_and_the_job_goes_on_later() {
    let expected = in_process();
    // The ledger fails while the job is opened, paid for, or counted.
    for kilobytes in [40, 56, 72, 104] {
        let world = World::new(&Wishes::default());
        world.change_job("loss_seconds = 60", "loss_seconds = 1");
        assert!(world.serve(1).terminate().success(), "the ledger is there");
        let mut daemons = vec![world.serve(0), world.serve(2)];
        let mut limited = std::process::Command::new("bash");
        limited
            .arg("-c")
            .arg(format!("trap '' XFSZ; ulimit -f {kilobytes}; exec \"$@\""))
            .args(["bash", env!("CARGO_BIN_EXE_heda"), "provider", "serve"])
            .arg("--config")
            .arg(world.config(1));
        let limited = Daemon::spawn(limited);
        let output = world.train("result", false);
        assert_eq!(output.status.code(), Some(5), "{}", words(&output));
        assert!(
            words(&output).contains("provider's ledger failed"),
            "{}",
            words(&output)
        );
        limited.kill();
        daemons.push(world.serve(1));
        succeeded(&world.train("result", true));
        assert_eq!(coefficients(&world.model("result")), expected);
        one_release_everywhere(&world);
    }
}

#[test]
fn a_provider_that_stalls_is_given_up_and_taken_back() {
    let world = World::new(&Wishes::default());
    world.change_job("answer_seconds = 60", "answer_seconds = 2");
    world.change_job("connect_seconds = 10", "connect_seconds = 2");
    let daemons = world.serve_all();
    let stalled = daemons[2].process();
    let mut halted = false;
    let output = world.train_watched("result", false, |line, _| {
        if !halted && line.starts_with("iteration 3") {
            halted = true;
            signal("-STOP", stalled);
        } else if line.starts_with("lost hospital-c") {
            signal("-CONT", stalled);
        }
    });
    succeeded(&output);
    let text = words(&output);
    assert!(text.contains("did not answer within 2s"), "{text}");
    assert_eq!(coefficients(&world.model("result")), in_process());
    one_release_everywhere(&world);
}

#[test]
fn columns_that_a_data_user_may_not_use_are_named_with_code_3() {
    let world = World::new(&Wishes {
        hospitals: 1,
        job: "encrypt = [\"clump_thickness\", \"bare_nuclei\"]\niterations = 4\n",
        ..Wishes::default()
    });
    let restricted = "name = \"university\"\ncolumns = [\"clump_thickness\", \"mitoses\"]";
    world.change_provider(0, "name = \"university\"", restricted);
    let _daemons = world.serve_all();
    let refused = world.train("one", false);
    assert_eq!(refused.status.code(), Some(3), "{}", words(&refused));
    let reason = "university may not use the columns bare_nuclei";
    assert!(words(&refused).contains(reason), "{}", words(&refused));
    let config = world.config(0);
    let preview = [
        "provider",
        "preview",
        "--config",
        config.to_str().unwrap(),
        "--job",
        "university/job.toml",
        "--as",
        "university",
    ];
    let previewed = run(&preview, world.root());
    assert_eq!(previewed.status.code(), Some(3));
    assert!(words(&previewed).contains(reason), "{}", words(&previewed));
    world.change_job("bare_nuclei", "mitoses");
    good(&preview, world.root());
    // It is another job, which has another name.
    succeeded(&world.train_another("two", 99));
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
