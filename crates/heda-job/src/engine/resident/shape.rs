//! The public numbers of a job with one provider, and what follows from them: widths of words and
//! lengths of messages. Nothing here depends on a row or on a coefficient.

use super::{StepError, bits_of};
use crate::histogram::EDGES;
use crate::rounds::Tally;
use heda_crypto::bits::{MOST_BITS, packed_bytes};
use heda_crypto::transfer::{
    BitCorrections, BitRequest, FieldBits, IndexCorrections, IndexRequest, TransferError,
    TreeOffers, WideIndex,
};
use heda_crypto::vole::MOST_DIGIT_BITS;
use heda_learn::resident::{ColumnKind, Encoding, Resolution};
use std::ops::Range;

/// Rows that are handled together. A larger batch is several blocks, so that memory and messages
/// stay small.
pub(super) const BLOCK_ROWS: usize = 1 << 15;

/// What both sides know before the first gradient.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Shape {
    /// How finely everything is cut.
    pub(super) resolution: Resolution,
    /// Every column of the model, in order, without the bias.
    pub(super) kinds: Vec<ColumnKind>,
    /// The largest payload of a row, bias first.
    pub(super) largest: Vec<u32>,
    /// Noise in a sum has fewer bits; zero without noise.
    pub(super) noise_bits: u32,
    /// What is opened is at most so many times as large as the sum over a batch.
    pub(super) bands_total: u32,
    /// Columns that the data user does not know.
    pub(super) hidden: Vec<usize>,
    /// All providers together have fewer than 2^`row_bits` rows in a batch.
    pub(super) row_bits: u32,
    /// Tables that are read for each row.
    pub(super) tables: usize,
    /// The field of the session's transfers: indices must fit.
    pub(super) field: FieldBits,
    /// Edges between the ranges of scores that held-out rows are counted by.
    pub(super) edges: &'static [f64],
    /// What is counted of them.
    pub(super) tally: Tally,
    /// What a held-out row adds to a count.
    pub(super) unit: u64,
    /// Training rows that are handled together.
    pub(super) block_rows: usize,
}

/// Bits of an indicator's digits, at most. Its words are narrow, so that more digits with fewer
/// streams each cost few bytes and save half of the work.
const INDICATOR_DIGIT_BITS: u32 = 4;

/// One digit of one hidden column: a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    /// The column of the model.
    pub(super) column: usize,
    /// Bits of a word: what lies higher would be cut off the score.
    pub(super) width: u32,
    /// How far the product is moved up in the score.
    pub(super) shift: u32,
    /// The lowest bit of the weight that belongs to the digit.
    pub(super) low: u32,
    /// Bits of the digit: the height of its tree.
    pub(super) bits: u32,
}

impl Place {
    /// The digit of a weight that was lifted.
    pub(super) fn digit(&self, lifted: u32) -> u8 {
        (lifted >> self.low) as u8 & ((1 << self.bits) - 1)
    }
}

/// Cuts a weight into as few digits as possible, all about as long, the longest first.
fn cut(weight_bits: u32, most: u32) -> impl Iterator<Item = u32> {
    let digits = weight_bits.div_ceil(most);
    (0..digits).map(move |digit| (weight_bits + digits - 1 - digit) / digits)
}

impl Shape {
    /// The shape of a job whose rows are encoded so.
    pub(super) fn new(
        encoding: &Encoding,
        resolution: Resolution,
        hidden: Vec<usize>,
        field: FieldBits,
    ) -> Self {
        let payload = encoding.payload().iter();
        Self {
            resolution,
            kinds: encoding.kinds(),
            largest: payload.map(|column| column.largest).collect(),
            noise_bits: 0,
            bands_total: 1,
            hidden,
            row_bits: 0,
            tables: 1,
            field,
            edges: &EDGES,
            tally: Tally::Table,
            unit: 1,
            block_rows: BLOCK_ROWS,
        }
    }

