//! The setup of a session: Δ, and trees of which the sender lacks the leaf that Δ names.
//!
//! Follows Roy 2022 (SoftSpoken): base transfers, then for each f bits of Δ a tree of 2^f leaves
//! that the chooser grows and the sender opens at these bits, then the check that the trees which
//! the sender opened are parts of whole trees.
//!
//! The chooser learns nothing about Δ, unless it spoils its trees for some values of Δ only. Then
//! the check ends the session for all others, and the chooser has guessed as many bits as its chance
//! to be right was small. The sender learns nothing about the leaf it lacks, which is what hides the
//! chooser's choices.
//!
//! Messages: 1. chooser → sender: a point. 2. sender → chooser: a point for each bit of Δ.
//! 3. chooser → sender: for each bit of Δ the sums of a level, masked; for each tree the sum of its
//! commitments; a digest of all commitments.

use super::base::{self, BaseSender, POINT_BYTES, Point};
use super::extension::{Chooser, ExtensionSession, Sender};
use super::field::FieldBits;
use super::ggm::{Punctured, Tree, TreeLabel, move_by};
use super::{TransferError, expect_count, expect_length, low_word, read_words};
use rand_core::CryptoRng;
use sha2::{Digest, Sha256};
use std::fmt;
use subtle::{Choice, ConstantTimeEq};
use zeroize::{Zeroize, Zeroizing};

/// First message of the setup, chooser to sender.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetupFirst(Point);

impl SetupFirst {
    /// Bytes of the message.
    pub const BYTES: usize = POINT_BYTES;

    /// The message as it is sent.
    pub fn to_bytes(&self) -> Vec<u8> {
        self.0.as_bytes().to_vec()
    }

    /// The message as it arrived.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, TransferError> {
        expect_length("the first setup message", bytes, Self::BYTES)?;
        Ok(Self(Point::decode(bytes, 0)?))
    }
}

/// Second message of the setup, sender to chooser.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetupSecond(Vec<Point>);

impl SetupSecond {
    /// Bytes of the message.
    pub fn bytes(field: FieldBits) -> usize {
        field.base_transfers() * POINT_BYTES
    }

    /// The message as it is sent.
    pub fn to_bytes(&self) -> Vec<u8> {
        self.0.iter().flat_map(|p| *p.as_bytes()).collect()
    }

    /// The message as it arrived.
    pub fn from_bytes(field: FieldBits, bytes: &[u8]) -> Result<Self, TransferError> {
        expect_length("the second setup message", bytes, Self::bytes(field))?;
        let points = bytes.chunks_exact(POINT_BYTES).enumerate();
        let points = points.map(|(index, bytes)| Point::decode(bytes, index));
        Ok(Self(points.collect::<Result<_, _>>()?))
    }
}

/// Third message of the setup, chooser to sender.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetupThird {
    /// For each bit of Δ what the sender gets if the bit is zero and if it is one, masked.
    offers: Vec<[u128; 2]>,
    /// For each tree the sum of its leaves' commitments.
    sums: Vec<[u128; 2]>,
    /// Of all commitments.
    digest: [u8; 32],
}

impl SetupThird {
    /// Bytes of the message.
    pub fn bytes(field: FieldBits) -> usize {
        32 * (field.base_transfers() + field.trees() + 1)
    }

    /// The message as it is sent.
    pub fn to_bytes(&self) -> Vec<u8> {
        let words = self.offers.iter().chain(&self.sums).flatten();
        let words = words.flat_map(|word| word.to_le_bytes());
        words.chain(self.digest).collect()
    }

    /// The message as it arrived.
    pub fn from_bytes(field: FieldBits, bytes: &[u8]) -> Result<Self, TransferError> {
        expect_length("the third setup message", bytes, Self::bytes(field))?;
        let (pairs, last) = bytes.split_at(bytes.len() - 32);
        let words: Vec<u128> = read_words(pairs).collect();
        let mut pairs = words.chunks_exact(2).map(|pair| [pair[0], pair[1]]);
        let offers = pairs.by_ref().take(field.base_transfers()).collect();
        let mut digest = [0; 32];
        digest.copy_from_slice(last);
        Ok(Self {
            offers,
            sums: pairs.collect(),
            digest,
        })
    }
}

/// What both sides have sent so far, as a running hash.
#[derive(Clone)]
pub(super) struct Transcript(Sha256);

impl Transcript {
    fn new(field: FieldBits, context: &[u8]) -> Self {
        let hash = Sha256::new()
            .chain_update(b"heda transfer: session")
            .chain_update([field.get() as u8])
            .chain_update((context.len() as u64).to_le_bytes())
            .chain_update(context);
        Self(hash)
    }

    /// Adds a message whose length is fixed by what came before.
    pub(super) fn add(&mut self, message: &[u8]) {
        self.0.update(message);
    }

