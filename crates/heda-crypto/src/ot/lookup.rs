//! Lookup: for every row the chooser reads one of 2^k entries of the sender's table.
//!
//! Follows the idea of Naor, Pinkas, "Oblivious Transfer and Polynomial Evaluation" (STOC 1999):
//! k one-of-two transfers give two keys per index bit, and entry v is masked by what the k keys of
//! the bits of v make together. Here that is H(⊕_j K_j[v_j], row and v), one hash per entry.
//!
//! The chooser at c knows K_j[c_j] for all j. An entry v ≠ c differs from c in some bit j, and
//! there K_j[v_j] is uniform and unknown, so the hash input is a known word plus an unknown
//! uniform one, which is what the hash is made for. The sender learns nothing: it sees only the
//! extension's request.
//!
//! Messages: chooser → sender: position (8 bytes), then 16·k bytes per row (rows rounded up to a
//! multiple of 8). Sender → chooser: the masked tables, row after row, nothing else.

use super::base::{self, BaseSender};
use super::extension::{ExtensionChooser, ExtensionSender, GROUP, Position, Strip};
use super::hash::{TweakableHash, entry_tweak, transfer_tweak};
use super::{MAX_ANSWER_BYTES, MAX_ENTRY_BYTES, MAX_INDEX_BITS, MAX_ROWS};
use super::{OtError, expect_length};
use rand_core::CryptoRng;
use rayon::prelude::*;
use std::fmt;
use subtle::{Choice, ConditionallySelectable};
use zeroize::Zeroizing;

/// Bytes of the position in front of a request.
pub(super) const POSITION_BYTES: usize = 8;

/// How a request for many rows is cut into strips of 128 rows, each with one group per index bit.
#[derive(Debug, Clone, Copy)]
pub(super) struct RequestLayout {
    pub(super) rows: usize,
    pub(super) groups: usize,
}

impl RequestLayout {
    /// The layout, if it is within what one call may do.
    pub(super) fn new(rows: usize, index_bits: u32) -> Result<Self, OtError> {
        if !(1..=MAX_INDEX_BITS).contains(&index_bits) {
            return Err(OtError::IndexBits(index_bits));
        }
        let groups = index_bits as usize;
        match rows {
            0..=MAX_ROWS => Ok(Self { rows, groups }),
            _ => Err(OtError::TooMuchAtOnce {
                rows,
                answer_bytes: 0,
            }),
        }
    }

    /// Groups of all strips.
    pub(super) fn all_groups(&self) -> usize {
        self.rows.div_ceil(GROUP) * self.groups
    }

    /// Strip `number` of a request whose first group is `first_group`.
    pub(super) fn strip(&self, first_group: u64, number: usize) -> Strip {
        Strip {
            first_group: first_group + (number * self.groups) as u64,
            groups: self.groups,
            used: (self.rows - number * GROUP).min(GROUP),
        }
    }

    /// Bytes of a strip of 128 rows.
    pub(super) fn full_strip_bytes(&self) -> usize {
        GROUP / 8 * GROUP * self.groups
    }

    /// Bytes of the request, position included.
    pub(super) fn request_bytes(&self) -> usize {
        let full = self.rows / GROUP * self.full_strip_bytes();
        let rest = self.rows % GROUP;
        POSITION_BYTES + full + rest.div_ceil(8) * GROUP * self.groups
    }

    /// Bytes of a table.
    fn table_bytes(&self, entry_bytes: usize) -> Result<usize, OtError> {
        if !(1..=MAX_ENTRY_BYTES).contains(&entry_bytes) {
            return Err(OtError::EntryBytes(entry_bytes));
        }
        let table = entry_bytes << self.groups;
        match table * self.rows {
            0..=MAX_ANSWER_BYTES => Ok(table),
            answer_bytes => Err(OtError::TooMuchAtOnce {
                rows: self.rows,
                answer_bytes,
            }),
        }
    }

    /// Bytes of all tables.
    fn answer_bytes(&self, entry_bytes: usize) -> Result<usize, OtError> {
        Ok(self.table_bytes(entry_bytes)? * self.rows)
    }
}

/// The chooser between the two messages of the setup.
pub struct ChooserSetup {
    base: BaseSender,
}

impl ChooserSetup {
    /// Step 1. The message goes to [`LookupSender::setup`].
    pub fn start<R: CryptoRng + ?Sized>(rng: &mut R) -> (Self, Vec<u8>) {
        let (base, first) = BaseSender::start(rng);
        (Self { base }, first)
    }

    /// Step 3, with the sender's answer. The chooser is ready.
    pub fn finish(self, second: &[u8]) -> Result<LookupChooser, OtError> {
        Ok(LookupChooser {
            extension: ExtensionChooser::new(&self.base.finish(second)?),
            hash: TweakableHash::new(),
            position: Position::default(),
        })
    }
}

