//! What may go wrong is said by types: no function of the crates fails with a text, and every public
//! list of failures may grow.
#![allow(clippy::unwrap_used)]

use heda_habits::functions::functions;
use heda_habits::sources::{linked, root, rust_sources};
use quote::ToTokens;
use syn::{Item, ItemEnum, Visibility};

/// The sources of the crates, outside of files that hold only tests, with their paths.
fn sources() -> Vec<(String, String)> {
    let paths = rust_sources().unwrap().into_iter();
    let ours = paths.filter(|path| linked(path).is_some());
    let read = |path: String| {
        let source = std::fs::read_to_string(root().join(&path)).unwrap();
        (path, source)
    };
    ours.map(read).collect()
}

/// Public enums of failures that others could list completely.
fn closed(items: &[Item]) -> Vec<String> {
    let mut found = Vec::new();
    for item in items {
        match item {
            Item::Enum(item) if fails(item) && !is_open(item) => found.push(item.ident.to_string()),
            Item::Mod(item) => {
                found.extend(closed(
                    item.content.as_ref().map_or(&[], |(_, inner)| inner),
                ));
            }
            _ => {}
        }
    }
    found
}

fn fails(item: &ItemEnum) -> bool {
    let derives = item.attrs.iter().any(|attribute| {
        let written = attribute.to_token_stream().to_string();
        attribute.path().is_ident("derive") && written.contains("thiserror")
    });
    matches!(item.vis, Visibility::Public(_)) && derives
}

fn is_open(item: &ItemEnum) -> bool {
    let mut attributes = item.attrs.iter();
    attributes.any(|attribute| attribute.path().is_ident("non_exhaustive"))
}

#[test]
fn public_failures_may_grow() {
    let mut found = Vec::new();
    for (path, source) in sources() {
        let file = syn::parse_file(&source).unwrap();
        found.extend(
            closed(&file.items)
                .into_iter()
                .map(|name| format!("{path}: {name}")),
        );
    }
    assert!(found.is_empty(), "add #[non_exhaustive]: {found:#?}");
}

#[test]
fn nothing_fails_with_a_text() {
    let mut found = Vec::new();
    for (path, source) in sources() {
        let functions = functions(&source, "").unwrap().into_iter();
        let texts =
            functions.filter(|f| f.gives.contains(",String>") && f.gives.contains("Result<"));
        found.extend(texts.map(|function| format!("{path}: {}", function.name)));
    }
    assert!(found.is_empty(), "a type says more than a text: {found:#?}");
}

#[test]
fn the_rules_see_what_they_are_for() {
    let source = "
        #[derive(Debug, thiserror::Error)] pub enum Closed { A }
        #[derive(Debug, thiserror::Error)] #[non_exhaustive] pub enum Open { A }
        #[derive(Debug, thiserror::Error)] enum Own { A }
        #[derive(Debug)] pub enum Other { A }
        mod inner { #[derive(thiserror::Error)] pub enum Deep { A } }
    ";
    let file = syn::parse_file(source).unwrap();
    assert_eq!(closed(&file.items), ["Closed", "Deep"]);
}
