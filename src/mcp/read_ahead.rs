//! Reads a connection ahead of its reader, so that its end is noticed behind bytes that the client has sent early.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Most bytes that are read ahead of the reader.
const AHEAD_BYTES_MAX: usize = 64 * 1024;

/// Bytes that are read at a time.
const CHUNK_BYTES: usize = 4 * 1024;

/// Stream with one clone for reading and writing, and another for watching its end. One task polls all clones, so waking one
/// wakes the others.
pub(super) struct ReadAheadStream<S>(Arc<Mutex<ReadAhead<S>>>);

impl<S> Clone for ReadAheadStream<S> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

struct ReadAhead<S> {
    stream: S,
    /// Bytes that were read but not requested yet.
    ahead: Vec<u8>,
    /// End of the stream, or its error, until the reader has received it.
    end: Option<io::Result<()>>,
    /// Number of completed reads.
    reads: u64,
}

/// Reason why no more is read ahead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReadBlock {
    /// The other side has closed the connection, or lost it.
    Ended,
    /// The buffer is full: an end of the other side behind it cannot be seen.
    Full,
}

impl<S> ReadAheadStream<S> {
    pub(super) fn new(stream: S) -> Self {
        Self(Arc::new(Mutex::new(ReadAhead {
            stream,
            ahead: Vec::new(),
            end: None,
            reads: 0,
        })))
    }

    fn lock(&self) -> MutexGuard<'_, ReadAhead<S>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<S: AsyncRead + Unpin> ReadAheadStream<S> {
    /// Reads ahead until no more can be read. Returns the reason, and the number of completed reads.
    pub(super) async fn blocked(&self) -> (ReadBlock, u64) {
        std::future::poll_fn(|context| self.lock().poll_ahead(context)).await
    }
}

impl<S: AsyncRead + Unpin> ReadAhead<S> {
    fn poll_ahead(&mut self, context: &mut Context<'_>) -> Poll<(ReadBlock, u64)> {
        loop {
            if self.end.is_some() {
                return Poll::Ready((ReadBlock::Ended, self.reads));
            }
            let room = AHEAD_BYTES_MAX.saturating_sub(self.ahead.len());
            if room == 0 {
                return Poll::Ready((ReadBlock::Full, self.reads));
            }
            let mut bytes = [0; CHUNK_BYTES];
            let mut buffer = ReadBuf::new(&mut bytes);
            let mut chunk = buffer.take(room);
            match ready!(Pin::new(&mut self.stream).poll_read(context, &mut chunk)) {
                Ok(()) if !chunk.filled().is_empty() => {
                    self.ahead.extend_from_slice(chunk.filled());
                }
                ended => self.end = Some(ended),
            }
            // A waiting reader was told that there are no bytes, so wake it.
            context.waker().wake_by_ref();
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for ReadAheadStream<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        to: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let mut shared = self.lock();
        let count = shared.ahead.len().min(to.remaining());
        if count > 0 {
            let chunk = shared.ahead.get(..count).unwrap_or_default();
            to.put_slice(chunk);
            shared.ahead.drain(..count);
            if shared.ahead.is_empty() {
                // An idle connection keeps no memory.
                shared.ahead = Vec::new();
            }
        } else if let Some(end) = &mut shared.end {
            return Poll::Ready(std::mem::replace(end, Ok(())));
        } else {
            ready!(Pin::new(&mut shared.stream).poll_read(context, to))?;
        }
        shared.reads = shared.reads.wrapping_add(1);
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for ReadAheadStream<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.lock().stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.lock().stream).poll_write_vectored(context, parts)
    }

    fn is_write_vectored(&self) -> bool {
        self.lock().stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.lock().stream).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.lock().stream).poll_shutdown(context)
    }
}
