//! Transfers of one of two.
//!
//! A request gives random choices. When the wanted choices are known, the chooser sends for each
//! the bit by which the random one differs from it. Then both have pads: the sender one for either
//! choice, the chooser that of its own. Every object here is consumed by its use, so no random
//! choice is corrected twice and no pad is used twice.
//!
//! Messages: chooser → sender: a [`BitRequest`] ahead, later [`BitCorrections`].

use super::extension::{Chooser, ExtendedRows, Sender};
use super::field::{FieldBits, Multiples};
use super::part::{TransferPart, parts};
use super::request::{Request, RequestShape};
use super::{MAX_PAD_BYTES, TransferError, expect_count, expect_length};
use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use zeroize::Zeroizing;

/// A request for random transfers of one of two.
#[derive(Clone, PartialEq, Eq)]
pub struct BitRequest(pub(super) Request);

impl BitRequest {
    /// Bytes of a request for so many transfers.
    pub fn bytes(field: FieldBits, transfers: usize) -> Result<usize, TransferError> {
        Ok(RequestShape::new(field, 1, transfers)?.request_bytes())
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
        Ok(Self(Request::from_bytes(
            RequestShape::new(field, 1, transfers)?,
            bytes,
        )?))
    }
}

/// For each transfer whether the wanted choice differs from the random one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BitCorrections(Vec<u8>);

impl BitCorrections {
    /// Bytes of the corrections of so many transfers.
    pub fn bytes(transfers: usize) -> usize {
        transfers.div_ceil(8)
    }

    /// The corrections as they are sent: the first is the lowest bit of the first byte.
    pub fn to_bytes(&self) -> Vec<u8> {
        let byte = |bits: &[u8]| bits.iter().rev().fold(0, |byte, bit| byte << 1 | bit);
        self.0.chunks(8).map(byte).collect()
    }

    /// The corrections as they arrived.
    pub fn from_bytes(transfers: usize, bytes: &[u8]) -> Result<Self, TransferError> {
        let what = "the corrections";
        expect_length(what, bytes, Self::bytes(transfers))?;
        let mut bits: Vec<u8> = bytes
            .iter()
            .flat_map(|b| (0..8).map(move |n| b >> n & 1))
            .collect();
        match bits[transfers..].iter().all(|bit| *bit == 0) {
            true => bits.truncate(transfers),
            false => return Err(TransferError::Padding { what }),
        }
        Ok(Self(bits))
    }

    /// The corrections of some of the transfers.
    pub fn part(&self, range: Range<usize>) -> Result<Self, TransferError> {
        let expected = self.0.len();
        let part = self.0.get(range.clone());
        let what = "a part of the corrections";
        let part = part.ok_or(TransferError::CountMismatch {
            what,
            got: range.end,
            expected,
        })?;
        Ok(Self(part.to_vec()))
    }
}

/// Checks the length of pads: their number of hashed words.
fn pad_words(pad_bytes: usize) -> Result<usize, TransferError> {
    match pad_bytes {
        1..=MAX_PAD_BYTES => Ok(pad_bytes.div_ceil(16)),
        _ => Err(TransferError::PadBytes(pad_bytes)),
    }
}

/// Sets what the words of a row's pad are hashed from.
fn set_words(row: u128, inputs: &mut [u128]) {
    for (number, input) in inputs.iter_mut().enumerate() {
        *input = row ^ number as u128;
    }
}

/// Words as bytes, lowest first.
fn write_bytes(words: &[u128], bytes: &mut [u8]) {
    for (word, bytes) in words.iter().zip(bytes.chunks_exact_mut(16)) {
        bytes.copy_from_slice(&word.to_le_bytes());
    }
}

/// The chooser's side of random transfers that are not yet used.
pub struct RandomBits(TransferPart<RandomChoices>);

struct RandomChoices {
    choices: Zeroizing<Vec<u8>>,
    rows: Arc<ExtendedRows>,
}

/// The chooser's side of transfers with the wanted choices.
pub struct ChosenBits(TransferPart<WantedChoices>);

struct WantedChoices {
    /// Of the transfers from `first` on.
    wanted: Zeroizing<Vec<u8>>,
    first: usize,
    rows: Arc<ExtendedRows>,
}

/// The sender's side of random transfers that are not yet used.
pub struct BitKeys(TransferPart<BitKeyRows>);

struct BitKeyRows {
    rows: ExtendedRows,
    multiples: Arc<Multiples>,
}

parts!(RandomBits, ChosenBits, BitKeys);

