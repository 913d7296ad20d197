//! Impurity importance in a random forest.
//!
//! Computes the mean decrease of Gini impurity (Breiman 2001): trees grow on bootstrap samples,
//! each split looks at √columns random columns, and a feature is credited with the impurity that
//! its splits take away, weighted by the rows they touch. The credit sums to 1 over a tree and
//! over the features.
//!
//! Trees stop at depth 10 and at 5 rows a leaf. Without these limits the importance of noise with
//! many different values grows with the size of the tree (Strobl et al. 2007). Columns are cut
//! into at most 255 bins first, so a split is found by counting, not by sorting.
//!
//! One-hot attributes: the sum over their columns. The seed fixes the forest, whatever the number
//! of threads.

use super::ranks::rank;
use super::{Attribute, Scorable, Scorer};
use chacha20::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};
use rayon::prelude::*;

const BINS: usize = 255;

/// Forest scores.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Forest {
    /// Fixes bootstrap samples and columns.
    pub seed: u64,
    /// Number of trees.
    pub trees: usize,
    /// Splits from the root to a leaf, at most.
    pub depth: usize,
    /// Rows in a leaf, at least.
    pub leaf: usize,
}

impl Forest {
    /// The forest of the default size.
    pub fn with_seed(seed: u64) -> Self {
        Self {
            seed,
            trees: 100,
            depth: 10,
            leaf: 5,
        }
    }
}

impl Scorer for Forest {
    fn scores(&self, rows: &Scorable) -> Vec<f64> {
        let columns = binned_columns(rows);
        let credit: Vec<Vec<f64>> = (0..self.trees)
            .into_par_iter()
            .map(|tree| DecisionTree::new(self, rows, &columns, tree as u64).grow())
            .collect();
        let mut scores = vec![0.0; rows.attributes().len()];
        for tree in &credit {
            for (column, credit) in columns.iter().zip(tree) {
                scores[column.feature] += credit;
            }
        }
        normalised(scores)
    }
}

/// Scales to a sum of 1; what is all zero stays zero.
fn normalised(mut shares: Vec<f64>) -> Vec<f64> {
    let total: f64 = shares.iter().sum();
    if total > 0.0 {
        shares.iter_mut().for_each(|share| *share /= total);
    }
    shares
}

/// One column that varies, cut into bins.
struct ForestColumn {
    feature: usize,
    bins: Vec<u8>,
    count: usize,
}

fn binned_columns(rows: &Scorable) -> Vec<ForestColumn> {
    let columns_of = |(feature, attribute): (usize, &Attribute)| match attribute {
        Attribute::Constant => vec![],
        Attribute::Values { values, .. } => vec![binned(feature, values)],
        Attribute::Levels { codes, count } => (0..*count as u32 - 1)
            .map(|level| ForestColumn {
                feature,
                bins: codes.iter().map(|code| u8::from(*code == level)).collect(),
                count: 2,
            })
            .collect(),
    };
    let attributes = rows.attributes().par_iter().enumerate();
    attributes.flat_map_iter(columns_of).collect()
}

/// Every different value a bin if they fit, groups of about equal size otherwise.
fn binned(feature: usize, values: &[f64]) -> ForestColumn {
    let ranked = rank(values);
    let mut steps = ranked.ranks.clone();
    steps.sort_unstable_by(f64::total_cmp);
    steps.dedup();
    let bin = |rank: &f64| {
        if ranked.distinct <= BINS {
            steps.partition_point(|step| step < rank) as u8
        } else {
            ((rank - 0.5) / values.len() as f64 * BINS as f64) as u8
        }
    };
    ForestColumn {
        feature,
        bins: ranked.ranks.iter().map(bin).collect(),
        count: ranked.distinct.min(BINS),
    }
}

/// One tree while it grows. Only its credit is kept, not its shape.
struct DecisionTree<'a> {
    forest: &'a Forest,
    columns: &'a [ForestColumn],
    labels: &'a [u32],
    classes: usize,
    rng: ChaCha8Rng,
    /// Bootstrap sample; a node owns a range of it.
    sample: Vec<u32>,
    /// Columns in the order in which the next node looks at them.
    shuffled: Vec<usize>,
    histogram: Vec<u32>,
    credit: Vec<f64>,
}

