//! From the trees of the setup to any number of random transfers.
//!
//! Follows Roy 2022, sections 4 and 5, with the repetition code. In every tree i the chooser has
//! columns u_i and v_i, the sender w_i = v_i + u_i·Δ_i. The chooser takes u = u_0 as its choices and
//! sends c_i = u_i − u for the other trees; the sender adds c_i·Δ_i. Then the check, then, seen by
//! rows, the sender has w = v + u·Δ: hashes of w − y·Δ, for all y, are its keys, and the hash of v is
//! the one that the chooser has.
//!
//! Message: a request, laid out in `request.rs`.

use super::check::{self, Challenge, Image};
use super::field::{FieldBits, Multiples, ROW_BITS};
use super::hash::RowHash;
use super::request::{Request, RequestShape};
use super::setup::Transcript;
use super::stream::{BLOCK_WORDS, Leaves, StreamPlace, Summation};
use super::transpose::transpose;
use super::{MAX_STREAM_WORDS, MAX_TRANSFERS, TransferError, TreeLabel};
use super::{expect_field, read_words};
use rayon::prelude::*;
use sha2::{Digest, Sha256};
use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

/// What both sides count and know alike.
pub(super) struct ExtensionSession {
    field: FieldBits,
    transcript: Transcript,
    hash: RowHash,
    trees: u128,
    next_row: u64,
    position: u64,
}

impl ExtensionSession {
    pub(super) fn new(field: FieldBits, transcript: Transcript) -> Self {
        Self {
            field,
            hash: RowHash::new(transcript.word("keys of rows")),
            trees: transcript.word("labels of trees"),
            transcript,
            next_row: 0,
            position: 0,
        }
    }

    /// Where block `block` lies in the streams.
    fn place(&self, shape: &RequestShape, block: usize) -> StreamPlace {
        StreamPlace {
            position: self.position + (block * shape.u_words()) as u64,
            planes: shape.planes,
            words: shape.block_words(block).len(),
        }
    }

    /// Whether so many transfers are left.
    fn reserve(&self, shape: &RequestShape) -> Result<(), TransferError> {
        let rows = self.next_row + shape.rows as u64;
        let words = self.position + (shape.blocks() * shape.u_words()) as u64;
        match rows <= MAX_TRANSFERS && words <= MAX_STREAM_WORDS {
            true => Ok(()),
            false => Err(TransferError::Exhausted),
        }
    }

    /// The challenge to a request: from all that went before, its shape and its columns.
    fn challenge(&self, shape: &RequestShape, blocks: &[[u8; 32]]) -> Challenge {
        let mut before = self.transcript.clone();
        for number in [shape.planes as u64, shape.rows as u64, self.next_row] {
            before.add(&number.to_le_bytes());
        }
        Challenge::new(&before.digest("request"), blocks)
    }

    /// Moves on; what follows depends on this request.
    fn advance(
        &mut self,
        shape: &RequestShape,
        challenge: &Challenge,
        image: &[u8],
        digest: &[u8],
    ) {
        self.transcript.add(challenge.as_bytes());
        self.transcript.add(image);
        self.transcript.add(digest);
        self.next_row += shape.rows as u64;
        self.position += (shape.blocks() * shape.u_words()) as u64;
    }
}

/// Rows of a batch, numbered through the session.
pub(super) struct ExtendedRows {
    pub(super) hash: RowHash,
    pub(super) first: u64,
    pub(super) words: Zeroizing<Vec<u128>>,
}

impl ExtendedRows {
    /// The numbers in the session of some of the batch's rows.
    pub(super) fn numbers(&self, range: &Range<usize>) -> Range<u64> {
        self.first + range.start as u64..self.first + range.end as u64
    }
}

/// The first 128 planes of a block, seen by rows.
fn write_rows(planes: &[u128], rows: &mut [u128]) {
    let mut square = Zeroizing::new([0; ROW_BITS]);
    for (word, rows) in rows.chunks_mut(128).enumerate() {
        for (side, plane) in square.iter_mut().zip(planes.chunks_exact(BLOCK_WORDS)) {
            *side = plane[word];
        }
        transpose(&mut square);
        rows.copy_from_slice(&square[..rows.len()]);
    }
}

