//! Evaluation on held-out rows: a histogram of scores by true class, and no prediction shown to
//! anyone. Steps E1 to E6 of `docs/protocols.md`.

use super::provider::{decrypt_scores, decrypt_sums, own_fault};
use super::user::{uniform_words, weight};
use super::{COUNTS_MASK, LookupProvider, Remote, tag};
use crate::error::{Blame, JobError, ServeError};
use crate::histogram::Histogram;
use crate::message::{Command, Message};
use crate::parallel::{RemoteError, ask_all};
use heda_blocks::channel::Channel;
use heda_crypto::lattice::SecretKey;
use heda_learn::data::Feature;
use heda_learn::fixed::{Domain, Precision, RING, Scaled};
use heda_learn::ring::Ring;
use rand_core::Rng;
use zeroize::Zeroizing;

/// Bits of a digit: the first one is looked up, the second one makes its borrow exact.
pub(super) const DIGIT_BITS: u32 = 8;
/// Edges between the ranges of z. Zero must be among them: it is the decision.
const EDGES: [f64; 13] = [
    -7.0, -4.0, -2.5, -1.5, -1.0, -0.5, 0.0, 0.5, 1.0, 1.5, 2.5, 4.0, 7.0,
];
/// Ranges of z, a lane each.
const LANES: usize = EDGES.len() + 1;
/// A lane counts modulo 2^24.
const LANE: Ring = Ring::of(24);
const LANE_BYTES: usize = LANE.encoded_length(1);
/// Lanes that fit in one transferred string.
const LANES_PER_STRING: usize = 5;
/// Bytes of the longest transferred string.
pub(super) const WIDEST_STRING: usize = LANES_PER_STRING * LANE_BYTES;

/// More held-out rows of all providers together than a lane can count are refused.
pub(super) const HELD_OUT_LIMIT: usize = LANE.mask() as usize;

fn digit(word: u64, which: u32) -> u8 {
    (word >> (48 - DIGIT_BITS * which)) as u8
}

/// The lanes of each transferred string.
fn strings() -> impl Iterator<Item = std::ops::Range<usize>> {
    (0..LANES)
        .step_by(LANES_PER_STRING)
        .map(|l| l..(l + LANES_PER_STRING).min(LANES))
}

/// A model scaled for the evaluation, and the lane of every signed level, at level mod 256.
struct CountQuestion {
    scaled: Scaled,
    lanes: [usize; 256],
}

impl CountQuestion {
    /// Moves all scores down by less than a level, so that zero begins a level exactly.
    fn new(mut scaled: Scaled, precision: Precision) -> Self {
        let level = 1i64 << precision.dropped_bits();
        let zero = (-scaled.centre / scaled.step * level as f64).round() as i64;
        scaled.constant -= zero.rem_euclid(level);
        let zero_level = zero.div_euclid(level);
        let lane = |index: usize| {
            let z = (i64::from(index as u8 as i8) - zero_level) as f64 * scaled.step;
            EDGES.iter().filter(|edge| **edge <= z).count()
        };
        Self {
            lanes: std::array::from_fn(lane),
            scaled,
        }
    }
}

/// The data user's side: the histogram over everybody's held-out rows for the model `beta`.
pub(super) fn histogram(
    remotes: &mut [Remote],
    beta: &[f64],
    features: &[Feature],
    value_bits: u32,
    class: u32,
) -> Result<Histogram, JobError> {
    let bug = |e: &dyn std::fmt::Display| JobError::Bug(e.to_string());
    let precision = Precision::new(value_bits, DIGIT_BITS).map_err(|e| bug(&e))?;
    let domain = Domain::of_features(features, precision).map_err(|e| bug(&e))?;
    let scaled =
        Scaled::new(beta, &domain, precision).map_err(|e| JobError::Diverged(e.to_string()))?;
    let question = CountQuestion::new(scaled, precision);
    let parts = ask_all(remotes, |remote| remote.count(&question, class))?;
    let mut sums = vec![0u64; 2 * LANES];
    for part in &parts {
        sums.iter_mut()
            .zip(part)
            .for_each(|(s, p)| *s = LANE.add(*s, *p));
    }
    let (all, positives) = sums.split_at(LANES);
    let negatives = all
        .iter()
        .zip(positives)
        .map(|(a, p)| LANE.subtract(*a, *p));
    Ok(Histogram {
        decision: LANES / 2,
        negatives: negatives.collect(),
        positives: positives.to_vec(),
    })
}

