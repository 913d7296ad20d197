//! Oblivious transfer: a chooser reads one entry of a sender's table; the sender does not learn
//! which, the chooser learns no other.
//!
//! | layer | file | follows |
//! | --- | --- | --- |
//! | base transfers | `base.rs` | Chou, Orlandi 2015, over Ristretto |
//! | extension | `extension.rs` | Ishai, Kilian, Nissim, Petrank 2003; Asharov et al. 2013 |
//! | hash | `hash.rs` | Guo, Katz, Wang, Yu 2020, the construction TMMO |
//! | random transfers | `random.rs` | the extension as it stands |
//! | one of 2^k | `lookup.rs` | Naor, Pinkas 1999, with the hash in place of sums of PRFs |
//!
//! A chosen-message transfer is a lookup in a table of two entries, k = 1.
//!
//! Security is against parties that follow the protocol (semi-honest), at 128 bits. Steps, layout
//! of messages and the argument are in `docs/oblivious-transfer.md`; the numbers in the code are
//! the numbers there.
//!
//! ```
//! # use heda_crypto::{ot::{ChooserSetup, LookupSender}, random::Randomness};
//! # let mut rng = Randomness::seeded(1).fork("ot", 0).unwrap();
//! let (setup, first) = ChooserSetup::start(&mut rng);
//! let (mut sender, second) = LookupSender::setup(&first, &mut rng)?;
//! let mut chooser = setup.finish(&second)?;
//!
//! let (request, pending) = chooser.request(&[3, 0], 2)?;
//! let answer = sender.answer(&request, 2, 2, 1, |row, table| {
//!     table.copy_from_slice([b"abcd", b"efgh"][row])
//! })?;
//! assert_eq!(pending.finish(&answer, 1)?, b"de");
//! # Ok::<(), heda_crypto::ot::OtError>(())
//! ```

mod base;
mod extension;
mod hash;
mod lookup;
mod random;

pub use lookup::{ChooserSetup, LookupChooser, LookupSender, PendingLookup};
pub use random::{ChosenKey, KeyPair};

/// The widest table has 2^12 entries.
pub const MAX_INDEX_BITS: u32 = 12;
/// The longest entry of a table, in bytes.
pub const MAX_ENTRY_BYTES: usize = 16;
/// The most rows of one call.
pub const MAX_ROWS: usize = 1 << 20;
/// The most bytes of one answer.
pub const MAX_ANSWER_BYTES: usize = 1 << 30;
/// Bytes of the first message of the setup, chooser to sender.
pub const SETUP_FIRST_BYTES: usize = base::POINT_BYTES;
/// Bytes of the second message of the setup, sender to chooser.
pub const SETUP_SECOND_BYTES: usize = base::POINT_BYTES * base::BASE_TRANSFERS;

/// Why a transfer failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OtError {
    /// The peer sent a message that cannot belong here.
    #[error("{what} of the peer has {got} bytes where {expected} are due")]
    WrongLength {
        /// Which message.
        what: &'static str,
        /// What arrived.
        got: usize,
        /// What the parameters of the call demand.
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
    /// The peer answers another request, or a request was lost.
    #[error("the peer is at transfer {got}, this side at {expected}; begin a new session")]
    OutOfStep {
        /// Where the peer is.
        got: u64,
        /// Where this side is.
        expected: u64,
    },
    /// The caller asked for a table of a size that is not supported.
    #[error("an index of {0} bits; 1 to {MAX_INDEX_BITS} are possible")]
    IndexBits(u32),
    /// The caller asked for entries of a size that is not supported.
    #[error("entries of {0} bytes; 1 to {MAX_ENTRY_BYTES} are possible")]
    EntryBytes(usize),
    /// The caller's index lies outside the table. (Its value is secret and not shown.)
    #[error("the index of row {row} lies outside the table")]
    IndexOutOfRange {
        /// The row.
        row: usize,
    },
    /// The caller asked for too much in one call.
    #[error(
        "{rows} rows with {answer_bytes} bytes in one call; split it ({MAX_ROWS} rows and {MAX_ANSWER_BYTES} bytes are possible)"
    )]
    TooMuchAtOnce {
        /// The rows.
        rows: usize,
        /// The answer's length.
        answer_bytes: usize,
    },
    /// The keys of this session have been used as often as is safe.
    #[error("this session has made all transfers that its keys allow; begin a new one")]
    Exhausted,
}

/// Refuses a message of any other length.
fn expect_length(what: &'static str, message: &[u8], expected: usize) -> Result<(), OtError> {
    match message.len() {
        got if got == expected => Ok(()),
        got => Err(OtError::WrongLength {
            what,
            got,
            expected,
        }),
    }
}

#[cfg(test)]
mod tests;
