//! The list of defences to be taken out fits the sources.
#![allow(clippy::unwrap_used)]

use heda_habits::mutations::{CAUGHT, PAGE, line, mutations};
use heda_habits::sources::{root, rust_sources};

#[test]
fn every_edit_fits_the_sources_and_every_test_exists() {
    let sources = rust_sources().unwrap();
    let text = |path: &String| std::fs::read_to_string(root().join(path)).unwrap();
    for mutation in mutations().unwrap() {
        assert!(!mutation.edits.is_empty(), "{}", mutation.without);
        for edit in &mutation.edits {
            let changed = edit.applied(&root());
            assert!(changed.is_ok(), "{}: {changed:?}", mutation.without);
            assert_ne!(edit.find, edit.replace);
        }
        let name = mutation.test.rsplit("::").next().unwrap();
        let folder = format!("crates/{}/src", mutation.package);
        let definition = format!("fn {name}(");
        let ours = sources.iter().filter(|path| path.starts_with(&folder));
        let found = ours.filter(|path| text(path).contains(&definition)).count();
        assert_eq!(found, 1, "test {}", mutation.test);
    }
}

/// The page is written by the program that makes the edits; what it does not list was not tried.
#[test]
fn every_defence_was_taken_out_and_missed() {
    let page = std::fs::read_to_string(root().join(PAGE)).unwrap();
    for mutation in mutations().unwrap() {
        let line = line(&mutation, CAUGHT);
        assert!(page.contains(&line), "{PAGE} has no line {line}");
    }
}
