//! Secure lookup: a table of one party read at a secret index of the other, for many rows at once.
//!
//! What it computes: for every row i the reader with index v_i below 2^k gets T_i\[v_i\], where T_i
//! is the owner's table for that row. The owner usually writes f((v − turn_i) mod 2^k) + mask_i:
//! then neither learns the value of f, and any function of a k-bit number is a table. The
//! transfer is that of [`heda_crypto::ot`], `docs/oblivious-transfer.md`.
//!
//! Who learns what: the reader one entry of each table; the owner nothing.
//!
//! Messages: 1. reader → owner: the request. 2. owner → reader: all tables, encrypted.
//!
//! ```
//! use heda_blocks::channel::Channel;
//! use heda_blocks::lookup::{TableOwner, TableReader};
//! use heda_crypto::random::Randomness;
//! use std::time::Duration;
//!
//! let (mut alice, mut bob) = Channel::pair(Duration::from_secs(10));
//! let randomness = Randomness::from_os();
//! let reader = std::thread::spawn(move || {
//!     let mut rng = randomness.fork("reader", 0)?;
//!     let mut reader = TableReader::set_up(&mut bob, &mut rng)?;
//!     reader.read(&mut bob, &[3, 0, 2], 2)
//! });
//! let mut rng = Randomness::from_os().fork("owner", 0)?;
//! let mut owner = TableOwner::set_up(&mut alice, &mut rng)?;
//! owner.serve(&mut alice, 3, 2, |row, table| {
//!     table.iter_mut().zip(0..).for_each(|(entry, v)| *entry = 100 * row as u64 + v * v);
//! })?;
//! let squares = reader.join().expect("the reader does not panic")?;
//! assert_eq!(squares[..], [9, 100, 204]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use crate::channel::{Channel, ChannelError};
use heda_crypto::ot::{self, ChooserSetup, LookupChooser, LookupSender, OtError, PendingLookup};
use heda_crypto::random::NoRandomness;
use rand_core::CryptoRng;
use zeroize::Zeroizing;

/// Tags of this block's messages, in wire order.
mod tag {
    /// Setup: the reader's message.
    pub(super) const FIRST: u8 = 0x10;
    /// Setup: the owner's answer.
    pub(super) const SECOND: u8 = 0x11;
    /// The reader's request.
    pub(super) const REQUEST: u8 = 0x12;
    /// The owner's tables.
    pub(super) const ANSWER: u8 = 0x13;
}

/// Bytes of an element of Z_{2^48}.
pub const WORD_BYTES: usize = 6;

/// Bytes of a lookup's answer, if that is not too much at once.
pub fn answer_bytes(rows: usize, index_bits: u32, entry_bytes: usize) -> Result<usize, OtError> {
    LookupSender::answer_bytes(rows, index_bits, entry_bytes)
}

