//! Drives a [`Demux`] with what an input gives.

use std::{
    io::{self, Read},
    sync::mpsc::{self, Receiver, RecvTimeoutError},
    thread,
    time::Duration,
};

use tokio::time::Instant;
use unbraid_core::{Config, Demux, StreamError, TransportError};

use crate::{
    exit::{self, Outcome},
    input::Source,
};

/// Bytes that are asked for at once: what a pipe holds on Linux.
const READ_BYTES: usize = 64 * 1024;

/// Bytes of the input's beginning that are kept, to tell what it is if it is no stream.
pub(crate) const HEAD_BYTES: usize = 256;

/// Silence that ends a choice whose finish reason has come, as in the library.
const QUIET: Duration = Duration::from_millis(250);

/// How long usage is waited for after `[DONE]`, as in the library.
const AFTER_DONE: Duration = Duration::from_millis(100);

/// What a command does while the stream is read.
pub(crate) trait Listener {
    /// Takes the events of the line that was just fed.
    fn fed(&mut self, demux: &mut Demux) -> io::Result<()>;

    /// All that was read is told; the next read may wait for long.
    fn caught_up(&mut self) -> io::Result<()>;
}

/// Takes no interest in the events, only in what they add up to.
#[derive(Debug)]
pub(crate) struct Deaf;

impl Listener for Deaf {
    fn fed(&mut self, demux: &mut Demux) -> io::Result<()> {
        while demux.next_event().is_some() {} // else they would queue up
        Ok(())
    }

