//! An input that a thread reads for a runtime.

use std::{
    io::{self, Read},
    pin::Pin,
    task::{Context, Poll, ready},
    thread,
};

use tokio::{
    io::{AsyncRead, ReadBuf},
    sync::mpsc::{self, Receiver},
};

/// How many bytes one read requests: the capacity of a pipe on Linux.
const READ_BYTES: usize = 64 * 1024;

/// How many reads wait for the runtime. It bounds the memory while the stream is decoded more slowly than it arrives.
const QUEUED_READS: usize = 4;

/// Reads a blocking input on a thread of its own, because a blocking read cannot be cancelled.
///
/// The thread ends with the input, or at the first read after this reader was dropped.
#[derive(Debug)]
pub(super) struct ThreadReader {
    reads: Receiver<io::Result<Vec<u8>>>,
    /// What has arrived and was not returned yet.
    current: io::Cursor<Vec<u8>>,
}

impl ThreadReader {
    pub(super) fn spawn(mut input: Box<dyn Read + Send>) -> Self {
        let (sender, reads) = mpsc::channel(QUEUED_READS);
        thread::spawn(move || {
            let mut buffer = vec![0; READ_BYTES];
            loop {
                let read = match input.read(&mut buffer) {
                    Ok(0) => return,
                    Ok(n) => Ok(buffer.get(..n).unwrap_or_default().to_vec()),
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                    Err(error) => Err(error),
                };
                let is_last = read.is_err();
                if sender.blocking_send(read).is_err() || is_last {
                    return;
                }
            }
        });
        Self {
            reads,
            current: io::Cursor::default(),
        }
    }
}

impl AsyncRead for ThreadReader {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        loop {
            let n = self.current.read(buffer.initialize_unfilled())?;
            if n > 0 || buffer.remaining() == 0 {
                buffer.advance(n);
                return Poll::Ready(Ok(()));
            }
            match ready!(self.reads.poll_recv(cx)) {
                Some(Ok(bytes)) => self.current = io::Cursor::new(bytes),
                Some(Err(error)) => return Poll::Ready(Err(error)),
                None => return Poll::Ready(Ok(())),
            }
        }
    }
}
