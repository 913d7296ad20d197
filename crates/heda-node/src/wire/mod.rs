//! A session as a [`Wire`]: blocking on the inside, frames on a TLS connection on the outside.
//!
//! The training job runs in a thread and blocks. Two queues connect it with the asynchronous
//! side: a short one outwards, and one inwards that holds a bounded number of bytes. The inward
//! queue is filled while the job computes, so both sides may send at the same time without
//! waiting for each other; when it is full nothing is read, and TCP stops the sender.

pub(crate) mod carrier;
pub mod frame;
pub mod greeting;
pub(crate) mod read_ahead;

use crate::system::stop::StopSignal;
use crate::wire::carrier::{InboxRoom, LINGER, carry};
use crate::wire::frame::{Frame, PIECE_LIMIT, PIECE_SENT};
use heda_blocks::channel::{Wire, WireError};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::runtime::Handle;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::mpsc::{Sender, UnboundedReceiver};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};
use tokio::task::JoinHandle;

/// Bounds of one session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WireLimits {
    /// How long to wait for the peer, in either direction.
    pub patience: Duration,
    /// How many bytes may wait to be read by the job. A frame costs [`FRAME_COST`] beside its
    /// payload: this bounds their number as well.
    pub inbox_bytes: u32,
}

/// What keeping a frame costs beside its payload, generously: whoever sends many small ones shall
/// not get more memory than whoever sends few large ones.
pub const FRAME_COST: usize = 4 << 10;

/// Less would not hold one frame of the longest kind.
pub const SMALLEST_INBOX: usize = PIECE_LIMIT + FRAME_COST;

/// What a session has in common with the others of its daemon.
#[derive(Debug, Clone, Default)]
pub(crate) struct Surroundings {
    /// Bytes that wait in all inboxes, for the metrics.
    pub(crate) waiting: Arc<AtomicU64>,
    /// The wish to stop: a peer that is silent then is not waited for.
    pub(crate) stop: Option<StopSignal>,
    /// Whether other peers have sessions in this process. Each line is then read in a thread of its
    /// own, among which the system divides the processors fairly: in the tasks of a few threads whoever
    /// sends most is served most, and everybody else waits until it is its turn.
    pub(crate) has_neighbours: bool,
}

/// How long a peer may be silent after the wish to stop.
const SILENCE_AT_STOP: Duration = Duration::from_secs(2);

/// A part of an inbox that is in use.
#[derive(Debug)]
struct Occupied {
    _room: OwnedSemaphorePermit,
    bytes: u64,
    waiting: Arc<AtomicU64>,
}

impl Occupied {
    fn new(room: OwnedSemaphorePermit, bytes: u32, waiting: &Arc<AtomicU64>) -> Self {
        let bytes = u64::from(bytes);
        waiting.fetch_add(bytes, Relaxed);
        let waiting = Arc::clone(waiting);
        Self {
            _room: room,
            bytes,
            waiting,
        }
    }
}

impl Drop for Occupied {
    fn drop(&mut self) {
        self.waiting.fetch_sub(self.bytes, Relaxed);
    }
}

impl Default for WireLimits {
    fn default() -> Self {
        Self {
            patience: Duration::from_secs(120),
            inbox_bytes: 16 << 20,
        }
    }
}

/// Frames that wait to be written to the network.
const OUTBOX_FRAMES: usize = 16;
/// Room that is made at once for a message of several pieces; it is touched only as it fills.
const MESSAGE_RESERVE: usize = 64 << 20;

/// A piece of a message.
#[derive(Debug)]
struct Piece {
    last: bool,
    payload: Vec<u8>,
}

/// What arrives: a piece of a message with the room that it occupies, or how the stream ended.
type Arrived = Result<(Piece, Occupied), WireError>;

/// A session with one peer.
pub struct NetworkWire {
    runtime: Handle,
    outbox: Option<Sender<Frame>>,
    inbox: UnboundedReceiver<Arrived>,
    carrier: Option<JoinHandle<()>>,
    /// Dropped when the session is over.
    session: Option<oneshot::Sender<()>>,
    patience: Duration,
    stop: Option<StopSignal>,
    /// Memory of an earlier message for the next long one.
    spare: Vec<u8>,
}

impl NetworkWire {
    /// A wire over a connection, after the greetings. Must be called within a runtime.
    pub(crate) fn new<S>(stream: S, limits: WireLimits, around: Surroundings) -> Self
    where
        S: AsyncRead + AsyncWrite + Send + 'static,
    {
        let (outbox, outgoing) = mpsc::channel(OUTBOX_FRAMES);
        let (arrived, inbox) = mpsc::unbounded_channel();
        let bytes = (limits.inbox_bytes as usize).max(SMALLEST_INBOX);
        let room = InboxRoom {
            bytes: Arc::new(Semaphore::new(bytes)),
            waiting: around.waiting,
        };
        let runtime = Handle::current();
        let (session, over) = oneshot::channel();
        let carried = carry(stream, room, arrived, outgoing, over);
        let carrier = match around.has_neighbours {
            true => {
                let runtime = runtime.clone();
                tokio::task::spawn_blocking(move || runtime.block_on(carried))
            }
            false => tokio::spawn(carried),
        };
        Self {
            runtime,
            outbox: Some(outbox),
            inbox,
            carrier: Some(carrier),
            session: Some(session),
            patience: limits.patience,
            stop: around.stop,
            spare: Vec::new(),
        }
    }

