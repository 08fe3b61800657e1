//! Chunks with any structure that a server might send, valid and invalid, for the decoder's scanner.

use unbraid_testkit::cut::Rng;

use crate::{
    chunks::{ODD, boundary, escaped, structural, words},
    mutate::edit,
};

/// A server whose chunks have some random properties in common.
#[derive(Debug)]
pub struct Server {
    space: [&'static str; 2],
    id: String,
    /// The percentage of the optional fields that it sends.
    optional_percent: usize,
    /// The probability of a wrong or repeated field.
    error_rate: f64,
}

impl Server {
    /// A random server. Half of the servers send only valid chunks.
    pub fn new(rng: &mut Rng) -> Self {
        const SPACES: [[&str; 2]; 6] = [
            ["", ""],
            ["", ""],
            ["", ""],
            [" ", " "],
            ["", " "],
            ["\t ", "\t"],
        ];
        Self {
            space: SPACES[rng.below(SPACES.len())],
            id: format!("\"gen-{:x}\"", rng.next_u64()),
            optional_percent: 10 + rng.below(60),
            error_rate: [0.0, 0.0, 0.01, 0.05][rng.below(4)],
        }
    }

    /// The next chunk.
    pub fn chunk(&self, rng: &mut Rng) -> String {
        let count = [1, 1, 1, 1, 0, 2, 3][rng.below(7)];
        let choices: Vec<String> = (0..count).map(|index| self.choice(index, rng)).collect();
        let mut fields = vec![("choices", self.list(&choices))];
        if rng.chance(0.1) {
            fields.clear(); // JSON that is not a chunk
        }
        let id = if rng.chance(0.5) {
            self.id.clone()
        } else {
            string(rng)
        };
        self.add_some(&mut fields, rng, |rng| {
            vec![
                ("id", id),
                ("object", "\"chat.completion.chunk\"".into()),
                ("created", integer(rng)),
                (
                    "model",
                    ["\"m\"", "\"m\"", "null", "\"n\""][rng.below(4)].into(),
                ),
                ("usage", self.usage(rng)),
                ("obfuscation", string(rng)),
                (
                    "p",
                    ["\"abc\"".into(), "\"\"".into(), string(rng)][rng.below(3)].clone(),
                ),
                ("system_fingerprint", "\"fp\"".into()),
                ("provider", string(rng)),
                ("x_groq", self.groq(rng)),
                ("error", "null".into()),
                ("type", "\"content_block_delta\"".into()),
                ("x", self.value(3, rng)),
            ]
        });
        self.object(fields, rng)
    }

    /// A corrupted chunk.
    pub fn corrupted(&self, rng: &mut Rng) -> Vec<u8> {
        let mut chunk = self.chunk(rng);
        if rng.chance(0.6) {
            let word = if rng.chance(0.5) {
                let offset = boundary(&chunk, rng.below(chunk.len() + 1));
                chunk.insert_str(offset, ODD[rng.below(ODD.len())]);
                ""
            } else {
                WORDS[rng.below(WORDS.len())]
            };
            chunk.insert_str(structural(&chunk, rng), word);
            return line(chunk.into_bytes());
        }
        let mut chunk = chunk.into_bytes();
        for _ in 0..1 + rng.below(3) {
            edit(&mut chunk, &WORDS, &[], rng);
        }
        line(chunk)
    }

    fn choice(&self, index: usize, rng: &mut Rng) -> String {
        let mut fields = Vec::new();
        if rng.chance(0.95) {
            fields.push(("index", index.to_string()));
        }
        match rng.below(10) {
            0 => {
                // A text completion may omit the text of a chunk.
                if rng.chance(0.9) {
                    fields.push(("text", string(rng)));
                }
                // The fast path declines these.
                if rng.chance(0.2) {
                    let details = "[{\"text\":\"a\"}]".to_owned();
                    let beside = [("reasoning", string(rng)), ("reasoning_details", details)];
                    fields.extend(beside.into_iter().filter(|_| rng.chance(0.7)));
                    fields.extend(rng.chance(0.5).then(|| ("delta", "{}".into())));
                }
            }
            1 => {}
            _ => fields.push(("delta", self.delta(rng))),
        }
        self.add_some(&mut fields, rng, |rng| {
            let reason = ["null", "null", "\"stop\"", "\"\"", "\"tool_calls\""][rng.below(5)];
            vec![
                ("finish_reason", reason.into()),
                ("logprobs", self.logprobs(rng)),
                ("message", ["null", "{}"][rng.below(2)].into()),
                ("native_finish_reason", "null".into()),
                ("content_filter_results", self.value(2, rng)),
                ("stop_reason", "null".into()),
                ("token_ids", "[1,2]".into()),
                ("usage", self.usage(rng)),
            ]
        });
        if rng.chance(0.05) {
            let message = format!("{{\"role\":\"assistant\",\"content\":{}}}", string(rng));
            fields.push(("message", message));
        }
        self.object(fields, rng)
    }