/// The party that reads tables. Its requests must be answered in the order it made them.
pub struct LookupChooser {
    pub(super) extension: ExtensionChooser,
    pub(super) hash: TweakableHash,
    pub(super) position: Position,
}

impl LookupChooser {
    /// Steps 4 and 5: asks for entry `indices[row]`, below 2^`index_bits`, of every row's table.
    pub fn request(
        &mut self,
        indices: &[u16],
        index_bits: u32,
    ) -> Result<(Vec<u8>, PendingLookup), OtError> {
        let layout = RequestLayout::new(indices.len(), index_bits)?;
        if let Some(row) = indices.iter().position(|v| v >> index_bits != 0) {
            return Err(OtError::IndexOutOfRange { row });
        }
        let first_group = self.position.advance(layout.all_groups())?;
        let mut request = vec![0; layout.request_bytes()];
        let (position, strips) = request.split_at_mut(POSITION_BYTES);
        position.copy_from_slice(&first_group.to_le_bytes());
        let mut pads = Zeroizing::new(vec![0; indices.len()]);
        strips
            .par_chunks_mut(layout.full_strip_bytes())
            .zip(pads.par_chunks_mut(GROUP))
            .zip(indices.par_chunks(GROUP))
            .enumerate()
            .for_each(|(number, ((part, pads), indices))| {
                self.request_strip(layout.strip(first_group, number), indices, part, pads);
            });
        let pending = PendingLookup {
            layout,
            indices: Zeroizing::new(indices.to_vec()),
            pads,
        };
        Ok((request, pending))
    }

    fn request_strip(&self, strip: Strip, indices: &[u16], part: &mut [u8], pads: &mut [u128]) {
        let first_transfer = strip.first_group * GROUP as u64;
        let choices = Zeroizing::new(bit_slices(indices));
        let mut keys = Zeroizing::new(vec![0; strip.groups * GROUP]);
        self.extension.extend(strip, &*choices, part, &mut keys);
        // Step 7: the keys of the chosen bits, then the pad of the chosen entry.
        self.hash
            .hash(&mut keys, |n| transfer_tweak(first_transfer + n as u64));
        for group in keys.chunks_exact(GROUP) {
            pads.iter_mut()
                .zip(group)
                .for_each(|(pad, key)| *pad ^= key);
        }
        self.hash.hash(pads, |row| {
            entry_tweak(first_transfer + row as u64, usize::from(indices[row]))
        });
    }
}

/// Word j holds bit j of every index.
fn bit_slices(indices: &[u16]) -> [u128; MAX_INDEX_BITS as usize] {
    let mut slices = [0; MAX_INDEX_BITS as usize];
    for (row, index) in indices.iter().enumerate() {
        for (bit, slice) in slices.iter_mut().enumerate() {
            *slice |= u128::from(index >> bit & 1) << row;
        }
    }
    slices
}

/// A request that waits for its answer. It can be finished once.
pub struct PendingLookup {
    layout: RequestLayout,
    indices: Zeroizing<Vec<u16>>,
    pads: Zeroizing<Vec<u128>>,
}

impl PendingLookup {
    /// Bytes of the answer that is due.
    pub fn answer_bytes(&self, entry_bytes: usize) -> Result<usize, OtError> {
        self.layout.answer_bytes(entry_bytes)
    }

    /// Step 9: the chosen entries, row after row.
    pub fn finish(self, answer: &[u8], entry_bytes: usize) -> Result<Vec<u8>, OtError> {
        let table_bytes = self.layout.table_bytes(entry_bytes)?;
        expect_length("the answer", answer, table_bytes * self.layout.rows)?;
        let mut strings = vec![0; entry_bytes * self.layout.rows];
        strings
            .par_chunks_mut(entry_bytes * GROUP)
            .zip(answer.par_chunks(table_bytes * GROUP))
            .enumerate()
            .for_each(|(number, (strings, tables))| {
                let mut scratch = Zeroizing::new(vec![0; table_bytes / 2]);
                let entries = strings.chunks_exact_mut(entry_bytes);
                for (row, (entry, table)) in
                    entries.zip(tables.chunks_exact(table_bytes)).enumerate()
                {
                    let row = number * GROUP + row;
                    select(table, self.indices[row], self.layout.groups, &mut scratch);
                    let pad = self.pads[row].to_le_bytes();
                    let masked = scratch.iter().zip(&pad);
                    entry
                        .iter_mut()
                        .zip(masked)
                        .for_each(|(e, (s, p))| *e = s ^ p);
                }
            });
        Ok(strings)
    }

