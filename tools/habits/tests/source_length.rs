//! A file can be read in a sitting.
#![allow(clippy::unwrap_used)]

use heda_habits::sources::{root, rust_sources};

/// No source file is longer.
const LINES: usize = 500;

#[test]
fn no_source_file_is_too_long_to_read() {
    let sources = rust_sources().unwrap();
    assert!(
        sources
            .iter()
            .any(|path| path == "tools/habits/tests/source_length.rs")
    );
    let long: Vec<String> = sources
        .iter()
        .map(|path| {
            (
                path,
                std::fs::read_to_string(root().join(path))
                    .unwrap()
                    .lines()
                    .count(),
            )
        })
        .filter(|(_, lines)| *lines > LINES)
        .map(|(path, lines)| format!("{path}: {lines} lines"))
        .collect();
    assert!(
        long.is_empty(),
        "split what has more than {LINES} lines:\n{}",
        long.join("\n")
    );
}
