use std::{
    io::{self, Read},
    sync::mpsc::{self, Receiver, Sender},
};

use unbraid_core::{ChoiceEnd, ChoiceIndex, Config, Demux, Event, StreamError};

use super::{Input, Listener, NullListener, read_all, read_blocking, read_live};

/// A reader that returns its chunks one by one, then ends.
struct ScriptedReader(Vec<io::Result<&'static [u8]>>);

impl Read for ScriptedReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.0.is_empty() {
            return Ok(0);
        }
        let chunk = self.0.remove(0)?;
        buffer[..chunk.len()].copy_from_slice(chunk);
        Ok(chunk.len())
    }
}

const HI: &[u8] = b"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hi\"}}]}\n\n";

#[test]
fn an_interrupted_read_is_retried() {
    let interrupted = Err(io::ErrorKind::Interrupted.into());
    let mut input = ScriptedReader(vec![interrupted, Ok(HI), Ok(b"data: [DONE]\n\n")]);
    let result = read_blocking(&mut input, Config::default(), &mut NullListener).unwrap();
    assert!(result.demux.closed().unwrap().is_ok());
}

#[test]
fn data_before_a_failure_is_kept() {
    let mut input = ScriptedReader(vec![Ok(HI), Err(io::ErrorKind::ConnectionReset.into())]);
    let result = read_blocking(&mut input, Config::default(), &mut NullListener).unwrap();
    let Some(Err(StreamError::Transport(error))) = result.demux.closed() else {
        panic!("{:?}", result.demux.closed());
    };
    assert_eq!(error.bytes, HI.len() as u64);
    let choice = result.demux.choice(ChoiceIndex(0)).unwrap();
    assert_eq!(choice.message().content, "Hi");
    assert!(matches!(choice.end(), Some(ChoiceEnd::Transport(_))));
}

#[test]
fn nothing_is_read_after_the_end() {
    let unread = io::Error::other("read after the end");
    let mut input = ScriptedReader(vec![Ok(HI), Ok(b"data: [DONE]\n\n"), Err(unread)]);
    let result = read_blocking(&mut input, Config::default(), &mut NullListener).unwrap();
    assert!(result.demux.closed().unwrap().is_ok());
    assert_eq!(
        result.head,
        &[HI, b"data: [DONE]\n\n"].concat()[..result.head.len()]
    );
    assert_eq!(input.0.len(), 1);
}

/// A reader that returns one chunk, then blocks until the sender is dropped.
struct SilentReader(Option<&'static [u8]>, Receiver<()>);

impl Read for SilentReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let Some(chunk) = self.0.take() else {
            let _closed = self.1.recv();
            return Ok(0);
        };
        buffer[..chunk.len()].copy_from_slice(chunk);
        Ok(chunk.len())
    }
}

/// Drops the sender, which ends the input, as soon as the choice has ended.
struct ReleaseAtEnd(Option<Sender<()>>);

impl Listener for ReleaseAtEnd {
    fn handle_events(&mut self, demux: &mut Demux) -> io::Result<()> {
        while let Some(event) = demux.next_event() {
            if matches!(event.event, Event::End(_)) {
                self.0 = None;
            }
        }
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn u13_the_wait_after_done_is_bounded_for_a_silent_input() {
    const DONE: &[u8] = b"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hi\"}}]}\n\ndata: [DONE]\n\ndata: {\"choices\":[],\"usage\":{\"completion_tokens\":2}}\n\n";
    let (sender, receiver) = mpsc::channel();
    let input = Box::new(SilentReader(Some(DONE), receiver));
    let config = Config::default().with_usage_after_done(true);
    // This would block forever if only the end of the input closed the stream.
    let result = read_all(&Input::Stdin, input, config, &mut NullListener).unwrap();
    drop(sender);
    assert!(result.demux.closed().unwrap().is_ok());
    assert_eq!(result.demux.usage().completion_tokens, Some(2));
}

#[test]
fn silence_ends_a_choice_with_a_finish_reason() {
    const STOP: &[u8] = b"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hi\"},\"finish_reason\":\"stop\"}]}\n\n";
    let (sender, receiver) = mpsc::channel();
    let input = Box::new(SilentReader(Some(STOP), receiver));
    // This would block forever if only the end of the input ended the choice.
    let result = read_live(input, Config::default(), &mut ReleaseAtEnd(Some(sender))).unwrap();
    let choice = result.demux.choice(ChoiceIndex(0)).unwrap();
    assert!(matches!(choice.end(), Some(ChoiceEnd::Finished(_))));
}
