//! Replays a recorded stream at a pace.

use std::{io, time::Duration};

use bytes::{Bytes, BytesMut};
use futures::{Stream, stream};
use tokio::{
    io::{AsyncRead, AsyncReadExt},
    time::{self, Instant},
};

/// Bytes that are asked for at once; a pause may divide them.
const READ_BYTES: usize = 16 * 1024;

/// How late an event may be without the next ones being late too: timers are coarse, and a pace is an average.
const SLACK: Duration = Duration::from_millis(50);

/// What an input gives, with so many of its events a second.
pub(crate) fn paced(
    input: impl AsyncRead + Send + Unpin + 'static,
    per_second: f64,
) -> impl Stream<Item = io::Result<Bytes>> + Send + 'static {
    let replay = Replay {
        input,
        read: BytesMut::new(),
        cutter: Cutter::default(),
        step: Duration::try_from_secs_f64(per_second.recip()).unwrap_or_default(),
        due: Instant::now(),
        waits: false,
    };
    stream::unfold(replay, Replay::next)
}

/// A whole recording, event by event.
pub(crate) fn events(mut recording: Bytes) -> Vec<Bytes> {
    let mut cutter = Cutter::default();
    let mut events = Vec::new();
    while !recording.is_empty() {
        let end = cutter.event_end(&recording);
        events.push(recording.split_to(end.unwrap_or(recording.len())));
    }
    events
}

struct Replay<R> {
    input: R,
    /// What was read and not yet given.
    read: BytesMut,
    cutter: Cutter,
    step: Duration,
    /// When the last event was due.
    due: Instant,
    /// Whether a whole event was given: the next byte has to wait.
    waits: bool,
}

impl<R: AsyncRead + Unpin> Replay<R> {
    async fn next(mut self) -> Option<(io::Result<Bytes>, Self)> {
        if self.waits {
            self.waits = false;
            let earliest = Instant::now().checked_sub(SLACK).unwrap_or(self.due);
            self.due = (self.due + self.step).max(earliest);
            time::sleep_until(self.due).await;
        }
        if self.read.is_empty() {
            self.read.reserve(READ_BYTES);
            match self.input.read_buf(&mut self.read).await {
                Ok(0) => return None,
                Ok(_) => {}
                Err(error) => return Some((Err(error), self)),
            }
        }
        let end = self.cutter.event_end(&self.read);
        self.waits = end.is_some();
        let piece = self.read.split_to(end.unwrap_or(self.read.len()));
        Some((Ok(piece.freeze()), self))
    }
}

/// Finds where events end: at the blank line behind them, or, for JSON lines, with their line. It keeps no byte.
#[derive(Debug, Default)]
struct Cutter {
    line: Line,
    /// The line ended with CR, so that LF belongs to the same end.
    after_cr: bool,
    /// Something stands between the last event's end and this line.
    inside: bool,
}

#[derive(Debug, Default, Clone, Copy)]
enum Line {
    #[default]
    Blank,
    Json,
    Other,
}

impl Cutter {
    /// How many bytes complete the event that is open; `None` if all of them do not.
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
                self.line = Line::Blank;
                let ends = match line {
                    Line::Blank => self.inside,
                    Line::Json => true,
                    Line::Other => false,
                };
                self.inside = !ends && (self.inside || matches!(line, Line::Other));
                ends
            }
            (b'{', Line::Blank) => {
                self.line = Line::Json;
                false
            }
            (_, Line::Blank) => {
                self.line = Line::Other;
                false
            }
            (_, Line::Json | Line::Other) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::StreamExt;

    use super::{Cutter, Instant, paced};

    /// Cuts a text at its events, whatever pieces it comes in.
    #[track_caller]
    fn check(expected: &[&str]) {
        let text = expected.concat();
        for size in 1..=text.len() {
            let mut cutter = Cutter::default();
            let mut events = vec![String::new()];
            for piece in text.as_bytes().chunks(size) {
                let mut rest = piece;
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
            assert_eq!(events, expected, "in pieces of {size}");
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
        let mut pieces = Box::pin(paced(&b"data: 1\n\ndata: 2\n\ndata: 3\n\n"[..], 4.0));
        let mut times = Vec::new();
        while let Some(piece) = pieces.next().await {
            times.push((piece.unwrap(), start.elapsed().as_millis()));
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
