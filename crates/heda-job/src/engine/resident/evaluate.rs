//! Steps E1 to E4: held-out rows counted by range of their score and by class, and no prediction
//! shown to anyone.
//!
//! | step | who | what |
//! | --- | --- | --- |
//! | E1 | both | Shares of the scores as in R1 and R2, all columns hidden. |
//! | E2 | U ↔ P | U reads at its second digit whether the first one needs a borrow, hidden by σ′. |
//! | E3 | U ↔ P | U reads, at its first digit and the hidden borrow, the lane, hidden by σ″. |
//! | E4 | U ↔ P | One of sixteen vectors: m plus a one at (class, lane). P's Q takes the m off. |
//!
//! Whatever U chooses, every row adds at most a one in one place of the counts. A private job counts
//! in units, of which a one is several ([`Shape::unit`]), and asks twice: for right predictions, where
//! the vector has one number, and for the table.

use super::lanes::{FIRST_BITS, LANE_BITS, SECOND_BITS, first_digit, lane_table, second_digit};
use super::provider::ProviderReady;
use super::rows::Batch;
use super::shape::Shape;
use super::user::UserReady;
use super::{StepError, exactly, parts, symbols};
use crate::closing::OpenSum;
use chacha20::ChaCha20Rng;
use heda_crypto::bits::{BitReader, BitWriter, packed_bytes};
use heda_crypto::transfer::{
    BitCorrections, BitKeys, ChosenBits, ChosenIndices, IndexCorrections, IndexKeys, RandomBits,
    RandomIndices,
};
use heda_learn::resident::Weights;
use rand_core::{Rng, SeedableRng};
use sha2::{Digest, Sha256};
use subtle::{ConditionallySelectable, ConstantTimeEq};
use zeroize::Zeroizing;

/// Entries of the last table.
const ENTRIES: usize = 1 << LANE_BITS;
/// Index bits of both tables.
const INDEX_BITS: u32 = FIRST_BITS + 1;

/// Bytes of the messages of E2 to E4.
struct Lengths {
    borrows: usize,
    lanes: usize,
    payload: [usize; 2],
}

impl Lengths {
    fn new(shape: &Shape, rows: usize) -> Self {
        let (width, counts) = (shape.row_bits, shape.counts());
        Self {
            borrows: packed_bytes(rows << SECOND_BITS, 1),
            lanes: packed_bytes(rows << INDEX_BITS, LANE_BITS),
            payload: [
                packed_bytes(rows * ENTRIES * counts, width),
                packed_bytes(counts, width),
            ],
        }
    }
}

/// Bytes of the last message.
pub(super) fn payload_bytes(shape: &Shape, rows: usize) -> usize {
    Lengths::new(shape, rows).payload.iter().sum()
}

/// Bytes of the tables of E2 and of E3.
pub(super) fn table_bytes(shape: &Shape, rows: usize) -> [usize; 2] {
    let lengths = Lengths::new(shape, rows);
    [lengths.borrows, lengths.lanes]
}

/// The stream that hides one of sixteen vectors: keyed by the four keys of its number.
fn entry_stream(keys: [&[u8]; LANE_BITS as usize], entry: usize) -> ChaCha20Rng {
    let mut hash = Sha256::new();
    keys.iter().for_each(|key| hash.update(key));
    hash.update([entry as u8]);
    let seed = Zeroizing::new(<[u8; 32]>::from(hash.finalize()));
    ChaCha20Rng::from_seed(*seed)
}

/// P after E2.
pub(super) struct ProviderBorrowed {
    masks: Zeroizing<Vec<u32>>,
    pads: Zeroizing<Vec<u8>>,
    lanes: IndexKeys,
    payload: BitKeys,
}

/// P after E3.
pub(super) struct ProviderLaned {
    pads: Zeroizing<Vec<u8>>,
    payload: BitKeys,
}

fn pads(rows: usize, mask: u8, rng: &mut impl Rng) -> Zeroizing<Vec<u8>> {
    let mut pads = Zeroizing::new(vec![0; rows]);
    rng.fill_bytes(&mut pads);
    pads.iter_mut().for_each(|pad| *pad &= mask);
    pads
}

