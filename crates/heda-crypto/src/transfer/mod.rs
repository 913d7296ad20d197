//! Oblivious transfer against parties that cheat: a chooser gets one of several keys of a sender;
//! the sender does not learn which, the chooser learns nothing of the others.
//!
//! | layer | file | follows |
//! | --- | --- | --- |
//! | base transfers | `base.rs` | Chou, Orlandi 2015, over Ristretto |
//! | trees | `ggm.rs` | Goldreich, Goldwasser, Micali 1986; Boyle et al. 2019 |
//! | setup | `setup.rs` | Roy 2022 (SoftSpoken), with the consistency check of the trees |
//! | columns | `stream.rs`, `field.rs` | Roy 2022, small-field VOLE |
//! | extension and check | `request.rs`, `extension.rs`, `check.rs` | Roy 2022, repetition code, Fiat–Shamir |
//! | hash | `hash.rs` | Guo, Katz, Wang, Weng, Yu 2020: a fresh key of AES for every transfer |
//! | one of two | `bits.rs` | |
//! | one of 2^f | `indices.rs` | |
//! | trees by transfers | `trees.rs` | |
//!
//! The [`Sender`] keeps a secret Δ for the whole session; the [`Chooser`] makes requests. A request
//! holds many random transfers, and is checked before the sender has a key of it. A request that
//! fails the check ends the session: see [`TransferError::is_cheating`]. Steps, messages and the
//! argument are in `docs/transfers.md`; the numbers in the code are the numbers there.
//!
//! ```
//! # use heda_crypto::{transfer::*, random::Randomness};
//! # let mut rng = Randomness::seeded(1).fork("transfer", 0).unwrap();
//! let field = FieldBits::DEFAULT;
//! let (chooser, first) = ChooserSetup::start(field, b"job 17", &mut rng);
//! let (sender, second) = SenderSetup::answer(field, b"job 17", &first, &mut rng);
//! let (mut chooser, third) = chooser.finish(&second, &mut rng)?;
//! let mut sender = sender.finish(&third)?;
//!
//! // Ahead of time: 3 random transfers of one of 64.
//! let (request, random) = chooser.extend_indices(3)?;
//! let keys = sender.accept_indices(&request)?;
//! // When the indices are known: 6 bits each, then pads of 8 bits for tables of 16 entries.
//! let (corrections, chosen) = random.correct(&[5, 0, 15])?;
//! let mut table = vec![0; 3 * 16];
//! keys.pads(&corrections, 4, 8, |row, pads| table[row * 16..][..16].copy_from_slice(pads))?;
//! assert_eq!(chosen.pads(8)?, [table[5], table[16], table[2 * 16 + 15]]);
//! # Ok::<(), TransferError>(())
//! ```

mod base;
mod bits;
mod check;
mod extension;
mod field;
mod ggm;
mod hash;
mod indices;
mod part;
mod request;
mod setup;
mod stream;
pub(crate) mod transpose;
mod trees;
mod wide;

pub use bits::{BitCorrections, BitKeys, BitRequest, ChosenBits, RandomBits};
pub use extension::{Chooser, Sender};
pub use field::FieldBits;
pub use ggm::{MAX_TREE_HEIGHT, Punctured, Tree, TreeLabel};
pub use indices::{ChosenIndices, IndexCorrections, IndexKeys, IndexRequest, RandomIndices};
pub use setup::{ChooserSetup, SenderSetup, SetupFirst, SetupSecond, SetupThird};
pub use trees::{TreeOffers, path_bits};
pub use wide::WideIndex;

/// The most transfers of one request.
pub const MAX_BATCH: usize = 1 << 22;
/// The most transfers of one session.
pub const MAX_TRANSFERS: u64 = 1 << 33;
/// The most words of a leaf's stream that one session uses.
const MAX_STREAM_WORDS: u64 = 1 << 30;
/// The longest pad of a transfer of one of two, in bytes.
pub const MAX_PAD_BYTES: usize = 4096;
/// The longest pad of a transfer of one of 2^f, in bits.
pub const MAX_ENTRY_BITS: u32 = 16;

