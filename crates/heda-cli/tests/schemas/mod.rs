//! Compares a value with a JSON schema of `docs/schemas`: as much of JSON schema as these files use.

use serde_json::Value;

/// What of a value is not as the schema of this name says.
pub(crate) fn faults(value: &Value, schema: &str) -> Vec<String> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/schemas");
    let text = std::fs::read_to_string(format!("{folder}/{schema}.json")).unwrap();
    let mut faults = Vec::new();
    let schema_object = serde_json::from_str(&text).unwrap();
    compare(value, &schema_object, schema, &mut faults);
    faults
}

/// Keywords that [`compare`] knows; a schema with others would not be checked as it is written.
const KNOWN: [&str; 18] = [
    "$schema",
    "additionalProperties",
    "anyOf",
    "default",
    "description",
    "enum",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "items",
    "maxItems",
    "maximum",
    "minItems",
    "minimum",
    "pattern",
    "properties",
    "required",
    "title",
    "type",
];

/// Whether a number is within a bound.
type Fits = fn(&f64, &f64) -> bool;

pub(crate) fn compare(value: &Value, schema: &Value, place: &str, faults: &mut Vec<String>) {
    for keyword in schema.as_object().unwrap().keys() {
        assert!(KNOWN.contains(&keyword.as_str()), "{place}: {keyword}");
    }
    if let Some(ways) = schema["anyOf"].as_array() {
        let fits = |way: &Value| {
            let mut faults = Vec::new();
            compare(value, way, place, &mut faults);
            faults.is_empty()
        };
        if !ways.iter().any(fits) {
            faults.push(format!("{place}: {value} is none of {ways:?}"));
        }
        return;
    }
    if !has_type(value, &schema["type"]) {
        faults.push(format!("{place}: {value} is no {}", schema["type"]));
        return;
    }
    if let Some(choice) = schema["enum"].as_array()
        && !choice.contains(value)
    {
        faults.push(format!("{place}: {value} is none of {choice:?}"));
    }
    let bounds: [(&str, Fits); 4] = [
        ("minimum", f64::ge),
        ("exclusiveMinimum", f64::gt),
        ("maximum", f64::le),
        ("exclusiveMaximum", f64::lt),
    ];
    for (bound, fits) in bounds {
        if let (Some(bound), Some(number)) = (schema[bound].as_f64(), value.as_f64())
            && !fits(&number, &bound)
        {
            faults.push(format!("{place}: {number} against {bound}"));
        }
    }
    if let (Some(pattern), Some(text)) = (schema["pattern"].as_str(), value.as_str()) {
        assert_eq!(
            pattern, "^sha256:[0-9a-fA-F]{64}$",
            "the one that is known here"
        );
        let digits = text.strip_prefix("sha256:").unwrap_or_default();
        if digits.len() != 64 || !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            faults.push(format!("{place}: {text} is no fingerprint"));
        }
    }
    if let Some(items) = value.as_array() {
        let length = items.len() as u64;
        let fits = |bound: &str, fit: fn(u64, u64) -> bool| {
            schema[bound]
                .as_u64()
                .is_none_or(|bound| fit(length, bound))
        };
        if !fits("minItems", |length, bound| length >= bound)
            || !fits("maxItems", |length, bound| length <= bound)
        {
            faults.push(format!("{place}: {length} items"));
        }
        for item in items {
            compare(item, &schema["items"], &format!("{place}[]"), faults);
        }
    }
    if let Some(members) = value.as_object() {
        let required = schema["required"].as_array().into_iter().flatten();
        let absent = required.filter(|name| !members.contains_key(name.as_str().unwrap()));
        faults.extend(absent.map(|name| format!("{place}: {name} is missing")));
        for (name, member) in members {
            let place = format!("{place}.{name}");
            match (
                schema["properties"].get(name),
                &schema["additionalProperties"],
            ) {
                (Some(schema), _) => compare(member, schema, &place, faults),
                (None, other) if other.is_object() => compare(member, other, &place, faults),
                (None, _) => faults.push(format!("{place} is not in the schema")),
            }
        }
    }
}

fn has_type(value: &Value, wanted: &Value) -> bool {
    if wanted.is_null() {
        return true;
    }
    let is = |name: &Value| match name.as_str().unwrap() {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_u64() || value.is_i64(),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        other => panic!("no type {other}"),
    };
    match wanted.as_array() {
        Some(names) => names.iter().any(is),
        None => is(wanted),
    }
}
