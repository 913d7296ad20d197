//! Trees of keys: all leaves from one seed, or all leaves but one from one sum a level.
//!
//! The construction of Goldreich, Goldwasser, Micali ("How to Construct Random Functions", J. ACM
//! 1986), punctured as in Boyle et al., "Efficient Two-Round OT Extension and Silent
//! Non-Interactive Secure Computation" (CCS 2019). A node s has the children E(s) ⊕ s and
//! E(s ⊕ 1) ⊕ s ⊕ 1, where E is AES-128 under the tree's [`TreeLabel`], which is public and used for
//! one tree only. In the ideal-cipher model the children look random to whoever lacks s; because
//! the label is fresh, guesses at one tree say nothing about another.
//!
//! Who grew the tree knows everything. Who opens it knows, for each level, the sum of all nodes on
//! one side (left or right), and learns all leaves but the one whose path takes the other side
//! everywhere. Neither here nor in what it does afterwards does the opener check anything: if a sum
//! is wrong, some leaves are wrong.

use crate::cipher;
use std::fmt;
use subtle::{Choice, ConditionallySelectable};
use zeroize::Zeroizing;

/// The highest tree has 2^8 leaves.
pub const MAX_TREE_HEIGHT: usize = 8;

/// The public key of a tree's generator. A label is used for one tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TreeLabel(pub(super) [u8; 16]);

impl TreeLabel {
    /// A label of one's own. Both sides must have the same, and use it for one tree.
    pub fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// What is encrypted for block `block` of the streams under the leaves: no two trees of a session have
    /// one in common, because their labels differ in the lower half, and labels of other sessions
    /// have a random offset.
    pub(crate) fn counter(&self, block: u64) -> u128 {
        u128::from_le_bytes(self.0) ^ u128::from(block) << 64
    }

    /// Fills `children` with the two children of every node.
    fn double(&self, nodes: &[u128], children: &mut [u128]) {
        let inputs = nodes.iter().flat_map(|node| [*node, *node ^ 1]);
        let inputs = Zeroizing::new(inputs.collect::<Vec<u128>>());
        let label = u128::from_le_bytes(self.0);
        cipher::hash(&[label], inputs.len(), &inputs, children);
    }
}

/// A whole tree, as its maker has it.
pub struct Tree {
    label: TreeLabel,
    leaves: Zeroizing<Vec<u128>>,
    sums: Zeroizing<Vec<[u128; 2]>>,
}

impl Tree {
    /// Grows a tree with 2^`height` leaves (`height` is at most [`MAX_TREE_HEIGHT`], greater ones
    /// are cut to it).
    pub fn grow(label: &TreeLabel, seed: u128, height: usize) -> Self {
        let height = height.min(MAX_TREE_HEIGHT);
        let mut nodes = Zeroizing::new(vec![seed]);
        let mut sums = Zeroizing::new(Vec::with_capacity(height));
        for _ in 0..height {
            let mut children = Zeroizing::new(vec![0; 2 * nodes.len()]);
            label.double(&nodes, &mut children);
            let mut sum = [0; 2];
            for pair in children.chunks_exact(2) {
                sum[0] ^= pair[0];
                sum[1] ^= pair[1];
            }
            sums.push(sum);
            nodes = children;
        }
        Self {
            label: *label,
            leaves: nodes,
            sums,
        }
    }

    /// The label that it was grown with.
    pub fn label(&self) -> &TreeLabel {
        &self.label
    }

    /// All leaves in order.
    pub fn leaves(&self) -> &[u128] {
        &self.leaves
    }

    /// For each level, the root's children first, the sum of all left and that of all right nodes.
    pub fn sums(&self) -> &[[u128; 2]] {
        &self.sums
    }

    /// For each level what the opener gets whose path there takes the left and the right side: the
    /// sum of the *other* side.
    pub fn offers(&self) -> impl ExactSizeIterator<Item = [u128; 2]> + '_ {
        self.sums.iter().map(|[left, right]| [*right, *left])
    }
}

/// All leaves but one, as the opener has them.
pub struct Punctured {
    label: TreeLabel,
    leaves: Zeroizing<Vec<u128>>,
}

impl Punctured {
    /// Opens a tree at `index`: `sums` holds for each level, the root's children first, the sum of
    /// the side that the path to `index` does not take. Neither branches nor addresses depend on
    /// `index`.
    pub fn open(label: &TreeLabel, index: u8, sums: &[u128]) -> Self {
        let mut leaves = Self::open_relative(label, index, sums);
        move_by(&mut leaves, index);
        let label = *label;
        Self { label, leaves }
    }

    /// The label that it was opened with.
    pub fn label(&self) -> &TreeLabel {
        &self.label
    }