/// Zeroes what does not travel.
fn cut_last_word(shape: &RequestShape, block: usize, planes: &mut [u128]) {
    let words = shape.block_words(block);
    if shape.row_words() > 0 && words.contains(&(shape.row_words() - 1)) {
        let last = shape.row_words() - 1;
        for plane in planes.chunks_exact_mut(BLOCK_WORDS) {
            plane[last - words.start] &= shape.word_mask(last);
        }
    }
}

/// The columns of a request, before the challenge.
pub(super) struct Draft {
    shape: RequestShape,
    /// The bytes of every block's corrections.
    pub(super) parts: Vec<Vec<u8>>,
    pub(super) u: Zeroizing<Vec<u128>>,
    pub(super) v: Zeroizing<Vec<u128>>,
}

/// The party that makes requests and gets one key of each transfer. It cannot be cloned or stored.
pub struct Chooser {
    session: ExtensionSession,
    trees: Vec<Leaves>,
}

impl Chooser {
    pub(super) fn new(session: ExtensionSession, keys: &[Vec<u128>]) -> Self {
        let trees = keys
            .iter()
            .enumerate()
            .map(|(n, keys)| Leaves::all(n, keys));
        Self {
            trees: trees.collect(),
            session,
        }
    }

    /// The field of the session.
    pub fn field(&self) -> FieldBits {
        self.session.field
    }

    /// The label of a tree that is not of the setup. Each number serves one tree.
    pub fn tree_label(&self, number: u64) -> TreeLabel {
        TreeLabel((self.session.trees ^ u128::from(number)).to_le_bytes())
    }

    /// Steps 6, 8 and 9: a request, the choices u (block by block, plane by plane) and the rows v.
    pub(super) fn extend(
        &mut self,
        shape: RequestShape,
    ) -> Result<(Request, Zeroizing<Vec<u128>>, ExtendedRows), TransferError> {
        let draft = self.draft(shape)?;
        Ok(self.close(draft))
    }

    /// Step 6: all columns.
    pub(super) fn draft(&self, shape: RequestShape) -> Result<Draft, TransferError> {
        self.session.reserve(&shape)?;
        let mut u = Zeroizing::new(vec![0; shape.blocks() * shape.u_words()]);
        let mut v = Zeroizing::new(vec![0; shape.blocks() * shape.v_words()]);
        let parts = u
            .par_chunks_mut(shape.u_words())
            .zip(v.par_chunks_mut(shape.v_words()))
            .enumerate()
            .map(|(block, (u, v))| self.columns(&shape, block, u, v))
            .collect();
        Ok(Draft { shape, parts, u, v })
    }

    /// Steps 8 and 9: the answer to the challenge that the columns lead to.
    pub(super) fn close(&mut self, draft: Draft) -> (Request, Zeroizing<Vec<u128>>, ExtendedRows) {
        let Draft { shape, parts, u, v } = draft;
        let digests: Vec<[u8; 32]> = parts.par_iter().map(|p| Sha256::digest(p).into()).collect();
        let challenge = self.session.challenge(&shape, &digests);
        let (u_image, v_image) = u
            .par_chunks(shape.u_words())
            .zip(v.par_chunks(shape.v_words()))
            .enumerate()
            .map(|(block, (u, v))| {
                let (map, rows) = (challenge.block(block), shape.block_row_words(block));
                let masked = block + 1 == shape.blocks();
                (map.image(u, rows, masked), map.image(v, rows, masked))
            })
            .reduce_with(|a, b| (check::add(a.0, b.0), check::add(a.1, b.1)))
            .unwrap_or_default();
        let mut bytes = Vec::with_capacity(shape.request_bytes());
        bytes.extend(self.session.next_row.to_le_bytes());
        parts.iter().for_each(|part| bytes.extend(part));
        bytes.extend(u_image.iter().flat_map(|word| word.to_le_bytes()));
        bytes.extend(challenge.seal(&v_image));
        let request = Request { shape, bytes };
        let rows = finish(&mut self.session, &request, &challenge, &v);
        (request, u, rows)
    }

