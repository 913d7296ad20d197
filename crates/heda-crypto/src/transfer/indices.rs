//! Transfers of one of 2^f.
//!
//! A request gives random indices in the field. When the wanted ones are known, the chooser sends for
//! each the difference, f bits. Then the sender has a pad for every entry of a table of up to 2^f
//! entries, the chooser the one at its index. Every object here is consumed by its use, so no random
//! index is corrected twice and no pad is used twice.
//!
//! Messages: chooser → sender: an [`IndexRequest`] ahead, later [`IndexCorrections`].

use super::extension::{Chooser, ExtendedRows, Sender};
use super::field::{self, FieldBits, Multiples};
use super::hash::RowHash;
use super::part::{TransferPart, parts};
use super::request::{Request, RequestShape};
use super::stream::BLOCK_WORDS;
use super::{MAX_ENTRY_BITS, TransferError, expect_count, expect_field, expect_length};
use crate::bits::{BitReader, BitWriter, packed_bytes};
use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use zeroize::{Zeroize, Zeroizing};

/// A request for random transfers of one of 2^f.
#[derive(Clone, PartialEq, Eq)]
pub struct IndexRequest(pub(super) Request);

impl IndexRequest {
    /// Bytes of a request for so many transfers.
    pub fn bytes(field: FieldBits, transfers: usize) -> Result<usize, TransferError> {
        Ok(RequestShape::new(field, field.get(), transfers)?.request_bytes())
    }

    /// The request as it is sent.
    pub fn to_bytes(&self) -> Vec<u8> {
        self.0.bytes.clone()
    }

    /// The request as it arrived, for so many transfers.
    pub fn from_bytes(
        field: FieldBits,
        transfers: usize,
        bytes: &[u8],
    ) -> Result<Self, TransferError> {
        let shape = RequestShape::new(field, field.get(), transfers)?;
        Ok(Self(Request::from_bytes(shape, bytes)?))
    }
}

/// For each transfer the difference of the wanted index and the random one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexCorrections {
    field: FieldBits,
    values: Vec<u8>,
}

impl IndexCorrections {
    /// Bytes of the corrections of so many transfers.
    pub fn bytes(field: FieldBits, transfers: usize) -> usize {
        packed_bytes(transfers, field.get() as u32)
    }

    /// The corrections as they are sent: f bits each, lowest first, one after another.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut writer = BitWriter::with_capacity(Self::bytes(self.field, self.values.len()));
        let width = self.field.get() as u32;
        for value in &self.values {
            writer.push(u64::from(*value), width);
        }
        writer.finish()
    }

    /// The corrections as they arrived.
    pub fn from_bytes(
        field: FieldBits,
        transfers: usize,
        bytes: &[u8],
    ) -> Result<Self, TransferError> {
        let what = "the corrections";
        expect_length(what, bytes, Self::bytes(field, transfers))?;
        let used = transfers * field.get() % 8;
        if used > 0 && bytes.last().is_some_and(|byte| byte >> used != 0) {
            return Err(TransferError::Padding { what });
        }
        let mut reader = BitReader::new(bytes);
        let value = |_| reader.next(field.get() as u32) as u8;
        Ok(Self {
            field,
            values: (0..transfers).map(value).collect(),
        })
    }

    /// The corrections of some of the transfers.
    pub fn part(&self, range: Range<usize>) -> Result<Self, TransferError> {
        let expected = self.values.len();
        let part = self.values.get(range.clone());
        let what = "a part of the corrections";
        let part = part.ok_or(TransferError::CountMismatch {
            what,
            got: range.end,
            expected,
        })?;
        Ok(Self {
            field: self.field,
            values: part.to_vec(),
        })
    }
}

/// Which bits of a hash are an entry of so many bits.
pub(super) fn entry_mask(entry_bits: u32) -> Result<u16, TransferError> {
    match entry_bits {
        1..=MAX_ENTRY_BITS => Ok(u16::MAX >> (16 - entry_bits)),
        _ => Err(TransferError::EntryBits(entry_bits)),
    }
}

/// The chooser's side of random transfers that are not yet used.
pub struct RandomIndices(TransferPart<RandomPlaces>);

struct RandomPlaces {
    field: FieldBits,
    indices: Zeroizing<Vec<u8>>,
    rows: Arc<ExtendedRows>,
}

/// The chooser's side of transfers with the wanted indices.
pub struct ChosenIndices(TransferPart<ExtendedRows>);

/// The sender's side of random transfers that are not yet used.
pub struct IndexKeys(TransferPart<IndexKeyRows>);

struct IndexKeyRows {
    field: FieldBits,
    rows: ExtendedRows,
    multiples: Arc<Multiples>,
}

parts!(RandomIndices, ChosenIndices, IndexKeys);

impl RandomIndices {
    /// Step 11: from the random indices to the wanted ones, which are below 2^f.
    pub fn correct(
        self,
        wanted: &[u8],
    ) -> Result<(IndexCorrections, ChosenIndices), TransferError> {
        expect_count("the list of indices", wanted.len(), self.count())?;
        let TransferPart { shared, range } = self.0;
        let field = shared.field;
        let outside = |index: &u8| usize::from(*index) >= field.elements();
        if let Some(row) = wanted.iter().position(outside) {
            return Err(TransferError::IndexOutOfRange { row });
        }
        let random = &shared.indices[range.clone()];
        let values = wanted.iter().zip(random).map(|(w, r)| w ^ r).collect();
        let shared = Arc::clone(&shared.rows);
        Ok((
            IndexCorrections { field, values },
            ChosenIndices(TransferPart { shared, range }),
        ))
    }
}

