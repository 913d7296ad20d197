//! Moves frames between a byte stream and the queues of a session.
//!
//! One task carries a connection both ways until the session ends. Whoever has nothing to send
//! gives a sign of life now and then, so that a peer whose machine is gone is noticed long before
//! the system gives the connection up.

use super::frame::{Frame, FrameError, FrameKind, HEAD_BYTES, Head};
use super::{Arrived, FRAME_COST, Occupied, Piece};
use heda_blocks::channel::WireError;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc::{Receiver, UnboundedSender};
use tokio::sync::{Semaphore, oneshot};
use tokio::time::timeout;

/// How often a side that sends nothing gives a sign of life.
const SIGN_OF_LIFE: Duration = Duration::from_secs(15);
/// How long nothing at all may arrive.
pub(super) const SILENCE: Duration = Duration::from_secs(35);
/// How long a session that ended here waits for the peer to take what was sent last.
pub(super) const LINGER: Duration = Duration::from_secs(2);
/// How much of what is still under way then is read and thrown away: what fits into the buffers of
/// both systems and the queue of a peer that has not heard yet. Whoever pours out more is cut off.
const LINGER_BYTES: usize = 16 << 20;
/// How long what was sent last may take to leave when a session has ended: a peer that reads nothing
/// would hold the connection for ever.
const LAST_WORDS: Duration = Duration::from_secs(10);

impl From<FrameError> for WireError {
    fn from(error: FrameError) -> Self {
        match error.is_format() {
            true => Self::Malformed(error.to_string()),
            false => Self::Closed(error.to_string()),
        }
    }
}

/// The next frame; none when the peer ended the connection in good order.
pub(crate) async fn read_frame<R>(from: &mut R) -> Result<Option<(FrameKind, Vec<u8>)>, FrameError>
where
    R: AsyncRead + Unpin,
{
    let mut head = Vec::with_capacity(HEAD_BYTES);
    fill(from, &mut head, HEAD_BYTES).await?;
    let head: [u8; HEAD_BYTES] = match head.try_into() {
        Ok(head) => head,
        Err(part) if part.is_empty() => return Ok(None),
        Err(_) => return Err(FrameError::CutOff),
    };
    let Head { kind, length } = Head::from_bytes(head)?;
    let mut payload = Vec::with_capacity(length);
    fill(from, &mut payload, length).await?;
    match payload.len() == length {
        true => Ok(Some((kind, payload))),
        false => Err(FrameError::CutOff),
    }
}

/// Reads until there are so many bytes, or the end. On a slow line a frame may take its time, as
/// long as something of it arrives.
async fn fill<R>(from: &mut R, bytes: &mut Vec<u8>, length: usize) -> Result<(), FrameError>
where
    R: AsyncRead + Unpin,
{
    while bytes.len() < length {
        let mut rest = (&mut *from).take((length - bytes.len()) as u64);
        let read = timeout(SILENCE, rest.read_buf(bytes)).await;
        if read.map_err(|_| FrameError::Silent)?? == 0 {
            break;
        }
    }
    Ok(())
}

/// Writes one frame and sees that it leaves.
pub(crate) async fn write_frame<W>(to: &mut W, frame: &Frame) -> std::io::Result<()>
where
    W: AsyncWrite + Unpin,
{
    to.write_all(frame.as_bytes()).await?;
    to.flush().await
}

/// The inbox of a session, and what waits in those of all.
pub(super) struct InboxRoom {
    pub(super) bytes: Arc<Semaphore>,
    pub(super) waiting: Arc<AtomicU64>,
}

/// Carries a session until both directions have ended, and not for long once its other half, whose end
/// `session` tells, is gone.
pub(super) async fn carry<S>(
    stream: S,
    room: InboxRoom,
    inbox: UnboundedSender<Arrived>,
    outbox: Receiver<Frame>,
    session: oneshot::Receiver<()>,
) where
    S: AsyncRead + AsyncWrite,
{
    let (reader, writer) = tokio::io::split(stream);
    let both = async { tokio::join!(receive(reader, room, inbox), send(writer, outbox)) };
    let over = async {
        let _ = session.await;
        tokio::time::sleep(LAST_WORDS).await;
    };
    tokio::select! {
        _ = both => {}
        () = over => {}
    }
}

/// Reads and throws away what a peer still sends that has been told to stop: closing with unread bytes
/// would reset the connection, and the words that explain the end would be lost.
pub(crate) async fn drain<R>(from: &mut R, patience: Duration)
where
    R: AsyncRead + Unpin,
{
    let mut rest = vec![0; 16 << 10];
    let drained = async {
        let mut left = LINGER_BYTES;
        while let Ok(read @ 1..) = from.read(&mut rest).await {
            left = left.saturating_sub(read);
            if left == 0 {
                return;
            }
        }
    };
    let _ = timeout(patience, drained).await;
}

/// Moves pieces from the stream into the inbox, as far as there is room.
async fn receive<R>(mut from: R, room: InboxRoom, inbox: UnboundedSender<Arrived>)
where
    R: AsyncRead + Unpin,
{
    loop {
        let read = tokio::select! {
            read = read_frame(&mut from) => read,
            // The job is over: let the peer finish, but not for ever.
            () = inbox.closed() => {
                return drain(&mut from, LINGER).await;
            }
        };
        let arrived = match read {
            Ok(None) => return,
            Ok(Some((FrameKind::Alive, _))) => continue,
            Ok(Some((kind, payload))) => admit(kind, payload, &room).await,
            Err(error) => Err(error.into()),
        };
        let failed = arrived.is_err();
        if inbox.send(arrived).is_ok() && failed {
            return;
        }
    }
}

/// One permit of the inbox is one byte.
async fn admit(kind: FrameKind, payload: Vec<u8>, room: &InboxRoom) -> Arrived {
    let last = match kind {
        FrameKind::Piece => false,
        FrameKind::LastPiece => true,
        other => {
            let words = format!("a frame that is no piece of a message ({other:?})");
            return Err(WireError::Malformed(words));
        }
    };
    let bytes = u32::try_from(payload.len() + FRAME_COST).unwrap_or(u32::MAX);
    let permit = Arc::clone(&room.bytes).acquire_many_owned(bytes).await;
    let permit = permit.map_err(|_| super::ended())?;
    let occupied = Occupied::new(permit, bytes, &room.waiting);
    Ok((Piece { last, payload }, occupied))
}

/// Writes what is in the outbox until nobody can put anything there any more.
async fn send<W>(mut to: W, mut outbox: Receiver<Frame>)
where
    W: AsyncWrite + Unpin,
{
    loop {
        let frame = match timeout(SIGN_OF_LIFE, outbox.recv()).await {
            Ok(Some(frame)) => frame,
            Ok(None) => break,
            Err(_) => Frame::alive(),
        };
        let mut written = to.write_all(frame.as_bytes()).await;
        if outbox.is_empty() {
            written = written.and(to.flush().await);
        }
        // Why it broke is found by the other direction.
        if written.is_err() {
            return;
        }
    }
    let _ = to.shutdown().await;
}
