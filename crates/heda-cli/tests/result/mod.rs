//! Compares a result with `docs/schemas/result.json`.

#[path = "../schemas/mod.rs"]
pub(crate) mod schemas;

use serde_json::Value;

/// The result of `demo`, `simulate` or `train`, which must be as the schema says.
pub(crate) fn checked(stdout: &[u8]) -> Value {
    let result: Value = serde_json::from_slice(stdout).unwrap();
    let faults = schemas::faults(&result, "result");
    assert!(faults.is_empty(), "{faults:#?}");
    result
}