    fn caught_up(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A stream that was read to its end, or as far as it came.
#[derive(Debug)]
pub(crate) struct Reading {
    pub(crate) demux: Demux,
    /// The input's first bytes.
    pub(crate) head: Vec<u8>,
    /// How many came.
    bytes: u64,
}

/// Reads until the input ends or fails, or the stream is over. The error is the listener's, never the input's.
pub(crate) fn read(
    input: &mut dyn Read,
    options: Config,
    listener: &mut impl Listener,
) -> io::Result<Reading> {
    let mut buffer = vec![0; READ_BYTES];
    drive(options, listener, |reading, listener| {
        Ok(match next(input, &mut buffer) {
            Ok(bytes) => News::of(reading.feed(bytes, listener)?),
            Err(error) => News::Failed(error),
        })
    })
}

/// As [`read`], but the wait for usage after `[DONE]` is bounded where the input may stay open without an end.
pub(crate) fn read_all(
    source: &Source,
    mut input: Box<dyn Read + Send>,
    options: Config,
    listener: &mut impl Listener,
) -> io::Result<Reading> {
    match source {
        Source::Stdin if options.usage_after_done => read_live(input, options, listener),
        Source::Stdin | Source::File(_) => read(&mut *input, options, listener),
    }
}

/// As [`read`], but a choice with a finish reason also ends by silence, as it does in the library: the input is read on a
/// thread of its own, since a read cannot be waited for with a deadline.
pub(crate) fn read_live(
    input: Box<dyn Read + Send>,
    options: Config,
    listener: &mut impl Listener,
) -> io::Result<Reading> {
    let reads = reads(input);
    let mut until = None;
    drive(options, listener, |reading, listener| {
        let patience = if reading.demux.is_after_done() {
            let until = until.get_or_insert_with(|| Instant::now() + AFTER_DONE);
            until.saturating_duration_since(Instant::now())
        } else {
            QUIET
        };
        Ok(match reads.recv_timeout(patience) {
            Ok(Ok(bytes)) => News::of(reading.feed(&bytes, listener)?),
            Ok(Err(error)) => News::Failed(error),
            Err(RecvTimeoutError::Timeout) => News::Quiet,
            Err(RecvTimeoutError::Disconnected) => News::End,
        })
    })
}

/// What comes of waiting for an input.
enum News {
    Fed,
    End,
    Failed(io::Error),
    Quiet,
}

impl News {
    /// No bytes are the end.
    fn of(fed: usize) -> Self {
        if fed == 0 { Self::End } else { Self::Fed }
    }
}

fn drive<L: Listener>(
    options: Config,
    listener: &mut L,
    mut wait: impl FnMut(&mut Reading, &mut L) -> io::Result<News>,
) -> io::Result<Reading> {
    let mut reading = Reading {
        demux: Demux::new(options),
        head: Vec::new(),
        bytes: 0,
    };
    while reading.demux.closed().is_none() {
        match wait(&mut reading, listener)? {
            News::Fed => {}
            News::End => reading.demux.finish(),
            News::Failed(error) => {
                let error = TransportError::new(reading.bytes, error);
                reading.demux.abort(StreamError::Transport(error.into()));
            }
            News::Quiet => reading.demux.handle_idle(),
        }
        listener.fed(&mut reading.demux)?;
        listener.caught_up()?;
    }
    Ok(reading)
}

fn next<'b>(input: &mut dyn Read, buffer: &'b mut [u8]) -> io::Result<&'b [u8]> {
    loop {
        match input.read(buffer) {
            Ok(n) => return Ok(buffer.get(..n).unwrap_or_default()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// Reads on a thread, which ends with the input, or at its next read when nobody wants more.
fn reads(mut input: Box<dyn Read + Send>) -> Receiver<io::Result<Vec<u8>>> {
    const AHEAD: usize = 4; // reads that may wait to be told
    let (sender, reads) = mpsc::sync_channel(AHEAD);
    thread::spawn(move || {
        let mut buffer = vec![0; READ_BYTES];
        loop {
            let read = next(&mut *input, &mut buffer).map(<[u8]>::to_vec);
            let last = read.as_ref().map_or(true, Vec::is_empty);
            if sender.send(read).is_err() || last {
                return;
            }
        }
    });
    reads
}

impl Reading {
    pub(crate) fn outcome(&self) -> Outcome<'_> {
        Outcome {
            closed: self.demux.closed(),
            ends: exit::ends(&self.demux).collect(),
            came: self.demux.choices().next().is_some(),
            head: &self.head,
        }
    }

    /// Feeds line by line: then what a listener finds in a transcript does not depend on how the bytes were cut.
    fn feed(&mut self, bytes: &[u8], listener: &mut impl Listener) -> io::Result<usize> {
        self.bytes += bytes.len() as u64;
        let room = HEAD_BYTES - self.head.len();
        self.head.extend(bytes.iter().take(room));
        for line in bytes.split_inclusive(|&b| matches!(b, b'\n' | b'\r')) {
            self.demux.feed(line);
            listener.fed(&mut self.demux)?;
            if self.demux.closed().is_some() {
                break;
            }
        }
        Ok(bytes.len())
    }
}

#[cfg(test)]
mod tests {
    use std::io::{self, Read};

    use unbraid_core::{ChoiceEnd, ChoiceIndex, Config, StreamError};

    use super::{Deaf, Source, read, read_all, read_live};

    /// Gives its pieces one by one, then ends.
    struct Script(Vec<io::Result<&'static [u8]>>);

    impl Read for Script {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            if self.0.is_empty() {
                return Ok(0);
            }
            let piece = self.0.remove(0)?;
            buffer[..piece.len()].copy_from_slice(piece);
            Ok(piece.len())
        }
    }

    const HI: &[u8] = b"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hi\"}}]}\n\n";

    #[test]
    fn an_interrupted_read_is_tried_again() {
        let interrupted = Err(io::ErrorKind::Interrupted.into());
        let mut input = Script(vec![interrupted, Ok(HI), Ok(b"data: [DONE]\n\n")]);
        let reading = read(&mut input, Config::default(), &mut Deaf).unwrap();
        assert!(reading.demux.closed().unwrap().is_ok());
    }

    #[test]
    fn what_came_before_a_failure_is_kept() {
        let mut input = Script(vec![Ok(HI), Err(io::ErrorKind::ConnectionReset.into())]);
        let reading = read(&mut input, Config::default(), &mut Deaf).unwrap();
        let Some(Err(StreamError::Transport(error))) = reading.demux.closed() else {
            panic!("{:?}", reading.demux.closed());
        };
        assert_eq!(error.bytes, HI.len() as u64);
        let choice = reading.demux.choice(ChoiceIndex(0)).unwrap();
        assert_eq!(choice.message().content, "Hi");
        assert!(matches!(choice.end(), Some(ChoiceEnd::Transport(_))));
    }

    #[test]
    fn nothing_is_read_behind_the_end() {
        let unread = io::Error::other("read on");
        let mut input = Script(vec![Ok(HI), Ok(b"data: [DONE]\n\n"), Err(unread)]);
        let reading = read(&mut input, Config::default(), &mut Deaf).unwrap();
        assert!(reading.demux.closed().unwrap().is_ok());
        assert_eq!(
            reading.head,
            &[HI, b"data: [DONE]\n\n"].concat()[..reading.head.len()]
        );
        assert_eq!(input.0.len(), 1);
    }

    /// Gives a choice that has finished, then nothing until it is let go.
    struct Silent(Option<&'static [u8]>, std::sync::mpsc::Receiver<()>);

    impl Read for Silent {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let Some(piece) = self.0.take() else {
                let _gone = self.1.recv();
                return Ok(0);
            };
            buffer[..piece.len()].copy_from_slice(piece);
            Ok(piece.len())
        }
    }

    /// Lets the input go when the choice has ended.
    struct UntilEnd(Option<std::sync::mpsc::Sender<()>>);

    impl super::Listener for UntilEnd {
        fn fed(&mut self, demux: &mut unbraid_core::Demux) -> io::Result<()> {
            while let Some(stamped) = demux.next_event() {
                if matches!(stamped.event, unbraid_core::Event::End(_)) {
                    self.0 = None;
                }
            }
            Ok(())
        }

        fn caught_up(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn u13_a_silent_input_is_not_waited_for_after_done() {
        const DONE: &[u8] = b"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hi\"}}]}\n\ndata: [DONE]\n\ndata: {\"choices\":[],\"usage\":{\"completion_tokens\":2}}\n\n";
        let (hold, held) = std::sync::mpsc::channel();
        let input = Box::new(Silent(Some(DONE), held));
        let options = Config::default().with_usage_after_done(true);
        // It would wait for ever if only the input's end closed the stream.
        let reading = read_all(&Source::Stdin, input, options, &mut Deaf).unwrap();
        drop(hold);
        assert!(reading.demux.closed().unwrap().is_ok());
        assert_eq!(reading.demux.usage().completion_tokens, Some(2));
    }

    #[test]
    fn silence_ends_a_choice_that_has_finished() {
        const STOP: &[u8] = b"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hi\"},\"finish_reason\":\"stop\"}]}\n\n";
        let (hold, held) = std::sync::mpsc::channel();
        let input = Box::new(Silent(Some(STOP), held));
        // It would wait for ever if only the input's end ended the choice.
        let reading = read_live(input, Config::default(), &mut UntilEnd(Some(hold))).unwrap();
        let choice = reading.demux.choice(ChoiceIndex(0)).unwrap();
        assert!(matches!(choice.end(), Some(ChoiceEnd::Finished(_))));
    }
}
