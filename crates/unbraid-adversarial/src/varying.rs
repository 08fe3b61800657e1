//! Chunks with the same keys and other values, valid and invalid, for the typed holes of the decoder's templates.

use unbraid_testkit::cut::Rng;

use crate::{
    chunks::{ODD, boundary, escaped, structural, words},
    shapes::{Server, WRONG, number},
};

/// A server whose chunks all have the same keys, and vary in some of their values.
#[derive(Debug)]
pub struct VaryingServer {
    envelope: Vec<(&'static str, Kind)>,
    choice: Vec<(&'static str, Kind)>,
    delta: Vec<(&'static str, Kind)>,
    /// Generates values of any kind.
    values: Server,
    space: &'static str,
}

/// What a server sends under a key.
#[derive(Debug, Clone)]
enum Kind {
    /// The same in each chunk.
    Constant(String),
    /// The text that the chunk continues.
    Text,
    /// The text in a list of parts.
    Parts,
    /// The text in a list of reasoning details.
    Details,
    /// A call with the text as arguments.
    Call,
    Index,
    Created,
    Name,
    Padding,
    /// Padding that is the start of an alphabet, and now and then something else.
    Alphabet,
    Logprobs,
    Usage,
    /// Any value. It may be a field that keeps its last value in some chunks.
    Json,
    Choices,
    Delta,
}

/// Values that a hole has to decline, or to pass on unchanged.
const UNUSUAL: [&str; 12] = [
    "{\"completion_tokens\":1e999}",
    "{\"total_tokens\":3,\"total_tokens\":4}",
    "{\"content\":[],\"content\":[{\"token\":\"a\"}]}",
    "{\"content\":[{\"token\":\"\\ud83d\"}]}",
    "{\"a\":{\"$serde_json::private::Number\":\"1\"}}",
    "[{\"type\":\"reasoning.text\",\"text\":\"other\"}]",
    "[{\"type\":\"text\",\"text\":\"a\",\"text\":\"b\"}]",
    "[{\"type\":\"text\"}]",
    "[\"a\"]",
    "1795216167.0",
    "\"\\u0061\"",
    "\"\u{1}\"",
];

impl VaryingServer {
    /// A random server.
    pub fn new(rng: &mut Rng) -> Self {
        let text = [
            ("content", Kind::Text),
            ("content", Kind::Text),
            ("reasoning", Kind::Text),
            ("refusal", Kind::Text),
            ("content", Kind::Parts),
            ("tool_calls", Kind::Call),
        ];
        let mut delta = vec![text[rng.below(text.len())].clone()];
        let mut choice = vec![("index", Kind::Index), ("delta", Kind::Delta)];
        let mut envelope = vec![("choices", Kind::Choices)];
        let optional = |fields: &mut Vec<_>, all: &[(&'static str, Kind)], rng: &mut Rng| {
            let chosen = all.iter().filter(|_| rng.chance(0.3));
            fields.extend(chosen.cloned());
        };
        let constant = |raw: &str| Kind::Constant(raw.to_owned());
        let in_delta = [
            ("role", constant("\"assistant\"")),
            ("reasoning_details", Kind::Details),
            ("token_id", Kind::Json),
            ("phase", constant("\"final\"")),
        ];
        let in_choice = [
            ("logprobs", Kind::Logprobs),
            ("finish_reason", constant("null")),
            ("content_filter_results", Kind::Json),
            ("stop_reason", constant("7")),
        ];
        let in_envelope = [
            ("id", Kind::Name),
            ("created", Kind::Created),
            ("model", Kind::Name),
            ("usage", Kind::Usage),
            ("obfuscation", Kind::Padding),
            ("timings", Kind::Json),
            ("p", Kind::Alphabet),
            ("system_fingerprint", constant("\"fp\"")),
            ("object", constant("\"chat.completion.chunk\"")),
        ];
        optional(&mut delta, &in_delta, rng);
        optional(&mut choice, &in_choice, rng);
        optional(&mut envelope, &in_envelope, rng);
        for fields in [&mut delta, &mut choice, &mut envelope] {
            let last = rng.below(fields.len());
            fields.swap(0, last);
        }
        Self {
            envelope,
            choice,
            delta,
            values: Server::new(rng),
            space: ["", "", " "][rng.below(3)],
        }
    }

    /// The next chunk.
    pub fn chunk(&self, rng: &mut Rng) -> String {
        self.write(rng, None)
    }

    /// A chunk with another value in one place, or with other bytes.
    pub fn corrupted(&self, rng: &mut Rng) -> Vec<u8> {
        let replaced = rng.below(self.envelope.len() + self.choice.len() + self.delta.len());
        let value = match rng.below(8) {
            0 => format!("\"{}\"", "n".repeat(5_000)),
            1 => "[".repeat(130) + &"]".repeat(130),
            2 => format!("\"{}\"", ODD[rng.below(ODD.len())]),
            3 | 4 => UNUSUAL[rng.below(UNUSUAL.len())].to_owned(),
            5 => number(rng),
            _ => WRONG[rng.below(WRONG.len())].to_owned(),
        };
        let mut chunk = match rng.below(4) {
            0 => self.chunk(rng),
            _ => self.write(rng, Some((replaced, &value))),
        };
        match rng.below(4) {
            0 => {
                let offset = boundary(&chunk, rng.below(chunk.len() + 1));
                chunk.insert_str(offset, ODD[rng.below(ODD.len())]);
            }
            1 => chunk.insert(structural(&chunk, rng), ' '),
            _ => {}
        }
        let mut chunk = chunk.into_bytes();
        if rng.chance(0.1) {
            let offset = rng.below(chunk.len());
            chunk[offset] = rng.next_u64() as u8;
        }
        chunk.retain(|byte| !matches!(byte, b'\n' | b'\r')); // an event is one line here
        chunk
    }

    /// Writes a chunk, with this value in the place of this number.
    fn write(&self, rng: &mut Rng, replaced: Option<(usize, &str)>) -> String {
        let text = escaped(&words(rng), rng);
        let mut place = 0;
        self.object(&self.envelope, &text, &mut place, replaced, rng)
    }

    fn object(
        &self,
        fields: &[(&'static str, Kind)],
        text: &str,
        place: &mut usize,
        replaced: Option<(usize, &str)>,
        rng: &mut Rng,
    ) -> String {
        let space = self.space;
        let mut written = Vec::new();
        for (name, kind) in fields {
            let this = *place;
            *place += 1;
            let value = match (replaced, kind) {
                (Some((number, value)), _) if number == this => value.to_owned(),
                (_, Kind::Choices) => {
                    let choice = self.object(&self.choice, text, place, replaced, rng);
                    format!("[{choice}]")
                }
                (_, Kind::Delta) => self.object(&self.delta, text, place, replaced, rng),
                (_, kind) => self.value(kind, text, rng),
            };
            written.push(format!("\"{name}\":{space}{value}"));
        }
        format!("{{{}}}", written.join(&format!(",{space}")))
    }

    fn value(&self, kind: &Kind, text: &str, rng: &mut Rng) -> String {
        match kind {
            Kind::Constant(raw) => raw.clone(),
            Kind::Text => format!("\"{text}\""),
            Kind::Parts => format!("[{{\"type\":\"text\",\"text\":\"{text}\"}}]"),
            Kind::Details => format!("[{{\"type\":\"reasoning.text\",\"text\":\"{text}\"}}]"),
            Kind::Call => {
                format!("[{{\"index\":0,\"function\":{{\"arguments\":\"{text}\"}}}}]")
            }
            Kind::Index => rng.below(3).to_string(),
            Kind::Created => (1_795_216_167 + rng.below(3)).to_string(),
            Kind::Name => format!("\"name-{}\"", rng.below(4)),
            Kind::Padding => format!("\"{}\"", "x".repeat(rng.below(6))),
            Kind::Alphabet if rng.below(60) == 0 => self.values.value(1, rng),
            Kind::Alphabet => format!("\"{}\"", &"abcdefghijklmnop"[..rng.below(16)]),
            Kind::Logprobs => self.values.logprobs(rng),
            Kind::Usage => self.values.usage(rng),
            Kind::Json => self.values.value(2, rng),
            Kind::Choices | Kind::Delta => String::new(),
        }
    }
}
