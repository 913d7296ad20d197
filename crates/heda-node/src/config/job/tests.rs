//! Job files that are right, and others.

use super::*;

const GOOD: &str = include_str!("../../../tests/files/job.toml");

fn load(text: &str) -> Result<JobConfig, Box<str>> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("job.toml");
    std::fs::write(&path, text).unwrap();
    JobConfig::load(&path).map_err(|e| e.to_string().into())
}

#[test]
fn the_sample_is_read() {
    let config = load(GOOD).unwrap();
    assert_eq!(config.iota, Some(IotaValue::Best(5)));
    assert_eq!(config.epsilon, Some("1.5".parse().unwrap()));
    assert_eq!(config.on_loss, OnLoss::Wait);
    assert_eq!(config.optimiser, Method::Lbfgs { memory: 30 });
    assert_eq!(config.held_out, Share::USUAL);
    assert_eq!(config.remote_providers().unwrap().len(), 2);
    assert!(config.schema.is_absolute());
}

#[test]
fn errors_name_the_line_and_the_reason() {
    for (from, to, word) in [
        ("iterations = 40", "iterations = 0", "from 1 to 1000000"),
        (
            "iterations = 40",
            "iteration = 40",
            "did you mean `iterations`",
        ),
        (
            "iota = 5",
            "iota = \"some\"",
            "a whole number from 0 upwards, or",
        ),
        ("iota = 5", "iota = -1", "a whole number from 0 upwards, or"),
        ("epsilon = 1.5", "epsilon = 0", "above 0 and at most 1000"),
        ("name = \"lbfgs\"", "name = \"magic\"", "magic"),
        (
            "held_out = 0.2",
            "held_out = 0.95",
            "0.95; it must be a number from 0 to 0.9",
        ),
        ("engine = \"resident\"", "engine = \"magic\"", "magic"),
        (
            "answer_seconds = 60",
            "answer_seconds = 0",
            "from 1 to 604800",
        ),
    ] {
        assert!(GOOD.contains(from), "{from}");
        let error = load(&GOOD.replacen(from, to, 1)).unwrap_err();
        assert!(error.contains("line ") && error.contains(word), "{error}");
    }
}

#[test]
fn there_is_no_default_epsilon() {
    // Without it nothing is published: what is not encrypted is left out.
    let without = GOOD.replacen("epsilon = 1.5\n", "", 1);
    assert_eq!(load(&without).unwrap().epsilon, None);
    let all = without.replacen("iota = 5", "iota = \"all\"", 1);
    assert_eq!(load(&all).unwrap().epsilon, None);
}

#[test]
fn a_number_of_features_may_be_chosen_for_one_goal() {
    let auto = |goal: &str| {
        let chosen = GOOD.replacen("iota = 5", "iota = \"auto\"", 1);
        load(&chosen.replacen("[timeouts]", &format!("[auto]\n{goal}\n\n[timeouts]"), 1))
    };
    let within = auto("within_seconds = 60").unwrap();
    assert_eq!(within.iota, Some(IotaValue::Auto));
    let loss = auto("accuracy_loss = 1\nsample = \"public.csv\"").unwrap();
    assert!(loss.auto.unwrap().sample.unwrap().is_absolute());
    for (goal, word) in [
        ("", "either `within_seconds` or `accuracy_loss`"),
        ("within_seconds = 60\naccuracy_loss = 1", "either"),
        ("accuracy_loss = 1", "name them as `sample`"),
        ("within_seconds = -1", "must be a number above 0"),
    ] {
        let error = auto(goal).unwrap_err();
        assert!(error.contains(word), "{error}");
    }
    let without = GOOD.replacen("iota = 5", "iota = \"auto\"", 1);
    assert!(load(&without).unwrap_err().contains("a goal under [auto]"));
    let beside = GOOD.replacen("[timeouts]", "[auto]\nwithin_seconds = 60\n\n[timeouts]", 1);
    assert!(
        load(&beside)
            .unwrap_err()
            .contains("`iota = \"auto\"` only")
    );
}

#[test]
fn a_ranking_comes_from_one_place() {
    let with = |line: &str| load(&GOOD.replacen("ranking = \"kw\"", line, 1));
    let chosen = with("ranking = \"chi2\"\nranked_by = \"hospital-b\"").unwrap();
    assert_eq!(chosen.ranked_by.unwrap().as_str(), "hospital-b");
    assert!(with("order = [\"b\", \"a\"]").unwrap().order.is_some());
    for (line, word) in [
        ("ranked_by = \"hospital-z\"", "which is no [[provider]]"),
        (
            "order = [\"a\"]\nranked_by = \"hospital-a\"",
            "either `order`",
        ),
    ] {
        let error = with(line).unwrap_err();
        assert!(error.contains(word), "{error}");
    }
    let named = GOOD.replacen("iota = 5", "encrypt = [\"a\"]\norder = [\"a\"]", 1);
    assert!(load(&named).unwrap_err().contains("leave `order`"));
}

#[test]
fn a_penalty_is_given_or_chosen() {
    let chosen = GOOD.replacen("c = 1.0", "penalty = \"auto\"", 1);
    let chosen = load(&chosen).unwrap();
    assert_eq!(chosen.penalty_path(), Some(PenaltyPath::usual()));
    let word = GOOD.replacen("c = 1.0", "penalty = \"some\"", 1);
    let error = load(&word).unwrap_err();
    assert!(error.contains("it must be \"auto\""), "{error}");
    let both = GOOD.replacen("c = 1.0", "c = 2.0\npenalty = \"auto\"", 1);
    let error = load(&both).unwrap_err();
    assert!(error.contains("either `c` or"), "{error}");
}

#[test]
fn contradictions_are_found() {
    let both = GOOD.replacen("iota = 5", "iota = 5\nencrypt = [\"age\"]", 1);
    assert!(
        load(&both)
            .unwrap_err()
            .contains("either `iota` or `encrypt`")
    );
    let twice = GOOD.replacen("name = \"hospital-b\"", "name = \"hospital-a\"", 1);
    assert!(load(&twice).unwrap_err().contains("hospital-a"));
    let nobody = GOOD.split("[[provider]]").next().unwrap();
    assert!(load(nobody).unwrap_err().contains("provider"));
}