/// Why a transfer failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TransferError {
    /// The peer sent a message that cannot belong here.
    #[error("{what} of the peer has {got} bytes where {expected} are due")]
    WrongLength {
        /// Which message.
        what: &'static str,
        /// What arrived.
        got: usize,
        /// What the parameters demand.
        expected: usize,
    },
    /// The peer sent 32 bytes that encode no group element, or encode one in a second way.
    #[error("point {index} of the peer is no canonical encoding of a group element")]
    NotAPoint {
        /// Which point of the message.
        index: usize,
    },
    /// The peer sent the neutral element, which would make a key public.
    #[error("point {index} of the peer is the identity")]
    IdentityPoint {
        /// Which point of the message.
        index: usize,
    },
    /// The peer's message has bits where none can be.
    #[error("{what} of the peer has bits set beyond its last entry")]
    Padding {
        /// Which message.
        what: &'static str,
    },
    /// A request was repeated, lost or made for another session.
    #[error(
        "the request begins at transfer {got}, this side is at {expected}; begin a new session"
    )]
    OutOfStep {
        /// Where the request begins.
        got: u64,
        /// Where this side is.
        expected: u64,
    },
    /// The chooser's trees contradict each other, or the sender's secret was guessed at.
    #[error("the chooser's trees failed the check; it cheated, and this session must not go on")]
    InconsistentTrees,
    /// The chooser's columns contradict each other, or the sender's secret was guessed at.
    #[error("the chooser's request failed the check; it cheated, and this session must not go on")]
    InconsistentRequest,
    /// An earlier request failed the check.
    #[error("an earlier request failed the check; begin a new session if that is acceptable")]
    Poisoned,
    /// Parts of different sessions or requests were mixed by the caller.
    #[error("{what} is for {got} transfers, but there are {expected}")]
    CountMismatch {
        /// What does not fit.
        what: &'static str,
        /// What was given.
        got: usize,
        /// What is there.
        expected: usize,
    },
    /// The caller's index lies outside the table. (Its value is secret and not shown.)
    #[error("the index of row {row} lies outside the table")]
    IndexOutOfRange {
        /// The row.
        row: usize,
    },
    /// A field that is not supported.
    #[error("a field of {0} bits; 2 to 8 are possible")]
    FieldBits(u32),
    /// Parts of sessions over different fields were mixed by the caller.
    #[error("{what} is for a field of {got} bits, the session has one of {expected}")]
    OtherField {
        /// What does not fit.
        what: &'static str,
        /// Bits of its field.
        got: usize,
        /// Bits of the session's field.
        expected: usize,
    },
    /// A table that is larger than the field.
    #[error("an index of {got} bits; 1 to {most} are possible")]
    IndexBits {
        /// What was asked for.
        got: u32,
        /// Bits of the field.
        most: u32,
    },
    /// Entries of a size that is not supported.
    #[error("entries of {0} bits; 1 to {MAX_ENTRY_BITS} are possible")]
    EntryBits(u32),
    /// Pads of a size that is not supported.
    #[error("pads of {0} bytes; 1 to {MAX_PAD_BYTES} are possible")]
    PadBytes(usize),
    /// Trees of a size that is not supported.
    #[error("trees of height {0}; 1 to {MAX_TREE_HEIGHT} are possible")]
    TreeHeight(usize),
    /// Too much in one request.
    #[error("{0} transfers in one request; split it ({MAX_BATCH} are possible)")]
    TooManyAtOnce(usize),
    /// The keys of this session have been used as often as is safe.
    #[error("this session has made all transfers that its keys allow; begin a new one")]
    Exhausted,
    /// Packed words of another length than so many have.
    #[error("{got} bytes where {expected} were expected")]
    PackedLength {
        /// What arrived.
        got: usize,
        /// What so many words take.
        expected: usize,
    },
    /// Bits after the last of the packed words.
    #[error("bits are set after the last number")]
    PackedPadding,
}

impl TransferError {
    /// Whether the peer failed a check that no honest peer fails. It may have learned up to as many
    /// bits of Δ as it took chances; whoever starts another session should count this.
    pub fn is_cheating(&self) -> bool {
        matches!(self, Self::InconsistentTrees | Self::InconsistentRequest)
    }
}

/// Refuses a message of any other length.
fn expect_length(what: &'static str, message: &[u8], expected: usize) -> Result<(), TransferError> {
    match message.len() {
        got if got == expected => Ok(()),
        got => Err(TransferError::WrongLength {
            what,
            got,
            expected,
        }),
    }
}

/// Refuses parts that do not belong together.
fn expect_count(what: &'static str, got: usize, expected: usize) -> Result<(), TransferError> {
    match got == expected {
        true => Ok(()),
        false => Err(TransferError::CountMismatch {
            what,
            got,
            expected,
        }),
    }
}

/// Refuses parts of a session over another field.
fn expect_field(
    what: &'static str,
    got: FieldBits,
    expected: FieldBits,
) -> Result<(), TransferError> {
    let (got, expected) = (got.get(), expected.get());
    match got == expected {
        true => Ok(()),
        false => Err(TransferError::OtherField {
            what,
            got,
            expected,
        }),
    }
}

/// The first 16 bytes of a digest.
fn low_word(digest: &[u8; 32]) -> u128 {
    let mut word = [0; 16];
    word.copy_from_slice(&digest[..16]);
    u128::from_le_bytes(word)
}

/// Words from their bytes, lowest first.
fn read_words(bytes: &[u8]) -> impl Iterator<Item = u128> + '_ {
    bytes.chunks(16).map(|chunk| {
        let mut word = [0; 16];
        word[..chunk.len()].copy_from_slice(chunk);
        u128::from_le_bytes(word)
    })
}

#[cfg(test)]
mod cheats;
#[cfg(test)]
mod misfits;
#[cfg(test)]
mod tests;
