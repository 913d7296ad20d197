//! The layout of a request: rows cut into words of 128, words into blocks.
//!
//! Message: the number of the first transfer (8 bytes); for each block, each tree but the first and
//! each plane its bits, those of the masking rows last; the image of u; the digest of the image of v.

use super::field::FieldBits;
use super::stream::BLOCK_WORDS;
use super::{MAX_BATCH, TransferError, expect_length};
use std::ops::Range;

/// Bytes of the first transfer's number in front of a request.
const POSITION_BYTES: usize = 8;
/// Bytes of a word.
const WORD_BYTES: usize = 16;
/// Bytes of the digest at the end of a request.
const DIGEST_BYTES: usize = 32;

/// How a request of so many rows is cut into words and blocks. The last word holds the masking rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RequestShape {
    pub(super) field: FieldBits,
    /// Planes of u: one for bits, f for elements of the field.
    pub(super) planes: usize,
    pub(super) rows: usize,
}

impl RequestShape {
    /// Choices are bits (`planes` = 1) or elements of the field (`planes` = f).
    pub(super) fn new(field: FieldBits, planes: usize, rows: usize) -> Result<Self, TransferError> {
        match rows {
            0..=MAX_BATCH => Ok(Self {
                field,
                planes,
                rows,
            }),
            _ => Err(TransferError::TooManyAtOnce(rows)),
        }
    }

    pub(super) fn row_words(&self) -> usize {
        self.rows.div_ceil(128)
    }

    pub(super) fn blocks(&self) -> usize {
        (self.row_words() + 1).div_ceil(BLOCK_WORDS)
    }

    pub(super) fn block_words(&self, block: usize) -> Range<usize> {
        let end = (block + 1) * BLOCK_WORDS;
        block * BLOCK_WORDS..end.min(self.row_words() + 1)
    }

    /// Words of a block that hold rows.
    pub(super) fn block_row_words(&self, block: usize) -> usize {
        let words = self.block_words(block);
        words.end.min(self.row_words()) - words.start.min(self.row_words())
    }

    /// Bytes of a word that travel: of the last rows only as many as there are.
    pub(super) fn word_bytes(&self, word: usize) -> usize {
        match word + 1 == self.row_words() {
            true => self.rows.div_ceil(8) - word * WORD_BYTES,
            false => WORD_BYTES,
        }
    }

    /// Which bits of a word travel.
    pub(super) fn word_mask(&self, word: usize) -> u128 {
        u128::MAX >> (128 - 8 * self.word_bytes(word))
    }

    /// Bytes of one plane of one tree within a block.
    pub(super) fn plane_bytes(&self, block: usize) -> usize {
        self.block_words(block)
            .map(|word| self.word_bytes(word))
            .sum()
    }

    pub(super) fn sent_planes(&self) -> usize {
        (self.field.trees() - 1) * self.planes
    }

    pub(super) fn request_bytes(&self) -> usize {
        let columns = self.rows.div_ceil(8) + WORD_BYTES;
        let answer = self.planes * WORD_BYTES + DIGEST_BYTES;
        POSITION_BYTES + self.sent_planes() * columns + answer
    }

    /// Words of all planes of u in a block.
    pub(super) fn u_words(&self) -> usize {
        self.planes * BLOCK_WORDS
    }

    /// Words of all planes of v or w in a block.
    pub(super) fn v_words(&self) -> usize {
        self.field.base_transfers() * BLOCK_WORDS
    }

    /// Cuts the columns of a request into blocks.
    pub(super) fn cut<'a>(&self, mut columns: &'a [u8]) -> Vec<&'a [u8]> {
        let mut blocks = Vec::with_capacity(self.blocks());
        for block in 0..self.blocks() {
            let (part, rest) = columns.split_at(self.sent_planes() * self.plane_bytes(block));
            blocks.push(part);
            columns = rest;
        }
        blocks
    }
}

/// A request as bytes, of the length that its shape demands.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Request {
    pub(super) shape: RequestShape,
    pub(super) bytes: Vec<u8>,
}

impl Request {
    pub(super) fn from_bytes(shape: RequestShape, bytes: &[u8]) -> Result<Self, TransferError> {
        expect_length("the request", bytes, shape.request_bytes())?;
        Ok(Self {
            shape,
            bytes: bytes.to_vec(),
        })
    }

    /// Number of the first transfer, columns, image of u, digest.
    pub(super) fn parts(&self) -> (u64, &[u8], &[u8], &[u8]) {
        let (rest, digest) = self.bytes.split_at(self.bytes.len() - DIGEST_BYTES);
        let (rest, image) = rest.split_at(rest.len() - self.shape.planes * WORD_BYTES);
        let (position, columns) = rest.split_at(POSITION_BYTES);
        let mut first = [0; POSITION_BYTES];
        first.copy_from_slice(position);
        (u64::from_le_bytes(first), columns, image, digest)
    }
}
