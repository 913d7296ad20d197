//! Fetches much from the system at once, for peers that have earned the memory.
//!
//! TLS reads a few kilobytes at a time, which costs a system call each. A buffer saves that, but
//! whoever has not proved who it is gets none: strangers are many.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// This much is fetched from the system at once.
const READ_AHEAD: usize = 128 << 10;

/// A stream that is read in large pieces once that was begun.
#[derive(Debug)]
pub(crate) struct ReadAhead<S> {
    stream: S,
    fetched: Vec<u8>,
    taken: usize,
    begun: bool,
}

impl<S> ReadAhead<S> {
    pub(crate) fn new(stream: S) -> Self {
        Self {
            stream,
            fetched: Vec::new(),
            taken: 0,
            begun: false,
        }
    }

    /// From now on, with a buffer.
    pub(crate) fn begin(&mut self) {
        self.begun = true;
    }

    pub(crate) fn into_inner(self) -> S {
        self.stream
    }
}

impl<S: AsyncRead + Unpin> ReadAhead<S> {
    fn fetch(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.taken = 0;
        self.fetched.resize(READ_AHEAD, 0);
        let mut room = ReadBuf::new(&mut self.fetched);
        let read = Pin::new(&mut self.stream).poll_read(context, &mut room);
        let length = match read {
            Poll::Ready(Ok(())) => room.filled().len(),
            _ => 0,
        };
        self.fetched.truncate(length);
        read
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for ReadAhead<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.taken == this.fetched.len() {
            if !this.begun || into.remaining() >= READ_AHEAD {
                return Pin::new(&mut this.stream).poll_read(context, into);
            }
            ready!(this.fetch(context))?;
        }
        let rest = &this.fetched[this.taken..];
        let length = rest.len().min(into.remaining());
        into.put_slice(&rest[..length]);
        this.taken += length;
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for ReadAhead<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    #[test]
    fn nothing_is_kept_before_the_beginning_and_nothing_is_lost_after_it() {
        let runtime = tokio::runtime::Builder::new_current_thread().build();
        runtime.unwrap().block_on(async {
            let (ours, mut theirs) = tokio::io::duplex(1 << 20);
            let sent: Vec<u8> = (0..600_000u32).map(|i| i as u8).collect();
            theirs.write_all(&sent).await.unwrap();
            drop(theirs);
            let mut stream = ReadAhead::new(ours);
            let mut got = vec![0; 100];
            stream.read_exact(&mut got).await.unwrap();
            assert_eq!(stream.fetched.capacity(), 0);
            stream.begin();
            let mut small = [0; 1000];
            loop {
                match stream.read(&mut small).await.unwrap() {
                    0 => break,
                    n => got.extend_from_slice(&small[..n]),
                }
            }
            assert_eq!(got, sent);
        });
    }
}
