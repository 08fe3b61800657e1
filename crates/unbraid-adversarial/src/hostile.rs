//! Streams of a peer that tries to exhaust memory or time.

pub mod event;

use std::iter::{once, repeat_n};

use unbraid_core::limits::{
    MAX_CHOICES, MAX_ENTRIES, MAX_FIELDS, MAX_JSON_DEPTH, MAX_LINE_BYTES, MAX_TOOL_CALLS,
    MAX_VALUES,
};

/// A stream that reaches a limit.
#[derive(Debug, Clone, Copy)]
pub struct LimitStream {
    /// The name of its row in `docs/limits.md`.
    pub name: &'static str,
    /// The stream, without an end mark. Its parts are split further when they are read.
    pub stream: fn() -> Parts,
}

/// A stream in parts, generated on demand so that it takes no memory itself.
pub type Parts = Box<dyn Iterator<Item = String>>;

/// The streams that reach a limit, in the order of the table.
pub const LIMIT_STREAMS: [LimitStream; 16] = [
    LimitStream {
        name: "line_bytes",
        stream: one_line,
    },
    LimitStream {
        name: "event_bytes",
        stream: joined_lines,
    },
    LimitStream {
        name: "event_bytes, escaped",
        stream: escaped_event,
    },
    LimitStream {
        name: "MAX_VALUES",
        stream: values,
    },
    LimitStream {
        name: "MAX_ENTRIES",
        stream: entries,
    },
    LimitStream {
        name: "choices",
        stream: choices,
    },
    LimitStream {
        name: "tool_calls",
        stream: calls,
    },
    LimitStream {
        name: "MAX_FIELDS",
        stream: fields,
    },
    LimitStream {
        name: "json_depth",
        stream: depth,
    },
    LimitStream {
        name: "warnings",
        stream: warnings,
    },
    LimitStream {
        name: "choice_bytes, by one byte",
        stream: one_byte_deltas,
    },
    LimitStream {
        name: "completion_bytes, by one byte",
        stream: one_byte_deltas_of_all,
    },
    LimitStream {
        name: "completion_bytes, by metadata",
        stream: metadata_of_all,
    },
    LimitStream {
        name: "completion_bytes, by calls",
        stream: calls_of_all,
    },
    LimitStream {
        name: "completion_bytes, by large fields",
        stream: large_fields,
    },
    LimitStream {
        name: "completion_bytes, by large fields of choices",
        stream: large_fields_of_choices,
    },
];

/// An endless stream.
#[derive(Debug, Clone, Copy)]
pub struct Flood {
    /// What it consists of.
    pub name: &'static str,
    /// Generates the part with this number, counted from 0.
    pub part: fn(u64) -> String,
}

