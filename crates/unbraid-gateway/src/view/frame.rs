//! Writes server-sent events by the rules that released clients need.

use std::io::Write;

use memchr::memchr2;
use unbraid_log::Seq;

/// How soon a client connects again, in milliseconds.
const RETRY: &[u8] = b"retry: 1000\n";

/// The events of one write.
///
/// A blank line follows only `data`, and `retry` is part of the first event, before its id: openai-python fails on any
/// event without data.
#[derive(Debug, Default)]
pub(super) struct Frame {
    bytes: Vec<u8>,
    /// Whether the next event is the first one of its view.
    is_first: bool,
}

impl Frame {
    pub(super) fn new(is_first: bool) -> Self {
        Self {
            bytes: Vec::new(),
            is_first,
        }
    }

    /// Writes an event.
    pub(super) fn event(&mut self, id: Seq, name: Option<&str>, data: &[u8]) {
        self.head(Some(id), name, data.len());
        self.data(data);
        self.bytes.push(b'\n');
    }

    /// Writes an event of one line of data, in pieces.
    pub(super) fn event_of_pieces(&mut self, id: Seq, name: Option<&str>, pieces: [&[u8]; 3]) {
        let length = pieces.iter().map(|piece| piece.len()).sum();
        self.head(Some(id), name, length);
        self.bytes.extend_from_slice(b"data: ");
        for piece in pieces {
            self.bytes.extend_from_slice(piece);
        }
        self.bytes.extend_from_slice(b"\n\n");
    }

    /// Writes an event that does not move the client's cursor.
    pub(super) fn event_without_id(&mut self, data: &[u8]) {
        self.head(None, None, data.len());
        self.data(data);
        self.bytes.push(b'\n');
    }

    fn head(&mut self, id: Option<Seq>, name: Option<&str>, data: usize) {
        // One allocation for most frames, which are one event of one line: bytes without a spare part need no second one.
        let digits = |id: Seq| id.0.checked_ilog10().unwrap_or(0) as usize + 1;
        let first = if self.is_first { RETRY.len() } else { 0 };
        let id_line = id.map_or(0, |id| "id: \n".len() + digits(id));
        let name_line = name.map_or(0, |name| "event: \n".len() + name.len());
        let data_line = "data: \n\n".len() + data;
        let length = first + id_line + name_line + data_line;
        match self.bytes.is_empty() {
            true => self.bytes.reserve_exact(length),
            false => self.bytes.reserve(length),
        }
        if std::mem::take(&mut self.is_first) {
            self.bytes.extend_from_slice(RETRY);
        }
        if let Some(id) = id {
            // A vector takes everything.
            let _written = writeln!(self.bytes, "id: {id}");
        }
        if let Some(name) = name {
            let _written = writeln!(self.bytes, "event: {name}");
        }
    }

    /// Writes data of any number of lines.
    fn data(&mut self, data: &[u8]) {
        let mut rest = data;
        while let Some(end) = memchr2(b'\n', b'\r', rest) {
            let (line, after) = rest.split_at(end);
            self.line(line);
            rest = after
                .strip_prefix(b"\r\n")
                .or_else(|| after.get(1..))
                .unwrap_or_default();
        }
        self.line(rest);
    }

    fn line(&mut self, line: &[u8]) {
        self.bytes.extend_from_slice(b"data: ");
        self.bytes.extend_from_slice(line);
        self.bytes.push(b'\n');
    }

    pub(super) fn is_first(&self) -> bool {
        self.is_first
    }

    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }

    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use unbraid_log::Seq;

    use super::Frame;

    #[test]
    fn the_bytes_of_one_event_have_no_spare_part() {
        for (is_first, id, name) in [(true, 9, None), (false, 10, Some("delta"))] {
            let mut frames = [(); 3].map(|()| Frame::new(is_first));
            let [whole, pieces, without_id] = &mut frames;
            whole.event(Seq(id), name, b"{}");
            pieces.event_of_pieces(Seq(id), name, [b"{", b"1", b"}"]);
            without_id.event_without_id(b"{}");
            for frame in frames {
                let bytes = frame.into_bytes();
                assert_eq!(bytes.capacity(), bytes.len());
            }
        }
    }

    #[track_caller]
    fn check(write: impl FnOnce(&mut Frame), expected: &str) {
        let mut frame = Frame::new(true);
        write(&mut frame);
        assert_eq!(String::from_utf8(frame.into_bytes()).unwrap(), expected);
    }

    #[test]
    fn retry_is_part_of_the_first_event_before_its_id() {
        check(
            |frame| {
                frame.event(Seq(1), None, b"a");
                frame.event(Seq(2), Some("error"), b"b");
            },
            "retry: 1000\nid: 1\ndata: a\n\nid: 2\nevent: error\ndata: b\n\n",
        );
    }

    #[test]
    fn data_of_several_lines_stays_one_event() {
        check(
            |frame| frame.event(Seq(3), None, b"a\nb\r\nc\rd\n"),
            "retry: 1000\nid: 3\ndata: a\ndata: b\ndata: c\ndata: d\ndata: \n\n",
        );
        check(
            |frame| frame.event(Seq(3), None, b""),
            "retry: 1000\nid: 3\ndata: \n\n",
        );
    }

    #[test]
    fn an_event_without_id_leaves_the_cursor() {
        check(
            |frame| frame.event_without_id(b"{}"),
            "retry: 1000\ndata: {}\n\n",
        );
    }
}
