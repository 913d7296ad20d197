//! Bad input: exit code 2, a message with file, place and remedy, and nothing half done.

#![allow(clippy::unwrap_used)]

use std::io::{Seek, SeekFrom, Write};
use std::path::Path;
use std::process::{Command, Output};

const SCHEMA: &str = r#"
format = 1
name = "test"

[label]
column = "class"
classes = ["no", "yes"]
positive = "yes"

[[column]]
name = "age"
kind = "numeric"
bounds = [20, 60]

[[column]]
name = "colour"
kind = "categorical"
levels = ["red", "green", "blue"]
"#;

const ROWS: &str = "age,colour,class\n20,red,no\n60,blue,yes\n30,green,no\n40,red,yes\n";

fn heda(folder: &Path) -> Output {
    Command::new(env!("CARGO_BIN_EXE_heda"))
        .args([
            "score",
            "--data",
            "data.csv",
            "--schema",
            "schema.toml",
            "--method",
            "kw",
        ])
        .current_dir(folder)
        .output()
        .unwrap()
}

/// Runs the command on files that `prepare` spoils, and checks how it refuses them.
fn refused(prepare: impl FnOnce(&Path), place: &str, remedy: &str) {
    let folder = tempfile::tempdir().unwrap();
    let path = |name| folder.path().join(name);
    std::fs::write(path("data.csv"), ROWS).unwrap();
    std::fs::write(path("schema.toml"), SCHEMA).unwrap();
    prepare(folder.path());
    let output = heda(folder.path());
    let message = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{message}");
    assert!(
        output.stdout.is_empty(),
        "nothing may be printed as a result"
    );
    assert!(message.contains(place), "{message}");
    assert!(message.contains(remedy), "{message}");
    let files = std::fs::read_dir(folder.path()).unwrap().count();
    assert_eq!(files, 2, "nothing may be left behind");
}

/// Spoils the rows.
fn rows(text: impl AsRef<[u8]>) -> impl FnOnce(&Path) {
    move |folder| std::fs::write(folder.join("data.csv"), text).unwrap()
}

/// Spoils the schema.
fn schema(from: &'static str, to: &'static str) -> impl FnOnce(&Path) {
    assert!(SCHEMA.contains(from));
    move |folder| {
        std::fs::write(folder.join("schema.toml"), SCHEMA.replacen(from, to, 1)).unwrap();
    }
}

#[test]
fn the_unspoilt_input_is_accepted() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("data.csv"), ROWS).unwrap();
    std::fs::write(folder.path().join("schema.toml"), SCHEMA).unwrap();
    let output = heda(folder.path());
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
fn missing_column() {
    let text = ROWS.replace("colour", "color");
    refused(
        rows(text),
        "data.csv: line 1, column `colour`: ",
        "add it or correct its name",
    );
}

#[test]
fn unknown_level() {
    let text = ROWS.replace("blue", "pink");
    refused(
        rows(text),
        "data.csv: line 3, column `colour`: ",
        "add it to `levels`",
    );
}

#[test]
fn text_in_a_numeric_column() {
    let text = ROWS.replace("30", "thirty");
    refused(
        rows(text),
        "data.csv: line 4, column `age`: ",
        "list it under `missing_markers`",
    );
}

#[test]
fn empty_file() {
    refused(
        rows(""),
        "data.csv: no rows",
        "give a file with a header line",
    );
}

#[test]
fn one_class_only() {
    let text = ROWS.replace("yes", "no");
    refused(
        rows(text),
        "data.csv: column `class`: ",
        "at least two classes",
    );
}

#[test]
fn not_a_number() {
    let text = ROWS.replace("30", "NaN");
    refused(
        rows(text),
        "data.csv: line 4, column `age`: ",
        "not a finite number; correct it",
    );
}

#[test]
fn infinity() {
    let text = ROWS.replace("30", "inf");
    refused(
        rows(text),
        "data.csv: line 4, column `age`: ",
        "not a finite number; correct it",
    );
}

#[test]
fn duplicated_header() {
    let text = ROWS.replace("colour", "age");
    refused(
        rows(text),
        "data.csv: line 1, column `age`: ",
        "rename or remove one",
    );
}

#[test]
fn a_line_of_one_gigabyte() {
    // A hole in the file: a gigabyte to read that takes no space on the disk.
    let sparse = |folder: &Path| {
        let mut file = std::fs::File::create(folder.join("data.csv")).unwrap();
        file.write_all(ROWS.as_bytes()).unwrap();
        file.seek(SeekFrom::Current(1 << 30)).unwrap();
        file.write_all(b"\n").unwrap();
    };
    refused(
        sparse,
        "data.csv: line 6: ",
        "look for an unclosed quote or a missing line break",
    );
}

#[test]
fn wrong_utf8() {
    let mut bytes = ROWS.as_bytes().to_vec();
    let at = ROWS.find("blue").unwrap();
    bytes[at] = 0xff;
    refused(
        rows(bytes),
        "data.csv: line 3, column `colour`: ",
        "convert the file to UTF-8",
    );
}

#[test]
fn bounds_reversed() {
    let spoilt = schema("[20, 60]", "[60, 20]");
    refused(
        spoilt,
        "schema.toml: line 13, column 10: ",
        "write [lower, upper]",
    );
}

#[test]
fn label_column_used_as_feature() {
    let spoilt = schema("name = \"colour\"", "name = \"class\"");
    refused(
        spoilt,
        "schema.toml: line 16, column 8: ",
        "remove its [[column]]",
    );
}
