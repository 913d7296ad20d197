//! What must not stop the work or block a folder: a log that nobody reads, a folder that somebody
//! else uses, a job that was refused.
#![allow(clippy::unwrap_used, reason = "a test that fails should say where")]

mod parties;

use parties::*;
use std::fs::File;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

fn one_hospital() -> World {
    World::new(&Wishes {
        hospitals: 1,
        job: "iota = 5\nepsilon = 1\niterations = 4\n",
        epsilon_total: "9",
    })
}

/// A disk without room, and a pipe whose reader went away.
fn unwritable() -> [Stdio; 2] {
    let full = File::options().write(true).open("/dev/full").unwrap();
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    [full.into(), writer.into()]
}

fn train_with(world: &World, out: &str, stderr: Stdio) -> std::process::ExitStatus {
    let mut command = heda();
    command.args(["train", "university/job.toml", "--out", out]);
    command.current_dir(world.root()).stdout(Stdio::null());
    command.stderr(stderr).status().unwrap()
}

/// The daemon with its log somewhere else than [`Daemon`] would have it.
fn serve_with(world: &World, stderr: Stdio) -> (std::process::Child, String) {
    use std::io::BufRead;
    let mut command = heda();
    command
        .args(["provider", "serve", "--config"])
        .arg(world.config(0));
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(stderr)
        .spawn()
        .unwrap();
    let mut line = String::new();
    let stdout = child.stdout.as_mut().unwrap();
    std::io::BufReader::new(stdout)
        .read_line(&mut line)
        .unwrap();
    (child, line)
}

#[test]
fn a_log_that_cannot_be_written_stops_nobody() {
    let world = one_hospital();
    for (place, (log, notes)) in unwritable().into_iter().zip(unwritable()).enumerate() {
        let (mut daemon, line) = serve_with(&world, log);
        assert!(line.starts_with("listening on "), "{line}");
        let out = format!("result-{place}");
        world.change_job(
            &format!("seed = {}", SEED + place as u64),
            &format!("seed = {}", SEED + 1 + place as u64),
        );
        assert!(train_with(&world, &out, notes).success());
        assert!(world.root().join(out).join("model.json").exists());
        signal("-TERM", daemon.id());
        assert!(daemon.wait().unwrap().success());
    }
}

#[test]
fn failures_are_told_by_their_code_also_when_nobody_reads_the_words() {
    let world = one_hospital();
    world.change_job("iota = 5", "iota = 99");
    for notes in unwritable() {
        assert_eq!(train_with(&world, "result", notes).code(), Some(2));
    }
}

#[test]
fn a_mistake_or_a_refusal_does_not_block_the_folder() {
    let world = one_hospital();
    // Known before anyone is connected to, and nothing is written.
    world.change_job("iota = 5", "iota = 99");
    let mistaken = world.train("result", false);
    assert_eq!(mistaken.status.code(), Some(2), "{}", words(&mistaken));
    let port = world.port(0);
    world.change_job("iota = 99", "iota = 5");
    let address = format!("address = \"127.0.0.1:{port}\"");
    world.change_job(&address, "address = \"127.0.0.1\"");
    let no_port = world.train("result", false);
    assert_eq!(no_port.status.code(), Some(2), "{}", words(&no_port));
    assert!(words(&no_port).contains("host:port"), "{}", words(&no_port));
    assert!(!world.root().join("result").exists());
    // Refused by the provider.
    world.change_job("address = \"127.0.0.1\"", &address);
    world.change_job("iterations = 4", "iterations = 4000");
    let _daemons = world.serve_all();
    let refused = world.train("result", false);
    assert_eq!(refused.status.code(), Some(3), "{}", words(&refused));
    world.change_job("iterations = 4000", "iterations = 4");
    succeeded(&world.train("result", false));
    let left = std::fs::read_dir(world.root().join("result")).unwrap();
    let mut left: Vec<_> = left.map(|entry| entry.unwrap().file_name()).collect();
    left.sort();
    assert_eq!(left, ["model.json", "report.html"]);
}

#[test]
fn results_are_private_unless_asked_otherwise() {
    let world = one_hospital();
    let _daemons = world.serve_all();
    succeeded(&world.train("result", false));
    let mode = |path: &str| {
        let found = std::fs::metadata(world.root().join(path)).unwrap();
        found.permissions().mode() & 0o777
    };
    assert_eq!(mode("result/model.json"), 0o600);
    assert_eq!(mode("result/report.html"), 0o600);
    world.change_job(&format!("seed = {SEED}"), "seed = 12");
    let arguments = [
        "train",
        "university/job.toml",
        "--out",
        "open",
        "--mode",
        "644",
    ];
    good(&arguments, world.root());
    assert_eq!(mode("open/model.json"), 0o644);
}

