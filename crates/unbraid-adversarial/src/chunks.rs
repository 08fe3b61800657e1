//! Ordinary chunks as servers send them, and the same chunks spoilt: for the decoder's short way.

use serde_json::{Value, json};
use unbraid_testkit::cut::Rng;

use crate::mutate::edit;

/// One server's way to write a chunk.
#[derive(Debug)]
pub struct Producer {
    style: usize,
    pieces: Pieces,
    id: String,
}

/// What a producer's chunks bring.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pieces {
    Content,
    Reasoning,
    Refusal,
    Arguments,
    Text,
}

const PIECES: [Pieces; 5] = [
    Pieces::Content,
    Pieces::Reasoning,
    Pieces::Refusal,
    Pieces::Arguments,
    Pieces::Text,
];

/// Ways to write a chunk.
const STYLES: usize = 6;

impl Producer {
    /// A producer, drawn at random; most of them send plain text.
    pub fn new(rng: &mut Rng) -> Self {
        let pieces = if rng.chance(0.4) {
            Pieces::Content
        } else {
            PIECES[rng.below(PIECES.len())]
        };
        // A call has an index of its own; then only these say which is the choice's by standing in front.
        let style = if pieces == Pieces::Arguments {
            [0, 1, 3][rng.below(3)]
        } else {
            rng.below(STYLES)
        };
        Self {
            style,
            pieces,
            id: format!("chatcmpl-{:x}", rng.next_u64()),
        }
    }

    /// The next chunk.
    pub fn chunk(&self, rng: &mut Rng) -> String {
        let index = rng.below(8);
        let piece = escaped(&words(rng), rng);
        self.chunk_of(&index.to_string(), &piece, rng)
    }

    /// A chunk with this text for its index, and this text inside the quotes of its piece.
    fn chunk_of(&self, index: &str, piece: &str, rng: &mut Rng) -> String {
        let delta = match self.pieces {
            Pieces::Content => format!("\"delta\":{{\"content\":\"{piece}\"}}"),
            Pieces::Reasoning => format!("\"delta\":{{\"reasoning_content\":\"{piece}\"}}"),
            Pieces::Refusal => format!("\"delta\":{{\"refusal\":\"{piece}\"}}"),
            Pieces::Arguments => format!(
                "\"delta\":{{\"tool_calls\":[{{\"index\":0,\"function\":{{\"arguments\":\"{piece}\"}}}}]}}"
            ),
            Pieces::Text => format!("\"text\":\"{piece}\""),
        };
        self.envelope(index, &delta, rng)
    }

    fn envelope(&self, index: &str, delta: &str, rng: &mut Rng) -> String {
        let id = &self.id;
        match self.style {
            0 => {
                let padding = "x7Qa".repeat(rng.below(4));
                format!(
                    "{{\"id\":\"{id}\",\"object\":\"chat.completion.chunk\",\"created\":1795216167,\"model\":\"m\",\"service_tier\":\"default\",\"choices\":[{{\"index\":{index},{delta},\"logprobs\":null,\"finish_reason\":null}}],\"usage\":null,\"obfuscation\":\"{padding}\"}}"
                )
            }
            1 => format!(
                "{{\"id\":\"{id}\",\"object\":\"chat.completion.chunk\",\"created\":1795216167,\"model\":\"m\",\"choices\":[{{\"index\":{index},{delta},\"logprobs\":null,\"finish_reason\":null}}]}}"
            ),
            2 => format!(
                "{{\"choices\":[{{\"finish_reason\":null,\"index\":{index},{delta}}}],\"created\":1795216167,\"id\":\"{id}\",\"model\":\"m\",\"system_fingerprint\":\"b1\",\"object\":\"chat.completion.chunk\"}}"
            ),
            3 => format!("{{\"choices\":[{{\"index\":{index},{delta}}}]}}"),
            4 => format!(
                "{{\"id\": \"{id}\", \"model\": \"m\", \"choices\": [{{\"index\": {index}, {delta}, \"stop_reason\": null}}]}}"
            ),
            _ => format!(
                "{{\"model\":\"m\",\"choices\":[{{{delta},\"index\":{index}}}],\"x\":{{\"deep\":[1,{{\"y\":\"z\"}}]}},\"id\":\"{id}\"}}"
            ),
        }
    }

    /// A chunk that may no longer be one: with another value, another structure, or other bytes.
    pub fn spoilt(&self, rng: &mut Rng) -> Vec<u8> {
        match rng.below(10) {
            // What is no escape, no character, or no string any more.
            0..7 => {
                let mut piece = escaped(&words(rng), rng);
                for _ in 0..1 + rng.below(2) * rng.below(2) {
                    let at = boundary(&piece, rng.below(piece.len() + 1));
                    piece.insert_str(at, ODD[rng.below(ODD.len())]);
                }
                self.chunk_of("1", &piece, rng).into_bytes()
            }
            7 => {
                let index = INDICES[rng.below(INDICES.len())];
                self.chunk_of(index, &escaped(&words(rng), rng), rng)
                    .into_bytes()
            }
            8 => {
                let mut chunk = self.chunk(rng);
                let at = structural(&chunk, rng);
                chunk.insert_str(at, FIELDS[rng.below(FIELDS.len())]);
                chunk.into_bytes()
            }
            _ => {
                let mut chunk = self.chunk(rng).into_bytes();
                for _ in 0..1 + rng.below(3) {
                    edit(&mut chunk, &FIELDS, &[], rng);
                }
                chunk.retain(|byte| *byte != b'\n'); // an event is one line here
                chunk
            }
        }
    }
}