/// Streams that never reach a limit and must not accumulate memory.
pub const FLOODS: [Flood; 16] = [
    Flood {
        name: "comments",
        part: |_| ": keep-alive\n\n".to_owned(),
    },
    Flood {
        name: "blank lines",
        part: |_| "\n\r\n\r".repeat(20),
    },
    Flood {
        name: "empty events",
        part: |_| "data:\n\nevent: x\n\n".to_owned(),
    },
    Flood {
        name: "names and ids",
        part: |n| format!("event: {n}\nid: {n}\nretry: 1\n"),
    },
    Flood {
        name: "lines of no field",
        part: |n| format!("{n} nothing of the standard\n"),
    },
    Flood {
        name: "no JSON",
        part: |n| event(&format!("{{\"choices\":[{n}")),
    },
    Flood {
        name: "foreign JSON",
        part: |n| event(&format!("{{\"n\":{n},\"x\":[{{}},{{}}]}}")),
    },
    Flood {
        name: "refused choices",
        part: |n| text(200 + (n % 100_000) as u32, "a"),
    },
    Flood {
        name: "no usable index",
        part: |_| event("{\"choices\":[{\"index\":-1,\"delta\":{\"content\":\"a\"}}]}"),
    },
    Flood {
        name: "nothing for a choice",
        part: |_| event("{\"choices\":[{\"index\":0,\"delta\":{}}]}"),
    },
    Flood {
        name: "changing ids",
        part: |n| {
            event(&format!(
                "{{\"id\":\"{n}\",\"created\":{n},\"model\":\"{n}\",\"choices\":[]}}"
            ))
        },
    },
    Flood {
        name: "usage again and again",
        part: |n| {
            event(&format!(
                "{{\"choices\":[],\"usage\":{{\"total_tokens\":{n}}}}}"
            ))
        },
    },
    Flood {
        name: "changing roles",
        part: |n| {
            event(&format!(
                "{{\"choices\":[{{\"index\":0,\"delta\":{{\"role\":\"{n:0>900}\"}}}}]}}"
            ))
        },
    },
    Flood {
        name: "usage of choices",
        part: |n| {
            event(&format!(
                "{{\"choices\":[{{\"index\":0,\"delta\":{{}},\"usage\":{{\"total_tokens\":{n}}}}}]}}"
            ))
        },
    },
    Flood {
        name: "padding",
        part: |n| {
            event(&format!(
                "{{\"choices\":[{{\"index\":0,\"delta\":{{\"nonce\":{n}}}}}],\"obfuscation\":\"{n:0>900}\"}}"
            ))
        },
    },
    Flood {
        name: "deep JSON",
        part: |_| event(&nested(4_000)),
    },
];

/// An event with this data.
pub fn event(data: &str) -> String {
    format!("data: {data}\n\n")
}

/// A chunk with text of one choice.
pub fn text(choice: u32, text: &str) -> String {
    event(&format!(
        "{{\"choices\":[{{\"index\":{choice},\"delta\":{{\"content\":\"{text}\"}}}}]}}"
    ))
}

fn nested(depth: usize) -> String {
    format!("{{\"x\":{}{}}}", "[".repeat(depth), "]".repeat(depth))
}

/// `bytes` bytes, in parts.
fn bulk(byte: &'static str, bytes: usize) -> impl Iterator<Item = String> {
    const PART: usize = 16 * 1024;
    repeat_n(byte.repeat(PART / byte.len()), bytes / PART)
}

/// Space for the rest of the line around the bulk.
const MARGIN: usize = 32 * 1024;

fn one_line() -> Parts {
    let head = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"".to_owned();
    let all = once(head).chain(bulk("a", MAX_LINE_BYTES - MARGIN));
    Box::new(all.chain(once("\"}}]}\n\n".to_owned())))
}

fn joined_lines() -> Parts {
    let head = "data: {\"choices\":[],\"x\":[\n".to_owned();
    let line = format!("data: \"{}\",\n", "a".repeat(16_000));
    let all = once(head).chain(repeat_n(line, (MAX_LINE_BYTES - MARGIN) / 16_010));
    Box::new(all.chain(once("data: 1]}\n\n".to_owned())))
}

/// Every byte of the text has to be unescaped.
fn escaped_event() -> Parts {
    let head = "data: {\"choices\":[{\"delta\":{\"content\":\"".to_owned();
    let all = once(head).chain(bulk("\\n", MAX_LINE_BYTES - MARGIN));
    Box::new(all.chain(once("\"}}]}\n\n".to_owned())))
}

/// The maximum number of values of a chunk, read field by field.
fn values() -> Parts {
    let chunk = format!(
        "{{\"choices\":{{}},\"x\":[{}1]}}",
        "{},".repeat(MAX_VALUES - 16)
    );
    Box::new(once(event(&chunk)))
}

