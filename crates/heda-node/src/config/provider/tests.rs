//! Configurations that are right, and others.

use super::*;

const GOOD: &str = include_str!("../../../tests/files/provider.toml");

fn load(text: &str) -> Result<ProviderConfig, ConfigError> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("provider.toml");
    std::fs::write(&path, text).unwrap();
    ProviderConfig::load(&path)
}

#[test]
fn the_sample_is_read_with_paths_beside_it() {
    let config = load(GOOD).unwrap();
    assert!(config.data.is_absolute() && config.data.ends_with("ward.csv"));
    assert_eq!(config.limits.engines, [Engine::RESIDENT]);
    assert_eq!(config.limits.mechanisms, [Mechanism::Laplace]);
    assert_eq!(config.trusted_peers().unwrap().len(), 1);
}

#[test]
fn errors_name_the_line_and_the_reason() {
    for (from, to, line, word) in [
        ("data_set", "dataset", "line 2", "dataset"),
        (
            "epsilon_total = 2.5",
            "epsilon_total = -1",
            "line ",
            "above 0 and at most 1000",
        ),
        (
            "rows_per_batch_min = 50",
            "rows_per_batch_min = 0",
            "line ",
            "from 1 upwards",
        ),
        ("127.0.0.1:9464", "here", "line ", "IP address"),
        (
            "sha256:0000",
            "sha256:000",
            "line ",
            "64 hexadecimal digits",
        ),
        ("max = 0.2", "max = nan", "line ", "above 0"),
    ] {
        assert!(GOOD.contains(from), "{from}");
        let error = load(&GOOD.replacen(from, to, 1)).unwrap_err().to_string();
        assert!(error.contains(line) && error.contains(word), "{error}");
    }
}

#[test]
fn contradictions_are_found() {
    let no_way = GOOD.replacen(
        "name = \"university\"",
        "name = \"u\"\ncertified_as = \"u\"",
        1,
    );
    assert!(load(&no_way).unwrap_err().to_string().contains("either"));
    let too_many = GOOD.replacen("providers_min = 1", "providers_min = 3", 1);
    assert!(
        load(&too_many)
            .unwrap_err()
            .to_string()
            .contains("every job would be refused")
    );
    let engine = format!("{GOOD}\nengines = [\"magic\"]");
    assert!(load(&engine).unwrap_err().to_string().contains("magic"));
}
