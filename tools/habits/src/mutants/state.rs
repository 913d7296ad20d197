//! What was found so far: one line for each mutant. A run appends to its own file, so it may end at any time;
//! the findings that the repository keeps ([`KEPT`]) are read first, so that a run on another machine goes on with them.

use super::{Key, Mutant};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Where the repository keeps findings, below the root.
pub const KEPT: &str = "tools/mutants.jsonl";

/// What the tests said to a mutant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// A test failed.
    Caught,
    /// A test did not end in many times its usual time.
    Timeout,
    /// All tests that reach it passed.
    Survived,
    /// No test reaches it.
    Unreached,
    /// It does not compile.
    Unviable,
}

impl Outcome {
    /// Whether nobody noticed the change.
    pub fn is_open(self) -> bool {
        matches!(self, Self::Survived | Self::Unreached)
    }
}

/// One line of the file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// The mutant.
    #[serde(flatten)]
    pub key: Key,
    /// The text of its function.
    pub text: u64,
    /// What was said.
    pub outcome: Outcome,
    /// Which test said it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub test: Option<String>,
}

/// All findings; the last one about a mutant counts.
#[derive(Debug, Default)]
pub struct State {
    path: PathBuf,
    findings: BTreeMap<(Key, u64), Finding>,
}

impl State {
    /// Reads what is kept and what later runs appended to `path`; a line that was cut off by the end of a run is
    /// passed over.
    pub fn open(kept: &Path, path: &Path) -> Result<Self, String> {
        let text = read_or_empty(path)?;
        if !text.is_empty() && !text.ends_with('\n') {
            append(path, "\n")?;
        }
        let before = read_or_empty(kept)?;
        let lines = before.lines().chain(text.lines());
        let lines = lines.filter_map(|line| serde_json::from_str(line).ok());
        let keyed = lines.map(|finding: Finding| ((finding.key.clone(), finding.text), finding));
        Ok(Self {
            path: path.to_owned(),
            findings: keyed.collect(),
        })
    }

    /// The findings about these mutants as the repository keeps them, sorted: those of other texts are left out.
    pub fn kept(&self, mutants: &[Mutant]) -> Result<String, String> {
        let mut found: Vec<&Finding> = mutants.iter().filter_map(|m| self.of(m)).collect();
        found.sort_by_key(|finding| &finding.key);
        let lines = found.into_iter().map(serde_json::to_string);
        let lines: Result<Vec<String>, _> = lines.collect();
        let lines = lines.map_err(|e| e.to_string())?;
        Ok(lines.into_iter().map(|line| line + "\n").collect())
    }

    /// What was found about a mutant whose function is as it was.
    pub fn of(&self, mutant: &Mutant) -> Option<&Finding> {
        self.findings.get(&(mutant.key.clone(), mutant.text))
    }

    /// Adds a finding, in the file first.
    pub fn add(
        &mut self,
        mutant: &Mutant,
        outcome: Outcome,
        test: Option<String>,
    ) -> Result<(), String> {
        let finding = Finding {
            key: mutant.key.clone(),
            text: mutant.text,
            outcome,
            test,
        };
        let line = serde_json::to_string(&finding).map_err(|e| e.to_string())?;
        append(&self.path, &(line + "\n"))?;
        self.findings
            .insert((mutant.key.clone(), mutant.text), finding);
        Ok(())
    }
}

fn read_or_empty(path: &Path) -> Result<String, String> {
    match std::fs::read_to_string(path) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(String::new()),
        read => read.map_err(|e| format!("{}: {e}", path.display())),
    }
}

fn append(path: &Path, text: &str) -> Result<(), String> {
    let mut options = std::fs::OpenOptions::new();
    let file = options.create(true).append(true).open(path);
    let written = file.and_then(|mut file| file.write_all(text.as_bytes()));
    written.map_err(|e| format!("{}: {e}", path.display()))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn mutant(mutation: &str, text: u64) -> Mutant {
        Mutant {
            key: Key {
                file: "a.rs".into(),
                function: "f".into(),
                mutation: mutation.into(),
            },
            area: "area".into(),
            package: "package".into(),
            text,
            id: 1,
        }
    }

    #[test]
    fn a_run_goes_on_where_the_last_one_stopped() {
        let folder = std::env::temp_dir().join(format!("heda-mutants-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let (kept, path) = (folder.join("kept.jsonl"), folder.join("results.jsonl"));
        let mut state = State::open(&kept, &path).unwrap();
        let (first, second) = (mutant("one", 5), mutant("two", 5));
        state.add(&first, Outcome::Survived, None).unwrap();
        state
            .add(&first, Outcome::Caught, Some("t".into()))
            .unwrap();
        // The run ends in the middle of a line.
        let mut text = std::fs::read_to_string(&path).unwrap();
        text.push_str("{\"file\":\"a.r");
        std::fs::write(&path, text).unwrap();
        let mut state = State::open(&kept, &path).unwrap();
        state.add(&second, Outcome::Unviable, None).unwrap();
        let state = State::open(&kept, &path).unwrap();
        let found = state.of(&first).unwrap();
        assert_eq!(found.outcome, Outcome::Caught);
        assert_eq!(found.test.as_deref(), Some("t"));
        assert_eq!(state.of(&second).unwrap().outcome, Outcome::Unviable);
        assert!(state.of(&mutant("one", 6)).is_none(), "another text");

        // On another machine only the kept file is there, without mutants that are no more.
        let text = state.kept(&[second.clone(), mutant("one", 6)]).unwrap();
        std::fs::write(&kept, text).unwrap();
        let elsewhere = State::open(&kept, &folder.join("none.jsonl")).unwrap();
        assert_eq!(elsewhere.of(&second), state.of(&second));
        assert!(elsewhere.of(&first).is_none());
        std::fs::remove_dir_all(folder).unwrap();
    }
}