/// The maximum number of entries of a chunk, each with the maximum number of calls of 3 bytes.
fn entries() -> Parts {
    let calls = vec!["{}"; MAX_ENTRIES].join(",");
    let entry = move |n: usize| {
        let index = n % MAX_CHOICES;
        format!("{{\"index\":{index},\"delta\":{{\"tool_calls\":[{calls}]}}}},")
    };
    let all = once("data: {\"choices\":[".to_owned()).chain((1..MAX_ENTRIES).map(entry));
    Box::new(all.chain(once("{\"index\":0}]}\n\n".to_owned())))
}

fn choices() -> Parts {
    let open = (0..MAX_CHOICES as u32).map(|index| text(index * 31, "a"));
    let refused = (0..10_000).map(|index| text(1_000_000 + index, "a"));
    Box::new(open.chain(refused))
}

fn call(choice: usize, index: usize) -> String {
    event(&format!(
        "{{\"choices\":[{{\"index\":{choice},\"delta\":{{\"tool_calls\":[{{\"index\":{index},\"id\":\"call_{choice}_{index}\",\"function\":{{\"name\":\"f\",\"arguments\":\"{{\"}}}}]}}}}]}}"
    ))
}

fn calls() -> Parts {
    let all = (0..MAX_CHOICES)
        .flat_map(|choice| (0..MAX_TOOL_CALLS).map(move |index| call(choice, index)));
    Box::new(all)
}

/// The maximum number of unknown fields of the stream, of each choice, and of each delta.
fn fields() -> Parts {
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

fn depth() -> Parts {
    let chunk = |n: usize| {
        let value = nested(MAX_JSON_DEPTH - 1);
        event(&value.replacen('{', &format!("{{\"choices\":[],\"n\":{n},"), 1))
    };
    Box::new((0..1_000).map(chunk))
}

/// Every chunk violates the format several times.
fn warnings() -> Parts {
    let chunk = |n: usize| {
        event(&format!(
            "{{\"id\":\"{n}\",\"choices\":[{{\"index\":{},\"delta\":{{\"content\":{n},\"tool_calls\":[{{\"id\":{n}}}]}}}},{{\"delta\":7}},{{\"index\":\"x\"}}]}}",
            n % MAX_CHOICES
        ))
    };
    Box::new((0..50_000).map(chunk))
}

fn one_byte_deltas() -> Parts {
    Box::new((0..1_100_000).map(|_| text(0, "a")))
}

fn one_byte_deltas_of_all() -> Parts {
    Box::new((0..4_400_000_u32).map(|n| text(n % MAX_CHOICES as u32, "a")))
}

/// A new value of the same field in each chunk: the smallest update that is not text.
fn metadata_of_all() -> Parts {
    let chunk = |n: usize| {
        let index = n % MAX_CHOICES;
        event(&format!(
            "{{\"choices\":[{{\"index\":{index},\"delta\":{{}},\"x\":{n}}}]}}"
        ))
    };
    Box::new((0..4_400_000).map(chunk))
}

/// Fragments of the arguments of all choices in turn.
fn calls_of_all() -> Parts {
    let opened = (0..MAX_CHOICES).map(|choice| call(choice, 0));
    let fragment = |n: usize| {
        let index = n % MAX_CHOICES;
        event(&format!(
            "{{\"choices\":[{{\"index\":{index},\"delta\":{{\"tool_calls\":[{{\"index\":0,\"function\":{{\"arguments\":\"1\"}}}}]}}}}]}}"
        ))
    };
    Box::new(opened.chain((0..2_200_000).map(fragment)))
}

/// The size of a large field.
const LARGE: usize = 4 * 1024 * 1024;

/// A new field in the envelope of each chunk. The stream keeps all of them.
fn large_fields() -> Parts {
    let chunk = |n: usize| {
        let head = once(format!("data: {{\"choices\":[],\"s{n}\":\""));
        let tail = once("\"}\n\n".to_owned());
        head.chain(bulk("a", LARGE)).chain(tail)
    };
    Box::new((0..70).flat_map(chunk))
}

/// New fields in a few choices.
fn large_fields_of_choices() -> Parts {
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
