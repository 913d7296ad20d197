//! Inputs that are kept in files: `corpus/TARGET/`.
//!
//! A file is a valid encoding, which must be accepted for as long as its format is. A file whose
//! name begins with `regression` once made a decoder fail; its content is hexadecimal.

use std::path::{Path, PathBuf};

/// The beginning of the names of files with hexadecimal content that need not be accepted.
const REGRESSION: &str = "regression";

/// What is kept for one target.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Corpus {
    /// Valid encodings.
    pub seeds: Vec<Vec<u8>>,
    /// Inputs that once made the decoder fail.
    pub regressions: Vec<Vec<u8>>,
}

/// Where the corpus lies.
pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus")
}

impl Corpus {
    /// What is kept for a target, in the order of the names; nothing if it has no folder.
    pub fn of(target: &str) -> std::io::Result<Self> {
        let folder = folder().join(target);
        let mut corpus = Self::default();
        if !folder.is_dir() {
            return Ok(corpus);
        }
        let entries = std::fs::read_dir(folder)?.map(|entry| entry.map(|entry| entry.path()));
        let mut paths = entries.collect::<Result<Vec<_>, _>>()?;
        paths.sort();
        for path in paths {
            let content = std::fs::read(&path)?;
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            if !name.starts_with(REGRESSION) {
                corpus.seeds.push(content);
                continue;
            }
            let digits = String::from_utf8_lossy(&content);
            let bytes = from_hex(digits.trim()).ok_or_else(|| {
                let words = format!("{} is not hexadecimal", path.display());
                std::io::Error::other(words)
            })?;
            corpus.regressions.push(bytes);
        }
        Ok(corpus)
    }
}

/// Bytes from hexadecimal digits.
pub(crate) fn from_hex(digits: &str) -> Option<Vec<u8>> {
    let (pairs, rest) = digits.as_bytes().as_chunks::<2>();
    let digit = |c: u8| char::from(c).to_digit(16);
    let bytes = pairs
        .iter()
        .map(|[high, low]| Some((digit(*high)? << 4 | digit(*low)?) as u8));
    rest.is_empty().then(|| bytes.collect())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_read_and_anything_else_is_not() {
        assert_eq!(from_hex("00fFa1"), Some(vec![0, 255, 0xa1]));
        assert_eq!(from_hex(""), Some(vec![]));
        assert_eq!(from_hex("0"), None);
        assert_eq!(from_hex("0g"), None);
    }

    #[test]
    fn seeds_of_the_corpus_are_found_and_a_target_may_have_none() {
        let kept = Corpus::of("schema").unwrap();
        assert!(!kept.seeds.is_empty());
        assert_eq!(Corpus::of("no such target").unwrap(), Corpus::default());
    }
}
