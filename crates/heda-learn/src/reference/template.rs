//! A file with a comment on every key, for people to read and change.

use super::{FileKeys, Key};
use serde_json::{Map, Value as Json};
use std::fmt::Write;

/// Lines are not longer.
const WIDTH: usize = 100;

impl FileKeys {
    /// A file that says this, after a line on what it is. Keys that are named in `also` and that it
    /// does not have are in it as comments.
    pub fn commented(&self, about: &str, stated: &Json, also: &[&str]) -> String {
        let mut file = String::new();
        comment(&mut file, about);
        file.push('\n');
        if let Json::Object(stated) = stated {
            write_keys(&mut file, &self.keys, stated, also);
            write_sections(&mut file, "", &self.keys, stated, also);
        }
        file
    }
}

fn write_keys(file: &mut String, keys: &[Key], stated: &Map<String, Json>, also: &[&str]) {
    for Key {
        name,
        example,
        text,
        ..
    } in keys
    {
        let Some(example) = example else { continue };
        let value = stated.get(*name).and_then(super::written);
        match value {
            Some(value) => {
                comment(file, text);
                let _ = writeln!(file, "{name} = {}", super::shown(&value));
            }
            None if also.contains(name) => {
                comment(file, text);
                let _ = writeln!(file, "# {name} = {example}");
            }
            None => {}
        }
    }
}

fn write_sections(
    file: &mut String,
    path: &str,
    keys: &[Key],
    stated: &Map<String, Json>,
    also: &[&str],
) {
    for key in keys {
        let (Some((keys, _)), Some(value)) = (key.section(), stated.get(key.name)) else {
            continue;
        };
        let path = format!("{path}{}", key.name);
        let (entries, header) = match value {
            Json::Array(entries) => (entries.as_slice(), format!("[[{path}]]")),
            entry => (std::slice::from_ref(entry), format!("[{path}]")),
        };
        for entry in entries.iter().filter_map(Json::as_object) {
            file.push('\n');
            comment(file, key.text);
            let _ = writeln!(file, "{header}");
            write_keys(file, keys, entry, also);
            write_sections(file, &format!("{path}."), keys, entry, also);
        }
    }
}

fn comment(file: &mut String, text: &str) {
    let mut line = "#".to_owned();
    for word in text.split_whitespace() {
        if line.chars().count() + 1 + word.chars().count() > WIDTH {
            let _ = writeln!(file, "{line}");
            line.truncate(1);
        }
        line.push(' ');
        line.push_str(word);
    }
    let _ = writeln!(file, "{line}");
}

#[cfg(test)]
mod tests {
    use crate::reference::FileKeys;
    use serde_json::json;

    crate::described! {
        /// A file.
        #[derive(Debug, PartialEq)]
        struct Sample {
            /// How many.
            #[key("3")]
            many: u32 = 2,
            /// What it is called.
            #[key("\"x\"")]
            name: Option<String>,
            /// A part.
            #[name = "part"]
            parts: Vec<Part> = Vec::new(),
        }
    }

    crate::described! {
        /// A part of it.
        #[derive(Debug, PartialEq)]
        struct Part {
            /// How much.
            #[key("0.5")]
            much: f64,
        }
    }

    #[test]
    fn what_is_stated_is_written_with_its_meaning_and_read_back() {
        let file = FileKeys::of::<Sample>("sample.toml");
        let stated = json!({ "many": 7, "part": [{ "much": 1.0 }] });
        let text = file.commented("Made by hand.", &stated, &["name"]);
        let expected = "# Made by hand.\n\n# How many.\nmany = 7\n# What it is called.\n# name = \"x\"\n\n\
                        # A part.\n[[part]]\n# How much.\nmuch = 1\n";
        assert_eq!(text, expected);
        let sample: Sample = toml::from_str(&text).unwrap();
        let parts = vec![Part { much: 1.0 }];
        assert_eq!((sample.many, sample.name, sample.parts), (7, None, parts));
        assert_eq!(toml::from_str::<Sample>("").unwrap().many, 2);
        assert!(toml::from_str::<Sample>("[[part]]\n").is_err(), "required");
    }

    #[test]
    fn long_comments_are_cut_into_lines() {
        let mut file = String::new();
        super::comment(&mut file, &"word ".repeat(40));
        assert!(file.lines().count() == 3 && file.lines().all(|line| line.len() <= 100));
    }
}
