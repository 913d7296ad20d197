//! Which test reaches which mutant, and what the tests say to one.

use super::Mutant;
use super::state::Outcome;
use super::tree::Program;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// A test with what it reaches when no mutant is on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Reach {
    /// Its name in its program.
    pub name: String,
    /// How long it takes.
    pub seconds: f64,
    /// Numbers of mutants.
    pub reached: BTreeSet<u32>,
}

/// All tests of a program.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Recorded {
    /// Stands for the program as it was.
    stamp: String,
    /// Its tests.
    pub tests: Vec<Reach>,
}

/// A program with its tests.
pub struct Suite {
    /// What is run.
    pub program: Program,
    /// Its tests.
    pub tests: Vec<Reach>,
}

/// Tests that run together: as many as take about this long, and no more.
const TOGETHER: usize = 24;
const SECONDS_TOGETHER: f64 = 2.0;
/// A test may compute for so many times its usual time, and this much more: a loop without end does. What
/// others do on the machine does not count.
const PATIENCE: f64 = 8.0;
const SECONDS_MORE: f64 = 20.0;
/// A test that does not compute may wait so many times as long, for a message that nobody sends.
const WAITING: f64 = 1.5;

/// Something that tells one build of a program from another.
fn stamp(program: &Program) -> Result<String, String> {
    let failed = |e: std::io::Error| format!("{}: {e}", program.path.display());
    let file = std::fs::metadata(&program.path).map_err(failed)?;
    let time = file.modified().map_err(failed)?;
    let since = time
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap_or_default();
    Ok(format!("{} {}", file.len(), since.as_nanos()))
}

impl Suite {
    /// Runs every test of a program by itself and notes what it reaches; what was noted for the same
    /// program before is read from `folder`.
    pub fn record(program: Program, folder: &Path) -> Result<Self, String> {
        let stamp = stamp(&program)?;
        let path = folder.join(format!("{}-{}.json", program.package, program.target));
        let known = std::fs::read_to_string(&path).ok();
        let known = known.and_then(|text| serde_json::from_str::<Recorded>(&text).ok());
        if let Some(known) = known.filter(|known| known.stamp == stamp) {
            let tests = known.tests;
            return Ok(Self { program, tests });
        }
        let mut tests = Vec::new();
        for name in names(&program)? {
            match reach(&program, &name, folder)? {
                Some(test) => tests.push(test),
                None => println!("{} {name} fails without any mutant", program.package),
            }
        }
        let recorded = Recorded { stamp, tests };
        let text = serde_json::to_string(&recorded).map_err(|e| e.to_string())?;
        std::fs::write(&path, text).map_err(|e| format!("{}: {e}", path.display()))?;
        let tests = recorded.tests;
        Ok(Self { program, tests })
    }
}

/// The tests of a program, without those that are ignored.
fn names(program: &Program) -> Result<Vec<String>, String> {
    let listed = |more: &[&str]| -> Result<BTreeSet<String>, String> {
        let done = Command::new(&program.path)
            .args(["--list", "--format", "terse"])
            .args(more)
            .output()
            .map_err(|e| format!("{}: {e}", program.path.display()))?;
        let text = String::from_utf8_lossy(&done.stdout).into_owned();
        let names = text.lines().filter_map(|line| line.strip_suffix(": test"));
        Ok(names.map(str::to_owned).collect())
    };
    let ignored = listed(&["--ignored"])?;
    let names = listed(&[])?.into_iter();
    Ok(names.filter(|name| !ignored.contains(name)).collect())
}

/// Runs a test with no mutant on. None if it fails.
fn reach(program: &Program, name: &str, folder: &Path) -> Result<Option<Reach>, String> {
    let file = folder.join("reached.txt");
    let _ = std::fs::remove_file(&file);
    let began = Instant::now();
    let mut child = started(program, &[name], "record", &file, None)?;
    let status = child.wait().map_err(|e| e.to_string())?;
    let text = std::fs::read_to_string(&file).unwrap_or_default();
    let reach = Reach {
        name: name.to_owned(),
        seconds: began.elapsed().as_secs_f64(),
        reached: text.lines().filter_map(|line| line.parse().ok()).collect(),
    };
    Ok(status.success().then_some(reach))
}

