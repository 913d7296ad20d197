//! The data user's role with one provider, step by step and without I/O.
//!
//! Nothing that it sends depends on what it has decoded but through uniform words, and it never
//! stops because of what it decoded: wrong messages of the right length give wrong sums.

use super::scores::OpenedColumns;
use super::shape::{Shape, TreeNumbers};
use super::{StepError, exactly, parts, payload, symbols};
use heda_crypto::bits::signed;
use heda_crypto::transfer::{
    Chooser, ChosenBits, ChosenIndices, RandomBits, RandomIndices, TreeLabel, TreeOffers, path_bits,
};
use heda_learn::private::Passes;
use heda_learn::resident::Weights;
use rand_core::CryptoRng;
use std::collections::VecDeque;
use zeroize::Zeroizing;

/// What the data user keeps from gradient to gradient.
pub(super) struct UserSession {
    chooser: Chooser,
}

/// Asked for transfers, before β is known.
pub(super) struct UserPreprocessed {
    trees: ChosenBits,
    labels: Vec<TreeLabel>,
    missing: Zeroizing<Vec<u8>>,
    payload: RandomBits,
    indices: RandomIndices,
}

/// With all trees opened and the columns under them: ready for any β.
pub(super) struct UserReady {
    pub(super) columns: OpenedColumns,
    pub(super) payload: RandomBits,
    pub(super) indices: RandomIndices,
}

/// After R3.
pub(super) struct UserAsked {
    pub(super) places: Zeroizing<Vec<u16>>,
    pub(super) indices: ChosenIndices,
    pub(super) payload: RandomBits,
}

/// After R5.
pub(super) struct UserChosen {
    pub(super) symbols: Zeroizing<Vec<u16>>,
    pub(super) payload: ChosenBits,
}

impl UserSession {
    /// After the setup S of the transfers.
    pub(super) fn new(chooser: Chooser) -> Self {
        Self { chooser }
    }

    /// Asks for what one gradient needs; random places open the trees.
    pub(super) fn preprocess<R: CryptoRng + ?Sized>(
        &mut self,
        shape: &Shape,
        rows: usize,
        numbers: TreeNumbers,
        rng: &mut R,
    ) -> Result<(Vec<u8>, UserPreprocessed), StepError> {
        let (tree_bits, payload_bits) = shape.bit_transfers(rows);
        let (bit_request, bits) = self.chooser.extend_bits(tree_bits + payload_bits)?;
        let (index_request, indices) = self.chooser.extend_indices(shape.index_transfers(rows)?)?;
        let (trees, payload) = bits.split(tree_bits)?;
        let heights = shape.heights();
        let mut missing = Zeroizing::new(vec![0u8; heights.len()]);
        rng.fill_bytes(&mut missing);
        for (missing, height) in missing.iter_mut().zip(&heights) {
            *missing &= (1 << height) - 1;
        }
        let (choices, trees) = trees.correct(&path_bits(&missing, &heights))?;
        let labels = (numbers.first()..)
            .take(heights.len())
            .map(|number| self.chooser.tree_label(number))
            .collect();
        let mut message = bit_request.to_bytes();
        message.extend(index_request.to_bytes());
        message.extend(choices.to_bytes());
        Ok((
            message,
            UserPreprocessed {
                trees,
                labels,
                missing,
                payload,
                indices,
            },
        ))
    }
}

impl UserPreprocessed {
    /// R1 and R2 as they arrived.
    pub(super) fn open(
        self,
        shape: &Shape,
        rows: usize,
        message: &[u8],
    ) -> Result<UserReady, StepError> {
        let [offers, corrections] = parts("the columns", message, shape.column_bytes(rows))?;
        let offers = TreeOffers::from_bytes(shape.tree_levels(), offers)?;
        let heights = shape.heights();
        let trees = self.trees.open_trees(&self.labels, &heights, &offers)?;
        let columns = OpenedColumns {
            trees,
            missing: self.missing,
            corrections: corrections.to_vec(),
        };
        Ok(UserReady {
            columns,
            payload: self.payload,
            indices: self.indices,
        })
    }
}