    fn delta(&self, rng: &mut Rng) -> String {
        let mut fields = Vec::new();
        if rng.chance(0.7) {
            fields.push(("content", string(rng)));
        }
        if rng.chance(0.3) {
            let calls: Vec<String> = (0..rng.below(3))
                .map(|index| self.call(index, rng))
                .collect();
            fields.push(("tool_calls", self.list(&calls)));
        }
        self.add_some(&mut fields, rng, |rng| {
            let details = format!(
                "[{{\"type\":\"reasoning.text\",\"text\":{},\"index\":0}}]",
                string(rng)
            );
            vec![
                (
                    "role",
                    ["\"assistant\"", "\"\"", "null"][rng.below(3)].into(),
                ),
                ("content", "null".into()),
                ("refusal", "null".into()),
                ("refusal", string(rng)),
                ("reasoning", string(rng)),
                ("reasoning_content", string(rng)),
                ("thinking", "null".into()),
                ("reasoning_details", details),
                ("function_call", self.function(rng)),
                ("audio", format!("{{\"data\":{}}}", string(rng))),
                ("annotations", self.value(2, rng)),
                ("nonce", string(rng)),
            ]
        });
        self.object(fields, rng)
    }

    fn call(&self, index: usize, rng: &mut Rng) -> String {
        let mut fields = vec![("function", self.function(rng))];
        if rng.chance(0.9) {
            fields.push(("index", index.to_string()));
        }
        self.add_some(&mut fields, rng, |rng| {
            vec![
                ("id", string(rng)),
                ("type", "\"function\"".into()),
                ("extra_content", self.value(2, rng)),
                ("custom", "null".into()),
            ]
        });
        self.object(fields, rng)
    }

    fn function(&self, rng: &mut Rng) -> String {
        let mut fields = vec![("arguments", string(rng))];
        self.add_some(&mut fields, rng, |rng| {
            vec![
                ("name", ["\"f\"", "null", "\"\""][rng.below(3)].into()),
                ("parsed", self.value(1, rng)),
            ]
        });
        self.object(fields, rng)
    }

    pub(crate) fn logprobs(&self, rng: &mut Rng) -> String {
        if rng.chance(0.3) {
            return "null".into();
        }
        let token = format!(
            "{{\"token\":{},\"logprob\":{},\"bytes\":[1,255]}}",
            string(rng),
            number(rng)
        );
        let list = [
            "[]".into(),
            "null".into(),
            format!("[{token}]"),
            self.list(&[token]),
        ];
        let name = ["content", "refusal", "tokens", "token_logprobs"][rng.below(4)];
        let mut fields = vec![(name, list[rng.below(list.len())].clone())];
        self.add_some(&mut fields, rng, |_| vec![("refusal", "null".into())]);
        self.object(fields, rng)
    }

    pub(crate) fn usage(&self, rng: &mut Rng) -> String {
        if rng.chance(0.6) {
            return "null".into();
        }
        format!(
            "{{\"prompt_tokens\":{},\"details\":{}}}",
            number(rng),
            self.value(2, rng)
        )
    }

    /// Where Groq reports usage.
    fn groq(&self, rng: &mut Rng) -> String {
        match rng.below(4) {
            0 => "null".into(),
            1 => self.value(2, rng),
            _ => format!("{{\"id\":\"r\",\"usage\":{}}}", self.usage(rng)),
        }
    }

    /// A random JSON value, at most `levels` deep.
    pub(crate) fn value(&self, levels: usize, rng: &mut Rng) -> String {
        match rng.below(if levels == 0 { 4 } else { 7 }) {
            0 => ["null", "true", "false", "{}", "[]"][rng.below(5)].into(),
            1 => string(rng),
            2 | 3 => number(rng),
            4 => {
                let items: Vec<String> = (0..rng.below(4))
                    .map(|_| self.value(levels - 1, rng))
                    .collect();
                self.list(&items)
            }
            _ => {
                let names = ["a", "content", "index", "é", "nested"];
                let fields = (0..rng.below(4))
                    .map(|index| (names[index], self.value(levels - 1, rng)))
                    .collect();
                self.object(fields, rng)
            }
        }
    }