/// Starts some tests of a program, as a group of processes, each of which may compute for so many seconds.
fn started(
    program: &Program,
    names: &[&str],
    mutant: &str,
    file: &Path,
    seconds: Option<u64>,
) -> Result<Child, String> {
    let limit = seconds.map_or("unlimited".to_owned(), |seconds| seconds.to_string());
    Command::new("sh")
        .args(["-c", "ulimit -t \"$0\"; exec \"$@\"", &limit])
        .arg(&program.path)
        .args(["--exact", "--quiet"])
        .args(names)
        .current_dir(&program.folder)
        .env("HEDA_MUTANT", mutant)
        .env("HEDA_MUTANTS_REACHED", file)
        .env("CARGO_MANIFEST_DIR", &program.folder)
        .env("RUST_BACKTRACE", "0")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()
        .map_err(|e| format!("{}: {e}", program.path.display()))
}

/// What a process that ran tests says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Said {
    Passed,
    Failed,
    /// It computed or waited too long.
    TooLong,
}

impl Said {
    fn of(status: ExitStatus) -> Self {
        // What the system sends to a process that computed for its time, and a second later.
        const SIGKILL: i32 = 9;
        const SIGXCPU: i32 = 24;
        match status.signal() {
            Some(SIGXCPU | SIGKILL) => Self::TooLong,
            _ if status.success() => Self::Passed,
            _ => Self::Failed,
        }
    }
}

/// Waits for a child; after its time it is ended with all that it started.
fn waited(child: &mut Child, time: Duration) -> Result<Said, String> {
    let began = Instant::now();
    let mut pause = Duration::from_millis(2);
    loop {
        if let Some(status) = child.try_wait().map_err(|e| e.to_string())? {
            return Ok(Said::of(status));
        }
        if began.elapsed() > time {
            let group = format!("-{}", child.id());
            let _ = Command::new("kill").args(["-KILL", "--", &group]).status();
            child.wait().map_err(|e| e.to_string())?;
            return Ok(Said::TooLong);
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(50));
    }
}

/// Tests that run in one process.
struct Group<'a> {
    program: &'a Program,
    tests: Vec<&'a Reach>,
}

/// The tests that reach a mutant, those of its own package first and the quickest of them first.
fn groups<'a>(suites: &'a [Suite], mutant: &Mutant) -> Vec<Group<'a>> {
    let mut reaching: Vec<(bool, &Program, &Reach)> = Vec::new();
    for suite in suites {
        let tests = suite.tests.iter();
        let tests = tests.filter(|test| test.reached.contains(&mutant.id));
        let other = suite.program.package != mutant.package;
        reaching.extend(tests.map(|test| (other, &suite.program, test)));
    }
    reaching.sort_by(|a, b| {
        (a.0, a.2.seconds)
            .partial_cmp(&(b.0, b.2.seconds))
            .unwrap_or(std::cmp::Ordering::Equal)
    });
    let mut groups: Vec<Group<'a>> = Vec::new();
    for (_, program, test) in reaching {
        let fits = |group: &&mut Group<'a>| {
            let seconds: f64 = group.tests.iter().map(|test| test.seconds).sum();
            group.program.path == program.path
                && group.tests.len() < TOGETHER
                && seconds + test.seconds <= SECONDS_TOGETHER
        };
        match groups.last_mut().filter(fits) {
            Some(group) => group.tests.push(test),
            None => groups.push(Group {
                program,
                tests: vec![test],
            }),
        }
    }
    groups
}