impl UserReady {
    /// R3: the question at these weights. `known` is what U knows of each row's score.
    pub(super) fn ask(
        self,
        shape: &Shape,
        weights: &Weights,
        known: Zeroizing<Vec<u32>>,
    ) -> Result<(Vec<u8>, UserAsked), StepError> {
        let (mut message, shares) = self.columns.shares(shape, weights, known);
        let top = |share: &u32| shape.resolution.top_bits(*share) as u16;
        let places: Zeroizing<Vec<u16>> = Zeroizing::new(shares.iter().map(top).collect());
        let (corrections, indices) = self.indices.correct_wide(shape.index()?, &places)?;
        message.extend(corrections.to_bytes());
        Ok((
            message,
            UserAsked {
                places,
                indices,
                payload: self.payload,
            },
        ))
    }
}

impl UserAsked {
    /// R5: the choices that follow from the symbols.
    pub(super) fn choose(
        self,
        shape: &Shape,
        message: &[u8],
    ) -> Result<(Vec<u8>, UserChosen), StepError> {
        let expected = shape.symbol_bytes(self.places.len());
        let message = exactly("the symbols", message, expected)?;
        let levels = shape.resolution.code_bits();
        let pads = self
            .indices
            .wide_pads(shape.index()?, &self.places, levels)?;
        let symbols = symbols::read(
            message,
            shape.resolution.index_bits(),
            levels,
            &self.places,
            &pads,
        );
        let bits: Zeroizing<Vec<bool>> = Zeroizing::new(
            symbols
                .iter()
                .flat_map(|symbol| (0..levels).map(move |level| symbol >> level & 1 == 1))
                .collect(),
        );
        let (corrections, payload) = self.payload.correct(&bits)?;
        Ok((corrections.to_bytes(), UserChosen { symbols, payload }))
    }
}

impl UserChosen {
    /// R7 for one block: adds what U can open, modulo 2^64, bias first.
    pub(super) fn open(
        self,
        shape: &Shape,
        message: &[u8],
        sums: &mut UserSum,
    ) -> Result<(), StepError> {
        let expected = shape.payload_bytes(self.symbols.len());
        let words = exactly("the payload", message, expected)?;
        sums.add(&payload::read(shape, words, &self.symbols, self.payload)?);
        Ok(())
    }
}

/// What the data user has opened of one provider's sum.
pub(super) struct UserSum {
    sums: Zeroizing<Vec<u64>>,
}

impl UserSum {
    /// Before the first block.
    pub(super) fn new(shape: &Shape) -> Self {
        Self {
            sums: Zeroizing::new(vec![0; shape.largest.len()]),
        }
    }

    pub(super) fn add(&mut self, words: &[u64]) {
        for (sum, word) in self.sums.iter_mut().zip(words) {
            *sum = sum.wrapping_add(*word);
        }
    }

    /// R7 with one provider: Q completes its part of the sum.
    pub(super) fn close(mut self, shape: &Shape, message: &[u8]) -> Result<Vec<u64>, StepError> {
        let provider_share = exactly("the sum", message, shape.sum_bytes())?;
        self.add(&payload::read_sums(shape, provider_share));
        Ok(self.sums.to_vec())
    }
}

/// What was opened of one provider's earlier sums in a private job, as far as later steps open them again.
pub(super) struct OpenedChain {
    passes: Passes,
    before: VecDeque<(u32, UserSum)>,
}

impl OpenedChain {
    /// Before the first step of a session.
    pub(super) fn new(passes: Passes) -> Self {
        let before = VecDeque::new();
        Self { passes, before }
    }

    /// What belongs to the Q of a step, which has earlier sums in it by their bands.
    pub(super) fn banded(&mut self, iteration: u32, own: UserSum) -> UserSum {
        let first = self.passes.first_of_chain(iteration);
        self.before.retain(|(earlier, _)| *earlier >= first);
        let mut opened = UserSum {
            sums: Zeroizing::new(vec![0; own.sums.len()]),
        };
        self.before.push_back((iteration, own));
        for (earlier, sum) in &self.before {
            let band = u64::from(self.passes.band(iteration - earlier));
            let words: Vec<u64> = sum
                .sums
                .iter()
                .map(|word| word.wrapping_mul(band))
                .collect();
            opened.add(&words);
        }
        opened
    }
}

/// R7: what the sums of all providers stand for, as signed whole numbers, bias first.
pub(super) fn whole_sums(shape: &Shape, parts: &[Vec<u64>]) -> Vec<i64> {
    let widths = shape.sum_bits().into_iter();
    widths
        .enumerate()
        .map(|(column, width)| {
            let parts = parts.iter().map(|part| part[column]);
            signed(parts.fold(0, u64::wrapping_add), width)
        })
        .collect()
}
