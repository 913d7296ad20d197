//! Defences taken out one by one: a list of small edits, each with the test that must fail when the
//! edit is made. A defence that no test misses could be lost without anyone noticing.

use crate::sources::root;
use serde::Deserialize;
use std::io;
use std::path::Path;

/// Where the list is, below the root.
pub const LIST: &str = "tools/mutations.toml";
/// Where the outcome is written, below the root.
pub const PAGE: &str = "docs/mutations.md";

/// One defence, and how it is taken out.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mutation {
    /// What is gone.
    pub without: String,
    /// The package of the test.
    pub package: String,
    /// The unit test that must fail, by its full name.
    pub test: String,
    /// What is changed in the sources.
    #[serde(rename = "edit")]
    pub edits: Vec<Edit>,
}

/// A piece of a file that is replaced; it occurs once.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Edit {
    /// The file, below the root.
    pub file: String,
    /// What is there.
    pub find: String,
    /// What is put in its place.
    pub replace: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Listed {
    mutation: Vec<Mutation>,
}

/// The list.
pub fn mutations() -> Result<Vec<Mutation>, String> {
    let text = std::fs::read_to_string(root().join(LIST)).map_err(|e| format!("{LIST}: {e}"))?;
    let listed: Listed = toml::from_str(&text).map_err(|e| format!("{LIST}: {e}"))?;
    Ok(listed.mutation)
}

impl Edit {
    /// The file below `root` with the edit made.
    pub fn applied(&self, root: &Path) -> Result<String, String> {
        let path = root.join(&self.file);
        let text = std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", self.file))?;
        match text.matches(&self.find).count() {
            1 => Ok(text.replacen(&self.find, &self.replace, 1)),
            count => Err(format!(
                "{}: {count} places where one is expected: {}",
                self.file, self.find
            )),
        }
    }

    /// Makes the edit below `root`; returns the file as it was.
    pub fn apply(&self, root: &Path) -> Result<String, String> {
        let changed = self.applied(root)?;
        let path = root.join(&self.file);
        let failed = |e: io::Error| format!("{}: {e}", self.file);
        let before = std::fs::read_to_string(&path).map_err(failed)?;
        std::fs::write(&path, changed).map_err(failed)?;
        Ok(before)
    }
}

/// One line of the page's table.
pub fn line(mutation: &Mutation, outcome: &str) -> String {
    let Mutation {
        without,
        package,
        test,
        ..
    } = mutation;
    format!("| {without} | `{package}`: `{test}` | {outcome} |")
}

/// Whether a line of the page is about this mutation.
pub fn is_of(kept: &str, mutation: &Mutation) -> bool {
    let whole = line(mutation, "");
    kept.starts_with(whole.trim_end_matches(" |"))
}

/// The page with the outcome of every mutation.
pub fn page(lines: &[String]) -> String {
    let lines = lines.join("\n");
    format!(
        "# Defences taken out\n\n\
         Each line is an edit of `{LIST}` that takes one defence out of the program, and the test that\n\
         must fail then. Written by\n\n    \
         cargo run -p heda-habits --bin mutations\n\n\
         which makes the edits one by one in a copy of the tree, or those whose words are given, and keeps the other\n\
         lines. It takes about half an hour, so CI only checks that every edit still fits the sources.\n\n\
         | without | test | outcome |\n| --- | --- | --- |\n{lines}\n"
    )
}

/// What a test that did as it should is called on the page.
pub const CAUGHT: &str = "fails";
