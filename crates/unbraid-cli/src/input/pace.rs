//! Cuts a recorded stream into its events, and replays it at a pace.

use std::{io, time::Duration};

use bytes::{Bytes, BytesMut};
use futures::{Stream, stream};
use tokio::io::{AsyncRead, AsyncReadExt};

use super::playback::Playback;

/// How many bytes one read requests. A pause may fall between them.
const READ_BYTES: usize = 16 * 1024;

/// How late an event may be without delaying those after it. Timers are coarse, so without this allowance each late event
/// would lower the average pace.
const SLACK: Duration = Duration::from_millis(50);

/// Streams an input at this many events per second of the playback's clock.
pub(crate) fn paced(
    input: impl AsyncRead + Send + Unpin + 'static,
    per_second: f64,
    playback: Playback,
) -> impl Stream<Item = io::Result<Bytes>> + Send + 'static {
    let reader = PacedReader {
        input,
        buffer: BytesMut::new(),
        cutter: EventCutter::default(),
        step: Duration::try_from_secs_f64(per_second.recip()).unwrap_or_default(),
        due: playback.now(),
        playback,
        at_boundary: false,
    };
    stream::unfold(reader, PacedReader::next)
}

/// Splits a whole recording into its events.
pub(crate) fn split_events(mut recording: Bytes) -> Vec<Bytes> {
    let mut cutter = EventCutter::default();
    let mut events = Vec::new();
    while let Some(length) = message_length(&recording) {
        events.push(recording.split_to(length));
    }
    while !recording.is_empty() {
        let end = cutter.event_end(&recording);
        events.push(recording.split_to(end.unwrap_or(recording.len())));
    }
    events
}

/// The length of the binary message at the start, which begins with it. No text begins with a zero byte.
fn message_length(bytes: &[u8]) -> Option<usize> {
    const LEAST: usize = 16; // the prelude and both checksums
    let length: [u8; 4] = bytes.first_chunk().copied()?;
    let length = u32::from_be_bytes(length) as usize;
    let is_message = bytes.first() == Some(&0) && (LEAST..=bytes.len()).contains(&length);
    is_message.then_some(length)
}

/// The number of events in a whole recording.
pub(crate) fn count_events(recording: &[u8]) -> usize {
    let mut cutter = EventCutter::default();
    let ends = recording.iter().filter(|&&byte| cutter.ends_event(byte));
    ends.count()
}

struct PacedReader<R> {
    input: R,
    /// Bytes that were read but not yet returned.
    buffer: BytesMut,
    cutter: EventCutter,
    step: Duration,
    playback: Playback,
    /// When the last event was due, by the clock of the playback.
    due: Duration,
    /// Whether the last bytes completed an event, so that the next byte has to wait.
    at_boundary: bool,
}

impl<R: AsyncRead + Unpin> PacedReader<R> {
    async fn next(mut self) -> Option<(io::Result<Bytes>, Self)> {
        if self.at_boundary {
            self.at_boundary = false;
            let slack = SLACK.mul_f64(self.playback.speed());
            let earliest = self.playback.now().saturating_sub(slack);
            self.due = self.due.saturating_add(self.step).max(earliest);
            self.playback.sleep_until(self.due).await;
        }
        if self.buffer.is_empty() {
            self.buffer.reserve(READ_BYTES);
            match self.input.read_buf(&mut self.buffer).await {
                Ok(0) => return None,
                Ok(_) => {}
                Err(error) => return Some((Err(error), self)),
            }
        }
        let end = self.cutter.event_end(&self.buffer);
        self.at_boundary = end.is_some();
        let bytes = self.buffer.split_to(end.unwrap_or(self.buffer.len()));
        Some((Ok(bytes.freeze()), self))
    }
}

/// Finds the ends of events: the blank line after a server-sent event, or the end of a JSON line. It keeps no bytes.
#[derive(Debug, Default)]
struct EventCutter {
    line: LineKind,
    /// The line ended with CR, so that an LF belongs to the same line end.
    after_cr: bool,
    /// A line that is not blank precedes this line in the same event.
    in_event: bool,
}

/// What the current line is, by its first byte.
#[derive(Debug, Default, Clone, Copy)]
enum LineKind {
    #[default]
    Blank,
    Json,
    Other,
}

impl EventCutter {
    /// The number of bytes that complete the current event, or `None` if these bytes do not complete it.
    fn event_end(&mut self, bytes: &[u8]) -> Option<usize> {
        let end = bytes.iter().position(|&byte| self.ends_event(byte))?;
        Some(end + 1)
    }

    fn ends_event(&mut self, byte: u8) -> bool {
        let second_of_crlf = byte == b'\n' && self.after_cr;
        self.after_cr = byte == b'\r';
        if second_of_crlf {
            return false;
        }
        match (byte, self.line) {
            (b'\n' | b'\r', line) => {
                self.line = LineKind::Blank;
                let ends = match line {
                    LineKind::Blank => self.in_event,
                    LineKind::Json => true,
                    LineKind::Other => false,
                };
                self.in_event = !ends && (self.in_event || matches!(line, LineKind::Other));
                ends
            }
            (b'{', LineKind::Blank) => {
                self.line = LineKind::Json;
                false
            }
            (_, LineKind::Blank) => {
                self.line = LineKind::Other;
                false
            }
            (_, LineKind::Json | LineKind::Other) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::StreamExt;

    use tokio::time::Instant;

    use super::{EventCutter, Playback, count_events, paced};

    /// Cuts a text into its events, whatever the size of the chunks that it arrives in.
    #[track_caller]
    fn check(expected: &[&str]) {
        let text = expected.concat();
        for size in 1..=text.len() {
            let mut cutter = EventCutter::default();
            let mut events = vec![String::new()];
            for chunk in text.as_bytes().chunks(size) {
                let mut rest = chunk;
                while !rest.is_empty() {
                    let end = cutter.event_end(rest);
                    let (event, more) = rest.split_at(end.unwrap_or(rest.len()));
                    let last = events.last_mut().unwrap();
                    last.push_str(std::str::from_utf8(event).unwrap());
                    if end.is_some() {
                        events.push(String::new());
                    }
                    rest = more;
                }
            }
            events.pop_if(|last| last.is_empty());
            assert_eq!(events, expected, "in chunks of {size}");
        }
    }

    #[test]
    fn events_end_at_blank_lines() {
        check(&["data: a\n\n", "data: b\ndata: c\n\n", "data: d\n"]);
        check(&["\n\n: hm\n\n", "\ndata: x\n\n"]);
        check(&["data: a\r\r", "data: b\r\r"]);
        check(&["data: a\r\n\r", "\ndata: b\r\n\r", "\n"]);
    }

    #[test]
    fn json_lines_end_with_their_line() {
        check(&["{\"a\":1}\n", "{\"b\":2}\n", "\n{\"c\":3}"]);
    }

    #[tokio::test(start_paused = true)]
    async fn each_event_waits_for_its_turn() {
        let start = Instant::now();
        let recording = &b"data: 1\n\ndata: 2\n\ndata: 3\n\n"[..];
        assert_eq!(count_events(recording), 3);
        let mut chunks = Box::pin(paced(recording, 4.0, Playback::new(1.0)));
        let mut times = Vec::new();
        while let Some(chunk) = chunks.next().await {
            times.push((chunk.unwrap(), start.elapsed().as_millis()));
        }
        assert_eq!(
            times,
            [
                ("data: 1\n\n".into(), 0),
                ("data: 2\n\n".into(), 250),
                ("data: 3\n\n".into(), 500)
            ]
        );
    }
}
