//! Drives a [`Demux`] with what an input gives.

use std::io::{self, Read};

use unbraid_core::{Demux, Options, StreamError, TransportError};

use crate::exit::{self, Outcome};

/// Bytes that are asked for at once: what a pipe holds on Linux.
const READ_BYTES: usize = 64 * 1024;

/// Bytes of the input's beginning that are kept, to tell what it is if it is no stream.
pub(crate) const HEAD_BYTES: usize = 256;

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
}

/// Reads until the input ends or fails, or the stream is over. The error is the listener's, never the input's.
pub(crate) fn read(
    input: &mut dyn Read,
    options: Options,
    listener: &mut impl Listener,
) -> io::Result<Reading> {
    let mut reading = Reading {
        demux: Demux::new(options),
        head: Vec::new(),
    };
    let mut buffer = vec![0; READ_BYTES];
    let mut total = 0;
    while reading.demux.closed().is_none() {
        match input.read(&mut buffer) {
            Ok(0) => reading.demux.finish(),
            Ok(n) => {
                total += n as u64;
                reading.feed(buffer.get(..n).unwrap_or_default(), listener)?;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => {
                let error = TransportError::new(total, error);
                reading.demux.fail(StreamError::Transport(error.into()));
            }
        }
        listener.fed(&mut reading.demux)?;
        listener.caught_up()?;
    }
    Ok(reading)
}

impl Reading {
    pub(crate) fn outcome(&self) -> Outcome<'_> {
        Outcome {
            closed: self.demux.closed(),
            ends: exit::ends(&self.demux).collect(),
            head: &self.head,
        }
    }

    /// Feeds line by line: then what a listener finds in a transcript does not depend on how the bytes were cut.
    fn feed(&mut self, bytes: &[u8], listener: &mut impl Listener) -> io::Result<()> {
        let room = HEAD_BYTES - self.head.len();
        self.head.extend(bytes.iter().take(room));
        for line in bytes.split_inclusive(|&b| matches!(b, b'\n' | b'\r')) {
            self.demux.feed(line);
            listener.fed(&mut self.demux)?;
            if self.demux.closed().is_some() {
                break;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::io::{self, Read};

    use unbraid_core::{ChoiceIndex, End, Options, StreamError};

    use super::{Deaf, read};

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
        let reading = read(&mut input, Options::default(), &mut Deaf).unwrap();
        assert!(reading.demux.closed().unwrap().is_ok());
    }

    #[test]
    fn what_came_before_a_failure_is_kept() {
        let mut input = Script(vec![Ok(HI), Err(io::ErrorKind::ConnectionReset.into())]);
        let reading = read(&mut input, Options::default(), &mut Deaf).unwrap();
        let Some(Err(StreamError::Transport(error))) = reading.demux.closed() else {
            panic!("{:?}", reading.demux.closed());
        };
        assert_eq!(error.bytes, HI.len() as u64);
        let choice = reading.demux.choice(ChoiceIndex(0)).unwrap();
        assert_eq!(choice.message().content, "Hi");
        assert!(matches!(choice.end(), Some(End::Transport(_))));
    }

    #[test]
    fn nothing_is_read_behind_the_end() {
        let unread = io::Error::other("read on");
        let mut input = Script(vec![Ok(HI), Ok(b"data: [DONE]\n\n"), Err(unread)]);
        let reading = read(&mut input, Options::default(), &mut Deaf).unwrap();
        assert!(reading.demux.closed().unwrap().is_ok());
        assert_eq!(
            reading.head,
            &[HI, b"data: [DONE]\n\n"].concat()[..reading.head.len()]
        );
        assert_eq!(input.0.len(), 1);
    }
}
