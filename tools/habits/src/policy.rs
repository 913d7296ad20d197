//! The parts of `deny.toml` that can be checked without a database: the file is the one of
//! cargo-deny, so that both say the same.

use crate::licence::satisfied;
use crate::packages::Package;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};

/// The only registry, as `cargo metadata` names it.
const REGISTRY: &str = "registry+https://github.com/rust-lang/crates.io-index";

/// What may be linked.
#[derive(Debug, Deserialize)]
pub struct Policy {
    graph: Graph,
    licenses: Licences,
    bans: Bans,
}

#[derive(Debug, Deserialize)]
struct Graph {
    targets: Vec<String>,
}

#[derive(Debug, Deserialize)]
struct Licences {
    allow: Vec<String>,
}

#[derive(Debug, Deserialize)]
struct Bans {
    deny: Vec<Named>,
    skip: Vec<Named>,
}

#[derive(Debug, Deserialize)]
struct Named {
    #[serde(rename = "crate")]
    name: String,
    reason: String,
}

impl Policy {
    /// Reads `deny.toml`.
    pub fn parse(text: &str) -> Result<Self, toml::de::Error> {
        toml::from_str(text)
    }

    /// Targets that we build for.
    pub fn targets(&self) -> &[String] {
        &self.graph.targets
    }

    /// Everything that packages of a build do not keep to, and every permission that none of
    /// them needs.
    pub fn problems(&self, packages: &[Package]) -> Vec<String> {
        let mut problems = self.licence_problems(packages);
        problems.extend(packages.iter().filter_map(|package| self.banned(package)));
        problems.extend(packages.iter().filter_map(foreign));
        problems.extend(self.duplicates(packages));
        problems
    }

    fn licence_problems(&self, packages: &[Package]) -> Vec<String> {
        let mut problems = Vec::new();
        let mut used = BTreeSet::new();
        for package in packages {
            let mut allowed = |name: &str| {
                used.insert(name.to_owned());
                self.licenses.allow.iter().any(|allow| allow == name)
            };
            let Package {
                name,
                version,
                license,
                ..
            } = package;
            match license {
                Some(expression) if satisfied(expression, &mut allowed) => {}
                Some(expression) => {
                    problems.push(format!("{name} {version}: licence {expression}"))
                }
                None => problems.push(format!("{name} {version}: no licence")),
            }
        }
        let unused = self
            .licenses
            .allow
            .iter()
            .filter(|allow| !used.contains(*allow));
        problems
            .extend(unused.map(|allow| format!("no package has the licence {allow}: disallow it")));
        problems
    }

    fn banned(&self, package: &Package) -> Option<String> {
        let ban = self.bans.deny.iter().find(|ban| ban.name == package.name)?;
        Some(format!("{} is banned: {}", ban.name, ban.reason))
    }

    fn duplicates(&self, packages: &[Package]) -> Vec<String> {
        let mut versions: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for package in packages {
            versions
                .entry(&package.name)
                .or_default()
                .push(&package.version);
        }
        let mut problems = Vec::new();
        let mut used = BTreeSet::new();
        for (name, versions) in versions.iter().filter(|(_, versions)| versions.len() > 1) {
            let (skipped, left): (Vec<&str>, Vec<&str>) = versions
                .iter()
                .partition(|version| self.bans.skip.iter().any(|skip| skip.covers(name, version)));
            used.extend(skipped.iter().map(|version| (*name, *version)));
            if left.len() > 1 {
                problems.push(format!("{name} in versions {}", left.join(", ")));
            }
        }
        let idle = self.bans.skip.iter().filter(|skip| {
            !used
                .iter()
                .any(|(name, version)| skip.covers(name, version))
        });
        problems.extend(
            idle.map(|skip| format!("{} is no duplicate any more: skip it no longer", skip.name)),
        );
        problems
    }
}

impl Named {
    /// Whether `name@1.2` means this package: the version is a beginning of its version.
    fn covers(&self, name: &str, version: &str) -> bool {
        let Some((own, prefix)) = self.name.split_once('@') else {
            return false;
        };
        own == name && (version == prefix || version.starts_with(&format!("{prefix}.")))
    }
}

fn foreign(package: &Package) -> Option<String> {
    let source = package
        .source
        .as_deref()
        .filter(|source| *source != REGISTRY)?;
    Some(format!("{} comes from {source}", package.name))
}