    /// Adds some of the fields.
    fn add_some(
        &self,
        fields: &mut Vec<(&'static str, String)>,
        rng: &mut Rng,
        all: impl FnOnce(&mut Rng) -> Vec<(&'static str, String)>,
    ) {
        for field in all(rng) {
            if rng.below(100) < self.optional_percent {
                fields.push(field);
            }
        }
        if fields.is_empty() || !rng.chance(self.error_rate) {
            return;
        }
        // A repeated field, or another value in its place.
        let index = rng.below(fields.len());
        let other = WRONG[rng.below(WRONG.len())].to_owned();
        if rng.chance(0.5) {
            fields.push((fields[index].0, other));
        } else {
            fields[index].1 = other;
        }
    }

    fn object(&self, mut fields: Vec<(&'static str, String)>, rng: &mut Rng) -> String {
        for index in (1..fields.len()).rev() {
            fields.swap(index, rng.below(index + 1));
        }
        let [before, after] = self.space;
        let fields: Vec<String> = fields
            .iter()
            .map(|(name, value)| format!("\"{name}\"{before}:{after}{value}"))
            .collect();
        format!(
            "{{{before}{}{before}}}",
            fields.join(&format!("{before},{after}"))
        )
    }

    fn list(&self, items: &[String]) -> String {
        let [before, after] = self.space;
        format!(
            "[{before}{}{before}]",
            items.join(&format!("{before},{after}"))
        )
    }
}

/// Replacements of a value.
pub(crate) const WRONG: [&str; 26] = [
    "null",
    "true",
    "0",
    "-1",
    "1.5",
    "1e5",
    "\"\"",
    "\"x\"",
    "\"7\"",
    "[]",
    "{}",
    "[null]",
    "[{}]",
    "{\"a\":1}",
    "[[1],[2]]",
    "18446744073709551616",
    "4294967296",
    "1e999",
    "1e400",
    "-0",
    "01",
    "\"\\ud83d\"",
    "\"\\ud7ff\\udbff\"",
    "{\"$serde_json::private::RawValue\":\"1\"}",
    "NaN",
    "{\"content\":[1],\"content\":[]}",
];

/// Fields inserted at valid and invalid positions.
const WORDS: [&str; 30] = [
    "\"index\":3,",
    "\"index\":null,",
    "\"delta\":{},",
    "\"delta\":null,",
    "\"content\":\"two\",",
    "\"\\u0069ndex\":2,",
    "\"role\":\"assistant\",",
    "\"choices\":[],",
    "\"choices\":null,",
    "\"message\":{\"content\":\"m\"},",
    "\"error\":{\"message\":\"m\"},",
    "\"code\":1,",
    "\"reasoning_details\":null,",
    "\"function\":null,",
    "\"function_call\":null,",
    "\"tool_calls\":null,",
    "\"text\":\"t\",",
    "\"logprobs\":{\"tokens\":[1],\"tokens\":[]},",
    "\"created\":1.5,",
    "\"object\":\"error\",",
    "\"x\":1e999,",
    "\"x\":1E+1,",
    "null,",
    " ",
    "}",
    "]",
    ",",
    ":",
    "\u{b}",
    "\\u0022",
];

fn line(mut chunk: Vec<u8>) -> Vec<u8> {
    chunk.retain(|byte| !matches!(byte, b'\n' | b'\r')); // an event is one line here
    chunk
}

fn string(rng: &mut Rng) -> String {
    let text = if rng.chance(0.05) {
        ODD[rng.below(9)].to_owned()
    } else if rng.chance(0.1) {
        String::new()
    } else {
        let text = words(rng).repeat(1 + 12 * usize::from(rng.chance(0.1)));
        escaped(&text, rng)
    };
    format!("\"{text}\"")
}

fn integer(rng: &mut Rng) -> String {
    const NUMBERS: [&str; 6] = [
        "0",
        "1795216167",
        "1795216168",
        "9223372036854775808",
        "null",
        "1795216167",
    ];
    NUMBERS[rng.below(NUMBERS.len())].to_owned()
}

pub(crate) fn number(rng: &mut Rng) -> String {
    const NUMBERS: [&str; 16] = [
        "0",
        "-0",
        "-1",
        "12",
        "-0.0013431536",
        "1.7e9",
        "3e-05",
        "1E+2",
        "0.0",
        "1e99",
        "9e-400",
        "-1.5",
        "18446744073709551615",
        "123456789012345678901234567890",
        "1e-5",
        "255",
    ];
    NUMBERS[rng.below(NUMBERS.len())].to_owned()
}
