//! Streams of Responses, Anthropic and Gemini: deltas of a few shapes, valid and corrupted, between other events.

use unbraid_testkit::cut::Rng;

use crate::{
    chunks::{ODD, boundary, escaped, structural, words},
    shapes::{WRONG, number},
};

/// A server of one provider, whose deltas have the same keys in each stream.
#[derive(Debug)]
pub struct ProviderServer {
    provider: Provider,
    has_names: bool,
    space: &'static str,
    line_end: &'static str,
    /// Rotates the fields of a delta, so that their order differs between servers.
    order: usize,
    /// Which of the optional fields a delta has.
    optional: usize,
}

#[derive(Debug, Clone, Copy)]
enum Provider {
    Anthropic,
    Responses,
    Gemini,
}

/// One event, and whether it was corrupted.
#[derive(Debug)]
pub struct ProviderEvent {
    /// Its lines with the blank line.
    pub bytes: Vec<u8>,
    /// Whether its data differs from what a server sends.
    pub is_corrupted: bool,
}

type Fields = Vec<(&'static str, String)>;

/// Values that a reader takes for another one of its type.
const UNUSUAL: [&str; 10] = [
    "7.0",
    "1e2",
    "\"0\"",
    "9223372036854775808",
    "\"\\ud83d\"",
    "\"\\ude00\"",
    "\"\"",
    "{\"a\":1,\"a\":2}",
    "[{}]",
    "\"function_call\"",
];

impl ProviderServer {
    /// A random server.
    pub fn new(rng: &mut Rng) -> Self {
        Self {
            provider: [Provider::Anthropic, Provider::Responses, Provider::Gemini][rng.below(3)],
            has_names: rng.chance(0.7),
            space: ["", " "][rng.below(2)],
            line_end: ["\n", "\n", "\r\n"][rng.below(3)],
            order: rng.below(8),
            optional: rng.below(256),
        }
    }

    /// A stream of this many events, of which about `corruption` are corrupted.
    pub fn stream(&self, rng: &mut Rng, events: usize, corruption: f64) -> Vec<ProviderEvent> {
        let mut stream: Vec<ProviderEvent> = self
            .start()
            .iter()
            .map(|event| self.event(event, false))
            .collect();
        let mut place = 0;
        while stream.len() < events {
            if rng.chance(0.1) {
                place = rng.below(3);
            }
            let fields = match rng.below(40) {
                0 => self.other(place, rng),
                _ => self.delta(place, rng),
            };
            let is_corrupted = rng.chance(corruption);
            let mut data = if is_corrupted {
                self.corrupted(fields, rng)
            } else {
                self.object(&fields).into_bytes()
            };
            if self.has(5) && data.ends_with(b"}") {
                data.pop();
                data.extend([&b"      "[rng.below(6)..], b"}"].concat()); // as Anthropic pads its events
            }
            stream.push(self.framed(&data, is_corrupted));
        }
        stream
    }

    /// The events before the first delta.
    fn start(&self) -> Vec<String> {
        let events: &[&str] = match self.provider {
            Provider::Anthropic => &[
                r#"{"type":"message_start","message":{"id":"m1","role":"assistant","content":[],"model":"c"}}"#,
                r#"{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}"#,
                r#"{"type":"content_block_start","index":1,"content_block":{"type":"text","text":""}}"#,
                r#"{"type":"content_block_start","index":2,"content_block":{"type":"tool_use","id":"t","name":"f","input":{}}}"#,
            ],
            Provider::Responses => &[
                r#"{"type":"response.created","response":{"id":"r1","object":"response","model":"o","created_at":1}}"#,
                r#"{"type":"response.output_item.added","output_index":0,"item":{"type":"reasoning","id":"i0","summary":[]}}"#,
                r#"{"type":"response.output_item.added","output_index":1,"item":{"type":"message","id":"i1","role":"assistant","content":[]}}"#,
                r#"{"type":"response.output_item.added","output_index":2,"item":{"type":"function_call","call_id":"c","name":"f","arguments":""}}"#,
            ],
            Provider::Gemini => &[
                r#"{"candidates":[{"content":{"parts":[{"text":"a"}],"role":"model"},"index":0}],"responseId":"g1","modelVersion":"g"}"#,
            ],
        };
        events.iter().map(|event| (*event).to_owned()).collect()
    }

    /// An event that continues a text.
    fn delta(&self, place: usize, rng: &mut Rng) -> Fields {
        let text = format!("\"{}\"", escaped(&words(rng), rng));
        let mut fields = match self.provider {
            Provider::Anthropic => {
                let (kind, key) = [
                    ("thinking_delta", "thinking"),
                    ("text_delta", "text"),
                    ("input_json_delta", "partial_json"),
                ][place];
                let delta = vec![("type", format!("\"{kind}\"")), (key, text)];
                vec![
                    ("type", "\"content_block_delta\"".to_owned()),
                    ("index", place.to_string()),
                    ("delta", self.object(&delta)),
                ]
            }
            Provider::Responses => {
                let kind = [
                    "reasoning_summary_text",
                    "output_text",
                    "function_call_arguments",
                ][place];
                let id = match self.has(3) {
                    true => format!("\"id{}\"", rng.below(9)),
                    false => format!("\"i{place}\""),
                };
                let mut fields = vec![
                    ("type", format!("\"response.{kind}.delta\"")),
                    ("output_index", place.to_string()),
                    ("delta", text),
                ];
                let optional = [
                    ("sequence_number", rng.below(2_000).to_string()),
                    ("item_id", id),
                    ("obfuscation", format!("\"{}\"", "x".repeat(rng.below(20)))),
                    ("logprobs", "[]".to_owned()),
                    ("content_index", "0".to_owned()),
                ];
                let numbered = optional.into_iter().enumerate();
                fields.extend(numbered.filter(|(n, _)| self.has(*n)).map(|(_, f)| f));
                fields
            }
            Provider::Gemini => self.candidates(place, text, rng),
        };
        let first = self.order % fields.len();
        fields.rotate_left(first);
        fields
    }

    fn candidates(&self, place: usize, text: String, rng: &mut Rng) -> Fields {
        let mut part = vec![("text", text)];
        if place == 1 {
            part.push(("thought", "true".to_owned()));
        }
        if place == 2 && self.has(6) {
            let signature = "c2ln".repeat(rng.below(9));
            part.push(("thoughtSignature", format!("\"{signature}\"")));
        }
        let content = vec![
            ("parts", format!("[{}]", self.object(&part))),
            ("role", "\"model\"".to_owned()),
        ];
        let mut candidate = vec![("content", self.object(&content))];
        if self.has(0) {
            candidate.push(("index", (place / 2).to_string()));
        }
        if self.has(7) {
            candidate.push(("groundingMetadata", "{}".to_owned()));
        }
        let mut fields = vec![("candidates", format!("[{}]", self.object(&candidate)))];
        if self.has(1) {
            let details = vec![
                ("modality", "\"TEXT\"".to_owned()),
                ("tokenCount", "7".to_owned()),
            ];
            let usage = vec![
                ("promptTokenCount", "7".to_owned()),
                // The thoughts are counted on their own.
                (
                    ["candidatesTokenCount", "thoughtsTokenCount"][place % 2],
                    rng.below(500).to_string(),
                ),
                (
                    "promptTokensDetails",
                    format!("[{}{}]", self.space, self.object(&details)),
                ),
            ];
            fields.push(("usageMetadata", self.object(&usage)));
        }
        if self.has(2) {
            let id = if self.has(3) { "\"g1\"" } else { "\"g2\"" };
            fields.push(("responseId", id.to_owned()));
            fields.push(("modelVersion", "\"g\"".to_owned()));
        }
        match self.has(4) {
            true => vec![("response", self.object(&fields))],
            false => fields,
        }
    }

    /// An event that does something else.
    fn other(&self, place: usize, rng: &mut Rng) -> Fields {
        let events: &[&[(&'static str, &str)]] = match self.provider {
            Provider::Anthropic => &[
                &[("type", "\"ping\"")],
                &[("type", "\"content_block_stop\""), ("index", "2")],
                &[
                    ("type", "\"content_block_start\""),
                    ("index", "2"),
                    (
                        "content_block",
                        r#"{"type":"tool_use","id":"u","name":"g","input":{"a":1}}"#,
                    ),
                ],
                &[
                    ("type", "\"content_block_delta\""),
                    ("index", "0"),
                    ("delta", r#"{"type":"signature_delta","signature":"s"}"#),
                ],
            ],
            Provider::Responses => &[
                &[("type", "\"response.in_progress\""), ("response", "{}")],
                &[
                    ("type", "\"response.reasoning_text.delta\""),
                    ("output_index", "0"),
                    ("delta", "\"r\""),
                ],
                &[
                    ("type", "\"response.output_text.done\""),
                    ("output_index", "1"),
                    ("text", "\"whole\""),
                ],
                &[
                    ("type", "\"response.output_item.added\""),
                    ("output_index", "2"),
                    (
                        "item",
                        r#"{"type":"function_call","id":"j","call_id":"d","name":"g"}"#,
                    ),
                ],
            ],
            Provider::Gemini => &[
                &[("usageMetadata", r#"{"totalTokenCount": 9}"#)],
                &[(
                    "candidates",
                    r#"[{"content":{"parts":[{"functionCall":{"name":"f","args":{}}}]},"index":0}]"#,
                )],
                &[(
                    "candidates",
                    r#"[{"finishReason":"STOP","content":{"parts":[{"text":"b"}]}}]"#,
                )],
                &[
                    (
                        "candidates",
                        r#"[{"content":{"parts":[{"text":"c"}]},"index":0}]"#,
                    ),
                    ("responseId", "\"g3\""),
                ],
            ],
        };
        let event = events[(place + rng.below(events.len())) % events.len()];
        let field = |(key, raw): &(&'static str, &str)| (*key, (*raw).to_owned());
        event.iter().map(field).collect()
    }

    /// The event with another value in one place, or with other bytes.
    fn corrupted(&self, mut fields: Fields, rng: &mut Rng) -> Vec<u8> {
        if rng.chance(0.5) {
            let at = rng.below(fields.len());
            let value = match rng.below(5) {
                0 => format!("\"{}\"", ODD[rng.below(ODD.len())]),
                1 => number(rng),
                2 => WRONG[rng.below(WRONG.len())].to_owned(),
                3 => fields[rng.below(fields.len())].1.clone(),
                _ => UNUSUAL[rng.below(UNUSUAL.len())].to_owned(),
            };
            if rng.chance(0.2) {
                let key = fields[at].0;
                fields.push((key, value)); // the last of two counts
            } else {
                fields[at].1 = value;
            }
        }
        let mut data = self.object(&fields);
        match rng.below(4) {
            0 => {
                let offset = boundary(&data, rng.below(data.len() + 1));
                data.insert_str(offset, ODD[rng.below(ODD.len())]);
            }
            1 => data.insert(structural(&data, rng), ' '),
            _ => {}
        }
        let mut data = data.into_bytes();
        if rng.chance(0.2) {
            let offset = rng.below(data.len());
            data[offset] = rng.next_u64() as u8;
        }
        data.retain(|byte| !matches!(byte, b'\n' | b'\r')); // an event is one line here
        data
    }

    fn has(&self, field: usize) -> bool {
        self.optional & (1 << field) != 0
    }

    fn object(&self, fields: &[(&'static str, String)]) -> String {
        let space = self.space;
        let fields = fields
            .iter()
            .map(|(key, raw)| format!("\"{key}\":{space}{raw}"));
        let fields: Vec<String> = fields.collect();
        format!("{{{}}}", fields.join(&format!(",{space}")))
    }

    fn framed(&self, data: &[u8], is_corrupted: bool) -> ProviderEvent {
        let end = self.line_end.as_bytes();
        let text = String::from_utf8_lossy(data);
        let kind = text.split("\"type\":").nth(1); // that of the delta in some servers: any name will do
        let name = kind.and_then(|rest| rest.trim_start().strip_prefix('"')?.split('"').next());
        let is_usual = |name: &&str| self.has_names && name.is_ascii() && !name.is_empty();
        let name = name.filter(is_usual).map(str::as_bytes);
        let mut bytes = Vec::new();
        if let Some(name) = name {
            bytes.extend([b"event: ", name, end].concat());
        }
        bytes.extend([b"data: ", data, end, end].concat());
        ProviderEvent {
            bytes,
            is_corrupted,
        }
    }

    fn event(&self, data: &str, is_corrupted: bool) -> ProviderEvent {
        self.framed(data.as_bytes(), is_corrupted)
    }
}
