//! The operating guide, followed to the letter on loopback: its configurations, its commands in
//! its order, from nothing to a finished job and to what comes after.
#![allow(clippy::unwrap_used, reason = "a test that fails should say where")]

mod parties;

use parties::*;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Output;

/// The guide, read as its readers do.
struct Guide(String);

impl Guide {
    fn read() -> Self {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/operating.md");
        Self(std::fs::read_to_string(path).unwrap())
    }

    /// Blocks of one language.
    fn blocks(&self, language: &str) -> Vec<&str> {
        let opening = format!("```{language}\n");
        let blocks = self.0.split(opening.as_str()).skip(1);
        blocks
            .map(|rest| rest.split("```").next().unwrap())
            .collect()
    }

    /// Every line of every shell block. All of them must be commands of ours.
    fn commands(&self) -> Vec<Vec<&str>> {
        let lines = self.blocks("sh").into_iter().flat_map(str::lines);
        let ours = lines.map(|line| {
            let words: Vec<&str> = line.split_whitespace().collect();
            assert_eq!(
                words[0], "heda",
                "not a command that a test can run: {line}"
            );
            words[1..].to_vec()
        });
        ours.collect()
    }

    /// The command line of the systemd unit, without the place of the program.
    fn service_command(&self) -> Vec<String> {
        let [unit] = self.blocks("ini")[..] else {
            panic!("one unit");
        };
        let line = unit.lines().find_map(|l| l.strip_prefix("ExecStart="));
        let mut words = line.unwrap().split_whitespace().map(str::to_owned);
        assert_eq!(words.next().unwrap(), "/usr/local/bin/heda");
        words.collect()
    }
}

/// Three hospitals and a university that have nothing yet but the guide, rows and a schema.
struct Hosts {
    guide: Guide,
    folder: tempfile::TempDir,
    ports: [u16; 3],
    daemons: Vec<Daemon>,
}

impl Hosts {
    fn new() -> Self {
        let hosts = Self {
            guide: Guide::read(),
            folder: tempfile::tempdir().unwrap(),
            ports: [(); 3].map(|()| free_port().unwrap()),
            daemons: Vec::new(),
        };
        for (place, name) in HOSPITALS.iter().enumerate() {
            let home = hosts.home(name);
            std::fs::create_dir(&home).unwrap();
            std::fs::write(home.join("ward.csv"), part_of(place)).unwrap();
            std::fs::write(home.join("schema.toml"), schema_text()).unwrap();
        }
        let university = hosts.home("university");
        std::fs::create_dir(&university).unwrap();
        std::fs::write(university.join("schema.toml"), schema_text()).unwrap();
        hosts
    }