impl ChosenIndices {
    /// The hash of the session, and the numbers of these transfers in it.
    pub(super) fn numbers(&self) -> (RowHash, Range<u64>) {
        let TransferPart { shared, range } = &self.0;
        (shared.hash, shared.numbers(range))
    }

    /// Step 13, whole: the key at the index of every transfer.
    pub(super) fn keys(self) -> Zeroizing<Vec<u128>> {
        let TransferPart {
            shared: rows,
            range,
        } = self.0;
        let mut keys = Zeroizing::new(Vec::with_capacity(range.len()));
        rows.hash.run(
            rows.numbers(&range),
            1,
            |number, inputs| inputs[0] = rows.words[range.start + number],
            |_, hashed| keys.push(hashed[0]),
        );
        keys
    }

    /// Step 13: the pad at the index of every transfer, `entry_bits` long.
    pub fn pads(self, entry_bits: u32) -> Result<Vec<u16>, TransferError> {
        let mask = entry_mask(entry_bits)?;
        let keys = self.keys();
        Ok(keys.iter().map(|key| *key as u16 & mask).collect())
    }
}

impl IndexKeys {
    /// The hash of the session, and the numbers of these transfers in it.
    pub(super) fn numbers(&self) -> (RowHash, Range<u64>) {
        let TransferPart { shared, range } = &self.0;
        (shared.rows.hash, shared.rows.numbers(range))
    }

    /// Step 12: in every transfer the pads of entries 0 to 2^`index_bits` − 1, `entry_bits` long.
    pub fn pads(
        self,
        corrections: &IndexCorrections,
        index_bits: u32,
        entry_bits: u32,
        mut each: impl FnMut(usize, &[u16]),
    ) -> Result<(), TransferError> {
        let mask = entry_mask(entry_bits)?;
        let mut pads = Zeroizing::new(vec![0; 1 << index_bits.min(8)]);
        self.keys(corrections, index_bits, |number, keys| {
            for (pad, key) in pads.iter_mut().zip(keys) {
                *pad = *key as u16 & mask;
            }
            each(number, &pads);
        })
    }

    /// Step 12, whole: in every transfer the keys of entries 0 to 2^`index_bits` − 1.
    pub(super) fn keys(
        self,
        corrections: &IndexCorrections,
        index_bits: u32,
        each: impl FnMut(usize, &[u128]),
    ) -> Result<(), TransferError> {
        let what = "the list of corrections";
        expect_count(what, corrections.values.len(), self.count())?;
        let TransferPart { shared, range } = self.0;
        let IndexKeyRows {
            field,
            rows,
            multiples,
        } = shared.as_ref();
        expect_field(what, corrections.field, *field)?;
        let most = field.get() as u32;
        if !(1..=most).contains(&index_bits) {
            return Err(TransferError::IndexBits {
                got: index_bits,
                most,
            });
        }
        let count = 1 << index_bits;
        let multiples = multiples.rows();
        rows.hash.run(
            rows.numbers(&range),
            count,
            |number, inputs| {
                // Entry v has the key of y = v ⊕ correction, and y·Δ is v·Δ plus the correction's
                // multiple. The correction is public.
                let correction = usize::from(corrections.values[number]);
                let word = rows.words[range.start + number] ^ multiples[correction];
                for (input, multiple) in inputs.iter_mut().zip(multiples) {
                    *input = word ^ multiple;
                }
            },
            each,
        );
        Ok(())
    }
}

impl Chooser {
    /// Asks for random transfers of one of 2^f (steps 6, 8 and 9).
    pub fn extend_indices(
        &mut self,
        transfers: usize,
    ) -> Result<(IndexRequest, RandomIndices), TransferError> {
        let field = self.field();
        let shape = RequestShape::new(field, field.get(), transfers)?;
        let (request, u, rows) = self.extend(shape)?;
        let mut indices = Zeroizing::new(vec![0; transfers]);
        let blocks = u.chunks_exact(field.get() * BLOCK_WORDS);
        for (planes, indices) in blocks.zip(indices.chunks_mut(BLOCK_WORDS * 128)) {
            let mut column = vec![0; field.get()];
            for (word, indices) in indices.chunks_mut(128).enumerate() {
                for (part, plane) in column.iter_mut().zip(planes.chunks_exact(BLOCK_WORDS)) {
                    *part = plane[word];
                }
                field::elements(&column, indices);
            }
            column.zeroize();
        }
        let rows = rows.into();
        let random = RandomPlaces {
            field,
            indices,
            rows,
        };
        let random = RandomIndices(TransferPart::whole(random, transfers));
        Ok((IndexRequest(request), random))
    }
}

impl Sender {
    /// Takes part in random transfers of one of 2^f (steps 7 and 10).
    pub fn accept_indices(&mut self, request: &IndexRequest) -> Result<IndexKeys, TransferError> {
        let (rows, multiples) = self.accept(&request.0)?;
        let keys = IndexKeyRows {
            field: self.field(),
            rows,
            multiples,
        };
        Ok(IndexKeys(TransferPart::whole(keys, request.0.shape.rows)))
    }
}

impl fmt::Debug for IndexRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "IndexRequest({} transfers)", self.0.shape.rows)
    }
}
