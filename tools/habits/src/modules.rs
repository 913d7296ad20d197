//! The map of modules: one line for each, from the first sentence of its documentation.

use crate::sources::{root, rust_sources};
use std::io;

/// Where the map stands in its document.
pub const BEGIN: &str = "<!-- modules: written by the test `module_map` of tools/habits -->\n";
/// Where it ends.
pub const END: &str = "<!-- end of modules -->\n";

/// The map of all crates, as Markdown. Modules of tests are left out.
pub fn map() -> io::Result<String> {
    let mut map = String::new();
    let mut last = String::new();
    for path in rust_sources()? {
        let Some((folder, inner)) = path.split_once("/src/") else {
            continue;
        };
        if !is_module(inner) {
            continue;
        }
        let source = std::fs::read_to_string(root().join(&path))?;
        if folder != last {
            map += &format!("\n### `{folder}`\n\n");
            last = folder.to_owned();
        }
        let name = inner.trim_end_matches(".rs").trim_end_matches("/mod");
        map += &format!("- `{name}`: {}\n", first_sentence(&source));
    }
    Ok(map)
}

/// Whether a source file is a module of the program and not of its tests.
fn is_module(inner: &str) -> bool {
    !inner
        .split('/')
        .any(|part| part.trim_end_matches(".rs").ends_with("tests"))
}

/// The first sentence of a module's documentation, in one line and without links.
pub fn first_sentence(source: &str) -> String {
    let lines = source.lines().skip_while(|line| !line.starts_with("//!"));
    let lines = lines
        .map_while(|line| line.strip_prefix("//!"))
        .map(str::trim);
    let paragraph: Vec<&str> = lines.take_while(|line| !line.is_empty()).collect();
    let text = paragraph.join(" ").replace("[`", "`").replace("`]", "`");
    let end = text.find(". ").unwrap_or(text.trim_end_matches('.').len());
    match text[..end].trim_end_matches(':') {
        "" => "(no documentation)".to_owned(),
        sentence => sentence.to_owned(),
    }
}

/// A document with its map replaced; none if it has no place for one.
pub fn with_map(document: &str, map: &str) -> Option<String> {
    let (before, rest) = document.split_once(BEGIN)?;
    let (_, after) = rest.split_once(END)?;
    Some(format!("{before}{BEGIN}{map}\n{END}{after}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_sentence_is_one_line_without_links() {
        let source =
            "#![x]\n//! Reads [`Schema`]s\n//! from files. Then more.\n//!\n//! Other.\nfn f() {}";
        assert_eq!(first_sentence(source), "Reads `Schema`s from files");
        assert_eq!(
            first_sentence("//! All of it:\n//!\n//! - one"),
            "All of it"
        );
        assert_eq!(first_sentence("fn f() {}"), "(no documentation)");
    }

    #[test]
    fn only_the_map_of_a_document_is_replaced() {
        let document = format!("# A\n{BEGIN}old\n{END}rest\n");
        let expected = format!("# A\n{BEGIN}new\n\n{END}rest\n");
        assert_eq!(with_map(&document, "new\n"), Some(expected));
        assert_eq!(with_map("# A\n", "new\n"), None);
    }

    #[test]
    fn modules_of_tests_are_left_out() {
        assert!(is_module("lib.rs") && is_module("transfer/mod.rs"));
        assert!(
            !is_module("transfer/tests.rs")
                && !is_module("tests/rows.rs")
                && !is_module("view_tests.rs")
        );
    }
}