    /// The blocks of a batch.
    pub(super) fn blocks(&self, rows: Range<usize>) -> Vec<Range<usize>> {
        let end = rows.end;
        let begins = rows.step_by(self.block_rows);
        let block = |begin: usize| begin..end.min(begin + self.block_rows);
        begins.map(block).collect()
    }

    /// The shape for batches of fewer than 2^`row_bits` rows of all providers.
    pub(super) fn of_rows(&self, row_bits: u32) -> Self {
        Self {
            row_bits,
            resolution: self.resolution.of_rows(row_bits),
            ..self.clone()
        }
    }

    /// The same as the data user says how many rows all providers have, if that can be true: no fewer than one
    /// provider's `own`, and no sum is wider than a word that is sent.
    pub(super) fn of_all_rows(&self, row_bits: u32, own: usize) -> Option<Self> {
        let shape = self.of_rows(row_bits);
        let widest = shape.sum_bits().into_iter().max()?;
        (row_bits >= bits_of(own) && widest <= MOST_BITS).then_some(shape)
    }

    /// How the transfers of a row choose its place.
    pub(super) fn index(&self) -> Result<WideIndex, TransferError> {
        WideIndex::new(self.field, self.resolution.index_bits())
    }

    /// Transfers of one of 2^f for each row.
    pub(super) fn index_transfers(&self, rows: usize) -> Result<usize, TransferError> {
        Ok(rows * self.tables * self.index()?.transfers())
    }

    /// Ranges of scores that held-out rows are counted by.
    pub(super) fn lanes(&self) -> usize {
        self.edges.len() + 1
    }

    /// The shape of another count of the same rows.
    pub(super) fn of_tally(&self, tally: Tally) -> Self {
        Self {
            tally,
            ..self.clone()
        }
    }

    /// Counts of held-out rows: lanes of rows of the other class, then of the positive class; or the
    /// one of right predictions.
    pub(super) fn counts(&self) -> usize {
        match self.tally {
            Tally::Table => 2 * self.lanes(),
            Tally::Right => 1,
        }
    }

    /// What a row of this class in this lane adds to a count: to one of them at most.
    pub(super) fn adds(&self, place: usize, positive: bool, lane: usize) -> u64 {
        let lanes = self.lanes();
        let hit = match self.tally {
            Tally::Table => place == usize::from(positive) * lanes + lane,
            Tally::Right => positive == (lane >= lanes / 2),
        };
        u64::from(lane < lanes && hit) * self.unit
    }

    /// All trees of a gradient, digits of a column together.
    pub(super) fn places(&self) -> Vec<Place> {
        let mut places = Vec::new();
        for &column in &self.hidden {
            let (fraction, most) = match self.kinds[column] {
                ColumnKind::Number => (0, MOST_DIGIT_BITS),
                ColumnKind::Indicator => (self.resolution.value_bits(), INDICATOR_DIGIT_BITS),
            };
            let mut low = 0;
            for bits in cut(self.resolution.weight_bits(), most) {
                let shift = low + fraction;
                places.push(Place {
                    column,
                    width: self.resolution.score_bits() - shift,
                    shift,
                    low,
                    bits,
                });
                low += bits;
            }
        }
        places
    }

    /// The heights of all trees of a gradient.
    pub(super) fn heights(&self) -> Vec<usize> {
        let places = self.places().into_iter();
        places.map(|place| place.bits as usize).collect()
    }

    /// Levels of all trees of a gradient together: the bits of all hidden weights.
    pub(super) fn tree_levels(&self) -> usize {
        self.hidden.len() * self.resolution.weight_bits() as usize
    }

    /// b, as a count.
    pub(super) fn levels(&self) -> usize {
        self.resolution.code_bits() as usize
    }

    /// Transfers of one of two: for the trees, then for the payload, row by row.
    pub(super) fn bit_transfers(&self, rows: usize) -> (usize, usize) {
        (self.tree_levels(), rows * self.levels())
    }

