//! The sample configurations are what the program reads.

use heda_node::config::{JobConfig, ProviderConfig};
use std::path::Path;

fn example(file: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../examples/three-hospitals")
        .join(file)
}

#[test]
fn the_example_of_a_provider_is_read() {
    let config = ProviderConfig::load(&example("provider.toml")).unwrap();
    assert_eq!(config.known_providers.len(), 2);
    assert_eq!(config.limits.known_co_providers_min, 2);
}

#[test]
fn the_example_of_a_job_is_read() {
    let config = JobConfig::load(&example("job.toml")).unwrap();
    assert_eq!(config.remote_providers().unwrap().len(), 3);
}

/// Every TOML block of the operating guide is a configuration, whole or in part.
#[test]
fn the_configurations_of_the_operating_guide_are_read() {
    let guide = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/operating.md");
    let guide = std::fs::read_to_string(guide).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let blocks: Vec<&str> = guide
        .split("```toml\n")
        .skip(1)
        .map(|rest| rest.split("```").next().unwrap())
        .collect();
    let [provider, job] = blocks.as_slice() else {
        panic!("two configurations, not {}", blocks.len());
    };
    let write = |name: &str, text: &str| {
        let mut number = 0;
        let mut filled = String::new();
        for piece in text.split_inclusive("\"sha256:...\"") {
            number += 1;
            filled += &piece.replace("sha256:...", &format!("sha256:{number:064}"));
        }
        let path = folder.path().join(name);
        std::fs::write(&path, filled).unwrap();
        path
    };
    ProviderConfig::load(&write("provider.toml", provider)).unwrap();
    JobConfig::load(&write("job.toml", job)).unwrap();
}
