//! Mutants made by machine: small changes of the sources, each of which some test must notice.
//!
//! All of them are compiled once, each behind a switch (`switch.rs`), so that trying one takes a run of
//! the tests that reach it and no build:
//!
//! 1. `rules`: which files, and which mutants are known to change nothing, both by `tools/mutants.toml`.
//! 2. `sites`: every place of a file that can be changed, and into what.
//! 3. `render`: the file with all changes behind switches.
//! 4. `tree`: a copy of the repository with such files; changes that do not compile are taken out.
//! 5. `tests`: which test reaches which mutant, and what it says to it.
//! 6. `state`: what was found so far, so that a run goes on where the last one stopped.
//! 7. `page`: the summary in `docs/mutations.md`.

pub mod page;
pub mod render;
pub mod rules;
pub mod sites;
pub mod state;
pub mod switch;
pub mod tests;
pub mod tree;
pub mod values;

use serde::{Deserialize, Serialize};

/// What names a mutant from one version of the sources to the next: no line numbers.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Key {
    /// The file, below the root.
    pub file: String,
    /// `Type::name` for a method, else the function's name.
    pub function: String,
    /// What is changed, in words.
    pub mutation: String,
}

/// A mutant and where it belongs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mutant {
    /// Its name.
    pub key: Key,
    /// The area of the list that it belongs to.
    pub area: String,
    /// The package of its file.
    pub package: String,
    /// Stands for the text of its function: another text is another mutant.
    pub text: u64,
    /// What switches it on; from one, in the order of the list.
    pub id: u32,
}

/// FNV-1a: the same in all versions of all compilers.
pub fn digest(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}
