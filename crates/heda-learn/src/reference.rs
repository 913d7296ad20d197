//! What can stand in a file that people write, key by key: the source of the reference, of the JSON
//! schema for editors, and of messages about values that are none.

use crate::spelling::distance;
use serde_json::{Map, Value as Json, json};
use std::fmt::Write;

/// One key of a file.
#[derive(Debug, Clone, Copy)]
pub struct Key {
    /// Its section: empty at the top, `limits` for `[limits]`, `allow[]` for `[[allow]]`.
    pub section: &'static str,
    /// Its name.
    pub name: &'static str,
    /// What it can be.
    pub value: Value,
    /// Whether it has to be there, and what stands for it if not.
    pub need: Need,
    /// A value as it is written.
    pub example: &'static str,
    /// What it means: the text of its field.
    pub text: &'static str,
}

/// What a key can be.
#[derive(Debug, Clone, Copy)]
pub enum Value {
    /// Any text.
    Text,
    /// A path, relative to the file.
    Path,
    /// `sha256:` and 64 hexadecimal digits.
    Fingerprint,
    /// A number.
    Number,
    /// A whole number.
    Whole,
    /// A whole number from 1 upwards.
    Count,
    /// `true` or `false`.
    Flag,
    /// One of these words.
    OneOf(&'static [&'static str]),
    /// One of these words, which the code knows.
    Named(fn() -> Vec<&'static str>),
    /// Several of these words, in brackets.
    SomeNamed(fn() -> Vec<&'static str>),
    /// A whole number or one of these words.
    WholeOr(&'static [&'static str]),
    /// Texts in brackets.
    Texts,
    /// Two numbers, or two dates, in brackets.
    Bounds,
    /// A table such as the example.
    Table,
    /// One of these words, or a table such as the example.
    WordOrTable(&'static [&'static str]),
    /// A text, or texts in brackets.
    TextOrTexts,
}

/// Whether a key has to be there.
#[derive(Debug, Clone, Copy)]
pub enum Need {
    /// It has to.
    Required,
    /// It may be left out; the meaning says what then.
    Optional,
    /// This stands for it.
    Default(&'static str),
    /// What the code says stands for it.
    Computed(fn() -> String),
}

impl Need {
    /// What stands for a key that is not there.
    pub fn default(&self) -> Option<String> {
        match self {
            Self::Required | Self::Optional => None,
            Self::Default(text) => Some((*text).to_owned()),
            Self::Computed(text) => Some(text()),
        }
    }
}

/// A file that people write.
#[derive(Debug, Clone, Copy)]
pub struct FileKeys {
    /// Its usual name.
    pub file: &'static str,
    /// What it is for.
    pub about: &'static str,
    /// Its keys, section by section; a field that is no key has none.
    pub parts: &'static [&'static [Option<Key>]],
}

