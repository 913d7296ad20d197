//! The list by which mutants are made, `tools/mutants.toml`: areas as patterns of files, and mutants that
//! change nothing that could be noticed, each with the reason.

use super::{Key, Mutant, digest, sites};
use crate::sources::{root, rust_sources};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Where the list is, below the root.
pub const LIST: &str = "tools/mutants.toml";

/// The list.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rules {
    /// What is changed.
    #[serde(rename = "area")]
    pub areas: Vec<Area>,
    /// What may be changed without a test that fails.
    #[serde(rename = "equivalent", default)]
    pub equivalents: Vec<Equivalent>,
}

/// Some files of one package.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Area {
    /// How the summary calls it.
    pub name: String,
    /// Whose files they are.
    pub package: String,
    /// Patterns: `*` is any part of a name, `**` any part of a path.
    pub files: Vec<String>,
}

/// Mutants that no test can notice, or none should.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Equivalent {
    /// A pattern, as for areas.
    pub file: String,
    /// A pattern, in which `*` is anything.
    pub function: String,
    /// The same.
    pub mutation: String,
    /// Why nothing is lost.
    pub reason: String,
}

impl Equivalent {
    /// Whether it is about this mutant.
    pub fn names(&self, key: &Key) -> bool {
        matches(&self.file, &key.file)
            && anything(&self.function, &key.function)
            && anything(&self.mutation, &key.mutation)
    }
}

impl Rules {
    /// Reads the list.
    pub fn read() -> Result<Self, String> {
        let text =
            std::fs::read_to_string(root().join(LIST)).map_err(|e| format!("{LIST}: {e}"))?;
        toml::from_str(&text).map_err(|e| format!("{LIST}: {e}"))
    }

    /// The reason why a mutant need not be noticed.
    pub fn reason(&self, key: &Key) -> Option<&str> {
        let named = self.equivalents.iter().find(|known| known.names(key));
        named.map(|known| known.reason.as_str())
    }

    /// All packages, in the order of the list.
    pub fn packages(&self) -> Vec<String> {
        let mut seen = BTreeSet::new();
        let names = self.areas.iter().map(|area| area.package.clone());
        names.filter(|name| seen.insert(name.clone())).collect()
    }

    /// The files of every area, without those that are tests.
    pub fn files(&self) -> Result<Vec<(&Area, String)>, String> {
        let sources = rust_sources().map_err(|e| format!("sources: {e}"))?;
        let tests = test_files(&root(), &sources)?;
        let mut found = Vec::new();
        for area in &self.areas {
            let wanted = |file: &&String| {
                area.files.iter().any(|pattern| matches(pattern, file))
                    && !tests.iter().any(|test| file.starts_with(test.as_str()))
            };
            found.extend(
                sources
                    .iter()
                    .filter(wanted)
                    .map(|file| (area, file.clone())),
            );
        }
        Ok(found)
    }

    /// Every mutant of every file, numbered in the order of the list.
    pub fn mutants(&self) -> Result<Vec<Mutant>, String> {
        let mut mutants = Vec::new();
        for (area, file) in self.files()? {
            let text = read(&root(), &file)?;
            let found = sites::sites(&text).map_err(|e| format!("{file}: {e}"))?;
            let mut times = BTreeMap::new();
            for (function, mutation, body) in sites::named(&text, &found) {
                let time: &mut u32 = times
                    .entry((function.clone(), mutation.clone()))
                    .or_default();
                *time += 1;
                let mutation = match *time {
                    1 => mutation,
                    time => format!("{mutation} (number {time})"),
                };
                mutants.push(Mutant {
                    key: Key {
                        file: file.clone(),
                        function,
                        mutation,
                    },
                    area: area.name.clone(),
                    package: area.package.clone(),
                    text: digest(&body),
                    id: mutants.len() as u32 + 1,
                });
            }
        }
        Ok(mutants)
    }
}

/// A file below the root.
pub fn read(root: &Path, file: &str) -> Result<String, String> {
    std::fs::read_to_string(root.join(file)).map_err(|e| format!("{file}: {e}"))
}

/// Files, and folders with a `/` at the end, that `#[cfg(test)] mod name;` brings in.
fn test_files(root: &Path, sources: &[String]) -> Result<BTreeSet<String>, String> {
    let mut tests = BTreeSet::new();
    for file in sources {
        let parsed = syn::parse_file(&read(root, file)?).map_err(|e| format!("{file}: {e}"))?;
        let folder = match file
            .strip_suffix("/mod.rs")
            .or(file.strip_suffix("/lib.rs"))
        {
            Some(folder) => folder,
            None => file.strip_suffix(".rs").unwrap_or(file),
        };
        for item in &parsed.items {
            if let syn::Item::Mod(module) = item
                && module.content.is_none()
                && sites::is_test(&module.attrs)
            {
                tests.insert(format!("{folder}/{}.rs", module.ident));
                tests.insert(format!("{folder}/{}/", module.ident));
            }
        }
    }
    Ok(tests)
}

/// Whether a path fits a pattern, part by part.
pub fn matches(pattern: &str, path: &str) -> bool {
    let (pattern, path): (Vec<_>, Vec<_>) =
        (pattern.split('/').collect(), path.split('/').collect());
    fit(&pattern, &path)
}

fn fit(pattern: &[&str], path: &[&str]) -> bool {
    match (pattern.split_first(), path.split_first()) {
        (None, None) => true,
        (Some((&"**", rest)), Some((_, after))) => fit(rest, path) || fit(pattern, after),
        (Some((&"**", rest)), None) => fit(rest, path),
        (Some((name, rest)), Some((part, after))) => anything(name, part) && fit(rest, after),
        _ => false,
    }
}

/// Whether a text fits a pattern in which `*` is anything.
pub fn anything(pattern: &str, text: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == text,
        Some((before, rest)) => text.strip_prefix(before).is_some_and(|text| {
            let ends = text.char_indices().map(|(at, _)| at).chain([text.len()]);
            rest.is_empty() || ends.into_iter().any(|at| anything(rest, &text[at..]))
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_fit_parts_of_paths_and_texts() {
        for (pattern, path, fits) in [
            ("a/b.rs", "a/b.rs", true),
            ("a/*.rs", "a/b.rs", true),
            ("a/*.rs", "a/b/c.rs", false),
            ("a/**", "a/b/c.rs", true),
            ("a/**/*.rs", "a/c.rs", true),
            ("a/**/c*.rs", "a/b/d/cd.rs", true),
            ("a/b", "a/b/c", false),
            ("**/x", "a", false),
        ] {
            assert_eq!(matches(pattern, path), fits, "{pattern} {path}");
        }
        assert!(anything("*::drop", "Sums::drop"));
        assert!(anything("delete `wipe(*`", "delete `wipe(&mut a)`"));
        assert!(!anything("*::drop", "Sums::drops"));
        assert!(!anything("a*b", "a"));
    }
}
