//! Streams of a peer who wants our memory or our time.

pub mod event;

use std::iter::{once, repeat_n};

use unbraid_core::limits::{
    MAX_CHOICES, MAX_ENTRIES, MAX_FIELDS, MAX_JSON_DEPTH, MAX_LINE_BYTES, MAX_TOOL_CALLS,
    MAX_VALUES,
};

/// A stream that sits at a limit: its name in `docs/limits.md`, and its pieces.
#[derive(Debug, Clone, Copy)]
pub struct Siege {
    /// The row of the table.
    pub name: &'static str,
    /// The stream, without an end mark; the pieces are cut further when they are read.
    pub stream: fn() -> Pieces,
}

/// A stream, a piece at a time, so that it takes no memory of its own.
pub type Pieces = Box<dyn Iterator<Item = String>>;

/// What sits at a limit, in the order of the table.
pub const SIEGES: [Siege; 16] = [
    Siege {
        name: "line_bytes",
        stream: one_line,
    },
    Siege {
        name: "event_bytes",
        stream: joined_lines,
    },
    Siege {
        name: "event_bytes, escaped",
        stream: escaped_event,
    },
    Siege {
        name: "MAX_VALUES",
        stream: values,
    },
    Siege {
        name: "MAX_ENTRIES",
        stream: entries,
    },
    Siege {
        name: "choices",
        stream: choices,
    },
    Siege {
        name: "tool_calls",
        stream: calls,
    },
    Siege {
        name: "MAX_FIELDS",
        stream: fields,
    },
    Siege {
        name: "json_depth",
        stream: depth,
    },
    Siege {
        name: "warnings",
        stream: warnings,
    },
    Siege {
        name: "choice_bytes, by one byte",
        stream: one_byte_deltas,
    },
    Siege {
        name: "completion_bytes, by one byte",
        stream: one_byte_deltas_of_all,
    },
    Siege {
        name: "completion_bytes, by metadata",
        stream: metadata_of_all,
    },
    Siege {
        name: "completion_bytes, by calls",
        stream: calls_of_all,
    },
    Siege {
        name: "completion_bytes, by large fields",
        stream: large_fields,
    },
    Siege {
        name: "completion_bytes, by large fields of choices",
        stream: large_fields_of_choices,
    },
];

/// A stream that goes on for as long as one listens: its name, and what it repeats.
#[derive(Debug, Clone, Copy)]
pub struct Flood {
    /// What it is made of.
    pub name: &'static str,
    /// The piece of a number, from 0.
    pub piece: fn(u64) -> String,
}

/// What never reaches a limit, and must cost next to nothing.
pub const FLOODS: [Flood; 16] = [
    Flood {
        name: "comments",
        piece: |_| ": keep-alive\n\n".to_owned(),
    },
    Flood {
        name: "blank lines",
        piece: |_| "\n\r\n\r".repeat(20),
    },
    Flood {
        name: "empty events",
        piece: |_| "data:\n\nevent: x\n\n".to_owned(),
    },
    Flood {
        name: "names and ids",
        piece: |n| format!("event: {n}\nid: {n}\nretry: 1\n"),
    },
    Flood {
        name: "lines of no field",
        piece: |n| format!("{n} nothing of the standard\n"),
    },
    Flood {
        name: "no JSON",
        piece: |n| event(&format!("{{\"choices\":[{n}")),
    },
    Flood {
        name: "foreign JSON",
        piece: |n| event(&format!("{{\"n\":{n},\"x\":[{{}},{{}}]}}")),
    },
    Flood {
        name: "refused choices",
        piece: |n| text(200 + (n % 100_000) as u32, "a"),
    },
    Flood {
        name: "no usable index",
        piece: |_| event("{\"choices\":[{\"index\":-1,\"delta\":{\"content\":\"a\"}}]}"),
    },
    Flood {
        name: "nothing for a choice",
        piece: |_| event("{\"choices\":[{\"index\":0,\"delta\":{}}]}"),
    },
    Flood {
        name: "changing ids",
        piece: |n| {
            event(&format!(
                "{{\"id\":\"{n}\",\"created\":{n},\"model\":\"{n}\",\"choices\":[]}}"
            ))
        },
    },
    Flood {
        name: "usage again and again",
        piece: |n| {
            event(&format!(
                "{{\"choices\":[],\"usage\":{{\"total_tokens\":{n}}}}}"
            ))
        },
    },
    Flood {
        name: "changing roles",
        piece: |n| {
            event(&format!(
                "{{\"choices\":[{{\"index\":0,\"delta\":{{\"role\":\"{n:0>900}\"}}}}]}}"
            ))
        },
    },
    Flood {
        name: "usage of choices",
        piece: |n| {
            event(&format!(
                "{{\"choices\":[{{\"index\":0,\"delta\":{{}},\"usage\":{{\"total_tokens\":{n}}}}}]}}"
            ))
        },
    },
    Flood {
        name: "padding",
        piece: |n| {
            event(&format!(
                "{{\"choices\":[{{\"index\":0,\"delta\":{{\"nonce\":{n}}}}}],\"obfuscation\":\"{n:0>900}\"}}"
            ))
        },
    },
    Flood {
        name: "deep JSON",
        piece: |_| event(&nested(4_000)),
    },
];