struct TreeNode {
    start: usize,
    end: usize,
    depth: usize,
}

/// Rows whose bin in `column` is at most `bin` go left.
struct TreeSplit {
    column: usize,
    bin: u8,
    gain: f64,
}

impl<'a> DecisionTree<'a> {
    fn new(forest: &'a Forest, rows: &'a Scorable, columns: &'a [ForestColumn], tree: u64) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(forest.seed);
        rng.set_stream(tree);
        let size = rows.rows();
        let sample = (0..size).map(|_| below(&mut rng, size) as u32).collect();
        let classes = rows.class_sizes().len();
        Self {
            forest,
            columns,
            labels: rows.labels(),
            classes,
            rng,
            sample,
            shuffled: (0..columns.len()).collect(),
            histogram: vec![0; BINS * classes],
            credit: vec![0.0; columns.len()],
        }
    }

    /// Grows to the limits; the credit of each column, summing to 1.
    fn grow(mut self) -> Vec<f64> {
        let mut open = vec![TreeNode {
            start: 0,
            end: self.sample.len(),
            depth: 0,
        }];
        while let Some(node) = open.pop() {
            if node.depth >= self.forest.depth || node.end - node.start < 2 * self.forest.leaf {
                continue;
            }
            if let Some(split) = self.best_split(&node) {
                self.credit[split.column] += split.gain;
                let middle = self.divide(&node, &split);
                let depth = node.depth + 1;
                let half = |start, end| TreeNode { start, end, depth };
                open.extend([half(node.start, middle), half(middle, node.end)]);
            }
        }
        normalised(self.credit)
    }

    /// The best split of √columns random columns; of more if those offer none.
    fn best_split(&mut self, node: &TreeNode) -> Option<TreeSplit> {
        let parent = self.class_counts(node);
        if parent.iter().filter(|&&count| count > 0).count() < 2 {
            return None;
        }
        let wanted = (self.columns.len() as f64).sqrt() as usize;
        let mut best: Option<TreeSplit> = None;
        for looked_at in 0..self.columns.len() {
            if looked_at >= wanted && best.is_some() {
                break;
            }
            let pick = looked_at + below(&mut self.rng, self.columns.len() - looked_at);
            self.shuffled.swap(looked_at, pick);
            let split = self.split_of(self.shuffled[looked_at], node, &parent);
            if split.as_ref().map(|s| s.gain) > best.as_ref().map(|s| s.gain) {
                best = split;
            }
        }
        best
    }

    fn class_counts(&self, node: &TreeNode) -> Vec<u32> {
        let mut counts = vec![0; self.classes];
        for &row in &self.sample[node.start..node.end] {
            counts[self.labels[row as usize] as usize] += 1;
        }
        counts
    }

    /// The best split of one column: Σ counts²/size over both sides, less the parent's, is the
    /// decrease of Gini impurity times rows.
    fn split_of(&mut self, column: usize, node: &TreeNode, parent: &[u32]) -> Option<TreeSplit> {
        self.count_bins(column, node);
        let size = (node.end - node.start) as u32;
        let purity_before = purity(parent, size);
        let mut left = vec![0; self.classes];
        let mut right = parent.to_vec();
        let mut left_size = 0;
        let mut best: Option<TreeSplit> = None;
        for bin in 0..self.columns[column].count - 1 {
            let counts = &self.histogram[bin * self.classes..][..self.classes];
            let moved: u32 = counts.iter().sum();
            if moved == 0 {
                continue;
            }
            for (class, &count) in counts.iter().enumerate() {
                left[class] += count;
                right[class] -= count;
            }
            left_size += moved;
            let right_size = size - left_size;
            if right_size < self.forest.leaf as u32 {
                break;
            }
            if left_size < self.forest.leaf as u32 {
                continue;
            }
            let gain = purity(&left, left_size) + purity(&right, right_size) - purity_before;
            // A gain that is rounding only would credit noise.
            let floor = best.as_ref().map_or(1e-9 * f64::from(size), |b| b.gain);
            if gain > floor {
                let bin = bin as u8;
                best = Some(TreeSplit { column, bin, gain });
            }
        }
        best
    }

