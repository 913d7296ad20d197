//! Unsafe code stands in named corners only, each reviewed.
#![allow(clippy::unwrap_used)]

use heda_habits::sources::{root, rust_sources};

/// Files that may have it, and how many pieces of it: instructions that not every processor has, with
/// loads and stores through references; calls without pointers that tell the allocator what to keep.
const CORNERS: [(&str, usize); 2] = [
    ("crates/heda-crypto/src/cipher/wide.rs", 5),
    ("crates/heda-node/src/system/memory.rs", 3),
];

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
    assert_eq!(corners, CORNERS.map(|(path, _)| path));
    for (path, pieces) in CORNERS {
        let text = std::fs::read_to_string(root().join(path)).unwrap();
        assert_eq!(text.matches("unsafe {").count(), pieces, "{path}");
        assert_eq!(text.matches("// SAFETY:").count(), pieces, "{path}");
        // Every function that needs more than the pieces have is compiled for it, and not unsafe itself.
        assert_eq!(text.matches("unsafe fn").count(), 0, "{path}");
    }
}