    /// [`PendingLookup::finish`] for the tables of [`LookupSender::answer_u48`].
    pub fn finish_u48(self, answer: &[u8]) -> Result<Vec<u64>, OtError> {
        let strings = Zeroizing::new(self.finish(answer, U48_BYTES)?);
        Ok(strings.chunks_exact(U48_BYTES).map(read_u48).collect())
    }
}

/// Leaves entry `index` of the table at the beginning of `scratch`. Halves the table once per
/// index bit, highest first; what memory is touched does not depend on the index.
fn select(table: &[u8], index: u16, index_bits: usize, scratch: &mut [u8]) {
    let mask = |bit: usize| {
        let choice = Choice::from((index >> bit) as u8 & 1);
        u8::conditional_select(&0, &0xff, choice)
    };
    let top = mask(index_bits - 1);
    let (low, high) = table.split_at(table.len() / 2);
    for ((out, low), high) in scratch.iter_mut().zip(low).zip(high) {
        *out = low ^ (low ^ high) & top;
    }
    let mut length = table.len() / 2;
    for bit in (0..index_bits - 1).rev() {
        length /= 2;
        let mask = mask(bit);
        let (low, high) = scratch[..2 * length].split_at_mut(length);
        for (low, high) in low.iter_mut().zip(high) {
            *low ^= (*low ^ *high) & mask;
        }
    }
}

/// The party that has the tables.
pub struct LookupSender {
    pub(super) extension: ExtensionSender,
    pub(super) hash: TweakableHash,
    pub(super) position: Position,
}

impl LookupSender {
    /// Bytes of a request for so many rows.
    pub fn request_bytes(rows: usize, index_bits: u32) -> Result<usize, OtError> {
        Ok(RequestLayout::new(rows, index_bits)?.request_bytes())
    }

    /// Bytes of the answer to such a request, if that is not too much at once.
    pub fn answer_bytes(
        rows: usize,
        index_bits: u32,
        entry_bytes: usize,
    ) -> Result<usize, OtError> {
        RequestLayout::new(rows, index_bits)?.answer_bytes(entry_bytes)
    }

    /// Step 2: answers the chooser's first message. The sender is ready.
    pub fn setup<R: CryptoRng + ?Sized>(
        first: &[u8],
        rng: &mut R,
    ) -> Result<(Self, Vec<u8>), OtError> {
        let mut delta = Zeroizing::new([0; 16]);
        rng.fill_bytes(delta.as_mut());
        let delta = Zeroizing::new(u128::from_le_bytes(*delta));
        let (seeds, second) = base::choose(first, *delta, rng)?;
        let sender = Self {
            extension: ExtensionSender::new(&seeds, *delta),
            hash: TweakableHash::new(),
            position: Position::default(),
        };
        Ok((sender, second))
    }

    /// Steps 6 to 8: answers a request for `rows` rows.
    ///
    /// `fill(row, table)` writes the row's 2^`index_bits` entries of `entry_bytes` bytes each,
    /// entry 0 first, into a table of zeros. Rows are filled in any order, on several threads.
    pub fn answer(
        &mut self,
        request: &[u8],
        rows: usize,
        index_bits: u32,
        entry_bytes: usize,
        fill: impl Fn(usize, &mut [u8]) + Sync,
    ) -> Result<Vec<u8>, OtError> {
        let layout = RequestLayout::new(rows, index_bits)?;
        let table_bytes = layout.table_bytes(entry_bytes)?;
        let (first_group, strips) = self.accept(layout, request)?;
        let mut answer = vec![0; table_bytes * rows];
        answer
            .par_chunks_mut(table_bytes * GROUP)
            .zip(strips.par_chunks(layout.full_strip_bytes()))
            .enumerate()
            .for_each(|(number, (tables, part))| {
                for (row, table) in tables.chunks_exact_mut(table_bytes).enumerate() {
                    fill(number * GROUP + row, table);
                }
                self.mask_strip(layout.strip(first_group, number), part, tables, entry_bytes);
            });
        Ok(answer)
    }

    /// [`LookupSender::answer`] for tables of numbers modulo 2^48, sent as 6 bytes each, the
    /// lowest first. Higher bits of what `fill` writes are dropped.
    pub fn answer_u48(
        &mut self,
        request: &[u8],
        rows: usize,
        index_bits: u32,
        fill: impl Fn(usize, &mut [u64]) + Sync,
    ) -> Result<Vec<u8>, OtError> {
        self.answer(request, rows, index_bits, U48_BYTES, |row, table| {
            let mut numbers = Zeroizing::new(vec![0; 1 << index_bits]);
            fill(row, &mut numbers);
            for (entry, number) in table.chunks_exact_mut(U48_BYTES).zip(numbers.iter()) {
                entry.copy_from_slice(&number.to_le_bytes()[..U48_BYTES]);
            }
        })
    }

