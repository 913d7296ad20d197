//! A session as a [`Wire`]: blocking on the inside, frames of a stream on the outside.
//!
//! The training job runs in a thread and blocks. Two queues connect it with the asynchronous
//! side: a short one outwards, and one inwards that holds a bounded number of bytes. The inward
//! queue is filled while the job computes, so both sides may send at the same time without
//! waiting for each other; when it is full, the flow control of HTTP/2 stops the sender.

pub mod frame;

use crate::wire::frame::{CHUNK_LIMIT, CHUNK_SENT, Content, Frame};
use heda_blocks::channel::{Wire, WireError};
use prost::bytes::{Buf, Bytes};
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::mpsc::{Receiver, Sender, UnboundedReceiver, UnboundedSender};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::task::JoinHandle;
use tonic::Status;
use tonic::codegen::tokio_stream::{Stream, StreamExt};

/// Bounds of one session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WireLimits {
    /// How long to wait for the peer, in either direction.
    pub patience: Duration,
    /// How many bytes may wait to be read by the job.
    pub inbox_bytes: u32,
}

impl Default for WireLimits {
    fn default() -> Self {
        Self {
            patience: Duration::from_secs(120),
            inbox_bytes: 64 << 20,
        }
    }
}

/// Chunks that wait to be written to the network.
const OUTBOX_CHUNKS: usize = 16;
/// Room that is made at once for a message of several chunks; it is touched only as it fills.
const MESSAGE_RESERVE: usize = 64 << 20;
/// How long a session that ended here waits for the peer to take what was sent last.
const LINGER: Duration = Duration::from_secs(2);

/// What arrives: a piece of a message with the room that it occupies, or how the stream ended.
type Arrived = Result<(crate::wire::frame::Chunk, OwnedSemaphorePermit), WireError>;

/// A session with one peer.
pub struct NetworkWire {
    runtime: Handle,
    outbox: Option<Sender<Frame>>,
    inbox: UnboundedReceiver<Arrived>,
    pump: Option<JoinHandle<()>>,
    next_to_send: u64,
    next_to_receive: u64,
    patience: Duration,
    /// Memory of an earlier message for the next long one.
    spare: Vec<u8>,
}

impl NetworkWire {
    /// The queue through which a wire sends.
    pub(crate) fn outbox() -> (Sender<Frame>, Receiver<Frame>) {
        mpsc::channel(OUTBOX_CHUNKS)
    }

    /// A wire over the frames that arrive after the greeting. Must be called within a runtime.
    pub(crate) fn new<S>(incoming: S, outbox: Sender<Frame>, limits: WireLimits) -> Self
    where
        S: Stream<Item = Result<Frame, Status>> + Send + Unpin + 'static,
    {
        let (arrived, inbox) = mpsc::unbounded_channel();
        let room = Arc::new(Semaphore::new(limits.inbox_bytes.max(FULL_CHUNK) as usize));
        Self {
            runtime: Handle::current(),
            outbox: Some(outbox),
            inbox,
            pump: Some(tokio::spawn(pump(incoming, room, arrived))),
            next_to_send: 0,
            next_to_receive: 0,
            patience: limits.patience,
            spare: Vec::new(),
        }
    }

