//! Trees by transfers: the sender grows trees, the chooser opens each at an index of its own.
//!
//! Each level of a tree takes one transfer of one of two, in which the chooser's bit is that of its
//! path, and what it gets is the sum of the side that its path does not take. The chooser checks
//! nothing, on purpose: a sender that could make a check fail for some indices would learn from it
//! which one was chosen. A spoilt tree gives wrong leaves, and nobody reacts.
//!
//! Message: sender → chooser: for each tree and level two sums, masked by the pads of a transfer.

use super::bits::{BitCorrections, BitKeys, ChosenBits};
use super::ggm::{MAX_TREE_HEIGHT, Punctured, Tree, TreeLabel};
use super::{TransferError, expect_count, expect_length, read_words};
use zeroize::Zeroizing;

/// The choices that open trees of these heights at these indices: a tree's bits together, highest
/// first.
pub fn path_bits(indices: &[u8], heights: &[usize]) -> Zeroizing<Vec<bool>> {
    let path =
        |(&index, &height): (&u8, &usize)| (0..height).rev().map(move |bit| index >> bit & 1 == 1);
    Zeroizing::new(indices.iter().zip(heights).flat_map(path).collect())
}

/// The masked sums of many trees.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeOffers(Vec<[u128; 2]>);

impl TreeOffers {
    /// Bytes of the message for trees that have so many levels together.
    pub fn bytes(levels: usize) -> usize {
        levels * 32
    }

    /// The message as it is sent.
    pub fn to_bytes(&self) -> Vec<u8> {
        let words = self.0.iter().flatten();
        words.flat_map(|word| word.to_le_bytes()).collect()
    }

    /// The message as it arrived.
    pub fn from_bytes(levels: usize, bytes: &[u8]) -> Result<Self, TransferError> {
        expect_length("the trees' sums", bytes, Self::bytes(levels))?;
        let words: Vec<u128> = read_words(bytes).collect();
        Ok(Self(
            words
                .chunks_exact(2)
                .map(|pair| [pair[0], pair[1]])
                .collect(),
        ))
    }
}

impl BitKeys {
    /// Step 14: offers trees, one transfer for every level of every tree.
    pub fn offer_trees(
        self,
        corrections: &BitCorrections,
        trees: &[Tree],
    ) -> Result<TreeOffers, TransferError> {
        let offers = trees.iter().flat_map(Tree::offers);
        let mut offers: Vec<[u128; 2]> = offers.collect();
        expect_count("the list of trees", offers.len(), self.count())?;
        self.pads(corrections, 16, |number, zero, one| {
            for (offer, pad) in offers[number].iter_mut().zip([zero, one]) {
                *offer ^= read_words(pad).next().unwrap_or_default();
            }
        })?;
        Ok(TreeOffers(offers))
    }
}

impl ChosenBits {
    /// Step 15: opens trees of these heights; the choices were made by [`path_bits`].
    pub fn open_trees(
        self,
        labels: &[TreeLabel],
        heights: &[usize],
        offers: &TreeOffers,
    ) -> Result<Vec<Punctured>, TransferError> {
        let wrong = |height: &&usize| !(1..=MAX_TREE_HEIGHT).contains(*height);
        if let Some(&height) = heights.iter().find(wrong) {
            return Err(TransferError::TreeHeight(height));
        }
        expect_count("the list of labels", labels.len(), heights.len())?;
        expect_count("the trees' levels", heights.iter().sum(), self.count())?;
        expect_count("the trees' sums", offers.0.len(), self.count())?;
        let wanted = self.wanted();
        let mut sums = Zeroizing::new(vec![0; self.count()]);
        self.pads(16, |number, pad| {
            let [zero, one] = offers.0[number];
            let mask = u128::from(wanted[number]).wrapping_neg();
            let offer = zero ^ (zero ^ one) & mask;
            sums[number] = offer ^ read_words(pad).next().unwrap_or_default();
        })?;
        let mut begin = 0;
        let open = |(label, &height): (&TreeLabel, &usize)| {
            let levels = begin..begin + height;
            begin += height;
            let path = wanted[levels.clone()].iter();
            let index = path.fold(0, |index, bit| index << 1 | bit);
            Punctured::open(label, index, &sums[levels])
        };
        Ok(labels.iter().zip(heights).map(open).collect())
    }
}