/// One event with this data.
pub fn event(data: &str) -> String {
    format!("data: {data}\n\n")
}

/// A chunk with one choice's text.
pub fn text(choice: u32, text: &str) -> String {
    event(&format!(
        "{{\"choices\":[{{\"index\":{choice},\"delta\":{{\"content\":\"{text}\"}}}}]}}"
    ))
}

fn nested(depth: usize) -> String {
    format!("{{\"x\":{}{}}}", "[".repeat(depth), "]".repeat(depth))
}

/// So many bytes, in pieces.
fn bulk(byte: &'static str, bytes: usize) -> impl Iterator<Item = String> {
    const PIECE: usize = 16 * 1024;
    repeat_n(byte.repeat(PIECE / byte.len()), bytes / PIECE)
}

/// Room for what stands around the bulk of a line.
const MARGIN: usize = 32 * 1024;

fn one_line() -> Pieces {
    let head = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"".to_owned();
    let all = once(head).chain(bulk("a", MAX_LINE_BYTES - MARGIN));
    Box::new(all.chain(once("\"}}]}\n\n".to_owned())))
}

fn joined_lines() -> Pieces {
    let head = "data: {\"choices\":[],\"x\":[\n".to_owned();
    let line = format!("data: \"{}\",\n", "a".repeat(16_000));
    let all = once(head).chain(repeat_n(line, (MAX_LINE_BYTES - MARGIN) / 16_010));
    Box::new(all.chain(once("data: 1]}\n\n".to_owned())))
}

/// Every byte of the text has to be unescaped.
fn escaped_event() -> Pieces {
    let head = "data: {\"choices\":[{\"delta\":{\"content\":\"".to_owned();
    let all = once(head).chain(bulk("\\n", MAX_LINE_BYTES - MARGIN));
    Box::new(all.chain(once("\"}}]}\n\n".to_owned())))
}

/// As many values as one chunk may hold, read field by field.
fn values() -> Pieces {
    let chunk = format!(
        "{{\"choices\":{{}},\"x\":[{}1]}}",
        "{},".repeat(MAX_VALUES - 16)
    );
    Box::new(once(event(&chunk)))
}

/// As many entries as one chunk may hold, of as many calls, each of which takes 3 bytes.
fn entries() -> Pieces {
    let calls = vec!["{}"; MAX_ENTRIES].join(",");
    let entry = move |n: usize| {
        let index = n % MAX_CHOICES;
        format!("{{\"index\":{index},\"delta\":{{\"tool_calls\":[{calls}]}}}},")
    };
    let all = once("data: {\"choices\":[".to_owned()).chain((1..MAX_ENTRIES).map(entry));
    Box::new(all.chain(once("{\"index\":0}]}\n\n".to_owned())))
}

fn choices() -> Pieces {
    let open = (0..MAX_CHOICES as u32).map(|index| text(index * 31, "a"));
    let refused = (0..10_000).map(|index| text(1_000_000 + index, "a"));
    Box::new(open.chain(refused))
}

