//! Every command of the operating guide, on loopback, as it stands there.
#![allow(clippy::unwrap_used, reason = "a test that fails should say where")]

mod parties;

use parties::*;
use std::path::{Path, PathBuf};

/// The lines of shell blocks that run our program.
fn commands_of_the_guide() -> Vec<String> {
    let guide = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/operating.md");
    let guide = std::fs::read_to_string(guide).unwrap();
    let blocks = guide.split("```sh\n").skip(1);
    let blocks = blocks.map(|rest| rest.split("```").next().unwrap());
    let lines = blocks.flat_map(str::lines);
    lines
        .filter_map(|line| line.strip_prefix("heda "))
        .map(str::to_owned)
        .collect()
}

/// Stops the data user with SIGTERM after some iterations, as Ctrl-C would.
fn interrupt(world: &World) {
    let mut asked = false;
    let output = world.train_watched("university/result", false, |line, child| {
        if !asked && line.starts_with("iteration 3") {
            asked = true;
            let pid = child.id().to_string();
            let sent = std::process::Command::new("kill")
                .args(["-TERM", &pid])
                .status();
            assert!(sent.unwrap().success());
        }
    });
    assert_eq!(output.status.code(), Some(5), "{}", words(&output));
}

#[test]
fn every_command_of_the_guide_works() {
    let world = World::new(&Wishes::default());
    std::fs::copy(
        world.root().join("university/job.toml"),
        world.root().join("hospital-a/job.toml"),
    )
    .unwrap();
    let newcomer = world.root().join("newcomer");
    std::fs::create_dir(&newcomer).unwrap();
    let provider: PathBuf = world.root().join("hospital-a");
    let university = world.root().join("university");
    let mut daemons = Vec::new();
    let mut ran = 0;
    for command in commands_of_the_guide() {
        let words: Vec<&str> = command.split_whitespace().collect();
        match words.as_slice() {
            ["init", "--renew", ..]
            | ["provider", "check" | "preview" | "status" | "budget", ..] => {
                good(&words, &provider);
            }
            ["init", ..] => {
                good(&words, &newcomer);
            }
            ["provider", "serve", "--config", "provider.toml"] => daemons = world.serve_all(),
            ["train", "job.toml", "--out", "result"] => interrupt(&world),
            ["train", "job.toml", "--out", "result", "--resume"] => {
                good(&words, &university);
            }
            other => panic!("the guide has a command that no test runs: {other:?}"),
        }
        ran += 1;
    }
    assert_eq!(ran, 10);
    assert!(university.join("result/model.json").exists());
    for daemon in daemons {
        assert!(daemon.terminate().success());
    }
}

#[test]
fn the_example_of_three_hospitals_runs() {
    let script =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/three-hospitals/run.sh");
    let folder = tempfile::tempdir().unwrap();
    let output = std::process::Command::new("bash")
        .arg(script)
        .arg(folder.path())
        .env("HEDA", env!("CARGO_BIN_EXE_heda"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", words(&output));
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("verdict: allowed"), "{text}");
    assert_eq!(text.matches("epsilon 2 of 4 spent").count(), 3, "{text}");
    assert!(folder.path().join("result/model.json").exists());
}

#[test]
fn identities_are_never_overwritten() {
    let folder = tempfile::tempdir().unwrap();
    let init = ["init", "--name", "a", "--out", "identity"];
    let first = good(&init, folder.path());
    assert!(
        first.starts_with("sha256:") && first.trim().len() == 71,
        "{first}"
    );
    let again = run(&init, folder.path());
    assert_eq!(again.status.code(), Some(2));
    assert!(
        words(&again).contains("never overwritten"),
        "{}",
        words(&again)
    );
}

#[test]
fn check_finds_what_is_wrong_and_says_how_to_put_it_right() {
    let world = World::new(&Wishes::default());
    let home = world.root().join("hospital-a");
    let check = ["provider", "check", "--config", "provider.toml"];
    assert!(good(&check, &home).contains("rows fit the schema"));
    let opened = std::process::Command::new("chmod")
        .args(["644", "identity/key.pem"])
        .current_dir(&home)
        .status();
    assert!(opened.unwrap().success());
    std::fs::write(home.join("biopsies.csv"), "clump_thickness,class\n5,2\n").unwrap();
    let output = run(&check, &home);
    assert_eq!(output.status.code(), Some(2));
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("chmod 600"), "{text}");
    assert!(
        text.lines().any(|line| line.starts_with("BAD   data")),
        "{text}"
    );
}

#[test]
fn a_stranger_and_a_wrong_fingerprint_end_with_code_4() {
    let world = World::new(&Wishes {
        hospitals: 1,
        ..Wishes::default()
    });
    let _daemons = world.serve_all();
    let real = world.root().join("university/identity");
    let kept = world.root().join("university/kept");
    std::fs::rename(&real, &kept).unwrap();
    let stranger = ["init", "--name", "stranger", "--out", "university/identity"];
    good(&stranger, world.root());
    let refused = world.train("one", false);
    assert_eq!(refused.status.code(), Some(4), "{}", words(&refused));
    assert!(
        words(&refused).contains("refused our certificate"),
        "{}",
        words(&refused)
    );
    std::fs::remove_dir_all(&real).unwrap();
    std::fs::rename(&kept, &real).unwrap();
    let other = good(&["init", "--name", "other", "--out", "other"], world.root());
    let job = std::fs::read_to_string(world.root().join("university/job.toml")).unwrap();
    let print = job
        .split("fingerprint = \"")
        .nth(1)
        .unwrap()
        .split('"')
        .next()
        .unwrap();
    world.change_job(print, other.trim());
    let wrong = world.train("two", false);
    assert_eq!(wrong.status.code(), Some(4), "{}", words(&wrong));
    assert!(
        words(&wrong).contains("is not hospital-a"),
        "{}",
        words(&wrong)
    );
}