/// What the tests that reach a mutant say to it; the first that fails ends the search.
pub fn outcome(
    suites: &[Suite],
    mutant: &Mutant,
    folder: &Path,
) -> Result<(Outcome, Option<String>), String> {
    let groups = groups(suites, mutant);
    if groups.is_empty() {
        return Ok((Outcome::Unreached, None));
    }
    let number = mutant.id.to_string();
    for group in groups {
        let names: Vec<&str> = group.tests.iter().map(|test| test.name.as_str()).collect();
        let usual: f64 = group.tests.iter().map(|test| test.seconds).sum();
        let seconds = PATIENCE * usual + SECONDS_MORE;
        let file = folder.join("unused.txt");
        let limit = Some(seconds as u64);
        let mut child = started(group.program, &names, &number, &file, limit)?;
        let noticed = match waited(&mut child, Duration::from_secs_f64(WAITING * seconds))? {
            Said::Passed => continue,
            Said::Failed => Outcome::Caught,
            Said::TooLong => Outcome::Timeout,
        };
        let several = if names.len() > 1 { " and others" } else { "" };
        let test = format!("{}: {}{several}", group.program.package, names[0]);
        return Ok((noticed, Some(test)));
    }
    Ok((Outcome::Survived, None))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod runs {
    use super::super::Key;
    use super::*;
    use std::path::PathBuf;

    /// A program that passes, fails, computes or waits for ever, as the name of its test says.
    fn program(folder: &Path) -> Program {
        let path = folder.join("program");
        let text = "#!/bin/sh\nfor name do :; done\ncase $name in\n\
                    passes) exit 0 ;;\nfails) exit 101 ;;\nloops) while :; do :; done ;;\n\
                    waits) sleep 100 ;;\nnoticed) [ $HEDA_MUTANT != 7 ] ;;\nesac\n";
        std::fs::write(&path, text).unwrap();
        let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(&path, executable).unwrap();
        Program {
            package: "own".into(),
            target: "target".into(),
            path,
            folder: folder.to_owned(),
        }
    }

    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("heda-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        folder
    }

    #[test]
    fn tests_pass_fail_or_take_too_long() {
        let folder = folder("said");
        let program = program(&folder);
        for (name, said) in [
            ("passes", Said::Passed),
            ("fails", Said::Failed),
            ("loops", Said::TooLong),
            ("waits", Said::TooLong),
        ] {
            let seconds = (name == "loops").then_some(1);
            let patience = Duration::from_secs(if name == "waits" { 1 } else { 60 });
            let mut child = started(&program, &[name], "1", &folder, seconds).unwrap();
            assert_eq!(waited(&mut child, patience).unwrap(), said, "{name}");
        }
        std::fs::remove_dir_all(folder).unwrap();
    }

    fn mutant(id: u32) -> Mutant {
        Mutant {
            key: Key {
                file: "a.rs".into(),
                function: "f".into(),
                mutation: "m".into(),
            },
            area: "area".into(),
            package: "own".into(),
            text: 0,
            id,
        }
    }

    /// Only tests that reach a mutant run, until one notices it.
    #[test]
    fn a_mutant_is_tried_by_the_tests_that_reach_it() {
        let folder = folder("outcome");
        let test = |name: &str, seconds, reached: &[u32]| Reach {
            name: name.into(),
            seconds,
            reached: reached.iter().copied().collect(),
        };
        let suite = Suite {
            program: program(&folder),
            tests: vec![
                test("passes", 1.5, &[6, 7, 8]),
                test("noticed", 1.0, &[6, 7]),
                test("fails", 0.1, &[5]),
            ],
        };
        let suites = [suite];
        let said = |id| outcome(&suites, &mutant(id), &folder).unwrap();
        assert_eq!(said(5).0, Outcome::Caught);
        assert_eq!(said(6), (Outcome::Survived, None));
        assert_eq!(said(7), (Outcome::Caught, Some("own: noticed".into())));
        assert_eq!(said(8).0, Outcome::Survived);
        assert_eq!(said(9).0, Outcome::Unreached);
        std::fs::remove_dir_all(folder).unwrap();
    }
}
