//! What is linked keeps to `deny.toml`.
#![allow(clippy::unwrap_used)]

use heda_habits::packages::{Package, packages};
use heda_habits::policy::Policy;
use heda_habits::sources::root;

const REGISTRY: &str = "registry+https://github.com/rust-lang/crates.io-index";

#[test]
fn every_dependency_keeps_to_the_policy() {
    let text = std::fs::read_to_string(root().join("deny.toml")).unwrap();
    let policy = Policy::parse(&text).unwrap();
    assert!(!policy.targets().is_empty());
    for target in policy.targets() {
        let packages = packages(target).unwrap();
        assert!(packages.iter().any(|package| package.name == "heda-crypto"));
        let problems = policy.problems(&packages);
        assert!(problems.is_empty(), "{target}:\n{}", problems.join("\n"));
    }
}

fn package(name: &str, version: &str, license: Option<&str>, source: &str) -> Package {
    let text = serde_json::json!({
        "name": name, "version": version, "license": license, "source": source,
        "features": {},
    });
    serde_json::from_value(text).unwrap()
}

#[test]
fn each_kind_of_breach_is_told() {
    let policy = Policy::parse(
        r#"
        graph.targets = []
        licenses.allow = ["MIT", "Zlib"]
        bans.deny = [{ crate = "bad", reason = "it is bad" }]
        bans.skip = [{ crate = "old@1", reason = "a user" }, { crate = "gone@2", reason = "none" }]
        "#,
    )
    .unwrap();
    let problems = policy.problems(&[
        package("bad", "1.0.0", Some("MIT"), REGISTRY),
        package("closed", "1.0.0", Some("Proprietary"), REGISTRY),
        package("nameless", "1.0.0", None, REGISTRY),
        package("elsewhere", "1.0.0", Some("MIT"), "git+https://example.org"),
        package("old", "1.9.0", Some("MIT"), REGISTRY),
        package("old", "2.0.0", Some("MIT"), REGISTRY),
        package("twice", "1.0.0", Some("MIT"), REGISTRY),
        package("twice", "1.1.0", Some("MIT"), REGISTRY),
    ]);
    let expected = [
        "closed 1.0.0: licence Proprietary",
        "nameless 1.0.0: no licence",
        "no package has the licence Zlib: disallow it",
        "bad is banned: it is bad",
        "elsewhere comes from git+https://example.org",
        "twice in versions 1.0.0, 1.1.0",
        "gone@2 is no duplicate any more: skip it no longer",
    ];
    assert_eq!(problems, expected);
}
