//! Connections whose clients read too slowly: each holds its answer, and often the data from which the answer is made.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

/// The rate at which a client must read data that is ready for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MinRate {
    /// The time over which the rate is measured.
    pub window: Duration,
    /// Bytes that must be read in a window in which more is ready; 0 allows any rate.
    pub bytes: usize,
}

impl Default for MinRate {
    fn default() -> Self {
        Self { window: Duration::from_secs(30), bytes: 0 }.kib(16)
    }
}

impl MinRate {
    /// Sets the rate in KiB per second.
    #[must_use]
    pub fn kib(self, kib_per_second: u32) -> Self {
        Self { bytes: self.window.as_secs() as usize * kib_per_second as usize * 1024, ..self }
    }
}

/// A connection on which writing fails when its client reads too slowly.
pub(super) struct RateLimited<S> {
    stream: S,
    rate: MinRate,
    /// The window that began when data first had to wait for the client.
    window: Option<Window>,
}

struct Window {
    end: Pin<Box<Sleep>>,
    written: usize,
}

impl<S: AsyncWrite + Unpin> RateLimited<S> {
    pub(super) fn new(stream: S, rate: MinRate) -> Self {
        Self { stream, rate, window: None }
    }

    /// Counts written bytes, or waits for the end of the window in which too few were written.
    fn counted(&mut self, cx: &mut Context<'_>, written: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        if let Poll::Ready(result) = written {
            if let (Some(window), Ok(bytes)) = (&mut self.window, &result) {
                window.written += bytes;
            }
            return Poll::Ready(result);
        }
        if self.rate.bytes == 0 {
            return Poll::Pending;
        }
        let rate = self.rate;
        let begin = || Window { end: Box::pin(sleep(rate.window)), written: 0 };
        loop {
            let window = self.window.get_or_insert_with(begin);
            ready!(window.end.as_mut().poll(cx));
            if window.written < rate.bytes {
                let text = format!("the client reads less than {} bytes in {:?}", rate.bytes, rate.window);
                return Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, text)));
            }
            self.window = None;
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for RateLimited<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for RateLimited<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, buf);
        self.counted(cx, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, bufs);
        self.counted(cx, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match Pin::new(&mut self.stream).poll_flush(cx) {
            Poll::Ready(result) => {
                // All is with the client, or on its way.
                self.window = None;
                Poll::Ready(result)
            }
            Poll::Pending => self.counted(cx, Poll::Pending).map_ok(drop),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match Pin::new(&mut self.stream).poll_shutdown(cx) {
            Poll::Ready(result) => Poll::Ready(result),
            Poll::Pending => self.counted(cx, Poll::Pending).map_ok(drop),
        }
    }
}