impl Remote {
    /// Steps E1 to E6 with one provider: counts of all rows, then of positive rows, a lane each.
    fn count(&mut self, ask: &CountQuestion, class: u32) -> Result<Vec<u64>, RemoteError> {
        // Whoever is left out would leave the others' masks without their counterpart.
        let missing = || RemoteError::Bug("a provider without held-out rows".into());
        let held_out = self.held_out.as_ref().ok_or_else(missing)?;
        let zeros = &mut self.zeros;
        let mut rng = self.randomness.fork("evaluation masks", class.into())?;
        let rows = held_out.matrix.rows();
        // E1
        let r = uniform_words(&mut rng, rows);
        let mask: Zeroizing<Vec<u64>> = Zeroizing::new(
            r.iter()
                .map(|r| RING.add(*r, RING.from_signed(ask.scaled.constant)))
                .collect(),
        );
        let weights: Vec<u64> = (0..ask.scaled.weights.len())
            .map(|j| weight(&ask.scaled, j))
            .collect();
        let scores = held_out.matrix.scores(&weights, &mask, zeros)?;
        Command::Evaluate { class }.send(&mut self.channel)?;
        self.channel.send(tag::SCORES, &scores)?;
        // E2
        let mut borrow = Zeroizing::new(vec![0u8; rows]);
        rng.fill_bytes(&mut borrow);
        let compare = |row: usize, entries: &mut [u8]| {
            let own = digit(r[row], 2);
            for (v, entry) in entries.iter_mut().enumerate() {
                *entry = borrow[row].wrapping_add(u8::from((v as u8) < own));
            }
        };
        let bits = DIGIT_BITS;
        self.tables
            .serve_strings(&mut self.channel, rows, bits, 1, compare)?;
        let turn = |row: usize| digit(r[row], 1).wrapping_sub(borrow[row]);
        // E3
        let s = lane_masks(&mut rng, rows);
        for range in strings() {
            let fill = |row: usize, entries: &mut [u8]| {
                let s = &s[row * LANES..][..LANES];
                write_lanes(entries, range.clone(), s, |v| {
                    ask.lanes[usize::from(v.wrapping_sub(turn(row)))]
                });
            };
            let bytes = range.len() * LANE_BYTES;
            self.tables
                .serve_strings(&mut self.channel, rows, bits, bytes, fill)?;
        }
        // E4
        let c = uniform_words(&mut rng, LANES);
        let labels = &held_out.labels[class as usize];
        for (lane, c) in c.iter().enumerate() {
            let weights: Zeroizing<Vec<u64>> =
                Zeroizing::new(s.iter().skip(lane).step_by(LANES).copied().collect());
            let sums = labels.weighted_sums(&weights, std::slice::from_ref(c), zeros)?;
            self.channel.send(tag::SUMS, &sums)?;
        }
        // E6
        let reply = self
            .channel
            .receive(tag::COUNTS, RING.encoded_length(2 * LANES))?;
        let mut counts = RING.decode(&reply, 2 * LANES).blame("counts")?;
        for lane in 0..LANES {
            let masks = s
                .iter()
                .skip(lane)
                .step_by(LANES)
                .fold(0u64, |sum, s| sum.wrapping_add(*s));
            counts[lane] = LANE.subtract(counts[lane], masks);
            counts[LANES + lane] = LANE.add(counts[LANES + lane], c[lane]);
        }
        Ok(counts)
    }
}

fn lane_masks(rng: &mut impl Rng, rows: usize) -> Zeroizing<Vec<u64>> {
    Zeroizing::new(
        (0..rows * LANES)
            .map(|_| LANE.reduce(rng.next_u64()))
            .collect(),
    )
}

