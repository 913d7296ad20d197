//! Engine `paper` through the program: on this machine, and between processes.
#![allow(clippy::unwrap_used, reason = "a test that fails should say where")]

#[path = "../../../crates/heda-cli/tests/parties/mod.rs"]
mod parties;

use parties::*;

const JOB: &str = "engine = \"paper\"\nengine_options = { key_bits = 2048 }\niota = 5\nepsilon = 1\n\
    iterations = 2\noptimiser = { name = \"descent\", rate = 1.0, minimum_rate = 0.0, decay = 0.0, \
    batches = 3 }\n";

/// What it leaks is said before it begins; whole jobs are below, so this one need not end.
#[test]
fn a_demo_by_engine_paper_says_what_it_leaks() {
    let mut command = heda();
    command.args(["demo", "--dataset", "bcwd", "--engine", "paper"]);
    let mut told = Vec::new();
    watched(command, |line, child| {
        told.push(line.to_owned());
        if line.contains("which rows make up a batch") {
            child.kill().unwrap();
        }
    });
    let told = told.join("\n");
    assert!(told.contains("engine paper protects little"), "{told}");
    assert!(told.contains("textbook RSA is deterministic"), "{told}");
}

#[test]
fn a_job_between_processes_needs_providers_that_named_the_engine() {
    let world = World::new(&Wishes {
        job: JOB,
        hospitals: 2,
        ..Wishes::default()
    });
    let daemons = world.serve_all();
    let refused = world.train("refused", false);
    assert_eq!(refused.status.code(), Some(3), "{}", words(&refused));
    let told = words(&refused);
    assert!(told.contains("engine paper is not allowed"), "{told}");
    for daemon in daemons {
        assert!(daemon.terminate().success());
    }
    for place in 0..2 {
        let named = "[limits]\nengines = [\"resident\", \"paper\"]\n";
        world.change_provider(place, "[limits]\n", named);
    }
    let daemons = world.serve_all();
    let output = world.train("result", false);
    succeeded(&output);
    let summary: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        (&summary["engine"], &summary["iterations"]),
        (&"paper".into(), &2.into())
    );
    assert!(world.model("result")["classifiers"][0]["scaled"].is_array());
    for (place, daemon) in daemons.into_iter().enumerate() {
        assert_eq!(world.budget(place)["epsilon_spent"], "1");
        assert!(daemon.terminate().success());
    }
}

#[test]
fn the_program_has_the_usual_commands_and_the_experiments() {
    let folder = tempfile::tempdir().unwrap();
    let help = good(&["--help"], folder.path());
    for command in ["train", "provider", "demo", "experiment", "paillier"] {
        assert!(help.contains(&format!("\n  {command} ")), "{help}");
    }
    let help = good(&["experiment", "--help"], folder.path());
    for command in ["table3", "tradeoff", "attacks", "document", "all"] {
        assert!(help.contains(&format!("\n  {command} ")), "{help}");
    }
    let script = good(&["completions", "bash"], folder.path());
    assert!(script.contains("experiment") && script.contains("heda-repro"));
    let unknown = run(&["experiment", "magic", "--out", "x"], folder.path());
    assert_eq!(unknown.status.code(), Some(2));
}