/// Why a lookup failed.
#[derive(Debug, thiserror::Error)]
pub enum LookupError {
    /// The conversation broke.
    #[error(transparent)]
    Channel(#[from] ChannelError),
    /// The peer's message cannot be used.
    #[error("the peer's {message} is unusable: {error}")]
    Peer {
        /// Which message.
        message: &'static str,
        /// Why.
        error: OtError,
    },
    /// We asked for what cannot be done: an index or a size out of range.
    #[error(transparent)]
    Caller(OtError),
    /// The operating system failed us.
    #[error(transparent)]
    Randomness(#[from] NoRandomness),
}

fn peer(message: &'static str) -> impl Fn(OtError) -> LookupError {
    move |error| LookupError::Peer { message, error }
}

/// The party that reads. Its choices stay its own.
#[derive(Debug)]
pub struct TableReader {
    chooser: LookupChooser,
}

impl TableReader {
    /// Base transfers, once for any number of lookups.
    pub fn set_up<R: CryptoRng>(channel: &mut Channel, rng: &mut R) -> Result<Self, LookupError> {
        let (setup, first) = ChooserSetup::start(rng);
        channel.send(tag::FIRST, &first)?;
        let second = channel.receive(tag::SECOND, ot::SETUP_SECOND_BYTES)?;
        let chooser = setup
            .finish(&second)
            .map_err(peer("answer to the base transfers"))?;
        Ok(Self { chooser })
    }

    /// Reads entry `indices[row]` of every row's table of 2^`index_bits` numbers modulo 2^48.
    pub fn read(
        &mut self,
        channel: &mut Channel,
        indices: &[u16],
        index_bits: u32,
    ) -> Result<Zeroizing<Vec<u64>>, LookupError> {
        let (pending, answer) = self.ask(channel, indices, index_bits, WORD_BYTES)?;
        let read = pending.finish_u48(&answer).map_err(peer("tables"))?;
        channel.recycle(answer);
        Ok(Zeroizing::new(read))
    }

    /// Reads entries that are strings of `entry_bytes` bytes, row after row.
    pub fn read_strings(
        &mut self,
        channel: &mut Channel,
        indices: &[u16],
        index_bits: u32,
        entry_bytes: usize,
    ) -> Result<Zeroizing<Vec<u8>>, LookupError> {
        let (pending, answer) = self.ask(channel, indices, index_bits, entry_bytes)?;
        let read = pending
            .finish(&answer, entry_bytes)
            .map_err(peer("tables"))?;
        channel.recycle(answer);
        Ok(Zeroizing::new(read))
    }

    /// Messages 1 and 2.
    fn ask(
        &mut self,
        channel: &mut Channel,
        indices: &[u16],
        index_bits: u32,
        entry_bytes: usize,
    ) -> Result<(PendingLookup, Vec<u8>), LookupError> {
        let (request, pending) = self
            .chooser
            .request(indices, index_bits)
            .map_err(LookupError::Caller)?;
        channel.send(tag::REQUEST, &request)?;
        let limit = pending
            .answer_bytes(entry_bytes)
            .map_err(LookupError::Caller)?;
        Ok((pending, channel.receive(tag::ANSWER, limit)?))
    }
}

/// The party that has the tables.
#[derive(Debug)]
pub struct TableOwner {
    sender: LookupSender,
}

impl TableOwner {
    /// Base transfers, once for any number of lookups.
    pub fn set_up<R: CryptoRng>(channel: &mut Channel, rng: &mut R) -> Result<Self, LookupError> {
        let first = channel.receive(tag::FIRST, ot::SETUP_FIRST_BYTES)?;
        let (sender, second) = LookupSender::setup(&first, rng).map_err(peer("base transfers"))?;
        channel.send(tag::SECOND, &second)?;
        Ok(Self { sender })
    }

    /// Serves `rows` tables of 2^`index_bits` numbers modulo 2^48. `fill(row, table)` writes a
    /// row's table; rows come in any order, on several threads.
    pub fn serve(
        &mut self,
        channel: &mut Channel,
        rows: usize,
        index_bits: u32,
        fill: impl Fn(usize, &mut [u64]) + Sync,
    ) -> Result<(), LookupError> {
        let request = receive_request(channel, rows, index_bits, WORD_BYTES)?;
        let answer = self.sender.answer_u48(&request, rows, index_bits, fill);
        Ok(channel.send(tag::ANSWER, &answer.map_err(peer("request"))?)?)
    }

    /// Serves tables whose entries are strings of `entry_bytes` bytes.
    pub fn serve_strings(
        &mut self,
        channel: &mut Channel,
        rows: usize,
        index_bits: u32,
        entry_bytes: usize,
        fill: impl Fn(usize, &mut [u8]) + Sync,
    ) -> Result<(), LookupError> {
        let request = receive_request(channel, rows, index_bits, entry_bytes)?;
        let answer = self
            .sender
            .answer(&request, rows, index_bits, entry_bytes, fill);
        Ok(channel.send(tag::ANSWER, &answer.map_err(peer("request"))?)?)
    }
}

fn receive_request(
    channel: &mut Channel,
    rows: usize,
    index_bits: u32,
    entry_bytes: usize,
) -> Result<Vec<u8>, LookupError> {
    // What we cannot answer is not the reader's fault.
    answer_bytes(rows, index_bits, entry_bytes).map_err(LookupError::Caller)?;
    let limit = LookupSender::request_bytes(rows, index_bits).map_err(LookupError::Caller)?;
    Ok(channel.receive(tag::REQUEST, limit)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::channel::Wire;
    use crate::channel::WireError;
    use heda_crypto::random::Randomness;
    use rand_core::Rng;
    use std::time::Duration;

    const BITS: u32 = 6;
    const MASK: u64 = (1 << 48) - 1;

    /// Runs owner and reader with one table, turned and masked row by row; what the reader gets
    /// once the owner's masks are taken off.
    fn look_up(table: &[u64], indices: &[u16]) -> Vec<u64> {
        let (mut alice, mut bob) = Channel::pair(Duration::from_secs(20));
        let mut rng = Randomness::seeded(3).fork("masks", 0).unwrap();
        let turns: Vec<u16> = indices.iter().map(|_| rng.next_u32() as u16 % 64).collect();
        let masks: Vec<u64> = indices.iter().map(|_| rng.next_u64() & MASK).collect();
        let turned: Vec<u16> = indices
            .iter()
            .zip(&turns)
            .map(|(i, t)| (i + t) % 64)
            .collect();
        let reader = std::thread::spawn(move || {
            let mut rng = Randomness::seeded(1).fork("reader", 0).unwrap();
            let mut reader = TableReader::set_up(&mut bob, &mut rng).unwrap();
            // Twice with the same keys: the state moves on.
            reader.read(&mut bob, &turned, BITS).unwrap();
            reader.read(&mut bob, &turned, BITS).unwrap()
        });
        let mut owner_rng = Randomness::seeded(2).fork("owner", 0).unwrap();
        let mut owner = TableOwner::set_up(&mut alice, &mut owner_rng).unwrap();
        let fill = |row: usize, entries: &mut [u64]| {
            for (v, entry) in entries.iter_mut().enumerate() {
                *entry = table[(v + 64 - usize::from(turns[row])) % 64].wrapping_add(masks[row]);
            }
        };
        owner.serve(&mut alice, indices.len(), BITS, fill).unwrap();
        owner.serve(&mut alice, indices.len(), BITS, fill).unwrap();
        let read = reader.join().unwrap();
        read.iter()
            .zip(&masks)
            .map(|(r, m)| r.wrapping_sub(*m) & MASK)
            .collect()
    }

    #[test]
    fn any_function_of_the_index_is_a_table() {
        let signed = |v: usize| if v < 32 { v as f64 } else { v as f64 - 64.0 };
        let fixed = |x: f64| ((x * f64::from(1 << 20)).round() as i64 as u64) & MASK;
        let functions: [&dyn Fn(f64) -> f64; 3] = [
            &|z| 1.0 / (1.0 + (-z).exp()),
            &|z| -2.0 * (1.0 - z).max(0.0),
            &|z| f64::from(u8::from(z > 0.0)),
        ];
        let indices: Vec<u16> = (0..64).chain([0, 63, 31, 32, 1]).collect();
        for function in functions {
            let table: Vec<u64> = (0..64).map(|v| fixed(function(signed(v)))).collect();
            let expected: Vec<u64> = indices.iter().map(|&i| table[usize::from(i)]).collect();
            assert_eq!(look_up(&table, &indices), expected);
        }
    }

    #[test]
    fn an_index_out_of_range_is_the_callers_fault() {
        let (mut alice, mut bob) = Channel::pair(Duration::from_secs(20));
        let owner = std::thread::spawn(move || {
            let mut rng = Randomness::seeded(2).fork("owner", 0).unwrap();
            TableOwner::set_up(&mut alice, &mut rng).map(|_| ())
        });
        let mut rng = Randomness::seeded(1).fork("reader", 0).unwrap();
        let mut reader = TableReader::set_up(&mut bob, &mut rng).unwrap();
        owner.join().unwrap().unwrap();
        assert!(matches!(
            reader.read(&mut bob, &[64], BITS),
            Err(LookupError::Caller(_))
        ));
    }

    /// A wire that cuts the last byte of every message it carries.
    struct Cutting(Box<dyn Wire>);

    impl Wire for Cutting {
        fn send(&mut self, message: Vec<u8>) -> Result<(), WireError> {
            self.0.send(message)
        }

        fn receive(&mut self, limit: usize) -> Result<Vec<u8>, WireError> {
            let mut message = self.0.receive(limit)?;
            message.pop();
            Ok(message)
        }
    }

    #[test]
    fn a_truncated_message_blames_the_peer() {
        let (mut alice, bob) = crate::channel::memory_wires(Duration::from_secs(20));
        let mut bob = Channel::new(Box::new(Cutting(bob)));
        alice.send(vec![tag::FIRST; 33]).unwrap();
        let mut rng = Randomness::seeded(2).fork("owner", 0).unwrap();
        let failed = TableOwner::set_up(&mut bob, &mut rng).unwrap_err();
        assert!(
            matches!(
                failed,
                LookupError::Peer {
                    message: "base transfers",
                    ..
                }
            ),
            "{failed}"
        );
    }
}
