//! The one way in which parties talk: tagged messages over a [`Wire`], counted and recorded.
//!
//! A [`Wire`] moves bytes (in memory here, over TLS in `heda-node`). A [`Channel`] puts a tag in
//! front of every message, checks tag and length of what arrives before anyone looks at it,
//! counts bytes, messages and round trips by phase, and can record a party's view.

use crate::stop::{STOP_LIMIT, Stop};
use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

/// Moves whole messages between two parties. Blocking.
pub trait Wire: Send {
    /// Hands one message to the peer.
    fn send(&mut self, message: Vec<u8>) -> Result<(), WireError>;
    /// Hands over a message that is a tag and a body. A wire that cuts messages into pieces anyway
    /// need not join them first.
    fn send_tagged(&mut self, tag: u8, body: &[u8]) -> Result<(), WireError> {
        let mut message = Vec::with_capacity(body.len() + 1);
        message.push(tag);
        message.extend_from_slice(body);
        self.send(message)
    }

    /// Waits for the next message of the peer; one longer than `limit` bytes is an error.
    fn receive(&mut self, limit: usize) -> Result<Vec<u8>, WireError>;

    /// The next message as a tag, if it has one, and a body; `limit` is for both together.
    fn receive_tagged(&mut self, limit: usize) -> Result<(Option<u8>, Vec<u8>), WireError> {
        let mut message = self.receive(limit)?;
        if message.is_empty() {
            return Ok((None, message));
        }
        // In place: messages are long, and a second one would cost more than the move.
        let tag = message.remove(0);
        Ok((Some(tag), message))
    }

    /// Takes back the body of a message that nobody needs any more. A wire may use its memory for
    /// the next long message.
    fn recycle(&mut self, _body: Vec<u8>) {}
}

/// Why a wire does not carry any more.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WireError {
    /// The peer closed the connection or it broke.
    #[error("the connection to the peer is closed: {0}")]
    Closed(String),
    /// The peer said nothing for too long.
    #[error("the peer did not answer within {0:?}")]
    TimedOut(Duration),
    /// The peer sent more than the protocol allows at this place.
    #[error("the peer sent a message of {got} bytes where at most {limit} are allowed")]
    TooLong {
        /// What arrived.
        got: usize,
        /// What the protocol allows here.
        limit: usize,
    },
    /// The peer broke the rules of the transport, for example by repeating a piece of a message.
    #[error("the peer broke the rules of the transport: {0}")]
    Malformed(String),
}

/// Why a message could not be exchanged. All but our own misuse blame the peer or the network.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ChannelError {
    /// The transport failed.
    #[error(transparent)]
    Wire(#[from] WireError),
    /// The peer is at another place of the protocol.
    #[error("the peer sent message {got} where {expected} was expected")]
    Unexpected {
        /// The tag that arrived.
        got: u8,
        /// The tag that the protocol wants here.
        expected: u8,
    },
    /// The peer sent a message without a tag.
    #[error("the peer sent an empty message where {expected} was expected")]
    Empty {
        /// The tag that the protocol wants here.
        expected: u8,
    },
    /// The peer gave up and said why.
    #[error("the peer stopped: {0}")]
    PeerStopped(Stop),
}

/// Tag of a message that says why its sender stops. Reserved in every protocol.
const TAG_STOP: u8 = 0xff;

/// What went over a channel in one phase.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Bytes of messages sent, tags included.
    pub bytes_sent: u64,
    /// Bytes of messages received, tags included.
    pub bytes_received: u64,
    /// Messages sent.
    pub messages_sent: u64,
    /// Messages received.
    pub messages_received: u64,
    /// Times that this side waited for an answer after sending something.
    pub round_trips: u64,
    /// Time spent waiting for the peer.
    pub waited: Duration,
}

impl std::ops::AddAssign for Traffic {
    fn add_assign(&mut self, other: Self) {
        self.bytes_sent += other.bytes_sent;
        self.bytes_received += other.bytes_received;
        self.messages_sent += other.messages_sent;
        self.messages_received += other.messages_received;
        self.round_trips += other.round_trips;
        self.waited += other.waited;
    }
}

/// A message that a party received, as recorded in transcript mode.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recorded {
    /// The phase in which it arrived.
    pub phase: &'static str,
    /// Its tag.
    pub tag: u8,
    /// Its body.
    pub body: Vec<u8>,
}

