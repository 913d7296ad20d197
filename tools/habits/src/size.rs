//! The size of the product in numbers: source lines, types, names with two meanings, derived errors.
//!
//! Counted is what is linked into the product: the sources of `crates/`, without tests, comments, blank
//! lines, benches and examples.

use crate::sources::{linked, root, rust_sources};
use proc_macro2::{Span, TokenStream, TokenTree};
use quote::ToTokens;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;
use syn::visit::Visit;
use syn::{Attribute, Item};

/// A type and where it is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Kind {
    /// Its name.
    pub name: String,
    /// The file that defines it.
    pub path: String,
}

/// What was counted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Size {
    /// Source lines of each crate.
    pub lines: BTreeMap<String, usize>,
    /// Structs, enums, unions, traits and type aliases.
    pub types: Vec<Kind>,
    /// Types that derive `thiserror::Error`.
    pub errors: usize,
    /// How often the command line names a crate of ours other than `heda`.
    pub internal_uses: usize,
}

impl Size {
    /// Counts all product crates.
    pub fn of_product() -> Result<Self, String> {
        let mut files = BTreeMap::new();
        for path in rust_sources().map_err(|e| e.to_string())? {
            if path.starts_with("crates/") && linked(&path).is_some() {
                let text = std::fs::read_to_string(root().join(&path));
                files.insert(path.clone(), text.map_err(|e| format!("{path}: {e}"))?);
            }
        }
        Self::of_files(&files)
    }

    /// Counts files, given by their paths below the root.
    fn of_files(files: &BTreeMap<String, String>) -> Result<Self, String> {
        let mut read = BTreeMap::new();
        for (path, text) in files {
            read.insert(
                path,
                Source::read(text).map_err(|e| format!("{path}: {e}"))?,
            );
        }
        let tests: Vec<String> = (read.iter())
            .flat_map(|(path, source)| source.test_modules.iter().map(|m| beside(path, m)))
            .collect();
        let is_test = |path: &str| tests.iter().any(|test| is_of_module(path, test));
        let mut size = Self::default();
        for (path, source) in read.into_iter().filter(|(path, _)| !is_test(path)) {
            let name = path.split('/').nth(1).unwrap_or_default();
            *size.lines.entry(name.to_owned()).or_default() += source.lines;
            size.errors += source.errors;
            if name == "heda-cli" {
                size.internal_uses += source.internal_uses;
            }
            size.types.extend(source.types.into_iter().map(|name| Kind {
                name,
                path: path.clone(),
            }));
        }
        size.types.sort();
        Ok(size)
    }

    /// Source lines of all crates.
    pub fn all_lines(&self) -> usize {
        self.lines.values().sum()
    }

    /// Names of two or more types, with the files that define them.
    pub fn ambiguous(&self) -> BTreeMap<&str, Vec<&str>> {
        let mut meanings: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for Kind { name, path } in &self.types {
            meanings.entry(name).or_default().push(path);
        }
        meanings.retain(|_, paths| paths.len() > 1);
        meanings
    }
}

/// The path, without `.rs`, of a module that a file declares.
fn beside(path: &str, module: &str) -> String {
    let (folder, file) = path.rsplit_once('/').unwrap_or_default();
    match file {
        "lib.rs" | "main.rs" | "mod.rs" => format!("{folder}/{module}"),
        other => format!("{folder}/{}/{module}", other.trim_end_matches(".rs")),
    }
}

fn is_of_module(path: &str, module: &str) -> bool {
    let rest = path.strip_prefix(module);
    rest.is_some_and(|rest| rest == ".rs" || rest.starts_with('/'))
}

/// What one file has, outside its tests.
#[derive(Default)]
struct Source {
    lines: usize,
    types: Vec<String>,
    errors: usize,
    internal_uses: usize,
    /// Modules that are compiled for tests only.
    test_modules: Vec<String>,
    /// Lines of items that are compiled for tests only.
    tests: Vec<RangeInclusive<usize>>,
}

impl Source {
    fn read(text: &str) -> Result<Self, syn::Error> {
        let mut source = Self::default();
        source.visit_file(&syn::parse_file(text)?);
        let mut tokens = Vec::new();
        flatten(text.parse()?, &mut tokens);
        let is_test = |line: &usize| source.tests.iter().any(|range| range.contains(line));
        let written: BTreeSet<usize> = (tokens.iter())
            .flat_map(|(span, _)| span.start().line..=span.end().line)
            .filter(|line| !is_test(line))
            .collect();
        source.lines = written.len();
        let internal = |(span, word): &&(Span, String)| {
            // The program is a thin main over the library of its own crate.
            word.starts_with("heda_") && word != "heda_cli" && !is_test(&span.start().line)
        };
        source.internal_uses = tokens.iter().filter(internal).count();
        Ok(source)
    }

    fn add(&mut self, name: &syn::Ident, attributes: &[Attribute]) {
        self.types.push(name.to_string());
        let derived = attributes.iter().filter(|a| a.path().is_ident("derive"));
        let mut words = derived.map(|a| a.to_token_stream().to_string());
        self.errors += usize::from(words.any(|words| words.contains("thiserror :: Error")));
    }
}

