//! The reference and the JSON schemas in the documents are what the program prints.

#![allow(clippy::unwrap_used)]

use std::path::Path;
use std::process::Command;

fn printed(arguments: &[&str]) -> String {
    let heda = Command::new(env!("CARGO_BIN_EXE_heda"))
        .args(arguments)
        .output();
    String::from_utf8(heda.unwrap().stdout).unwrap()
}

#[test]
fn the_reference_is_up_to_date() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let mut files = vec![(docs.join("reference.md"), printed(&["reference"]))];
    for name in ["job", "provider", "schema"] {
        let text = printed(&["reference", "--json-schema", name]);
        let schema: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert!(
            schema["properties"].as_object().unwrap().len() > 3,
            "{name}"
        );
        files.push((docs.join(format!("schemas/{name}.json")), text));
    }
    for (path, text) in files {
        if std::env::var_os("UPDATE_DOCUMENTS").is_some() {
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, &text).unwrap();
        }
        let found = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(
            found == text,
            "{} is old; run with UPDATE_DOCUMENTS=1",
            path.display()
        );
    }
}