/// Inside the quotes of a piece of text.
pub(crate) const ODD: [&str; 28] = [
    "\\n",
    "\\\"",
    "\\\\",
    "\\/",
    "\\t",
    "\\u00e9",
    "\\ud83d\\ude00",
    "\\ud83d",
    "\\ude00",
    "\\u0000",
    "\\x",
    "\\u12",
    "\\",
    "\"",
    "\u{1}",
    "\t",
    "\u{7f}",
    "é",
    "😀",
    "\u{2028}",
    "\u{FEFF}",
    "{",
    "}",
    "\"}",
    "\":",
    "\",\"index\":3,\"",
    "\\u005c",
    "\\u0022",
];

/// In place of an index.
const INDICES: [&str; 22] = [
    "0",
    "7",
    "12",
    "127",
    "128",
    "4294967295",
    "4294967296",
    "18446744073709551616",
    "00",
    "01",
    "-0",
    "-1",
    "+1",
    "1.0",
    "1e0",
    "",
    " 3",
    "3 ",
    "null",
    "\"2\"",
    "true",
    "0x1",
];

/// Where a new field may stand, and where not.
const FIELDS: [&str; 24] = [
    "\"index\":3,",
    ",\"index\":3",
    "\"delta\":{},",
    "\"delta\":{\"content\":\"two\"},",
    "\"content\":\"two\",",
    "\"content\":null,",
    "\"role\":\"assistant\",",
    "\"finish_reason\":\"stop\",",
    "\"choices\":[],",
    "\"choices\":null,",
    "\"id\":\"other\",",
    "\"model\":1,",
    "\"usage\":{\"total_tokens\":1},",
    "\"error\":{\"message\":\"m\"},",
    "\"obfuscation\":\"a\",",
    "\"new\":[1,2],",
    "\"x\":1,",
    "null,",
    " ",
    "  ",
    "}",
    "]",
    ",",
    "\"logprobs\":{\"content\":[]},",
];

/// A place behind a bracket or a comma.
pub(crate) fn structural(chunk: &str, rng: &mut Rng) -> usize {
    let places: Vec<usize> = chunk
        .match_indices(['{', '[', ',', '}'])
        .map(|(at, _)| at + 1)
        .collect();
    places.get(rng.below(places.len())).copied().unwrap_or(0)
}

/// The last place up to `at` that lies between characters.
pub(crate) fn boundary(text: &str, at: usize) -> usize {
    (0..=at)
        .rev()
        .find(|at| text.is_char_boundary(*at))
        .unwrap_or(0)
}

/// Some text as a model writes it, a quarter of it not in ASCII or in need of escapes. It is never empty.
pub(crate) fn words(rng: &mut Rng) -> String {
    const WORDS: [&str; 12] = [
        " the", " answer", "s", ",", " 42", " é", "中文", "😀", "\n", " \"so\"", "{\"a\":", "\\",
    ];
    let count = 1 + rng.below(4);
    (0..count).map(|_| WORDS[rng.below(WORDS.len())]).collect()
}

/// The text as JSON has it between quotes, some of it in ASCII only.
pub(crate) fn escaped(text: &str, rng: &mut Rng) -> String {
    let quoted = Value::from(text).to_string();
    let inside = quoted[1..quoted.len() - 1].to_owned();
    if rng.chance(0.75) {
        return inside;
    }
    let mut ascii = String::new();
    for c in inside.chars() {
        if c.is_ascii() {
            ascii.push(c);
        } else {
            let units = c.encode_utf16(&mut [0; 2]).to_vec();
            ascii.extend(units.iter().map(|unit| format!("\\u{unit:04x}")));
        }
    }
    ascii
}

/// A whole body of a faithful server: the roles, many chunks in turn, a quarter of them pieces of arguments, the ends.
pub fn faithful(chunks: usize, seed: u64) -> Vec<String> {
    const CHOICES: usize = 8;
    let mut rng = Rng::new(seed);
    let head = "\"id\":\"chatcmpl-9\",\"object\":\"chat.completion.chunk\",\"created\":1795216167,\"model\":\"m\"";
    let event = |index: usize, delta: &Value, reason: Option<&str>| {
        format!(
            "{{{head},\"choices\":[{{\"index\":{index},\"delta\":{delta},\"logprobs\":null,\"finish_reason\":{}}}]}}",
            json!(reason)
        )
    };
    let mut events = Vec::new();
    for index in 0..CHOICES {
        events.push(event(
            index,
            &json!({ "role": "assistant", "content": "" }),
            None,
        ));
        if index % 4 == 3 {
            let call = json!({ "tool_calls": [{ "index": 0, "id": "c", "type": "function", "function": { "name": "f", "arguments": "" } }] });
            events.push(event(index, &call, None));
        }
    }
    for _ in 0..chunks {
        let index = rng.below(CHOICES);
        let text = words(&mut rng);
        let delta = if index % 4 == 3 {
            json!({ "tool_calls": [{ "index": 0, "function": { "arguments": text } }] })
        } else {
            json!({ "content": text })
        };
        events.push(event(index, &delta, None));
    }
    events.extend((0..CHOICES).map(|index| event(index, &json!({}), Some("stop"))));
    events
}
