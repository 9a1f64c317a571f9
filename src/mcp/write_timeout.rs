//! A stream that waits for its reader, but not forever.

use std::future::{Future, Pending, pending};
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Timeout, timeout};

/// Maximum time for which the other side may read nothing of what is written to it; any byte restarts it. After that
/// the other side counts as gone: the connection is closed, and its requests are abandoned.
pub(super) const UNREAD_MAX: Duration = Duration::from_secs(15);

/// Stream whose writes fail if the other side does not read.
pub(super) struct WriteTimeoutStream<S> {
    stream: S,
    unread_max: Duration,
    /// Runs while a write waits.
    waiting: Option<Pin<Box<Timeout<Pending<()>>>>>,
}

impl<S> WriteTimeoutStream<S> {
    pub(super) fn new(stream: S, unread_max: Duration) -> Self {
        Self {
            stream,
            unread_max,
            waiting: None,
        }
    }

    /// Returns the result of a write, or an error once it has waited too long.
    fn within<T>(
        &mut self,
        written: Poll<io::Result<T>>,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.waiting = None;
            return written;
        }
        let unread_max = self.unread_max;
        let waiting = || Box::pin(timeout(unread_max, pending()));
        let waiting = self.waiting.get_or_insert_with(waiting);
        // The future only ever ends by timing out.
        let _ = ready!(waiting.as_mut().poll(context));
        let reason = "the other side does not read";
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, reason)))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for WriteTimeoutStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        to: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, to)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for WriteTimeoutStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.within(written, context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, parts);
        self.within(written, context)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(context);
        self.within(flushed, context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let shut = Pin::new(&mut self.stream).poll_shutdown(context);
        self.within(shut, context)
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};

    use super::*;

    const LIMIT: Duration = Duration::from_millis(400);

    #[tokio::test]
    async fn a_slow_reader_gets_everything_and_a_stalled_one_is_given_up() {
        let (ours, mut theirs) = duplex(64);
        let mut ours = WriteTimeoutStream::new(ours, LIMIT);
        let reading = async {
            let mut all = 0;
            let mut chunk = [0_u8; 64];
            for _ in 0..8 {
                // Slower than the limit in total, but never for a single read.
                let _ = timeout(LIMIT / 5, pending::<()>()).await;
                all += theirs.read(&mut chunk).await.unwrap();
            }
            all
        };
        let (written, read) = tokio::join!(ours.write_all(&[7; 512]), reading);
        written.unwrap();
        assert_eq!(read, 512);
        let lost = ours.write_all(&[7; 512]).await.unwrap_err();
        assert_eq!(lost.kind(), io::ErrorKind::TimedOut);
    }
}
