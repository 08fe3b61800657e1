//! Single events of the maximum size, built to cost as much as possible.

use std::iter::{once, repeat_n};

use unbraid_core::limits::MAX_EVENT_BYTES;

/// An event, or a body of JSON, of at most [`MAX_EVENT_BYTES`].
#[derive(Debug, Clone, Copy)]
pub struct Event {
    /// The name of its row in `docs/limits.md`.
    pub name: &'static str,
    /// The bytes before the repeated part.
    head: &'static str,
    /// The part that is repeated up to the maximum size.
    unit: Unit,
    tail: &'static str,
}

#[derive(Debug, Clone, Copy)]
enum Unit {
    Text(&'static str),
    /// A text before, a text to repeat, the number of repetitions, and a text after.
    Several(&'static str, &'static str, usize, &'static str),
    Bytes(u8),
}

impl Event {
    const fn new(
        name: &'static str,
        head: &'static str,
        unit: &'static str,
        tail: &'static str,
    ) -> Self {
        let unit = Unit::Text(unit);
        Self {
            name,
            head,
            unit,
            tail,
        }
    }

    const fn of(name: &'static str, head: &'static str, unit: Unit, tail: &'static str) -> Self {
        Self {
            name,
            head,
            unit,
            tail,
        }
    }

    /// The event in parts, generated on demand so that it takes no memory itself.
    pub fn parts(&self) -> impl Iterator<Item = Vec<u8>> + Send + 'static {
        let unit = match self.unit {
            Unit::Text(text) => text.as_bytes().to_vec(),
            Unit::Several(head, each, count, tail) => {
                [head, &each.repeat(count), tail].concat().into_bytes()
            }
            Unit::Bytes(byte) => vec![byte],
        };
        // The field name of a line does not count as data.
        let counted = unit.len() - if unit.starts_with(b"data:") { 5 } else { 0 };
        let part = unit.repeat((PART / unit.len()).max(1));
        let parts = SPACE / counted / (part.len() / unit.len());
        let ends = [self.head, self.tail].map(|end| end.as_bytes().to_vec());
        let [head, tail] = ends;
        once(head)
            .chain(repeat_n(part, parts))
            .chain(once(tail))
            .chain(once(b"\n\n".to_vec()))
    }
}

/// The approximate size of a part.
const PART: usize = 16 * 1024;

/// The total size of the repeated parts.
const SPACE: usize = MAX_EVENT_BYTES - 8 * PART;

const CHUNK: &str = "{\"choices\":[{}]}";

/// All events, in the order of the table.
pub const EVENTS: [Event; 26] = [
    Event::new(
        "an error event of 16 million lines",
        "event: error\n",
        "data:x\n",
        "",
    ),
    Event::new("millions of pings as data", "", "data:ping\n", ""),
    Event::new(
        "chunks without blank lines",
        "",
        "data:{\"choices\":[{}]}\n",
        "",
    ),
    Event::new("lines of a list without end", "data:[\n", "data:1,\n", ""),
    Event::new(
        "lines of a text without end",
        "data:{\"a\":\"\n",
        "data:x\n",
        "",
    ),
    Event::new("2 million chunks on one line", "data: ", CHUNK, ""),
    Event::of(
        "1,023 empty choices in each chunk of a line",
        "data: ",
        Unit::Several("{\"choices\":[", "{},", 1022, "{}]}"),
        "",
    ),
    Event::of(
        "1,023 empty calls in each chunk of a line",
        "data: ",
        Unit::Several(
            "{\"choices\":[{\"delta\":{\"tool_calls\":[",
            "{},",
            1022,
            "{}]}}]}",
        ),
        "",
    ),
    Event::new("empty objects on one line", "data: ", "{}", ""),
    Event::new("a list of chunks", "data: [", "{\"choices\":[{}]},", "1]"),
    Event::new("JSON lines", "", "{\"choices\":[{}]}\n", ""),
    Event::new("a JSON array of empty objects", "[", "{},", "{}]"),
    Event::new("a list of choices", "data: {\"choices\":[", "{},", "{}]}"),
    Event::new(
        "a list of calls",
        "data: {\"choices\":[{\"delta\":{\"tool_calls\":[",
        "{},",
        "{}]}}]}",
    ),
    Event::new(
        "a field of many values",
        "data: {\"choices\":[],\"x\":{",
        "\"a\":12345678,",
        "\"a\":1}}",
    ),
    Event::new(
        "a field of one text",
        "data: {\"choices\":[],\"x\":\"",
        "a",
        "\"}",
    ),
    Event::new(
        "a choice's field of one text",
        "data: {\"choices\":[{\"delta\":{},\"x\":\"",
        "a",
        "\"}]}",
    ),
    Event::new(
        "one key again and again",
        "data: {\"choices\":[{\"delta\":{",
        "\"content\":\"a\",",
        "\"content\":\"a\"}}]}",
    ),
    Event::new(
        "usage of many fields",
        "data: {\"choices\":[],\"usage\":{",
        "\"a\":12345678,",
        "\"a\":1}}",
    ),
    Event::new(
        "a key of 31 MiB in usage",
        "data: {\"choices\":[],\"usage\":{\"",
        "a",
        "\":1.50}}",
    ),
    Event::new(
        "an id of 31 MiB for many choices",
        "data: {\"choices\":[{},{},{},{},{},{},{},{}],\"id\":\"\\n",
        "a",
        "\"}",
    ),
    Event::new("an error", "data: {\"error\":{\"message\":\"", "a", "\"}}"),
    Event::new(
        "control characters",
        "data: {\"choices\":[{\"delta\":{},\"x\":\"",
        "\u{1}",
        "\"}]}",
    ),
    Event::new(
        "escapes, read field by field",
        "data: {\"choices\":[{\"index\":\"0\",\"delta\":{\"content\":\"",
        "aaaa\\n",
        "\"}}]}",
    ),
    Event::of(
        "invalid UTF-8",
        "data: {\"choices\":[{\"delta\":{\"content\":\"",
        Unit::Bytes(0xFF),
        "\"}}]}",
    ),
    Event::new("an event's name", "event: ", "a", "\ndata: {}"),
];