    fn send_chunk(&mut self, last: bool, payload: Bytes) -> Result<(), WireError> {
        let frame = Frame::chunk(self.next_to_send, last, payload);
        let outbox = self.outbox.as_ref().ok_or_else(ended)?;
        match outbox.try_send(frame) {
            Ok(()) => {}
            Err(TrySendError::Closed(_)) => return Err(self.why_closed()),
            Err(TrySendError::Full(frame)) => {
                let room = async { tokio::time::timeout(self.patience, outbox.send(frame)).await };
                let sent = self.runtime.block_on(room);
                sent.map_err(|_| WireError::TimedOut(self.patience))?
                    .map_err(|_| self.why_closed())?;
            }
        }
        self.next_to_send += 1;
        Ok(())
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

    fn next_chunk(&mut self) -> Arrived {
        let patience = self.patience;
        let inbox = &mut self.inbox;
        if let Ok(arrived) = inbox.try_recv() {
            return arrived;
        }
        self.runtime
            .block_on(async { tokio::time::timeout(patience, inbox.recv()).await })
            .map_err(|_| WireError::TimedOut(patience))?
            .unwrap_or_else(|| Err(ended()))
    }

    /// The next chunk, which must be the next by its number too.
    fn next_chunk_in_order(&mut self) -> Arrived {
        let (chunk, room) = self.next_chunk()?;
        if chunk.sequence != self.next_to_receive {
            return Err(WireError::Malformed(format!(
                "chunk {} where {} was due: lost, repeated or out of order",
                chunk.sequence, self.next_to_receive
            )));
        }
        self.next_to_receive += 1;
        Ok((chunk, room))
    }
}

/// One permit of the inbox is one byte; an empty chunk counts as one.
const FULL_CHUNK: u32 = CHUNK_LIMIT as u32;

fn ended() -> WireError {
    WireError::Closed("the peer ended the session".into())
}

/// Moves frames from the stream into the inbox, as far as there is room.
async fn pump<S>(mut incoming: S, room: Arc<Semaphore>, inbox: UnboundedSender<Arrived>)
where
    S: Stream<Item = Result<Frame, Status>> + Unpin,
{
    loop {
        let arrived = tokio::select! {
            item = incoming.next() => match item {
                Some(item) => admit(item, &room).await,
                None => break,
            },
            // The job is over: let the peer finish, but not for ever.
            () = inbox.closed() => {
                let _ = tokio::time::timeout(LINGER, async {
                    while let Some(Ok(_)) = incoming.next().await {}
                }).await;
                break;
            }
        };
        let failed = arrived.is_err();
        if inbox.send(arrived).is_ok() && failed {
            break;
        }
    }
}

async fn admit(item: Result<Frame, Status>, room: &Arc<Semaphore>) -> Arrived {
    let frame = item.map_err(|status| WireError::Closed(words_of(&status)))?;
    let Some(Content::Chunk(chunk)) = frame.content else {
        return Err(WireError::Malformed(
            "a frame that is no piece of a message".into(),
        ));
    };
    if chunk.payload.len() > CHUNK_LIMIT {
        return Err(WireError::Malformed(format!(
            "a chunk of {} bytes, at most {CHUNK_LIMIT} are allowed",
            chunk.payload.len()
        )));
    }
    let bytes = u32::try_from(chunk.payload.len()).unwrap_or(FULL_CHUNK);
    let permit = Arc::clone(room).acquire_many_owned(bytes.max(1)).await;
    permit.map(|permit| (chunk, permit)).map_err(|_| ended())
}

/// What gRPC says about a broken stream, bounded and without control characters.
pub(crate) fn words_of(status: &Status) -> String {
    let message: String = status.message().chars().take(300).collect();
    let message = message.replace(char::is_control, " ");
    if message.is_empty() {
        return format!("{:?}", status.code());
    }
    message
}

impl Wire for NetworkWire {
    fn send(&mut self, message: Vec<u8>) -> Result<(), WireError> {
        let mut rest = Bytes::from(message);
        loop {
            let piece = rest.split_to(rest.len().min(CHUNK_SENT));
            let last = rest.is_empty();
            self.send_chunk(last, piece)?;
            if last {
                return Ok(());
            }
        }
    }

    fn send_tagged(&mut self, tag: u8, body: &[u8]) -> Result<(), WireError> {
        let (first, mut rest) = body.split_at(body.len().min(CHUNK_SENT - 1));
        let mut piece = Vec::with_capacity(first.len() + 1);
        piece.push(tag);
        piece.extend_from_slice(first);
        self.send_chunk(rest.is_empty(), piece.into())?;
        while !rest.is_empty() {
            let (piece, after) = rest.split_at(rest.len().min(CHUNK_SENT));
            self.send_chunk(after.is_empty(), Bytes::copy_from_slice(piece))?;
            rest = after;
        }
        Ok(())
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
            let (chunk, _room) = self.next_chunk_in_order()?;
            let mut payload = chunk.payload;
            got += payload.len();
            if got > limit {
                return Err(WireError::TooLong { got, limit });
            }
            if !chunk.last && payload.is_empty() {
                return Err(WireError::Malformed(
                    "an empty chunk inside a message".into(),
                ));
            }
            if tag.is_none() && !payload.is_empty() {
                tag = Some(payload.get_u8());
                if !chunk.last {
                    body = std::mem::take(&mut self.spare);
                    body.reserve_exact(limit.min(MESSAGE_RESERVE));
                }
            }
            body.extend_from_slice(&payload);
            if chunk.last {
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
        self.inbox.close();
        let Some(pump) = self.pump.take() else { return };
        if Handle::try_current().is_err() {
            let wait = async { tokio::time::timeout(LINGER, pump).await };
            let _ = self.runtime.block_on(wait);
        }
    }
}

impl std::fmt::Debug for NetworkWire {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NetworkWire")
            .field("sent", &self.next_to_send)
            .field("received", &self.next_to_receive)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::runtime::Runtime;
    use tonic::codegen::tokio_stream::wrappers::ReceiverStream;

    /// A wire fed by hand, and what it sends.
    struct Bench {
        runtime: Runtime,
        wire: NetworkWire,
        feed: Option<Sender<Result<Frame, Status>>>,
        sent: Receiver<Frame>,
    }

    fn bench(patience_ms: u64) -> Bench {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let (feed, incoming) = mpsc::channel(64);
        let limits = WireLimits {
            patience: Duration::from_millis(patience_ms),
            inbox_bytes: 4 << 20,
        };
        let entered = runtime.enter();
        let (outbox, sent) = NetworkWire::outbox();
        let wire = NetworkWire::new(ReceiverStream::new(incoming), outbox, limits);
        drop(entered);
        Bench {
            runtime,
            wire,
            feed: Some(feed),
            sent,
        }
    }

