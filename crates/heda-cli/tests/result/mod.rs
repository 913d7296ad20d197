//! Compares a result with `docs/schemas/result.json`: as much of JSON schema as that file uses.

use serde_json::Value;

/// The result of `demo`, `simulate` or `train`, which must be as the schema says.
pub(crate) fn checked(stdout: &[u8]) -> Value {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../docs/schemas/result.json"
    );
    let schema: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let result: Value = serde_json::from_slice(stdout).unwrap();
    let mut faults = Vec::new();
    compare(&result, &schema, "result", &mut faults);
    assert!(faults.is_empty(), "{faults:#?}");
    result
}

/// Keywords that [`compare`] knows; a schema with others would not be checked as it is written.
const KNOWN: [&str; 12] = [
    "$schema",
    "additionalProperties",
    "description",
    "enum",
    "items",
    "maxItems",
    "minItems",
    "minimum",
    "properties",
    "required",
    "title",
    "type",
];

pub(crate) fn compare(value: &Value, schema: &Value, place: &str, faults: &mut Vec<String>) {
    for keyword in schema.as_object().unwrap().keys() {
        assert!(KNOWN.contains(&keyword.as_str()), "{place}: {keyword}");
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
    if let (Some(least), Some(number)) = (schema["minimum"].as_f64(), value.as_f64())
        && number < least
    {
        faults.push(format!("{place}: {number} is below {least}"));
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