    /// What carries the connection, for a caller that waits for its end instead of leaving that to
    /// the drop of the wire.
    pub(crate) fn take_carrier(&mut self) -> Option<JoinHandle<()>> {
        self.carrier.take()
    }

    fn send_frame(&mut self, frame: Frame) -> Result<(), WireError> {
        let outbox = self.outbox.as_ref().ok_or_else(ended)?;
        match outbox.try_send(frame) {
            Ok(()) => Ok(()),
            Err(TrySendError::Closed(_)) => Err(self.why_closed()),
            Err(TrySendError::Full(frame)) => {
                let room = async { tokio::time::timeout(self.patience, outbox.send(frame)).await };
                let sent = self.runtime.block_on(room);
                sent.map_err(|_| WireError::TimedOut(self.patience))?
                    .map_err(|_| self.why_closed())
            }
        }
    }

    /// The stream is gone; the inbox may hold the reason behind what arrived before.
    fn why_closed(&mut self) -> WireError {
        while let Ok(arrived) = self.inbox.try_recv() {
            if let Err(error) = arrived {
                return error;
            }
        }
        ended()
    }

    fn next_piece(&mut self) -> Arrived {
        let patience = self.patience;
        let (inbox, stop) = (&mut self.inbox, self.stop.clone());
        if let Ok(arrived) = inbox.try_recv() {
            return arrived;
        }
        self.runtime.block_on(async {
            tokio::select! {
                arrived = tokio::time::timeout(patience, inbox.recv()) => arrived
                    .map_err(|_| WireError::TimedOut(patience))?
                    .unwrap_or_else(|| Err(ended())),
                () = silence_at_stop(stop) => Err(WireError::TimedOut(SILENCE_AT_STOP)),
            }
        })
    }

    /// Sends a message that begins with these few bytes, in pieces.
    fn send_pieces(&mut self, before: &[u8], body: &[u8]) -> Result<(), WireError> {
        let (first, mut rest) = body.split_at(body.len().min(PIECE_SENT - before.len()));
        self.send_frame(Frame::piece(rest.is_empty(), before, first))?;
        while !rest.is_empty() {
            let (piece, after) = rest.split_at(rest.len().min(PIECE_SENT));
            self.send_frame(Frame::piece(after.is_empty(), &[], piece))?;
            rest = after;
        }
        Ok(())
    }
}

/// Until the wish to stop came and a silent peer was waited for long enough.
async fn silence_at_stop(stop: Option<StopSignal>) {
    match stop {
        None => std::future::pending().await,
        Some(mut stop) => {
            stop.wait().await;
            tokio::time::sleep(SILENCE_AT_STOP).await;
        }
    }
}

fn ended() -> WireError {
    WireError::Closed("the peer ended the session".into())
}

impl Wire for NetworkWire {
    fn send(&mut self, message: Vec<u8>) -> Result<(), WireError> {
        self.send_pieces(&[], &message)
    }

    fn send_tagged(&mut self, tag: u8, body: &[u8]) -> Result<(), WireError> {
        self.send_pieces(&[tag], body)
    }

    fn receive(&mut self, limit: usize) -> Result<Vec<u8>, WireError> {
        let (tag, body) = self.receive_tagged(limit)?;
        Ok(tag.into_iter().chain(body).collect())
    }

    fn receive_tagged(&mut self, limit: usize) -> Result<(Option<u8>, Vec<u8>), WireError> {
        let mut tag = None;
        let mut body = Vec::new();
        let mut got = 0;
        loop {
            let (Piece { last, payload }, _room) = self.next_piece()?;
            got += payload.len();
            if got > limit {
                return Err(WireError::TooLong { got, limit });
            }
            if !last && payload.is_empty() {
                return Err(WireError::Malformed(
                    "an empty piece inside a message".into(),
                ));
            }
            let mut rest = payload.as_slice();
            if let (None, Some((first, after))) = (tag, payload.split_first()) {
                (tag, rest) = (Some(*first), after);
                if !last {
                    body = std::mem::take(&mut self.spare);
                    body.reserve_exact(limit.min(MESSAGE_RESERVE));
                }
            }
            body.extend_from_slice(rest);
            if last {
                return Ok((tag, body));
            }
        }
    }

    fn recycle(&mut self, mut body: Vec<u8>) {
        if body.capacity() > self.spare.capacity() && body.capacity() <= MESSAGE_RESERVE {
            body.clear();
            self.spare = body;
        }
    }
}

impl Drop for NetworkWire {
    /// Ends the stream and waits a moment until the peer has taken the last message: a session
    /// that is torn down at once may lose it.
    fn drop(&mut self) {
        self.outbox = None;
        self.session = None;
        self.inbox.close();
        let Some(carrier) = self.carrier.take() else {
            return;
        };
        if Handle::try_current().is_err() {
            let wait = async { tokio::time::timeout(LINGER, carrier).await };
            let _ = self.runtime.block_on(wait);
        }
    }
}

impl std::fmt::Debug for NetworkWire {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NetworkWire").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
