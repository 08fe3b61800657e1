//! Reads an input into a [`Demux`].

use std::{
    io::{self, Read},
    sync::mpsc::{self, Receiver, RecvTimeoutError},
    thread,
    time::Duration,
};

use tokio::time::Instant;
use unbraid_core::{Config, Demux, StreamError, TransportError, internal::skip_events};

use super::{head::HEAD_BYTES, source::Input};
use crate::outcome::{StreamOutcome, choice_ends};

/// How many bytes one read requests: the capacity of a pipe on Linux.
const READ_BYTES: usize = 64 * 1024;

/// How long silence lasts before it ends a choice that has its finish reason; the same as in the library.
const IDLE: Duration = Duration::from_millis(250);

/// How long to wait for usage after `[DONE]`; the same as in the library.
const AFTER_DONE: Duration = Duration::from_millis(100);

/// Handles events while a stream is read.
pub(crate) trait Listener {
    /// Whether events are handled after each line. The state that a listener finds in a transcript must not depend on how
    /// the input cuts its bytes. A listener that reads no state can handle the events of a whole read at once.
    const BY_LINE: bool = true;

    /// Is called with the number of bytes that are fed next, before their events are handled.
    fn handle_bytes(&mut self, _count: u64) {}

    /// Handles the events of the line that was just fed.
    fn handle_events(&mut self, demux: &mut Demux) -> io::Result<()>;

    /// Flushes the output. Everything read so far has been handled, and the next read may block.
    fn flush(&mut self) -> io::Result<()>;
}

/// A listener for commands that need only the final state of the stream.
#[derive(Debug)]
pub(crate) struct NullListener;

impl Listener for NullListener {
    const BY_LINE: bool = false;

    fn handle_events(&mut self, demux: &mut Demux) -> io::Result<()> {
        skip_events(demux); // the demux would keep them otherwise
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A stream that was read to its end, or to the failure of its input.
#[derive(Debug)]
pub(crate) struct ReadResult {
    pub(crate) demux: Demux,
    /// The first bytes of the input.
    pub(crate) head: Vec<u8>,
    /// How many bytes the input returned.
    byte_count: u64,
}

/// Reads until the stream or its input ends. An error of the input ends the stream; an error of the listener is returned.
pub(crate) fn read_blocking(
    input: &mut dyn Read,
    config: Config,
    listener: &mut impl Listener,
) -> io::Result<ReadResult> {
    let mut buffer = vec![0; READ_BYTES];
    drive(config, listener, |result, listener| {
        Ok(match read_chunk(input, &mut buffer) {
            Ok(bytes) => ReadEvent::from_length(result.feed(bytes, listener)?),
            Err(error) => ReadEvent::Failed(error),
        })
    })
}

/// Like [`read_blocking`], but bounds the wait for usage after `[DONE]` on an input that may stay open.
pub(crate) fn read_all(
    source: &Input,
    mut input: Box<dyn Read + Send>,
    config: Config,
    listener: &mut impl Listener,
) -> io::Result<ReadResult> {
    match source {
        Input::Stdin if config.usage_after_done => read_live(input, config, listener),
        Input::Stdin | Input::File(_) => read_blocking(&mut *input, config, listener),
    }
}

/// Like [`read_blocking`], but silence also ends a choice that has its finish reason, as in the library.
///
/// A separate thread reads the input, because a blocking read has no timeout.
pub(crate) fn read_live(
    input: Box<dyn Read + Send>,
    config: Config,
    listener: &mut impl Listener,
) -> io::Result<ReadResult> {
    let chunks = spawn_reader(input);
    let mut deadline = None;
    drive(config, listener, |result, listener| {
        let timeout = if result.demux.is_after_done() {
            // One deadline for the whole wait: a server that keeps sending must not extend it.
            let deadline = deadline.get_or_insert_with(|| Instant::now() + AFTER_DONE);
            deadline.saturating_duration_since(Instant::now())
        } else {
            IDLE
        };
        Ok(match chunks.recv_timeout(timeout) {
            Ok(Ok(bytes)) => ReadEvent::from_length(result.feed(&bytes, listener)?),
            Ok(Err(error)) => ReadEvent::Failed(error),
            Err(RecvTimeoutError::Timeout) => ReadEvent::Idle,
            Err(RecvTimeoutError::Disconnected) => ReadEvent::End,
        })
    })
}

/// The result of one read.
enum ReadEvent {
    Fed,
    End,
    Failed(io::Error),
    Idle,
}

impl ReadEvent {
    /// A read that returns no bytes is the end of the input.
    fn from_length(length: usize) -> Self {
        if length == 0 { Self::End } else { Self::Fed }
    }
}

fn drive<L: Listener>(
    config: Config,
    listener: &mut L,
    mut next: impl FnMut(&mut ReadResult, &mut L) -> io::Result<ReadEvent>,
) -> io::Result<ReadResult> {
    let mut result = ReadResult {
        demux: Demux::new(config),
        head: Vec::new(),
        byte_count: 0,
    };
    while result.demux.closed().is_none() {
        match next(&mut result, listener)? {
            ReadEvent::Fed => {}
            ReadEvent::End => result.demux.finish(),
            ReadEvent::Failed(error) => {
                let error = TransportError::new(result.byte_count, error);
                result.demux.abort(StreamError::Transport(error.into()));
            }
            ReadEvent::Idle => result.demux.handle_idle(),
        }
        listener.handle_events(&mut result.demux)?;
        listener.flush()?;
    }
    Ok(result)
}

fn read_chunk<'b>(input: &mut dyn Read, buffer: &'b mut [u8]) -> io::Result<&'b [u8]> {
    loop {
        match input.read(buffer) {
            Ok(n) => return Ok(buffer.get(..n).unwrap_or_default()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// Reads on a new thread. The thread ends with the input, or at the first read after the receiver was dropped.
fn spawn_reader(mut input: Box<dyn Read + Send>) -> Receiver<io::Result<Vec<u8>>> {
    const QUEUED_READS: usize = 4; // bounds the memory while the output is slower than the input
    let (sender, receiver) = mpsc::sync_channel(QUEUED_READS);
    thread::spawn(move || {
        let mut buffer = vec![0; READ_BYTES];
        loop {
            let chunk = read_chunk(&mut *input, &mut buffer).map(<[u8]>::to_vec);
            let is_last = chunk.as_ref().map_or(true, Vec::is_empty);
            if sender.send(chunk).is_err() || is_last {
                return;
            }
        }
    });
    receiver
}

impl ReadResult {
    pub(crate) fn outcome(&self) -> StreamOutcome<'_> {
        StreamOutcome {
            closed: self.demux.closed(),
            ends: choice_ends(&self.demux).collect(),
            has_data: self.demux.choices().next().is_some(),
            head: &self.head,
        }
    }

    fn feed<L: Listener>(&mut self, bytes: &[u8], listener: &mut L) -> io::Result<usize> {
        self.byte_count += bytes.len() as u64;
        let room = HEAD_BYTES - self.head.len();
        self.head.extend(bytes.iter().take(room));
        let mut rest = bytes;
        while !rest.is_empty() && self.demux.closed().is_none() {
            let end = L::BY_LINE.then(|| memchr::memchr2(b'\n', b'\r', rest));
            let length = end.flatten().map_or(rest.len(), |end| end + 1);
            let (part, after) = rest.split_at_checked(length).unwrap_or((rest, &[]));
            rest = after;
            listener.handle_bytes(part.len() as u64);
            self.demux.feed(part);
            listener.handle_events(&mut self.demux)?;
        }
        Ok(bytes.len())
    }
}

#[cfg(test)]
mod tests;