/// One row's table: each entry the lanes of a range, masked, the lane of the entry one higher.
fn write_lanes(
    entries: &mut [u8],
    range: std::ops::Range<usize>,
    masks: &[u64],
    lane_of: impl Fn(u8) -> usize,
) {
    let entry_bytes = range.len() * LANE_BYTES;
    for (v, entry) in entries.chunks_exact_mut(entry_bytes).enumerate() {
        let hit = lane_of(v as u8);
        for (lane, bytes) in range.clone().zip(entry.chunks_exact_mut(LANE_BYTES)) {
            let value = LANE.add(masks[lane], u64::from(lane == hit));
            bytes.copy_from_slice(&value.to_le_bytes()[..LANE_BYTES]);
        }
    }
}

impl LookupProvider {
    /// The provider's side of E1 to E5.
    ///
    /// Classes are evaluated in order and once: their number is the round of the aggregation mask.
    pub(super) fn count_held_out(
        &mut self,
        channel: &mut Channel,
        class: u32,
        positive: u32,
    ) -> Result<(), ServeError> {
        let rows = self.held_out_labels.len();
        // E1
        let masked = decrypt_scores(&self.key, channel, rows, self.columns.width)?;
        // E2
        let second: Zeroizing<Vec<u8>> =
            Zeroizing::new(masked.iter().map(|&a| digit(a, 2)).collect());
        let borrows = self.choose(channel, &second, 1)?;
        let first: Zeroizing<Vec<u8>> = Zeroizing::new(
            masked
                .iter()
                .zip(borrows.iter())
                .map(|(&a, b)| digit(a, 1).wrapping_sub(*b))
                .collect(),
        );
        // E3
        let mut counts = vec![0u64; 2 * LANES];
        for range in strings() {
            let bytes = range.len() * LANE_BYTES;
            let read = self.choose(channel, &first, bytes)?;
            for (entry, &label) in read.chunks_exact(bytes).zip(&self.held_out_labels) {
                add_lanes(&mut counts, range.clone(), entry, label == positive);
            }
        }
        // E5
        for lane in 0..LANES {
            let cross = receive_cross_term(&self.key, channel, rows)?;
            counts[LANES + lane] = counts[LANES + lane].wrapping_sub(cross);
        }
        let masks = self
            .masks
            .stream(COUNTS_MASK, class.into(), counts.len())
            .map_err(own_fault)?;
        counts.iter_mut().zip(masks.iter()).for_each(|(c, m)| {
            *c = LANE.add(*c, *m);
        });
        channel.send(tag::COUNTS, &RING.encode(&counts))?;
        Ok(())
    }
}

impl LookupProvider {
    fn choose(
        &mut self,
        channel: &mut Channel,
        digits: &[u8],
        entry_bytes: usize,
    ) -> Result<Zeroizing<Vec<u8>>, ServeError> {
        let indices: Zeroizing<Vec<u16>> =
            Zeroizing::new(digits.iter().map(|&d| u16::from(d)).collect());
        Ok(self
            .tables
            .read_strings(channel, &indices, DIGIT_BITS, entry_bytes)?)
    }
}

fn add_lanes(counts: &mut [u64], range: std::ops::Range<usize>, entry: &[u8], positive: bool) {
    for (lane, bytes) in range.zip(entry.chunks_exact(LANE_BYTES)) {
        let value = u64::from(u32::from_le_bytes([bytes[0], bytes[1], bytes[2], 0]));
        counts[lane] = counts[lane].wrapping_add(value);
        if positive {
            counts[LANES + lane] = counts[LANES + lane].wrapping_add(value);
        }
    }
}

fn receive_cross_term(
    key: &SecretKey,
    channel: &mut Channel,
    rows: usize,
) -> Result<u64, ServeError> {
    let sums = decrypt_sums(key, channel, rows, 1)?;
    Ok(sums.first().copied().unwrap_or_default())
}
