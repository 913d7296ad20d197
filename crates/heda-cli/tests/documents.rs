//! README and tutorial, executed: every command of every `console` block runs, and its output is
//! what the document shows.
//!
//! A document is one session in one folder, with `datasets/` and `heda` at hand. A command begins
//! with `$ `, goes on with `> `, and must succeed; lines below it are its standard output (progress
//! and notes go to standard error and are not shown). What varies by machine or chance is marked in
//! the document's source before the block: `<!-- varies: time; speed -->` lists beginnings of
//! lines in which any number will do; `<!-- varies: all -->` means every line. Fingerprints and
//! names of jobs are never compared. `UPDATE_DOCUMENTS=1` puts what was found into the documents.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test that fails should say where")]

use std::ops::Range;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Commands that cannot run inside a test, and what stands for them.
const INSTEAD: [(&str, &str); 2] = [
    // What cargo would build is what is tested.
    ("cargo run --release -- ", "heda "),
    // This is what is running.
    ("cargo test --workspace", "true"),
];
const MARK: &str = "<!-- varies:";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

#[derive(Debug)]
struct Step {
    line: usize,
    command: String,
    expected: Vec<String>,
    /// Where the output stands in the document.
    output: Range<usize>,
    /// Beginnings of lines whose numbers may differ.
    varying: Vec<String>,
}

/// All commands of a document with their output.
fn steps(text: &str) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let mut varying = Vec::new();
    let mut inside = false;
    for (number, line) in text.lines().enumerate() {
        if let Some(rest) = line.strip_prefix(MARK) {
            let list = rest.trim_end_matches("-->").split(';');
            varying = list.map(|start| start.trim().to_owned()).collect();
        } else if line.starts_with("```") {
            inside = !inside && line == "```console";
            if !inside && line == "```" {
                varying.clear();
            }
        } else if inside {
            match (line.strip_prefix("$ "), steps.last_mut()) {
                (Some(command), _) => steps.push(Step {
                    line: number + 1,
                    command: command.to_owned(),
                    expected: Vec::new(),
                    output: number + 1..number + 1,
                    varying: varying.clone(),
                }),
                (None, Some(step)) => match line.strip_prefix("> ") {
                    Some(more) if step.expected.is_empty() => {
                        step.command = format!("{}\n{more}", step.command);
                        step.output = number + 1..number + 1;
                    }
                    _ => {
                        step.expected.push(line.to_owned());
                        step.output.end = number + 1;
                    }
                },
                (None, None) => panic!("line {}: output before any command", number + 1),
            }
        }
    }
    steps
}

/// One script of all commands; before each its number and the last exit code are printed.
fn script(steps: &[Step]) -> String {
    let mut text = String::from("true\n");
    for (number, step) in steps.iter().enumerate() {
        let stand_in = |command: String, (from, to): &(&str, &str)| command.replace(from, to);
        let command = INSTEAD.iter().fold(step.command.clone(), stand_in);
        text += &format!("printf '\\n@@ %d %d\\n' {number} $?\n{command}\n");
    }
    text + "printf '\\n@@ end %d\\n' $?\n"
}

/// Numbers and fingerprints by their places only, and gaps of any width.
fn shape(line: &str) -> String {
    let words = line.split_whitespace().map(|word| {
        let mut shape = String::new();
        for c in word.chars() {
            let part = c.is_ascii_digit() || (shape.ends_with('#') && ".,-".contains(c));
            match part {
                true if shape.ends_with('#') => {}
                true => shape.push('#'),
                false => shape.push(c),
            }
        }
        shape
    });
    words.collect::<Vec<_>>().join(" ")
}

/// Fingerprints and names of jobs differ in every run.
fn without_names(line: &str) -> String {
    let mut text = String::new();
    for part in line.split_inclusive(|c: char| !c.is_ascii_hexdigit()) {
        let digits = part.trim_end_matches(|c: char| !c.is_ascii_hexdigit());
        match digits.len() >= 32 {
            true => text += &part.replace(digits, "…"),
            false => text += part,
        }
    }
    text
}