/// What may lie before a peer's last word: messages of a gradient that was asked for ahead.
const MESSAGES_ON_THE_WAY: usize = 8;
const LONGEST_ON_THE_WAY: usize = 1 << 28;

/// A counted, tagged conversation with one peer.
pub struct Channel {
    wire: Box<dyn Wire>,
    phase: &'static str,
    traffic: BTreeMap<&'static str, Traffic>,
    sent_since_receive: bool,
    transcript: Option<Vec<Recorded>>,
}

impl Channel {
    /// A channel over a wire.
    pub fn new(wire: Box<dyn Wire>) -> Self {
        Self {
            wire,
            phase: "setup",
            traffic: BTreeMap::new(),
            sent_since_receive: false,
            transcript: None,
        }
    }

    /// Two ends that talk in memory; an end that waits longer than `patience` gives up.
    pub fn pair(patience: Duration) -> (Self, Self) {
        let (a, b) = MemoryWire::pair(patience);
        (Self::new(Box::new(a)), Self::new(Box::new(b)))
    }

    /// From now on, everything received is kept in memory (tests and experiments only).
    pub fn record(&mut self) {
        self.transcript.get_or_insert_with(Vec::new);
    }

    /// What was received since [`Channel::record`]; empty if nothing is recorded.
    pub fn transcript(&self) -> &[Recorded] {
        self.transcript.as_deref().unwrap_or_default()
    }

    /// Names the phase that the following messages are counted under.
    pub fn enter_phase(&mut self, phase: &'static str) {
        self.phase = phase;
    }

    /// Traffic by phase.
    pub fn traffic(&self) -> &BTreeMap<&'static str, Traffic> {
        &self.traffic
    }

    /// Traffic of all phases together.
    pub fn total_traffic(&self) -> Traffic {
        let mut total = Traffic::default();
        self.traffic.values().for_each(|phase| total += *phase);
        total
    }

    /// Sends one message. If the peer is gone, the error is why it stopped, if it said so.
    pub fn send(&mut self, tag: u8, body: &[u8]) -> Result<(), ChannelError> {
        if let Err(error) = self.wire.send_tagged(tag, body) {
            return Err(self
                .last_words()
                .map_or(error.into(), ChannelError::PeerStopped));
        }
        let counted = self.traffic.entry(self.phase).or_default();
        counted.bytes_sent += body.len() as u64 + 1;
        counted.messages_sent += 1;
        self.sent_since_receive = true;
        Ok(())
    }

    /// Waits for the message with this tag, whose body has at most `limit` bytes.
    pub fn receive(&mut self, tag: u8, limit: usize) -> Result<Vec<u8>, ChannelError> {
        let room = limit.max(STOP_LIMIT).saturating_add(1);
        let began = Instant::now();
        let arrived = self.wire.receive_tagged(room);
        let counted = self.traffic.entry(self.phase).or_default();
        counted.waited += began.elapsed();
        let (got, body) = arrived?;
        counted.bytes_received += body.len() as u64 + u64::from(got.is_some());
        counted.messages_received += 1;
        counted.round_trips += u64::from(std::mem::take(&mut self.sent_since_receive));
        let got = got.ok_or(ChannelError::Empty { expected: tag })?;
        if got == TAG_STOP {
            return Err(ChannelError::PeerStopped(Stop::from_bytes(&body)));
        }
        if got != tag {
            return Err(ChannelError::Unexpected { got, expected: tag });
        }
        if body.len() > limit {
            return Err(WireError::TooLong {
                got: body.len(),
                limit,
            }
            .into());
        }
        if let Some(transcript) = &mut self.transcript {
            transcript.push(Recorded {
                phase: self.phase,
                tag,
                body: body.clone(),
            });
        }
        Ok(body)
    }

    /// The peer's reason to stop, behind messages that were on the way before it.
    fn last_words(&mut self) -> Option<Stop> {
        for _ in 0..MESSAGES_ON_THE_WAY {
            let (tag, body) = self.wire.receive_tagged(LONGEST_ON_THE_WAY).ok()?;
            if tag == Some(TAG_STOP) {
                return Some(Stop::from_bytes(&body));
            }
        }
        None
    }

    /// Gives back the body of a long message after use: in a job the next one is as long, and new
    /// memory costs more than the bytes in it.
    pub fn recycle(&mut self, body: Vec<u8>) {
        self.wire.recycle(body);
    }

    /// Tells the peer why we stop; a peer that is gone already does not matter.
    pub fn stop(&mut self, stop: &Stop) {
        let _ = self.send(TAG_STOP, &stop.to_bytes());
    }
}

