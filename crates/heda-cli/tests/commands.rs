//! The commands as a user runs them: results on stdout, exit codes, nothing half written.

#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;
use tempfile::TempDir;

fn heda(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_heda"))
        .args(arguments)
        .output()
        .unwrap()
}

fn done(arguments: &[&str]) -> String {
    let output = heda(arguments);
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{arguments:?}: {errors}");
    String::from_utf8(output.stdout).unwrap()
}

fn json(arguments: &[&str]) -> serde_json::Value {
    serde_json::from_str(&done(arguments)).unwrap()
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// A folder with a model of BCWD in it, trained once for all tests.
fn trained() -> (TempDir, PathBuf) {
    static MODEL: OnceLock<Vec<u8>> = OnceLock::new();
    let folder = tempfile::tempdir().unwrap();
    let bytes = MODEL.get_or_init(|| {
        let out = folder.path().join("demo");
        done(&[
            "demo",
            "--dataset",
            "bcwd",
            "--seed",
            "1",
            "--out",
            text(&out),
        ]);
        let bytes = std::fs::read(out.join("model.json")).unwrap();
        std::fs::remove_dir_all(out).unwrap();
        bytes
    });
    let model = folder.path().join("model.json");
    std::fs::write(&model, bytes).unwrap();
    (folder, model)
}

fn bcwd() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../datasets/bcwd.csv")
}

#[test]
fn the_demo_trains_under_encryption_and_a_seed_repeats_it() {
    let folder = tempfile::tempdir().unwrap();
    let run = |name: &str| {
        let out = folder.path().join(name);
        let line = "demo --dataset bcwd --seed 7 --json --out";
        let line: Vec<&str> = line.split(' ').chain([text(&out)]).collect();
        let object = json(&line);
        (
            object,
            std::fs::read_to_string(out.join("model.json")).unwrap(),
        )
    };
    let (first, model) = run("first");
    assert_eq!(
        (&first["engine"], &first["seeded"]),
        (&"resident".into(), &true.into())
    );
    assert_eq!(
        first["rows"].as_u64().unwrap() + first["held_out"].as_u64().unwrap(),
        699
    );
    let share = |name: &str| first[name].as_f64().unwrap();
    assert!(
        share("accuracy") > share("majority_accuracy") + 0.2,
        "{first}"
    );
    assert!(
        (share("accuracy") - share("plain_accuracy")).abs() < 0.05,
        "{first}"
    );
    let (second, again) = run("second");
    assert_eq!((model, &first["bytes"]), (again, &second["bytes"]));
}

#[test]
fn the_demo_leaves_a_report() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("a b");
    let line = "demo --dataset bcwd --seed 1 --out";
    let line: Vec<&str> = line.split(' ').chain([text(&out)]).collect();
    let shown = done(&line);
    let path = out.join("report.html");
    assert!(
        shown.contains("SEEDED RUN") && shown.contains(text(&path)),
        "{shown}"
    );
    let page = std::fs::read_to_string(path).unwrap();
    assert!(page.contains("heda demo --dataset bcwd --seed 1 --out '"));
    assert!(page.ends_with("</html>\n"));
    // Classes are words where people read them, and what the file has where programs do.
    assert!(page.contains("as malignant") && !page.contains("as 4"));
    let model = std::fs::read_to_string(out.join("model.json")).unwrap();
    assert!(!model.contains("malignant"));
}

/// What people judge us by: everything that they ask for, and nothing that wraps.
#[test]
fn the_first_screen_has_one_accuracy_the_guarantee_the_cost_and_who_learned_what() {
    let help = done(&["demo", "--help"]);
    assert!(help.contains("[default: adult]"), "{help}");
    // As quick as a test should be; the README runs the default one.
    let own = ["demo", "--dataset", "crx"];
    for (line, promise) in [
        (&[][..], "none: sums are exact"),
        (&["--private", "1"][..], "epsilon 1, delta 1e-5 for a row"),
    ] {
        let shown = done(&[&own, line].concat());
        let begins = |label: &str| {
            let found: Vec<&str> = shown.lines().filter(|l| l.starts_with(label)).collect();
            assert_eq!(found.len(), 1, "{label} in {shown}");
            found[0].to_owned()
        };
        assert!(shown.starts_with("Credit Approval: "), "{shown}");
        let accuracy = begins("Accuracy  ");
        assert!(accuracy.contains("(95 %: "), "{accuracy}");
        assert!(accuracy.contains(", in clear "), "{accuracy}");
        assert!(begins("Guarantee").contains(promise), "{shown}");
        assert!(begins("Time").contains(" s: setup "), "{shown}");
        assert!(begins("Traffic").contains(" MB back"), "{shown}");
        let learned = shown.split_once("Who learned what\n").unwrap().1;
        let learned: Vec<&str> = learned.lines().take_while(|l| !l.is_empty()).collect();
        assert_eq!(learned.len(), 4, "{shown}");
        for (line, who) in learned
            .iter()
            .zip(["Data user", "Providers", "Of each other", "Nobody"])
        {
            assert!(line.trim_start().starts_with(who), "{shown}");
        }
        let widest = shown.lines().map(|line| line.chars().count()).max();
        assert!(widest <= Some(80), "{shown}");
        assert!(!shown.contains("SEEDED"), "{shown}");
    }
}

