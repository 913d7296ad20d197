//! Which features are worth encrypting, and what that would cost.

use crate::error::Error;
use heda_job::engine::gradient_bytes;
use heda_learn::data::{Dataset, Feature};
use heda_learn::resident::Resolution;
use heda_learn::score::{Scores, ScoringMethod};
use serde::Serialize;

/// Features from best to worst, and what it costs to encrypt the best of them.
#[derive(Debug, Serialize)]
pub struct ScoreReport {
    /// What was scored.
    pub dataset: String,
    /// How many rows.
    pub rows: usize,
    /// How.
    pub method: ScoringMethod,
    /// What fixed the random forest.
    pub seed: u64,
    /// Best first.
    pub features: Vec<FeatureLine>,
    /// What it costs to encrypt the first 1, 2, … features.
    pub prefixes: Vec<PrefixLine>,
}

/// One feature.
#[derive(Debug, Serialize)]
pub struct FeatureLine {
    /// Its name.
    pub name: String,
    /// Its score.
    pub score: f64,
    /// Its share of all scores.
    pub share: f64,
    /// Its encoded columns.
    pub columns: usize,
}

/// The best features together.
#[derive(Debug, Serialize)]
pub struct PrefixLine {
    /// How many.
    pub iota: usize,
    /// Their encoded columns.
    pub columns: usize,
    /// What one gradient sends.
    pub gradient_bytes: usize,
}

impl ScoreReport {
    /// Scores the features of these rows; `seed` fixes the random forest.
    ///
    /// # Errors
    /// If the rows cannot be scored so.
    pub fn new(
        dataset: String,
        data: &Dataset,
        method: ScoringMethod,
        seed: u64,
    ) -> Result<Self, Error> {
        let scores = Scores::compute(data, method, seed).map_err(Error::input)?;
        let ranking = scores.ranking();
        let total: f64 = scores.values().iter().sum();
        let line = |&feature: &usize| FeatureLine {
            name: data.features()[feature].name.clone(),
            score: scores.values()[feature],
            share: if total > 0.0 {
                scores.values()[feature] / total
            } else {
                0.0
            },
            columns: data.features()[feature].columns.len(),
        };
        let columns = data.width();
        let resolution = Resolution::for_columns(columns);
        let prefix = |iota: usize| {
            let chosen = ranking.order()[..iota].iter();
            let chosen = packed(chosen.map(|&feature| &data.features()[feature]));
            Ok(PrefixLine {
                iota,
                columns: chosen.last().map_or(0, |feature| feature.columns.end),
                gradient_bytes: gradient_bytes(&chosen, data.rows(), resolution)
                    .map_err(Error::input)?,
            })
        };
        Ok(Self {
            dataset,
            rows: data.rows(),
            method: scores.method(),
            seed,
            features: ranking.order().iter().map(line).collect(),
            prefixes: (1..=data.features().len())
                .map(prefix)
                .collect::<Result<_, Error>>()?,
        })
    }
}

/// Features with their columns one after the other.
fn packed<'a>(features: impl Iterator<Item = &'a Feature>) -> Vec<Feature> {
    let mut end = 0;
    features
        .map(|feature| {
            let begin = end;
            end += feature.columns.len();
            Feature {
                columns: begin..end,
                ..feature.clone()
            }
        })
        .collect()
}