fn same(step: &Step, expected: &str, found: &str) -> bool {
    let varies =
        |start: &String| start == "all" || expected.trim_start().starts_with(start.as_str());
    let (expected_text, found_text) = (without_names(expected), without_names(found));
    match step.varying.iter().any(varies) {
        true => shape(&expected_text) == shape(&found_text),
        false => expected_text.trim_end() == found_text.trim_end(),
    }
}

fn trimmed(lines: &[String]) -> &[String] {
    let blank = |line: &String| line.trim().is_empty();
    let start = lines
        .iter()
        .position(|line| !blank(line))
        .unwrap_or(lines.len());
    let end = lines
        .iter()
        .rposition(|line| !blank(line))
        .map_or(start, |last| last + 1);
    &lines[start..end]
}

/// The document with what was found in place of what it shows.
fn rewritten(text: &str, found: &[(&Step, Vec<String>)]) -> String {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    for (step, output) in found.iter().rev() {
        lines.splice(step.output.clone(), output.iter().cloned());
    }
    lines.join("\n") + "\n"
}

/// Runs a document; how many commands it had. Fails with all differences, or puts them right if
/// `UPDATE_DOCUMENTS` is set.
fn follow(document: &str) -> usize {
    let text = std::fs::read_to_string(root().join(document)).unwrap();
    let steps = steps(&text);
    let folder = tempfile::tempdir().unwrap();
    let programs = folder.path().join(".programs");
    let session = folder.path().join("session");
    std::fs::create_dir_all(&programs).unwrap();
    std::fs::create_dir_all(&session).unwrap();
    let link = std::os::unix::fs::symlink::<PathBuf, PathBuf>;
    link(env!("CARGO_BIN_EXE_heda").into(), programs.join("heda")).unwrap();
    let datasets = root().join("datasets").canonicalize().unwrap();
    link(datasets, session.join("datasets")).unwrap();
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap());
    let shell = Command::new("sh")
        .args(["-c", &script(&steps)])
        .current_dir(&session)
        .env("PATH", path)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .spawn()
        .unwrap();
    let group = format!("-{}", shell.id());
    let output = shell.wait_with_output().unwrap();
    // Whatever a document left running.
    let _ = Command::new("kill")
        .args(["--", &group])
        .stderr(Stdio::null())
        .status();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    let printed = String::from_utf8(output.stdout).unwrap();
    // Before mark n comes the output of step n − 1.
    let mut parts = printed.split("\n@@ ").skip(1).peekable();
    let (mut differences, mut changes) = (Vec::new(), Vec::new());
    for step in &steps {
        let part = parts.next().unwrap_or_default();
        let code = parts.peek().and_then(|next| next.split_whitespace().nth(1));
        let found: Vec<String> = part.lines().skip(1).map(str::to_owned).collect();
        let (expected, found) = (trimmed(&step.expected), trimmed(&found));
        let pairs = expected.iter().zip(found);
        let equal = expected.len() == found.len() && pairs.clone().all(|(e, f)| same(step, e, f));
        if code != Some("0") || !equal {
            differences.push(format!(
                "{document}, line {}: $ {}\nexit code {}\n--- expected\n{}\n--- found\n{}",
                step.line,
                step.command,
                code.unwrap_or("unknown"),
                expected.join("\n"),
                found.join("\n"),
            ));
            changes.push((step, found.to_vec()));
        }
    }
    if std::env::var_os("UPDATE_DOCUMENTS").is_some() {
        std::fs::write(root().join(document), rewritten(&text, &changes)).unwrap();
    }
    assert!(
        differences.is_empty(),
        "{}\n--- stderr\n{errors}",
        differences.join("\n\n")
    );
    steps.len()
}

#[test]
fn the_readme_says_what_happens() {
    assert!(follow("README.md") >= 5);
}

