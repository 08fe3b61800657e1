//! Common chunks as servers send them, and corrupted ones, for the decoder's template path.

use serde_json::{Value, json};
use unbraid_testkit::cut::Rng;

use crate::mutate::edit;

/// A server with one format of chunks.
#[derive(Debug)]
pub struct Producer {
    style: usize,
    payload: Payload,
    id: String,
}

/// The field that the chunks of a producer carry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Payload {
    Content,
    Reasoning,
    Refusal,
    Arguments,
    Text,
}

const PAYLOADS: [Payload; 5] = [
    Payload::Content,
    Payload::Reasoning,
    Payload::Refusal,
    Payload::Arguments,
    Payload::Text,
];

/// The number of formats.
const STYLES: usize = 6;

impl Producer {
    /// A random producer. Most producers send content.
    pub fn new(rng: &mut Rng) -> Self {
        let payload = if rng.chance(0.4) {
            Payload::Content
        } else {
            PAYLOADS[rng.below(PAYLOADS.len())]
        };
        // The index of a call could be taken for that of the choice, so only styles with the choice's index first are used.
        let style = if payload == Payload::Arguments {
            [0, 1, 3][rng.below(3)]
        } else {
            rng.below(STYLES)
        };
        Self {
            style,
            payload,
            id: format!("chatcmpl-{:x}", rng.next_u64()),
        }
    }

    /// The next chunk.
    pub fn chunk(&self, rng: &mut Rng) -> String {
        let index = rng.below(8);
        let text_in_quotes = escaped(&words(rng), rng);
        self.chunk_of(&index.to_string(), &text_in_quotes, rng)
    }

    /// A chunk with this text as its index, and this text inside the quotes of its payload.
    fn chunk_of(&self, index: &str, text_in_quotes: &str, rng: &mut Rng) -> String {
        let delta = match self.payload {
            Payload::Content => format!("\"delta\":{{\"content\":\"{text_in_quotes}\"}}"),
            Payload::Reasoning => {
                format!("\"delta\":{{\"reasoning_content\":\"{text_in_quotes}\"}}")
            }
            Payload::Refusal => format!("\"delta\":{{\"refusal\":\"{text_in_quotes}\"}}"),
            Payload::Arguments => format!(
                "\"delta\":{{\"tool_calls\":[{{\"index\":0,\"function\":{{\"arguments\":\"{text_in_quotes}\"}}}}]}}"
            ),
            Payload::Text => format!("\"text\":\"{text_in_quotes}\""),
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

    /// A corrupted chunk: with another value, another structure, or other bytes.
    pub fn corrupted(&self, rng: &mut Rng) -> Vec<u8> {
        match rng.below(10) {
            // Invalid escapes and characters, and strings that end early.
            0..7 => {
                let mut text_in_quotes = escaped(&words(rng), rng);
                for _ in 0..1 + rng.below(2) * rng.below(2) {
                    let offset = boundary(&text_in_quotes, rng.below(text_in_quotes.len() + 1));
                    text_in_quotes.insert_str(offset, ODD[rng.below(ODD.len())]);
                }
                self.chunk_of("1", &text_in_quotes, rng).into_bytes()
            }
            7 => {
                let index = INDICES[rng.below(INDICES.len())];
                self.chunk_of(index, &escaped(&words(rng), rng), rng)
                    .into_bytes()
            }
            8 => {
                let mut chunk = self.chunk(rng);
                let offset = structural(&chunk, rng);
                chunk.insert_str(offset, FIELDS[rng.below(FIELDS.len())]);
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

/// Inserted inside the quotes of a text.
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

/// Replacements of an index.
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

/// Fields inserted at valid and invalid positions.
const FIELDS: [&str; 28] = [
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
    "\"p\":\"abc\",",
    "\"p\":\"a\\u0062c\",",
    "\"p\":\"acb\",",
    "\"p\":null,",
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

/// A position after a bracket or a comma.
pub(crate) fn structural(chunk: &str, rng: &mut Rng) -> usize {
    let positions: Vec<usize> = chunk
        .match_indices(['{', '[', ',', '}'])
        .map(|(offset, _)| offset + 1)
        .collect();
    positions
        .get(rng.below(positions.len()))
        .copied()
        .unwrap_or(0)
}

/// The last character boundary up to `offset`.
pub(crate) fn boundary(text: &str, offset: usize) -> usize {
    (0..=offset)
        .rev()
        .find(|offset| text.is_char_boundary(*offset))
        .unwrap_or(0)
}

/// Some text as a model writes it, a quarter of it outside ASCII or with escapes. It is never empty.
pub(crate) fn words(rng: &mut Rng) -> String {
    const WORDS: [&str; 12] = [
        " the", " answer", "s", ",", " 42", " é", "中文", "😀", "\n", " \"so\"", "{\"a\":", "\\",
    ];
    let count = 1 + rng.below(4);
    (0..count).map(|_| WORDS[rng.below(WORDS.len())]).collect()
}

/// The text as inside a JSON string, sometimes in ASCII only.
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

/// A complete body of a correct server: roles, interleaved chunks, a quarter of them with arguments, and finishes.
pub fn correct_body(chunks: usize, seed: u64) -> Vec<String> {
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
