//! Unsafe code stands in named corners only, each reviewed.
#![allow(clippy::unwrap_used)]

use heda_habits::sources::{root, rust_sources};

/// Files that may have it: two calls without pointers, so that memory is given back.
const CORNERS: [&str; 1] = ["crates/heda-node/src/system/memory.rs"];

#[test]
fn unsafe_code_is_only_where_it_was_reviewed() {
    let corners: Vec<String> = rust_sources()
        .unwrap()
        .into_iter()
        .filter(|path| {
            let text = std::fs::read_to_string(root().join(path)).unwrap();
            path != "tools/habits/tests/unsafe_code.rs" && text.contains("unsafe_code")
        })
        .collect();
    assert_eq!(corners, CORNERS);
    let text = std::fs::read_to_string(root().join(CORNERS[0])).unwrap();
    assert_eq!(text.matches("unsafe {").count(), 2);
    assert_eq!(text.matches("// SAFETY:").count(), 2);
}
