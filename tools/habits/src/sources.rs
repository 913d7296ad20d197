//! The source files of the repository.

use std::io;
use std::path::{Path, PathBuf};

/// The root of the repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Folders of the repository that hold sources.
const FOLDERS: [&str; 5] = ["crates", "examples", "fuzz", "repro", "tools"];

/// Folders of [`FOLDERS`] that hold one crate each folder: the product, and the paper again.
const CRATES: [&str; 2] = ["crates/", "repro/"];

/// The crate of a source file that is linked into programs, and its path below `src`.
pub fn linked(path: &str) -> Option<(&str, &str)> {
    let below = CRATES.iter().find_map(|folder| path.strip_prefix(folder))?;
    below.split_once("/src/")
}

/// Paths of all Rust sources below the root, sorted, with `/` between the parts.
pub fn rust_sources() -> io::Result<Vec<String>> {
    let mut found = Vec::new();
    for folder in FOLDERS {
        collect(&root(), folder, &mut found)?;
    }
    found.sort();
    Ok(found)
}

fn collect(root: &Path, folder: &str, found: &mut Vec<String>) -> io::Result<()> {
    if !root.join(folder).is_dir() {
        return Ok(());
    }
    for entry in std::fs::read_dir(root.join(folder))? {
        let entry = entry?;
        let name = entry.file_name();
        let path = format!("{folder}/{}", name.to_string_lossy());
        if entry.file_type()?.is_dir() {
            if name != "target" {
                collect(root, &path, found)?;
            }
        } else if path.ends_with(".rs") {
            found.push(path);
        }
    }
    Ok(())
}
