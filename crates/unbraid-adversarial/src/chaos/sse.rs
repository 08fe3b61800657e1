//! Server-sent events, as a browser reads them.

/// One event with data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SseEvent {
    /// The id of this event; not that of an earlier one.
    pub(super) id: Option<u64>,
    pub(super) data: String,
}

/// Finds complete events. What follows the last blank line is incomplete, and is dropped with the connection.
#[derive(Debug, Default)]
pub(super) struct Parser {
    buffer: Vec<u8>,
    id: Option<u64>,
    data: Option<String>,
}

impl Parser {
    /// Appends the events that these bytes complete.
    pub(super) fn push(&mut self, bytes: &[u8], events: &mut Vec<SseEvent>) {
        self.buffer.extend_from_slice(bytes);
        let mut start = 0;
        while let Some(length) = self
            .buffer
            .get(start..)
            .and_then(|rest| rest.iter().position(|&byte| byte == b'\n'))
        {
            let line = self.buffer.get(start..start + length).unwrap_or_default();
            let line = String::from_utf8_lossy(line).into_owned();
            start += length + 1;
            self.line(line.trim_end_matches('\r'), events);
        }
        self.buffer.drain(..start);
    }

    fn line(&mut self, line: &str, events: &mut Vec<SseEvent>) {
        if line.is_empty() {
            let id = self.id.take();
            events.extend(self.data.take().map(|data| SseEvent { id, data }));
            return;
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match (field, &mut self.data) {
            ("id", _) => self.id = value.parse().ok(),
            ("data", Some(data)) => {
                data.push('\n');
                data.push_str(value);
            }
            ("data", None) => self.data = Some(value.to_owned()),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(reads: &[&str]) -> Vec<SseEvent> {
        let mut parser = Parser::default();
        let mut events = Vec::new();
        for read in reads {
            parser.push(read.as_bytes(), &mut events);
        }
        events
    }

    fn event(id: Option<u64>, data: &str) -> SseEvent {
        SseEvent {
            id,
            data: data.into(),
        }
    }

    #[test]
    fn events_are_the_same_at_every_cut() {
        let text = "retry: 1000\nid: 1\ndata: {\"a\":1}\n\n: ping\nid: 4\r\ndata: b\r\ndata: c\r\n\r\ndata: d\n\nid: 9\ndata: e\n";
        let expected = [
            event(Some(1), "{\"a\":1}"),
            event(Some(4), "b\nc"),
            event(None, "d"),
        ];
        for cut in 0..=text.len() {
            let (head, tail) = text.split_at(cut);
            assert_eq!(parse(&[head, tail]), expected);
        }
    }

    #[test]
    fn an_incomplete_event_is_dropped() {
        assert_eq!(parse(&["id: 1\ndata: a"]), []);
        assert_eq!(parse(&["id: 1\ndata: a\n"]), []);
    }
}