impl ProviderReady {
    /// E2 at P.
    pub(super) fn borrow(
        self,
        shape: &Shape,
        batch: Batch<'_>,
        question: &[u8],
        rng: &mut impl Rng,
    ) -> Result<(Vec<u8>, ProviderBorrowed), StepError> {
        let rows = batch.count();
        let [digit_corrections, indices] =
            parts("the question", question, shape.question_bytes(rows)?)?;
        let corrections = IndexCorrections::from_bytes(shape.field, rows, indices)?;
        let masks = self.columns.masks(shape, batch, digit_corrections)?;
        let pads = pads(rows, 1, rng);
        let (borrows, lanes) = self.indices.split(rows)?;
        let entry = |row: usize, place: usize| {
            let own = second_digit(shape.resolution, masks[row]);
            u16::from((place as u8) < own) ^ u16::from(pads[row])
        };
        let message = symbols::write_tables(borrows, &corrections, SECOND_BITS, 1, entry)?;
        let next = ProviderBorrowed {
            masks,
            pads,
            lanes,
            payload: self.payload,
        };
        Ok((message, next))
    }
}

impl ProviderBorrowed {
    /// E3 at P.
    pub(super) fn lanes(
        self,
        shape: &Shape,
        question: &[u8],
        rng: &mut impl Rng,
    ) -> Result<(Vec<u8>, ProviderLaned), StepError> {
        let rows = self.masks.len();
        let corrections = IndexCorrections::from_bytes(shape.field, rows, question)?;
        let pads = pads(rows, ENTRIES as u8 - 1, rng);
        let table = lane_table(shape.resolution, shape.edges);
        let entry = |row: usize, place: usize| {
            let (digit, hidden) = ((place >> 1) as u8, (place & 1) as u8);
            let borrow = hidden ^ self.pads[row];
            let own = first_digit(shape.resolution, self.masks[row]);
            let first = digit.wrapping_sub(own).wrapping_sub(borrow) & 127;
            table[usize::from(first)] ^ u16::from(pads[row])
        };
        let message =
            symbols::write_tables(self.lanes, &corrections, INDEX_BITS, LANE_BITS, entry)?;
        let payload = self.payload;
        Ok((message, ProviderLaned { pads, payload }))
    }
}

impl ProviderLaned {
    /// E4 at P: the vectors; what belongs into Q is added to `sum`.
    pub(super) fn count(
        self,
        shape: &Shape,
        batch: Batch<'_>,
        choices: &[u8],
        sum: &mut OpenSum,
        rng: &mut impl Rng,
    ) -> Result<Vec<u8>, StepError> {
        let rows = batch.count();
        let levels = LANE_BITS as usize;
        let corrections = BitCorrections::from_bytes(rows * levels, choices)?;
        let width = shape.row_bits;
        let lengths = Lengths::new(shape, rows);
        let mut writer = BitWriter::with_capacity(lengths.payload[0]);
        let counts = shape.counts();
        let mut provider_share = Zeroizing::new(vec![0u64; counts]);
        let mut keys: Zeroizing<Vec<[[u8; 16]; 2]>> = Zeroizing::new(vec![[[0; 16]; 2]; levels]);
        self.payload.pads(&corrections, 16, |number, zero, one| {
            let (row, level) = (number / levels, number % levels);
            keys[level][0].copy_from_slice(zero);
            keys[level][1].copy_from_slice(one);
            if level + 1 < levels {
                return;
            }
            let mut masks = Zeroizing::new(vec![0u64; counts]);
            for (mask, provider_share) in masks.iter_mut().zip(provider_share.iter_mut()) {
                *mask = rng.next_u64();
                *provider_share = provider_share.wrapping_sub(*mask);
            }
            let positive = batch.label(row).is_positive();
            for entry in 0..ENTRIES {
                let key = |level: usize| &keys[level][entry >> level & 1][..];
                let mut pad = entry_stream([key(0), key(1), key(2), key(3)], entry);
                let lane = entry ^ usize::from(self.pads[row]);
                for (place, mask) in masks.iter().enumerate() {
                    let added = shape.adds(place, positive, lane);
                    let word = mask.wrapping_add(added).wrapping_sub(pad.next_u64());
                    writer.push(word, width);
                }
            }
        })?;
        sum.add(&provider_share);
        Ok(writer.finish())
    }
}

/// Counts as they are sent.
pub(super) fn write_counts(shape: &Shape, counts: &[u64]) -> Vec<u8> {
    let mut writer = BitWriter::with_capacity(counts.len() * 4);
    counts
        .iter()
        .for_each(|count| writer.push(*count, shape.row_bits));
    writer.finish()
}

/// U after E2's question.
pub(super) struct UserBorrowing {
    shares: Zeroizing<Vec<u32>>,
    places: Zeroizing<Vec<u8>>,
    chosen: ChosenIndices,
    lanes: RandomIndices,
    payload: RandomBits,
}

/// U after E3's question.
pub(super) struct UserLaning {
    pub(super) places: Zeroizing<Vec<u8>>,
    chosen: ChosenIndices,
    payload: RandomBits,
}

