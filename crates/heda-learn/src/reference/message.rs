//! What is wrong in a file, in the file's own words: line, key, value and what fits.

use super::{FileKeys, Form, Key};
use crate::spelling::distance;
use std::ops::Range;
use toml::de::{DeTable, DeValue};

/// More characters of a value are not repeated.
const SHOWN: usize = 60;

impl FileKeys {
    /// What is wrong with a text that does not become what it should, and in which line.
    pub fn explain(&self, text: &str, error: &toml::de::Error) -> String {
        let (line, words) = self.line_and_words(text, error);
        format!("line {line}: {words}; docs/reference.md lists every key")
    }

    /// The line, from 1, and what is wrong there.
    pub(crate) fn line_and_words(&self, text: &str, error: &toml::de::Error) -> (usize, String) {
        let at = error.span().map_or(0, |span| span.start.min(text.len()));
        let before = text.get(..at).unwrap_or_default();
        let line = before.matches('\n').count();
        let message = error.message().trim();
        let header = text.lines().nth(line).unwrap_or_default();
        let words = unknown(message)
            .or_else(|| self.missing(header, message))
            .or_else(|| self.misfit(text, at, message));
        (line + 1, words.unwrap_or_else(|| message.to_owned()))
    }

    /// A key that the table under this header must have.
    fn missing(&self, header: &str, message: &str) -> Option<String> {
        let (name, _) = message.strip_prefix("missing field `")?.split_once('`')?;
        let section = header.trim().trim_matches(['[', ']']);
        let section = self.keys.iter().find(|key| key.name == section);
        let keys = section.and_then(Key::section).map(|(keys, _)| keys);
        let mut keys = keys.unwrap_or(&self.keys).iter();
        let key = keys.find(|key| key.name == name)?;
        let example = match key.example {
            Some(example) => format!("{name} = {example}"),
            None => format!("[{name}]"),
        };
        Some(format!(
            "the key `{name}` is missing; add it, for example {example}"
        ))
    }

    /// A value that does not fit its key.
    fn misfit(&self, text: &str, at: usize, message: &str) -> Option<String> {
        let table = DeTable::parse(text).ok()?;
        let (key, example, place) = key_at(&self.keys, table.get_ref(), at)?;
        let value = text.get(place)?;
        let value = match value.char_indices().nth(SHOWN) {
            Some((end, _)) => format!("{}…", &value[..end]),
            None => value.to_owned(),
        };
        let Key { name, form, .. } = key;
        // What is inside of a table is not in its words.
        let reason = match form {
            Form::Table(_) | Form::Numbers(_) if !message.starts_with("invalid type") => {
                format!(" ({message})")
            }
            _ => String::new(),
        };
        let words = form.words();
        Some(format!(
            "`{name}` is {value}; it must be {words}, for example {name} = {example}{reason}"
        ))
    }
}

/// The key whose value is at a place of the text, its example, and from where to where it is.
fn key_at<'k>(
    keys: &'k [Key],
    table: &DeTable<'_>,
    at: usize,
) -> Option<(&'k Key, &'k str, Range<usize>)> {
    keys.iter().find_map(|key| {
        let value = table.get(key.name)?;
        let Some((keys, _)) = key.section() else {
            let here = value.span().contains(&at);
            return here.then_some((key, key.example?, value.span()));
        };
        match value.get_ref() {
            DeValue::Table(table) => key_at(keys, table, at),
            DeValue::Array(entries) => entries.iter().find_map(|entry| match entry.get_ref() {
                DeValue::Table(table) => key_at(keys, table, at),
                _ => None,
            }),
            _ => None,
        }
    })
}

/// A key that is not known, from the library's words, which list those that are.
fn unknown(message: &str) -> Option<String> {
    let rest = message.strip_prefix("unknown field `")?;
    let (name, rest) = rest.split_once('`')?;
    let known: Vec<&str> = rest.split('`').skip(1).step_by(2).collect();
    let nearest = known.iter().map(|key| (distance(name, key), *key)).min();
    Some(match nearest {
        Some((distance, key)) if distance <= 1 + key.len() / 3 => {
            format!("there is no key `{name}` here; did you mean `{key}`?")
        }
        _ => format!(
            "there is no key `{name}` here; there are {}",
            known.join(", ")
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_that_is_not_known_brings_the_nearest_one_or_all() {
        let words = |name: &str| {
            let message = format!("unknown field `{name}`, expected `iterations` or `iota`");
            unknown(&message).unwrap()
        };
        assert!(words("iteration").ends_with("did you mean `iterations`?"));
        assert!(words("colour").ends_with("there are iterations, iota"));
        assert_eq!(unknown("invalid type: integer `1`"), None);
    }
}
