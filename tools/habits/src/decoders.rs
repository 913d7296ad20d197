//! Which functions turn foreign bytes into something, by a rule that looks at their signatures and
//! at what they call.

use crate::functions::{Function, functions};
use crate::sources::{linked, root, rust_sources};
use std::collections::BTreeSet;

/// Types that hold bytes, or from which bytes are read.
const BYTES: [&str; 7] = [
    "&[u8]", "&Vec<u8>", "Vec<u8>", "Bytes", "File", "implRead", "R",
];
/// Types that hold text or say where files are.
const TEXT: [&str; 4] = ["&str", "&Path", "&std::path::Path", "&LedgerPlace"];
/// What readers of text and files are called: so, or so with `_` and more behind it.
const READERS: [&str; 10] = [
    "decode",
    "from_json",
    "from_str",
    "load",
    "open",
    "parse",
    "propose",
    "read",
    "resume",
    "unhex",
];
/// What functions are called that give bytes away.
const WRITERS: [&str; 7] = [
    "create", "replace", "seal", "send", "sign", "store", "write",
];
/// How the calls of parsers begin.
const PARSERS: [&str; 8] = [
    "CertificateDer::pem",
    "ParquetRecordBatchReaderBuilder::",
    "ParsedCertificate::try_from",
    "ReaderBuilder::",
    "from_json",
    "serde_json::from_",
    "toml::de::",
    "toml::from_",
];

/// How the calls end that bring the content of a file or a folder.
const SOURCES: [&str; 8] = [
    ".read_to_end",
    ".read_to_string",
    "Connection::open_with_flags",
    "File::open",
    "fs::read",
    "fs::read_dir",
    "fs::read_to_string",
    "read_bounded",
];

/// Every function of the crates that decodes, as `crate Type::name` or `crate module::name`.
pub fn decoders() -> Result<BTreeSet<String>, String> {
    let mut found = BTreeSet::new();
    for path in rust_sources().map_err(|e| e.to_string())? {
        let Some((name, module)) = module_of(&path) else {
            continue;
        };
        let source =
            std::fs::read_to_string(root().join(&path)).map_err(|e| format!("{path}: {e}"))?;
        let functions = functions(&source, module).map_err(|e| format!("{path}: {e}"))?;
        let decoding = functions.iter().filter(|function| decodes(function));
        found.extend(decoding.map(|function| format!("{name} {}", function.name)));
    }
    Ok(found)
}

/// The crate and the last name of the module of a source file; none for what is not linked into
/// programs.
fn module_of(path: &str) -> Option<(&str, &str)> {
    let (name, inner) = linked(path)?;
    let module = inner.trim_end_matches(".rs").trim_end_matches("/mod");
    let module = module.rsplit('/').next()?;
    (!module.ends_with("tests") && module != "testing").then_some((name, module))
}

/// A function decodes if it may fail and
/// - others can call it, it takes bytes or something to read them from, and is not called like a
///   writer, or
/// - others can call it, it takes text or a path, and is called like a reader, or
/// - it calls a parser, or something that brings the content of a file or a folder.
fn decodes(function: &Function) -> bool {
    let Function {
        name,
        visible,
        takes,
        gives,
        calls,
    } = function;
    let may_fail = ["Result<", "io::Result<", "Option<"]
        .iter()
        .any(|kind| gives.starts_with(kind));
    let takes = |kinds: &[&str]| takes.iter().any(|taken| kinds.contains(&taken.as_str()));
    let name = name.rsplit("::").next().unwrap_or_default();
    let called_like = |words: &[&str]| {
        let begins = |word: &&str| {
            let rest = name.strip_prefix(*word);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('_'))
        };
        words.iter().any(begins)
    };
    let parses = calls.iter().any(|call| {
        let reads = |end: &&str| match call.strip_suffix(end) {
            Some(before) => before.is_empty() || before.ends_with(':'),
            None => false,
        };
        PARSERS.iter().any(|parser| call.starts_with(parser)) || SOURCES.iter().any(reads)
    });
    let array = function.takes.iter().any(|taken| taken.starts_with("[u8;"));
    let of_bytes = (takes(&BYTES) || array) && !called_like(&WRITERS);
    let of_text = takes(&TEXT) && called_like(&READERS);
    may_fail && (*visible && (of_bytes || of_text) || parses)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(source: &str) -> bool {
        decodes(&functions(source, "m").unwrap()[0])
    }

    #[test]
    fn the_rule_sees_bytes_readers_and_parsers() {
        assert!(found(
            "pub fn anything(bytes: &[u8], n: usize) -> Result<u8, E> { x }"
        ));
        assert!(found(
            "pub(crate) fn read_rows(path: &Path) -> Option<u8> { x }"
        ));
        assert!(found(
            "fn f(&self) -> Result<u8, E> { serde_json::from_slice(x) }"
        ));
        assert!(found(
            "fn f(&self) -> io::Result<u8> { files::read_bounded(&self.0, 9) }"
        ));
        assert!(found(
            "fn f() -> Result<u8, E> { for e in std::fs::read_dir(folder)? { g(e) } }"
        ));
        assert!(!found(
            "fn f() -> Result<u8, E> { unread_bounded(folder)? }"
        ));
        assert!(!found(
            "fn helper(bytes: &[u8], n: usize) -> Result<u8, E> { x }"
        ));
        assert!(!found("pub fn send(bytes: &[u8]) -> Result<(), E> { x }"));
        assert!(!found("pub fn sum(bytes: &[u8]) -> u64 { x }"));
        assert!(!found("pub fn reader(path: &Path) -> Option<u8> { x }"));
        assert!(!found("pub fn name(text: &str) -> Result<u8, E> { x }"));
    }

    #[test]
    fn known_decoders_are_found() {
        let found = decoders().unwrap();
        for known in [
            "heda know::know",
            "heda-crypto MaskSetup::finish",
            "heda-experiments Sheet::open",
            "heda-learn Schema::parse",
            "heda-node Anchor::read",
            "heda-node Answer::in_folder",
            "heda-node Ledger::open",
            "heda-node LedgerReader::open",
        ] {
            assert!(found.contains(known), "{known} in {found:#?}");
        }
    }
}