/// A struct that part of a file becomes, with the keys of that part described on its fields: the
/// documentation of a field is what the reference, the JSON schema and the templates say, and
/// `#[key(value, need, example)]` is what the key can be ([`Value`], [`Need`]). A field without it is
/// a section of its own, or nothing that stands in the file.
#[macro_export]
macro_rules! described {
    (
        $(#[$meta:meta])*
        $vis:vis struct $name:ident in $section:literal {
            $(
                $(#[doc = $doc:literal])+
                $(#[key $key:tt])?
                $(#[serde $serde:tt])*
                $field_vis:vis $field:ident: $type:ty,
            )*
        }
    ) => {
        $(#[$meta])*
        $vis struct $name {
            $($(#[doc = $doc])+ $(#[serde $serde])* $field_vis $field: $type,)*
        }

        impl $name {
            /// The keys that the fields stand for.
            $vis const KEYS: &'static [Option<$crate::reference::Key>] = &[
                $($crate::described!(@key $section, $field, [$($doc),+], [$($key)?]),)*
            ];
        }
    };
    (@key $section:literal, $field:ident, $doc:tt, []) => { None };
    (@key $section:literal, $field:ident, [$($doc:literal),+],
     [($value:expr, $need:expr, $example:literal)]) => {
        Some({
            #[allow(unused_imports, reason = "not every struct has every kind of value")]
            use $crate::reference::{Need::*, Value::*};
            $crate::reference::Key {
                section: $section,
                name: stringify!($field),
                value: $value,
                need: $need,
                example: $example,
                text: concat!($($doc),+),
            }
        })
    };
}

impl Value {
    /// In words, as part of a sentence that begins with "expected".
    pub fn words(&self) -> String {
        let list = |words: &[&str]| {
            let quoted: Vec<String> = words.iter().map(|word| format!("\"{word}\"")).collect();
            quoted.join(", ")
        };
        match self {
            Self::Text => "a text in quotes".into(),
            Self::Path => "a path in quotes".into(),
            Self::Fingerprint => "a fingerprint in quotes".into(),
            Self::Number => "a number".into(),
            Self::Whole => "a whole number".into(),
            Self::Count => "a whole number from 1 upwards".into(),
            Self::Flag => "true or false".into(),
            Self::OneOf(words) => format!("one of {}", list(words)),
            Self::Named(words) => format!("one of {}", list(&words())),
            Self::SomeNamed(words) => format!("a list of some of {}", list(&words())),
            Self::WholeOr(words) => format!("a whole number or one of {}", list(words)),
            Self::Texts => "a list of texts".into(),
            Self::Bounds => "two numbers, or two dates in quotes, in brackets".into(),
            Self::Table => "a table in braces".into(),
            Self::WordOrTable(words) => format!("one of {}, or a table in braces", list(words)),
            Self::TextOrTexts => "a text in quotes, or a list of them".into(),
        }
    }

    fn json_schema(&self) -> Json {
        let text = || json!({ "type": "string" });
        let texts = || json!({ "type": "array", "items": { "type": "string" } });
        match self {
            Self::Text | Self::Path => text(),
            Self::Fingerprint => json!({ "type": "string", "pattern": "^sha256:[0-9a-f]{64}$" }),
            Self::Number => json!({ "type": "number" }),
            Self::Whole => json!({ "type": "integer" }),
            Self::Count => json!({ "type": "integer", "minimum": 1 }),
            Self::Flag => json!({ "type": "boolean" }),
            Self::OneOf(words) => json!({ "enum": words }),
            Self::Named(words) => json!({ "enum": words() }),
            Self::SomeNamed(words) => json!({ "type": "array", "items": { "enum": words() } }),
            Self::WholeOr(words) => json!({ "anyOf": [{ "type": "integer" }, { "enum": words }] }),
            Self::Texts => texts(),
            Self::Bounds => {
                let bound = json!({ "type": ["number", "string"] });
                json!({ "type": "array", "items": bound, "minItems": 2, "maxItems": 2 })
            }
            Self::Table => json!({ "type": "object" }),
            Self::WordOrTable(words) => {
                json!({ "anyOf": [{ "enum": words }, { "type": "object" }] })
            }
            Self::TextOrTexts => json!({ "anyOf": [text(), texts()] }),
        }
    }
}

impl Key {
    /// What it means, as part of a table.
    pub fn meaning(&self) -> &'static str {
        self.text.trim().trim_end_matches('.')
    }

    /// Name, value, example: for messages.
    pub fn expectation(&self) -> String {
        let Self { name, example, .. } = self;
        format!(
            "`{name}` is {}, for example {name} = {example}",
            self.value.words()
        )
    }
}

impl FileKeys {
    /// All keys; those of a section stand together.
    pub fn keys(&self) -> impl Iterator<Item = &'static Key> + use<> {
        self.parts.iter().copied().flatten().flatten()
    }

    /// The sections in order.
    pub fn sections(&self) -> Vec<&'static str> {
        let mut sections: Vec<&'static str> = self.keys().map(|key| key.section).collect();
        sections.dedup();
        sections
    }

    /// A key of a section.
    pub fn find(&self, section: &str, name: &str) -> Option<&'static Key> {
        let mut keys = self.keys();
        keys.find(|key| key.section == section && key.name == name)
    }

    /// The part of the reference about this file, as Markdown.
    pub fn markdown(&self) -> String {
        let mut text = format!("## `{}`\n\n{}\n", self.file, self.about);
        for section in self.sections() {
            let title = match section.strip_suffix("[]") {
                Some(list) => format!("### `[[{list}]]`, once for each"),
                None if section.is_empty() => "### At the top".to_owned(),
                None => format!("### `[{section}]`"),
            };
            let _ = write!(
                text,
                "\n{title}\n\n| key | meaning | value | default | example |\n\
                 | --- | --- | --- | --- | --- |\n"
            );
            for key in self.keys().filter(|key| key.section == section) {
                let default = match (key.need, key.need.default()) {
                    (Need::Required, _) => "required".to_owned(),
                    (_, None) => "none".to_owned(),
                    (_, Some(value)) => format!("`{value}`"),
                };
                let _ = writeln!(
                    text,
                    "| `{}` | {} | {} | {default} | `{}` |",
                    key.name,
                    key.meaning().replace('|', "\\|"),
                    key.value.words().replace('|', "\\|"),
                    key.example
                );
            }
        }
        text
    }

    /// A JSON schema (draft 2020-12) for editors.
    pub fn json_schema(&self) -> Json {
        let mut top = self.object("");
        for section in self.sections().into_iter().filter(|s| !s.is_empty()) {
            let object = Json::Object(self.object(section));
            let (name, schema) = match section.strip_suffix("[]") {
                Some(name) => (name, json!({ "type": "array", "items": object })),
                None => (section, object),
            };
            if let Some(Json::Object(properties)) = top.get_mut("properties") {
                properties.insert(name.to_owned(), schema);
            }
        }
        top.insert(
            "$schema".into(),
            "https://json-schema.org/draft/2020-12/schema".into(),
        );
        top.insert("title".into(), self.file.into());
        Json::Object(top)
    }

    fn object(&self, section: &str) -> Map<String, Json> {
        let keys = || self.keys().filter(|key| key.section == section);
        let property = |key: &Key| {
            let mut schema = key.value.json_schema();
            schema["description"] = key.meaning().into();
            (key.name.to_owned(), schema)
        };
        let required: Vec<&str> = keys()
            .filter(|key| matches!(key.need, Need::Required))
            .map(|key| key.name)
            .collect();
        let properties: Map<String, Json> = keys().map(property).collect();
        let mut object = Map::new();
        object.insert("type".into(), "object".into());
        object.insert("properties".into(), properties.into());
        object.insert("required".into(), required.into());
        object.insert("additionalProperties".into(), false.into());
        object
    }

    /// What is wrong with a text that does not become what it should, in the file's own words.
    pub fn explain(&self, text: &str, error: &toml::de::Error) -> String {
        let (line_number, words) = self.line_and_words(text, error);
        format!("line {line_number}: {words}; docs/reference.md lists every key")
    }

    /// The line, from 1, and what is wrong there.
    pub(crate) fn line_and_words(&self, text: &str, error: &toml::de::Error) -> (usize, String) {
        let at = error.span().map_or(0, |span| span.start.min(text.len()));
        let before = text.get(..at).unwrap_or_default();
        let line_number = before.matches('\n').count() + 1;
        let line = text.lines().nth(line_number - 1).unwrap_or_default();
        let message = error.message().trim();
        let words = match unknown_field(message) {
            Some((name, expected)) => misspelt(name, &expected),
            None => self.misfit(before, line, message),
        };
        (line_number, words)
    }

    /// A value that does not fit its key.
    fn misfit(&self, before: &str, line: &str, message: &str) -> String {
        let name = line.split('=').next().unwrap_or_default().trim();
        let key = self.find(section_of(before), name);
        // What the library says after "expected" are names of types.
        let said = message.split(", expected").next().unwrap_or(message);
        match (key, said == message) {
            (None, _) => message.to_owned(),
            (Some(key), false) => format!("{said}; {}", key.expectation()),
            (Some(key), true) => format!("{message}; {}", key.expectation()),
        }
    }
}

/// The section that a place in a file belongs to, as keys name it.
fn section_of(before: &str) -> &str {
    let header = before.lines().rev().find(|line| line.starts_with('['));
    match header {
        None => "",
        Some(line) => {
            let name = line.trim_start_matches('[');
            let end = name.find(']').unwrap_or(name.len());
            let name = &name[..end];
            SECTIONS
                .iter()
                .find(|s| s.trim_end_matches("[]") == name)
                .copied()
                .unwrap_or("")
        }
    }
}

/// All sections of all files, as keys name them.
const SECTIONS: [&str; 12] = [
    "label",
    "column[]",
    "auto",
    "privacy",
    "timeouts",
    "provider[]",
    "allow[]",
    "known_provider[]",
    "limits",
    "reproducible",
    "csv",
    "terms",
];

/// The name and what it could have been, from the library's words.
fn unknown_field(message: &str) -> Option<(&str, Vec<&str>)> {
    let rest = message.strip_prefix("unknown field `")?;
    let (name, rest) = rest.split_once('`')?;
    let expected = rest.split('`').skip(1).step_by(2).collect();
    Some((name, expected))
}

fn misspelt(name: &str, expected: &[&str]) -> String {
    let nearest = expected.iter().map(|key| (distance(name, key), *key)).min();
    match nearest {
        Some((distance, key)) if distance <= 1 + key.len() / 3 => {
            format!("there is no key `{name}` here; did you mean `{key}`?")
        }
        _ => format!(
            "there is no key `{name}` here; there are {}",
            expected.join(", ")
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_names_are_near() {
        assert!(
            misspelt("iteration", &["iterations", "iota"]).contains("did you mean `iterations`")
        );
        assert!(misspelt("colour", &["iterations", "iota"]).contains("there are iterations, iota"));
    }
}