fn call(choice: usize, index: usize) -> String {
    event(&format!(
        "{{\"choices\":[{{\"index\":{choice},\"delta\":{{\"tool_calls\":[{{\"index\":{index},\"id\":\"call_{choice}_{index}\",\"function\":{{\"name\":\"f\",\"arguments\":\"{{\"}}}}]}}}}]}}"
    ))
}

fn calls() -> Pieces {
    let all = (0..MAX_CHOICES)
        .flat_map(|choice| (0..MAX_TOOL_CALLS).map(move |index| call(choice, index)));
    Box::new(all)
}

/// As many unknown fields as are kept: of the stream, of each choice, and of each delta.
fn fields() -> Pieces {
    let pairs = |kind: &str| -> String {
        let fields = (0..MAX_FIELDS).map(|n| format!("\"{kind}{n}\":{{\"a\":{n}}},"));
        fields.collect()
    };
    let (stream, choice, delta) = (pairs("s"), pairs("c"), pairs("d"));
    let chunk = move |index| {
        event(&format!(
            "{{{stream}\"choices\":[{{{choice}\"delta\":{{{delta}\"content\":\"a\"}},\"index\":{index}}}]}}"
        ))
    };
    Box::new((0..MAX_CHOICES).map(chunk))
}

fn depth() -> Pieces {
    let chunk = |n: usize| {
        let value = nested(MAX_JSON_DEPTH - 1);
        event(&value.replacen('{', &format!("{{\"choices\":[],\"n\":{n},"), 1))
    };
    Box::new((0..1_000).map(chunk))
}

/// Every chunk deviates in several ways.
fn warnings() -> Pieces {
    let chunk = |n: usize| {
        event(&format!(
            "{{\"id\":\"{n}\",\"choices\":[{{\"index\":{},\"delta\":{{\"content\":{n},\"tool_calls\":[{{\"id\":{n}}}]}}}},{{\"delta\":7}},{{\"index\":\"x\"}}]}}",
            n % MAX_CHOICES
        ))
    };
    Box::new((0..50_000).map(chunk))
}

fn one_byte_deltas() -> Pieces {
    Box::new((0..1_100_000).map(|_| text(0, "a")))
}

fn one_byte_deltas_of_all() -> Pieces {
    Box::new((0..4_400_000_u32).map(|n| text(n % MAX_CHOICES as u32, "a")))
}

/// A new value for the same field each time: the smallest piece of news that is no text.
fn metadata_of_all() -> Pieces {
    let chunk = |n: usize| {
        let index = n % MAX_CHOICES;
        event(&format!(
            "{{\"choices\":[{{\"index\":{index},\"delta\":{{}},\"x\":{n}}}]}}"
        ))
    };
    Box::new((0..4_400_000).map(chunk))
}

/// Pieces of arguments in turn, each with a field of its own.
fn calls_of_all() -> Pieces {
    let opened = (0..MAX_CHOICES).map(|choice| call(choice, 0));
    let piece = |n: usize| {
        let index = n % MAX_CHOICES;
        event(&format!(
            "{{\"choices\":[{{\"index\":{index},\"delta\":{{\"tool_calls\":[{{\"index\":0,\"function\":{{\"arguments\":\"1\"}}}}]}}}}]}}"
        ))
    };
    Box::new(opened.chain((0..2_200_000).map(piece)))
}

/// Bytes of one large field.
const LARGE: usize = 4 * 1024 * 1024;

/// A field of its own in each chunk, which the envelope keeps.
fn large_fields() -> Pieces {
    let chunk = |n: usize| {
        let head = once(format!("data: {{\"choices\":[],\"s{n}\":\""));
        let tail = once("\"}\n\n".to_owned());
        head.chain(bulk("a", LARGE)).chain(tail)
    };
    Box::new((0..70).flat_map(chunk))
}

/// The same for each of a few choices.
fn large_fields_of_choices() -> Pieces {
    let chunk = |n: usize| {
        let head = format!(
            "data: {{\"choices\":[{{\"index\":{},\"delta\":{{}},\"c{n}\":\"",
            n % 5
        );
        let tail = once("\"}]}\n\n".to_owned());
        once(head).chain(bulk("a", LARGE)).chain(tail)
    };
    Box::new((0..70).flat_map(chunk))
}
