//! A copy of the repository in which every mutant is compiled behind its switch.

use super::render::{Rendered, render};
use super::rules::{Rules, read};
use super::sites::{Site, sites};
use super::{Mutant, switch};
use crate::sources::root;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What a crate with mutants has beside its own files.
const SWITCH: &str = include_str!("switch.rs");
/// In front of such a crate: what was written for switches is not nice.
const ALLOWED: &str =
    "#![allow(warnings, arithmetic_overflow, unconditional_panic, clippy::all)]\n";

/// The copy.
pub struct Tree {
    folder: PathBuf,
    target: PathBuf,
    files: Vec<File>,
}

/// A file with mutants.
struct File {
    name: String,
    package: String,
    text: String,
    sites: Vec<Site>,
    first: u32,
    rendered: Option<Rendered>,
}

/// A program that runs tests.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Program {
    /// Whose tests.
    pub package: String,
    /// Of the library, or of a file in `tests`.
    pub target: String,
    /// Where it is.
    pub path: PathBuf,
    /// Where its tests run.
    pub folder: PathBuf,
}

impl Tree {
    /// Copies the repository and finds the places of all mutants of some packages.
    pub fn new(rules: &Rules, mutants: &[Mutant], packages: &[String]) -> Result<Self, String> {
        let target =
            std::env::var_os("CARGO_TARGET_DIR").map_or(root().join("target"), PathBuf::from);
        let folder = root().join("target/mutants/tree");
        let mut firsts = BTreeMap::new();
        for mutant in mutants {
            firsts.entry(&mutant.key.file).or_insert(mutant.id);
        }
        let mut files = Vec::new();
        for (area, name) in rules.files()? {
            let Some(first) = firsts
                .get(&name)
                .filter(|_| packages.contains(&area.package))
            else {
                continue;
            };
            let text = read(&root(), &name)?;
            files.push(File {
                sites: sites(&text).map_err(|e| format!("{name}: {e}"))?,
                first: *first,
                package: area.package.clone(),
                rendered: None,
                name,
                text,
            });
        }
        let tree = Self {
            folder,
            target,
            files,
        };
        tree.copy()?;
        Ok(tree)
    }

    /// All files of the repository but those with mutants.
    fn copy(&self) -> Result<(), String> {
        let listed = Command::new("git")
            .args(["ls-files", "--cached", "--others", "--exclude-standard"])
            .current_dir(root())
            .output()
            .map_err(|e| format!("git: {e}"))?;
        let own: BTreeSet<&str> = self.files.iter().map(|file| file.name.as_str()).collect();
        let crates = self.crates();
        for name in String::from_utf8_lossy(&listed.stdout).lines() {
            let Ok(bytes) = std::fs::read(root().join(name)) else {
                continue;
            };
            if own.contains(name) {
                continue;
            }
            let is_root = crates
                .iter()
                .any(|folder| name == format!("{folder}/src/lib.rs"));
            let bytes = match is_root {
                true => with_switch(&String::from_utf8_lossy(&bytes)).into_bytes(),
                false => bytes,
            };
            self.write(name, &bytes)?;
        }
        for folder in crates {
            self.write(&format!("{folder}/src/mutant_switch.rs"), SWITCH.as_bytes())?;
        }
        Ok(())
    }

    /// Folders of the packages with mutants.
    fn crates(&self) -> BTreeSet<String> {
        let folder = |file: &File| {
            file.name
                .split_once("/src/")
                .map(|(folder, _)| folder.into())
        };
        self.files.iter().filter_map(folder).collect()
    }

    /// Writes a file of the copy. What has not changed keeps its time, so that it is not compiled again.
    fn write(&self, name: &str, bytes: &[u8]) -> Result<(), String> {
        let path = self.folder.join(name);
        if std::fs::read(&path).is_ok_and(|there| there == bytes) {
            return Ok(());
        }
        let folder = path.parent().ok_or("a file without a folder")?;
        let made = std::fs::create_dir_all(folder).and_then(|()| std::fs::write(&path, bytes));
        made.map_err(|e| format!("{}: {e}", path.display()))
    }

    /// Writes the files with mutants, but for those mutants that are left out.
    fn render(&mut self, without: &BTreeSet<u32>) -> Result<(), String> {
        let mut rendered = Vec::new();
        for file in &self.files {
            let file_text = render(&file.text, &file.sites, file.first, without);
            self.write(&file.name, file_text.text.as_bytes())?;
            rendered.push(file_text);
        }
        for (file, text) in self.files.iter_mut().zip(rendered) {
            file.rendered = Some(text);
        }
        Ok(())
    }

    /// Builds the tests of some packages. Mutants that do not compile are added to `without`, and the others
    /// built, until all compile.
    pub fn build(
        &mut self,
        packages: &[String],
        without: &mut BTreeSet<u32>,
    ) -> Result<Vec<Program>, String> {
        loop {
            self.render(without)?;
            let told = self.cargo(packages)?;
            if told.is_whole {
                let programs = told.programs.into_iter();
                let programs = programs.map(|program| self.kept(program));
                let programs = programs.collect::<Result<_, _>>()?;
                self.outdate()?;
                return Ok(programs);
            }
            let blamed: BTreeSet<u32> = told.errors.iter().filter_map(|e| self.blamed(e)).collect();
            let before = without.len();
            without.extend(blamed);
            println!(
                "{} mutants do not compile, {} in all",
                without.len() - before,
                without.len()
            );
            if without.len() == before {
                let errors = told.errors.into_iter().map(|error| error.rendered);
                return Err(errors.collect::<Vec<_>>().join("\n"));
            }
        }
    }