    /// Checks a request and moves on: its first group, and its strips.
    pub(super) fn accept<'a>(
        &mut self,
        layout: RequestLayout,
        request: &'a [u8],
    ) -> Result<(u64, &'a [u8]), OtError> {
        expect_length("the request", request, layout.request_bytes())?;
        let (position, strips) = request.split_at(POSITION_BYTES);
        let mut first_group = [0; POSITION_BYTES];
        first_group.copy_from_slice(position);
        self.position.expect(u64::from_le_bytes(first_group))?;
        Ok((self.position.advance(layout.all_groups())?, strips))
    }

    fn mask_strip(&self, strip: Strip, part: &[u8], tables: &mut [u8], entry_bytes: usize) {
        let first_transfer = strip.first_group * GROUP as u64;
        let [zero, difference] = self.strip_keys(strip, part);
        let mut pads = Zeroizing::new(vec![0; 1 << strip.groups]);
        let table_bytes = entry_bytes << strip.groups;
        for (row, table) in tables.chunks_exact_mut(table_bytes).enumerate() {
            // Step 8: K_0[v_0] ⊕ … ⊕ K_{k−1}[v_{k−1}] for all v, doubling bit by bit.
            pads[0] = (0..strip.groups).fold(0, |sum, bit| sum ^ zero[bit * GROUP + row]);
            for bit in 0..strip.groups {
                let step = difference[bit * GROUP + row];
                let (done, next) = pads.split_at_mut(1 << bit);
                next.iter_mut()
                    .zip(done)
                    .for_each(|(next, done)| *next = *done ^ step);
            }
            let transfer = first_transfer + row as u64;
            self.hash
                .hash(&mut pads, |entry| entry_tweak(transfer, entry));
            mask_table(table, &pads, entry_bytes);
        }
    }

    /// The two keys of every transfer of a strip, as the zero key and the difference to the other.
    fn strip_keys(&self, strip: Strip, part: &[u8]) -> [Zeroizing<Vec<u128>>; 2] {
        let first_transfer = strip.first_group * GROUP as u64;
        let tweak = |n| transfer_tweak(first_transfer + n as u64);
        let mut zero = Zeroizing::new(vec![0; strip.groups * GROUP]);
        self.extension.extend(strip, part, &mut zero);
        // Step 7: K[0] from q, K[1] from q ⊕ Δ.
        let delta = self.extension.delta();
        let mut one = Zeroizing::new(zero.iter().map(|q| q ^ delta).collect::<Vec<_>>());
        self.hash.hash(&mut zero, tweak);
        self.hash.hash(&mut one, tweak);
        one.iter_mut()
            .zip(zero.iter())
            .for_each(|(one, zero)| *one ^= zero);
        [zero, one]
    }
}

/// Adds to each entry the first bytes of its pad. Common lengths are compiled for their length.
fn mask_table(table: &mut [u8], pads: &[u128], entry_bytes: usize) {
    fn fixed<const BYTES: usize>(table: &mut [u8], pads: &[u128]) {
        for (entry, pad) in table.as_chunks_mut::<BYTES>().0.iter_mut().zip(pads) {
            let pad = pad.to_le_bytes();
            (0..BYTES).for_each(|n| entry[n] ^= pad[n]);
        }
    }
    match entry_bytes {
        U48_BYTES => fixed::<U48_BYTES>(table, pads),
        8 => fixed::<8>(table, pads),
        16 => fixed::<16>(table, pads),
        _ => {
            for (entry, pad) in table.chunks_exact_mut(entry_bytes).zip(pads) {
                let pad = pad.to_le_bytes();
                entry.iter_mut().zip(&pad).for_each(|(e, p)| *e ^= p);
            }
        }
    }
}

/// Bytes of a number modulo 2^48.
const U48_BYTES: usize = 6;

fn read_u48(bytes: &[u8]) -> u64 {
    let mut wide = [0; 8];
    wide[..U48_BYTES].copy_from_slice(bytes);
    u64::from_le_bytes(wide)
}

impl fmt::Debug for ChooserSetup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChooserSetup").finish_non_exhaustive()
    }
}

impl fmt::Debug for LookupChooser {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = f.debug_struct("LookupChooser");
        text.field("position", &self.position)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for LookupSender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = f.debug_struct("LookupSender");
        text.field("position", &self.position)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for PendingLookup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = f.debug_struct("PendingLookup");
        text.field("layout", &self.layout).finish_non_exhaustive()
    }
}
