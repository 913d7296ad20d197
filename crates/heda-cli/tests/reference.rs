//! The reference and the JSON schemas in the documents are what the program prints, and the schemas
//! accept the files of the repository and those that the program writes.

#![allow(clippy::unwrap_used)]

mod schemas;

use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::Command;

fn printed(arguments: &[&str]) -> String {
    let heda = Command::new(env!("CARGO_BIN_EXE_heda"))
        .args(arguments)
        .output()
        .unwrap();
    let words = String::from_utf8_lossy(&heda.stderr);
    assert!(heda.status.success(), "{arguments:?}: {words}");
    String::from_utf8(heda.stdout).unwrap()
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

#[test]
fn the_reference_is_up_to_date() {
    let docs = repository().join("docs");
    let mut files = vec![(docs.join("reference.md"), printed(&["reference"]))];
    for name in ["job", "provider", "schema", "invitation", "answer"] {
        let text = printed(&["reference", "--json-schema", name]);
        let schema: Value = serde_json::from_str(&text).unwrap();
        let title = schema["title"].as_str().unwrap();
        assert!(title.ends_with(&format!("{name}.toml")), "{title}");
        files.push((docs.join(format!("schemas/{name}.json")), text));
    }
    for (path, text) in files {
        if std::env::var_os("UPDATE_DOCUMENTS").is_some() {
            std::fs::write(&path, &text).unwrap();
        }
        let found = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(
            found == text,
            "{} is old; run with UPDATE_DOCUMENTS=1",
            path.display()
        );
    }
}

/// A file and the schema that it follows.
fn read(path: &Path, schema: &'static str) -> (&'static str, Value) {
    let text = std::fs::read_to_string(path).unwrap();
    let table: toml::Table = text.parse().unwrap();
    (schema, serde_json::to_value(table).unwrap())
}

/// All files of the repository, and those that `heda invite` and `heda provider setup` write for a
/// private job and for an exact one.
fn files() -> Vec<(&'static str, Value)> {
    let here = repository();
    let mut files = Vec::new();
    for folder in ["crates/heda-node/tests/files", "examples/three-hospitals"] {
        for (name, schema) in [("job.toml", "job"), ("provider.toml", "provider")] {
            files.push(read(&here.join(folder).join(name), schema));
        }
    }
    for entry in std::fs::read_dir(here.join("datasets")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|ending| ending == "toml") {
            files.push(read(&path, "schema"));
        }
    }
    for private in [true, false] {
        files.extend(made(private));
    }
    files
}

fn made(private: bool) -> Vec<(&'static str, Value)> {
    let folder = tempfile::tempdir().unwrap();
    let study = folder.path().join("study");
    let north = folder.path().join("north");
    let datasets = repository().join("datasets");
    let [study_text, north_text] = [&study, &north].map(|path| path.to_str().unwrap());
    let [schema, rows] = ["bcwd.natural.toml", "bcwd.csv"].map(|name| datasets.join(name));
    let (schema, rows) = (schema.to_str().unwrap(), rows.to_str().unwrap());
    let invitation = study.join("invitation.toml");
    let mut invite = vec!["invite", "--name", "university", "--schema", schema];
    let mut setup = vec!["provider", "setup", "--name", "north", "--data", rows];
    setup.extend(["--address", "127.0.0.1:7443", "--separator", ","]);
    setup.extend([
        "--invitation",
        invitation.to_str().unwrap(),
        "--out",
        north_text,
    ]);
    invite.extend(["--out", study_text]);
    match private {
        true => invite.extend(["--private", "1", "--rows", "480"]),
        false => {
            invite.extend(["--penalty", "0.5", "--balanced"]);
            setup.push("--allow-exact");
        }
    }
    printed(&invite);
    printed(&setup);
    vec![
        read(&invitation, "invitation"),
        read(&study.join("job.toml"), "job"),
        read(&study.join("schema.toml"), "schema"),
        read(&north.join("provider.toml"), "provider"),
        read(&north.join("north.answer.toml"), "answer"),
    ]
}

/// The value with one key misspelt, and with one value of a type that no key has, for every key.
fn spoilt(value: &Value) -> Vec<Value> {
    let mut all = Vec::new();
    if let Some(members) = value.as_object() {
        for (name, member) in members {
            let with = |name: &str, member: Value| {
                let mut spoilt = members.clone();
                spoilt.insert(name.to_owned(), member);
                Value::Object(spoilt)
            };
            all.push(with(&format!("{name}s_"), member.clone()));
            all.push(with(name, json!({ "no": [true] })));
            all.extend(
                spoilt_each(member)
                    .into_iter()
                    .map(|member| with(name, member)),
            );
        }
    }
    all
}

/// The same for a section, and for the entries of a list of sections.
fn spoilt_each(member: &Value) -> Vec<Value> {
    let Some(entries) = member.as_array() else {
        return spoilt(member);
    };
    let at = |(place, entry)| {
        let put = move |entry| {
            let mut entries = entries.clone();
            entries[place] = entry;
            Value::Array(entries)
        };
        spoilt(entry).into_iter().map(put)
    };
    entries.iter().enumerate().flat_map(at).collect()
}

#[test]
fn json_schemas_accept_all_files_and_refuse_misspelt_keys_and_wrong_types() {
    let files = files();
    assert_eq!(files.len(), 4 + 8 + 10);
    let mut refused = 0;
    for (schema, file) in &files {
        let faults = schemas::faults(file, schema);
        assert!(faults.is_empty(), "{schema}: {faults:#?}");
        for spoilt in spoilt(file) {
            let faults = schemas::faults(&spoilt, schema);
            assert!(!faults.is_empty(), "{schema}: {spoilt:#}");
            refused += 1;
        }
    }
    assert!(refused > 1000, "{refused}");
}
