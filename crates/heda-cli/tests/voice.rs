//! How the program speaks: to people, to shells and to programs, whatever the command.
#![allow(clippy::unwrap_used, reason = "a test that fails should say where")]

mod lines;

use lines::{done, heda, run};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

fn here() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn errors(line: &str) -> (Option<i32>, String) {
    let output = run(here(), line);
    let words = String::from_utf8(output.stderr).unwrap();
    assert!(output.stdout.is_empty(), "{line}");
    (output.status.code(), words)
}

#[test]
fn errors_of_usage_and_of_input_have_one_voice() {
    for line in [
        "demo --no-such-flag",
        "demo --epsilon many",
        "no-such-command",
        "evaluate --model none.json --data none.csv",
        "score --data none.csv",
    ] {
        let (code, words) = errors(line);
        assert_eq!(code, Some(2), "{line}: {words}");
        assert!(words.starts_with("heda: "), "{line}: {words}");
        assert!(!words.contains("error:"), "{line}: {words}");
    }
}

#[test]
fn colours_are_used_when_they_are_wanted() {
    for line in ["demo --no-such-flag", "score --data none.csv"] {
        let (_, plain) = errors(line);
        assert!(!plain.contains('\u{1b}'), "no terminal: {plain}");
        let (_, coloured) = errors(&format!("{line} --color always"));
        assert!(coloured.contains("\u{1b}["), "{coloured}");
        assert!(coloured.contains("heda:"), "{coloured}");
        let (_, plain) = errors(&format!("--color=never {line}"));
        assert!(!plain.contains('\u{1b}'), "{plain}");
    }
    let (code, words) = errors("demo --color sometimes");
    assert_eq!(code, Some(2));
    assert!(words.contains("auto, always, never"), "{words}");
}

#[test]
fn quiet_says_nothing_and_verbose_says_more() {
    let said = |line: &str| {
        let output = run(here(), line);
        assert!(output.status.success(), "{line}");
        assert!(!output.stdout.is_empty(), "{line}");
        String::from_utf8(output.stderr).unwrap()
    };
    let line = "demo --dataset bcwd --seed 1";
    let usual = said(line);
    assert!(
        usual.contains("training\n") && !usual.contains("iteration "),
        "{usual}"
    );
    assert_eq!(said(&format!("{line} --quiet")), "");
    let more = said(&format!("-v {line}"));
    assert!(more.contains("iteration 1 of at most "), "{more}");
    let (code, words) = errors("demo -q -v");
    assert_eq!(code, Some(2));
    assert!(words.contains("cannot be used with"), "{words}");
}

#[test]
fn a_misspelt_column_is_answered_with_those_that_there_are() {
    let rows = here().join("../../datasets/bcwd.csv");
    let line = format!("simulate --data {} --label clas", rows.display());
    let (code, words) = errors(&line);
    assert_eq!(code, Some(2));
    assert!(words.contains("column `clas`"), "{words}");
    assert!(words.contains("; the file has `class`, "), "{words}");
}

#[test]
fn shells_get_completions_and_packagers_manual_pages() {
    for (shell, words) in [
        ("bash", "complete -F _heda"),
        ("zsh", "#compdef heda"),
        ("fish", "complete -c heda"),
    ] {
        let script = done(here(), &format!("completions {shell}"));
        assert!(script.contains(words), "{shell}");
        assert!(
            script.contains("simulate") && script.contains("held-out"),
            "{shell}"
        );
    }
    let folder = tempfile::tempdir().unwrap();
    done(folder.path(), "man pages");
    let page = |name: &str| std::fs::read_to_string(folder.path().join("pages").join(name));
    assert!(page("heda.1").unwrap().contains("Exit codes"));
    assert!(
        page("heda-provider-setup.1")
            .unwrap()
            .contains("invitation")
    );
}

#[test]
fn the_version_names_commit_and_features() {
    let version = done(here(), "--version");
    assert!(
        version.starts_with(concat!("heda ", env!("CARGO_PKG_VERSION"), " (")),
        "{version}"
    );
    assert!(version.contains("features "), "{version}");
    let git = |arguments: &[&str]| {
        let told = Command::new("git")
            .args(arguments)
            .current_dir(here())
            .output();
        told.ok().filter(|told| told.status.success())
    };
    // A package has no repository, and then its version no commit.
    let own = git(&["ls-files", "--error-unmatch", "build.rs"]).is_some();
    assert_eq!(version.contains("commit "), own, "{version}");
}

/// Sends SIGINT once this line is on stderr; the exit code and what came after.
fn interrupted(line: &str, at: &str) -> (Option<i32>, String) {
    let mut child = heda(here(), line)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stderr = BufReader::new(child.stderr.take().unwrap()).lines();
    assert!(stderr.any(|line| line.unwrap().starts_with(at)));
    let pid = child.id().to_string();
    let sent = Command::new("kill").args(["-INT", &pid]).status();
    assert!(sent.unwrap().success());
    let rest: Vec<String> = stderr.map(Result::unwrap).collect();
    (child.wait().unwrap().code(), rest.join("\n"))
}

#[test]
fn an_interrupted_command_ends_with_its_own_exit_code() {
    // Long enough that it cannot be over before it is interrupted.
    let line = "demo --dataset adult --providers 5 --verbose";
    let (code, rest) = interrupted(line, "training");
    assert_eq!(code, Some(130), "{rest}");
    assert!(rest.contains("heda: interrupted"), "{rest}");
}
