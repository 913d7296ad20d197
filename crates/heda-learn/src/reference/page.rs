//! The reference as a page, and as a JSON schema for editors.

use super::{FileKeys, Key};
use serde_json::{Map, Value as Json, json};
use std::fmt::Write;

impl FileKeys {
    /// The part of the reference about this file, as Markdown.
    pub fn markdown(&self) -> String {
        let mut page = format!("## `{}`\n\n{}\n\n### At the top\n\n", self.file, self.about);
        write_table(&mut page, "", &self.keys);
        page
    }

    /// A JSON schema (draft 2020-12) for editors.
    pub fn json_schema(&self) -> Json {
        let mut schema = object(&self.keys);
        schema["$schema"] = "https://json-schema.org/draft/2020-12/schema".into();
        schema["title"] = self.file.into();
        schema["description"] = self.about.into();
        schema
    }
}

impl Key {
    /// What it means, as part of a table.
    fn meaning(&self) -> &'static str {
        self.text.trim().trim_end_matches('.')
    }
}

/// The keys of a table, and then those of its sections.
fn write_table(page: &mut String, path: &str, keys: &[Key]) {
    page.push_str(
        "| key | meaning | value | default | example |\n| --- | --- | --- | --- | --- |\n",
    );
    for key in keys {
        let Some(example) = key.example else { continue };
        let default = match (&key.default, key.required) {
            (Some(value), _) => format!("`{}`", super::shown(value)),
            (None, true) => "required".to_owned(),
            (None, false) => "none".to_owned(),
        };
        let cells = [key.meaning(), &key.form.words()].map(|cell| cell.replace('|', "\\|"));
        let [meaning, value] = cells;
        let name = key.name;
        let _ = writeln!(
            page,
            "| `{name}` | {meaning} | {value} | {default} | `{example}` |"
        );
    }
    for key in keys {
        let Some((keys, several)) = key.section() else {
            continue;
        };
        let path = format!("{path}{}", key.name);
        let title = match several {
            true => format!("`[[{path}]]`, once for each"),
            false => format!("`[{path}]`"),
        };
        let _ = write!(page, "\n### {title}\n\n{}\n\n", key.text.trim());
        write_table(page, &format!("{path}."), keys);
    }
}

/// A table of a file as an object.
pub(super) fn object(keys: &[Key]) -> Json {
    let property = |key: &Key| {
        let mut schema = key.form.json_schema();
        schema["description"] = key.meaning().into();
        if let Some(default) = &key.default {
            schema["default"] = json!(default);
        }
        (key.name.to_owned(), schema)
    };
    let properties: Map<String, Json> = keys.iter().map(property).collect();
    let required = keys.iter().filter(|key| key.required);
    let required: Vec<&str> = required.map(|key| key.name).collect();
    json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    })
}