    /// Makes what was built older than its sources: cargo would take it for the repository's own.
    fn outdate(&self) -> Result<(), String> {
        let now = std::time::SystemTime::now();
        for file in &self.files {
            let path = self.folder.join(&file.name);
            let opened = std::fs::File::options().append(true).open(&path);
            let set = opened.and_then(|file| file.set_modified(now));
            set.map_err(|e| format!("{}: {e}", path.display()))?;
        }
        Ok(())
    }

    /// A program in a place of its own: the next build of the repository itself writes where cargo put it.
    fn kept(&self, program: Program) -> Result<Program, String> {
        let folder = self.state().join("programs");
        let path = folder.join(format!("{}-{}", program.package, program.target));
        let failed = |e: std::io::Error| format!("{}: {e}", path.display());
        std::fs::create_dir_all(&folder).map_err(failed)?;
        let new = std::fs::read(&program.path).map_err(failed)?;
        // What has not changed keeps its time, by which it is known again.
        if !std::fs::read(&path).is_ok_and(|there| there == new) {
            let fresh = path.with_extension("new");
            std::fs::copy(&program.path, &fresh).map_err(failed)?;
            std::fs::rename(&fresh, &path).map_err(failed)?;
        }
        Ok(Program { path, ..program })
    }

    /// The mutant that an error is about.
    fn blamed(&self, error: &CompileError) -> Option<u32> {
        error.spans.iter().find_map(|(name, bytes)| {
            let file = self.files.iter().find(|file| &file.name == name)?;
            file.rendered.as_ref()?.blamed(bytes)
        })
    }

    fn cargo(&self, packages: &[String]) -> Result<Told, String> {
        let done = Command::new(env!("CARGO"))
            .args(["test", "--no-run", "--offline", "--message-format=json"])
            .args(packages.iter().flat_map(|name| ["--package", name]))
            .args(["--lib", "--tests"])
            .current_dir(&self.folder)
            .env("CARGO_TARGET_DIR", &self.target)
            .stderr(std::process::Stdio::inherit())
            .output()
            .map_err(|e| format!("cargo: {e}"))?;
        let mut told = Told {
            is_whole: done.status.success(),
            ..Told::default()
        };
        for line in String::from_utf8_lossy(&done.stdout).lines() {
            if let Ok(message) = serde_json::from_str::<CargoMessage>(line) {
                told.take(message, &self.folder);
            }
        }
        Ok(told)
    }

    /// The folder of what was found.
    pub fn state(&self) -> PathBuf {
        root().join("target/mutants")
    }

    /// Packages with mutants in the copy.
    pub fn packages(&self) -> BTreeSet<&str> {
        self.files
            .iter()
            .map(|file| file.package.as_str())
            .collect()
    }
}

/// The root of a crate with the switch among its modules; comments and attributes that come first stay first.
fn with_switch(text: &str) -> String {
    let first = text.lines().take_while(|line| {
        line.starts_with("//!") || line.starts_with("#![") || line.trim().is_empty()
    });
    let length: usize = first.map(|line| line.len() + 1).sum();
    let (head, rest) = text.split_at(length.min(text.len()));
    format!("{ALLOWED}{head}mod mutant_switch;\n{rest}")
}

/// What cargo said.
#[derive(Default)]
struct Told {
    is_whole: bool,
    programs: Vec<Program>,
    errors: Vec<CompileError>,
}

struct CompileError {
    /// Files below the folder, the most telling first.
    spans: Vec<(String, Range<usize>)>,
    rendered: String,
}

impl Told {
    fn take(&mut self, message: CargoMessage, folder: &Path) {
        match message {
            CargoMessage::CompilerMessage { message } if message.level == "error" => {
                let mut spans = message.spans;
                spans.sort_by_key(|span| !span.is_primary);
                let spans = spans.into_iter();
                self.errors.push(CompileError {
                    spans: spans
                        .map(|s| (s.file_name, s.byte_start..s.byte_end))
                        .collect(),
                    rendered: message.rendered.unwrap_or_default(),
                });
            }
            CargoMessage::CompilerArtifact {
                target,
                executable: Some(path),
                manifest_path,
            } => {
                let own = manifest_path.parent().unwrap_or(folder);
                let package = own.file_name().unwrap_or_default();
                self.programs.push(Program {
                    package: package.to_string_lossy().into_owned(),
                    target: target.name,
                    path,
                    folder: own.to_owned(),
                });
            }
            _ => {}
        }
    }
}

#[derive(Deserialize)]
#[serde(tag = "reason", rename_all = "kebab-case")]
enum CargoMessage {
    CompilerMessage {
        message: Diagnostic,
    },
    CompilerArtifact {
        target: Target,
        executable: Option<PathBuf>,
        manifest_path: PathBuf,
    },
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
struct Target {
    name: String,
}

#[derive(Deserialize)]
struct Diagnostic {
    level: String,
    spans: Vec<DiagnosticSpan>,
    rendered: Option<String>,
}

#[derive(Deserialize)]
struct DiagnosticSpan {
    file_name: String,
    byte_start: usize,
    byte_end: usize,
    is_primary: bool,
}

/// Keeps the switch a module of this crate as well, so that it is compiled and tested here.
const _: fn(u32) -> bool = switch::on;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_switch_comes_behind_the_first_attributes() {
        let text = "//! A crate.\n#![deny(a)]\n\npub mod a;\n";
        let expected =
            format!("{ALLOWED}//! A crate.\n#![deny(a)]\n\nmod mutant_switch;\npub mod a;\n");
        assert_eq!(with_switch(text), expected);
    }
}