/// U after E4's choices.
pub(super) struct UserCounting {
    pub(super) lanes: Zeroizing<Vec<u16>>,
    chosen: ChosenBits,
}

impl UserReady {
    /// E2 at U.
    pub(super) fn ask_borrow(
        self,
        shape: &Shape,
        weights: &Weights,
        rows: usize,
    ) -> Result<(Vec<u8>, UserBorrowing), StepError> {
        let known = Zeroizing::new(vec![weights.constant as u32; rows]);
        let (mut message, shares) = self.columns.shares(shape, weights, known);
        let second = |share: &u32| second_digit(shape.resolution, *share);
        let places: Zeroizing<Vec<u8>> = Zeroizing::new(shares.iter().map(second).collect());
        let (borrows, lanes) = self.indices.split(rows)?;
        let (corrections, chosen) = borrows.correct(&places)?;
        message.extend(corrections.to_bytes());
        let next = UserBorrowing {
            shares,
            places,
            chosen,
            lanes,
            payload: self.payload,
        };
        Ok((message, next))
    }
}

impl UserBorrowing {
    /// E3 at U.
    pub(super) fn ask_lane(
        self,
        shape: &Shape,
        message: &[u8],
    ) -> Result<(Vec<u8>, UserLaning), StepError> {
        let expected = Lengths::new(shape, self.shares.len()).borrows;
        let message = exactly("the borrows", message, expected)?;
        let pads = Zeroizing::new(self.chosen.pads(1)?);
        let borrows = symbols::read(message, SECOND_BITS, 1, &self.places, &pads);
        let place = |(share, borrow): (&u32, &u16)| {
            first_digit(shape.resolution, *share) << 1 | *borrow as u8
        };
        let places = self.shares.iter().zip(borrows.iter()).map(place);
        let places: Zeroizing<Vec<u8>> = Zeroizing::new(places.collect());
        let (corrections, chosen) = self.lanes.correct(&places)?;
        let next = UserLaning {
            places,
            chosen,
            payload: self.payload,
        };
        Ok((corrections.to_bytes(), next))
    }
}

impl UserLaning {
    /// E4 at U: its choices.
    pub(super) fn choose(
        self,
        shape: &Shape,
        message: &[u8],
    ) -> Result<(Vec<u8>, UserCounting), StepError> {
        let expected = Lengths::new(shape, self.places.len()).lanes;
        let message = exactly("the lanes", message, expected)?;
        let pads = Zeroizing::new(self.chosen.pads(LANE_BITS)?);
        let lanes = symbols::read(message, INDEX_BITS, LANE_BITS, &self.places, &pads);
        let bits = lanes
            .iter()
            .flat_map(|lane| (0..LANE_BITS).map(move |level| lane >> level & 1 == 1));
        let bits: Zeroizing<Vec<bool>> = Zeroizing::new(bits.collect());
        let (corrections, chosen) = self.payload.correct(&bits)?;
        Ok((corrections.to_bytes(), UserCounting { lanes, chosen }))
    }
}

impl UserCounting {
    /// E4 at U: this provider's part of the counts, modulo 2^`row_bits`.
    pub(super) fn counts(self, shape: &Shape, message: &[u8]) -> Result<Vec<u64>, StepError> {
        let rows = self.lanes.len();
        let levels = LANE_BITS as usize;
        let [vectors, provider_share] =
            parts("the counts", message, Lengths::new(shape, rows).payload)?;
        let width = shape.row_bits;
        let mut reader = BitReader::new(vectors);
        let mut counts = vec![0u64; shape.counts()];
        let mut keys = Zeroizing::new([[0u8; 16]; LANE_BITS as usize]);
        self.chosen.pads(16, |number, pad| {
            let (row, level) = (number / levels, number % levels);
            keys[level].copy_from_slice(pad);
            if level + 1 < levels {
                return;
            }
            let own = self.lanes[row];
            let mut stream = entry_stream(keys.each_ref().map(|key| &key[..]), own.into());
            let mut words = vec![0u64; counts.len()];
            for entry in 0..ENTRIES as u16 {
                let wanted = entry.ct_eq(&own);
                for word in &mut words {
                    word.conditional_assign(&reader.next(width), wanted);
                }
            }
            for (count, word) in counts.iter_mut().zip(words) {
                *count = count.wrapping_add(word).wrapping_add(stream.next_u64());
            }
        })?;
        let mut provider_share = BitReader::new(provider_share);
        counts
            .iter_mut()
            .for_each(|count| *count = count.wrapping_add(provider_share.next(width)));
        Ok(counts)
    }
}

#[cfg(test)]
mod tests;
