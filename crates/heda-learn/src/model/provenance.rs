//! Where a model comes from, and what its training showed to whom.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// How a feature took part in the training.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Protection {
    /// Read in the clear.
    Clear,
    /// Encrypted.
    Encrypted,
    /// Published with noise.
    Published,
}

/// One feature and its protection.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FeatureUse {
    /// The attribute.
    pub feature: String,
    /// How it took part.
    pub protection: Protection,
    /// The ε of its publication.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub epsilon: Option<f64>,
}

/// Where a model comes from. Free text, for people: nothing is decided by it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Provenance {
    /// The data set.
    pub dataset: String,
    /// `clear`, or the engine that trained under encryption.
    pub engine: String,
    /// Rows trained on.
    pub rows: u64,
    /// How many parties held them.
    pub providers: u32,
    /// Gradients used.
    pub iterations: u32,
    /// Every feature and its protection.
    #[serde(default)]
    pub features: Vec<FeatureUse>,
    /// Programs and their versions.
    #[serde(default)]
    pub versions: BTreeMap<String, String>,
    /// Whatever else is worth knowing.
    #[serde(default)]
    pub notes: BTreeMap<String, String>,
}