    /// A digest for one purpose.
    pub(super) fn digest(&self, purpose: &str) -> [u8; 32] {
        let whole = self.0.clone().finalize();
        Sha256::new()
            .chain_update(whole)
            .chain_update(purpose)
            .finalize()
            .into()
    }

    /// A word for one purpose.
    pub(super) fn word(&self, purpose: &str) -> u128 {
        low_word(&self.digest(purpose))
    }
}

/// The commitment to a leaf and the key of its stream, both random oracles of the leaf.
fn commit(label: &TreeLabel, place: u8, leaf: u128) -> ([u128; 2], u128) {
    let hash = |purpose: &[u8]| -> [u8; 32] {
        let hash = Sha256::new()
            .chain_update(purpose)
            .chain_update(label.0)
            .chain_update([place])
            .chain_update(leaf.to_le_bytes());
        hash.finalize().into()
    };
    let commitment = hash(b"heda transfer: leaf commitment");
    let mut words = read_words(&commitment);
    let words = [(); 2].map(|()| words.next().unwrap_or_default());
    (words, low_word(&hash(b"heda transfer: leaf stream")))
}

/// The digest of all commitments, tree after tree, leaf after leaf.
fn digest(commitments: &[Vec<[u128; 2]>]) -> [u8; 32] {
    let mut hash = Sha256::new();
    hash.update(b"heda transfer: commitments");
    for word in commitments.iter().flatten().flatten() {
        hash.update(word.to_le_bytes());
    }
    hash.finalize().into()
}

fn add_pairs(a: [u128; 2], b: &[u128; 2]) -> [u128; 2] {
    [a[0] ^ b[0], a[1] ^ b[1]]
}

/// The labels of the setup's trees.
fn labels(transcript: &Transcript, field: FieldBits) -> Vec<TreeLabel> {
    let first = transcript.word("setup trees");
    let label = |tree: usize| TreeLabel((first ^ tree as u128).to_le_bytes());
    (0..field.trees()).map(label).collect()
}

/// The chooser between its two messages.
pub struct ChooserSetup {
    field: FieldBits,
    base: BaseSender,
    transcript: Transcript,
}

impl ChooserSetup {
    /// Step 1. `context` names what the session is for; both sides must give the same.
    pub fn start<R: CryptoRng + ?Sized>(
        field: FieldBits,
        context: &[u8],
        rng: &mut R,
    ) -> (Self, SetupFirst) {
        let (base, first) = BaseSender::start(rng);
        let first = SetupFirst(first);
        let mut transcript = Transcript::new(field, context);
        transcript.add(&first.to_bytes());
        (
            Self {
                field,
                base,
                transcript,
            },
            first,
        )
    }

    /// Steps 3 and 4: grows the trees. The chooser is ready as soon as the message has left.
    pub fn finish<R: CryptoRng + ?Sized>(
        self,
        second: &SetupSecond,
        rng: &mut R,
    ) -> Result<(Chooser, SetupThird), TransferError> {
        let grown = self.grow(second, rng)?;
        let third = grown.third.clone();
        Ok((grown.ready(), third))
    }

    /// Both steps, up to the message.
    pub(super) fn grow<R: CryptoRng + ?Sized>(
        mut self,
        second: &SetupSecond,
        rng: &mut R,
    ) -> Result<Grown, TransferError> {
        let field = self.field;
        let count = second.0.len();
        expect_count("the second setup message", count, field.base_transfers())?;
        self.transcript.add(&second.to_bytes());
        let masks = self.base.finish(&second.0);
        let mut offers = Vec::with_capacity(field.base_transfers());
        let mut sums = Vec::with_capacity(field.trees());
        let mut commitments = Vec::with_capacity(field.trees());
        let mut streams = Zeroizing::new(Vec::with_capacity(field.trees()));
        let labels = labels(&self.transcript, field);
        for (label, masks) in labels.iter().zip(masks.chunks_exact(field.get())) {
            let mut seed = Zeroizing::new([0; 16]);
            rng.fill_bytes(seed.as_mut());
            let tree = Tree::grow(label, u128::from_le_bytes(*seed), field.get());
            let masked = tree.offers().zip(masks);
            offers.extend(masked.map(|(offer, mask)| add_pairs(offer, mask)));
            let leaves = tree.leaves().iter().enumerate();
            let leaves = leaves.map(|(place, leaf)| commit(label, place as u8, *leaf));
            let (committed, keys): (Vec<_>, Vec<_>) = leaves.unzip();
            sums.push(committed.iter().fold([0; 2], add_pairs));
            commitments.push(committed);
            streams.push(keys);
        }
        let digest = digest(&commitments);
        commitments.zeroize();
        Ok(Grown {
            field,
            third: SetupThird {
                offers,
                sums,
                digest,
            },
            streams,
            transcript: self.transcript,
        })
    }
}

