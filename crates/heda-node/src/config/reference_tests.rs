//! The reference against the code: every key that a file may have is in it, with the default that
//! the code has and an example that can be read.

use super::{JOB_KEYS, JobConfig, PROVIDER_KEYS, ProviderConfig};
use heda_learn::reference::{FileKeys, Key};
use serde::de::DeserializeOwned;
use std::collections::BTreeSet;

const JOB: &str = include_str!("../../tests/files/job.toml");
const PROVIDER: &str = include_str!("../../tests/files/provider.toml");

/// Sections that are values of the table above them in the code.
fn is_section(keys: &FileKeys, name: &str) -> bool {
    let mut sections = keys.sections().into_iter();
    sections.any(|section| section.trim_end_matches("[]") == name)
}

/// A file with a line at the end of a section, and without another line of this key.
fn with(text: &str, section: &str, name: &str, line: &str) -> String {
    let header = match section.strip_suffix("[]") {
        _ if section.is_empty() => String::new(),
        Some(list) => format!("[[{list}]]"),
        None => format!("[{section}]"),
    };
    let mut out = String::new();
    let mut here = header.is_empty();
    let mut done = false;
    if here {
        out += &format!("{line}\n");
        done = true;
    }
    for old in text.lines() {
        if old.starts_with('[') {
            // Of several entries the first one.
            here = old == header && !done;
        }
        let same = here && old.split('=').next().is_some_and(|key| key.trim() == name);
        if !same {
            out += &format!("{old}\n");
        }
        if old == header && !done {
            out += &format!("{line}\n");
            done = true;
        }
    }
    match done {
        true => out,
        false => format!("{out}\n{header}\n{line}\n"),
    }
}

/// The names that the code knows in a section, from its message about one that it does not.
fn known<T: DeserializeOwned>(text: &str, section: &str) -> BTreeSet<String> {
    let wrong = with(text, section, "no_such_key", "no_such_key = 1");
    let error = toml::from_str::<T>(&wrong)
        .err()
        .map(|e| e.message().to_owned());
    let error = error.unwrap_or_default();
    assert!(
        error.starts_with("unknown field `no_such_key`"),
        "[{section}]: {error}"
    );
    error
        .split('`')
        .skip(3)
        .step_by(2)
        .map(str::to_owned)
        .collect()
}

fn check<T: DeserializeOwned + PartialEq + std::fmt::Debug>(text: &str, keys: &FileKeys) {
    for section in keys.sections() {
        let listed = keys.keys().filter(|key| key.section == section);
        let listed: BTreeSet<String> = listed.map(|key| key.name.to_owned()).collect();
        let mut known = known::<T>(text, section);
        if section.is_empty() {
            known.retain(|name| !is_section(keys, name));
        }
        assert_eq!(listed, known, "[{section}] of {}", keys.file);
    }
    for key in keys.keys() {
        check_example::<T>(text, key);
        check_default::<T>(text, key);
    }
}

fn check_example<T: DeserializeOwned>(text: &str, key: &Key) {
    let Key {
        section,
        name,
        example,
        ..
    } = key;
    let line = format!("{name} = {example}");
    // A section may need more than this key; that is no fault of the example.
    let lines = match *section {
        "reproducible" => "seed = 1\nparty = \"a\"".to_owned(),
        "privacy" => match *name {
            "epsilon" => "epsilon = 1\nrows = 9".to_owned(),
            "rows" => "epsilon = 1\nrows = 30000".to_owned(),
            _ => format!("epsilon = 1\nrows = 9\n{line}"),
        },
        _ => line.clone(),
    };
    let read = toml::from_str::<T>(&with(text, section, name, &lines));
    assert!(
        read.is_ok(),
        "{line}: {}",
        read.err().map_or(String::new(), |e| e.to_string())
    );
}

fn check_default<T: DeserializeOwned + PartialEq + std::fmt::Debug>(text: &str, key: &Key) {
    let Key { section, name, .. } = key;
    let Some(default) = key.need.default() else {
        return;
    };
    if *name == "iota" {
        return; // Completed after reading: `a_job_encrypts_everything_by_default`.
    }
    let without = with(text, section, name, "");
    let stated = with(text, section, name, &format!("{name} = {default}"));
    let read = |text: &str| toml::from_str::<T>(text).map_err(|e| format!("{name}: {e}"));
    assert_eq!(
        read(&without).unwrap(),
        read(&stated).unwrap(),
        "default of {name}"
    );
}

#[test]
fn every_key_of_a_job_is_in_the_reference() {
    check::<JobConfig>(JOB, &JOB_KEYS);
}

#[test]
fn every_key_of_a_provider_is_in_the_reference() {
    check::<ProviderConfig>(PROVIDER, &PROVIDER_KEYS);
}

#[test]
fn a_job_encrypts_everything_by_default() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("job.toml");
    std::fs::write(
        &path,
        JOB.replace("iota = 5\n", "").replace("epsilon = 1.5\n", ""),
    )
    .unwrap();
    let config = JobConfig::load(&path).unwrap();
    assert_eq!(
        (config.iota, config.epsilon),
        (Some(super::IotaValue::All), None)
    );
}

#[test]
fn messages_are_in_the_words_of_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("job.toml");
    for (from, to, words) in [
        (
            "optimiser = { name = \"lbfgs\" }",
            "optimiser = \"lbfgs\"",
            "for example optimiser = { name = \"lbfgs\" }",
        ),
        ("data_set =", "dataset =", "did you mean `data_set`?"),
        (
            "iterations = 40",
            "iterations = \"many\"",
            "`iterations` is a whole number from 1 upwards",
        ),
        (
            "on_loss = \"wait\"",
            "on_loss = \"panic\"",
            "`on_loss` is one of \"wait\", \"continue\"",
        ),
        (
            "answer_seconds = 60",
            "answers_seconds = 60",
            "did you mean `answer_seconds`?",
        ),
        (
            "address = \"a.example:7443\"",
            "address = 7443",
            "`address` is a text in quotes",
        ),
    ] {
        assert!(JOB.contains(from), "{from}");
        std::fs::write(&path, JOB.replacen(from, to, 1)).unwrap();
        let error = JobConfig::load(&path).unwrap_err().to_string();
        assert!(error.contains(words) && error.contains("line "), "{error}");
        assert!(!error.contains("internally tagged"), "{error}");
    }
}