impl std::fmt::Debug for Channel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Channel")
            .field("phase", &self.phase)
            .finish_non_exhaustive()
    }
}

/// A wire within one process.
struct MemoryWire {
    outgoing: Sender<Vec<u8>>,
    incoming: Receiver<Vec<u8>>,
    patience: Duration,
}

impl MemoryWire {
    fn pair(patience: Duration) -> (Self, Self) {
        let (to_b, from_a) = channel();
        let (to_a, from_b) = channel();
        let a = Self {
            outgoing: to_b,
            incoming: from_b,
            patience,
        };
        let b = Self {
            outgoing: to_a,
            incoming: from_a,
            patience,
        };
        (a, b)
    }
}

impl Wire for MemoryWire {
    fn send(&mut self, message: Vec<u8>) -> Result<(), WireError> {
        self.outgoing
            .send(message)
            .map_err(|_| WireError::Closed("the peer ended".into()))
    }

    fn receive(&mut self, limit: usize) -> Result<Vec<u8>, WireError> {
        let message = self
            .incoming
            .recv_timeout(self.patience)
            .map_err(|e| match e {
                RecvTimeoutError::Timeout => WireError::TimedOut(self.patience),
                RecvTimeoutError::Disconnected => WireError::Closed("the peer ended".into()),
            })?;
        if message.len() > limit {
            return Err(WireError::TooLong {
                got: message.len(),
                limit,
            });
        }
        Ok(message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stop::StopCode;

    fn pair() -> (Channel, Channel) {
        Channel::pair(Duration::from_millis(200))
    }

    #[test]
    fn counts_bytes_messages_and_round_trips_by_phase() {
        let (mut a, mut b) = pair();
        a.enter_phase("one");
        a.send(1, b"abc").unwrap();
        assert_eq!(b.receive(1, 3).unwrap(), b"abc");
        b.send(2, b"").unwrap();
        a.receive(2, 0).unwrap();
        a.enter_phase("two");
        a.send(3, b"x").unwrap();
        let one = a.traffic()["one"];
        assert_eq!(
            (one.bytes_sent, one.bytes_received, one.round_trips),
            (4, 1, 1)
        );
        assert_eq!(a.traffic()["two"].messages_sent, 1);
        assert_eq!(a.total_traffic().bytes_sent, 6);
        assert_eq!(b.total_traffic().round_trips, 0);
    }

    #[test]
    fn wrong_tag_length_silence_and_stop_are_told_apart() {
        let (mut a, mut b) = pair();
        a.send(1, b"abc").unwrap();
        assert_eq!(
            b.receive(2, 3).unwrap_err(),
            ChannelError::Unexpected {
                got: 1,
                expected: 2
            }
        );
        a.send(1, b"abcd").unwrap();
        let too_long = ChannelError::Wire(WireError::TooLong { got: 4, limit: 3 });
        assert_eq!(b.receive(1, 3).unwrap_err(), too_long);
        a.stop(&Stop::new(StopCode::Stopping, "no\nway"));
        assert_eq!(
            b.receive(1, 3).unwrap_err(),
            ChannelError::PeerStopped(Stop::new(StopCode::Stopping, "no way"))
        );
        assert!(matches!(
            b.receive(1, 3),
            Err(ChannelError::Wire(WireError::TimedOut(_)))
        ));
        drop(a);
        assert!(matches!(
            b.receive(1, 3),
            Err(ChannelError::Wire(WireError::Closed(_)))
        ));
    }

    #[test]
    fn transcript_keeps_what_was_received() {
        let (mut a, mut b) = pair();
        b.record();
        a.send(1, b"abc").unwrap();
        b.receive(1, 3).unwrap();
        assert_eq!(
            b.transcript(),
            [Recorded {
                phase: "setup",
                tag: 1,
                body: b"abc".to_vec()
            }]
        );
        assert!(a.transcript().is_empty());
    }
}
