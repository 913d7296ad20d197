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

/// Who is protected by a guarantee.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Unit {
    /// Each row.
    Row,
    /// Each person, at the providers that name the persons of their rows.
    Person,
}

impl std::fmt::Display for Unit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Row => "row",
            Self::Person => "person",
        })
    }
}

/// What a part of a guarantee was spent on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SpentOn {
    /// In words.
    pub what: String,
    /// How many answers.
    pub answers: u32,
    /// Their part of what the plan may cost, as Σμ². Answers about training rows and about held-out rows
    /// are about different rows, and each may cost the whole.
    pub share: f64,
}

/// The guarantee of a private model: everything that its job revealed is (ε, δ)-differentially private.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Guarantee {
    /// ε that was promised.
    pub epsilon: f64,
    /// δ beside it.
    pub delta: f64,
    /// Who is protected.
    pub unit: Unit,
    /// ε that the providers have charged, at the same δ: the most of any that told; none if none did.
    pub charged: Option<f64>,
    /// What it was spent on.
    pub spent_on: Vec<SpentOn>,
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
    /// The guarantee of a private job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub privacy: Option<Guarantee>,
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