#[test]
fn predict_and_evaluate_agree() {
    let (folder, model) = trained();
    let data = bcwd();
    let arguments = ["--model", text(&model), "--data", text(&data)];
    let evaluation = json(&[&["evaluate", "--json"], &arguments[..]].concat());
    let csv = done(&[&["predict"], &arguments[..]].concat());
    let mut lines = csv.lines();
    let header = lines.next().unwrap();
    assert_eq!(header, "row,class,score:4,probability:4");
    let predicted: Vec<&str> = lines.map(|l| l.split(',').nth(1).unwrap()).collect();
    assert_eq!(evaluation["rows"], predicted.len());
    let rows = std::fs::read_to_string(&data).unwrap();
    let actual = rows.lines().skip(1).map(|l| l.rsplit(',').next().unwrap());
    let right = actual.zip(&predicted).filter(|(a, p)| a == *p).count();
    let accuracy = right as f64 / predicted.len() as f64;
    assert_eq!(evaluation["accuracy"], accuracy);
    let out = folder.path().join("p.csv");
    let summary = json(&[&["predict", "--json", "--out", text(&out)], &arguments[..]].concat());
    assert_eq!(summary["rows"], predicted.len());
    assert_eq!(std::fs::read_to_string(out).unwrap(), csv);
}

#[test]
fn export_writes_onnx() {
    let (folder, model) = trained();
    let out = folder.path().join("model.onnx");
    let arguments = [
        "export",
        "--onnx",
        "--json",
        "--model",
        text(&model),
        "--out",
        text(&out),
    ];
    let report = json(&arguments);
    let bytes = std::fs::read(&out).unwrap();
    assert_eq!(report["bytes"], bytes.len());
    assert_eq!(report["columns"].as_array().unwrap().len(), 9);
    assert!(bytes.windows(6).any(|w| w == b"MatMul"));
}

#[test]
fn usage_errors_exit_with_2() {
    for arguments in [
        &["demo", "--dataset", "iris"][..],
        &["predict"],
        &["nothing"],
        &["export"],
    ] {
        assert_eq!(heda(arguments).status.code(), Some(2), "{arguments:?}");
    }
    let (_folder, model) = trained();
    let broken = model.with_file_name("broken.json");
    std::fs::write(&broken, "{\"format\": 1}").unwrap();
    let data = bcwd();
    let output = heda(&["evaluate", "--model", text(&broken), "--data", text(&data)]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("broken.json"));
}

/// Runs `predict` or `evaluate` on a bad file: exit code 2, the words, and no output file.
fn refused(command: &str, content: &[u8], words: &[&str]) {
    let (folder, model) = trained();
    let data = folder.path().join("bad.csv");
    std::fs::write(&data, content).unwrap();
    let out = folder.path().join("out.csv");
    let mut arguments = vec![command, "--model", text(&model), "--data", text(&data)];
    if command == "predict" {
        arguments.extend(["--out", text(&out)]);
    }
    let output = heda(&arguments);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{errors}");
    assert!(output.stdout.is_empty());
    for word in words.iter().chain(&["bad.csv"]) {
        assert!(errors.contains(word), "{errors}");
    }
    assert!(!out.exists());
    assert_eq!(
        std::fs::read_dir(folder.path()).unwrap().count(),
        2,
        "nothing else is left"
    );
}

/// The bundled file with its lines changed.
fn changed(change: impl Fn(usize, &str) -> String) -> Vec<u8> {
    let rows = std::fs::read_to_string(bcwd()).unwrap();
    let lines: Vec<String> = rows
        .lines()
        .enumerate()
        .map(|(i, l)| change(i, l))
        .collect();
    lines.join("\n").into_bytes()
}

fn with_cell(line: usize, column: usize, value: &str) -> Vec<u8> {
    changed(|i, text| {
        let mut cells: Vec<&str> = text.split(',').collect();
        if i == line {
            cells[column] = value;
        }
        cells.join(",")
    })
}

#[test]
fn a_missing_column_is_refused() {
    refused("predict", &with_cell(0, 0, "other"), &["clump_thickness"]);
}

#[test]
fn a_duplicated_header_is_refused() {
    let header = std::fs::read_to_string(bcwd()).unwrap();
    let second = header
        .lines()
        .next()
        .unwrap()
        .split(',')
        .nth(1)
        .unwrap()
        .to_owned();
    refused("predict", &with_cell(0, 0, &second), &[&second]);
}

#[test]
fn text_in_a_numeric_column_is_refused() {
    refused("predict", &with_cell(5, 0, "five"), &["line 6", "five"]);
}

#[test]
fn nan_and_infinity_are_refused() {
    refused("predict", &with_cell(5, 0, "NaN"), &["line 6"]);
    refused("predict", &with_cell(5, 0, "inf"), &["line 6"]);
}

#[test]
fn an_unknown_class_is_refused() {
    refused("evaluate", &with_cell(3, 9, "3"), &["line 4"]);
}

#[test]
fn an_empty_file_is_refused() {
    refused("predict", b"", &["no rows"]);
}

#[test]
fn one_class_only_is_refused() {
    let all_benign = changed(|i, text| match (i, text.rsplit_once(',')) {
        (1.., Some((cells, _))) => format!("{cells},2"),
        _ => text.to_owned(),
    });
    refused("evaluate", &all_benign, &["class"]);
}

#[test]
fn wrong_utf8_is_refused() {
    let mut content = changed(|_, text| text.to_owned());
    let at = content.iter().position(|&b| b == b'\n').unwrap() + 1;
    content[at] = 0xff;
    refused("predict", &content, &["UTF-8"]);
}

#[test]
fn an_endless_line_is_refused() {
    let mut content = changed(|_, text| text.to_owned());
    content.extend(std::iter::repeat_n(b'1', 16 << 20));
    refused("predict", &content, &["bytes"]);
}