    /// Step 6: u and v of a block, and the bytes of its corrections.
    fn columns(
        &self,
        shape: &RequestShape,
        block: usize,
        u: &mut [u128],
        v: &mut [u128],
    ) -> Vec<u8> {
        let mut room = Summation::new(shape.field, self.session.place(shape, block));
        let words = shape.block_words(block);
        let mut bytes = Vec::with_capacity(shape.sent_planes() * shape.plane_bytes(block));
        let mut own = Zeroizing::new(vec![0; shape.u_words()]);
        let columns = v.chunks_exact_mut(shape.field.get() * BLOCK_WORDS);
        for (number, (leaves, v)) in self.trees.iter().zip(columns).enumerate() {
            room.all_leaves(leaves, &mut own, v);
            if number == 0 {
                u.copy_from_slice(&own);
                continue;
            }
            for (own, u) in own
                .chunks_exact(BLOCK_WORDS)
                .zip(u.chunks_exact(BLOCK_WORDS))
            {
                for (word, (own, u)) in words.clone().zip(own.iter().zip(u)) {
                    bytes.extend(&(own ^ u).to_le_bytes()[..shape.word_bytes(word)]);
                }
            }
        }
        cut_last_word(shape, block, u);
        cut_last_word(shape, block, v);
        bytes
    }
}

/// The rows of a checked batch, and the session after it.
fn finish(
    session: &mut ExtensionSession,
    request: &Request,
    challenge: &Challenge,
    planes: &[u128],
) -> ExtendedRows {
    let shape = &request.shape;
    let mut words = Zeroizing::new(vec![0; shape.rows]);
    words
        .par_chunks_mut(BLOCK_WORDS * 128)
        .zip(planes.par_chunks(shape.v_words()))
        .for_each(|(rows, planes)| write_rows(planes, rows));
    let rows = ExtendedRows {
        hash: session.hash,
        first: session.next_row,
        words,
    };
    let (_, _, image, digest) = request.parts();
    session.advance(shape, challenge, image, digest);
    rows
}

/// The secrets of a sender.
struct Secrets {
    delta: Zeroizing<Vec<u8>>,
    trees: Vec<Leaves>,
    multiples: Arc<Multiples>,
}

/// The party that has all keys of each transfer. It cannot be cloned or stored.
pub struct Sender {
    session: ExtensionSession,
    secrets: Option<Secrets>,
}

impl Sender {
    pub(super) fn new(session: ExtensionSession, delta: &[u8], keys: &[Vec<u128>]) -> Self {
        let trees = keys
            .iter()
            .enumerate()
            .map(|(n, keys)| Leaves::all_but_first(n, keys));
        let secrets = Secrets {
            delta: Zeroizing::new(delta.to_vec()),
            trees: trees.collect(),
            multiples: Multiples::new(session.field, delta).into(),
        };
        Self {
            session,
            secrets: Some(secrets),
        }
    }

    /// The field of the session.
    pub fn field(&self) -> FieldBits {
        self.session.field
    }

    /// The label of a tree that is not of the setup. Each number serves one tree.
    pub fn tree_label(&self, number: u64) -> TreeLabel {
        TreeLabel((self.session.trees ^ u128::from(number)).to_le_bytes())
    }

    #[cfg(test)]
    pub(super) fn delta(&self) -> Vec<u8> {
        let secrets = self.secrets.as_ref();
        secrets.map(|s| s.delta.to_vec()).unwrap_or_default()
    }

    /// Whether a request failed the check. Then there is nothing left that could be used.
    pub fn is_poisoned(&self) -> bool {
        self.secrets.is_none()
    }