/// A chooser whose third message is written.
pub(super) struct Grown {
    field: FieldBits,
    pub(super) third: SetupThird,
    streams: Zeroizing<Vec<Vec<u128>>>,
    transcript: Transcript,
}

impl Grown {
    pub(super) fn ready(mut self) -> Chooser {
        self.transcript.add(&self.third.to_bytes());
        Chooser::new(
            ExtensionSession::new(self.field, self.transcript),
            &self.streams,
        )
    }
}

/// The sender between the chooser's two messages.
pub struct SenderSetup {
    field: FieldBits,
    delta: Zeroizing<Vec<u8>>,
    keys: Zeroizing<Vec<u128>>,
    transcript: Transcript,
}

impl SenderSetup {
    /// Step 2: draws Δ and takes part in the base transfers.
    pub fn answer<R: CryptoRng + ?Sized>(
        field: FieldBits,
        context: &[u8],
        first: &SetupFirst,
        rng: &mut R,
    ) -> (Self, SetupSecond) {
        let mut transcript = Transcript::new(field, context);
        transcript.add(&first.to_bytes());
        let mut delta = Zeroizing::new(vec![0; field.trees()]);
        rng.fill_bytes(&mut delta);
        delta
            .iter_mut()
            .for_each(|part| *part &= (field.elements() - 1) as u8);
        let bits = delta.iter().flat_map(|part| path(field, *part));
        let (keys, second) = base::choose(&first.0, bits, rng);
        let second = SetupSecond(second);
        transcript.add(&second.to_bytes());
        (
            Self {
                field,
                delta,
                keys,
                transcript,
            },
            second,
        )
    }

    /// Step 5: opens the trees and checks them.
    pub fn finish(mut self, third: &SetupThird) -> Result<Sender, TransferError> {
        let field = self.field;
        // No two widths have as many trees, and the width says how many offers a message has.
        expect_count("the third setup message", third.sums.len(), field.trees())?;
        let mut commitments = Vec::with_capacity(field.trees());
        let mut streams = Zeroizing::new(Vec::with_capacity(field.trees()));
        for (tree, label) in labels(&self.transcript, field).iter().enumerate() {
            let levels = tree * field.get()..(tree + 1) * field.get();
            let offers = third.offers[levels.clone()].iter().zip(&self.keys[levels]);
            let delta = self.delta[tree];
            let sums: Zeroizing<Vec<u128>> = Zeroizing::new(
                offers
                    .zip(path(field, delta))
                    .map(|((offer, key), side)| select(offer, side) ^ key)
                    .collect(),
            );
            let (committed, keys) = self.open(label, delta, &sums, &third.sums[tree]);
            commitments.push(committed);
            streams.push(keys);
        }
        let right = digest(&commitments).ct_eq(&third.digest);
        commitments.zeroize();
        if !bool::from(right) {
            return Err(TransferError::InconsistentTrees);
        }
        self.transcript.add(&third.to_bytes());
        let session = ExtensionSession::new(field, self.transcript);
        Ok(Sender::new(session, &self.delta, &streams))
    }

    #[cfg(test)]
    pub(super) fn delta(&self) -> &[u8] {
        &self.delta
    }

    /// The commitments of a tree in order, the missing one from their sum; and the streams' keys
    /// of all leaves but the missing one, leaf x in place x ⊕ `delta` − 1.
    fn open(
        &self,
        label: &TreeLabel,
        delta: u8,
        sums: &[u128],
        committed_sum: &[u128; 2],
    ) -> (Vec<[u128; 2]>, Vec<u128>) {
        let leaves = Punctured::open_relative(label, delta, sums);
        let known = leaves.iter().enumerate().skip(1);
        let known = known.map(|(y, leaf)| commit(label, y as u8 ^ delta, *leaf));
        let (mut committed, keys): (Vec<_>, Vec<_>) = known.unzip();
        let missing = committed.iter().fold(*committed_sum, add_pairs);
        committed.insert(0, missing);
        let [mut low, mut high] =
            [0, 1].map(|n| committed.iter().map(|c| c[n]).collect::<Vec<_>>());
        move_by(&mut low, delta);
        move_by(&mut high, delta);
        (
            low.into_iter().zip(high).map(|(l, h)| [l, h]).collect(),
            keys,
        )
    }
}

/// The path from the root to a leaf: its bits, highest first.
fn path(field: FieldBits, leaf: u8) -> impl Iterator<Item = Choice> {
    (0..field.get())
        .rev()
        .map(move |bit| Choice::from(leaf >> bit & 1))
}

fn select(pair: &[u128; 2], side: Choice) -> u128 {
    use subtle::ConditionallySelectable;
    u128::conditional_select(&pair[0], &pair[1], side)
}

impl fmt::Debug for ChooserSetup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ChooserSetup({:?})", self.field)
    }
}

impl fmt::Debug for SenderSetup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SenderSetup({:?})", self.field)
    }
}