#[test]
fn the_tutorial_says_what_happens() {
    assert!(follow("docs/tutorial.md") >= 15);
}

/// What no text says any more, because the code does something else, with what it does.
const STALE: [(&str, &str); 9] = [
    (
        "is paid again",
        "a step is answered once, and never paid twice",
    ),
    (
        "paid for again",
        "a step is answered once, and never paid twice",
    ),
    ("repeated after breaks", "a step is answered once"),
    (
        "all but one of the others, and only",
        "it is all but one of the known ones",
    ),
    (
        "all but one of the others, and none",
        "it is all but one of the known ones",
    ),
    (
        "all but one of the others, but never",
        "it is all but one of the known ones",
    ),
    (
        "the noise of all others but one",
        "it is all but one of the known ones",
    ),
    (
        "as for everybody if left out",
        "it is three quarters where several are allowed",
    ),
    (
        "an exact one may end earlier",
        "every job asks for all of its gradients",
    ),
];

/// All texts of ours that people read: documents, and what configurations say of themselves.
fn texts(folder: &Path, found: &mut Vec<(PathBuf, String)>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let readable = path
            .extension()
            .is_some_and(|e| e == "md" || e == "rs" || e == "json");
        if path.is_dir() {
            texts(&path, found);
        } else if readable {
            let text = std::fs::read_to_string(&path).unwrap();
            // Where a line is broken does not matter, nor what begins it.
            let words = text
                .split_whitespace()
                .filter(|w| !["#", "//", "///", "\\"].contains(w));
            let words = words.map(|word| word.trim_end_matches("\\n\\"));
            found.push((path, words.collect::<Vec<_>>().join(" ")));
        }
    }
}

#[test]
fn no_text_says_what_the_code_does_not_do_any_more() {
    let mut found = Vec::new();
    for folder in ["docs", "crates/heda-node/src/config", "crates/heda-cli/src"] {
        texts(&root().join(folder), &mut found);
    }
    for file in ["README.md", "SECURITY.md"] {
        let text = std::fs::read_to_string(root().join(file)).unwrap();
        found.push((
            file.into(),
            text.split_whitespace().collect::<Vec<_>>().join(" "),
        ));
    }
    assert!(found.len() > 40, "{} texts", found.len());
    for (path, text) in &found {
        for (stale, instead) in STALE {
            let path = path.display();
            assert!(
                !text.contains(stale),
                "{path} says \"{stale}\", but {instead}"
            );
        }
    }
}

#[test]
fn marked_lines_are_compared_by_shape_and_others_to_the_letter() {
    let text = "<!-- varies: time -->\n```console\n$ a\n> b\ntime 1.25 s: x\nrows 7\n```\n\
                ```sh\nnot run\n```\n```console\n$ c\ntime 3\n```\n";
    let steps = steps(text);
    assert_eq!(steps.len(), 2);
    assert_eq!(
        (steps[0].command.as_str(), steps[0].expected.len()),
        ("a\nb", 2)
    );
    assert!(same(&steps[0], "time 1.25 s: x", "time   31.5 s: x"));
    assert!(!same(&steps[0], "time 1.25 s: x", "time 31.5 s: y"));
    assert!(!same(&steps[0], "rows 7", "rows 8"));
    assert!(!same(&steps[1], "time 3", "time 4"));
    let print = |digit: char| format!("is sha256:{} now", digit.to_string().repeat(64));
    assert!(same(&steps[1], &print('a'), &print('0')));
    assert!(!same(&steps[1], &print('a'), "is sha256:aa now"));
    let changed = [(&steps[0], vec!["new".to_owned()]), (&steps[1], vec![])];
    assert_eq!(
        rewritten(text, &changed),
        text.replace("time 1.25 s: x\nrows 7\n", "new\n")
            .replace("time 3\n", "")
    );
    assert_eq!(shape("17.5 MB, 3 back 2026-01-02"), "# MB, # back #");
}
