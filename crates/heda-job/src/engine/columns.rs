//! Which features of the schema take part in a job, where their columns are, and which are hidden.

use crate::proposal::Split;
use heda_learn::data::Feature;

/// Which encoded columns are encrypted and which the data user knows, in the order of the model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Columns {
    /// All columns that take part.
    pub(crate) width: usize,
    /// H: encrypted.
    pub(crate) hidden: Vec<usize>,
    /// L: published.
    pub(crate) open: Vec<usize>,
}

impl Columns {
    /// Columns of the features that take part; `published` says which of them are published.
    pub(crate) fn new(features: &[Feature], published: &[bool]) -> Self {
        let of = |wanted: bool| -> Vec<usize> {
            let chosen = features
                .iter()
                .zip(published)
                .filter(|(_, open)| **open == wanted);
            chosen
                .flat_map(|(feature, _)| feature.columns.clone())
                .collect()
        };
        let width = features.last().map_or(0, |feature| feature.columns.end);
        Self {
            width,
            hidden: of(false),
            open: of(true),
        }
    }
}

/// The features that take part, their columns one after the other, and which of them are hidden.
pub(crate) fn columns_of(features: &[Feature], split: &Split) -> (Vec<Feature>, Columns) {
    let (taking_part, published) = taking_part(split);
    let features = reindexed(features, &taking_part);
    let columns = Columns::new(&features, &published);
    (features, columns)
}

/// Features that take part, in schema order, and which of them are published.
pub(crate) fn taking_part(split: &Split) -> (Vec<usize>, Vec<bool>) {
    let mut chosen: Vec<usize> = [&split.encrypted[..], &split.published[..]].concat();
    chosen.sort_unstable();
    let published = chosen
        .iter()
        .map(|feature| split.published.contains(feature))
        .collect();
    (chosen, published)
}

/// Features that take part, with their columns one after the other.
fn reindexed(features: &[Feature], chosen: &[usize]) -> Vec<Feature> {
    let mut start = 0;
    let reindex = |&index: &usize| {
        let source = &features[index];
        let columns = start..start + source.columns.len();
        start = columns.end;
        Feature {
            columns,
            ..source.clone()
        }
    };
    chosen.iter().map(reindex).collect()
}