    fn count_bins(&mut self, column: usize, node: &TreeNode) {
        let column = &self.columns[column];
        self.histogram[..column.count * self.classes].fill(0);
        for &row in &self.sample[node.start..node.end] {
            let row = row as usize;
            let cell = column.bins[row] as usize * self.classes + self.labels[row] as usize;
            self.histogram[cell] += 1;
        }
    }

    /// Moves the rows of a node to their sides; where the right side begins.
    fn divide(&mut self, node: &TreeNode, split: &TreeSplit) -> usize {
        let bins = &self.columns[split.column].bins;
        let rows = &mut self.sample[node.start..node.end];
        let mut left = 0;
        for at in 0..rows.len() {
            if bins[rows[at] as usize] <= split.bin {
                rows.swap(left, at);
                left += 1;
            }
        }
        node.start + left
    }
}

/// Σ counts²/size, which is size·(1 − Gini).
fn purity(counts: &[u32], size: u32) -> f64 {
    let squares: f64 = counts.iter().map(|&c| f64::from(c) * f64::from(c)).sum();
    squares / f64::from(size)
}

/// A number below `bound`; the bias of this is bound/2^64.
fn below(rng: &mut impl Rng, bound: usize) -> usize {
    ((u128::from(rng.next_u64()) * bound as u128) >> 64) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Dataset;
    use crate::score::testing::features;

    fn data() -> Dataset {
        let features = features(&["exact", "weak", "noise"]);
        let mut values = Vec::new();
        let mut labels = Vec::new();
        for row in 0..600u32 {
            let label = row % 2;
            let weak = if row % 10 < 7 { label } else { 1 - label };
            let noise = f64::from(row * 7919 % 600) / 600.0;
            values.extend([0.4 * f64::from(label) + 0.5 * noise, f64::from(weak), noise]);
            labels.push(label);
        }
        Dataset::new(features, values, labels, vec!["a".into(), "b".into()]).unwrap()
    }

    #[test]
    fn the_seed_fixes_the_forest_and_importance_sums_to_one() {
        let rows = Scorable::new(&data()).unwrap();
        let scores = Forest::with_seed(3).scores(&rows);
        assert_eq!(scores, Forest::with_seed(3).scores(&rows));
        assert_ne!(scores, Forest::with_seed(4).scores(&rows));
        assert!((scores.iter().sum::<f64>() - 1.0).abs() < 1e-12);
        assert!(scores[0] > scores[1] && scores[1] > scores[2], "{scores:?}");
    }

    #[test]
    fn one_column_gets_all_the_credit() {
        let rows = Scorable::new(&data().select_features(&[1])).unwrap();
        assert_eq!(Forest::with_seed(1).scores(&rows), [1.0]);
    }

    #[test]
    fn too_few_rows_for_a_split_give_no_credit() {
        let rows = Scorable::new(&data().select_rows(&[0, 1, 2, 3])).unwrap();
        assert_eq!(Forest::with_seed(1).scores(&rows), [0.0; 3]);
    }

    #[test]
    fn bins_keep_the_order_of_values() {
        let many: Vec<f64> = (0..1000)
            .map(|i| f64::from(i * 37 % 1000) / 1000.0)
            .collect();
        let few: Vec<f64> = many.iter().map(|v| (v * 7.0).floor() / 7.0).collect();
        for values in [many, few] {
            let column = binned(0, &values);
            assert!(
                column
                    .bins
                    .iter()
                    .all(|&bin| usize::from(bin) < column.count)
            );
            for (a, b) in values.iter().zip(&column.bins) {
                for (c, d) in values.iter().zip(&column.bins).take(50) {
                    assert!(a > c || b <= d);
                }
            }
        }
    }
}