#[test]
fn a_folder_has_one_user_and_a_result_that_could_not_be_written_is_kept() {
    let world = one_hospital();
    let _daemons = world.serve_all();
    world.slow_line_to(0);
    // A folder in the place of the report: the model can be written, the report cannot.
    let blocked = world.root().join("result/report.html");
    std::fs::create_dir_all(blocked.join("in the way")).unwrap();
    let mut second = None;
    let first = world.train_watched("result", false, |line, _| {
        if line.starts_with("iteration 1 ") {
            second = Some(world.train("result", true));
        }
    });
    let second = second.unwrap();
    assert_eq!(second.status.code(), Some(2), "{}", words(&second));
    assert!(
        words(&second).contains("another job is under way"),
        "{}",
        words(&second)
    );
    assert_eq!(first.status.code(), Some(5), "{}", words(&first));
    assert!(words(&first).contains("--resume"), "{}", words(&first));
    std::fs::remove_dir_all(&blocked).unwrap();
    succeeded(&world.train("result", true));
    assert!(!world.root().join("result/checkpoint.json").exists());
}

#[test]
fn what_a_killed_start_left_is_cleaned_and_wide_permissions_are_named() {
    let world = one_hospital();
    let home = world.root().join("hospital-a");
    std::fs::create_dir(home.join("store")).unwrap();
    // An empty key of a start that was killed, and a part of one.
    for name in ["row-order.key", "row-order.key.77.partial"] {
        std::fs::write(home.join("store").join(name), b"").unwrap();
        let mode = std::fs::Permissions::from_mode(0o600);
        std::fs::set_permissions(home.join("store").join(name), mode).unwrap();
    }
    std::fs::write(home.join("store/ledger.sqlite"), b"").unwrap();
    let daemon = world.serve(0);
    assert_eq!(
        std::fs::read(home.join("store/row-order.key"))
            .unwrap()
            .len(),
        32
    );
    assert!(!home.join("store/row-order.key.77.partial").exists());
    assert!(daemon.terminate().success());
    let check = ["provider", "check", "--config", "provider.toml"];
    for file in [
        "store/ledger.sqlite",
        "identity/ledger.anchor",
        "store/row-order.key",
    ] {
        let opened = Command::new("chmod")
            .args(["644", file])
            .current_dir(&home)
            .status();
        assert!(opened.unwrap().success());
        let found = run(&check, &home);
        let text = String::from_utf8(found.stdout).unwrap();
        assert!(text.contains("chmod 600") && text.contains(file), "{text}");
        let closed = Command::new("chmod")
            .args(["600", file])
            .current_dir(&home)
            .status();
        assert!(closed.unwrap().success());
    }
    assert!(good(&check, &home).contains("the ledger is whole"));
}

#[test]
fn a_ledger_that_vanished_is_noticed_by_everyone_and_an_operator_may_begin_anew() {
    let world = one_hospital();
    let home = world.root().join("hospital-a");
    let daemon = world.serve(0);
    succeeded(&world.train("one", false));
    std::fs::rename(home.join("store"), home.join("away")).unwrap();
    world.change_job("loss_seconds = 60", "loss_seconds = 1");
    let refused = world.train_another("two", 77);
    assert_eq!(refused.status.code(), Some(5), "{}", words(&refused));
    drop(daemon);
    for command in ["check", "status", "budget", "serve"] {
        let looked = run(&["provider", command, "--config", "provider.toml"], &home);
        assert_eq!(looked.status.code(), Some(2), "{command}");
        let text = words(&looked) + &String::from_utf8_lossy(&looked.stdout);
        assert!(text.contains("begin-anew"), "{command}: {text}");
    }
    let anew = [
        "provider",
        "begin-anew",
        "--config",
        "provider.toml",
        "--because",
        "the disk died",
    ];
    // What was lost may have used all that was left, and that is what is charged.
    let told = good(&anew, &home);
    assert!(told.contains("missing or altered"), "{told}");
    assert!(told.contains("used, 0 left."), "{told}");
    let status = ["provider", "status", "--config", "provider.toml"];
    assert!(good(&status, &home).contains("because: the disk died"));
    let daemon = world.serve(0);
    let refused = world.train_another("three", 78);
    assert_eq!(refused.status.code(), Some(3), "{}", words(&refused));
    drop(daemon);
    // An operator who knows what was used says so.
    let config = home.join("provider.toml");
    let text = std::fs::read_to_string(&config).unwrap();
    let raised = text.replace("epsilon_total = 9", "epsilon_total = 10");
    assert_ne!(raised, text);
    std::fs::write(&config, raised).unwrap();
    let _daemon = world.serve(0);
    succeeded(&world.train_another("four", 79));
}
