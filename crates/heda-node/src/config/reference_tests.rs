//! What the descriptions of keys become: defaults, examples, messages.

use super::{JobConfig, ProviderConfig, files};
use crate::daemon::breaches::MOST_DOUBLINGS;
use heda_dp::gdp::Delta;
use heda_learn::optimise::{PenaltyPath, usual_iterations};
use heda_learn::reference::Key;

const JOB: &str = include_str!("../../tests/files/job.toml");

/// Every key of a table and of its sections.
fn all(keys: &[Key]) -> Vec<&Key> {
    let inner = keys.iter().filter_map(Key::section);
    let inner = inner.flat_map(|(keys, _)| all(keys));
    keys.iter().chain(inner).collect()
}

#[test]
fn every_key_has_a_sentence_and_an_example_that_can_be_read() {
    let files = files();
    let keys: Vec<&Key> = files.iter().flat_map(|file| all(&file.keys)).collect();
    for key in &keys {
        let text = key.text.trim();
        assert!(
            text.ends_with('.') && text.len() > 9,
            "{}: {text}",
            key.name
        );
        if let Some(example) = key.example {
            let line = format!("{} = {example}", key.name);
            assert!(toml::from_str::<toml::Table>(&line).is_ok(), "{line}");
        }
    }
    assert!(keys.len() > 110, "{} keys", keys.len());
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
        (
            "optimiser = { name = \"lbfgs\" }",
            "optimiser = { name = \"lbfgs\", memori = 3 }",
            "did you mean `memory`?",
        ),
        ("data_set =", "dataset =", "did you mean `data_set`?"),
        (
            "iterations = 40",
            "iterations = \"many\"",
            "`iterations` is \"many\"; it must be a whole number from 1 to 1000000",
        ),
        (
            "held_out = 0.2",
            "held_out = 0.95",
            "`held_out` is 0.95; it must be a number from 0 to 0.9, for example held_out = 0.25",
        ),
        (
            "on_loss = \"wait\"",
            "on_loss = \"panic\"",
            "`on_loss` is \"panic\"; it must be one of \"wait\", \"continue\"",
        ),
        (
            "answer_seconds = 60",
            "answers_seconds = 60",
            "did you mean `answer_seconds`?",
        ),
        (
            "address = \"a.example:7443\"",
            "address = 7443",
            "`address` is 7443; it must be a text in quotes",
        ),
        (
            "address = \"a.example:7443\"\n",
            "",
            "line 17: the key `address` is missing; add it, for example address = \"a.example:7443\"",
        ),
    ] {
        assert!(JOB.contains(from), "{from}");
        std::fs::write(&path, JOB.replacen(from, to, 1)).unwrap();
        let error = JobConfig::load(&path).unwrap_err().to_string();
        assert!(error.contains(words) && error.contains("line "), "{error}");
        assert!(!error.contains("tagged"), "{error}");
    }
}

#[test]
fn numbers_in_texts_are_those_of_the_code() {
    let files = files();
    let text = |file: &str, name: &str| {
        let file = files.iter().find(|f| f.file == file).unwrap();
        let key = all(&file.keys).into_iter().find(|key| key.name == name);
        key.unwrap().text
    };
    let path = PenaltyPath::usual();
    let tried = path.values().iter().map(f64::to_string);
    let tried: Vec<String> = tried.collect();
    let (last, first) = tried.split_last().unwrap();
    let tried = format!("tries C = {} and {last} ", first.join(", "));
    let iterations = format!("by default {} and the square root", usual_iterations(0));
    let most = Delta::default_for(1).to_string();
    for (file, name, words) in [
        (JobConfig::FILE, "penalty", tried),
        (JobConfig::FILE, "iterations", iterations),
        (JobConfig::FILE, "delta", format!("at most {most} and")),
        (
            ProviderConfig::FILE,
            "breach_pause_seconds",
            format!("up to {} times", 1 << MOST_DOUBLINGS),
        ),
    ] {
        let text = text(file, name).split_whitespace().collect::<Vec<_>>();
        assert!(text.join(" ").contains(&words), "{name}: {words}");
    }
}