impl<'ast> Visit<'ast> for Source {
    fn visit_item(&mut self, item: &'ast Item) {
        let attributes = attributes(item);
        if attributes.iter().any(is_for_tests) {
            let (start, end) = ends(item);
            self.tests.push(start..=end);
            if let Item::Mod(module) = item
                && module.content.is_none()
            {
                self.test_modules.push(module.ident.to_string());
            }
            return;
        }
        match item {
            Item::Struct(item) => self.add(&item.ident, attributes),
            Item::Enum(item) => self.add(&item.ident, attributes),
            Item::Union(item) => self.add(&item.ident, attributes),
            Item::Trait(item) => self.add(&item.ident, attributes),
            Item::Type(item) => self.add(&item.ident, attributes),
            _ => {}
        }
        syn::visit::visit_item(self, item);
    }
}

fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Union(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

fn is_for_tests(attribute: &Attribute) -> bool {
    let written = attribute.meta.to_token_stream().to_string();
    written == "test" || written == "cfg (test)"
}

/// The first and the last line of an item, with its attributes.
fn ends(item: &Item) -> (usize, usize) {
    let mut tokens = Vec::new();
    flatten(item.to_token_stream(), &mut tokens);
    let lines = tokens
        .iter()
        .map(|(span, _)| (span.start().line, span.end().line));
    lines.fold((usize::MAX, 0), |(first, last), (start, end)| {
        (first.min(start), last.max(end))
    })
}

/// All tokens that are not documentation, with their text where they are names.
fn flatten(stream: TokenStream, into: &mut Vec<(Span, String)>) {
    let tokens: Vec<TokenTree> = stream.into_iter().collect();
    let mut rest = &tokens[..];
    loop {
        rest = match rest {
            [] => return,
            [TokenTree::Punct(hash), TokenTree::Group(group), rest @ ..]
                if hash.as_char() == '#' && is_documentation(group) =>
            {
                rest
            }
            [
                TokenTree::Punct(hash),
                TokenTree::Punct(bang),
                TokenTree::Group(group),
                rest @ ..,
            ] if hash.as_char() == '#' && bang.as_char() == '!' && is_documentation(group) => rest,
            [TokenTree::Group(group), rest @ ..] => {
                into.push((group.span_open(), String::new()));
                flatten(group.stream(), into);
                into.push((group.span_close(), String::new()));
                rest
            }
            [TokenTree::Ident(name), rest @ ..] => {
                into.push((name.span(), name.to_string()));
                rest
            }
            [other, rest @ ..] => {
                into.push((other.span(), String::new()));
                rest
            }
        };
    }
}

fn is_documentation(group: &proc_macro2::Group) -> bool {
    let first = group.stream().into_iter().next();
    matches!(first, Some(TokenTree::Ident(name)) if name == "doc")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn size(files: &[(&str, &str)]) -> Size {
        let files = files
            .iter()
            .map(|(path, text)| ((*path).into(), (*text).into()));
        Size::of_files(&files.collect()).unwrap()
    }

    #[test]
    fn comments_blank_lines_and_tests_are_no_source() {
        let size = size(&[(
            "crates/a/src/lib.rs",
            "//! Module.\n\n/// A type.\npub struct A {\n    // why\n    x: u8, /* how */\n}\n\
             /** long\n documentation */\nconst T: &str = \"two\nlines\";\n\
             #[cfg(test)]\nmod tests {\n    struct B;\n}\n",
        )]);
        assert_eq!(size.lines["a"], 5);
        assert_eq!(size.types.len(), 1);
    }

    #[test]
    fn files_of_test_modules_do_not_count() {
        let size = size(&[
            (
                "crates/a/src/lib.rs",
                "mod b;\n#[cfg(test)]\nmod samples;\n",
            ),
            ("crates/a/src/samples/deep.rs", "struct S;\n"),
            ("crates/a/src/b.rs", "#[cfg(test)]\nmod tests;\nstruct T;\n"),
            ("crates/a/src/b/tests.rs", "struct T;\n"),
            ("crates/c/src/mod.rs", "#[cfg(test)] mod tests;\n"),
            ("crates/c/src/tests.rs", "struct T;\n"),
        ]);
        assert_eq!(size.lines["a"], 2);
        assert_eq!(size.types.len(), 1);
        assert!(size.ambiguous().is_empty());
    }

    #[test]
    fn types_errors_and_names_with_two_meanings_are_counted() {
        let size = size(&[
            (
                "crates/a/src/lib.rs",
                "#[derive(Debug, thiserror::Error)] enum E { A } trait T { type X; } type U = u8;\n\
                 fn f() { struct Inner; }",
            ),
            ("crates/b/src/lib.rs", "struct E; union V { a: u8 }"),
        ]);
        assert_eq!((size.types.len(), size.errors), (6, 1));
        let both = vec!["crates/a/src/lib.rs", "crates/b/src/lib.rs"];
        assert_eq!(size.ambiguous(), BTreeMap::from([("E", both)]));
    }

    #[test]
    fn only_the_command_line_is_asked_for_internal_crates() {
        let text = "use heda_node::x;\nuse heda::y;\n/// heda_node::z\nfn f() { heda_dp::g() }\n\
                    #[test]\nfn t() { heda_dp::h() }";
        let size = size(&[
            ("crates/heda-cli/src/main.rs", text),
            ("crates/heda/src/lib.rs", text),
        ]);
        assert_eq!(size.internal_uses, 2);
    }
}