impl RandomBits {
    /// Step 11: from the random choices to the wanted ones.
    pub fn correct(self, wanted: &[bool]) -> Result<(BitCorrections, ChosenBits), TransferError> {
        expect_count("the list of choices", wanted.len(), self.count())?;
        let TransferPart { shared, range } = self.0;
        let wanted = Zeroizing::new(wanted.iter().map(|w| u8::from(*w)).collect::<Vec<u8>>());
        let random = &shared.choices[range.clone()];
        let corrections = wanted.iter().zip(random).map(|(w, r)| w ^ r).collect();
        let chosen = WantedChoices {
            wanted,
            first: range.start,
            rows: Arc::clone(&shared.rows),
        };
        let shared = Arc::new(chosen);
        Ok((
            BitCorrections(corrections),
            ChosenBits(TransferPart { shared, range }),
        ))
    }
}

impl ChosenBits {
    /// The choices, one a transfer.
    pub(super) fn wanted(&self) -> Zeroizing<Vec<u8>> {
        let TransferPart { shared, range } = &self.0;
        let range = range.start - shared.first..range.end - shared.first;
        Zeroizing::new(shared.wanted[range].to_vec())
    }

    /// Step 13: the pad of the choice in every transfer, `pad_bytes` long.
    pub fn pads(
        self,
        pad_bytes: usize,
        mut each: impl FnMut(usize, &[u8]),
    ) -> Result<(), TransferError> {
        let count = pad_words(pad_bytes)?;
        let mut pad = Zeroizing::new(vec![0; count * 16]);
        let TransferPart { shared, range } = self.0;
        let rows = &shared.rows;
        rows.hash.run(
            rows.numbers(&range),
            count,
            |number, inputs| set_words(rows.words[range.start + number], inputs),
            |number, hashed| {
                write_bytes(hashed, &mut pad);
                each(number, &pad[..pad_bytes]);
            },
        );
        Ok(())
    }
}

impl BitKeys {
    /// Step 12: in every transfer the pads for choice `false` and `true`, `pad_bytes` long.
    pub fn pads(
        self,
        corrections: &BitCorrections,
        pad_bytes: usize,
        mut each: impl FnMut(usize, &[u8], &[u8]),
    ) -> Result<(), TransferError> {
        expect_count("the list of corrections", corrections.0.len(), self.count())?;
        let count = pad_words(pad_bytes)?;
        let TransferPart { shared, range } = self.0;
        let BitKeyRows { rows, multiples } = shared.as_ref();
        let delta = multiples.rows()[1];
        let mut pads = Zeroizing::new(vec![0; 2 * count * 16]);
        rows.hash.run(
            rows.numbers(&range),
            2 * count,
            |number, inputs| {
                let row = rows.words[range.start + number];
                let (zero, one) = inputs.split_at_mut(count);
                // The correction is public.
                let [first, second] = match corrections.0[number] {
                    0 => [zero, one],
                    _ => [one, zero],
                };
                set_words(row, first);
                set_words(row ^ delta, second);
            },
            |number, hashed| {
                write_bytes(hashed, &mut pads);
                let (zero, one) = pads.split_at(count * 16);
                each(number, &zero[..pad_bytes], &one[..pad_bytes]);
            },
        );
        Ok(())
    }
}

impl Chooser {
    /// Asks for random transfers of one of two (steps 6, 8 and 9).
    pub fn extend_bits(
        &mut self,
        transfers: usize,
    ) -> Result<(BitRequest, RandomBits), TransferError> {
        let shape = RequestShape::new(self.field(), 1, transfers)?;
        let (request, u, rows) = self.extend(shape)?;
        let bits = u
            .iter()
            .flat_map(|word| (0..128).map(move |n| (word >> n) as u8 & 1));
        let random = RandomChoices {
            choices: Zeroizing::new(bits.take(transfers).collect::<Vec<u8>>()),
            rows: rows.into(),
        };
        let random = RandomBits(TransferPart::whole(random, transfers));
        Ok((BitRequest(request), random))
    }
}

impl Sender {
    /// Takes part in random transfers of one of two (steps 7 and 10).
    pub fn accept_bits(&mut self, request: &BitRequest) -> Result<BitKeys, TransferError> {
        let (rows, multiples) = self.accept(&request.0)?;
        let keys = BitKeyRows { rows, multiples };
        Ok(BitKeys(TransferPart::whole(keys, request.0.shape.rows)))
    }
}

impl fmt::Debug for BitRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BitRequest({} transfers)", self.0.shape.rows)
    }
}
