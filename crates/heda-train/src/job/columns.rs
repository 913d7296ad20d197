//! Which features of the schema take part in a job, and where their columns are.

use crate::lookup::Columns;
use crate::proposal::Split;
use heda_learn::data::Feature;

/// The features that take part, their columns one after the other, and which of them are hidden.
pub(super) fn columns_of(features: &[Feature], split: &Split) -> (Vec<Feature>, Columns) {
    let (taking_part, published) = taking_part(split);
    let features = reindexed(features, &taking_part);
    let columns = Columns::new(&features, &published);
    (features, columns)
}

/// Features that take part, in schema order, and which of them are published.
pub(super) fn taking_part(split: &Split) -> (Vec<usize>, Vec<bool>) {
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