    /// The leaves in order. In place of the missing one there is zero.
    pub fn leaves(&self) -> &[u128] {
        &self.leaves
    }

    /// The leaf x in place x ⊕ `index`, so that the missing one is in place 0.
    ///
    /// The same holds within every level: relative to the path, the missing node is always the
    /// first, and the one that the level's sum yields is always the second.
    pub(super) fn open_relative(
        label: &TreeLabel,
        index: u8,
        sums: &[u128],
    ) -> Zeroizing<Vec<u128>> {
        let mut nodes = Zeroizing::new(vec![0]);
        for (level, sum) in sums.iter().enumerate() {
            let mut children = Zeroizing::new(vec![0; 2 * nodes.len()]);
            label.double(&nodes, &mut children);
            let side = Choice::from(index >> (sums.len() - 1 - level) & 1);
            for pair in children.chunks_exact_mut(2) {
                let (left, right) = pair.split_at_mut(1);
                u128::conditional_swap(&mut left[0], &mut right[0], side);
            }
            children[0] = 0;
            children[1] = 0;
            let known = children
                .chunks_exact(2)
                .fold(0, |known, pair| known ^ pair[1]);
            children[1] = sum ^ known;
            nodes = children;
        }
        nodes
    }
}

/// Moves what is in place x to place x ⊕ `by`, for a power of two of places.
pub(super) fn move_by<T: ConditionallySelectable>(items: &mut [T], by: u8) {
    let mut half = 1;
    while half < items.len() {
        let swap = Choice::from(by >> half.trailing_zeros() & 1);
        for pair in items.chunks_exact_mut(2 * half) {
            let (low, high) = pair.split_at_mut(half);
            for (low, high) in low.iter_mut().zip(high) {
                T::conditional_swap(low, high, swap);
            }
        }
        half *= 2;
    }
}

impl fmt::Debug for Tree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tree({} secret leaves)", self.leaves.len())
    }
}

impl fmt::Debug for Punctured {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Punctured({} secret leaves)", self.leaves.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LABEL: TreeLabel = TreeLabel([7; 16]);

    fn chosen(tree: &Tree, index: usize) -> Vec<u128> {
        let height = tree.sums().len();
        let side = |level: usize| index >> (height - 1 - level) & 1;
        tree.offers()
            .enumerate()
            .map(|(level, offer)| offer[side(level)])
            .collect()
    }

    #[test]
    fn every_index_opens_all_leaves_but_its_own() {
        for height in 0..=MAX_TREE_HEIGHT {
            let tree = Tree::grow(&LABEL, 0x1234_5678, height);
            assert_eq!(
                (tree.leaves().len(), tree.sums().len()),
                (1 << height, height)
            );
            for index in 0..1 << height {
                let opened = Punctured::open(&LABEL, index as u8, &chosen(&tree, index));
                for (x, (got, leaf)) in opened.leaves().iter().zip(tree.leaves()).enumerate() {
                    assert_eq!(*got, if x == index { 0 } else { *leaf });
                }
                let relative = Punctured::open_relative(&LABEL, index as u8, &chosen(&tree, index));
                assert!((1..1 << height).all(|y| relative[y] == tree.leaves()[y ^ index]));
            }
        }
    }

    #[test]
    fn leaves_differ_within_a_tree_and_between_seeds_and_labels() {
        let other = TreeLabel([8; 16]);
        let trees = [(LABEL, 1), (LABEL, 2), (other, 1)].map(|(l, s)| Tree::grow(&l, s, 8));
        let leaves = trees.iter().flat_map(Tree::leaves);
        let distinct: std::collections::BTreeSet<_> = leaves.collect();
        assert_eq!(distinct.len(), 3 * 256);
    }

    #[test]
    fn a_wrong_sum_spoils_only_what_hangs_below_it() {
        let tree = Tree::grow(&LABEL, 5, 5);
        let mut sums = chosen(&tree, 21);
        sums[2] ^= 1;
        let opened = Punctured::open(&LABEL, 21, &sums);
        let right = (0..32).filter(|x| opened.leaves()[*x] == tree.leaves()[*x]);
        // 21 is 10101: the third level's sibling covers 10000 to 10011; below it the other sums
        // are off as well.
        assert_eq!(
            right.collect::<Vec<_>>(),
            [
                0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30,
                31
            ]
        );
    }

    #[test]
    fn debug_shows_no_leaf() {
        let tree = Tree::grow(&LABEL, 5, 1);
        let opened = Punctured::open(&LABEL, 0, &chosen(&tree, 0));
        assert_eq!(
            format!("{tree:?} {opened:?}"),
            "Tree(2 secret leaves) Punctured(2 secret leaves)"
        );
    }
}
