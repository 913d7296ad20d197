//! One short value for a whole schema, so that parties can compare theirs.

use super::{Schema, raw::RawSchema};
use sha2::{Digest, Sha256};
use std::fmt;

/// Separates this hash from every other use of the same function.
const DOMAIN: &[u8] = b"heda schema fingerprint 1\n";

/// SHA-256 over the schema's canonical form: compact JSON with all defaults spelled out, fields in
/// a fixed order, numbers in their shortest form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SchemaFingerprint([u8; 32]);

impl SchemaFingerprint {
    pub(super) fn of(schema: &Schema) -> Self {
        let canonical = serde_json::to_vec(&RawSchema::from(schema.clone()))
            .expect("a checked schema has only strings, finite numbers and lists of them");
        let hash = Sha256::new_with_prefix(DOMAIN).chain_update(canonical);
        Self(hash.finalize().into())
    }

    /// The 32 bytes.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Display for SchemaFingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}