    /// Steps 7 and 10: the rows w of a request and the multiples of Δ, if the request passes.
    pub(super) fn accept(
        &mut self,
        request: &Request,
    ) -> Result<(ExtendedRows, Arc<Multiples>), TransferError> {
        let secrets = self.secrets.as_ref().ok_or(TransferError::Poisoned)?;
        let shape = &request.shape;
        expect_field("the request", shape.field, self.session.field)?;
        self.session.reserve(shape)?;
        let (first, columns, image, digest) = request.parts();
        if first != self.session.next_row {
            let expected = self.session.next_row;
            return Err(TransferError::OutOfStep {
                got: first,
                expected,
            });
        }
        let parts = shape.cut(columns);
        let digests: Vec<[u8; 32]> = parts.par_iter().map(|p| Sha256::digest(p).into()).collect();
        let challenge = self.session.challenge(shape, &digests);
        let mut w = Zeroizing::new(vec![0; shape.blocks() * shape.v_words()]);
        let w_image = w
            .par_chunks_mut(shape.v_words())
            .zip(parts)
            .enumerate()
            .map(|(block, (w, part))| {
                self.columns(secrets, shape, block, part, w);
                let (map, rows) = (challenge.block(block), shape.block_row_words(block));
                map.image(w, rows, block + 1 == shape.blocks())
            })
            .reduce_with(check::add)
            .unwrap_or_default();
        let expected = expected_image(secrets, shape, w_image, image);
        if !bool::from(challenge.seal(&expected).ct_eq(digest)) {
            self.secrets = None;
            return Err(TransferError::InconsistentRequest);
        }
        let multiples = secrets.multiples.clone();
        Ok((
            finish(&mut self.session, request, &challenge, &w),
            multiples,
        ))
    }

    /// Step 7: w of a block.
    fn columns(
        &self,
        secrets: &Secrets,
        shape: &RequestShape,
        block: usize,
        part: &[u8],
        w: &mut [u128],
    ) {
        let mut room = Summation::new(shape.field, self.session.place(shape, block));
        let words = shape.block_words(block);
        let mut corrections = vec![0; shape.u_words()];
        let mut rest = part;
        let columns = w.chunks_exact_mut(shape.field.get() * BLOCK_WORDS);
        for (number, (leaves, w)) in secrets.trees.iter().zip(columns).enumerate() {
            if number > 0 {
                for plane in corrections.chunks_exact_mut(BLOCK_WORDS) {
                    for (word, correction) in words.clone().zip(plane) {
                        let (bytes, after) = rest.split_at(shape.word_bytes(word));
                        *correction = read_words(bytes).next().unwrap_or_default();
                        rest = after;
                    }
                }
            }
            let delta = secrets.delta[number];
            room.all_but_one(leaves, delta, &corrections, w);
        }
        cut_last_word(shape, block, w);
    }
}

/// The image of v that the chooser must have, from that of w and the one of u that it sent.
fn expected_image(
    secrets: &Secrets,
    shape: &RequestShape,
    mut w_image: Image,
    u_image: &[u8],
) -> Image {
    let u_image: Vec<u128> = read_words(u_image).collect();
    let field = shape.field;
    for (delta, w) in secrets
        .delta
        .iter()
        .zip(w_image.chunks_exact_mut(field.get()))
    {
        let product = Zeroizing::new(field.scale(*delta, &u_image));
        w.iter_mut().zip(product.iter()).for_each(|(w, p)| *w ^= p);
    }
    w_image
}

impl fmt::Debug for Chooser {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Chooser(next transfer {})", self.session.next_row)
    }
}

impl fmt::Debug for Sender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = if self.is_poisoned() { ", poisoned" } else { "" };
        write!(f, "Sender(next transfer {}{state})", self.session.next_row)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{MAX_BATCH, tests::session};
    use super::*;

    #[test]
    fn a_session_ends_at_its_limits_on_both_sides() {
        let (mut chooser, mut sender) = session(2, 30);
        let refused =
            |chooser: &mut Chooser, transfers| chooser.extend_bits(transfers).unwrap_err();
        assert_eq!(
            refused(&mut chooser, MAX_BATCH + 1),
            TransferError::TooManyAtOnce(MAX_BATCH + 1)
        );
        let (request, _) = chooser.extend_bits(6).unwrap();
        sender.session.next_row = MAX_TRANSFERS - 5;
        let error = sender.accept_bits(&request).map(|_| ()).unwrap_err();
        assert_eq!(error, TransferError::Exhausted);
        chooser.session.next_row = MAX_TRANSFERS - 5;
        assert_eq!(refused(&mut chooser, 6), TransferError::Exhausted);
        assert!(chooser.extend_bits(5).is_ok());
        chooser.session.next_row = 0;
        chooser.session.position = MAX_STREAM_WORDS - BLOCK_WORDS as u64;
        assert!(chooser.extend_bits(1).is_ok());
        assert_eq!(refused(&mut chooser, 1), TransferError::Exhausted);
    }
}
