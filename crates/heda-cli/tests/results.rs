//! The object of `--json`: what `docs/schemas/result.json` says, from real jobs. Results of `heda
//! train` are checked in `network.rs` and `private.rs`.
#![allow(clippy::unwrap_used, reason = "a test that fails should say where")]

mod lines;
mod result;

use lines::{confirm, done};
use result::checked;
use result::schemas::compare;
use serde_json::{Value, json};
use std::fs;
use std::path::Path;

fn printed(folder: &Path, line: &str) -> Value {
    checked(done(folder, line).as_bytes())
}

/// A folder with the rows of a bundled data set.
fn with_rows(name: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../datasets");
    let name = format!("{name}.csv");
    fs::copy(from.join(&name), folder.path().join(&name)).unwrap();
    folder
}

#[test]
fn results_of_demo_are_as_the_schema_says() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    let exact = printed(here, "demo --dataset bcwd --seed 1 --json");
    assert_eq!(exact["privacy"], Value::Null);
    assert_eq!(exact["converged"], true);
    assert_eq!(exact["passes"], exact["iterations"].as_f64().unwrap());
    let train = exact["phases"]
        .as_array()
        .unwrap()
        .iter()
        .find(|p| p["name"] == "train");
    let bytes = &train.unwrap()["bytes"];
    let bytes =
        bytes["user_to_provider"].as_f64().unwrap() + bytes["provider_to_user"].as_f64().unwrap();
    let each = exact["rows"].as_f64().unwrap() * exact["iterations"].as_f64().unwrap();
    let told = exact["bytes_per_row_iteration"].as_f64().unwrap();
    assert!((told * each / bytes - 1.0).abs() < 1e-9, "{told}");

    let private = printed(
        here,
        "demo --dataset crx --private 1 --seed 1 --out out --json",
    );
    assert_eq!(private["privacy"]["epsilon"], 1.0);
    assert_eq!(private["privacy"]["unit"], "row");
    assert!(private["privacy"]["accuracy_in_clear"].is_number());
    assert_eq!(private["model_path"], "out/model.json");

    // Columns published with noise.
    let published = printed(
        here,
        "demo --dataset car --coding paper --iota 2 --epsilon 4 --seed 1 --json",
    );
    assert_eq!(published["epsilon_total"], 4.0);
}

#[test]
fn results_of_simulate_are_as_the_schema_says() {
    let folder = with_rows("bcwd");
    let here = folder.path();
    let line = "simulate --data bcwd.csv --seed 2 --write-schema schema.toml --penalty auto --json";
    let looked = printed(here, line);
    assert!(!looked["assumptions"].as_array().unwrap().is_empty());
    assert!(looked["chosen_penalty"].is_object());

    // Bounds that were read from the rows guarantee nothing, whatever was asked for.
    let unfounded = printed(here, "simulate --data bcwd.csv --seed 2 --private 1 --json");
    assert_eq!(unfounded["privacy"], Value::Null);
    assert!(unfounded.get("guarantee").is_none());

    confirm(here, "schema.toml", "confirmed.toml");
    let line = "simulate --data bcwd.csv --schema confirmed.toml --seed 2 --private 1 --json";
    let private = printed(here, line);
    assert_eq!(private["privacy"]["epsilon"], 1.0);
    assert!(private["guarantee"].as_str().unwrap().contains("ε = 1"));

    // Several classes.
    let folder = with_rows("car");
    let several = printed(folder.path(), "simulate --data car.csv --seed 2 --json");
    assert_eq!(several["by_class"].as_array().unwrap().len(), 4);
}

#[test]
fn what_is_not_in_the_schema_is_found() {
    let schema = json!({
        "type": "object",
        "properties": { "a": { "type": "integer", "minimum": 0 }, "b": { "type": ["array", "null"],
            "items": { "type": "number" }, "minItems": 2, "maxItems": 2 },
            "c": { "type": "string", "enum": ["x"] } },
        "required": ["a"],
        "additionalProperties": false
    });
    let faults = |value: Value| {
        let mut faults = Vec::new();
        compare(&value, &schema, "it", &mut faults);
        faults.len()
    };
    assert_eq!(faults(json!({ "a": 1, "b": [1, 2.5], "c": "x" })), 0);
    assert_eq!(faults(json!({ "a": 1, "b": null })), 0);
    assert_eq!(faults(json!({})), 1);
    assert_eq!(faults(json!({ "a": 1.5 })), 1);
    assert_eq!(faults(json!({ "a": -1, "b": [1], "c": "y", "d": 0 })), 4);
    assert_eq!(faults(json!([])), 1);
}