    impl Bench {
        fn feed(&self, frame: Frame) {
            let feed = self.feed.as_ref().unwrap();
            feed.blocking_send(Ok(frame)).unwrap();
        }

        fn chunk(&self, sequence: u64, last: bool, payload: &[u8]) {
            self.feed(Frame::chunk(sequence, last, payload.to_vec().into()));
        }
    }

    #[test]
    fn messages_are_split_and_joined() {
        for length in [1, 2, CHUNK_SENT, CHUNK_SENT + 1, 3 * CHUNK_SENT] {
            let message: Vec<u8> = (0..length).map(|i| (i / 1000) as u8).collect();
            for tagged in [false, true] {
                let mut bench = bench(5000);
                let sent = match tagged {
                    false => bench.wire.send(message.clone()),
                    true => bench.wire.send_tagged(message[0], &message[1..]),
                };
                sent.unwrap();
                for _ in 0..length.div_ceil(CHUNK_SENT) {
                    let frame = bench.runtime.block_on(bench.sent.recv()).unwrap();
                    bench.feed(frame);
                }
                assert_eq!(bench.wire.receive(length).unwrap(), message);
            }
        }
    }

    #[test]
    fn memory_is_used_again_and_nothing_of_it_is_seen() {
        let mut bench = bench(5000);
        bench.chunk(0, false, &[9; 100]);
        bench.chunk(1, true, &[9; 100]);
        let (_, body) = bench.wire.receive_tagged(1000).unwrap();
        let place = body.as_ptr();
        bench.wire.recycle(body);
        bench.chunk(2, false, &[1; 30]);
        bench.chunk(3, true, &[2; 20]);
        let (tag, body) = bench.wire.receive_tagged(1000).unwrap();
        assert_eq!((tag, body.as_ptr()), (Some(1), place));
        assert_eq!(body, [[1; 29].as_slice(), &[2; 20]].concat());
    }

    #[test]
    fn a_message_is_refused_while_it_grows_too_long() {
        let mut bench = bench(5000);
        bench.chunk(0, false, &[1; 60]);
        bench.chunk(1, false, &[1; 60]);
        let refused = bench.wire.receive(100);
        assert_eq!(
            refused,
            Err(WireError::TooLong {
                got: 120,
                limit: 100
            })
        );
    }

    #[test]
    fn repeated_lost_and_reordered_chunks_are_refused() {
        for sequences in [[0, 0], [0, 2], [1, 0]] {
            let mut bench = bench(5000);
            bench.chunk(sequences[0], true, b"a");
            bench.chunk(sequences[1], true, b"b");
            let first = bench.wire.receive(9);
            let outcome = first.and_then(|_| bench.wire.receive(9));
            assert!(
                matches!(outcome, Err(WireError::Malformed(_))),
                "{sequences:?}"
            );
        }
    }

    #[test]
    fn other_frames_and_endless_empty_chunks_are_refused() {
        for frame in [
            Frame::hello(),
            Frame { content: None },
            Frame::chunk(0, false, Bytes::new()),
            Frame::chunk(0, true, vec![0; CHUNK_LIMIT + 1].into()),
        ] {
            let mut bench = bench(5000);
            bench.feed(frame);
            let outcome = bench.wire.receive(9);
            assert!(
                matches!(outcome, Err(WireError::Malformed(_))),
                "{outcome:?}"
            );
        }
    }

    #[test]
    fn silence_times_out_in_both_directions() {
        let mut bench = bench(50);
        assert!(matches!(bench.wire.receive(9), Err(WireError::TimedOut(_))));
        let message = vec![0; (OUTBOX_CHUNKS + 1) * CHUNK_SENT];
        assert!(matches!(
            bench.wire.send(message),
            Err(WireError::TimedOut(_))
        ));
    }

    #[test]
    fn an_end_is_told_apart_from_a_break() {
        let mut ended = bench(5000);
        ended.chunk(0, false, b"half");
        ended.feed = None;
        let outcome = ended.wire.receive(9);
        assert!(matches!(outcome, Err(WireError::Closed(_))), "{outcome:?}");
        let mut broken = bench(5000);
        let status = Status::unavailable("cable\ncut");
        let feed = broken.feed.as_ref().unwrap();
        feed.blocking_send(Err(status)).unwrap();
        let outcome = broken.wire.receive(9);
        assert_eq!(outcome, Err(WireError::Closed("cable cut".into())));
    }

    #[test]
    fn the_inbox_is_bounded_and_never_stuck() {
        let mut bench = bench(5000);
        let feed = bench.feed.take().unwrap();
        let feeder = std::thread::spawn(move || {
            for sequence in 0..32 {
                let frame = Frame::chunk(sequence, true, vec![0; CHUNK_LIMIT].into());
                feed.blocking_send(Ok(frame)).unwrap();
            }
        });
        for _ in 0..32 {
            assert_eq!(bench.wire.receive(CHUNK_LIMIT).unwrap().len(), CHUNK_LIMIT);
        }
        feeder.join().unwrap();
    }
}