    fn home(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn university(&self) -> PathBuf {
        self.home("university")
    }

    /// `heda init` at every party, as the guide has it, then the two files with the fingerprints.
    fn make_identities(&self, command: &[&str]) {
        let print = |name: &str| {
            let mut words = command.to_vec();
            let place = words.iter().position(|word| *word == "hospital-a");
            words[place.unwrap()] = name;
            good(&words, &self.home(name)).trim().to_owned()
        };
        let university = print("university");
        let hospitals = HOSPITALS.map(print);
        let [provider, job] = self.guide.blocks("toml")[..] else {
            panic!("two configurations");
        };
        for (place, name) in HOSPITALS.iter().enumerate() {
            let other = &hospitals[(place + 1) % 3];
            let config = provider
                .replacen("sha256:...", &university, 1)
                .replacen("sha256:...", other, 1)
                .replace("0.0.0.0:7443", &format!("127.0.0.1:{}", self.ports[place]))
                .replace("127.0.0.1:9464", "127.0.0.1:0");
            assert!(!config.contains("..."), "{config}");
            std::fs::write(self.home(name).join("provider.toml"), config).unwrap();
        }
        let (head, entry) = job.split_once("[[provider]]").unwrap();
        let entries: String = (0..3)
            .map(|place| {
                let address = format!("127.0.0.1:{}", self.ports[place]);
                let entry = entry
                    .replace("hospital-a", HOSPITALS[place])
                    .replace("a.example:7443", &address)
                    .replace("sha256:...", &hospitals[place]);
                assert!(!entry.contains("..."), "{entry}");
                format!("[[provider]]{entry}")
            })
            .collect();
        let job = format!("{head}{entries}");
        // The data user shows its job to the operator of hospital a.
        for name in ["university", "hospital-a"] {
            std::fs::write(self.home(name).join("job.toml"), &job).unwrap();
        }
    }

    fn serve_all(&mut self, command: &[&str]) {
        self.daemons = HOSPITALS
            .iter()
            .map(|name| Daemon::start_as(command, &self.home(name)))
            .collect();
    }

    /// `heda train` as in the guide, ended by Ctrl-C after a few iterations.
    fn train_until_interrupted(&self, command: &[&str]) {
        let mut train = heda();
        train.args(command).current_dir(self.university());
        let output = watched(train, |line, child| {
            if line.starts_with("iteration 3") {
                signal("-INT", child.id());
            }
        });
        assert_eq!(output.status.code(), Some(5), "{}", words(&output));
        assert!(self.university().join("result/checkpoint.json").exists());
    }

    /// A renewed certificate after a restart: nobody else changes anything.
    fn renew(&mut self, command: &[&str]) {
        let home = self.home("hospital-a");
        let before = std::fs::read(home.join("identity/certificate.pem")).unwrap();
        good(command, &home);
        let after = std::fs::read(home.join("identity/certificate.pem")).unwrap();
        assert_ne!(before, after);
        assert!(self.daemons.remove(0).terminate().success());
        let serve = ["provider", "serve", "--config", "provider.toml"];
        self.daemons.insert(0, Daemon::start_as(&serve, &home));
        good(&["train", "job.toml", "--out", "again"], &self.university());
    }

    /// A backup is a provider that can be restored.
    fn back_up(&self, command: &[&str]) {
        let home = self.home("hospital-a");
        good(command, &home);
        for file in ["key.pem", "certificate.pem"] {
            let name = format!("identity/{file}");
            let original = std::fs::read(home.join(&name)).unwrap();
            assert_eq!(
                std::fs::read(home.join("backup").join(&name)).unwrap(),
                original
            );
        }
        let restored = self.home("restored");
        std::fs::create_dir(&restored).unwrap();
        std::fs::rename(home.join("backup"), restored.join("store")).unwrap();
        std::fs::rename(restored.join("store/identity"), restored.join("identity")).unwrap();
        for file in ["provider.toml", "schema.toml", "ward.csv"] {
            std::fs::copy(home.join(file), restored.join(file)).unwrap();
        }
    }

    /// A restored ledger is served after its operator said so, and has forgotten nothing.
    fn begin_anew(&self, command: &[&str]) {
        let (home, restored) = (self.home("hospital-a"), self.home("restored"));
        let check = ["provider", "check", "--config", "provider.toml"];
        assert_eq!(run(&check, &restored).status.code(), Some(2));
        good(command, &restored);
        let budget = ["provider", "budget", "--config", "provider.toml", "--json"];
        assert_eq!(good(&budget, &restored), good(&budget, &home));
        good(&check, &restored);
    }
}

#[test]
fn the_guide_leads_from_nothing_to_a_finished_job_and_beyond() {
    let mut hosts = Hosts::new();
    let guide = Guide::read();
    let mut ran = 0;
    for command in guide.commands() {
        let hospital = hosts.home("hospital-a");
        match command[..] {
            ["init", "--renew", ..] => hosts.renew(&command),
            ["init", ..] => hosts.make_identities(&command),
            ["provider", "check", ..] => {
                for name in HOSPITALS {
                    good(&command, &hosts.home(name));
                }
            }
            ["provider", "preview", ..] => {
                let text = good(&command, &hospital);
                assert!(text.contains("verdict: allowed"), "{text}");
            }
            ["provider", "serve", ..] => hosts.serve_all(&command),
            ["plan", ..] => {
                let text = good(&command, &hosts.university());
                assert!(text.contains("3000 rows of 3 providers"), "{text}");
            }
            ["train", .., "--resume"] => {
                good(&command, &hosts.university());
            }
            ["train", ..] => hosts.train_until_interrupted(&command),
            ["provider", "status", ..] => {
                let text = good(&command, &hospital);
                assert!(text.contains("of university on ward-2026\n"), "{text}");
                assert!(text.contains("UTC, finished 2"), "{text}");
            }
            ["provider", "budget", ..] => {
                let text = good(&command, &hospital);
                assert!(text.contains("sha256"), "{text}");
            }
            ["provider", "backup", ..] => hosts.back_up(&command),
            ["provider", "begin-anew", ..] => hosts.begin_anew(&command),
            ref other => panic!("the guide has a command that no test runs: {other:?}"),
        }
        ran += 1;
    }
    assert_eq!(ran, 13);
    assert!(hosts.university().join("result/model.json").exists());
    assert!(hosts.university().join("again/model.json").exists());
    for daemon in hosts.daemons.drain(..) {
        assert!(daemon.terminate().success());
    }
    // The daemon of the systemd unit, with this host's folder in place of its own.
    let home = hosts.home("hospital-a");
    let service = guide.service_command();
    let service: Vec<String> = service
        .iter()
        .map(|word| word.replace("/srv/heda", home.to_str().unwrap()))
        .collect();
    let service: Vec<&str> = service.iter().map(String::as_str).collect();
    let daemon = Daemon::start_as(&service, hosts.folder.path());
    assert!(daemon.terminate().success());
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
    let spent = "Published columns: epsilon 2 of 4 used";
    assert_eq!(text.matches(spent).count(), 3, "{text}");
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
    let store = std::fs::metadata(home.join("store")).unwrap();
    assert_eq!(store.permissions().mode() & 0o777, 0o700);
    let path = home.join("provider.toml");
    let config = std::fs::read_to_string(&path).unwrap();
    let held = config.replacen("[[allow]]", "[[allow]]\ncolumns = [\"mitosis\"]", 1);
    std::fs::write(&path, held).unwrap();
    let misspelt = run(&check, &home);
    assert_eq!(misspelt.status.code(), Some(2));
    let text = String::from_utf8(misspelt.stdout).unwrap();
    assert!(text.contains("the column \"mitosis\""), "{text}");
    std::fs::write(&path, config).unwrap();
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
fn a_value_that_does_not_fit_is_shown_by_check_and_kept_from_the_log() {
    let world = World::new(&Wishes::default());
    let home = world.root().join("hospital-a");
    let path = home.join("biopsies.csv");
    let rows = std::fs::read_to_string(&path).unwrap();
    let (header, rest) = rows.split_once('\n').unwrap();
    let (first, rest) = rest.split_once('\n').unwrap();
    let wrong = first.replacen(first.split(',').next().unwrap(), "4711", 1);
    std::fs::write(&path, format!("{header}\n{wrong}\n{rest}")).unwrap();
    let command = |name| run(&["provider", name, "--config", "provider.toml"], &home);
    let checked = command("check");
    assert!(words(&checked).contains("4711") || checked.stdout.windows(4).any(|w| w == b"4711"));
    let served = command("serve");
    assert_eq!(served.status.code(), Some(2));
    let log = words(&served);
    assert!(
        log.contains("line 2, column") && !log.contains("4711"),
        "{log}"
    );
}

fn peer_failure(output: &Output, words_of_it: &str) {
    assert_eq!(output.status.code(), Some(4), "{}", words(output));
    assert!(words(output).contains(words_of_it), "{}", words(output));
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
    peer_failure(&world.train("one", false), "refused our certificate");
    std::fs::remove_dir_all(&real).unwrap();
    std::fs::rename(&kept, &real).unwrap();
    let other = good(&["init", "--name", "other", "--out", "other"], world.root());
    let job = std::fs::read_to_string(world.root().join("university/job.toml")).unwrap();
    let print = job.split("fingerprint = \"").nth(1).unwrap();
    world.change_job(print.split('"').next().unwrap(), other.trim());
    peer_failure(&world.train("two", false), "is not hospital-a");
}