    /// Bits of the sums, bias first.
    pub(super) fn sum_bits(&self) -> Vec<u32> {
        // A weight is below 2^b and there are fewer than 2^row_bits of them; one bit for the sign. Bands add up to what is
        // opened at once. A data user may name any number of rows.
        let banded = self.bands_total.next_power_of_two().trailing_zeros();
        let count = self
            .row_bits
            .saturating_add(self.resolution.code_bits() + 1 + banded);
        let column = |largest: &u32| {
            let exact = count.saturating_add(largest.next_power_of_two().trailing_zeros());
            match self.noise_bits {
                0 => exact,
                noise => exact.max(noise + 1).saturating_add(1),
            }
        };
        self.largest.iter().map(column).collect()
    }

    /// Bytes of a word of a payload's pad: words are cut from it.
    pub(super) fn pad_word(&self) -> usize {
        match self.sum_bits().into_iter().max().unwrap_or(0) {
            ..=32 => 4,
            _ => 8,
        }
    }

    /// Parts of the message before a gradient, U to P: choices of the trees, requests.
    pub(super) fn preprocess_bytes(&self, rows: usize) -> Result<[usize; 3], StepError> {
        let field = self.field;
        let (trees, payload) = self.bit_transfers(rows);
        Ok([
            BitRequest::bytes(field, trees + payload)?,
            IndexRequest::bytes(field, self.index_transfers(rows)?)?,
            BitCorrections::bytes(trees),
        ])
    }

    /// Parts of R1 and R2, P to U: offers of the trees, then c for every tree.
    pub(super) fn column_bytes(&self, rows: usize) -> [usize; 2] {
        let places = self.places().into_iter();
        let corrections = places.map(|place| packed_bytes(rows, place.width));
        [TreeOffers::bytes(self.tree_levels()), corrections.sum()]
    }

    /// Parts of R3, U to P: corrections of the trees, corrections of the indices.
    pub(super) fn question_bytes(&self, rows: usize) -> Result<[usize; 2], StepError> {
        let transfers = rows * self.index()?.transfers();
        Ok([
            packed_bytes(self.tree_levels(), 1),
            IndexCorrections::bytes(self.field, transfers),
        ])
    }

    /// R4, P to U.
    pub(super) fn symbol_bytes(&self, rows: usize) -> usize {
        let entries = rows << self.resolution.index_bits();
        packed_bytes(entries, self.resolution.code_bits())
    }

    /// R5, U to P.
    pub(super) fn choice_bytes(&self, rows: usize) -> usize {
        BitCorrections::bytes(rows * self.levels())
    }

    /// R6 without Q, P to U.
    pub(super) fn payload_bytes(&self, rows: usize) -> usize {
        let widths = self.sum_bits();
        let bits: usize = (0..self.levels() as u32)
            .flat_map(|level| widths.iter().map(move |width| (width - level) as usize))
            .sum();
        (bits * rows).div_ceil(8)
    }

    /// Q, P to U.
    pub(super) fn sum_bytes(&self) -> usize {
        let widths = self.sum_bits();
        let sums: usize = widths.iter().map(|width| *width as usize).sum();
        sums.div_ceil(8)
    }
}

/// What the trees of a round are numbered by: the same round has the same numbers in a session that
/// was resumed, and no two rounds of a session share a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TreeNumbers {
    /// A block of a gradient.
    Gradient {
        /// Which gradient.
        iteration: u32,
        /// Which block of its rows.
        block: u32,
        /// Made again, because the first was made in advance for other rows.
        again: bool,
    },
    /// An evaluation.
    Evaluation {
        /// Which one of the job.
        number: u32,
    },
}

impl TreeNumbers {
    /// A block of a gradient.
    pub(super) fn gradient(iteration: u32, block: usize, again: bool) -> Self {
        Self::Gradient {
            iteration,
            block: block as u32,
            again,
        }
    }

    /// The number of the first tree; a block has fewer than 2^12, a gradient fewer than 2^16 blocks.
    pub(super) fn first(self) -> u64 {
        let (kind, number, block) = match self {
            Self::Gradient {
                iteration,
                block,
                again,
            } => (u64::from(again), iteration, block),
            Self::Evaluation { number } => (2, number, 0),
        };
        kind << 60 | u64::from(number) << 28 | u64::from(block) << 12
    }
}
